/* apply.c - a transition of a job (core/effects.h) in the file and in memory. */
#include "store/sqlite/sq.h"

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

static weir_code put_worker(sq_store *s, const weir_job *j, int64_t lease_ms)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_HAVE);
    weir__sq_int(st, 1, (int64_t)j->id);
    weir__sq_string(st, 2, j->worker);
    weir__sq_int(st, 3, lease_ms);
    return weir__sq_do(s, st);
}

static weir_code put_progress_and_result(sq_store *s, const weir_job *j)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_TEXTS);
    weir__sq_int(st, 1, (int64_t)j->id);
    weir__sq_bytes(st, 2, j->progress_data, j->progress_data_len);
    weir__sq_bytes(st, 3, j->result, j->result_len);
    return weir__sq_do(s, st);
}

static weir_code put_texts(void *store, const weir_job *j, uint32_t texts, int64_t lease_ms)
{
    sq_store *s = store;
    weir_code rc = WEIR_OK;
    if (texts & (WEIR__NEW_PROGRESS_DATA | WEIR__NEW_RESULT))
        rc = put_progress_and_result(s, j);
    if (!rc && texts & WEIR__NEW_VALUES)
        rc = put_text(s, SQ_VALUES, j->id, j->values, j->values_len);
    if (!rc && texts & WEIR__NEW_DATA)
        rc = put_text(s, SQ_DATA, j->id, j->data, j->data_len);
    if (!rc && texts & WEIR__NEW_DATA && j->search)
        rc = weir__sq_index_data(s, j);
    if (!rc && texts & WEIR__NEW_ERROR)
        rc = weir__sq_error(s, j);
    if (!rc && texts & WEIR__NEW_WORKER)
        rc = put_worker(s, j, lease_ms);
    return rc;
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
