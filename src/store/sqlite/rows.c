/* rows.c - jobs in the file: reading and writing rows, logs, and what is counted along. */
#include "store/sqlite/sq.h"

#include <string.h>

/* ---- reading ---- */

static const char *text(sqlite3_stmt *st, int at, size_t *len)
{
    const char *p = (const char *)sqlite3_column_text(st, at);
    if (len)
        *len = p ? (size_t)sqlite3_column_bytes(st, at) : 0;
    return p;
}

void weir__sq_columns(sqlite3_stmt *st, weir_job *j)
{
#define INT(col)   sqlite3_column_int(st, SQ_C_##col)
#define INT64(col) sqlite3_column_int64(st, SQ_C_##col)
    *j = (weir_job){
        .id = (uint64_t)INT64(id),
        .priority = INT(priority),
        .attempts = INT(attempts),
        .max_attempts = INT(max_attempts),
        .delivery = (uint32_t)INT64(delivery),
        .lost = INT(lost),
        .max_lost = INT(max_lost),
        .progress = INT(progress),
        .delay_ms = INT64(delay_ms),
        .ttl_ms = INT64(ttl_ms),
        .deadline_at = INT64(deadline_at),
        .created_at = INT64(created_at),
        .promote_at = INT64(promote_at),
        .updated_at = INT64(updated_at),
        .started_at = INT64(started_at),
        .failed_at = INT64(failed_at),
        .finished_at = INT64(finished_at),
        .duration_ms = INT64(duration_ms),
        .backoff = { (weir_backoff_kind)INT(backoff), INT64(backoff_ms), INT64(backoff_max_ms),
                     INT(backoff_jitter_pct) },
        .remove_on_complete = INT(remove_on_complete) != 0,
        .search = INT(search) != 0,
        .at_moment = INT(at_moment) != 0,
        .unique = text(st, SQ_C_unique_key, NULL),
        .worker = text(st, SQ_C_worker, NULL),
        .search_keys = text(st, SQ_C_search_keys, NULL),
        .error = text(st, SQ_C_error, NULL),
    };
#undef INT
#undef INT64
    j->progress_data = text(st, SQ_C_progress_data, &j->progress_data_len);
    j->result = text(st, SQ_C_result, &j->result_len);
    j->data = text(st, SQ_C_data, &j->data_len);
    j->history = text(st, SQ_C_history, &j->history_len);
    j->values = text(st, SQ_C_user_values, &j->values_len);
}

bool weir__sq_decode(sq_store *s, sqlite3_stmt *st, weir_job *j, sq_type **type)
{
    sq_type *t = *type = weir__sq_type_of(s, sqlite3_column_int64(st, SQ_C_type));
    int64_t  state = sqlite3_column_int64(st, SQ_C_state);
    if (!t || t->id == 1 || state <= WEIR_ANY || state >= WEIR_STATES ||
        sqlite3_column_type(st, SQ_C_data) == SQLITE_NULL)
        return false;
    weir__sq_columns(st, j);
    j->type = t->name;
    j->state = (weir_state)state;
    const sq_active *a = state == WEIR_ACTIVE ? weir__sq_active(s, j->id, j->delivery) : NULL;
    if (a)
        j->lease_until = a->job.lease_until;
    if (!j->data)
        weir__sq_no_memory(s);
    return j->data != NULL;
}

weir_code weir__sq_read(sq_store *s, sqlite3_stmt *st, weir_job *j, sq_type **type)
{
    if (weir__sq_decode(s, st, j, type))
        return WEIR_OK;
    return weir__sq_damaged(s, "a job has an unknown type or state, or no data; run weir check");
}

bool weir__sq_get(sq_store *s, uint64_t id, weir_job *j, sq_type **type, sqlite3_stmt **out)
{
    sqlite3_stmt *st = *out = weir__sq_stmt(s, SQ_GET);
    weir__sq_int(st, 1, (int64_t)id);
    if (!weir__sq_row(s, st))
        return false;
    if (!weir__sq_read(s, st, j, type))
        return true;
    sqlite3_reset(st);
    return false;
}

sqlite3_stmt *weir__sq_past(sq_store *s, weir_job *j)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_PAST);
    weir__sq_int(st, 1, (int64_t)j->id);
    if (!weir__sq_row(s, st))
        return NULL;
    j->worker = text(st, 0, NULL);
    j->history = text(st, 1, &j->history_len);
    return st;
}

uint64_t weir__sq_holder(sq_store *s, const sq_type *t, const char *key, weir_state *state)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_HOLDER);
    weir__sq_int(st, 1, t->id);
    weir__sq_string(st, 2, key);
    if (!weir__sq_row(s, st))
        return 0;
    uint64_t id = (uint64_t)sqlite3_column_int64(st, 0);
    *state = (weir_state)sqlite3_column_int(st, 1);
    sqlite3_reset(st);
    return id;
}

/* ---- writing ---- */

static void bind_due(sqlite3_stmt *st, int at, const weir_job *j)
{
    int64_t due = weir__job_due(j);
    if (due)
        weir__sq_int(st, at, due);
    else
        sqlite3_bind_null(st, at);
}

weir_code weir__sq_insert(sq_store *s, const weir_job *j, const sq_type *t)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_INSERT);
    weir__sq_int(st, 1, (int64_t)j->id);
    weir__sq_int(st, 2, t->id);
    weir__sq_int(st, 3, j->state);
    weir__sq_int(st, 4, weir__job_rank(j));
    bind_due(st, 5, j);
    weir__sq_int(st, 6, j->priority);
    weir__sq_int(st, 7, j->max_attempts);
    weir__sq_int(st, 8, j->max_lost);
    weir__sq_int(st, 9, j->delay_ms);
    weir__sq_int(st, 10, j->ttl_ms);
    weir__sq_int(st, 11, j->deadline_at);
    weir__sq_int(st, 12, j->created_at);
    weir__sq_int(st, 13, j->promote_at);
    weir__sq_int(st, 14, j->updated_at);
    weir__sq_int(st, 15, j->backoff.kind);
    weir__sq_int(st, 16, j->backoff.delay_ms);
    weir__sq_int(st, 17, j->backoff.max_ms);
    weir__sq_int(st, 18, j->backoff.jitter_pct);
    weir__sq_int(st, 19, j->remove_on_complete);
    weir__sq_int(st, 20, j->search);
    weir__sq_string(st, 21, j->unique);
    weir__sq_string(st, 22, j->search_keys);
    weir__sq_bytes(st, 23, j->data, j->data_len);
    weir__sq_bytes(st, 24, j->values, j->values_len);
    sq_rest rest = weir__sq_rest(j, 0);
    weir__sq_int(st, 25, weir__sq_sum(j, t, &rest));
    weir__sq_int(st, 26, j->at_moment);
    return weir__sq_do(s, st);
}

weir_code weir__sq_insert_whole(sq_store *s, const weir_job *j, const sq_type *t)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_IMPORT);
#define INT(col, value) weir__sq_int(st, SQ_C_##col + 1, (value))
    INT(id, (int64_t)j->id);
    INT(type, t->id);
    INT(state, j->state);
    INT(rank, weir__job_rank(j));
    bind_due(st, SQ_C_due_at + 1, j);
    INT(priority, j->priority);
    INT(attempts, j->attempts);
    INT(max_attempts, j->max_attempts);
    INT(delivery, j->delivery);
    INT(lost, j->lost);
    INT(max_lost, j->max_lost);
    INT(progress, j->progress);
    INT(delay_ms, j->delay_ms);
    INT(ttl_ms, j->ttl_ms);
    INT(deadline_at, j->deadline_at);
    INT(created_at, j->created_at);
    INT(promote_at, j->promote_at);
    INT(updated_at, j->updated_at);
    INT(started_at, j->started_at);
    INT(failed_at, j->failed_at);
    INT(finished_at, j->finished_at);
    INT(duration_ms, j->duration_ms);
    INT(backoff, j->backoff.kind);
    INT(backoff_ms, j->backoff.delay_ms);
    INT(backoff_max_ms, j->backoff.max_ms);
    INT(backoff_jitter_pct, j->backoff.jitter_pct);
    INT(remove_on_complete, j->remove_on_complete);
    INT(search, j->search);
    INT(at_moment, j->at_moment);
    INT(lease_ms, 0);
    sq_rest rest = weir__sq_rest(j, 0);
    INT(checksum, weir__sq_sum(j, t, &rest));
#undef INT
    weir__sq_string(st, SQ_C_unique_key + 1, j->unique);
    weir__sq_string(st, SQ_C_worker + 1, j->worker);
    weir__sq_string(st, SQ_C_search_keys + 1, j->search_keys);
    weir__sq_bytes(st, SQ_C_progress_data + 1, j->progress_data, j->progress_data_len);
    weir__sq_string(st, SQ_C_error + 1, j->error);
    weir__sq_bytes(st, SQ_C_result + 1, j->result, j->result_len);
    weir__sq_bytes(st, SQ_C_data + 1, j->data, j->data_len);
    weir__sq_bytes(st, SQ_C_history + 1, j->history, j->history_len);
    weir__sq_bytes(st, SQ_C_user_values + 1, j->values, j->values_len);
    return weir__sq_do(s, st);
}

weir_code weir__sq_numbers(sq_store *s, const weir_job *j, const sq_type *t,
                           const weir_buf *history, const sq_rest *rest)
{
    sq_rest now = *rest;
    if (j->state != WEIR_ACTIVE)
        now.lease_ms = 0;
    if (history->len)
        now.history = weir__sq_text_sum(history->data, history->len);
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_NUMBERS);
    weir__sq_int(st, 1, (int64_t)j->id);
    weir__sq_int(st, 2, j->state);
    weir__sq_int(st, 3, weir__job_rank(j));
    bind_due(st, 4, j);
    weir__sq_int(st, 5, j->priority);
    weir__sq_int(st, 6, j->attempts);
    weir__sq_int(st, 7, j->delivery);
    weir__sq_int(st, 8, j->lost);
    weir__sq_int(st, 9, j->progress);
    weir__sq_int(st, 10, j->delay_ms);
    weir__sq_int(st, 11, j->promote_at);
    weir__sq_int(st, 12, j->updated_at);
    weir__sq_int(st, 13, j->started_at);
    weir__sq_int(st, 14, j->failed_at);
    weir__sq_int(st, 15, j->finished_at);
    weir__sq_int(st, 16, j->duration_ms);
    weir__sq_bytes(st, 17, history->len ? history->data : NULL, history->len);
    weir__sq_int(st, 18, now.lease_ms);
    weir__sq_int(st, 19, weir__sq_sum(j, t, &now));
    weir__sq_int(st, 20, j->at_moment);
    return weir__sq_do(s, st);
}

weir_code weir__sq_error(sq_store *s, const weir_job *j)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_ERROR);
    weir__sq_int(st, 1, (int64_t)j->id);
    weir__sq_string(st, 2, j->error);
    weir_code rc = weir__sq_do(s, st);
    if (rc || !j->search)
        return rc;
    return j->error ? weir__sq_index(s, j->id, SQ_SLOT_ERROR, j->error, strlen(j->error))
                    : weir__sq_unindex(s, j->id, SQ_SLOT_ERROR);
}

weir_code weir__sq_log_line(sq_store *s, uint64_t id, bool search, const weir_line *line)
{
    size_t        len = strlen(line->text);
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_LOG_ADD);
    weir__sq_int(st, 1, (int64_t)id);
    weir__sq_int(st, 2, (int64_t)line->n);
    weir__sq_int(st, 3, line->at);
    weir__sq_bytes(st, 4, line->text, len);
    weir__sq_int(st, 5, weir__sq_line_sum(id, (int64_t)line->n, line->at, line->text, len));
    weir_code rc = weir__sq_do(s, st);
    if (!rc && search)
        rc = weir__sq_index(s, id, weir__sq_log_slot(line->n), line->text, len);
    return rc;
}

weir_code weir__sq_log(sq_store *s, uint64_t id, bool search, int64_t now, const char *line,
                       size_t len)
{
    len = weir__utf8_cut(line, len, WEIR_MAX_TEXT);
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_LOG_LAST);
    weir__sq_int(st, 1, (int64_t)id);
    int64_t n = weir__sq_row(s, st) ? sqlite3_column_int64(st, 0) + 1 : 1;
    sqlite3_reset(st);
    st = weir__sq_stmt(s, SQ_LOG_ADD);
    weir__sq_int(st, 1, (int64_t)id);
    weir__sq_int(st, 2, n);
    weir__sq_int(st, 3, now);
    weir__sq_bytes(st, 4, line, len);
    weir__sq_int(st, 5, weir__sq_line_sum(id, n, now, line, len));
    weir_code rc = weir__sq_do(s, st);
    if (!rc && n > WEIR_MAX_LOG) {
        st = weir__sq_stmt(s, SQ_LOG_CUT);
        weir__sq_int(st, 1, (int64_t)id);
        weir__sq_int(st, 2, n - WEIR_MAX_LOG);
        rc = weir__sq_do(s, st);
    }
    if (!rc && search)
        rc = weir__sq_index(s, id, weir__sq_log_slot((uint64_t)n), line, len);
    return rc;
}

static weir_code drop(sq_store *s, sq_sql which, int64_t from, int64_t to)
{
    sqlite3_stmt *st = weir__sq_stmt(s, which);
    weir__sq_int(st, 1, from);
    if (to)
        weir__sq_int(st, 2, to);
    return weir__sq_do(s, st);
}

weir_code weir__sq_forget(sq_store *s, uint64_t id, bool search)
{
    weir_code rc = drop(s, SQ_DELETE, (int64_t)id, 0);
    if (!rc)
        rc = drop(s, SQ_LOG_DROP, (int64_t)id, 0);
    if (!rc && search)
        rc = drop(s, SQ_INDEX_DROP_JOB, (int64_t)(id << SQ_SLOT_BITS),
                  (int64_t)((id + 1) << SQ_SLOT_BITS));
    if (rc)
        return rc;
    weir__map_remove(&s->damaged, id);
    if (id > s->saved_id)       /* the table would no longer know that this id was used */
        s->save_id = true;
    return WEIR_OK;
}
