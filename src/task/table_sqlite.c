/* table_sqlite.c - the table of record in a SQLite file of its own. */
#include <sqlite3.h>
#include <stdlib.h>

#include "task/table.h"

enum { BUSY_MS = 10000 };

struct task_db {
    sqlite3 *db;
};

static void close_db(task_db *db)
{
    sqlite3_close(db->db);
    free(db);
}

static weir_code fail(sqlite3 *db, weir_error *err)
{
    int       code = sqlite3_errcode(db);
    weir_code rc = code == SQLITE_CONSTRAINT ? WEIR_ESTATE : code == SQLITE_FULL ? WEIR_EFULL
                   : code == SQLITE_BUSY     ? WEIR_EUNAVAIL
                                             : WEIR_EIO;
    return weir_fail(err, rc, "the task table: %s", sqlite3_errmsg(db));
}

static weir_code run(task_db *db, const char *sql, task_db_row *row, void *ctx, weir_error *err)
{
    sqlite3_stmt *st = NULL;
    const char   *cell[WEIR_TABLE_COLUMNS];
    if (sqlite3_prepare_v2(db->db, sql, -1, &st, NULL))
        return fail(db->db, err);
    int step, n = sqlite3_column_count(st);
    while ((step = sqlite3_step(st)) == SQLITE_ROW) {
        for (int i = 0; i < n && i < WEIR_TABLE_COLUMNS; i++)
            cell[i] = (const char *)sqlite3_column_text(st, i);
        if (row)
            row(cell, ctx);
    }
    weir_code rc = step == SQLITE_DONE ? WEIR_OK : fail(db->db, err);
    sqlite3_finalize(st);
    return rc;
}

static weir_code open_db(task_db **out, const char *place, const char *socket, weir_error *err)
{
    (void)socket;
    *out = NULL;
    task_db *db = calloc(1, sizeof *db);
    if (!db)
        return weir_fail(err, WEIR_ENOMEM, "task: out of memory");
    weir_code rc = WEIR_OK;
    if (sqlite3_open(place, &db->db))
        rc = fail(db->db, err);
    if (!rc) {
        sqlite3_busy_timeout(db->db, BUSY_MS);
        rc = run(db, "PRAGMA journal_mode=WAL", NULL, NULL, err);
    }
    if (!rc)
        rc = run(db, "PRAGMA synchronous=FULL", NULL, NULL, err);
    if (rc)
        close_db(db);
    else
        *out = db;
    return rc;
}

const task_db_ops weir__task_sqlite = {
    .scheme = "sqlite:",
    .create = "(TASK_ID varchar(20) PRIMARY KEY, RELATIVE_ID varchar(100), CLASSIFIER varchar(20),"
              " TASK_NAME varchar(100), TASK_SERVICE varchar(100), STATE varchar(3), RUN_AT text,"
              " TIMEOUT int, START_TIME text, END_TIME text, RESULT_STATE varchar(300),"
              " RESULT_STORE varchar(100), RESULT text, HOSTNAME varchar(100),"
              " CLIENT_IP varchar(100), ATTACHMENT text, VAR1 varchar(100), VAR2 varchar(100),"
              " VAR3 varchar(100), SCHEDULED varchar(50), CREATE_TIME text,"
              " VERSION_NUMBER bigint DEFAULT 0)",
    .open = open_db, .close = close_db, .run = run,
};
