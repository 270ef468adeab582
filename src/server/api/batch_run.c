/* batch_run.c - the operations of a batch, in groups: see batch_run.h. */
#include "server/api/batch_run.h"

#include <stdlib.h>
#include <string.h>

#include "core/results.h"
#include "op/batch.h"
#include "runtime/ops.h"
#include "server/api/api.h"
#include "server/http/inner.h"
#include "server/http/parts.h"

enum {
    FIRST = 2,              /* reads, or items of a long one, before anything is known of them */
    AT_ONCE = 64,
    DEFAULT_JOBS = 100      /* of a LIST without a limit */
};

/* ---- room ---- */

static void count_room(srv_request *r, srv_batch_run *b, size_t bytes)
{
    if (bytes <= b->room)
        return;
    if (!srv_share_room(r, bytes - b->room)) {
        b->full = true;
        return;
    }
    b->room = bytes;
}

static bool may_read(const srv_batch_run *b)
{
    return !b->full && b->bytes + b->got_bytes < SRV_MAX_BATCH_ANSWER;
}

static void refuse(weir_op *op)
{
    weir_fail(&op->err, WEIR_ELIMIT, "%s: the answers of this batch are too large "
              "(SRV_MAX_BATCH_ANSWER), or there is no room for more; ask in another batch, or for "
              "less", weir__op_row(op)->name);
}

/* ---- long reads: LIST, LOGS, SCHEDULES ---- */

static size_t *limit_of(weir_op *op)
{
    switch (op->kind) {
    case WEIR_OP_LIST:      return op->u.list.query.ids_only ? NULL : &op->u.list.query.limit;
    case WEIR_OP_LOGS:      return &op->u.logs.limit;
    case WEIR_OP_SCHEDULES: return op->u.schedules.name || op->u.schedules.due
                                       ? NULL : &op->u.schedules.limit;
    default:                return NULL;
    }
}

/* The operation will be read in steps. False: it is not valid, or there is no memory. */
static bool begin_long(srv_batch_run *b, weir_op *op)
{
    size_t *limit = limit_of(op);
    if (*limit > WEIR_MAX_PAGE)
        return true;                        /* it will be refused for that */
    b->wanted = *limit ? *limit : op->kind == WEIR_OP_LIST ? DEFAULT_JOBS : WEIR_MAX_PAGE;
    b->got = b->got_bytes = 0;
    *limit = b->wanted < FIRST ? b->wanted : FIRST;
    if (op->kind == WEIR_OP_LIST && (b->page = weir__page_create(b->wanted)))
        return true;
    if (op->kind == WEIR_OP_LOGS && (b->lines = weir__lines_create()))
        return true;
    if (op->kind == WEIR_OP_SCHEDULES && (b->rows = weir__rows_create(b->wanted)))
        return true;
    weir_fail(&op->err, WEIR_ENOMEM, "out of memory");
    return false;
}

static void forget_gathered(srv_batch_run *b)
{
    weir_page_free(b->page);
    weir_lines_free(b->lines);
    weir__rows_free(b->rows);
    b->page = NULL;
    b->lines = NULL;
    b->rows = NULL;
    b->wanted = b->got = b->got_bytes = 0;
}

/* Is there another step? Then its limit is set. */
static bool goes_on(const srv_batch_run *b, size_t *limit)
{
    size_t fit = srv_parts_items(b->got, b->got_bytes), left = b->wanted - b->got;
    if (!left || !may_read(b))
        return false;
    *limit = fit < AT_ONCE ? fit : AT_ONCE;
    if (*limit > left)
        *limit = left;
    return true;
}

static bool gather_jobs(srv_batch_run *b, weir_op *op)
{
    weir_query *q = &op->u.list.query;
    weir_page  *page = op->u.list.page, *all = b->page;
    bool        step = page->more && page->n == q->limit;
    for (size_t i = 0; i < page->n; i++) {
        weir_job *job = all->job[all->n++] = page->job[i];
        b->got_bytes += sizeof *job + job->data_len + job->result_len + job->progress_data_len;
    }
    b->got += page->n;
    page->n = 0;
    q->after = all->next = page->next;
    all->more = page->more;
    weir__op_free(op);
    if (step && b->got_bytes < SRV_MAX_PAGE && goes_on(b, &q->limit))
        return true;
    op->u.list.page = all;
    b->page = NULL;
    return false;
}

/* All that was asked for was read, or a page of it cannot end early. */
static void end_whole(srv_batch_run *b, weir_op *op, bool more, bool ok)
{
    if (!ok)
        weir_fail(&op->err, WEIR_ENOMEM, "out of memory");
    else if (more && b->got < b->wanted)
        refuse(op);
}

static bool gather_lines(srv_batch_run *b, weir_op *op)
{
    weir_op_logs *l = &op->u.logs;
    size_t        n = l->lines->n;
    bool          ok = true, more = n == l->limit;
    for (size_t i = 0; ok && i < n; i++) {
        const weir_line *line = &l->lines->line[i];
        size_t           len = strlen(line->text);
        ok = weir__lines_add(b->lines, line->n, line->at, line->text, len);
        b->got_bytes += sizeof *line + len;
        l->after = line->n;
    }
    b->got += n;
    weir__op_free(op);
    if (ok && more && goes_on(b, &l->limit))
        return true;
    end_whole(b, op, more, ok);
    if (op->err.code)
        return false;
    l->lines = b->lines;
    b->lines = NULL;
    return false;
}

static bool gather_rows(srv_batch_run *b, weir_op *op)
{
    weir_op_schedules *s = &op->u.schedules;
    size_t             n = s->rows->n;
    bool               ok = true, more = n == s->limit;
    for (size_t i = 0; ok && i < n; i++) {
        const weir_schedule_row *row = &s->rows->row[i];
        ok = weir__rows_add(b->rows, row, strlen(row->name));
        b->got_bytes += sizeof *row + row->len;
    }
    b->got += n;
    weir__op_free(op);
    if (ok && n)
        s->after = b->rows->row[b->rows->n - 1].name;
    if (ok && more && goes_on(b, &s->limit))
        return true;
    end_whole(b, op, more, ok);
    if (op->err.code)
        return false;
    s->rows = b->rows;
    b->rows = NULL;
    return false;
}

/* One step of a long read is done. True: there is another. */
static bool gather(srv_request *r, srv_batch_run *b, weir_op *op)
{
    bool more = false;
    if (!b->wanted)
        return false;
    count_room(r, b, b->out.len + b->got_bytes);
    if (!op->err.code)
        more = op->kind == WEIR_OP_LIST   ? gather_jobs(b, op)
               : op->kind == WEIR_OP_LOGS ? gather_lines(b, op)
                                          : gather_rows(b, op);
    if (!more)
        forget_gathered(b);
    return more;
}

/* ---- groups ---- */

/* Its answer is what the store has, not what the batch brought: so it is counted. */
static bool is_read(const weir_op *op)
{
    return !op->err.code && !weir__op_writes(op);
}

/* A token of some types sees their numbers alone. */
static void hide_other_types(const srv_request *r, weir_op *op)
{
    if (*r->who.types && op->kind == WEIR_OP_STATS && !op->err.code &&
        !srv_own_stats(r, &op->u.stats.stats))
        weir_fail(&op->err, WEIR_ENOMEM, "out of memory");
}

static void next_group(srv_request *r, srv_batch_run *b);
static void run_group(srv_request *r, srv_batch_run *b);

static void group_done(srv_request *r, weir_code code, const weir_error *err)
{
    srv_batch_run *b = r->state;
    for (size_t i = b->at; code && i < b->end; i++)
        b->op[i].err = *err;
    if (gather(r, b, &b->op[b->at])) {
        run_group(r, b);
        return;
    }
    for (; b->at < b->end; b->at++) {
        weir_op *op = &b->op[b->at];
        bool     read = is_read(op);
        size_t   before = b->out.len;
        hide_other_types(r, op);
        weir__batch_answer(&b->out, op);
        if (!read)
            continue;
        weir__op_free(op);
        b->reads++;
        b->bytes += b->out.len - before;
    }
    if (b->reads)
        count_room(r, b, b->out.len);
    next_group(r, b);
}

static void run_group(srv_request *r, srv_batch_run *b)
{
    weir_error   err;
    weir_future *f = NULL;
    weir_code    rc = weir__ops_run_async(srv_queue(r), &b->op[b->at], b->end - b->at, &f, &err);
    srv_await(r, rc, &err, f, group_done);
}

static size_t reads_at_once(const srv_batch_run *b)
{
    size_t fit = b->reads ? srv_parts_items(b->reads, b->bytes) : FIRST;
    return fit < AT_ONCE ? fit : AT_ONCE;
}

/* A long read is a group of its own. */
static void next_group(srv_request *r, srv_batch_run *b)
{
    size_t reads = 0, most = reads_at_once(b);
    for (b->end = b->at; b->end < b->n && reads <= most; b->end++) {
        weir_op *op = &b->op[b->end];
        if (is_read(op) && !may_read(b))
            refuse(op);
        if (!is_read(op))
            continue;
        if (limit_of(op)) {
            if (b->end > b->at)
                break;
            b->end += begin_long(b, op);
            break;
        }
        if (reads++ == most)
            break;
    }
    if (b->end > b->at) {
        run_group(r, b);
    } else if (b->at < b->n) {              /* a long one could not begin */
        b->end = b->at + 1;
        group_done(r, WEIR_OK, NULL);
    } else {
        srv_share_room_end(r, b->room);
        b->room = 0;
        b->answered(r);
    }
}

void srv_batch_run_start(srv_request *r, srv_batch_run *b)
{
    size_t reads = 0, others = b->begun;
    for (size_t i = 0; i < b->n; i++) {
        if (is_read(&b->op[i]))
            reads++;
        else if (!b->op[i].err.code)
            others++;
    }
    size_t least = reads <= FIRST ? SRV_FREE_ANSWER : SRV_PAGE_PART;
    weir_buf out = b->out;                  /* b is gone once the request is answered */
    if (reads && others) {
        count_room(r, b, least);
    } else if (reads && !srv_share_room_or_reply(r, least)) {
        weir__buf_fini(&out);
        return;
    } else if (reads) {
        b->room = least;
    }
    next_group(r, b);
}
