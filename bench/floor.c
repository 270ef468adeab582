/* floor.c - the least that SQLite needs for a job's life: one thread, bare statements, the store's
 * own schema (made by the store itself), the same rows and indexes at the end. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/sqlite/sq.h"

static void must(sqlite3 *db, int rc, const char *what)
{
    if (rc == SQLITE_OK || rc == SQLITE_DONE || rc == SQLITE_ROW)
        return;
    fprintf(stderr, "bench: floor: %s: %s\n", what, sqlite3_errmsg(db));
    exit(1);
}

static void do_sql(sqlite3 *db, const char *sql)
{
    must(db, sqlite3_exec(db, sql, NULL, NULL, NULL), sql);
}

/* Let the store make its tables and the type "bench", then open them bare. */
static sqlite3 *open_bare(const char *path, bool disk)
{
    char url[600];
    weir_error err;
    weir_queue *q;
    snprintf(url, sizeof url, "sqlite:%s", path);
    if (weir_open(&q, url, NULL, &err) || weir_resume(q, "bench", &err))
        die("floor", &err);
    weir_close(q);
    sqlite3 *db;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    must(NULL, sqlite3_open_v2(path, &db, flags, NULL), "open");
    do_sql(db, "PRAGMA journal_mode = WAL; PRAGMA locking_mode = NORMAL");
    do_sql(db, disk ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
    do_sql(db, SQ_OWNER_PRAGMAS);
    return db;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *st;
    must(db, sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &st, NULL), sql);
    return st;
}

typedef struct floor_run {
    sqlite3      *db;
    sqlite3_stmt *begin, *commit, *insert, *take, *complete;
    size_t        in_commit, per_commit;
    int64_t       type, now;
} floor_run;

static void step(floor_run *f, sqlite3_stmt *st)
{
    if (f->in_commit == 0) {
        must(f->db, sqlite3_step(f->begin), "begin");
        sqlite3_reset(f->begin);
    }
    must(f->db, sqlite3_step(st), "step");
    sqlite3_reset(st);
    if (++f->in_commit == f->per_commit) {
        must(f->db, sqlite3_step(f->commit), "commit");
        sqlite3_reset(f->commit);
        f->in_commit = 0;
    }
}

static void insert(floor_run *f, int64_t id)
{
    /* id, type, state, rank, due_at, priority, max_attempts, max_lost, delay_ms, ttl_ms,
     * deadline_at, created_at, promote_at, updated_at, backoff (4), remove_on_complete, search */
    int64_t n[] = { id, f->type, 1, 0, 0, 0, 1, 3, 0, 0, 0, f->now, f->now, f->now,
                    0, 0, 0, 0, 0, 0 };
    int count = (int)(sizeof n / sizeof *n);
    for (int i = 0; i < count; i++)
        sqlite3_bind_int64(f->insert, i + 1, n[i]);
    sqlite3_bind_null(f->insert, 5);
    sqlite3_bind_null(f->insert, 21);
    sqlite3_bind_null(f->insert, 22);
    sqlite3_bind_text(f->insert, 23, BENCH_DATA, (int)strlen(BENCH_DATA), SQLITE_STATIC);
    step(f, f->insert);
}

static void take(floor_run *f, int64_t id)
{
    sqlite3_bind_int64(f->take, 1, id);
    sqlite3_bind_int64(f->take, 2, f->now);
    sqlite3_bind_int64(f->take, 3, 1);
    sqlite3_bind_text(f->take, 4, "localhost:12345:1", -1, SQLITE_STATIC);
    step(f, f->take);
}

static void complete(floor_run *f, int64_t id)
{
    sqlite3_bind_int64(f->complete, 1, id);
    sqlite3_bind_int64(f->complete, 2, f->now);
    sqlite3_bind_int64(f->complete, 3, 1);
    sqlite3_bind_int64(f->complete, 4, 0);
    sqlite3_bind_text(f->complete, 5, BENCH_RESULT, (int)strlen(BENCH_RESULT), SQLITE_STATIC);
    step(f, f->complete);
}

double run_floor(const char *path, size_t n, size_t per_commit, bool disk)
{
    floor_run f = { .db = open_bare(path, disk), .per_commit = per_commit };
    f.now = (int64_t)time(NULL) * 1000;
    sqlite3_stmt *type = prepare(f.db, "SELECT id FROM type WHERE name = 'bench'");
    must(f.db, sqlite3_step(type), "type");
    f.type = sqlite3_column_int64(type, 0);
    sqlite3_finalize(type);
    f.begin = prepare(f.db, "BEGIN IMMEDIATE");
    f.commit = prepare(f.db, "COMMIT");
    f.insert = prepare(f.db,
        "INSERT INTO job(id, type, state, rank, due_at, priority, max_attempts, max_lost, delay_ms,"
        " ttl_ms, deadline_at, created_at, promote_at, updated_at, backoff_kind, backoff_delay_ms,"
        " backoff_max_ms, backoff_jitter_pct, remove_on_complete, search, \"unique\", search_keys,"
        " data) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,"
        " ?18, ?19, ?20, ?21, ?22, ?23)");
    f.take = prepare(f.db,
        "UPDATE job SET state = 3, rank = ?2, delivery = ?3, progress = 0, updated_at = ?2,"
        " started_at = ?2, worker = ?4, progress_data = NULL WHERE id = ?1");
    f.complete = prepare(f.db,
        "UPDATE job SET state = 4, rank = ?2, attempts = ?3, progress = 100, updated_at = ?2,"
        " finished_at = ?2, duration_ms = ?4, error = NULL, result = ?5 WHERE id = ?1");

    double start = seconds();
    for (size_t at = 0; at < n; at += per_commit) {      /* a bulk is added, taken, completed */
        size_t bulk = n - at < per_commit ? n - at : per_commit;
        f.now++;
        for (size_t i = 1; i <= bulk; i++)
            insert(&f, (int64_t)(at + i));
        for (size_t i = 1; i <= bulk; i++)
            take(&f, (int64_t)(at + i));
        for (size_t i = 1; i <= bulk; i++)
            complete(&f, (int64_t)(at + i));
    }
    if (f.in_commit)
        must(f.db, sqlite3_step(f.commit), "commit");
    double took = seconds() - start;
    sqlite3_stmt *all[] = { f.begin, f.commit, f.insert, f.take, f.complete };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sqlite3_finalize(all[i]);
    sqlite3_close(f.db);
    return (double)n / took;
}
