/* batcher.c - gathers operations into batches: see batcher.h. */
#include "runtime/batcher.h"
#include "runtime/probe.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/thread.h"

/* PENDING -> DONE, or, when its caller went to sleep, PENDING -> SLEEPING -> LINKED -> DONE. A
 * caller that is to lead, asleep or not, goes from there by LEADS back to PENDING. */
enum { PENDING, SLEEPING, LEADS, LINKED, DONE };

enum {
    QUICK_NS = 20000,      /* a batch that is over before a thread is asleep and awake again */
    LEAD_NS  = 50000,      /* how long a caller leads for others before it hands over */
    CHAIN    = 8,          /* callers that wake each other, one after the other */
    LONG_NS  = 500000,     /* a batch beside which the time until all callers are back is little */
    SPIN_NS  = 15000       /* how long a caller stays awake for its answer, if batches are quick */
};

static void *batcher_main(void *arg);

void weir__batcher_init(weir_batcher *b, weir_store *store, weir_events *events,
                        weir_clock_fn *clock, void *ctx)
{
    *b = (weir_batcher){ .store = store, .events = events, .clock = clock, .clock_ctx = ctx };
    b->tail = &b->head;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->work, NULL);
    pthread_cond_init(&b->idle, NULL);
}

/* Lock held. */
static weir_code start_thread(weir_batcher *b, weir_error *err)
{
    if (b->started)
        return WEIR_OK;
    weir_code rc = weir__thread_start(&b->thread, batcher_main, b, "weir-batch", err);
    b->started = rc == WEIR_OK;
    return rc;
}

weir_code weir__batcher_start(weir_batcher *b, weir_error *err)
{
    pthread_mutex_lock(&b->lock);
    weir_code rc = b->closed ? weir_fail(err, WEIR_ECLOSED, "the queue is closed")
                             : start_thread(b, err);
    pthread_mutex_unlock(&b->lock);
    return rc;
}

/* A hint to the processor: this loop only waits. */
static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* Is it one to wait for, the next time? See gather(). */
static bool is_caller(const weir_batcher *b, const weir_ticket *t)
{
    return !t->detached || !b->store->ops->remote;
}

static void push(weir_batcher *b, weir_ticket *t)
{
    t->next = NULL;
    atomic_store_explicit(&t->state, PENDING, memory_order_relaxed);
    *b->tail = t;
    b->tail = &t->next;
    if (is_caller(b, t) && ++b->waiting == b->wake_at) {
        atomic_fetch_add(&b->gathered, 1);
        weir__futex_wake(&b->gathered);
    }
}

/* The answer is there: wake who sleeps on it. It may be gone afterwards. */
static void wake(weir_ticket *t)
{
    atomic_store(&t->state, DONE);
    weir__futex_wake(&t->state);
}

/* Answer all tickets from `first` up to `end`. Waking a thread takes about as long as an operation,
 * and all callers wait for the leader. So the leader wakes only the first sleeper of every CHAIN,
 * and each woken thread wakes the next. A ticket may be gone once it is DONE. */
static void complete(weir_ticket *first, const weir_ticket *end)
{
    weir_ticket *chain = NULL;
    int length = 0;
    for (weir_ticket *t = first, *next; t != end; t = next) {
        next = t->next;
        weir__probe_op(&t->op);
        uint32_t state = PENDING;
        if (t->done) {
            t->done(t);
        } else if (!atomic_compare_exchange_strong(&t->state, &state, DONE)) {
            t->next = chain;                       /* it sleeps, and stays until it is woken */
            atomic_store(&t->state, LINKED);
            chain = t;
            if (++length == CHAIN) {
                wake(chain);
                chain = NULL;
                length = 0;
            }
        }
    }
    if (chain)
        wake(chain);
}

_Static_assert(1 << (WEIR_BATCH_SIZES - 1) == WEIR_MAX_BATCH, "a place for every size");

/* One thread leads at a time: no need for it to lock the counter against others. */
static void count(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

/* Before its operations are answered: who has an answer finds it counted. */
static void count_batch(weir_batcher *b, size_t n, int64_t took)
{
    size_t i = 0;
    while (((size_t)1 << i) < n)
        i++;
    count(&b->counted.size[i], 1);
    count(&b->counted.batches, 1);
    count(&b->counted.operations, n);
    count(&b->counted.busy_ns, (uint64_t)took);
}

void weir__batcher_metrics(weir_batcher *b, weir_metrics *sum)
{
    sum->batches += atomic_load(&b->counted.batches);
    sum->operations += atomic_load(&b->counted.operations);
    sum->busy_ns += atomic_load(&b->counted.busy_ns);
    for (size_t i = 0; i < WEIR_BATCH_SIZES; i++)
        sum->size[i] += atomic_load(&b->counted.size[i]);
}

/* Did none of them have an answer? Then the time that the batch took is a timeout. */
static bool is_unanswered(weir_op *const *ops, size_t n)
{
    size_t i = 0;
    while (i < n && (ops[i]->err.code == WEIR_EUNAVAIL || ops[i]->err.code == WEIR_EUNKNOWN))
        i++;
    return i == n;
}

/* Take what has gathered, run it, answer. The lock is held before and after, `leading` is ours. */
static void lead(weir_batcher *b)
{
    weir_ticket *first = b->head, *t = first;
    size_t n = 0, callers = 0;
    for (; t && n < WEIR_MAX_BATCH; t = t->next) {
        b->batch[n++] = &t->op;
        callers += is_caller(b, t);
    }
    b->head = t;
    if (!t)
        b->tail = &b->head;
    b->waiting -= callers;
    pthread_mutex_unlock(&b->lock);

    int64_t now, steady;
    b->clock(b->clock_ctx, &now, &steady);
    for (size_t i = 0; i < n; i++) {
        b->batch[i]->now_ms = now;
        b->batch[i]->steady_ms = steady;
        b->batch[i]->err.code = WEIR_OK;
    }
    weir_error err = { 0 };
    weir__events_cork(b->events);
    int64_t start = weir__monotonic_ns();
    if (b->store->ops->run(b->store, b->batch, n, &err))
        for (size_t i = 0; i < n; i++)
            b->batch[i]->err = err;
    int64_t took = weir__monotonic_ns() - start;
    atomic_store_explicit(&b->quick, took < QUICK_NS, memory_order_relaxed);

    count_batch(b, n, took);
    bool unanswered = is_unanswered(b->batch, n);
    complete(first, t);
    weir__events_uncork(b->events);
    pthread_mutex_lock(&b->lock);
    b->took_ns = took;
    b->callers = unanswered ? 0 : callers + b->waiting;
}

/* Many callers who all wait for their answers are soon awake again. A batch for the first of them
 * alone would spend a commit (on a disk, a sync) on one operation. So wait until a third of them is
 * back, but no longer than a third of what the last batch took. If the store is remote, the time of
 * a batch is the work of a server that serves others, too. So wait for half of the callers, and if
 * batches are long, for all, and that long. But there those who do not wait for answers are not
 * waited for either: they go on while the server works, and it would do nothing meanwhile. A
 * process on the same machine is near, but a request costs as much for one operation as for all:
 * wait for all, but only a short time. After a batch that ended with the store's timeout nobody is
 * waited for. Lock held, but not while waiting. */
static void gather(weir_batcher *b)
{
    int64_t share = !b->store->ops->remote || b->callers <= 1 ? 3 : b->took_ns < LONG_NS ? 2 : 1;
    int64_t until = weir__monotonic_ns() + b->took_ns / (b->store->waits ? 4 : share), left;
    b->wake_at = b->callers / (size_t)(b->store->waits ? 1 : share);
    while (b->waiting < b->wake_at && (left = until - weir__monotonic_ns()) > 0) {
        uint32_t before = atomic_load(&b->gathered);
        pthread_mutex_unlock(&b->lock);
        weir__futex_wait_ns(&b->gathered, before, left);
        pthread_mutex_lock(&b->lock);
    }
    b->wake_at = 0;
}

/* May the caller of the first operation in the list lead the next batch? If batches wait for
 * another process, the batcher's thread would only be one more thread to wake. Lock held. */
static bool has_leader(const weir_batcher *b)
{
    return b->head && b->store->waits && !b->head->done;
}

/* Lock held: so its caller is still there. */
static void make_leader(weir_ticket *t)
{
    uint32_t state = PENDING;
    if (!atomic_compare_exchange_strong(&t->state, &state, LEADS)) {
        atomic_store(&t->state, LEADS);
        weir__futex_wake(&t->state);
    }
}

/* Lead no longer: hand what has gathered to a caller, or to the batcher's thread. False: no such
 * thread, so the caller must go on. Called with the lock held. */
static bool step_down(weir_batcher *b)
{
    if (has_leader(b)) {
        make_leader(b->head);
        return true;
    }
    if (b->head && start_thread(b, NULL))
        return false;
    if (b->head) {
        b->delegated = true;
        pthread_cond_signal(&b->work);
    } else {
        b->leading = false;
        if (b->closed)
            pthread_cond_broadcast(&b->idle);
    }
    return true;
}

static void *batcher_main(void *arg)
{
    weir_batcher *b = arg;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        while (!b->delegated && !(b->closed && !b->leading))
            pthread_cond_wait(&b->work, &b->lock);
        if (!b->delegated)
            break;
        b->delegated = false;
        while (b->head && !has_leader(b)) {
            lead(b);
            gather(b);
        }
        step_down(b);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* Put t into the list. With WEIR_OK the lock is held. */
static weir_code enter(weir_batcher *b, weir_ticket *t, bool needs_thread)
{
    weir_code rc = WEIR_OK;
    pthread_mutex_lock(&b->lock);
    if (b->closed)
        rc = weir_fail(&t->op.err, WEIR_ECLOSED, "the queue is closed");
    else if (needs_thread)
        rc = start_thread(b, &t->op.err);
    if (rc)
        pthread_mutex_unlock(&b->lock);
    else
        push(b, t);
    return rc;
}

/* Until t, which is in the list, is done. Called with the lock held; nobody leads, or this thread
 * is to. Returns without the lock. */
static void lead_for(weir_batcher *b, const weir_ticket *t)
{
    int64_t start = weir__monotonic_ns(), took;
    b->leading = true;
    if (b->store->waits)
        gather(b);
    do {
        lead(b);
        took = weir__monotonic_ns() - start;
    } while (atomic_load_explicit(&t->state, memory_order_relaxed) != DONE ||
             (b->head && took < LEAD_NS) || !step_down(b));
    pthread_mutex_unlock(&b->lock);
}

/* Wait until t, which another thread runs, is done. False: this thread is to lead instead. */
static bool wait_for(weir_batcher *b, weir_ticket *t)
{
    if (atomic_load_explicit(&b->quick, memory_order_relaxed))
        for (int64_t until = weir__monotonic_ns() + SPIN_NS; weir__monotonic_ns() < until; relax())
            if (atomic_load_explicit(&t->state, memory_order_acquire) == DONE)
                return true;
    uint32_t state = PENDING;
    if (atomic_compare_exchange_strong(&t->state, &state, SLEEPING)) {
        while ((state = atomic_load(&t->state)) != DONE && state != LEADS)
            weir__futex_wait(&t->state, state, -1);
        if (state == DONE && t->next)
            wake(t->next);
    }
    return state == DONE;
}

/* Until t, which is in the list, is done. Called with the lock held, returns without. */
static void lead_or_wait(weir_batcher *b, weir_ticket *t)
{
    if (b->leading) {
        pthread_mutex_unlock(&b->lock);
        if (wait_for(b, t))
            return;
        pthread_mutex_lock(&b->lock);
        atomic_store(&t->state, PENDING);
    }
    lead_for(b, t);
}

weir_code weir__batcher_run(weir_batcher *b, weir_ticket *t)
{
    t->done = NULL;
    t->detached = false;
    if (enter(b, t, false))
        return t->op.err.code;
    lead_or_wait(b, t);
    return t->op.err.code;
}

/* ---- operations of other processes ---- */

static void leave_it(weir_ticket *t)
{
    (void)t;                /* when the last of them is done, it is */
}

/* At most WEIR_MAX_BATCH. */
static void run_some(weir_batcher *b, weir_ticket *t, weir_op *const *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        t[i] = (weir_ticket){ .op = *ops[i], .done = i + 1 < n ? leave_it : NULL };
    weir_ticket *last = &t[n - 1];
    if (enter(b, &t[0], false)) {
        for (size_t i = 0; i < n; i++)
            ops[i]->err = t[0].op.err;
        return;
    }
    for (size_t i = 1; i < n; i++)
        push(b, &t[i]);
    lead_or_wait(b, last);
    for (size_t i = 0; i < n; i++)
        *ops[i] = t[i].op;
}

void weir__batcher_run_all(weir_batcher *b, weir_op *const *ops, size_t n)
{
    weir_ticket *t = malloc((n < WEIR_MAX_BATCH ? n : WEIR_MAX_BATCH) * sizeof *t);
    for (size_t i = 0, some; i < n; i += some) {
        some = n - i < WEIR_MAX_BATCH ? n - i : WEIR_MAX_BATCH;
        if (t)
            run_some(b, t, ops + i, some);
        for (size_t k = i; !t && k < n; k++)
            weir_fail(&ops[k]->err, WEIR_ENOMEM, "out of memory");
    }
    free(t);
}

weir_code weir__batcher_submit_all(weir_batcher *b, weir_ticket *first)
{
    weir_ticket *rest = first->next, *t;
    if (enter(b, first, true))
        return first->op.err.code;
    while ((t = rest)) {
        rest = t->next;
        push(b, t);
    }
    if (!b->leading) {
        b->leading = b->delegated = true;
        pthread_cond_signal(&b->work);
    }
    pthread_mutex_unlock(&b->lock);
    return WEIR_OK;
}

weir_code weir__batcher_submit(weir_batcher *b, weir_ticket *t)
{
    t->next = NULL;
    return weir__batcher_submit_all(b, t);
}

bool weir__batcher_closed(weir_batcher *b)
{
    pthread_mutex_lock(&b->lock);
    bool closed = b->closed;
    pthread_mutex_unlock(&b->lock);
    return closed;
}

void weir__batcher_close(weir_batcher *b)
{
    pthread_mutex_lock(&b->lock);
    b->closed = true;
    while (b->leading)
        pthread_cond_wait(&b->idle, &b->lock);
    pthread_cond_broadcast(&b->work);
    bool started = b->started;
    b->started = false;
    pthread_mutex_unlock(&b->lock);
    if (started)
        pthread_join(b->thread, NULL);
}

void weir__batcher_fini(weir_batcher *b)
{
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->work);
    pthread_cond_destroy(&b->idle);
}
