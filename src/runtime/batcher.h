/* batcher.h - stands in front of the store: threads submit operations, and all that have gathered
 * while the last batch ran go to the store as the next one.
 *
 * One thread at a time leads, that is, is inside the store. If no thread leads, a caller leads its
 * own operation at once, without a change of threads. If more operations have gathered meanwhile,
 * or no caller waits for an operation, the batcher's own thread leads. That thread starts when it
 * has to lead for the first time. If the store waits for another process (weir_store.waits),
 * callers lead one after the other: there is nothing else for a thread to do meanwhile. */
#ifndef WEIR_RUNTIME_BATCHER_H
#define WEIR_RUNTIME_BATCHER_H

#include <pthread.h>
#include <stdatomic.h>
#include "runtime/events.h"
#include "store/store.h"

enum { WEIR_MAX_BATCH = 1024 };   /* operations in one call of the store */

/* Reads the wall clock and the steady clock at one moment. */
typedef void weir_clock_fn(void *ctx, int64_t *now_ms, int64_t *steady_ms);

/* One submitted operation. The memory is the submitter's until it is done. */
typedef struct weir_ticket {
    weir_op             op;
    struct weir_ticket *next;      /* in the list; then in a chain of sleepers */
    _Atomic uint32_t    state;
    /* NULL: somebody waits in weir__batcher_run(). Else called when it is done, by the thread that
     * leads and with no lock held; must be quick and must not wait for the store. */
    void              (*done)(struct weir_ticket *t);
    bool                detached;  /* nobody waits for the answer of this ticket */
} weir_ticket;

typedef struct weir_batcher {
    weir_store     *store;
    weir_events    *events;       /* corked while a batch runs and is answered */
    weir_clock_fn  *clock;
    void           *clock_ctx;
    pthread_mutex_t lock;         /* guards what follows */
    pthread_t       thread;
    bool            started;      /* the thread */
    pthread_cond_t  work;         /* the thread is to lead, or to end */
    pthread_cond_t  idle;         /* nobody leads and nothing waits */
    weir_ticket    *head, **tail;
    size_t          waiting;      /* callers in the list: see gather() */
    size_t          wake_at;      /* ... at which the thread that gathers is to be woken; 0: none */
    size_t          callers;      /* in the last batch and in the list when it was done */
    int64_t         took_ns;      /* the last batch */
    bool            leading;      /* somebody is inside the store */
    bool            delegated;    /* ... and that is to be the batcher's thread */
    bool            closed;
    _Atomic bool    quick;        /* the last batch took no longer than a change of threads */
    _Atomic uint32_t gathered;    /* changes when `wake_at` is reached */
    struct {                      /* weir_metrics; the leader writes, anybody reads */
        _Atomic uint64_t batches, operations, busy_ns, size[WEIR_BATCH_SIZES];
    } counted;
    weir_op        *batch[WEIR_MAX_BATCH];   /* the leader's */
} weir_batcher;

/* `store` and `events` belong to the caller and must outlive weir__batcher_close(). */
void weir__batcher_init(weir_batcher *b, weir_store *store, weir_events *events,
                        weir_clock_fn *clock, void *ctx);

/* Start the batcher's thread, unless it runs: after that, weir__batcher_submit() can fail with
 * WEIR_ECLOSED alone. */
weir_code weir__batcher_start(weir_batcher *b, weir_error *err);

/* Run an operation and wait for its answer, which is also in t->op.err. */
weir_code weir__batcher_run(weir_batcher *b, weir_ticket *t);

/* Run n operations, together and in their order, and wait for all answers: operations of other
 * processes, whose store this process has. They are the caller's. */
void weir__batcher_run_all(weir_batcher *b, weir_op *const *ops, size_t n);

/* Run an operation; t->done is called when it is done. WEIR_ECLOSED, WEIR_ENOMEM (no thread): it
 * will not be. */
weir_code weir__batcher_submit(weir_batcher *b, weir_ticket *t);

/* The same for all that `next` links to the first (at least one), which so go to the store
 * together. With an error, none of them is run and the first carries the error. */
weir_code weir__batcher_submit_all(weir_batcher *b, weir_ticket *first);

/* Add what was counted here to *sum. Any thread. */
void weir__batcher_metrics(weir_batcher *b, weir_metrics *sum);

/* Is everything refused? Any thread. */
bool weir__batcher_closed(weir_batcher *b);

/* Refuse what comes from now on, finish what was submitted, stop the thread. */
void weir__batcher_close(weir_batcher *b);
void weir__batcher_fini(weir_batcher *b);

#endif
