/* stmt.c - the SQL of the store, and what SQLite's errors mean. */
#include "store/sqlite/sq.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- errors ---- */

static const struct {
    int       rc;
    weir_code code;
} codes[] = {
    { SQLITE_FULL,     WEIR_EFULL },     { SQLITE_IOERR,    WEIR_EIO },
    { SQLITE_CORRUPT,  WEIR_ECORRUPT },  { SQLITE_NOTADB,   WEIR_ECORRUPT },
    { SQLITE_FORMAT,   WEIR_ECORRUPT },  { SQLITE_SCHEMA,   WEIR_ECORRUPT },
    { SQLITE_ERROR,    WEIR_ECORRUPT },  { SQLITE_CONSTRAINT, WEIR_ECORRUPT },
    { SQLITE_MISMATCH, WEIR_ECORRUPT },  { SQLITE_READONLY, WEIR_EREADONLY },
    { SQLITE_PERM,     WEIR_EREADONLY }, { SQLITE_AUTH,     WEIR_EREADONLY },
    { SQLITE_NOMEM,    WEIR_ENOMEM },    { SQLITE_BUSY,     WEIR_EBUSY },
    { SQLITE_LOCKED,   WEIR_EBUSY },     { SQLITE_PROTOCOL, WEIR_EBUSY },
    { SQLITE_CANTOPEN, WEIR_EUNAVAIL },  { SQLITE_TOOBIG,   WEIR_ELIMIT },
};

static const struct {
    int       error;
    weir_code code;
} by_errno[] = {
    { ENOSPC, WEIR_EFULL },     { EDQUOT, WEIR_EFULL },     { EFBIG, WEIR_EFULL },
    { EROFS,  WEIR_EREADONLY }, { EACCES, WEIR_EREADONLY }, { EPERM, WEIR_EREADONLY },
    { ENOENT, WEIR_ENOENT },    { ENOTDIR, WEIR_ENOENT },   { ENOMEM, WEIR_ENOMEM },
    { EISDIR, WEIR_EINVAL },    { ELOOP, WEIR_EINVAL },     { ENAMETOOLONG, WEIR_EINVAL },
};

/* WEIR_OK: this errno says nothing in particular. */
static weir_code code_of_errno(int e)
{
    for (size_t i = 0; i < sizeof by_errno / sizeof *by_errno; i++)
        if (by_errno[i].error == e)
            return by_errno[i].code;
    return WEIR_OK;
}

/* The system's error of a file, if that caused the failure; else 0. */
static int errno_behind(sqlite3 *db, int rc)
{
    int primary = rc & 0xff;
    return db && (primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN) ? sqlite3_system_errno(db)
                                                                         : 0;
}

weir_code weir__sq_code(sqlite3 *db, int rc)
{
    int       primary = rc & 0xff;
    weir_code code = code_of_errno(errno_behind(db, rc));
    if (code)
        return code;
    if (rc == SQLITE_IOERR_NOMEM)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].rc == primary)
            return codes[i].code;
    return WEIR_EIO;
}

const char *weir__sq_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

weir_code weir__sq_db_fail(sqlite3 *db, int rc, const char *path, weir_error *err)
{
    weir_code   code = weir__sq_code(db, rc);
    const char *why = db && sqlite3_errcode(db) != SQLITE_OK ? sqlite3_errmsg(db)
                                                             : sqlite3_errstr(rc);
    int         e = errno_behind(db, rc);
    if (code == WEIR_EREADONLY && access(path, R_OK))
        return weir__sq_permission_fail(path, errno, err);
    return weir_fail(err, code, "%s: %s (%s)", weir__sq_file_name(path),
                     code_of_errno(e) ? strerror(e) : weir_code_text(code), why);
}

weir_code weir__sq_file_fail(const char *path, int e, weir_error *err)
{
    weir_code code = code_of_errno(e);
    if (code == WEIR_EREADONLY)
        return weir__sq_permission_fail(path, e, err);
    return weir_fail(err, code ? code : WEIR_EIO, "%s: %s", path, strerror(e));
}

weir_code weir__sq_broken(sq_store *s, int rc)
{
    if (!s->broken) {
        s->broken = true;
        weir__sq_db_fail(s->db, rc, s->path, &s->error);
    }
    return s->error.code;
}

weir_code weir__sq_no_memory(sq_store *s)
{
    if (!s->broken) {
        s->broken = true;
        weir_fail(&s->error, WEIR_ENOMEM, "%s: out of memory", weir__sq_file_name(s->path));
    }
    return s->error.code;
}

weir_code weir__sq_damaged(sq_store *s, const char *what)
{
    if (!s->broken) {
        s->broken = true;
        weir_fail(&s->error, WEIR_ECORRUPT, "%s is damaged: %s", weir__sq_file_name(s->path), what);
    }
    return s->error.code;
}

/* ---- statements ---- */

#define DIGITS_OF(number) #number
#define DIGITS(number)    DIGITS_OF(number)

/* SQL_... is text that store/sql/sql.h has. */
static const char *const sql[SQ_STATEMENTS] = {
    [SQ_BEGIN]       = "BEGIN",
    [SQ_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [SQ_COMMIT]      = "COMMIT",
    [SQ_ROLLBACK]    = "ROLLBACK",

    [SQ_INSERT]   = SQL_INSERT,
    [SQ_IMPORT]   = SQL_IMPORT,
    [SQ_TAKE]     = SQL_TAKE(""),
    [SQ_TAKE_DUE] = SQL_TAKE(", due_at = NULL"),
    [SQ_COMPLETE] = SQL_FINISH,
    [SQ_NUMBERS]  = SQL_NUMBERS,
    [SQ_PROGRESS] = SQL_PROGRESS,
#define X(m, name, k, j, s, life, ...) WEIR_IF_CHANGES_##life([SQ_SET_##name] = SQL_SET(#name),)
    WEIR_JOB_TEXTS(X)
    WEIR_JOB_BYTES(X)
#undef X
    [SQ_DELAY_MOVE] =
        "UPDATE job SET promote_at = promote_at + ?2, rank = rank + ?2,"
        " due_at = iif(deadline_at > 0 AND deadline_at < promote_at + ?2, deadline_at,"
        " promote_at + ?2), checksum = (checksum + ?3) % ?4"
        " WHERE type = ?1 AND state = " SQL_DELAYED " AND at_moment = 0",
    [SQ_DELETE]   = "DELETE FROM job WHERE id = ?1",
    [SQ_SET_ASIDE] =
        "UPDATE job SET state = " SQL_FAILED ", rank = ?2, due_at = NULL, updated_at = ?2,"
        " failed_at = ?2, finished_at = ?2, error = ?3 WHERE id = ?1",
    [SQ_LEASE]      = "SELECT lease_ms, until FROM lease WHERE job = ?1 AND delivery = ?2",
    [SQ_LEASE_PUT]  = "REPLACE INTO lease(job, delivery, lease_ms, until) VALUES(?1, ?2, ?3, ?4)",
    [SQ_LEASE_DROP] = "DELETE FROM lease WHERE job = ?1",
    [SQ_LEASE_MOVE] = "UPDATE lease SET until = until + ?1",

    [SQ_GET] = SQL_GET,
    [SQ_HISTORY] = "SELECT worker, history FROM job WHERE id = ?1",
    [SQ_BEST] =
        "SELECT " SQL_NAMES " FROM job INDEXED BY job_order WHERE type = ?1"
        " AND state = " SQL_INACTIVE " AND (due_at IS NULL OR due_at > ?2)"
        " ORDER BY rank, id LIMIT ?3",
    [SQ_WAITING] =
        "SELECT " SQL_NAMES " FROM job INDEXED BY job_order WHERE type = ?1"
        " AND state = " SQL_INACTIVE " ORDER BY rank, id LIMIT ?2",
    [SQ_BEST_IDS] =
        "SELECT rank, id, lost FROM job INDEXED BY job_order WHERE type = ?1"
        " AND state = " SQL_INACTIVE " AND (due_at IS NULL OR due_at > ?2)"
        " ORDER BY rank, id LIMIT ?3",
    [SQ_DUE] = "SELECT id FROM job INDEXED BY job_due WHERE due_at <= ?1"
               " ORDER BY due_at, id LIMIT ?2",
    [SQ_NEXT_DUE] = "SELECT min(due_at) FROM job INDEXED BY job_due WHERE due_at IS NOT NULL",
    [SQ_OLDEST] =
        "SELECT id, rank, search, created_at FROM job INDEXED BY job_order WHERE type = ?1"
        " AND state = ?2 ORDER BY rank, id LIMIT 1",
    [SQ_OLDEST_IDS] =
        "SELECT id, rank FROM job INDEXED BY job_order WHERE type = ?1 AND state = ?2"
        " ORDER BY rank, id LIMIT ?3",
    [SQ_ALL_ACTIVE] = "SELECT " SQL_NAMES " FROM job INDEXED BY job_order WHERE type = ?1"
                      " AND state = " SQL_ACTIVE,
    [SQ_HOLDER] = "SELECT id, state FROM job INDEXED BY job_unique WHERE type = ?1"
                  " AND \"unique\" = ?2 AND \"unique\" IS NOT NULL AND state <= " SQL_ACTIVE,
    [SQ_EXISTS] = "SELECT search FROM job WHERE id = ?1",

    /* of (rank, id) > (?3, ?4) SQLite would use the rank alone, and read all jobs of that rank */
    [SQ_LIST_STATE] =
        "SELECT " SQL_PLACE " FROM job INDEXED BY job_order WHERE type = ?1 AND state = ?2"
        " AND rank = ?3 AND id > ?4 UNION ALL"
        " SELECT " SQL_PLACE " FROM job INDEXED BY job_order WHERE type = ?1 AND state = ?2"
        " AND rank > ?3 ORDER BY rank, id LIMIT ?5",
    [SQ_LIST_STATE_DOWN] =
        "SELECT " SQL_PLACE " FROM job INDEXED BY job_order WHERE type = ?1 AND state = ?2"
        " AND rank = ?3 AND id < ?4 UNION ALL"
        " SELECT " SQL_PLACE " FROM job INDEXED BY job_order WHERE type = ?1 AND state = ?2"
        " AND rank < ?3 ORDER BY rank DESC, id DESC LIMIT ?5",
    [SQ_LIST_TYPE] = "SELECT " SQL_PLACE " FROM job INDEXED BY job_type WHERE type = ?1 AND id > ?4"
                     " ORDER BY id LIMIT ?5",
    [SQ_LIST_TYPE_DOWN] = "SELECT " SQL_PLACE " FROM job INDEXED BY job_type WHERE type = ?1"
                          " AND id < ?4 ORDER BY id DESC LIMIT ?5",
    [SQ_LIST_ALL]      = "SELECT " SQL_PLACE " FROM job WHERE id > ?4 ORDER BY id LIMIT ?5",
    [SQ_LIST_ALL_DOWN] = "SELECT " SQL_PLACE " FROM job WHERE id < ?4 ORDER BY id DESC LIMIT ?5",
    [SQ_PLACE]         = "SELECT " SQL_PLACE " FROM job WHERE id = ?1",

    [SQ_LOG_LAST]  = "SELECT max(n) FROM log WHERE job = ?1",
    [SQ_LOG_ADD]   = "INSERT INTO log(job, n, at, text, checksum) VALUES(?1, ?2, ?3, ?4, ?5)",
    [SQ_LOG_CUT]   = "DELETE FROM log WHERE job = ?1 AND n <= ?2",
    [SQ_LOG_LINES] = "SELECT n, at, text FROM log WHERE job = ?1 AND n > ?2 ORDER BY n LIMIT ?3",
    [SQ_LOG_DROP]  = "DELETE FROM log WHERE job = ?1",
    [SQ_LOG_FIRST] = "SELECT min(job) FROM log",

    [SQ_INDEX_PUT]      = "REPLACE INTO search(rowid, text) VALUES(?1, ?2)",
    [SQ_INDEX_DROP]     = "DELETE FROM search WHERE rowid = ?1",
    [SQ_INDEX_DROP_JOB] = "DELETE FROM search WHERE rowid >= ?1 AND rowid < ?2",

    [SQ_TYPES] =
        "SELECT id, name, paused, own, search, complete_age_ms, complete_count, failed_age_ms,"
        " failed_count, inactive, delayed, active, complete, failed, cancelled, completed,"
        " failures, work_ms, last_taken_at, counted_id FROM type ORDER BY id",
    [SQ_TYPE_ADD] = "INSERT INTO type(id, name) VALUES(?1, ?2)",
    [SQ_TYPE_SAVE] =
        "UPDATE type SET paused = ?2, own = ?3, search = ?4, complete_age_ms = ?5,"
        " complete_count = ?6, failed_age_ms = ?7, failed_count = ?8, inactive = ?9, delayed = ?10,"
        " active = ?11, complete = ?12, failed = ?13, cancelled = ?14, completed = ?15,"
        " failures = ?16, work_ms = ?17, last_taken_at = ?18, counted_id = ?19 WHERE id = ?1",
    [SQ_UNCOUNTED]    = "SELECT type, state FROM job NOT INDEXED WHERE id > ?1",
    [SQ_COUNT_ACTIVE] = "SELECT count(*), max(rank) FROM job INDEXED BY job_order WHERE type = ?1"
                        " AND state = " SQL_ACTIVE,
    [SQ_LAST_ID] = "SELECT max((SELECT coalesce(max(id), 0) FROM job),"
                   " (SELECT coalesce(max(value), 0) FROM meta WHERE key = 'last_id')),"
                   " (SELECT coalesce(max(value), 0) FROM meta WHERE key = 'last_id')",
    [SQ_LAST_ID_SAVE] = "REPLACE INTO meta(key, value) VALUES('last_id', ?1)",
    [SQ_LOG_MARK] = "REPLACE INTO meta(key, value) SELECT 'log_before', value FROM meta"
                    " WHERE key = 'log' UNION ALL SELECT 'log', ?1",
    [SQ_LOG_COUNT] = "PRAGMA application_id = " DIGITS(SQ_APPLICATION_ID),
    [SQ_IN_USE] = "REPLACE INTO meta(key, value) SELECT 'in_use', schema_version"
                  " FROM pragma_schema_version",
    [SQ_NOT_IN_USE] = "DELETE FROM meta WHERE key = 'in_use'",
    [SQ_BALLAST] = "REPLACE INTO meta(key, value) VALUES('ballast', zeroblob(?1))",
    [SQ_BALLAST_DROP] = "DELETE FROM meta WHERE key = 'ballast'",

    [SQ_SCHEDULE]     = "SELECT name, version, due_at, record FROM schedule WHERE name = ?1",
    [SQ_SCHEDULE_PUT] = "REPLACE INTO schedule(name, due_at, record) VALUES(?1, ?2, ?3)",
    [SQ_SCHEDULE_REMOVE] = "DELETE FROM schedule WHERE name = ?1",
    [SQ_SCHEDULES]    = "SELECT name, version, due_at, record FROM schedule WHERE name > ?1"
                        " ORDER BY name LIMIT ?2",
    [SQ_SCHEDULES_DUE] = "SELECT name, version, due_at, record FROM schedule"
                         " INDEXED BY schedule_due WHERE due_at <= ?1 ORDER BY due_at, name"
                         " LIMIT ?2",
    [SQ_SCHEDULE_NEXT] = "SELECT min(due_at) FROM schedule INDEXED BY schedule_due"
                         " WHERE due_at IS NOT NULL",
    [SQ_TREND]        = "SELECT type, slot, record FROM trend WHERE step = ?1 AND slot = ?2"
                        " AND type = ?3",
    [SQ_TREND_PUT]    = "REPLACE INTO trend(step, slot, type, record) VALUES(?1, ?2, ?3, ?4)",
    [SQ_TREND_TYPES]  = "SELECT count(*) FROM trend WHERE step = ?1 AND slot = ?2",
    [SQ_TREND_SWEEP]  = "DELETE FROM trend WHERE step = ?1 AND slot < ?2",
    [SQ_TRENDS]       = "SELECT type, slot, record FROM trend WHERE step = ?1 AND slot >= ?2"
                        " AND slot < ?3 ORDER BY slot, type",
    [SQ_TOKEN]        = "SELECT number, answers FROM token WHERE key = ?1 AND at > ?2",
    [SQ_TOKEN_PUT]    = "REPLACE INTO token(key, number, at, answers) VALUES(?1, ?2, ?3, ?4)",
    [SQ_TOKEN_OLDEST] = "SELECT min(at) FROM token INDEXED BY token_at",
    [SQ_TOKEN_SWEEP]  = "DELETE FROM token WHERE key IN (SELECT key FROM token INDEXED BY token_at"
                        " WHERE at <= ?1 ORDER BY at LIMIT ?2)",
};

sqlite3_stmt *weir__sq_stmt(sq_store *s, sq_sql which)
{
    if (s->broken && which != SQ_ROLLBACK)
        return NULL;
    if (!s->stmt[which]) {
        int rc = sqlite3_prepare_v3(s->db, sql[which], -1, SQLITE_PREPARE_PERSISTENT,
                                    &s->stmt[which], NULL);
        if (rc)
            weir__sq_broken(s, rc);
    }
    return s->stmt[which];
}

bool weir__sq_row(sq_store *s, sqlite3_stmt *st)
{
    if (!st)
        return false;
    int rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        return true;
    if (rc != SQLITE_DONE)
        weir__sq_broken(s, rc);
    sqlite3_reset(st);
    return false;
}

weir_code weir__sq_do(sq_store *s, sqlite3_stmt *st)
{
    if (!st)
        return s->error.code;
    int rc = sqlite3_step(st);
    if (rc != SQLITE_DONE && rc != SQLITE_ROW)
        weir__sq_broken(s, rc);
    sqlite3_reset(st);
    return s->broken ? s->error.code : WEIR_OK;
}

void weir__sq_finalize(sq_store *s)
{
    for (int i = 0; i < SQ_STATEMENTS; i++) {
        sqlite3_finalize(s->stmt[i]);
        s->stmt[i] = NULL;
    }
}
