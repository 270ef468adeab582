/* apply.c - a transition of a job (core/effects.h) in the file and in memory. */
#include "store/sqlite/sq.h"

#include <string.h>

/* ---- in memory ---- */

void weir__sq_note_effects(sq_store *s, const weir_job *j, sq_type *t, const weir_effects *e,
                           int64_t now)
{
    t->completed += e->completed;
    t->failed += e->failed;
    t->work_ms += e->work_ms;
    if (weir__effects_start(e))
        t->last_taken_at = now;
    if (e->from != e->to)
        weir__sq_count_move(s, t, e->from, e->to);
    if (e->to && e->to != WEIR_STATE_ACTIVE)          /* active.c has leases and ttls */
        weir__agenda_follow(&s->agenda, j, INT64_MAX, weir__sq_kept(s, t, e->to));
    if (!weir__outbox_follow(&s->out, e, j, now))
        weir__sq_no_memory(s);
}

void weir__sq_follow(sq_store *s, const weir_job *j, sq_type *t, const weir_effects *e, int64_t now)
{
    if (e->from == WEIR_STATE_INACTIVE)
        weir__sq_ahead_leave(s, t, j->id);
    if (e->to == WEIR_STATE_INACTIVE)
        weir__sq_ahead_arrive(s, t, j, e->from == WEIR_STATE_ANY);
    if (weir__effects_end(e))
        weir__sq_deactivate(s, j->id);
    weir__sq_note_effects(s, j, t, e, now);
}

/* ---- in the file ---- */

static weir_code put_text(sq_store *s, sq_sql which, uint64_t id, const char *text, size_t len)
{
    sqlite3_stmt *st = weir__sq_stmt(s, which);
    weir__sq_int(st, 1, (int64_t)id);
    weir__sq_bytes(st, 2, text, len);
    return weir__sq_do(s, st);
}

static weir_code put_completed(void *store, const weir_job *j, int64_t type, const sql_sums *sums)
{
    sq_store     *s = store;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_COMPLETE);
    weir__sq_int(st, 1, (int64_t)j->id);
    weir__sq_int(st, 2, j->finished_at);
    weir__sq_int(st, 3, j->attempts);
    weir__sq_int(st, 4, j->duration_ms);
    weir__sq_bytes(st, 5, j->result, j->result_len);
    weir__sq_int(st, 6, weir__sql_checksum(j, type, sums));
    weir_code rc = weir__sq_do(s, st);
    return !rc && j->search ? weir__sq_unindex(s, j->id, SQ_SLOT_ERROR) : rc;
}

/* The words of data, or of the error, as they are now. */
static weir_code index_texts(sq_store *s, const weir_job *j, uint32_t texts)
{
    weir_code rc = texts & WEIR__NEW(data) ? weir__sq_index_data(s, j) : WEIR_OK;
    if (rc || !(texts & WEIR__NEW(error)))
        return rc;
    return j->error ? weir__sq_index(s, j->id, SQ_SLOT_ERROR, j->error, strlen(j->error))
                    : weir__sq_unindex(s, j->id, SQ_SLOT_ERROR);
}

static weir_code put_texts(void *store, const weir_job *j, uint32_t texts)
{
    sq_store *s = store;
    weir_code rc = WEIR_OK;
    texts &= ~WEIR__NEW(history);               /* it is written with the numbers */
#define PUT(name, len)                                                                            \
    if (!rc && texts & WEIR__NEW(name))                                                           \
        rc = put_text(s, SQ_SET_##name, j->id, j->name, len);
#define X(name, len, life) WEIR_IF_CHANGES_##life(PUT(name, len))
    WEIR_JOB_STRINGS(X)
#undef X
#undef PUT
    return rc || !j->search ? rc : index_texts(s, j, texts);
}

static weir_code put_numbers(void *store, const weir_job *j, int64_t type, const weir_buf *history,
                             const sql_sums *sums)
{
    return weir__sq_numbers(store, j, type, history, sums);
}

static weir_code put_log(void *store, const weir_job *j, int64_t now, const char *text, size_t len)
{
    return weir__sq_log(store, j->id, j->search, now, text, len);
}

static weir_code drop_job(void *store, const weir_job *j)
{
    return weir__sq_forget(store, j->id, j->search);
}

static const sql_rows rows = {
    .remove = drop_job, .complete = put_completed, .numbers = put_numbers, .texts = put_texts,
    .log = put_log,
};

weir_code weir__sq_apply(sq_store *s, const weir_job *j, sq_type *t, const weir_effects *e,
                         sql_sums *sums, int64_t now)
{
    if (!weir__effects_ok(e))
        return weir__sq_no_memory(s);
    weir_code rc = weir__sql_apply(&rows, s, j, t->id, e, sums, now);
    if (!rc && weir__effects_start(e))
        rc = weir__sq_activate(s, j, t, sums->lease_ms, now);
    if (!rc)
        weir__sq_follow(s, j, t, e, now);
    return s->broken ? s->error.code : rc;
}

weir_code weir__sq_remove_job(sq_store *s, uint64_t id, int64_t now, bool *found)
{
    weir_job      j;
    sq_type      *t;
    sqlite3_stmt *st;
    *found = weir__sq_get(s, id, &j, &t, &st);
    if (!*found)
        return s->broken ? s->error.code : WEIR_OK;
    sqlite3_reset(st);
    weir_effects e;
    weir__job_remove(&j, &e);
    return weir__sq_apply(s, &j, t, &e, &(sql_sums){ 0 }, now);
}
