/* ops_read.c - the operations that only look: get, list, logs, stats. */
#include "store/sqlite/sq.h"

#include <stdlib.h>

#include "core/results.h"
#include "store/answers.h"

weir_code weir__sq_op_get(sq_store *s, weir_op *op)
{
    weir_job      j;
    sq_type      *t;
    sqlite3_stmt *st;
    if (!weir__sq_get(s, op->u.get.id, &j, &t, &st))
        return s->broken ? s->error.code : weir__no_job(&op->err, op->u.get.id);
    op->u.get.job = weir__job_copy(&j);
    sqlite3_reset(st);
    return op->u.get.job ? WEIR_OK : weir__sq_no_memory(s);
}

/* ---- list ---- */

weir_code weir__sq_page_add(sq_store *s, weir_page *page, sqlite3_stmt *st, bool ids_only)
{
    weir_job  j = { .id = (uint64_t)sqlite3_column_int64(st, SQ_C_id) };
    sq_type  *t;
    weir_code rc = ids_only ? WEIR_OK : weir__sq_read(s, st, &j, &t);
    if (rc)
        return rc;
    weir_job *copy = weir__job_copy(&j);
    if (!copy)
        return weir__sq_no_memory(s);
    page->job[page->n++] = copy;
    return WEIR_OK;
}

static void bind_place(sqlite3_stmt *st, const weir_query *q, const weir_cursor *after,
                       size_t limit)
{
    bool start = !after->id;
    weir__sq_int(st, 3, start ? (q->descending ? INT64_MAX : INT64_MIN) : after->rank);
    weir__sq_int(st, 4, start ? (q->descending ? INT64_MAX : 0) : (int64_t)after->id);
    weir__sq_int(st, 5, (int64_t)limit);
}

/* One statement has all that is wanted, in its order. */
static weir_code list_straight(sq_store *s, const weir_query *q, const sq_type *t, weir_page *page)
{
    sq_sql        which = q->state  ? (q->descending ? SQ_LIST_STATE_DOWN : SQ_LIST_STATE)
                          : q->type ? (q->descending ? SQ_LIST_TYPE_DOWN : SQ_LIST_TYPE)
                                    : (q->descending ? SQ_LIST_ALL_DOWN : SQ_LIST_ALL);
    sqlite3_stmt *st = weir__sq_stmt(s, which);
    weir_cursor   last = { 0 };
    if (t)
        weir__sq_int(st, 1, t->id);
    if (q->state)
        weir__sq_int(st, 2, q->state);
    bind_place(st, q, &q->after, q->limit + 1);
    while (weir__sq_row(s, st)) {
        if (page->n == q->limit) {
            page->more = true;
            page->next = last;
            break;
        }
        last.rank = q->state ? sqlite3_column_int64(st, SQ_C_rank) : 0;
        last.id = (uint64_t)sqlite3_column_int64(st, SQ_C_id);
        if (weir__sq_page_add(s, page, st, q->ids_only))
            break;
    }
    sqlite3_reset(st);
    return s->broken ? s->error.code : WEIR_OK;
}

/* A state over all types: the streams of the types, merged by (rank, id). A stream is only its next
 * place; its statement is the same for all, asked for one row at a time. */
typedef struct head {
    const sq_type *type;
    weir_cursor    at;
} head;

static bool next_of(sq_store *s, const weir_query *q, head *h, const weir_cursor *after)
{
    sqlite3_stmt *st = weir__sq_stmt(s, q->descending ? SQ_LIST_STATE_DOWN : SQ_LIST_STATE);
    weir__sq_int(st, 1, h->type->id);
    weir__sq_int(st, 2, q->state);
    bind_place(st, q, after, 1);
    if (!weir__sq_row(s, st))
        return false;
    h->at.rank = sqlite3_column_int64(st, SQ_C_rank);
    h->at.id = (uint64_t)sqlite3_column_int64(st, SQ_C_id);
    sqlite3_reset(st);
    return true;
}

static bool comes_first(const weir_cursor *a, const weir_cursor *b, bool descending)
{
    bool below = a->rank != b->rank ? a->rank < b->rank : a->id < b->id;
    return below != descending;
}

static weir_code add_id(sq_store *s, const weir_query *q, uint64_t id, weir_page *page)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_GET);
    weir__sq_int(st, 1, (int64_t)id);
    if (!weir__sq_row(s, st))
        return s->broken ? s->error.code : weir__sq_damaged(s, "an index names a job that is gone");
    weir_code rc = weir__sq_page_add(s, page, st, q->ids_only);
    sqlite3_reset(st);
    return rc;
}

static weir_code list_merged(sq_store *s, const weir_query *q, weir_page *page)
{
    size_t n = 0;
    head  *list = malloc(s->types.n * sizeof *list);
    if (!list)
        return weir__sq_no_memory(s);
    for (size_t i = 0; i < s->types.n; i++) {
        list[n] = (head){ .type = s->types.by_id[i] };
        if (list[n].type->count[q->state] && next_of(s, q, &list[n], &q->after))
            n++;
    }
    weir_cursor last = { 0 };
    while (n && !s->broken) {
        size_t best = 0;
        for (size_t i = 1; i < n; i++)
            if (comes_first(&list[i].at, &list[best].at, q->descending))
                best = i;
        if (page->n == q->limit) {
            page->more = true;
            page->next = last;
            break;
        }
        last = list[best].at;
        if (add_id(s, q, last.id, page))
            break;
        if (!next_of(s, q, &list[best], &last))
            list[best] = list[--n];
    }
    free(list);
    return s->broken ? s->error.code : WEIR_OK;
}

weir_code weir__sq_op_list(sq_store *s, weir_op *op)
{
    const weir_query *q = &op->u.list.query;
    const sq_type    *t = q->type ? weir__sq_type(s, q->type) : NULL;
    weir_page        *page = op->u.list.page = weir__page_create(q->limit);
    weir_code         rc = WEIR_OK;
    if (!page)
        return weir__sq_no_memory(s);
    if (q->search)
        rc = weir__sq_search(s, op, page);
    else if (q->type && !t)
        rc = WEIR_OK;
    else if (q->state && !q->type)
        rc = list_merged(s, q, page);
    else
        rc = list_straight(s, q, t, page);
    if (rc) {
        weir_page_release(page);
        op->u.list.page = NULL;
    }
    return rc;
}

/* ---- logs ---- */

weir_code weir__sq_op_logs(sq_store *s, weir_op *op)
{
    weir_op_logs *l = &op->u.logs;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_EXISTS);
    weir__sq_int(st, 1, (int64_t)l->id);
    if (!weir__sq_row(s, st))
        return s->broken ? s->error.code : weir__no_job(&op->err, l->id);
    sqlite3_reset(st);
    l->lines = weir__lines_create();
    if (!l->lines)
        return weir__sq_no_memory(s);
    st = weir__sq_stmt(s, SQ_LOG_LINES);
    weir__sq_int(st, 1, (int64_t)l->id);
    weir__sq_int(st, 2, l->after > INT64_MAX ? INT64_MAX : (int64_t)l->after);
    weir__sq_int(st, 3, l->limit > INT32_MAX ? INT32_MAX : (int64_t)l->limit);
    while (weir__sq_row(s, st)) {
        const char *text = (const char *)sqlite3_column_text(st, 2);
        if (!text || !weir__lines_add(l->lines, (uint64_t)sqlite3_column_int64(st, 0),
                                      sqlite3_column_int64(st, 1), text,
                                      (size_t)sqlite3_column_bytes(st, 2))) {
            sqlite3_reset(st);
            return weir__sq_no_memory(s);
        }
    }
    return s->broken ? s->error.code : WEIR_OK;
}

/* ---- stats ---- */

static bool add_type(sq_store *s, weir_stats *stats, const sq_type *t)
{
    weir_type_stats *out = weir__stats_add(stats, t->name);
    if (!out)
        return false;
    out->paused = t->paused;
    out->settings = *weir__sq_settings(s, t);
    for (int state = WEIR_INACTIVE; state < WEIR_STATES; state++) {
        out->count[state] = t->count[state];
        out->count[WEIR_ANY] += t->count[state];
    }
    out->completed = t->completed;
    out->failed = t->failed;
    out->work_ms = t->work_ms;
    out->last_taken_at = t->last_taken_at;
    if (!t->count[WEIR_INACTIVE])
        return true;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_OLDEST);
    weir__sq_int(st, 1, t->id);
    weir__sq_int(st, 2, WEIR_INACTIVE);
    if (weir__sq_row(s, st)) {
        out->oldest_at = sqlite3_column_int64(st, 3);
        sqlite3_reset(st);
    }
    return !s->broken;
}

weir_code weir__sq_op_stats(sq_store *s, weir_op *op)
{
    weir_stats *stats = op->u.stats.stats = weir__stats_create();
    bool        ok = stats != NULL;
    for (size_t i = 0; ok && i < s->types.n; i++)
        if (s->types.by_name[i]->id != 1)
            ok = add_type(s, stats, s->types.by_name[i]);
    if (!ok)
        return weir__sq_no_memory(s);
    weir__stats_sum(stats);
    stats->all.paused = weir__sq_star(s)->paused;
    stats->all.settings = weir__sq_star(s)->settings;
    stats->last_id = s->last_id;
    return WEIR_OK;
}
