/* sql.h - what the stores in SQL databases share: SQLite today, PostgreSQL when it comes.
 *
 *   columns.h   the columns of a job, the names of parameters, the numbers of states in SQL text
 *   row.c       a job from a row, and a job as parameters, through a sql_driver
 *   sum.c       the checksum of a row
 *   apply.c     which rows a transition changes (core/effects.h), through a sql_rows
 *   below       SQL text that every database accepts
 *
 * Nothing here includes the header of a database. Parameters are `?` or `?N`, as SQLite has them; a
 * PostgreSQL store would write them as `$N` when it prepares a statement.
 *
 * A PostgreSQL store would add: connections and errors of its library; its own CREATE TABLE for all
 * tables but the columns of `job`; row locks (FOR UPDATE SKIP LOCKED) in a take, which SQLite does
 * not need, as its file has one owner; leases, counters of types and the next due time as rows,
 * which the SQLite store has in memory for the same reason; an index of words in place of FTS5; and
 * LISTEN as its feed of events. Statements that name an index (INDEXED BY), REPLACE and pragmas are
 * SQLite's alone and stay in store/sqlite/stmt.c. */
#ifndef WEIR_STORE_SQL_SQL_H
#define WEIR_STORE_SQL_SQL_H

#include "core/job.h"
#include "store/sql/columns.h"

/* ---- text ---- */

#define SQL__NEW_NAME(name, life, sort) WEIR_IF_NEW_##life(SQL_NAME(name, life, sort))
#define SQL__NEW_MARK(name, life, sort) WEIR_IF_NEW_##life(SQL_MARK(name, life, sort))
#define SQL__MOVE(m, name, k, j, s, life, ...) WEIR_IF_MOVES_##life(", \"" #name "\" = ?")

/* The parameters of these three have names: columns.h. row.c binds them. */
#define SQL_INSERT                                                                                \
    "INSERT INTO job(id, type, rank, due_at, checksum" SQL_FIELDS(SQL__NEW_NAME) ")"              \
    " VALUES(?, ?, ?, ?, ?" SQL_FIELDS(SQL__NEW_MARK) ")"
#define SQL_IMPORT "INSERT INTO job(" SQL_NAMES ") VALUES(" SQL_MARKS ")"
#define SQL_NUMBERS                                                                               \
    "UPDATE job SET rank = ?, due_at = ?, lease_ms = ?, checksum = ?,"                            \
    " history = coalesce(?, history)" WEIR_JOB_NUMBERS(SQL__MOVE) " WHERE id = ?"

/* ?1 id, ?2 now, ?3 delivery, ?4 worker, ?5 lease_ms, ?6 checksum. `due`: ", due_at = NULL" for a
 * job with a deadline, else "": due_at then is NULL already, and its index is left alone. */
#define SQL_TAKE(due)                                                                             \
    "UPDATE job SET state = " SQL_ACTIVE ", rank = ?2" due ", delivery = ?3, progress = 0,"       \
    " updated_at = ?2, started_at = ?2, lease_ms = ?5, checksum = ?6, worker = ?4,"               \
    " progress_data = NULL WHERE id = ?1"
/* ?1 id, ?2 now, ?3 attempts, ?4 duration_ms, ?5 result, ?6 checksum. */
#define SQL_FINISH                                                                                \
    "UPDATE job SET state = " SQL_COMPLETE ", rank = ?2, attempts = ?3, progress = 100,"          \
    " updated_at = ?2, finished_at = ?2, duration_ms = ?4, lease_ms = 0, checksum = ?6,"          \
    " error = NULL, result = ?5 WHERE id = ?1"
/* ?1 id, ?2 progress, ?3 now, ?4 progress_data or NULL, ?5 checksum. */
#define SQL_PROGRESS                                                                              \
    "UPDATE job SET progress = ?2, updated_at = ?3, checksum = ?5,"                               \
    " progress_data = coalesce(?4, progress_data) WHERE id = ?1"
#define SQL_GET       "SELECT " SQL_NAMES " FROM job WHERE id = ?1"
#define SQL_SET(name) "UPDATE job SET \"" name "\" = ?2 WHERE id = ?1"

/* The columns of CREATE TABLE job behind the store's own columns. */
#define SQL_CREATE_FIELDS SQL_FIELDS(SQL__CREATE)
#define SQL__CREATE(name, life, sort) ", \"" #name "\"" SQL__CREATE_##sort
#define SQL__CREATE_INTEGER " INTEGER NOT NULL DEFAULT 0"
#define SQL__CREATE_TEXT    " TEXT"

/* ---- sum.c: the checksum of a row ---- */

/* The sums of texts that the checksum of a row is made of, besides the numbers of the job. */
typedef struct sql_sums {
    int64_t  lease_ms;                      /* what its worker asked for; 0: not active */
    uint32_t fixed;                         /* sum of all texts that add gives */
#define X(m, name, k, j, s, life, ...) WEIR_IF_MOVES_##life(uint32_t name;)
    WEIR_JOB_TEXTS(X)
    WEIR_JOB_BYTES(X)
#undef X
} sql_sums;

enum { SQL_SUM_MODULUS = 2147483647 };      /* a prime */

uint32_t weir__sql_text_sum(const char *text, size_t len);
/* All of j's strings are valid. */
sql_sums weir__sql_sums(const weir_job *j, int64_t lease_ms);
/* `type`: the number of its type. */
int64_t  weir__sql_checksum(const weir_job *j, int64_t type, const sql_sums *sums);
int64_t  weir__sql_line_checksum(uint64_t job, int64_t n, int64_t at, const char *text, size_t len);

/* ---- row.c: a job as a row ---- */

/* The functions of a database's library that row.c needs. `st` is its statement, or its row. */
typedef struct sql_driver {
    int64_t     (*number)(void *st, int column);                    /* NULL reads as 0 */
    const char *(*text)(void *st, int column, size_t *len);         /* NULL: none */
    void        (*bind_number)(void *st, int parameter, int64_t value);
    void        (*bind_text)(void *st, int parameter, const char *text, size_t len);
    void        (*bind_null)(void *st, int parameter);
} sql_driver;

/* A row of SQL_NAMES, all but type and state, whatever its columns are. Strings are the row's. */
void weir__sql_read(const sql_driver *d, void *st, weir_job *j);
/* Bind the parameters of SQL_INSERT; of SQL_IMPORT; of SQL_NUMBERS, where `sums` has the sums of
 * j's other texts as they will be, and the history is bound if there is a new one. */
void weir__sql_bind_new(const sql_driver *d, void *st, const weir_job *j, int64_t type);
void weir__sql_bind_all(const sql_driver *d, void *st, const weir_job *j, int64_t type);
void weir__sql_bind_numbers(const sql_driver *d, void *st, const weir_job *j, int64_t type,
                            const weir_buf *history, const sql_sums *sums);

/* ---- apply.c: a transition in rows ---- */

/* The functions of a store `s` that apply.c needs; each changes rows of the job j. */
typedef struct sql_rows {
    weir_code (*remove)(void *s, const weir_job *j);        /* with its log and its words */
    weir_code (*complete)(void *s, const weir_job *j, int64_t type, const sql_sums *sums);
    weir_code (*numbers)(void *s, const weir_job *j, int64_t type, const weir_buf *history,
                         const sql_sums *sums);
    /* Those texts that `texts` names, but the history; and their words, if the job is searched. */
    weir_code (*texts)(void *s, const weir_job *j, uint32_t texts);
    weir_code (*log)(void *s, const weir_job *j, int64_t now, const char *text, size_t len);
} sql_rows;

/* Change the rows as `e` says. `sums` has the sums before the transition, and the lease_ms to be
 * kept; afterwards it has the sums of the row. e is weir__effects_ok(). Counters, leases, what is
 * due and events remain to the store. */
weir_code weir__sql_apply(const sql_rows *rows, void *s, const weir_job *j, int64_t type,
                          const weir_effects *e, sql_sums *sums, int64_t now);

#endif
