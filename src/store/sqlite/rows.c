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
    *j = (weir_job){ .id = (uint64_t)sqlite3_column_int64(st, SQ_C_id) };
#define NUMBER(member, name, k, js, s, life, ...)                                                 \
    WEIR_IF_STORED_##life(j->member = (__typeof__(j->member))sqlite3_column_int64(st, SQ_C_##name);)
#define TEXT(member, name, k, js, s, life, ...)                                                   \
    WEIR_IF_STORED_##life(j->member = text(st, SQ_C_##name, NULL);)
#define BYTES(member, name, k, js, s, life, ...)                                                  \
    WEIR_IF_STORED_##life(j->member = text(st, SQ_C_##name, &j->member##_len);)
    WEIR_JOB_NUMBERS(NUMBER)
    WEIR_JOB_TEXTS(TEXT)
    WEIR_JOB_BYTES(BYTES)
#undef NUMBER
#undef TEXT
#undef BYTES
}

bool weir__sq_decode(sq_store *s, sqlite3_stmt *st, weir_job *j, sq_type **type)
{
    sq_type *t = *type = weir__sq_type_of(s, sqlite3_column_int64(st, SQ_C_type));
    int64_t  state = sqlite3_column_int64(st, SQ_C_state);
    if (!t || t->id == 1 || state <= WEIR_STATE_ANY || state >= WEIR_STATE_COUNT ||
        sqlite3_column_type(st, SQ_C_data) == SQLITE_NULL)
        return false;
    weir__sq_columns(st, j);
    j->type = t->name;
    j->state = (weir_state)state;
    const sq_active *a = state == WEIR_STATE_ACTIVE ? weir__sq_active(s, j->id, j->delivery) : NULL;
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

sqlite3_stmt *weir__sq_read_history(sq_store *s, weir_job *j)
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
    sq_rest       rest = weir__sq_rest(j, 0);
    weir__sq_int(st, SQ_I_id, (int64_t)j->id);
    weir__sq_int(st, SQ_I_type, t->id);
    weir__sq_int(st, SQ_I_rank, weir__job_rank(j));
    bind_due(st, SQ_I_due_at, j);
    weir__sq_int(st, SQ_I_checksum, weir__sq_sum(j, t, &rest));
#define NUMBER(member, name, k, js, s, life, ...)                                                 \
    WEIR_IF_NEW_##life(weir__sq_int(st, SQ_I_##name, (int64_t)j->member);)
#define TEXT(member, name, k, js, s, life, ...)                                                   \
    WEIR_IF_NEW_##life(weir__sq_string(st, SQ_I_##name, j->member);)
#define BYTES(member, name, k, js, s, life, ...)                                                  \
    WEIR_IF_NEW_##life(weir__sq_bytes(st, SQ_I_##name, j->member, j->member##_len);)
    WEIR_JOB_NUMBERS(NUMBER)
    WEIR_JOB_TEXTS(TEXT)
    WEIR_JOB_BYTES(BYTES)
#undef NUMBER
#undef TEXT
#undef BYTES
    return weir__sq_do(s, st);
}

weir_code weir__sq_insert_complete(sq_store *s, const weir_job *j, const sq_type *t)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_IMPORT);
    sq_rest       rest = weir__sq_rest(j, 0);
    weir__sq_int(st, SQ_C_id + 1, (int64_t)j->id);
    weir__sq_int(st, SQ_C_type + 1, t->id);
    weir__sq_int(st, SQ_C_rank + 1, weir__job_rank(j));
    bind_due(st, SQ_C_due_at + 1, j);
    weir__sq_int(st, SQ_C_lease_ms + 1, 0);
    weir__sq_int(st, SQ_C_checksum + 1, weir__sq_sum(j, t, &rest));
#define NUMBER(member, name, k, js, s, life, ...)                                                 \
    WEIR_IF_STORED_##life(weir__sq_int(st, SQ_C_##name + 1, (int64_t)j->member);)
#define TEXT(member, name, k, js, s, life, ...)                                                   \
    WEIR_IF_STORED_##life(weir__sq_string(st, SQ_C_##name + 1, j->member);)
#define BYTES(member, name, k, js, s, life, ...)                                                  \
    WEIR_IF_STORED_##life(weir__sq_bytes(st, SQ_C_##name + 1, j->member, j->member##_len);)
    WEIR_JOB_NUMBERS(NUMBER)
    WEIR_JOB_TEXTS(TEXT)
    WEIR_JOB_BYTES(BYTES)
#undef NUMBER
#undef TEXT
#undef BYTES
    return weir__sq_do(s, st);
}

weir_code weir__sq_numbers(sq_store *s, const weir_job *j, const sq_type *t,
                           const weir_buf *history, const sq_rest *rest)
{
    sq_rest now = *rest;
    if (j->state != WEIR_STATE_ACTIVE)
        now.lease_ms = 0;
    if (history->len)
        now.history = weir__sq_text_sum(history->data, history->len);
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_NUMBERS);
    weir__sq_int(st, SQ_N_id, (int64_t)j->id);
    weir__sq_int(st, SQ_N_rank, weir__job_rank(j));
    bind_due(st, SQ_N_due_at, j);
    weir__sq_int(st, SQ_N_lease_ms, now.lease_ms);
    weir__sq_int(st, SQ_N_checksum, weir__sq_sum(j, t, &now));
    weir__sq_bytes(st, SQ_N_history, history->len ? history->data : NULL, history->len);
#define X(member, name, k, js, s, life, ...)                                                      \
    WEIR_IF_MOVES_##life(weir__sq_int(st, SQ_N_##name, (int64_t)j->member);)
    WEIR_JOB_NUMBERS(X)
#undef X
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
