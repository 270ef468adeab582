/* trend.c - trends in the mem store: records by slot, and in a slot by type. */
#include "store/mem/mem.h"

#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"

static int compare_type(const void *type, const void *trend)
{
    return strcmp(type, (*(mem_trend *const *)trend)->row.type);
}

/* Where the type is in a slot, or belongs. */
static size_t place_of(const mem_trend_slot *slot, const char *type, bool *found)
{
    size_t at = slot ? weir__sorted_place(type, slot->at, slot->n, sizeof(mem_trend *),
                                          compare_type) : 0;
    *found = slot && at < slot->n && !compare_type(type, &slot->at[at]);
    return at;
}

static mem_trend_slot *slot_of(const mem_store *s, weir_trend_step step, int64_t slot)
{
    return weir__map_get(&s->trends[step], (uint64_t)slot + 1);
}

static void slot_free(mem_trend_slot *slot)
{
    for (size_t i = 0; i < slot->n; i++)
        free(slot->at[i]);
    free(slot->at);
    free(slot);
}

static void sweep(mem_store *s, weir_trend_step step, int64_t first)
{
    size_t   pos = 0;
    uint64_t key;
    void    *slot;
    if (first <= s->trends_first[step])
        return;
    s->trends_first[step] = first;
    while (weir__map_next(&s->trends[step], &pos, &key, &slot)) {
        if ((int64_t)key - 1 < first) {
            weir__map_remove(&s->trends[step], key);
            slot_free(slot);
        }
    }
}

/* Room for one more record of each row of the operation. */
static mem_trend_slot *slot_with_room(mem_store *s, const weir_trend_row *row, size_t n)
{
    mem_trend_slot *slot = slot_of(s, row->step, row->slot);
    if (!slot) {
        slot = calloc(1, sizeof *slot);
        if (!slot || !weir__map_put(&s->trends[row->step], (uint64_t)row->slot + 1, slot)) {
            free(slot);
            return NULL;
        }
    }
    size_t want = slot->n + n < WEIR_TREND_TYPES ? slot->n + n : WEIR_TREND_TYPES;
    if (slot->cap >= want)
        return slot;
    mem_trend **at = realloc(slot->at, want * sizeof(mem_trend *));
    if (!at)
        return NULL;
    slot->at = at;
    slot->cap = want;
    return slot;
}

static mem_trend *make(const weir_trend_row *row, const char *old)
{
    char       record[WEIR_TREND_MAX_BYTES];
    size_t     type_len = strlen(row->type) + 1;
    size_t     len = weir__trend_join_texts(old, row->record, record) + 1;
    mem_trend *m = malloc(sizeof *m + type_len + len);
    if (!m)
        return NULL;
    m->row = *row;
    m->row.type = memcpy(m->bytes, row->type, type_len);
    m->row.record = memcpy(m->bytes + type_len, record, len);
    return m;
}

/* The record that the i-th row is joined with: the record of an earlier row, or the stored one. */
static const char *old_of(const mem_trend_slot *slot, mem_trend *const *fresh, size_t i,
                          const weir_trend_row *row)
{
    bool   found;
    size_t place = place_of(slot, row->type, &found);
    while (i--) {
        const weir_trend_row *other = fresh[i] ? &fresh[i]->row : NULL;
        if (other && other->step == row->step && other->slot == row->slot &&
            !strcmp(other->type, row->type))
            return other->record;
    }
    return found ? slot->at[place]->row.record : "";
}

/* There is room. */
static void put(mem_store *s, mem_trend *m)
{
    mem_trend_slot *slot = slot_of(s, m->row.step, m->row.slot);
    bool            found;
    size_t          place = place_of(slot, m->row.type, &found);
    if (!found && slot->n == WEIR_TREND_TYPES) {
        free(m);
        return;
    }
    if (found) {
        free(slot->at[place]);
    } else {
        memmove(&slot->at[place + 1], &slot->at[place], (slot->n - place) * sizeof *slot->at);
        slot->n++;
    }
    slot->at[place] = m;
}

weir_code weir__mem_trend_put(mem_store *s, weir_op *op)
{
    const weir_op_trend_put *o = &op->u.trend_put;
    mem_trend              **fresh = calloc(o->n + 1, sizeof(mem_trend *));
    bool                     ok = fresh != NULL;
    for (int step = 0; step < WEIR_TREND_STEPS; step++)
        sweep(s, (weir_trend_step)step, weir__trend_first_kept((weir_trend_step)step, op->now_ms));
    for (size_t i = 0; ok && i < o->n; i++) {
        const weir_trend_row *row = &o->rows[i];
        if (!weir__trend_row_is_kept(row, op->now_ms))
            continue;
        const mem_trend_slot *slot = slot_with_room(s, row, o->n);
        ok = slot && (fresh[i] = make(row, old_of(slot, fresh, i, row))) != NULL;
    }
    for (size_t i = 0; fresh && i < o->n; i++) {
        if (ok && fresh[i])
            put(s, fresh[i]);
        else
            free(fresh[i]);
    }
    free(fresh);
    return ok ? WEIR_OK : weir_fail(&op->err, WEIR_ENOMEM, "trend: out of memory");
}

/* ---- reading ---- */

static bool add_slot(const mem_trend_slot *slot, const char *type, weir_trend_rows *rows)
{
    bool   found = true, ok = true;
    size_t first = type ? place_of(slot, type, &found) : 0;
    size_t end = type ? first + found : slot->n;
    for (size_t i = first; ok && i < end; i++)
        ok = weir__trend_rows_add(rows, &slot->at[i]->row);
    return ok;
}

weir_code weir__mem_trend_get(mem_store *s, weir_op *op)
{
    weir_op_trend_get *o = &op->u.trend_get;
    weir_trend_rows   *rows = weir__trend_rows_create();
    bool               ok = rows != NULL;
    int64_t            from, end;
    weir__trend_range(o, op->now_ms, &from, &end);
    for (int64_t at = from; ok && at < end; at++) {
        const mem_trend_slot *slot = slot_of(s, o->step, at);
        ok = !slot || add_slot(slot, o->type, rows);
    }
    if (!ok) {
        weir__trend_rows_free(rows);
        return weir_fail(&op->err, WEIR_ENOMEM, "trend: out of memory");
    }
    o->rows = rows;
    return WEIR_OK;
}

void weir__mem_trends_fini(mem_store *s)
{
    for (int step = 0; step < WEIR_TREND_STEPS; step++) {
        size_t   pos = 0;
        uint64_t key;
        void    *slot;
        while (weir__map_next(&s->trends[step], &pos, &key, &slot))
            slot_free(slot);
        weir__map_fini(&s->trends[step]);
    }
}
