/* row.c - a job from a row, and a job as the parameters of a statement: see sql.h. */
#include "store/sql/sql.h"

#include <string.h>

void weir__sql_read(const sql_driver *d, void *st, weir_job *j)
{
    *j = (weir_job){ .id = (uint64_t)d->number(st, SQL_C_id) };
    size_t len;
#define NUMBER(member, name, k, js, s, life, ...)                                                 \
    WEIR_IF_STORED_##life(j->member = (__typeof__(j->member))d->number(st, SQL_C_##name);)
#define TEXT(member, name, k, js, s, life, ...)                                                   \
    WEIR_IF_STORED_##life(j->member = d->text(st, SQL_C_##name, &len);)
#define BYTES(member, name, k, js, s, life, ...)                                                  \
    WEIR_IF_STORED_##life(j->member = d->text(st, SQL_C_##name, &j->member##_len);)
    WEIR_JOB_NUMBERS(NUMBER)
    WEIR_JOB_TEXTS(TEXT)
    WEIR_JOB_BYTES(BYTES)
#undef NUMBER
#undef TEXT
#undef BYTES
}

static void bind_string(const sql_driver *d, void *st, int at, const char *text)
{
    d->bind_text(st, at, text, text ? strlen(text) : 0);
}

static void bind_due(const sql_driver *d, void *st, int at, const weir_job *j)
{
    int64_t due = weir__job_due(j);
    if (due)
        d->bind_number(st, at, due);
    else
        d->bind_null(st, at);
}

#define NUMBER(member, at) d->bind_number(st, at, (int64_t)j->member);
#define TEXT(member, at)   bind_string(d, st, at, j->member);
#define BYTES(member, at)  d->bind_text(st, at, j->member, j->member##_len);

void weir__sql_bind_new(const sql_driver *d, void *st, const weir_job *j, int64_t type)
{
    sql_sums sums = weir__sql_sums(j, 0);
    d->bind_number(st, SQL_I_id, (int64_t)j->id);
    d->bind_number(st, SQL_I_type, type);
    d->bind_number(st, SQL_I_rank, weir__job_rank(j));
    bind_due(d, st, SQL_I_due_at, j);
    d->bind_number(st, SQL_I_checksum, weir__sql_checksum(j, type, &sums));
#define X(member, name, k, js, s, life, ...) WEIR_IF_NEW_##life(NUMBER(member, SQL_I_##name))
    WEIR_JOB_NUMBERS(X)
#undef X
#define X(member, name, k, js, s, life, ...) WEIR_IF_NEW_##life(TEXT(member, SQL_I_##name))
    WEIR_JOB_TEXTS(X)
#undef X
#define X(member, name, k, js, s, life, ...) WEIR_IF_NEW_##life(BYTES(member, SQL_I_##name))
    WEIR_JOB_BYTES(X)
#undef X
}

void weir__sql_bind_all(const sql_driver *d, void *st, const weir_job *j, int64_t type)
{
    sql_sums sums = weir__sql_sums(j, 0);
    d->bind_number(st, SQL_C_id + 1, (int64_t)j->id);
    d->bind_number(st, SQL_C_type + 1, type);
    d->bind_number(st, SQL_C_rank + 1, weir__job_rank(j));
    bind_due(d, st, SQL_C_due_at + 1, j);
    d->bind_number(st, SQL_C_lease_ms + 1, 0);
    d->bind_number(st, SQL_C_checksum + 1, weir__sql_checksum(j, type, &sums));
#define X(member, name, k, js, s, life, ...) WEIR_IF_STORED_##life(NUMBER(member, SQL_C_##name + 1))
    WEIR_JOB_NUMBERS(X)
#undef X
#define X(member, name, k, js, s, life, ...) WEIR_IF_STORED_##life(TEXT(member, SQL_C_##name + 1))
    WEIR_JOB_TEXTS(X)
#undef X
#define X(member, name, k, js, s, life, ...) WEIR_IF_STORED_##life(BYTES(member, SQL_C_##name + 1))
    WEIR_JOB_BYTES(X)
#undef X
}

void weir__sql_bind_numbers(const sql_driver *d, void *st, const weir_job *j, int64_t type,
                            const weir_buf *history, const sql_sums *sums)
{
    sql_sums now = *sums;
    if (j->state != WEIR_STATE_ACTIVE)
        now.lease_ms = 0;
    d->bind_number(st, SQL_N_id, (int64_t)j->id);
    d->bind_number(st, SQL_N_rank, weir__job_rank(j));
    bind_due(d, st, SQL_N_due_at, j);
    d->bind_number(st, SQL_N_lease_ms, now.lease_ms);
    d->bind_number(st, SQL_N_checksum, weir__sql_checksum(j, type, &now));
    d->bind_text(st, SQL_N_history, history->len ? history->data : NULL, history->len);
#define X(member, name, k, js, s, life, ...) WEIR_IF_MOVES_##life(NUMBER(member, SQL_N_##name))
    WEIR_JOB_NUMBERS(X)
#undef X
}
