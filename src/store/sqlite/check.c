/* check.c - does everything derived agree with the jobs? Counts, ranks, due times, unique keys,
 * logs, the search index, the active ones in memory, and the structure of the file itself. */
#include "store/sqlite/sq.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/results.h"
#include "core/search.h"

typedef struct check {
    sq_store    *s;
    weir_report *report;
    bool         mend;
    bool         reindex;           /* an index of SQLite's is wrong */
    uint64_t   (*count)[WEIR_STATES];   /* by type id - 1 */
} check;

/* Note what is wrong; whether it is then mended. */
#define WRONG(c, mendable, ...)                                              \
    (wrong(c, weir__report_line((c)->report, __VA_ARGS__), (mendable)))

static bool wrong(check *c, bool noted, bool mendable)
{
    if (!noted)
        weir__sq_no_memory(c->s);
    if (mendable && c->mend)
        c->report->mended++;
    return mendable && c->mend;
}

static bool exec(check *c, const char *sql)
{
    int rc = c->s->broken ? SQLITE_OK : sqlite3_exec(c->s->db, sql, NULL, NULL, NULL);
    if (rc)
        weir__sq_broken(c->s, rc);
    return !c->s->broken;
}

/* A statement that is used only here. NULL: broken. */
static sqlite3_stmt *prepare(check *c, const char *sql)
{
    sqlite3_stmt *st = NULL;
    int rc = c->s->broken ? SQLITE_OK : sqlite3_prepare_v2(c->s->db, sql, -1, &st, NULL);
    if (rc)
        weir__sq_broken(c->s, rc);
    return st;
}

/* ---- the file ---- */

static void check_file(check *c)
{
    sqlite3_stmt *st = prepare(c, "PRAGMA integrity_check(20)");
    while (weir__sq_row(c->s, st)) {
        const char *line = (const char *)sqlite3_column_text(st, 0);
        if (!line || !strcmp(line, "ok"))
            continue;
        /* what is wrong with an index can be mended, what is wrong with a page cannot */
        bool index = strstr(line, "index") != NULL;
        c->reindex |= index;
        WRONG(c, index, "file: %s", line);
    }
    sqlite3_finalize(st);
    if (c->reindex && c->mend)
        exec(c, "REINDEX");
}

/* ---- jobs ---- */

static void check_order(check *c, sqlite3_stmt *row, sqlite3_stmt *fix, const weir_job *j)
{
    int64_t rank = weir__job_rank(j), due = weir__job_due(j);
    bool    rank_ok = sqlite3_column_int64(row, SQ_C_rank) == rank;
    bool    due_ok = sqlite3_column_type(row, SQ_C_due_at) == SQLITE_NULL
                         ? !due : due && sqlite3_column_int64(row, SQ_C_due_at) == due;
    bool    mend = false;
    if (!rank_ok)
        mend |= WRONG(c, true, "job %" PRIu64 ": not in its place in the list of its state", j->id);
    if (!due_ok)
        mend |= WRONG(c, true, "job %" PRIu64 ": not in its place among those that will be due",
                      j->id);
    if (!mend)
        return;
    weir__sq_int(fix, 1, (int64_t)j->id);
    weir__sq_int(fix, 2, rank);
    if (due)
        weir__sq_int(fix, 3, due);
    else
        sqlite3_bind_null(fix, 3);
    weir__sq_do(c->s, fix);
    if (due)
        weir__sq_want(c->s, due);
}

static void check_active(check *c, const weir_job *j)
{
    if (c->s->env.read_only || j->state != WEIR_ACTIVE)
        return;
    if (!weir__sq_active(c->s, j->id, j->delivery) &&
        WRONG(c, true, "job %" PRIu64 ": active, but unknown to the owner", j->id))
        c->s->stale = true;         /* read anew before the next batch */
}

/* Is the text of this slot as it should be (NULL: none)? */
static bool slot_is(check *c, sqlite3_stmt *slot, uint64_t id, int at, const char *text, size_t len)
{
    weir__sq_int(slot, 1, (int64_t)(id << SQ_SLOT_BITS | (uint64_t)at));
    bool there = weir__sq_row(c->s, slot);
    bool same = !there && !text;
    if (there && text) {
        const char *has = (const char *)sqlite3_column_text(slot, 0);
        same = has && (size_t)sqlite3_column_bytes(slot, 0) == len && !memcmp(has, text, len);
    }
    sqlite3_reset(slot);
    return same;
}

static void index_anew(check *c, const weir_job *j)
{
    sq_store     *s = c->s;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_INDEX_DROP_JOB);
    weir__sq_int(st, 1, (int64_t)(j->id << SQ_SLOT_BITS));
    weir__sq_int(st, 2, (int64_t)((j->id + 1) << SQ_SLOT_BITS));
    weir__sq_do(s, st);
    weir__sq_index_data(s, j);
    if (j->error)
        weir__sq_index(s, j->id, SQ_SLOT_ERROR, j->error, strlen(j->error));
    st = prepare(c, "SELECT n, text FROM log WHERE job = ?1");
    weir__sq_int(st, 1, (int64_t)j->id);
    while (weir__sq_row(s, st))
        weir__sq_index(s, j->id, weir__sq_log_slot((uint64_t)sqlite3_column_int64(st, 0)),
                       (const char *)sqlite3_column_text(st, 1),
                       (size_t)sqlite3_column_bytes(st, 1));
    sqlite3_finalize(st);
}

static void check_search(check *c, sqlite3_stmt *slot, sqlite3_stmt *logs, const weir_job *j)
{
    weir_buf text = { 0 };
    if (!weir__search_text(&text, j->data, j->data_len, j->search_keys) || text.failed) {
        weir__buf_fini(&text);
        weir__sq_no_memory(c->s);
        return;
    }
    bool ok = slot_is(c, slot, j->id, SQ_SLOT_DATA, text.data ? text.data : "", text.len) &&
              slot_is(c, slot, j->id, SQ_SLOT_ERROR, j->error, j->error ? strlen(j->error) : 0);
    weir__buf_fini(&text);
    weir__sq_int(logs, 1, (int64_t)j->id);
    weir__sq_int(logs, 2, (int64_t)(j->id << SQ_SLOT_BITS | SQ_SLOT_LOG));
    weir__sq_int(logs, 3, (int64_t)((j->id + 1) << SQ_SLOT_BITS));
    if (weir__sq_row(c->s, logs)) {
        ok = ok && sqlite3_column_int64(logs, 0) == sqlite3_column_int64(logs, 1);
        sqlite3_reset(logs);
    }
    if (!ok && !c->s->broken &&
        WRONG(c, true, "job %" PRIu64 ": its words are not those of the search index", j->id))
        index_anew(c, j);
}

static void check_jobs(check *c)
{
    sq_store     *s = c->s;
    /* by rowid, so that the mending of other columns does not move what is walked over */
    sqlite3_stmt *all = prepare(c, "SELECT id"
#define X(name) ", " #name
                                   SQ_COLUMNS(X)
#undef X
                                   " FROM job NOT INDEXED ORDER BY id");
    sqlite3_stmt *fix = prepare(c, "UPDATE job SET rank = ?2, due_at = ?3 WHERE id = ?1");
    sqlite3_stmt *slot = prepare(c, "SELECT c0 FROM search_content WHERE id = ?1");
    sqlite3_stmt *logs = prepare(c, "SELECT (SELECT count(*) FROM log WHERE job = ?1),"
                                    " (SELECT count(*) FROM search_content WHERE id >= ?2"
                                    " AND id < ?3)");
    while (weir__sq_row(s, all)) {
        weir_job j;
        sq_type *t = weir__sq_type_of(s, sqlite3_column_int64(all, SQ_C_type));
        int      state = sqlite3_column_int(all, SQ_C_state);
        uint64_t id = (uint64_t)sqlite3_column_int64(all, SQ_C_id);
        c->report->jobs++;
        if (!t || t->id == 1)
            WRONG(c, false, "job %" PRIu64 ": of a type that there is not", id);
        if (state <= WEIR_ANY || state >= WEIR_STATES)
            WRONG(c, false, "job %" PRIu64 ": in a state that there is not (%d)", id, state);
        if (!t || t->id == 1 || state <= WEIR_ANY || state >= WEIR_STATES ||
            weir__sq_read(s, all, &j, &t))
            continue;
        if (id > s->last_id)
            WRONG(c, false, "job %" PRIu64 ": beyond the last id", id);
        c->count[t->id - 1][state]++;
        check_order(c, all, fix, &j);
        check_active(c, &j);
        if (j.search)
            check_search(c, slot, logs, &j);
    }
    sqlite3_finalize(all);
    sqlite3_finalize(fix);
    sqlite3_finalize(slot);
    sqlite3_finalize(logs);
}

/* ---- what is derived from all of them ---- */

static void check_counts(check *c)
{
    sq_store *s = c->s;
    for (size_t i = 0; i < s->types.n; i++) {
        sq_type *t = s->types.by_id[i];
        for (weir_state state = WEIR_INACTIVE; state < WEIR_STATES; state++) {
            uint64_t real = c->count[i][state];
            if (t->count[state] == real)
                continue;
            if (WRONG(c, true, "type %s: %" PRIu64 " jobs are %s, counted as %" PRIu64, t->name,
                      real, weir_state_name(state), t->count[state])) {
                t->count[state] = real;
                weir__sq_dirty(s, t);
            }
        }
    }
    if (s->env.read_only)
        return;
    size_t   pos = 0;
    uint64_t id, active = 0;
    void    *a;
    while (weir__map_next(&s->active, &pos, &id, &a))
        active++;
    uint64_t real = 0;
    for (size_t i = 0; i < s->types.n; i++)
        real += c->count[i][WEIR_ACTIVE];
    if (active > real && WRONG(c, true, "%" PRIu64 " jobs are active, the owner knows of %" PRIu64,
                               real, active))
        s->stale = true;
}

/* What was read ahead, against what waits. */
static void check_ahead(check *c, sq_type *t)
{
    sq_store     *s = c->s;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_WAITING);
    size_t        i = 0;
    bool          same = true;
    weir__sq_int(st, 1, t->id);
    weir__sq_int(st, 2, SQ_AHEAD_MAX + 1);
    while (same && weir__sq_row(s, st)) {
        if (i < t->ahead->n)
            same = t->ahead->job[i]->id == (uint64_t)sqlite3_column_int64(st, SQ_C_id);
        else
            same = !t->ahead->whole;
        i++;
    }
    sqlite3_reset(st);
    same = same && i >= t->ahead->n;
    if (!same)
        WRONG(c, true, "type %s: the jobs that are next were read ahead wrongly", t->name);
    if (!same || c->mend)
        weir__sq_ahead_drop(s, t);
}

/* Rows of other tables that belong to no job. */
static void check_orphans(check *c, const char *what, const char *count_sql, const char *mend_sql)
{
    sqlite3_stmt *st = prepare(c, count_sql);
    int64_t       n = 0;
    if (weir__sq_row(c->s, st))
        n = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    if (n && WRONG(c, true, "%" PRId64 " %s without a job", n, what))
        exec(c, mend_sql);
}

weir_code weir__sq_op_check(sq_store *s, weir_op *op)
{
    check c = { .s = s, .mend = op->u.check.mend && !s->env.read_only };
    c.report = op->u.check.report = weir__report_create();
    c.count = calloc(s->types.n, sizeof *c.count);
    if (!c.report || !c.count) {
        free(c.count);
        return weir__sq_no_memory(s);
    }
    check_file(&c);
    check_jobs(&c);
    check_counts(&c);
    for (size_t i = 0; i < s->types.n && !s->broken; i++)
        if (s->types.by_id[i]->ahead)
            check_ahead(&c, s->types.by_id[i]);
    check_orphans(&c, "log lines", "SELECT count(*) FROM log WHERE job NOT IN (SELECT id FROM job)",
                  "DELETE FROM log WHERE job NOT IN (SELECT id FROM job)");
    check_orphans(&c, "texts in the search index",
                  "SELECT count(*) FROM search_content WHERE id >> 14 NOT IN"
                  " (SELECT id FROM job WHERE search)",
                  "DELETE FROM search WHERE rowid IN (SELECT id FROM search_content WHERE id >> 14"
                  " NOT IN (SELECT id FROM job WHERE search))");
    free(c.count);
    return s->broken ? s->error.code : WEIR_OK;
}
