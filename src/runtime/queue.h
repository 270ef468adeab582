/* queue.h - the inside of a weir_queue: a store, the batcher before it, and what lives beside
 * it: callbacks (events.c), timers (timer.c), schedules (firer.c) and worker pools (pool.c).
 *
 * It is counted: the user holds one reference until weir_close(), and every pool and every taken
 * job another. So a handler that outlives weir_close() finds it closed, not gone.
 *
 * Locks, outermost first: q->want_lock; q->pools.lock, pool->lock; q->deliveries.lock;
 * q->gate.lock; events.lock; firer.lock; timer.lock; batcher.lock. None is held while calling out
 * of the library. */
#ifndef WEIR_RUNTIME_QUEUE_H
#define WEIR_RUNTIME_QUEUE_H

#include "base/list.h"
#include "core/gate.h"
#include "runtime/batcher.h"
#include "runtime/events.h"
#include "runtime/firer.h"
#include "runtime/timer.h"
#include "weir/worker.h"

struct weir_pool;

enum { WEIR__REVOKED = 64 };

struct weir_queue {
    _Atomic uint32_t refs;
    weir_store      *store;
    pthread_mutex_t  want_lock;           /* so that the store is not closed during want() */
    unsigned         lanes;               /* of the store */
    weir_batcher     batcher[WEIR_LANE_COUNT];
    weir_events      events;
    weir_timer       timer;
    weir_timer_entry tend, renew, tick;   /* run in this order: see timer.h */
    atomic_bool      joined;              /* it has a member: envelopes.h */
    weir_firer       firer;
    bool             read_only;
    bool             objects_only;        /* of the store */
    bool             server_fires;        /* of the store */
    bool             lists_all;           /* of the store */
    int64_t        (*now)(void *ctx);       /* NULL: the system's clocks */
    int64_t        (*steady)(void *ctx);    /* with now; NULL: as now */
    void            *now_ctx;
    char             name[64];            /* of workers: "host:pid" */
    char             program[64];

    struct {
        pthread_mutex_t    lock;
        struct weir_pool  *first;
        uint32_t           threads;       /* ever started, for names */
    } pools;

    struct {
        pthread_mutex_t    lock;
        weir_dlist         list;          /* of weir__delivery */
        /* The last deliveries to be revoked: that may happen between the take and
         * weir__delivery_create(). */
        struct { uint64_t id; uint32_t delivery; } revoked[WEIR__REVOKED];
        uint32_t           n_revoked;     /* ever; the next goes to n_revoked % WEIR__REVOKED */
    } deliveries;

    struct {
        pthread_mutex_t lock;
        weir_gate       is;               /* see gate.h */
    } gate;
};

/* The steady clock of the queue, on which its timer runs; and what it shows when the wall clock
 * shows at_ms (INT64_MIN, INT64_MAX: the same), unless somebody sets that before. */
int64_t weir__queue_steady(weir_queue *q);
int64_t weir__queue_steady_of(weir_queue *q, int64_t at_ms);

/* The batcher for operations of this kind. */
static inline weir_batcher *weir__queue_batcher(weir_queue *q, weir_op_kind kind)
{
    return &q->batcher[q->lanes > 1 ? weir__op_rows[kind]->lane : 0];
}

/* Hand over an operation that was checked: see weir__batcher_submit(). */
static inline weir_code weir__queue_submit(weir_queue *q, weir_ticket *t)
{
    return weir__batcher_submit(weir__queue_batcher(q, t->op.kind), t);
}

void weir__queue_ref(weir_queue *q);
void weir__queue_unref(weir_queue *q);

/* Ask the store for these events of other processes from now on: see weir_store_ops. */
void weir__queue_want(weir_queue *q, uint32_t what);

/* The events that pools need: jobs that wait, and jobs that are no longer theirs. */
#define WEIR__WANT_HINTS                                                       \
    (WEIR_BIT(WEIR_EVENT_ENQUEUE) | WEIR_BIT(WEIR_EVENT_RESUME) |              \
     WEIR_BIT(WEIR_EVENT_CANCELLED) | WEIR_BIT(WEIR_EVENT_STALLED) |           \
     WEIR_BIT(WEIR_EVENT_TTL_EXCEEDED) | WEIR_BIT(WEIR_EVENT_REMOVE))

/* Check and run an operation and wait for it; the error goes to `err`. */
weir_code weir__queue_run(weir_queue *q, weir_ticket *t, weir_error *err);

#endif
