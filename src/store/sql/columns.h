/* columns.h - the columns of a job's row, made from core/job_fields.h, and numbers in SQL text.
 *
 * A column has the name of its field. SQL text quotes it: `unique` and `values` are words of SQL.
 * Numbers in SQL text are compared with the numbers of C here. See sql.h for what else is
 * shared. */
#ifndef WEIR_STORE_SQL_COLUMNS_H
#define WEIR_STORE_SQL_COLUMNS_H

#include "core/job_fields.h"

/* ---- columns ---- */

/* X(name, life, sort): numbers (INTEGER) first, long texts (TEXT) last, since a row is read from
 * its start. Long texts that add gives, data among them, are at the very end. */
#define SQL_FIELDS(X)                                                                             \
    WEIR_JOB_FIELDS(SQL__NUMBER, X) WEIR_JOB_FIELDS(SQL__TEXT, X)                                 \
    WEIR_JOB_FIELDS(SQL__RUN_BYTES, X) WEIR_JOB_FIELDS(SQL__NEW_BYTES, X)

/* Columns of the store itself come before them. */
#define SQL_COLUMNS(X)                                                                            \
    X(id, OWN, INTEGER) X(type, OWN, INTEGER) X(rank, OWN, INTEGER) X(due_at, OWN, INTEGER)       \
    X(lease_ms, OWN, INTEGER) X(checksum, OWN, INTEGER) SQL_FIELDS(X)

/* All columns, and as many parameters, in that order. */
#define SQL_NAMES "id, type, rank, due_at, lease_ms, checksum" SQL_FIELDS(SQL_NAME)
#define SQL_MARKS "?, ?, ?, ?, ?, ?" SQL_FIELDS(SQL_MARK)
#define SQL_NAME(name, life, sort) ", \"" #name "\""
#define SQL_MARK(name, life, sort) ", ?"

#define SQL__NUMBER(X, shape, member, k, j, s, life, ...) SQL__NUMBER_##shape(X, member, life)
#define SQL__NUMBER_INT(X, member, life)     WEIR_IF_STORED_##life(X(member, life, INTEGER))
#define SQL__NUMBER_TEXT(X, member, life)
#define SQL__NUMBER_BYTES(X, member, life)
#define SQL__NUMBER_BACKOFF(X, member, life) WEIR_BACKOFF_FIELDS(SQL__BACKOFF, X)
#define SQL__BACKOFF(X, member, name, k, j, s, life, ...) X(name, life, INTEGER)

#define SQL__TEXT(X, shape, member, k, j, s, life, ...) SQL__TEXT_##shape(X, member, life)
#define SQL__TEXT_INT(X, member, life)
#define SQL__TEXT_TEXT(X, member, life)      WEIR_IF_STORED_##life(X(member, life, TEXT))
#define SQL__TEXT_BYTES(X, member, life)
#define SQL__TEXT_BACKOFF(X, member, life)

#define SQL__RUN_BYTES(X, shape, member, k, j, s, life, ...) SQL__RUN_BYTES_##shape(X, member, life)
#define SQL__RUN_BYTES_INT(X, member, life)
#define SQL__RUN_BYTES_TEXT(X, member, life)
#define SQL__RUN_BYTES_BYTES(X, member, life) WEIR_IF_MOVES_##life(X(member, life, TEXT))
#define SQL__RUN_BYTES_BACKOFF(X, member, life)

#define SQL__NEW_BYTES(X, shape, member, k, j, s, life, ...) SQL__NEW_BYTES_##shape(X, member, life)
#define SQL__NEW_BYTES_INT(X, member, life)
#define SQL__NEW_BYTES_TEXT(X, member, life)
#define SQL__NEW_BYTES_BYTES(X, member, life) WEIR_IF_NEW_##life(X(member, life, TEXT))
#define SQL__NEW_BYTES_BACKOFF(X, member, life)

/* The numbers of columns in every SELECT of SQL_NAMES, from 0 on. SQL_IMPORT has a parameter for
 * each: that number + 1. */
enum {
#define X(name, life, sort) SQL_C_##name,
    SQL_COLUMNS(X)
#undef X
    SQL_C_END
};
_Static_assert(SQL_C_id == 0 && SQL_C_type == 1 && SQL_C_rank == 2 && SQL_C_due_at == 3 &&
                   SQL_C_lease_ms == 4 && SQL_C_checksum == 5, "SQL_NAMES has this order");

/* The parameters of SQL_INSERT: the numbers and texts of a new job. */
enum {
    SQL_I_NONE, SQL_I_id, SQL_I_type, SQL_I_rank, SQL_I_due_at, SQL_I_checksum,
#define X(name, life, sort) WEIR_IF_NEW_##life(SQL_I_##name,)
    SQL_FIELDS(X)
#undef X
};

/* The parameters of SQL_NUMBERS: the numbers that a transition may change, and the history. */
enum {
    SQL_N_NONE, SQL_N_rank, SQL_N_due_at, SQL_N_lease_ms, SQL_N_checksum, SQL_N_history,
#define X(m, name, k, j, s, life, ...) WEIR_IF_MOVES_##life(SQL_N_##name,)
    WEIR_JOB_NUMBERS(X)
#undef X
    SQL_N_id
};

/* The columns of SQL_PLACE, which say where a job is: no long texts. */
#define SQL_PLACE "id, rank, priority, type, state"
enum { SQL_P_id, SQL_P_rank, SQL_P_priority, SQL_P_type, SQL_P_state };

/* ---- numbers in SQL text ---- */

#define SQL_INACTIVE "1"
#define SQL_DELAYED  "2"
#define SQL_ACTIVE   "3"
#define SQL_COMPLETE "4"
#define SQL_FAILED   "5"
_Static_assert(WEIR_STATE_INACTIVE == 1 && WEIR_STATE_DELAYED == 2 && WEIR_STATE_ACTIVE == 3 &&
                   WEIR_STATE_COMPLETE == 4 && WEIR_STATE_FAILED == 5,
               "SQL text has these numbers");

#endif
