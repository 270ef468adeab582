/* queue.c - opening and closing a queue, and callbacks of the store: see queue.h. */
#include "runtime/queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "runtime/delivery.h"
#include "runtime/ops.h"
#include "runtime/pool.h"

void weir__queue_ref(weir_queue *q)
{
    atomic_fetch_add(&q->refs, 1);
}

void weir__queue_unref(weir_queue *q)
{
    if (atomic_fetch_sub(&q->refs, 1) != 1)
        return;
    weir__firer_fini(&q->firer);
    weir__timer_fini(&q->timer);
    for (int i = 0; i < WEIR_LANE_COUNT; i++)
        weir__batcher_fini(&q->batcher[i]);
    weir__events_fini(&q->events);
    pthread_mutex_destroy(&q->want_lock);
    pthread_mutex_destroy(&q->pools.lock);
    pthread_mutex_destroy(&q->deliveries.lock);
    pthread_mutex_destroy(&q->gate.lock);
    free(q);
}

/* A clock of the user's is asked without any lock. */
static void read_clock(void *ctx, int64_t *now_ms, int64_t *steady_ms)
{
    weir_queue *q = ctx;
    if (!q->now) {
        weir__clock_read(now_ms, steady_ms);
        return;
    }
    *now_ms = q->now(q->now_ctx);
    *steady_ms = q->steady ? q->steady(q->now_ctx) : *now_ms;
}

int64_t weir_now(weir_queue *q)
{
    int64_t now, steady;
    read_clock(q, &now, &steady);
    return now;
}

int64_t weir__queue_steady(weir_queue *q)
{
    int64_t now, steady;
    if (!q->now)
        return weir__steady_ms();
    read_clock(q, &now, &steady);
    return steady;
}

int64_t weir__queue_steady_of(weir_queue *q, int64_t at_ms)
{
    int64_t now, steady;
    if (at_ms == INT64_MIN || at_ms == INT64_MAX)
        return at_ms;
    read_clock(q, &now, &steady);
    return at_ms - now + steady;
}

static int64_t queue_now(void *ctx)
{
    return weir_now(ctx);
}

void weir_wake(weir_queue *q)
{
    weir__timer_wake(&q->timer);
}

weir_code weir__queue_run(weir_queue *q, weir_ticket *t, weir_error *err)
{
    t->op.err.code = WEIR_OK;
    weir_code rc = weir__op_check(&t->op, &t->op.err);
    if (!rc && q->objects_only)
        rc = weir__op_check_objects(&t->op, &t->op.err);
    if (!rc)
        rc = weir__batcher_run(weir__queue_batcher(q, t->op.kind), t);
    if (rc && err)
        *err = t->op.err;
    return rc;
}

void weir_get_metrics(weir_queue *q, weir_metrics *out)
{
    *out = (weir_metrics){ 0 };
    for (unsigned i = 0; i < q->lanes; i++)
        weir__batcher_metrics(&q->batcher[i], out);
}

void weir__queue_want(weir_queue *q, uint32_t what)
{
    pthread_mutex_lock(&q->want_lock);
    if (q->store && q->store->ops->want)
        q->store->ops->want(q->store, what);
    pthread_mutex_unlock(&q->want_lock);
}

int weir_guard_fd(weir_queue *q)
{
    pthread_mutex_lock(&q->want_lock);
    int fd = q->store && q->store->ops->guard_fd ? q->store->ops->guard_fd(q->store) : -1;
    pthread_mutex_unlock(&q->want_lock);
    return fd;
}

weir_code weir_listen(weir_queue *q, const weir_filter *filter, weir_event_fn *fn, void *ctx,
                      weir_listener **out, weir_error *err)
{
    weir__queue_want(q, filter && filter->events ? filter->events : WEIR_WANT_EVENTS);
    return weir__events_listen(&q->events, filter, fn, NULL, ctx, out, err);
}

/* ---- callbacks of the store ---- */

static void on_events(void *ctx, const weir_event *events, size_t n)
{
    weir_queue *q = ctx;
    for (size_t i = 0; i < n;) {
        const weir_event *ev = &events[i++];
        switch (ev->kind) {
        case WEIR_EVENT_ENQUEUE: {
            uint32_t same = 1;      /* many of one type are one hint */
            for (; i < n && events[i].kind == WEIR_EVENT_ENQUEUE && events[i].type == ev->type; i++)
                same++;
            weir__pools_hint(q, ev->type, same);
            break;
        }
        case WEIR_EVENT_RESUME:
            weir__pools_hint(q, NULL, 0);
            break;
        case WEIR_EVENT_CANCELLED:
        case WEIR_EVENT_STALLED:
        case WEIR_EVENT_TTL_EXCEEDED:
        case WEIR_EVENT_REMOVE:
            if (ev->delivery)
                weir__deliveries_revoke(q, ev->id, ev->delivery);
            break;
        default:
            break;
        }
    }
    weir__events_emit(&q->events, events, n);
}

static void on_due(void *ctx, int64_t at_ms)
{
    weir_queue *q = ctx;
    weir__timer_set(&q->timer, &q->tick, weir__queue_steady_of(q, at_ms));
}

static void on_lost(void *ctx)
{
    weir_queue *q = ctx;
    weir__pools_hint(q, NULL, 0);
    weir__timer_set(&q->timer, &q->tick, INT64_MIN);
    weir__timer_set(&q->timer, &q->renew, INT64_MIN);      /* a new owner gets the jobs that we
                                                              have */
    weir__events_lost(&q->events, weir_now(q));
}

/* Operations of other processes that work through this one. Operations that are refused here keep
 * their place but are not run. */
static void on_run(void *ctx, weir_op *const *ops, size_t n)
{
    weir_queue *q = ctx;
    weir_op    *some[WEIR_MAX_BATCH];
    for (size_t i = 0, kept = 0; i < n; i++) {
        ops[i]->err.code = WEIR_OK;
        if (!weir__ops_check(q, ops[i], &ops[i]->err))
            some[kept++] = ops[i];
        if (kept && (kept == WEIR_MAX_BATCH || i + 1 == n)) {
            weir__batcher_run_all(&q->batcher[0], some, kept);
            kept = 0;
        }
    }
    const weir_error *trouble = NULL;
    for (size_t i = 0; i < n; i++) {
        if (ops[i]->kind == WEIR_OP_TICK && !ops[i]->err.code)      /* it is not said again */
            on_due(q, ops[i]->u.tick.next_at);
        if (weir_code_may_retry(ops[i]->err.code))
            trouble = &ops[i]->err;
    }
    if (trouble)                        /* of the file, which is ours */
        weir__events_trouble(&q->events, weir_now(q), trouble);
}

/* ---- what the timer runs ---- */

static int64_t tend_pools(weir_queue *q, void *ctx)
{
    (void)ctx;
    return weir__pools_tend(q);
}

static int64_t renew_leases(weir_queue *q, void *ctx)
{
    (void)ctx;
    return weir__deliveries_renew(q);
}

static int64_t tick(weir_queue *q, void *ctx)
{
    (void)ctx;
    weir_ticket ticket = { .op = { .kind = WEIR_OP_TICK, .u.tick = { .limit = WEIR_TICK_LIMIT } } };
    weir_error err;
    weir_code rc = weir__queue_run(q, &ticket, &err);
    if (!rc && ticket.op.u.tick.schedules_due && !q->server_fires)
        rc = weir__firer_wake(q, &err);         /* the store says when the next one is due */
    if (!rc)
        return weir__queue_steady_of(q, ticket.op.u.tick.next_at);
    if (rc != WEIR_ECLOSED)
        weir__events_trouble(&q->events, weir_now(q), &err);
    return weir__queue_steady(q) + WEIR_TICK_RETRY_MS;
}

static void add_timers(weir_queue *q)
{
    q->tend = (weir_timer_entry){ .run = tend_pools };
    q->renew = (weir_timer_entry){ .run = renew_leases };
    q->tick = (weir_timer_entry){ .run = tick, .on_clock_set = true };
    weir__timer_add(&q->timer, &q->tend);
    weir__timer_add(&q->timer, &q->renew);
    weir__timer_add(&q->timer, &q->tick);
}

/* ---- opening and closing ---- */

static void set_names(weir_queue *q, const char *program)
{
    char host[256] = "localhost";
    gethostname(host, sizeof host - 1);
    snprintf(q->name, sizeof q->name, "%.40s:%d", host, (int)getpid());
    snprintf(q->program, sizeof q->program, "%s",
             program ? program : program_invocation_short_name);
}

static weir_code start(weir_queue *q, weir_error *err)
{
    weir_code rc = WEIR_OK;
    q->lanes = q->store->ops->lanes > 1 ? q->store->ops->lanes : 1;
    q->objects_only = q->store->objects_only;
    q->server_fires = q->store->server_fires;
    q->lists_all = q->store->lists_all;
    for (unsigned i = 0; i < q->lanes; i++)
        weir__batcher_init(&q->batcher[i], q->store, &q->events, read_clock, q);
    if (!rc && !q->read_only) {
        weir__timer_set(&q->timer, &q->tick, INT64_MIN);     /* jobs may be due already */
        rc = weir__timer_open(&q->timer, err);
    }
    return rc;
}

/* Close what runs; what was never started is skipped. */
static void shut(weir_queue *q)
{
    weir__timer_close(&q->timer);
    weir__firer_close(&q->firer);
    for (unsigned i = 0; i < q->lanes; i++) {
        if (q->batcher[i].store)
            weir__batcher_close(&q->batcher[i]);
    }
    pthread_mutex_lock(&q->want_lock);
    weir_store *store = q->store;
    q->store = NULL;
    pthread_mutex_unlock(&q->want_lock);
    if (store)
        store->ops->close(store);
    weir__events_close(&q->events);
    weir__queue_unref(q);
}

weir_code weir_open(weir_queue **out, const char *url, const weir_options *opt, weir_error *err)
{
    static const weir_options none;
    *out = NULL;
    if (!opt)
        opt = &none;
    if (WEIR__CHECK_RESERVED(opt, err))
        return WEIR_EINVAL;
    weir_queue *q = calloc(1, sizeof *q);
    if (!q)
        return weir_fail(err, WEIR_ENOMEM, "open: out of memory");
    q->refs = 1;
    q->read_only = opt->read_only;
    q->now = opt->now;
    q->steady = opt->steady;
    q->now_ctx = opt->now_ctx;
    set_names(q, opt->name);
    pthread_mutex_init(&q->want_lock, NULL);
    pthread_mutex_init(&q->pools.lock, NULL);
    pthread_mutex_init(&q->deliveries.lock, NULL);
    pthread_mutex_init(&q->gate.lock, NULL);
    weir__timer_init(&q->timer, q, opt->now != NULL);
    add_timers(q);
    weir__firer_init(&q->firer);

    weir_env env = { .durability = opt->durability, .read_only = opt->read_only,
                     .wait_owner_ms = opt->wait_owner_ms, .name = q->program,
                     .without_log = opt->without_log, .brief = opt->brief,
                     .keep_taken = opt->keep_taken,
                     .test_clock = opt->now != NULL,
                     .now = queue_now,
                     .emit = on_events, .due = on_due, .lost = on_lost, .run = on_run, .ctx = q };
    weir__events_init(&q->events);
    weir_code rc = weir__store_open(&q->store, url, &env, err);
    if (!rc)
        rc = start(q, err);
    if (rc) {
        shut(q);
        return rc;
    }
    weir__queue_want(q, 0);
    *out = q;
    return rc;
}

void weir_close(weir_queue *q)
{
    if (!q)
        return;
    weir_stop(q, NULL, 0, NULL);
    shut(q);
}
