/* check.c - is every record as it was written, and does everything derived agree with the jobs?
 * Counts, ranks, due times, unique keys, logs, the search index, the active ones in memory, and the
 * structure of the file itself. */
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
    int64_t      now;
    uint64_t   (*count)[WEIR_STATE_COUNT];   /* by type id - 1; with room for one more type */
    uint64_t    *damaged;           /* jobs to mend, free() */
    size_t       n_damaged;
} check;

/* Note what is wrong; whether it is then mended. */
#define WRONG(c, mendable, ...)                                                                   \
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

/* False: its pages are not the written ones any more, and nothing can be checked. */
static bool check_file(check *c)
{
    weir_error err;
    if (!c->s->env.read_only && weir__sq_file_check(c->s, true, &err)) {
        WRONG(c, false, "%s", err.msg);
        if (!weir__sq_file_intact(c->s))
            return false;
    }
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
    return true;
}

/* ---- jobs ---- */

static void check_order(check *c, sqlite3_stmt *row, sqlite3_stmt *fix, const weir_job *j)
{
    int64_t rank = weir__job_rank(j), due = weir__job_due(j);
    bool    rank_ok = sqlite3_column_int64(row, SQL_C_rank) == rank;
    bool    due_ok = sqlite3_column_type(row, SQL_C_due_at) == SQLITE_NULL
                         ? !due : due && sqlite3_column_int64(row, SQL_C_due_at) == due;
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
        weir__agenda_want(&c->s->agenda, WEIR_DUE_WAITING, due);
}

static void check_active(check *c, const weir_job *j)
{
    if (c->s->env.read_only || j->state != WEIR_STATE_ACTIVE)
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

/* ---- jobs whose record does not match its checksum ---- */

static const bool is_text[SQL_C_END] = {
#define SORT_INTEGER false
#define SORT_TEXT    true
#define X(name, life, sort) [SQL_C_##name] = SORT_##sort,
    SQL_COLUMNS(X)
#undef X
};

/* Numbers are numbers, and texts are texts: what reads as the right value may be neither. */
static bool has_right_types(sqlite3_stmt *row)
{
    for (int i = 0; i < SQL_C_END; i++) {
        int  type = sqlite3_column_type(row, i);
        bool may_miss = is_text[i] || i == SQL_C_due_at;
        if (type != (is_text[i] ? SQLITE_TEXT : SQLITE_INTEGER) &&
            (!may_miss || type != SQLITE_NULL))
            return false;
    }
    bool flags = true;
#define X(m, name, kind, j, s, life, ...)                                                         \
    WEIR_IF_STORED_##life(flags = flags && (strcmp(#kind, "FLAG") != 0 ||                         \
                                            (uint64_t)sqlite3_column_int64(row, SQL_C_##name) < 2);)
    WEIR_JOB_NUMBERS(X)
#undef X
    return flags;
}

static void check_damaged(check *c, sqlite3_stmt *row, uint64_t id)
{
    sq_store *s = c->s;
    weir_job  j;
    sq_type  *t;
    bool      known = !s->broken && weir__sq_decode(s, row, &j, &t);
    if (known && !c->mend)
        c->count[t->id - 1][j.state]++;
    bool ended = known && weir__finished(j.state);
    const char *what = !c->mend ? "" : ended ? "; kept as it is" : "; made failed, not to be run";
    if (s->broken ||
        !WRONG(c, true, "job %" PRIu64 ": its record does not match its checksum%s", id, what))
        return;
    uint64_t *more = realloc(c->damaged, (c->n_damaged + 1) * sizeof *more);
    if (!more) {
        weir__sq_no_memory(s);
        return;
    }
    c->damaged = more;
    c->damaged[c->n_damaged++] = id;
}

/* Write the job again as what can be kept of it. */
static void mend_job(check *c, uint64_t id)
{
    sq_store     *s = c->s;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_GET);
    weir__sq_int(st, 1, (int64_t)id);
    if (!weir__sq_row(s, st))
        return;
    weir_job j;
    sq_type *t = weir__sq_type_of(s, sqlite3_column_int64(st, SQL_C_type));
    int64_t  state = sqlite3_column_int64(st, SQL_C_state);
    weir_buf data = { 0 };
    weir__sq_columns(st, &j);
    j.state = state > WEIR_STATE_ANY && state < WEIR_STATE_COUNT ? (weir_state)state
        : WEIR_STATE_INACTIVE;
    weir__sq_mend_job(&j, c->now, &data);
    if (!t || t->id == 1)
        t = weir__sq_type_make(s, "damaged");
    j.type = t ? t->name : "";
    weir_job *copy = data.failed ? NULL : weir__job_copy(&j);
    sqlite3_reset(st);
    weir__buf_fini(&data);
    if (!copy)
        weir__sq_no_memory(s);
    st = weir__sq_stmt(s, SQ_DELETE);
    weir__sq_int(st, 1, (int64_t)id);
    if (copy && t && !weir__sq_do(s, st) && !weir__sq_insert_complete(s, copy, t)) {
        c->count[t->id - 1][copy->state]++;
        weir__sq_dirty(s, t);
        if (copy->search)
            index_anew(c, copy);
    }
    weir_job_free(copy);
    if (weir__map_get(&s->active, id))
        weir__sq_deactivate(s, id);
    weir__map_remove(&s->damaged, id);
    for (size_t i = 0; i < s->types.n; i++)
        weir__sq_ahead_drop(s, s->types.by_id[i]);
}

static void check_lines(check *c)
{
    sqlite3_stmt *st = prepare(c, "SELECT job, n, at, text, checksum FROM log");
    sqlite3_stmt *fix = prepare(c, "UPDATE log SET checksum = ?3 WHERE job = ?1 AND n = ?2");
    while (weir__sq_row(c->s, st)) {
        int64_t     job = sqlite3_column_int64(st, 0), n = sqlite3_column_int64(st, 1);
        const char *text = (const char *)sqlite3_column_text(st, 3);
        int64_t     at = sqlite3_column_int64(st, 2);
        int64_t     sum = weir__sql_line_checksum((uint64_t)job, n, at, text,
                                                  (size_t)sqlite3_column_bytes(st, 3));
        if (sum == sqlite3_column_int64(st, 4) ||
            !WRONG(c, true, "job %" PRId64 ": line %" PRId64 " of its log does not match its "
                   "checksum", job, n))
            continue;
        weir__sq_int(fix, 1, job);
        weir__sq_int(fix, 2, n);
        weir__sq_int(fix, 3, sum);
        weir__sq_do(c->s, fix);
    }
    sqlite3_finalize(st);
    sqlite3_finalize(fix);
}

static void check_jobs(check *c)
{
    sq_store     *s = c->s;
    /* by rowid, so that the mending of other columns does not move what is walked over */
    sqlite3_stmt *all = prepare(c, "SELECT " SQL_NAMES " FROM job NOT INDEXED ORDER BY id");
    sqlite3_stmt *fix = prepare(c, "UPDATE job SET rank = ?2, due_at = ?3 WHERE id = ?1");
    sqlite3_stmt *slot = prepare(c, "SELECT c0 FROM search_content WHERE id = ?1");
    sqlite3_stmt *logs = prepare(c, "SELECT (SELECT count(*) FROM log WHERE job = ?1),"
                                    " (SELECT count(*) FROM search_content WHERE id >= ?2"
                                    " AND id < ?3)");
    while (weir__sq_row(s, all)) {
        weir_job j;
        sq_type *t;
        sql_sums  sums;
        uint64_t id = (uint64_t)sqlite3_column_int64(all, SQL_C_id);
        c->report->jobs++;
        if (!has_right_types(all) || !weir__sq_sound(s, all, &j, &t, &sums)) {
            check_damaged(c, all, id);
            continue;
        }
        if (id > s->last_id)
            WRONG(c, false, "job %" PRIu64 ": beyond the last id", id);
        c->count[t->id - 1][j.state]++;
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
        for (weir_state state = WEIR_STATE_INACTIVE; state < WEIR_STATE_COUNT; state++) {
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
        real += c->count[i][WEIR_STATE_ACTIVE];
    if (active > real && WRONG(c, true, "%" PRIu64 " jobs are active, the owner has %" PRIu64,
                               real, active))
        s->stale = true;
}

/* The jobs that were read ahead, against the jobs that wait. */
static void check_ahead(check *c, sq_type *t)
{
    sq_store     *s = c->s;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_WAITING);
    size_t        i = 0;
    bool          same = true;
    weir__sq_int(st, 1, t->id);
    weir__sq_int(st, 2, SQ_AHEAD_MAX + 1);
    while (same && weir__sq_row(s, st)) {
        if (weir__sq_is_damaged(s, (uint64_t)sqlite3_column_int64(st, SQL_C_id)))
            continue;
        if (i < t->ahead->n)
            same = t->ahead->job[i]->id == (uint64_t)sqlite3_column_int64(st, SQL_C_id);
        else
            same = !t->ahead->complete;
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

static void check_all(check *c)
{
    sq_store *s = c->s;
    if (s->log_lost && WRONG(c, true, "the log of the file was missing when it was opened: the "
                             "newest jobs and changes are gone, and their ids are given again"))
        s->log_lost = false;
    check_jobs(c);
    for (size_t i = 0; i < c->n_damaged && !s->broken; i++)
        mend_job(c, c->damaged[i]);
    check_lines(c);
    check_counts(c);
    for (size_t i = 0; i < s->types.n && !s->broken; i++)
        if (s->types.by_id[i]->ahead)
            check_ahead(c, s->types.by_id[i]);
    check_orphans(c, "log lines", "SELECT count(*) FROM log WHERE job NOT IN (SELECT id FROM job)",
                  "DELETE FROM log WHERE job NOT IN (SELECT id FROM job)");
    check_orphans(c, "leases",
                  "SELECT count(*) FROM lease WHERE job NOT IN (SELECT id FROM job"
                  " WHERE state = " SQL_ACTIVE " AND job.delivery = lease.delivery)",
                  "DELETE FROM lease WHERE job NOT IN (SELECT id FROM job"
                  " WHERE state = " SQL_ACTIVE " AND job.delivery = lease.delivery)");
    check_orphans(c, "texts in the search index",
                  "SELECT count(*) FROM search_content WHERE id >> " SQL_SLOT_BITS " NOT IN"
                  " (SELECT id FROM job WHERE search)",
                  "DELETE FROM search WHERE rowid IN (SELECT id FROM search_content"
                  " WHERE id >> " SQL_SLOT_BITS " NOT IN (SELECT id FROM job WHERE search))");
}

weir_code weir__sq_op_check(sq_store *s, weir_op *op)
{
    check c = { .s = s, .mend = op->u.check.mend && !s->env.read_only,
                .now = op->now_ms };
    c.report = op->u.check.report = weir__report_create();
    c.count = calloc(s->types.n + 1, sizeof *c.count);
    if (!c.report || !c.count) {
        free(c.count);
        return weir__sq_no_memory(s);
    }
    if (s->trouble.code || s->full_bytes)       /* does a write work now? The commit says it */
        weir__sq_try_room(s);
    if (!s->broken && check_file(&c))
        check_all(&c);
    free(c.count);
    free(c.damaged);
    return s->broken ? s->error.code : WEIR_OK;
}
