/* rows.c - jobs in the file: reading and writing rows, logs, and what is counted along. */
#include "store/sqlite/sq.h"

#include <string.h>

/* ---- what store/sql needs of SQLite ---- */

static int64_t column_number(void *st, int at)
{
    return sqlite3_column_int64(st, at);
}

static const char *column_text(void *st, int at, size_t *len)
{
    const char *p = (const char *)sqlite3_column_text(st, at);
    *len = p ? (size_t)sqlite3_column_bytes(st, at) : 0;
    return p;
}

static void bind_number(void *st, int at, int64_t value)
{
    sqlite3_bind_int64(st, at, value);
}

static void bind_text(void *st, int at, const char *text, size_t len)
{
    weir__sq_bytes(st, at, text, len);
}

static void bind_null(void *st, int at)
{
    sqlite3_bind_null(st, at);
}

static const sql_driver driver = {
    .number = column_number, .text = column_text,
    .bind_number = bind_number, .bind_text = bind_text, .bind_null = bind_null,
};

/* ---- reading ---- */

void weir__sq_columns(sqlite3_stmt *st, weir_job *j)
{
    weir__sql_read(&driver, st, j);
}

bool weir__sq_decode(sq_store *s, sqlite3_stmt *st, weir_job *j, sq_type **type)
{
    sq_type *t = *type = weir__sq_type_of(s, sqlite3_column_int64(st, SQL_C_type));
    int64_t  state = sqlite3_column_int64(st, SQL_C_state);
    if (!t || t->id == 1 || state <= WEIR_STATE_ANY || state >= WEIR_STATE_COUNT ||
        sqlite3_column_type(st, SQL_C_data) == SQLITE_NULL)
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
    return weir__sq_damaged(s, "a job has an unknown type or state, or no data");
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
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_HISTORY);
    weir__sq_int(st, 1, (int64_t)j->id);
    if (!weir__sq_row(s, st))
        return NULL;
    size_t len;
    j->worker = column_text(st, 0, &len);
    j->history = column_text(st, 1, &j->history_len);
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

weir_code weir__sq_insert(sq_store *s, const weir_job *j, const sq_type *t)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_INSERT);
    weir__sql_bind_new(&driver, st, j, t->id);
    return weir__sq_do(s, st);
}

weir_code weir__sq_insert_complete(sq_store *s, const weir_job *j, const sq_type *t)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_IMPORT);
    weir__sql_bind_all(&driver, st, j, t->id);
    return weir__sq_do(s, st);
}

weir_code weir__sq_numbers(sq_store *s, const weir_job *j, int64_t type, const weir_buf *history,
                           const sql_sums *sums)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_NUMBERS);
    weir__sql_bind_numbers(&driver, st, j, type, history, sums);
    return weir__sq_do(s, st);
}

static void note_logged(sq_store *s, uint64_t id)
{
    if (id < s->first_logged)
        s->first_logged = id;
}

weir_code weir__sq_log_line(sq_store *s, uint64_t id, bool search, const weir_line *line)
{
    size_t        len = strlen(line->text);
    note_logged(s, id);
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_LOG_ADD);
    weir__sq_int(st, 1, (int64_t)id);
    weir__sq_int(st, 2, (int64_t)line->n);
    weir__sq_int(st, 3, line->at);
    weir__sq_bytes(st, 4, line->text, len);
    weir__sq_int(st, 5, weir__sql_line_checksum(id, (int64_t)line->n, line->at, line->text, len));
    weir_code rc = weir__sq_do(s, st);
    if (!rc && search)
        rc = weir__sq_index(s, id, weir__sq_log_slot(line->n), line->text, len);
    return rc;
}

weir_code weir__sq_log(sq_store *s, uint64_t id, bool search, int64_t now, const char *line,
                       size_t len)
{
    len = weir__utf8_cut(line, len, WEIR_MAX_TEXT);
    note_logged(s, id);
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_LOG_LAST);
    weir__sq_int(st, 1, (int64_t)id);
    int64_t n = weir__sq_row(s, st) ? sqlite3_column_int64(st, 0) + 1 : 1;
    sqlite3_reset(st);
    st = weir__sq_stmt(s, SQ_LOG_ADD);
    weir__sq_int(st, 1, (int64_t)id);
    weir__sq_int(st, 2, n);
    weir__sq_int(st, 3, now);
    weir__sq_bytes(st, 4, line, len);
    weir__sq_int(st, 5, weir__sql_line_checksum(id, n, now, line, len));
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
    if (!rc && id >= s->first_logged)
        rc = drop(s, SQ_LOG_DROP, (int64_t)id, 0);
    if (!rc && search)
        rc = drop(s, SQ_INDEX_DROP_JOB, (int64_t)(id << SQ_SLOT_BITS),
                  (int64_t)((id + 1) << SQ_SLOT_BITS));
    if (rc)
        return rc;
    weir__map_remove(&s->damaged, id);
    if (id > s->saved_id)       /* the table would no longer show that this id was used */
        s->save_id = true;
    return WEIR_OK;
}
