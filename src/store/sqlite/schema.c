/* schema.c - the tables, and the check that a file has these and no others. */
#include "store/sqlite/sq.h"

#include <stdio.h>
#include <string.h>

_Static_assert((int)SQL_C_END == WEIR__FILE_COLUMNS,
               "the columns have changed: raise WEIR__FILE_VERSION (core/job_fields.h), too");

/* The tables of WEIR__FILE_VERSION.
 *
 * type    what a job may be of, its settings, and how many jobs are in which state. Row 1 is "*".
 *         The counts are those of jobs up to row 1's counted_id, and active ones may be counted as
 *         inactive: see types.c.
 * meta    last_id: ids up to this one were given. Written only when a job with a higher id is
 *         deleted; else the highest id in `job` says it. log, log_before, in_use: see log_check.c.
 *         ballast: bytes that a probe has written, there for a moment only: see batch.c.
 * job     the fields of a job (sql/columns.h) by their names; type is a number of the table `type`,
 *         and states are numbers of weir_state. `rank` is the place within the state (priority,
 *         promote_at, started_at or finished_at), due_at when a waiting job must be looked at.
 *         lease_ms: what the worker of an active job asked for. checksum: of all other columns but
 *         rank and due_at, see sql/sum.c.
 * lease   the leases that remote workers have renewed: see active.c.
 * log     the lines of a job.
 * search  the words of jobs that want to be found: rowid = job << SQ_SLOT_BITS | slot, where slots
 *         are SQ_SLOT_DATA, SQ_SLOT_ERROR and weir__sq_log_slot(). Its tokenizer cuts as
 *         weir__search_word() does.
 * token   what an add that carried a token answered: one row for each key. `answers` are the
 *         digest of the call (8 bytes), then runs of jobs, 13 bytes each, big-endian: the first id
 *         (8), how many (4), and their state, plus 128 if they were there already (1).
 * schedule    a schedule's record (op/schedule.h) by its name; due_at NULL: never.
 * trend   records of trends (core/trend.h). By slot first: they come in that order and go in it. */
static const char tables[] =
    "CREATE TABLE type(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " paused INTEGER NOT NULL DEFAULT 0, own INTEGER NOT NULL DEFAULT 0,"
    " search INTEGER NOT NULL DEFAULT 0, complete_age_ms INTEGER NOT NULL DEFAULT 0,"
    " complete_count INTEGER NOT NULL DEFAULT 0, failed_age_ms INTEGER NOT NULL DEFAULT 0,"
    " failed_count INTEGER NOT NULL DEFAULT 0, inactive INTEGER NOT NULL DEFAULT 0,"
    " delayed INTEGER NOT NULL DEFAULT 0, active INTEGER NOT NULL DEFAULT 0,"
    " complete INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,"
    " cancelled INTEGER NOT NULL DEFAULT 0, completed INTEGER NOT NULL DEFAULT 0,"
    " failures INTEGER NOT NULL DEFAULT 0, work_ms INTEGER NOT NULL DEFAULT 0,"
    " last_taken_at INTEGER NOT NULL DEFAULT 0, counted_id INTEGER NOT NULL DEFAULT 0);"
    "INSERT INTO type(id, name) VALUES(1, '*');"
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "INSERT INTO meta(key, value) VALUES('log', random());"
    "CREATE TABLE job(id INTEGER PRIMARY KEY, type INTEGER NOT NULL, rank INTEGER NOT NULL,"
    " due_at INTEGER, lease_ms INTEGER NOT NULL DEFAULT 0, checksum INTEGER NOT NULL DEFAULT 0"
    SQL_CREATE_FIELDS ");"
    "CREATE INDEX job_order ON job(type, state, rank, id);"
    "CREATE INDEX job_type ON job(type, id);"
    "CREATE INDEX job_due ON job(due_at, id) WHERE due_at IS NOT NULL;"
    "CREATE UNIQUE INDEX job_unique ON job(type, \"unique\")"
    " WHERE \"unique\" IS NOT NULL AND state <= " SQL_ACTIVE ";"
    "CREATE TABLE lease(job INTEGER PRIMARY KEY, delivery INTEGER NOT NULL,"
    " lease_ms INTEGER NOT NULL, until INTEGER NOT NULL);"
    "CREATE TABLE log(job INTEGER NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL,"
    " checksum INTEGER NOT NULL DEFAULT 0, text TEXT NOT NULL, PRIMARY KEY(job, n))"
    " WITHOUT ROWID;"
    "CREATE VIRTUAL TABLE search USING fts5(text, tokenize = 'ascii', detail = none);"
    "CREATE TABLE token(key TEXT PRIMARY KEY, number INTEGER NOT NULL, at INTEGER NOT NULL,"
    " answers BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX token_at ON token(at);"
    "CREATE TABLE schedule(version INTEGER PRIMARY KEY AUTOINCREMENT,"
    " name TEXT NOT NULL UNIQUE, due_at INTEGER, record TEXT NOT NULL);"
    "CREATE INDEX schedule_due ON schedule(due_at, name) WHERE due_at IS NOT NULL;"
    "CREATE TABLE trend(step INTEGER NOT NULL, slot INTEGER NOT NULL, type TEXT NOT NULL,"
    " record TEXT NOT NULL, PRIMARY KEY(step, slot, type)) WITHOUT ROWID;";

static weir_code number(sqlite3 *db, const char *path, const char *query, int64_t *out,
                        weir_error *err)
{
    sqlite3_stmt *st = NULL;
    int           rc = sqlite3_prepare_v2(db, query, -1, &st, NULL);
    if (!rc) {
        rc = sqlite3_step(st);
        *out = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
        if (rc == SQLITE_ROW || rc == SQLITE_DONE)
            rc = SQLITE_OK;
    }
    weir_code code = rc ? weir__sq_db_fail(db, rc, path, err) : WEIR_OK;
    sqlite3_finalize(st);
    return code;
}

/* All of it at once, in a file that has no log yet: the tables are in the file from its start. The
 * schema version is a random number that no copy made by SQLite has: see log_check.c. */
static weir_code create(sqlite3 *db, const char *path, weir_error *err)
{
    char     mark[160];
    uint32_t number;
    sqlite3_randomness(sizeof number, &number);
    snprintf(mark, sizeof mark, "PRAGMA application_id = %d; PRAGMA user_version = %d;"
             "PRAGMA schema_version = %d; COMMIT", SQ_APPLICATION_ID, WEIR__FILE_VERSION,
             (int)(number >> 2 | 1u << 28));
    int rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (!rc)
        rc = sqlite3_exec(db, tables, NULL, NULL, NULL);
    if (!rc)
        rc = sqlite3_exec(db, mark, NULL, NULL, NULL);
    if (!rc)
        return WEIR_OK;
    weir_code code = weir__sq_db_fail(db, rc, path, err);
    if (!sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return code;
}

/* Only once it is sure that the file is ours. */
static weir_code use_wal(sqlite3 *db, const char *path, weir_error *err)
{
    sqlite3_stmt *st = NULL;
    bool          wal = false;
    int           rc = sqlite3_prepare_v2(db, "PRAGMA journal_mode = WAL", -1, &st, NULL);
    if (!rc) {
        rc = sqlite3_step(st);
        wal = rc == SQLITE_ROW && !strcmp((const char *)sqlite3_column_text(st, 0), "wal");
        if (rc == SQLITE_ROW || rc == SQLITE_DONE)
            rc = SQLITE_OK;
    }
    weir_code code = WEIR_OK;
    if (rc)
        code = weir__sq_db_fail(db, rc, path, err);
    else if (!wal)
        code = weir_fail(err, WEIR_EUNAVAIL, "%s: no write-ahead log on this file system", path);
    sqlite3_finalize(st);
    return code;
}

weir_code weir__sq_schema(sqlite3 *db, const char *path, bool read_only, weir_error *err)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    int64_t     app = 0, version = 0, objects = 0, pages = 0;
    weir_code   rc = number(db, path, "PRAGMA application_id", &app, err);
    if (!rc)
        rc = number(db, path, "PRAGMA user_version", &version, err);
    if (!rc)
        rc = number(db, path, "SELECT count(*) FROM sqlite_schema", &objects, err);
    bool fresh = !rc && app == 0 && version == 0 && objects == 0;
    if (fresh)
        rc = number(db, path, "PRAGMA page_count", &pages, err);
    if (rc)
        return rc;
    if (fresh && pages)
        return weir_fail(err, WEIR_ECORRUPT, "%s has no tables: its log %s-wal is missing, which "
                         "has them; put the log back beside it", name, name);
    if (fresh && read_only)
        return weir_fail(err, WEIR_ENOENT, "%s is empty: no jobs were ever kept in it", name);
    if (fresh)
        rc = create(db, path, err);
    else if (app != SQ_APPLICATION_ID)
        return weir_fail(err, WEIR_ECORRUPT, "%s is a database, but not weir's", name);
    else if (version != WEIR__FILE_VERSION)
        return weir_fail(err, WEIR_EVERSION,
                         "%s has schema version %lld, this weir reads version %d only: export its "
                         "jobs with the weir that wrote it, and import them", name,
                         (long long)version, WEIR__FILE_VERSION);
    return rc || read_only ? rc : use_wal(db, path, err);
}
