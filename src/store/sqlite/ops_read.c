/* ops_read.c - the operations that only look: get, list, logs, stats. */
#include "store/sqlite/share.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/results.h"
#include "store/answers.h"

enum { PROBE_MS = 1000 };       /* a probe after a commit that was written this recently is none */

weir_code weir__sq_op_get(sq_store *s, weir_op *op)
{
    weir_job      j;
    sq_type      *t;
    sqlite3_stmt *st;
    if (!weir__sq_get(s, op->u.get.id, &j, &t, &st))
        return s->broken ? s->error.code : weir__no_job(&op->err, op->u.get.id);
    op->u.get.job = weir__job_copy(&j);
    sqlite3_reset(st);
    return op->u.get.job ? WEIR_OK : weir__sq_no_memory(s);
}

/* ---- list: walk over places, and read the jobs that are wanted ---- */

static weir_code put(sq_store *s, weir_page *page, uint64_t id, bool ids_only)
{
    weir_job      j = { .id = id };
    sq_type      *t;
    sqlite3_stmt *st = NULL;
    if (!ids_only && !weir__sq_get(s, id, &j, &t, &st))
        return s->broken ? s->error.code : weir__sq_damaged(s, "an index names a job that is gone");
    weir_job *copy = weir__job_copy(&j);
    if (st)
        sqlite3_reset(st);
    if (!copy)
        return weir__sq_no_memory(s);
    page->job[page->n++] = copy;
    return WEIR_OK;
}

bool weir__sq_page_add(sq_store *s, weir_pager *pager, weir_cursor at, int32_t priority)
{
    weir_pager_step step = weir__pager_add(pager, at, priority);
    if (step == WEIR__PUT && put(s, pager->page, at.id, pager->q->ids_only))
        return false;
    return step != WEIR__OVER;
}

static void bind_place(sqlite3_stmt *st, const weir_query *q, const weir_cursor *after,
                       size_t limit)
{
    bool start = !after->id;
    weir__sq_int(st, 3, start ? (q->descending ? INT64_MAX : INT64_MIN) : after->rank);
    weir__sq_int(st, 4, start ? (q->descending ? INT64_MAX : 0) : (int64_t)after->id);
    weir__sq_int(st, 5, (int64_t)limit);
}

/* One statement has all that is wanted, in its order. */
static weir_code list_straight(sq_store *s, const sq_type *t, weir_pager *pager)
{
    const weir_query *q = pager->q;
    sq_sql which = q->state  ? (q->descending ? SQ_LIST_STATE_DOWN : SQ_LIST_STATE)
                   : q->type ? (q->descending ? SQ_LIST_TYPE_DOWN : SQ_LIST_TYPE)
                             : (q->descending ? SQ_LIST_ALL_DOWN : SQ_LIST_ALL);
    sqlite3_stmt *st = weir__sq_stmt(s, which);
    if (t)
        weir__sq_int(st, 1, t->id);
    if (q->state)
        weir__sq_int(st, 2, q->state);
    bind_place(st, q, &q->after, (q->by_priority ? (size_t)WEIR_MAX_LOOK : q->limit) + 1);
    while (weir__sq_row(s, st)) {
        weir_cursor at = { .rank = q->state ? sqlite3_column_int64(st, SQL_P_rank) : 0,
                           .id = (uint64_t)sqlite3_column_int64(st, SQL_P_id) };
        if (!weir__sq_page_add(s, pager, at, sqlite3_column_int(st, SQL_P_priority)))
            break;
    }
    sqlite3_reset(st);
    return s->broken ? s->error.code : WEIR_OK;
}

/* A state over all types: the streams of the types, merged by (rank, id). A stream is only its next
 * places; its statement is the same for all. It reads ahead more and more, since many types may
 * have none that come first. */
enum { MOST_AHEAD = 16 };
typedef struct head {
    const sq_type *type;
    size_t         n, next;
    struct { weir_cursor at; int32_t priority; } place[MOST_AHEAD];
} head;

/* Read the places behind `after`. False: no such jobs. */
static bool read_ahead(sq_store *s, const weir_query *q, head *h, const weir_cursor *after)
{
    sqlite3_stmt *st = weir__sq_stmt(s, q->descending ? SQ_LIST_STATE_DOWN : SQ_LIST_STATE);
    size_t        most = 2 * h->n < MOST_AHEAD ? 2 * h->n : MOST_AHEAD;
    weir__sq_int(st, 1, h->type->id);
    weir__sq_int(st, 2, q->state);
    bind_place(st, q, after, most ? most : 1);
    for (h->n = h->next = 0; weir__sq_row(s, st); h->n++) {
        h->place[h->n].at.rank = sqlite3_column_int64(st, SQL_P_rank);
        h->place[h->n].at.id = (uint64_t)sqlite3_column_int64(st, SQL_P_id);
        h->place[h->n].priority = sqlite3_column_int(st, SQL_P_priority);
    }
    return h->n > 0;
}

static bool comes_first(const head *x, const head *y, bool descending)
{
    const weir_cursor *a = &x->place[x->next].at, *b = &y->place[y->next].at;
    bool               below = a->rank != b->rank ? a->rank < b->rank : a->id < b->id;
    return below != descending;
}

static weir_code list_merged(sq_store *s, weir_pager *pager)
{
    const weir_query *q = pager->q;
    size_t            n = 0;
    head             *list = malloc(s->types.n * sizeof *list);
    if (!list)
        return weir__sq_no_memory(s);
    for (size_t i = 0; i < s->types.n; i++) {
        list[n] = (head){ .type = s->types.by_id[i] };
        if (list[n].type->count[q->state] && read_ahead(s, q, &list[n], &q->after))
            n++;
    }
    while (n && !s->broken) {
        head *best = list;
        for (size_t i = 1; i < n; i++)
            if (comes_first(&list[i], best, q->descending))
                best = &list[i];
        weir_cursor at = best->place[best->next].at;
        if (!weir__sq_page_add(s, pager, at, best->place[best->next].priority))
            break;
        if (++best->next == best->n && !read_ahead(s, q, best, &at))
            *best = list[--n];
    }
    free(list);
    return s->broken ? s->error.code : WEIR_OK;
}

weir_code weir__sq_op_list(sq_store *s, weir_op *op)
{
    const weir_query *q = &op->u.list.query;
    const sq_type    *t = q->type ? weir__sq_type(s, q->type) : NULL;
    weir_page        *page = op->u.list.page = weir__page_create(q->limit);
    weir_pager        pager = { .q = q, .page = page };
    weir_code         rc = WEIR_OK;
    if (!page)
        return weir__sq_no_memory(s);
    if (q->search)
        rc = weir__sq_search(s, op, &pager);
    else if (q->type && !t)
        rc = WEIR_OK;
    else if (q->state && !q->type)
        rc = list_merged(s, &pager);
    else
        rc = list_straight(s, t, &pager);
    if (rc) {
        weir_page_free(page);
        op->u.list.page = NULL;
    }
    return rc;
}

/* ---- logs ---- */

weir_code weir__sq_op_logs(sq_store *s, weir_op *op)
{
    weir_op_logs *l = &op->u.logs;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_EXISTS);
    weir__sq_int(st, 1, (int64_t)l->id);
    if (!weir__sq_row(s, st))
        return s->broken ? s->error.code : weir__no_job(&op->err, l->id);
    sqlite3_reset(st);
    l->lines = weir__lines_create();
    if (!l->lines)
        return weir__sq_no_memory(s);
    st = weir__sq_stmt(s, SQ_LOG_LINES);
    weir__sq_int(st, 1, (int64_t)l->id);
    weir__sq_int(st, 2, l->after > INT64_MAX ? INT64_MAX : (int64_t)l->after);
    weir__sq_int(st, 3, l->limit > INT32_MAX ? INT32_MAX : (int64_t)l->limit);
    while (weir__sq_row(s, st)) {
        const char *text = (const char *)sqlite3_column_text(st, 2);
        if (!text || !weir__lines_add(l->lines, (uint64_t)sqlite3_column_int64(st, 0),
                                      sqlite3_column_int64(st, 1), text,
                                      (size_t)sqlite3_column_bytes(st, 2))) {
            sqlite3_reset(st);
            return weir__sq_no_memory(s);
        }
    }
    return s->broken ? s->error.code : WEIR_OK;
}

/* ---- stats ---- */

static bool add_type(sq_store *s, weir_stats *stats, const sq_type *t)
{
    weir_type_stats *out = weir__stats_add(stats, t->name);
    if (!out)
        return false;
    out->paused = t->paused;
    out->settings = weir__settings_out(weir__sq_settings(s, t));
    for (int state = WEIR_STATE_INACTIVE; state < WEIR_STATE_COUNT; state++) {
        out->count[state] = t->count[state];
        out->count[WEIR_STATE_ANY] += t->count[state];
    }
    out->completed = t->completed;
    out->failed = t->failed;
    out->work_ms = t->work_ms;
    out->last_taken_at = t->last_taken_at;
    if (!t->count[WEIR_STATE_INACTIVE])
        return true;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_OLDEST);
    weir__sq_int(st, 1, t->id);
    weir__sq_int(st, 2, WEIR_STATE_INACTIVE);
    if (weir__sq_row(s, st)) {
        out->oldest_at = sqlite3_column_int64(st, 3);
        sqlite3_reset(st);
    }
    return !s->broken;
}

/* Have the commit of this batch write something, unless one did so recently. */
static weir_code probe(sq_store *s)
{
    if (weir__sq_file_check(s, true, &s->error)) {
        s->broken = true;
        return s->error.code;
    }
    if (s->trouble.code || s->full_bytes || weir__coarse_ms() >= s->wrote_ms + PROBE_MS)
        return weir__sq_try_room(s);
    return WEIR_OK;
}

/* The same for a reader, which writes nothing: could it own the file and write to it, is there any
 * room? Only the owner can find out whether it can keep a change. */
static weir_code probe_reader(const sq_store *s, weir_error *err)
{
    struct statvfs v;
    weir_code      rc = weir__sq_may_write(s->path, err);
    if (rc || weir__sq_file_owned(s) || statvfs(s->path, &v) || !v.f_blocks)
        return rc;
    if (geteuid() ? v.f_bavail : v.f_bfree)
        return WEIR_OK;
    return weir_fail(err, WEIR_EFULL, "%s: its disk is full", weir__sq_file_name(s->path));
}

weir_code weir__sq_op_stats(sq_store *s, weir_op *op)
{
    if (op->u.stats.probe && s->env.read_only && probe_reader(s, &op->err))
        return op->err.code;
    if (op->u.stats.probe && !s->env.read_only && probe(s))
        return s->error.code;
    weir_stats *stats = op->u.stats.stats = weir__stats_create();
    bool        ok = stats != NULL;
    for (size_t i = 0; ok && i < s->types.n; i++)
        if (s->types.by_name[i]->id != 1)
            ok = add_type(s, stats, s->types.by_name[i]);
    if (!ok)
        return weir__sq_no_memory(s);
    weir__stats_sum(stats);
    stats->all.paused = weir__sq_star(s)->paused;
    stats->all.settings = weir__settings_out(weir__sq_settings(s, weir__sq_star(s)));
    stats->last_id = s->last_id;
    return WEIR_OK;
}

/* ---- info ---- */

/* Blocks that only root may use count as used. */
static void take_room(weir_info *info, const char *path)
{
    struct statvfs v;
    if (statvfs(path, &v))
        return;
    info->limit_bytes = (int64_t)v.f_blocks * (int64_t)v.f_frsize;
    info->used_bytes = info->limit_bytes - (int64_t)v.f_bavail * (int64_t)v.f_frsize;
}

weir_code weir__sq_op_info(sq_store *s, weir_op *op)
{
    weir_info *info = op->u.info.info = weir__info_create("sqlite");
    if (!info)
        return weir__sq_no_memory(s);
    snprintf(info->place, sizeof info->place, "%s", s->path);
    snprintf(info->engine, sizeof info->engine, "SQLite %s", sqlite3_libversion());
    info->durability = s->env.durability ? s->env.durability : WEIR_DURABILITY_DISK;
    take_room(info, s->path);
    if (s->env.read_only) {
        weir__sq_find_out_owner(s, info);
        return WEIR_OK;
    }
    info->owner_pid = getpid();
    snprintf(info->owner, sizeof info->owner, "%s", s->name);
    info->peers = weir__sq_serve_peers(s->server);
    return WEIR_OK;
}
