/* types.c - the types of jobs, all of them in memory; what changed is written once a batch.
 *
 * Or less: a page of counts beside two or three pages of a job is a good part of what a small
 * transaction costs. The changes of an ADD and a TAKE can be derived from the jobs themselves. They
 * are written along with the next change of another sort, or after UNCOUNTED_MAX added jobs. So the
 * counts in the file cover the jobs up to counted_id (of row 1), and a job that was inactive then
 * may be active now. A reader of the counts adds the few jobs behind counted_id and counts the
 * active ones, who are in one place of the index. */
#include "store/sqlite/sq.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/sorted.h"

enum { UNCOUNTED_MAX = 256 };

void weir__sq_types_fini(sq_store *s)
{
    sq_types *t = &s->types;
    for (size_t i = 0; i < t->n; i++) {
        weir__sq_ahead_drop(s, t->by_id[i]);
        free(t->by_id[i]->name);
        free(t->by_id[i]);
    }
    free(t->by_id);
    free(t->by_name);
    *t = (sq_types){ 0 };
}

static int compare_name(const void *name, const void *type)
{
    return strcmp(name, (*(sq_type *const *)type)->name);
}

static size_t place(const sq_types *t, const char *name)
{
    return weir__sorted_place(name, t->by_name, t->n, sizeof(sq_type *), compare_name);
}

/* A new one, with the next id. */
static sq_type *append(sq_types *t, const char *name)
{
    bool     room = weir__grow(&t->by_id, &t->cap_by_id, t->n + 1, sizeof(sq_type *)) &&
                    weir__grow(&t->by_name, &t->cap_by_name, t->n + 1, sizeof(sq_type *));
    sq_type *new = room ? calloc(1, sizeof *new) : NULL;
    if (!new)
        return NULL;
    new->name = strdup(name);
    if (!new->name) {
        free(new);
        return NULL;
    }
    size_t at = place(t, name);
    memmove(t->by_name + at + 1, t->by_name + at, (t->n - at) * sizeof(sq_type *));
    t->by_name[at] = new;
    t->by_id[t->n++] = new;
    new->id = (int64_t)t->n;
    return new;
}

sq_type *weir__sq_type(sq_store *s, const char *name)
{
    size_t at = place(&s->types, name);
    if (at < s->types.n && !strcmp(s->types.by_name[at]->name, name))
        return s->types.by_name[at];
    return NULL;
}

sq_type *weir__sq_type_of(sq_store *s, int64_t id)
{
    return id >= 1 && (uint64_t)id <= s->types.n ? s->types.by_id[id - 1] : NULL;
}

sq_type *weir__sq_type_make(sq_store *s, const char *name)
{
    sq_type *t = weir__sq_type(s, name);
    if (t || s->broken)
        return t;
    t = append(&s->types, name);
    if (!t) {
        weir__sq_no_memory(s);
        return NULL;
    }
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_TYPE_ADD);
    weir__sq_int(st, 1, t->id);
    weir__sq_string(st, 2, name);
    return weir__sq_do(s, st) ? NULL : t;
}

static void mark(sq_store *s, sq_type *t)
{
    if (t->dirty)
        return;
    t->dirty = true;
    t->next_dirty = s->types.dirty;
    s->types.dirty = t;
}

void weir__sq_dirty(sq_store *s, sq_type *t)
{
    mark(s, t);
    s->types.must_save = true;
}

void weir__sq_count_move(sq_store *s, sq_type *t, weir_state from, weir_state to)
{
    bool added = from == WEIR_STATE_ANY, taken = from == WEIR_STATE_INACTIVE &&
        to == WEIR_STATE_ACTIVE;
    if (from)
        t->count[from]--;
    if (to)
        t->count[to]++;
    mark(s, t);
    s->types.uncounted += added;
    if ((!added && !taken) || s->types.uncounted > UNCOUNTED_MAX)
        s->types.must_save = true;
}

static weir_code save(sq_store *s, const sq_type *t)
{
    const weir_settings *set = &t->settings;
    sqlite3_stmt        *st = weir__sq_stmt(s, SQ_TYPE_SAVE);
    weir__sq_int(st, 1, t->id);
    weir__sq_int(st, 2, t->paused);
    weir__sq_int(st, 3, t->has_settings);
    weir__sq_int(st, 4, set->search);
    weir__sq_int(st, 5, set->keep_complete.age_ms);
    weir__sq_int(st, 6, set->keep_complete.count);
    weir__sq_int(st, 7, set->keep_failed.age_ms);
    weir__sq_int(st, 8, set->keep_failed.count);
    for (int state = WEIR_STATE_INACTIVE; state < WEIR_STATE_COUNT; state++)
        weir__sq_int(st, 8 + state, (int64_t)t->count[state]);
    weir__sq_int(st, 15, (int64_t)t->completed);
    weir__sq_int(st, 16, (int64_t)t->failed);
    weir__sq_int(st, 17, t->work_ms);
    weir__sq_int(st, 18, t->last_taken_at);
    weir__sq_int(st, 19, t->id == 1 ? (int64_t)s->last_id : 0);
    return weir__sq_do(s, st);
}

weir_code weir__sq_types_save(sq_store *s)
{
    weir_code rc = WEIR_OK;
    if (!s->types.must_save)
        return WEIR_OK;
    mark(s, weir__sq_star(s));
    s->types.must_save = false;
    s->types.uncounted = 0;
    while (!rc && s->types.dirty) {
        sq_type *t = s->types.dirty;
        s->types.dirty = t->next_dirty;
        t->dirty = false;
        rc = save(s, t);
    }
    return rc;
}

static void read_row(sqlite3_stmt *st, sq_type *t)
{
    weir_settings *set = &t->settings;
    t->paused = sqlite3_column_int(st, 2) != 0;
    t->has_settings = sqlite3_column_int(st, 3) != 0;
    set->search = sqlite3_column_int(st, 4) != 0;
    set->keep_complete.age_ms = sqlite3_column_int64(st, 5);
    set->keep_complete.count = sqlite3_column_int64(st, 6);
    set->keep_failed.age_ms = sqlite3_column_int64(st, 7);
    set->keep_failed.count = sqlite3_column_int64(st, 8);
    for (int state = WEIR_STATE_INACTIVE; state < WEIR_STATE_COUNT; state++)
        t->count[state] = (uint64_t)sqlite3_column_int64(st, 8 + state);
    t->completed = (uint64_t)sqlite3_column_int64(st, 15);
    t->failed = (uint64_t)sqlite3_column_int64(st, 16);
    t->work_ms = sqlite3_column_int64(st, 17);
    t->last_taken_at = sqlite3_column_int64(st, 18);
}

/* From what was saved to what is. */
static void count_rest(sq_store *s, int64_t counted_id)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_UNCOUNTED);
    weir__sq_int(st, 1, counted_id);
    while (weir__sq_row(s, st)) {
        sq_type *t = weir__sq_type_of(s, sqlite3_column_int64(st, 0));
        int      state = sqlite3_column_int(st, 1);
        if (t && state > WEIR_STATE_ANY && state < WEIR_STATE_COUNT) {
            t->count[state]++;
            mark(s, t);
        }
        s->types.uncounted++;
    }
    st = weir__sq_stmt(s, SQ_COUNT_ACTIVE);
    for (size_t i = 0; i < s->types.n; i++) {
        sq_type *t = s->types.by_id[i];
        weir__sq_int(st, 1, t->id);
        if (!weir__sq_row(s, st))
            break;
        uint64_t active = (uint64_t)sqlite3_column_int64(st, 0);
        int64_t  taken_at = sqlite3_column_int64(st, 1);
        sqlite3_reset(st);
        if (active == t->count[WEIR_STATE_ACTIVE])
            continue;
        t->count[WEIR_STATE_INACTIVE] += t->count[WEIR_STATE_ACTIVE] - active;
        t->count[WEIR_STATE_ACTIVE] = active;
        if (taken_at > t->last_taken_at)
            t->last_taken_at = taken_at;
        mark(s, t);
    }
}

weir_code weir__sq_types_load(sq_store *s)
{
    weir__sq_types_fini(s);
    int64_t       counted_id = 0;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_TYPES);
    while (weir__sq_row(s, st)) {
        const char *name = (const char *)sqlite3_column_text(st, 1);
        sq_type    *t = name ? append(&s->types, name) : NULL;
        if (!t)
            weir__sq_no_memory(s);
        else if (t->id != sqlite3_column_int64(st, 0))
            weir__sq_damaged(s, "the ids of its types are not 1, 2, 3 ...");
        else
            read_row(st, t);
        if (sqlite3_column_int64(st, 0) == 1)
            counted_id = sqlite3_column_int64(st, 19);
        if (s->broken) {
            sqlite3_reset(st);
            break;
        }
    }
    if (!s->broken && (!s->types.n || strcmp(weir__sq_star(s)->name, "*") != 0))
        weir__sq_damaged(s, "its first type is not *");
    if (!s->broken)
        count_rest(s, counted_id);
    return s->broken ? s->error.code : WEIR_OK;
}
