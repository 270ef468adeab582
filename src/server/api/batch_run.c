/* batch_run.c - the operations of a batch, in groups: see batch_run.h. */
#include "server/api/batch_run.h"

#include <stdlib.h>
#include <string.h>

#include "op/batch.h"
#include "runtime/ops.h"
#include "server/api/api.h"
#include "server/http/inner.h"
#include "server/http/parts.h"

enum {
    FIRST = 2,              /* reads, or items of a long one, before anything is known of them */
    AT_ONCE = 64
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
    return !b->full && b->bytes + b->all.bytes < SRV_MAX_BATCH_ANSWER;
}

static void refuse(weir_op *op)
{
    weir_fail(&op->err, WEIR_ELIMIT, "%s: the answers of this batch are too large "
              "(SRV_MAX_BATCH_ANSWER), or there is no room for more; ask in another batch, or for "
              "less", weir__op_row(op)->name);
}

/* ---- long reads, step by step ---- */

static const weir_steps *steps_of(const weir_op *op)
{
    return weir__op_row(op)->steps;
}

/* The operation will be read in steps. False: it is not valid, or there is no memory. */
static bool begin_long(srv_batch_run *b, weir_op *op)
{
    size_t    *limit = steps_of(op)->limit(op);
    weir_error err;
    if (weir__op_check(op, &err)) {
        op->err = err;
        return false;
    }
    b->wanted = *limit;
    b->all = (weir_gathered){ .items = steps_of(op)->create(b->wanted) };
    *limit = b->wanted < FIRST ? b->wanted : FIRST;
    if (!b->all.items)
        weir_fail(&op->err, WEIR_ENOMEM, "out of memory");
    return b->all.items;
}

/* Is there another step? Then its limit is set. */
static bool goes_on(const srv_batch_run *b, weir_op *op)
{
    size_t fit = srv_parts_items(b->all.n, b->all.bytes), left = b->wanted - b->all.n;
    if (!b->all.more || !left || !may_read(b) ||
        (steps_of(op)->ends_early && b->all.bytes >= SRV_MAX_PAGE))
        return false;
    fit = fit < AT_ONCE ? fit : AT_ONCE;
    *steps_of(op)->limit(op) = fit < left ? fit : left;
    return true;
}

/* All steps are done, or one failed. */
static void end_long(srv_batch_run *b, weir_op *op)
{
    bool cut_off = b->all.more && b->all.n < b->wanted && !steps_of(op)->ends_early;
    steps_of(op)->give(op, b->all.items);
    if (op->err.code || cut_off)
        weir__op_row(op)->release(op);
    if (!op->err.code && cut_off)
        refuse(op);
    if (op->err.code)
        weir__op_row(op)->clear(op);
    b->all = (weir_gathered){ 0 };
    b->wanted = 0;
}

/* One step of a long read is done. True: there is another. */
static bool gather(srv_request *r, srv_batch_run *b, weir_op *op)
{
    if (!b->wanted)
        return false;
    count_room(r, b, b->out.len + b->all.bytes);
    if (!op->err.code) {
        bool ok = steps_of(op)->gather(op, &b->all);
        weir__op_free(op);
        if (!ok)
            weir_fail(&op->err, WEIR_ENOMEM, "out of memory");
        else if (goes_on(b, op))
            return true;
    }
    end_long(b, op);
    return false;
}

/* ---- groups ---- */

static bool is_list(const weir_op *op)
{
    return !op->err.code && op->kind == WEIR_OP_LIST;
}

/* Its answer is what the store has, not what the batch brought: so it is counted. */
static bool is_read(const weir_op *op)
{
    return !op->err.code && !weir__op_writes(op);
}

/* A token of some types sees what is of these. */
static void hide_other_types(const srv_request *r, weir_op *op)
{
    if (op->err.code || srv_own_answer(r, op))
        return;
    weir__op_free(op);
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
    weir_op     *op = &b->op[b->at];
    weir_code    rc;
    if (is_list(op))
        rc = weir_list_async(srv_queue(r), &op->u.list.query, &op->u.list.page, &f, &err);
    else
        rc = weir__ops_run_async(srv_queue(r), op, b->end - b->at, &f, &err);
    srv_await(r, rc, &err, f, group_done);
}

static size_t reads_at_once(const srv_batch_run *b)
{
    size_t fit = b->reads ? srv_parts_items(b->reads, b->bytes) : FIRST;
    return fit < AT_ONCE ? fit : AT_ONCE;
}

/* A long read is a group of its own, as is each list: it may take several operations. */
static void next_group(srv_request *r, srv_batch_run *b)
{
    size_t reads = 0, most = reads_at_once(b);
    for (b->end = b->at; b->end < b->n && reads <= most; b->end++) {
        weir_op *op = &b->op[b->end];
        if (is_read(op) && !may_read(b))
            refuse(op);
        if (!is_read(op))
            continue;
        if (steps_of(op)->limit(op) || is_list(op)) {
            if (b->end > b->at)
                break;
            b->end += !steps_of(op)->limit(op) || begin_long(b, op);
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
