/* job_fields.h - the fields of a job, once. This table makes copies, comparison, JSON, the checks
 * of a job from elsewhere, the columns and checksums of SQLite, the record in Redis and the numbers
 * in its Lua code: CONTRIBUTING.md, "How to add a field".
 *
 * The order of the rows is the order of the members in JSON. A row is
 *
 *   R(X, shape, member, kind, JSON name, shown, life, part, at, bytes)
 *
 *   shape    INT      a number, an enum or a flag
 *            TEXT     const char *, ends with NUL; NULL: none
 *            BYTES    const char * and, next to it, MEMBER_len; NULL: none
 *            BACKOFF  its members are rows of WEIR_BACKOFF_FIELDS
 *   kind     how JSON is read and written, and what a job from elsewhere may have:
 *            ID PRIORITY STATE DELIVERY FLAG BACKOFF; COUNT 0 to WEIR_MAX_ATTEMPTS, LOST 0 or more,
 *            PERCENT 0 to 100, MS 0 to WEIR_MAX_MS, MOMENT 0 to WEIR__MAX_AT; TYPE;
 *            UNIQUE, KEYS (their limits in bytes), WORDS (any text, WEIR_MAX_TEXT);
 *            JSON (WEIR_MAX_DATA), VALUES, HISTORY
 *   shown    in JSON: ALWAYS; SET unless 0 or NULL; DONE also when 0, of a complete job;
 *            RARE unless 0 or WEIR_DEFAULT_MAX_LOST; NEVER, which JSON cannot set either
 *   life     what gives it its value: SPEC the add, and nothing changes it; EDIT the add, and an
 *            update changes it, but no other transition (a text only); RUN transitions, it is 0 or
 *            NULL before; BOTH the add and transitions; ID, TYPE the store; NONE: it is not stored
 *   part     in Redis (store/redis/layout/layout.h): SPEC or RUN; FLAG of the spec; NONE
 *   at       INT: the first of its bytes there; TEXT, BYTES: its place among the texts of the part;
 *            FLAG: its bit, one of REDIS_FLAGS
 *   bytes    of an INT
 *
 * A table calls R, which calls X or not: WEIR_JOB_NUMBERS(X) and its like below. These call
 *
 *   X(member, name, kind, JSON name, shown, life, part, at, bytes)
 *
 * where `name` is the member as one word: backoff_delay_ms for backoff.delay_ms. SQL columns have
 * this name. */
#ifndef WEIR_CORE_JOB_FIELDS_H
#define WEIR_CORE_JOB_FIELDS_H

#include "weir/job.h"

#define WEIR_JOB_FIELDS(R, X)                                                                     \
    R(X, INT,   id,                 ID,       "id",               ALWAYS, ID,   NONE,  0, 0)      \
    R(X, TEXT,  type,               TYPE,     "type",             ALWAYS, TYPE, NONE,  0, 0)      \
    R(X, BYTES, data,               JSON,     "data",             ALWAYS, EDIT, SPEC,  3, 0)      \
    R(X, BYTES, values,             VALUES,   "values",           SET,    EDIT, SPEC,  2, 0)      \
    R(X, INT,   priority,           PRIORITY, "priority",         ALWAYS, BOTH, SPEC, 11, 4)      \
    R(X, INT,   state,              STATE,    "state",            ALWAYS, BOTH, RUN,   0, 1)      \
    R(X, INT,   delay_ms,           MS,       "delay",            ALWAYS, BOTH, SPEC, 37, 7)      \
    R(X, INT,   max_attempts,       COUNT,    "max_attempts",     ALWAYS, SPEC, SPEC, 15, 4)      \
    R(X, INT,   attempts,           COUNT,    "attempts",         ALWAYS, RUN,  RUN,   2, 4)      \
    R(X, INT,   progress,           PERCENT,  "progress",         ALWAYS, RUN,  RUN,   1, 1)      \
    R(X, BYTES, progress_data,      JSON,     "progress_data",    SET,    RUN,  RUN,   2, 0)      \
    R(X, BYTES, result,             JSON,     "result",           SET,    RUN,  RUN,   0, 0)      \
    R(X, TEXT,  error,              WORDS,    "error",            SET,    RUN,  RUN,   1, 0)      \
    R(X, INT,   created_at,         MOMENT,   "created_at",       ALWAYS, SPEC, SPEC,  0, 7)      \
    R(X, INT,   promote_at,         MOMENT,   "promote_at",       ALWAYS, BOTH, RUN,  18, 7)      \
    R(X, INT,   updated_at,         MOMENT,   "updated_at",       ALWAYS, BOTH, RUN,  25, 7)      \
    R(X, INT,   failed_at,          MOMENT,   "failed_at",        SET,    RUN,  RUN,  39, 7)      \
    R(X, INT,   started_at,         MOMENT,   "started_at",       SET,    RUN,  RUN,  32, 7)      \
    R(X, INT,   finished_at,        MOMENT,   "finished_at",      SET,    RUN,  RUN,  46, 7)      \
    R(X, INT,   lease_until,        MOMENT,   "lease_until",      SET,    NONE, NONE,  0, 0)      \
    R(X, INT,   duration_ms,        MS,       "duration",         DONE,   RUN,  RUN,  53, 7)      \
    R(X, INT,   ttl_ms,             MS,       "ttl",              SET,    SPEC, SPEC, 44, 7)      \
    R(X, INT,   deadline_at,        MOMENT,   "deadline",         SET,    SPEC, SPEC, 51, 7)      \
    R(X, TEXT,  unique,             UNIQUE,   "unique",           SET,    SPEC, SPEC,  0, 0)      \
    R(X, INT,   remove_on_complete, FLAG,     "removeOnComplete", SET,    SPEC, FLAG,  1, 0)      \
    R(X, BACKOFF, backoff,          BACKOFF,  "backoff",          SET,    SPEC, NONE,  0, 0)      \
    R(X, TEXT,  worker,             WORDS,    "workerId",         SET,    RUN,  RUN,   3, 0)      \
    R(X, INT,   delivery,           DELIVERY, "delivery",         SET,    RUN,  RUN,   6, 4)      \
    R(X, INT,   lost,               LOST,     "lost",             SET,    RUN,  RUN,  10, 4)      \
    R(X, INT,   max_lost,           COUNT,    "max_lost",         RARE,   SPEC, SPEC, 19, 4)      \
    R(X, INT,   search,             FLAG,     "search",           SET,    SPEC, FLAG,  2, 0)      \
    R(X, TEXT,  search_keys,        KEYS,     "search_keys",      SET,    SPEC, SPEC,  1, 0)      \
    R(X, BYTES, history,            HISTORY,  "history",          SET,    RUN,  RUN,   4, 0)      \
    R(X, INT,   at_moment,          FLAG,     "",                 NEVER,  BOTH, NONE,  0, 0)

/* The same for the members of `backoff`, which is one object in JSON. A row is
 *
 *   R(X, member, name, kind, JSON name, shown, life, part, at, bytes) */
#define WEIR_BACKOFF_FIELDS(R, X)                                                                 \
    R(X, backoff.kind,       backoff_kind,       BACKOFF, "", NEVER, SPEC, SPEC,  8, 1)           \
    R(X, backoff.delay_ms,   backoff_delay_ms,   MS,      "", NEVER, SPEC, SPEC, 23, 7)           \
    R(X, backoff.max_ms,     backoff_max_ms,     MS,      "", NEVER, SPEC, SPEC, 30, 7)           \
    R(X, backoff.jitter_pct, backoff_jitter_pct, PERCENT, "", NEVER, SPEC, SPEC,  9, 1)

/* Every number, with the numbers of the backoff; every text, the type among them; all bytes. */
#define WEIR_JOB_NUMBERS(X) WEIR_JOB_FIELDS(WEIR__NUMBER, X)
#define WEIR_JOB_TEXTS(X)   WEIR_JOB_FIELDS(WEIR__TEXT, X)
#define WEIR_JOB_BYTES(X)   WEIR_JOB_FIELDS(WEIR__BYTES, X)

/* Every text and all bytes of the job `j`, where their order does not matter: X(name, length,
 * life). */
#define WEIR_JOB_STRINGS(X) WEIR_JOB_FIELDS(WEIR__STRING, X)

/* The members of a spec (weir_spec) that are read from JSON, copied and checked. A row is
 *
 *   R(X, shape, member, kind, JSON name)
 *
 * with shapes and kinds as above, but of a COUNT 0 is the default, so JSON has at least 1.
 * weir__job_init() defines the member's effect on the job. */
#define WEIR_SPEC_FIELDS(R, X)                                                                    \
    R(X, TEXT,    type,               TYPE,     "type")                                           \
    R(X, BYTES,   data,               JSON,     "data")                                           \
    R(X, BYTES,   values,             VALUES,   "values")                                         \
    R(X, INT,     priority,           PRIORITY, "priority")                                       \
    R(X, INT,     attempts,           COUNT,    "attempts")                                       \
    R(X, INT,     delay_ms,           MS,       "delay")                                          \
    R(X, INT,     run_at,             MOMENT,   "run_at")                                         \
    R(X, BACKOFF, backoff,            BACKOFF,  "backoff")                                        \
    R(X, INT,     ttl_ms,             MS,       "ttl")                                            \
    R(X, INT,     deadline_at,        MOMENT,   "deadline")                                       \
    R(X, TEXT,    unique,             UNIQUE,   "unique")                                         \
    R(X, INT,     max_lost,           COUNT,    "max_lost")                                       \
    R(X, INT,     remove_on_complete, FLAG,     "removeOnComplete")                               \
    R(X, INT,     search,             FLAG,     "search")                                         \
    R(X, TEXT,    search_keys,        KEYS,     "search_keys")

#define WEIR_SPEC_TEXTS(X) WEIR_SPEC_FIELDS(WEIR__TEXT, X)
#define WEIR_SPEC_BYTES(X) WEIR_SPEC_FIELDS(WEIR__BYTES, X)

/* ---- versions of what is stored ----
 *
 * A store keeps its version beside the jobs, and weir refuses another one. A change of the rows
 * above raises both versions. A change of a store's other data (store/sqlite/schema.c, the keys and
 * records of store/redis/layout) raises the version of this store. Behind each version stands what
 * the rows come to in it: the columns of a table; the bytes of numbers, and the texts, of a record
 * in Redis. The stores compare these, so rows that change without a version do not compile. */
enum {
    WEIR__FILE_VERSION = 8,
    WEIR__FILE_COLUMNS = 40,
    WEIR__REDIS_VERSION = 5,
    WEIR__REDIS_BYTES = 120,
    WEIR__REDIS_TEXTS = 9
};

/* ---- code for some fields, by their life ---- */

/* All stored members; members that add gives; members that never change after that; members that
 * may change; members that a transition other than an update may change. */
#define WEIR_IF_STORED_SPEC(...)  __VA_ARGS__
#define WEIR_IF_STORED_EDIT(...)  __VA_ARGS__
#define WEIR_IF_STORED_BOTH(...)  __VA_ARGS__
#define WEIR_IF_STORED_RUN(...)   __VA_ARGS__
#define WEIR_IF_STORED_ID(...)
#define WEIR_IF_STORED_TYPE(...)
#define WEIR_IF_STORED_NONE(...)
#define WEIR_IF_NEW_SPEC(...)     __VA_ARGS__
#define WEIR_IF_NEW_EDIT(...)     __VA_ARGS__
#define WEIR_IF_NEW_BOTH(...)     __VA_ARGS__
#define WEIR_IF_NEW_RUN(...)
#define WEIR_IF_NEW_ID(...)
#define WEIR_IF_NEW_TYPE(...)
#define WEIR_IF_NEW_NONE(...)
#define WEIR_IF_FIXED_SPEC(...)   __VA_ARGS__
#define WEIR_IF_FIXED_EDIT(...)
#define WEIR_IF_FIXED_BOTH(...)
#define WEIR_IF_FIXED_RUN(...)
#define WEIR_IF_FIXED_ID(...)
#define WEIR_IF_FIXED_TYPE(...)
#define WEIR_IF_FIXED_NONE(...)
#define WEIR_IF_CHANGES_SPEC(...)
#define WEIR_IF_CHANGES_EDIT(...) __VA_ARGS__
#define WEIR_IF_CHANGES_BOTH(...) __VA_ARGS__
#define WEIR_IF_CHANGES_RUN(...)  __VA_ARGS__
#define WEIR_IF_CHANGES_ID(...)
#define WEIR_IF_CHANGES_TYPE(...)
#define WEIR_IF_CHANGES_NONE(...)
#define WEIR_IF_MOVES_SPEC(...)
#define WEIR_IF_MOVES_EDIT(...)
#define WEIR_IF_MOVES_BOTH(...)   __VA_ARGS__
#define WEIR_IF_MOVES_RUN(...)    __VA_ARGS__
#define WEIR_IF_MOVES_ID(...)
#define WEIR_IF_MOVES_TYPE(...)
#define WEIR_IF_MOVES_NONE(...)

/* ---- how a table is filtered by shape ---- */

#define WEIR__NUMBER(X, shape, ...)     WEIR__NUMBER_##shape(X, __VA_ARGS__)
#define WEIR__NUMBER_INT(X, member, ...) X(member, member, __VA_ARGS__)
#define WEIR__NUMBER_TEXT(...)
#define WEIR__NUMBER_BYTES(...)
#define WEIR__NUMBER_BACKOFF(X, ...)    WEIR_BACKOFF_FIELDS(WEIR__MEMBER, X)
#define WEIR__MEMBER(X, ...)            X(__VA_ARGS__)

#define WEIR__TEXT(X, shape, ...)       WEIR__TEXT_##shape(X, __VA_ARGS__)
#define WEIR__TEXT_INT(...)
#define WEIR__TEXT_TEXT(X, member, ...) X(member, member, __VA_ARGS__)
#define WEIR__TEXT_BYTES(...)
#define WEIR__TEXT_BACKOFF(...)

#define WEIR__BYTES(X, shape, ...)      WEIR__BYTES_##shape(X, __VA_ARGS__)
#define WEIR__BYTES_INT(...)
#define WEIR__BYTES_TEXT(...)
#define WEIR__BYTES_BYTES(X, member, ...) X(member, member, __VA_ARGS__)
#define WEIR__BYTES_BACKOFF(...)

#define WEIR__STRING(X, shape, ...)     WEIR__STRING_##shape(X, __VA_ARGS__)
#define WEIR__STRING_INT(...)
#define WEIR__STRING_TEXT(X, member, kind, js, shown, life, ...)                                  \
    X(member, j->member ? strlen(j->member) : 0, life)
#define WEIR__STRING_BYTES(X, member, kind, js, shown, life, ...)                                 \
    X(member, j->member##_len, life)
#define WEIR__STRING_BACKOFF(...)

#endif
