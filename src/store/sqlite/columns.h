/* columns.h - the columns of a job's row, made from core/job_fields.h, and numbers in SQL text.
 *
 * A column has the name of its field. SQL text quotes it: `unique` and `values` are words of SQL.
 * Numbers in SQL text are compared with those of C here. */
#ifndef WEIR_STORE_SQLITE_COLUMNS_H
#define WEIR_STORE_SQLITE_COLUMNS_H

#include "core/job_fields.h"

/* ---- columns ---- */

/* X(name, life, sort): numbers (INTEGER) first, long texts (TEXT) last, since a row is read from
 * its start. Long texts that add gives, data among them, are at the very end. */
#define SQ_FIELDS(X)                                                                              \
    WEIR_JOB_FIELDS(SQ__NUMBER, X) WEIR_JOB_FIELDS(SQ__TEXT, X)                                   \
    WEIR_JOB_FIELDS(SQ__RUN_BYTES, X) WEIR_JOB_FIELDS(SQ__NEW_BYTES, X)

/* Before them are those of the store itself. */
#define SQ_COLUMNS(X)                                                                             \
    X(id, OWN, INTEGER) X(type, OWN, INTEGER) X(rank, OWN, INTEGER) X(due_at, OWN, INTEGER)       \
    X(lease_ms, OWN, INTEGER) X(checksum, OWN, INTEGER) SQ_FIELDS(X)

/* All columns, and as many parameters, in that order. */
#define SQL_COLUMNS "id, type, rank, due_at, lease_ms, checksum" SQ_FIELDS(SQL_NAME)
#define SQL_MARKS   "?, ?, ?, ?, ?, ?" SQ_FIELDS(SQL_MARK)
#define SQL_NAME(name, life, sort) ", \"" #name "\""
#define SQL_MARK(name, life, sort) ", ?"

#define SQ__NUMBER(X, shape, member, k, j, s, life, ...) SQ__NUMBER_##shape(X, member, life)
#define SQ__NUMBER_INT(X, member, life)     WEIR_IF_STORED_##life(X(member, life, INTEGER))
#define SQ__NUMBER_TEXT(X, member, life)
#define SQ__NUMBER_BYTES(X, member, life)
#define SQ__NUMBER_BACKOFF(X, member, life) WEIR_BACKOFF_FIELDS(SQ__BACKOFF, X)
#define SQ__BACKOFF(X, member, name, k, j, s, life, ...) X(name, life, INTEGER)

#define SQ__TEXT(X, shape, member, k, j, s, life, ...) SQ__TEXT_##shape(X, member, life)
#define SQ__TEXT_INT(X, member, life)
#define SQ__TEXT_TEXT(X, member, life)      WEIR_IF_STORED_##life(X(member, life, TEXT))
#define SQ__TEXT_BYTES(X, member, life)
#define SQ__TEXT_BACKOFF(X, member, life)

#define SQ__RUN_BYTES(X, shape, member, k, j, s, life, ...) SQ__RUN_BYTES_##shape(X, member, life)
#define SQ__RUN_BYTES_INT(X, member, life)
#define SQ__RUN_BYTES_TEXT(X, member, life)
#define SQ__RUN_BYTES_BYTES(X, member, life) WEIR_IF_MOVES_##life(X(member, life, TEXT))
#define SQ__RUN_BYTES_BACKOFF(X, member, life)

#define SQ__NEW_BYTES(X, shape, member, k, j, s, life, ...) SQ__NEW_BYTES_##shape(X, member, life)
#define SQ__NEW_BYTES_INT(X, member, life)
#define SQ__NEW_BYTES_TEXT(X, member, life)
#define SQ__NEW_BYTES_BYTES(X, member, life) WEIR_IF_NEW_##life(X(member, life, TEXT))
#define SQ__NEW_BYTES_BACKOFF(X, member, life)

/* The numbers of columns in every SELECT of whole rows, from 0 on. SQ_IMPORT has a parameter for
 * each: that number + 1. */
enum {
#define X(name, life, sort) SQ_C_##name,
    SQ_COLUMNS(X)
#undef X
    SQ_C_END
};
_Static_assert(SQ_C_id == 0 && SQ_C_type == 1 && SQ_C_rank == 2 && SQ_C_due_at == 3 &&
                   SQ_C_lease_ms == 4 && SQ_C_checksum == 5, "SQL_COLUMNS has this order");

/* The parameters of SQ_INSERT: the numbers and texts of a new job. */
enum {
    SQ_I_NONE, SQ_I_id, SQ_I_type, SQ_I_rank, SQ_I_due_at, SQ_I_checksum,
#define X(name, life, sort) WEIR_IF_NEW_##life(SQ_I_##name,)
    SQ_FIELDS(X)
#undef X
};

/* The parameters of SQ_NUMBERS: the numbers that a transition may change, and the history. */
enum {
    SQ_N_NONE, SQ_N_rank, SQ_N_due_at, SQ_N_lease_ms, SQ_N_checksum, SQ_N_history,
#define X(m, name, k, j, s, life, ...) WEIR_IF_MOVES_##life(SQ_N_##name,)
    WEIR_JOB_NUMBERS(X)
#undef X
    SQ_N_id
};

/* And of those that only say where a job is: SQ_LIST_STATE to SQ_PLACE. */
enum { SQ_P_id, SQ_P_rank, SQ_P_priority, SQ_P_type, SQ_P_state };

/* ---- the sums of texts that a row's checksum is made of: sum.c ---- */

typedef struct sq_rest {
    int64_t  lease_ms;                      /* what its worker asked for; 0: not active */
    uint32_t fixed;                         /* sum of all texts that add gives */
#define X(m, name, k, j, s, life, ...) WEIR_IF_MOVES_##life(uint32_t name;)
    WEIR_JOB_TEXTS(X)
    WEIR_JOB_BYTES(X)
#undef X
} sq_rest;

/* ---- numbers in SQL text ---- */

#define SQL_INACTIVE "1"
#define SQL_DELAYED  "2"
#define SQL_ACTIVE   "3"
#define SQL_COMPLETE "4"
#define SQL_FAILED   "5"
_Static_assert(WEIR_STATE_INACTIVE == 1 && WEIR_STATE_DELAYED == 2 && WEIR_STATE_ACTIVE == 3 &&
                   WEIR_STATE_COMPLETE == 4 && WEIR_STATE_FAILED == 5,
               "SQL text has these numbers");

/* Entries of the search index: rowid = job << SQ_SLOT_BITS | slot. */
enum { SQ_SLOT_DATA, SQ_SLOT_ERROR, SQ_SLOT_LOG, SQ_SLOT_BITS = 14 };
#define SQL_SLOT_BITS "14"
_Static_assert(SQ_SLOT_BITS == 14, "SQL text has this number");
_Static_assert(SQ_SLOT_LOG + WEIR_MAX_LOG <= 1 << SQ_SLOT_BITS, "a job has too few slots");

#endif
