/* schedule.c - schedules in the mem store: rows by name, and by when they are due. */
#include "store/mem/mem.h"

#include <stdlib.h>
#include <string.h>

#include "store/answers.h"

static void take_out(mem_store *s, mem_schedule *m)
{
    weir__names_remove(&s->schedules, &m->named);
    if (m->row.due_at != INT64_MAX)
        weir__tree_remove(&s->schedules_due, &m->in_due);
}

static mem_schedule *make(mem_store *s, const weir_op_schedule *op)
{
    size_t        name_len = strlen(op->name) + 1;
    mem_schedule *m = calloc(1, sizeof *m + name_len + op->len + 1);
    if (!m)
        return NULL;
    memcpy(m->bytes, op->name, name_len);
    memcpy(m->bytes + name_len, op->record, op->len);
    m->row = (weir_schedule_row){ .name = m->bytes, .record = m->bytes + name_len, .len = op->len,
                                  .version = s->last_version + 1, .due_at = op->due_at };
    m->in_due.rank = op->due_at;
    m->in_due.id = m->row.version;
    return m;
}

weir_code weir__mem_schedule(mem_store *s, weir_op *op)
{
    weir_op_schedule *o = &op->u.schedule;
    mem_schedule     *old = weir__names_get(&s->schedules, o->name), *new = NULL;
    uint64_t          version = old ? old->row.version : 0;
    if (!weir__schedule_may_change(o, version, &op->err))
        return op->err.code;
    if (o->record) {                /* both hang on the name for a moment: nothing can fail after */
        new = make(s, o);
        if (!new || !weir__names_put(&s->schedules, &new->named, new->row.name)) {
            free(new);
            return weir_fail(&op->err, WEIR_ENOMEM, "schedule: out of memory");
        }
    }
    if (old)
        take_out(s, old);
    free(old);
    if (!new)
        return WEIR_OK;
    o->new_version = s->last_version = new->row.version;
    if (o->due_at != INT64_MAX) {
        weir__tree_add(&s->schedules_due, &new->in_due);
        weir__agenda_want(&s->agenda, WEIR_DUE_SCHEDULES, o->due_at);
    }
    return WEIR_OK;
}

/* ---- reading ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(mem_schedule *const *)a)->row.name, (*(mem_schedule *const *)b)->row.name);
}

static bool add_row(weir_schedule_rows *rows, const mem_schedule *m)
{
    return weir__rows_add(rows, &m->row, strlen(m->row.name));
}

static bool add_due(const mem_store *s, int64_t now, size_t limit, weir_schedule_rows *rows)
{
    tree_node *n = weir__tree_first(&s->schedules_due);
    bool       ok = true;
    for (; ok && n && n->rank <= now && rows->n < limit;
         n = weir__tree_after(&s->schedules_due, n->rank, n->id))
        ok = add_row(rows, CONTAINER(n, mem_schedule, in_due));
    return ok;
}

/* A page is rare and the table has no order: all are sorted for it. */
static bool add_page(const mem_store *s, const weir_op_schedules *o, weir_schedule_rows *rows)
{
    mem_schedule **found = malloc((s->schedules.n + 1) * sizeof(mem_schedule *));
    size_t         n = 0, pos = 0;
    bool           ok = found != NULL;
    for (mem_schedule *m = NULL; ok && (m = weir__names_next(&s->schedules, &pos, m));)
        if (!o->after || strcmp(m->row.name, o->after) > 0)
            found[n++] = m;
    if (ok && n)
        qsort(found, n, sizeof *found, by_name);
    for (size_t i = 0; ok && i < n && i < o->limit; i++)
        ok = add_row(rows, found[i]);
    free(found);
    return ok;
}

weir_code weir__mem_schedules(mem_store *s, weir_op *op)
{
    weir_op_schedules  *o = &op->u.schedules;
    weir_schedule_rows *rows = weir__rows_create(o->limit);
    const mem_schedule *named = o->name ? weir__names_get(&s->schedules, o->name) : NULL;
    bool                ok = rows != NULL;
    if (ok && o->name)
        ok = !named || add_row(rows, named);
    else if (ok)
        ok = o->due ? add_due(s, op->now_ms, o->limit, rows) : add_page(s, o, rows);
    if (!ok) {
        weir__rows_free(rows);
        return weir_fail(&op->err, WEIR_ENOMEM, "schedules: out of memory");
    }
    o->rows = rows;
    return WEIR_OK;
}

void weir__mem_schedules_fini(mem_store *s)
{
    size_t pos = 0;
    for (mem_schedule *m = weir__names_next(&s->schedules, &pos, NULL), *next; m; m = next) {
        next = weir__names_next(&s->schedules, &pos, m);
        free(m);
    }
    weir__names_fini(&s->schedules);
}
