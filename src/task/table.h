/* table.h - a table of record for tasks, in another database than the queue: a row for each task,
 * with delayqueue's columns, written before a task is acknowledged. If the queue is lost,
 * weir_task_initialize() submits again what the rows say is ready or was running.
 *
 * Any thread; calls wait for the database, one after the other. */
#ifndef WEIR_TASK_TABLE_H
#define WEIR_TASK_TABLE_H

#include "core/fields.h"
#include "weir/task.h"

typedef struct task_table task_table;

/* "mysql://USER:PASSWORD@HOST:PORT/DATABASE" or "sqlite:FILE"; behind it "?table=NAME"
 * (t_delay_task) and, for mysql, "&socket=FILE". The table is made if it is missing. Errors:
 * WEIR_EINVAL (the URL; the library of the database is not installed), WEIR_EUNAVAIL, WEIR_EIO. */
weir_code weir__record_open(task_table **out, const char *url, weir_error *err);
void weir__record_close(task_table *table);      /* NULL is fine */

/* A new row, ready. WEIR_ESTATE: there is one with this id; WEIR_ELIMIT: too long for a column. */
weir_code weir__record_insert(task_table *table, const weir_task_spec *spec, const char *id,
                             int64_t run_at, int64_t now, weir_error *err);
weir_code weir__record_remove(task_table *table, const char *id, weir_error *err);

/* The present task: state, times, host and ip, the text of the handler, result, and all that
 * weir_task_adjust() changes. */
weir_code weir__record_update(task_table *table, const weir_task *task, weir_error *err);

/* The task is gone: if its row is open (ready or running), it is cancelled, for this reason. */
weir_code weir__record_close_row(task_table *table, const char *id, const char *reason, int64_t now,
                                 weir_error *err);

/* Open rows of this classifier, in the order of their ids, behind `after` ("": from the first on),
 * at most `limit`; `id`: this one alone, whatever its classifier. Texts are in `arena`; *specs and
 * *created, when the rows were inserted, have room for `limit`. */
weir_code weir__record_open_rows(task_table *table, const char *classifier, const char *id,
                                 const char *after, size_t limit, weir_arena *arena,
                                 weir_task_spec *specs, int64_t *created, size_t *n,
                                 weir_error *err);

/* The next classifier behind `after` that has open rows; *out is NULL if it is missing. */
weir_code weir__record_classifier(task_table *table, const char *after, weir_arena *arena,
                                  const char **out, weir_error *err);

/* The table's name. */
const char *weir__record_name(const task_table *table);

/* ---- databases ---- */

typedef struct task_db task_db;
enum { WEIR_TABLE_COLUMNS = 32 };    /* of an answer, at most */
/* One row of an answer; a cell is NULL if it is. */
typedef void task_db_row(const char *const *cell, void *ctx);

/* How a database is reached. `run` executes one statement. Errors: WEIR_ESTATE (a key is there
 * already), WEIR_ELIMIT (too long), WEIR_EUNAVAIL (no connection: the next call tries again),
 * WEIR_EIO (else). Strings in SQL are in single quotes, which are doubled inside. */
typedef struct task_db_ops {
    const char *scheme;
    const char *create;             /* CREATE TABLE behind the name */
    weir_code (*open)(task_db **out, const char *place, const char *socket, weir_error *err);
    void      (*close)(task_db *db);
    weir_code (*run)(task_db *db, const char *sql, task_db_row *row, void *ctx, weir_error *err);
} task_db_ops;

extern const task_db_ops weir__task_mysql, weir__task_sqlite;

#endif
