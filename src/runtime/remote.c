/* remote.c - the calls of remote.h: work on jobs by id and delivery, for workers elsewhere. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "core/job.h"
#include "runtime/group.h"
#include "runtime/trace.h"

/* ---- take ---- */

weir_op_take weir__taking(weir_queue *q, const weir_taking *what, weir_job **jobs)
{
    size_t n_types = 0;
    while (what->types && what->types[n_types])
        n_types++;
    return (weir_op_take){ .types = what->types, .n_types = n_types, .n = what->n,
                           .lease_ms = what->lease_ms,
                           .worker = what->worker ? what->worker : q->name,
                           .when = what->when, .busy = what->busy,
                           .jobs = jobs };
}

/* Move the jobs that were taken to the caller's `out`; NULL: no caller gets them, and their leases
 * will run out. Returns how many came there. */
static size_t give_jobs(weir_queue *q, const weir_op_take *take, weir_job **out)
{
    for (size_t i = 0; out && weir__trace_on() && i < take->n_jobs; i++)
        weir__trace_taken(q, take->jobs[i]);
    if (out && out != take->jobs)
        memcpy(out, take->jobs, take->n_jobs * sizeof *out);
    for (size_t i = 0; !out && i < take->n_jobs; i++)
        weir_job_free(take->jobs[i]);
    return out ? take->n_jobs : 0;
}

static void give_taken(weir_queue *q, weir_op *op, const weir_reply *to)
{
    size_t n = op->err.code ? 0 : give_jobs(q, &op->u.take, to->out);
    if (to->n_out)
        *to->n_out = n;
    if (to->waits_out)
        *to->waits_out = !op->err.code && op->u.take.suspect_waits;
}

weir_code weir__take_remote(weir_queue *q, const weir_taking *what, weir_job **out, size_t *n_out,
                            weir_error *err)
{
    weir_op    op = { .kind = WEIR_OP_TAKE, .u.take = weir__taking(q, what, out) };
    weir_reply to = { .give = give_taken, .out = out, .n_out = n_out,
                      .waits_out = what->suspect_waits };
    return weir__call(q, &op, &to, err);
}

weir_code weir__take_remote_async(weir_queue *q, const weir_taking *what, weir_job **out,
                                  size_t *n_out, weir_future **f, weir_error *err)
{
    weir_op    op = { .kind = WEIR_OP_TAKE, .u.take = weir__taking(q, what, NULL) };
    weir_reply to = { .give = give_taken, .out = out, .n_out = n_out,
                      .waits_out = what->suspect_waits };
    return weir__call_async(q, &op, &to, f, err);
}

/* ---- finish ---- */

/* The n operations under one future, in whose bytes they are. */
typedef struct finishing {
    weir_group      group;
    weir_ended     *out;            /* the caller's */
    void           *copies;         /* of what the operations borrow */
    weir_job     ***jobs;           /* the caller's, of each */
    weir_group_one  one[];          /* n, and behind them what `jobs` points to */
} finishing;

#define bad_ending(err, code, i, field, ...)                                                      \
    (weir__fail_field(err, code, field, __VA_ARGS__),                                             \
     weir__fail_inside(err, code, "endings[%zu]", i))

static weir_code check_endings(const weir_ending *endings, size_t n, weir_error *err)
{
    size_t bytes = 0, jobs = 0;
    if (n > WEIR_MAX_ADD)
        return weir__fail_field(err, WEIR_ELIMIT, "endings", "%zu, at most %d (WEIR_MAX_ADD)", n,
                                WEIR_MAX_ADD);
    for (size_t i = 0; i < n; i++) {
        const weir_ending *e = &endings[i];
        size_t             more = e->next ? e->next->n : 0;
        if (WEIR__CHECK_RESERVED(e, err))
            return weir__fail_inside(err, WEIR_EINVAL, "endings[%zu]", i);
        if (e->next && WEIR__CHECK_RESERVED(e->next, err))
            return weir__fail_inside(err, WEIR_EINVAL, "endings[%zu].next", i);
        if (e->text)
            bytes += e->len ? e->len : strlen(e->text);
        if (bytes > WEIR_MAX_ADD_BYTES)
            return bad_ending(err, WEIR_ELIMIT, i, "text", "more than %d bytes together "
                              "(WEIR_MAX_ADD_BYTES)", WEIR_MAX_ADD_BYTES);
        if (more > WEIR_MAX_ADD || (jobs += more) > WEIR_MAX_ADD)
            return bad_ending(err, WEIR_ELIMIT, i, "next", "more than %d jobs together "
                              "(WEIR_MAX_ADD)", WEIR_MAX_ADD);
        if (more && !e->jobs)
            return bad_ending(err, WEIR_EINVAL, i, "jobs", "missing");
    }
    return WEIR_OK;
}

static void fill(void *ctx, bool wanted)
{
    finishing *all = ctx;
    wanted = wanted && all->out;
    for (size_t i = 0; i < all->group.n; i++) {
        const weir_op *op = &all->one[i].ticket.op;
        weir_ended     none = { .err.code = op->err.code };
        weir_ended    *out = wanted ? &all->out[i] : &none;
        if (op->err.code) {
            *out = (weir_ended){ .err = op->err };
            continue;
        }
        if (weir__trace_on())
            weir__trace_finished(all->group.q, &op->u.finish);
        out->err.code = WEIR_OK;
        out->err.msg[0] = '\0';
        out->state = op->u.finish.state;
        out->n_jobs = op->u.finish.next.n
                          ? give_jobs(all->group.q, &op->u.finish.next,
                                      wanted ? all->jobs[i] : NULL)
                          : 0;
        out->suspect_waits = op->u.finish.next.suspect_waits;
    }
    free(all->copies);
}

/* Make the operations; an invalid one has its error. */
static void prepare(weir_queue *q, finishing *all, const weir_ending *endings)
{
    for (size_t i = 0; i < all->group.n; i++) {
        const weir_ending *e = &endings[i];
        weir_op           *op = &all->one[i].ticket.op;
        all->jobs[i] = e->jobs;
        *op = (weir_op){ .kind = WEIR_OP_FINISH, .u.finish = {
            .id = e->id, .delivery = e->delivery, .outcome = e->outcome, .text = e->text,
            .len = e->len, .delay_ms = e->delay_ms } };
        if (e->next)
            op->u.finish.next = weir__taking(q, e->next, NULL);
        weir__op_check(op, &op->err);
    }
}

/* Copy what they borrow, into one block. False: out of memory. */
static bool copy(finishing *all)
{
    size_t size = 0;
    for (size_t i = 0; i < all->group.n; i++) {
        if (!all->one[i].ticket.op.err.code)
            size += weir__op_copy_size(&all->one[i].ticket.op);
    }
    char *at = all->copies = malloc(size ? size : 1);
    for (size_t i = 0; at && i < all->group.n; i++) {
        if (!all->one[i].ticket.op.err.code)
            at += weir__op_copy(&all->one[i].ticket.op, at);
    }
    return at;
}

static weir_code submit(weir_queue *q, const weir_ending *endings, size_t n, weir_ended *out,
                        weir_future **f, weir_error *err)
{
    size_t    size = sizeof(finishing) + n * (sizeof(weir_group_one) + sizeof(weir_job **));
    weir_code rc = check_endings(endings, n, err);
    if (!rc && weir__batcher_closed(weir__queue_batcher(q, WEIR_OP_FINISH)))
        rc = weir_fail(err, WEIR_ECLOSED, "the queue is closed");
    if (!rc)
        rc = weir__future_create(q, f, size, NULL, err);
    if (rc)
        return rc;
    finishing *all = weir__future_bytes(*f);
    weir__group_init(&all->group, q, *f, all->one, n);
    all->out = out;
    all->jobs = (weir_job ***)(all->one + n);
    prepare(q, all, endings);
    if (copy(all)) {
        weir__group_start(&all->group, fill, all);
        return WEIR_OK;
    }
    weir__future_unref(*f);
    weir__future_unref(*f);
    *f = NULL;
    return weir_fail(err, WEIR_ENOMEM, "out of memory");
}

weir_code weir_finish_async(weir_queue *q, const weir_ending *endings, size_t n, weir_ended *out,
                            weir_future **f, weir_error *err)
{
    weir_future *own_f = NULL;
    weir_error   why;
    weir_code    rc = submit(q, endings, n, out, &own_f, &why);
    for (size_t i = 0; rc && out && i < n; i++)
        out[i] = (weir_ended){ .err = why };
    if (rc && err)
        *err = why;
    if (f)
        *f = own_f;
    else
        weir_future_free(own_f);
    return rc;
}

weir_code weir_finish(weir_queue *q, const weir_ending *endings, size_t n, weir_ended *out,
                      weir_error *err)
{
    weir_future *f;
    weir_code    rc = weir_finish_async(q, endings, n, out, &f, err);
    if (!rc) {
        rc = weir_future_wait(f, WEIR_FOREVER, err);
        weir_future_free(f);
    }
    return rc;
}

/* ---- renew ---- */

static void give_renewed(weir_queue *q, weir_op *op, const weir_reply *to)
{
    (void)q;
    weir_renewed *out = to->out;
    for (size_t i = 0; out && i < op->u.renew.n; i++) {
        const weir_renewal *it = &op->u.renew.items[i];
        if (op->err.code)
            out[i].err = op->err;
        else if (it->code)
            weir_fail(&out[i].err, it->code, "job %" PRIu64 ": delivery %" PRIu32 " is over: %s",
                      it->id, it->delivery, weir_code_text(it->code));
        else
            out[i].err.code = WEIR_OK, out[i].err.msg[0] = out[i].err.field[0] = '\0';
    }
}

/* The operation for n leases. Its items are the caller's to free. */
static weir_code op_renew(const weir_lease *leases, size_t n, weir_op *op, weir_error *err)
{
    *op = (weir_op){ .kind = WEIR_OP_RENEW, .u.renew.n = n };
    if (n > WEIR_MAX_ADD)
        return weir__fail_field(err, WEIR_ELIMIT, "leases", "%zu, at most %d (WEIR_MAX_ADD)", n,
                                WEIR_MAX_ADD);
    op->u.renew.items = malloc((n ? n : 1) * sizeof *op->u.renew.items);
    if (!op->u.renew.items)
        return weir_fail(err, WEIR_ENOMEM, "renew: out of memory");
    weir_code rc = WEIR_OK;
    for (size_t i = 0; i < n && !rc; i++) {
        const weir_lease *l = &leases[i];
        op->u.renew.items[i] = (weir_renewal){ .id = l->id, .delivery = l->delivery,
                                               .lease_ms = l->lease_ms };
        rc = WEIR__CHECK_RESERVED(l, err);
        if (!rc)
            rc = weir__ms_check(l->lease_ms, "lease_ms", err);
        if (rc)
            weir__fail_inside(err, rc, "leases[%zu]", i);
    }
    return rc;
}

/* `f` is NULL for the plain call. */
static weir_code renew(weir_queue *q, const weir_lease *leases, size_t n, weir_renewed *out,
                       weir_future **f, weir_error *err)
{
    weir_op    op;
    weir_error why;
    weir_reply to = { .give = give_renewed, .out = out };
    weir_code  rc = op_renew(leases, n, &op, &why);
    if (!rc)
        rc = f ? weir__call_async(q, &op, &to, f, &why) : weir__call(q, &op, &to, &why);
    free(op.u.renew.items);
    for (size_t i = 0; rc && out && i < n; i++)
        out[i].err = why;
    if (rc && err)
        *err = why;
    return rc;
}

weir_code weir_renew(weir_queue *q, const weir_lease *leases, size_t n, weir_renewed *out,
                     weir_error *err)
{
    return renew(q, leases, n, out, NULL, err);
}

weir_code weir_renew_async(weir_queue *q, const weir_lease *leases, size_t n, weir_renewed *out,
                           weir_future **f, weir_error *err)
{
    weir_future *made = NULL;
    weir_code    rc = renew(q, leases, n, out, &made, err);
    if (f)
        *f = made;
    else
        weir_future_free(made);
    return rc;
}

/* ---- progress ---- */

static weir_op op_progress(uint64_t id, uint32_t delivery, int32_t percent, const char *data,
                           size_t len)
{
    return (weir_op){ .kind = WEIR_OP_PROGRESS, .u.progress = {
        .id = id, .delivery = delivery, .percent = percent, .data = data, .len = len } };
}

weir_code weir_progress(weir_queue *q, uint64_t id, uint32_t delivery, int32_t percent,
                        const char *data, size_t len, weir_error *err)
{
    weir_op op = op_progress(id, delivery, percent, data, len);
    return weir__call(q, &op, NULL, err);
}

weir_code weir_progress_async(weir_queue *q, uint64_t id, uint32_t delivery, int32_t percent,
                              const char *data, size_t len, weir_future **f, weir_error *err)
{
    weir_op op = op_progress(id, delivery, percent, data, len);
    return weir__call_async(q, &op, NULL, f, err);
}

/* ---- tick ---- */

/* The store says only once when the next TICK is due: pass it to the timer, too. */
static void give_tick(weir_queue *q, weir_op *op, const weir_reply *to)
{
    const weir_op_tick *tick = &op->u.tick;
    if (to->n_out)
        *to->n_out = op->err.code ? 0 : tick->changed;
    if (to->at_out)
        *to->at_out = op->err.code ? 0 : tick->next_at;
    if (!op->err.code)
        weir__timer_set(&q->timer, &q->tick, weir__queue_steady_of(q, tick->next_at));
}

weir_code weir_tick(weir_queue *q, size_t limit, size_t *changed, int64_t *next_at, weir_error *err)
{
    weir_op    op = { .kind = WEIR_OP_TICK, .u.tick = { .limit = limit } };
    weir_reply to = { .give = give_tick, .n_out = changed, .at_out = next_at };
    return weir__call(q, &op, &to, err);
}

weir_code weir_tick_async(weir_queue *q, size_t limit, size_t *changed, int64_t *next_at,
                          weir_future **f, weir_error *err)
{
    weir_op    op = { .kind = WEIR_OP_TICK, .u.tick = { .limit = limit } };
    weir_reply to = { .give = give_tick, .n_out = changed, .at_out = next_at };
    return weir__call_async(q, &op, &to, f, err);
}
