/* workqueue.h - a work queue on the event bus: messages to one address are given to processors, one
 * at a time to each, to the one that has been idle for longest.
 *
 *     ADDRESS             work: any JSON. The sender of a request receives the processor's reply
 *     ADDRESS.register    {"processor": address}: one more slot for this processor
 *     ADDRESS.unregister  {"processor": address}: one slot less
 *
 * Work waits in memory or, if the queue has a store, as jobs in it. If its body is an object with
 * "accepted_reply" or "accepted-reply", the queue sends {"status":"accepted"} to the address named
 * there. If several processes open one address, one of them serves it. docs/bus.md has the details.
 * */
#ifndef WEIR_WORKQUEUE_H
#define WEIR_WORKQUEUE_H

#include "weir/bus.h"
#include "weir/queue.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WEIR_WORK_TIMEOUT_MS = 300 * 1000,      /* for a processor to answer */
    WEIR_WORK_MESSAGES   = 100 * 1000,      /* that wait or are being processed ... */
    WEIR_WORK_BYTES      = 256 * 1024 * 1024,   /* ... and bytes of their bodies */
    WEIR_WORK_SLOTS      = 10 * 1000        /* registrations */
};

typedef struct weir_workqueue weir_workqueue;

typedef struct weir_workqueue_config {
    const char *address;
    int64_t     process_timeout_ms;         /* 0: WEIR_WORK_TIMEOUT_MS */
    bool        timed_out_first;            /* work whose processor is late goes to the head of the
                                               queue, not to its end */
    weir_queue *queue;                      /* persistent: work is jobs of this queue, which must
                                               stay open until weir_workqueue_close(). NULL: work
                                               is in memory */
    const char *collection;                 /* persistent: the type of its jobs; NULL: the
                                               address */
    void       *reserved[WEIR_RESERVED];
} weir_workqueue_config;

/* Start a work queue. On success *out belongs to the caller: weir_workqueue_close(). Errors:
 * WEIR_EINVAL (no address; it ends in .register or .unregister, or has another meaning on the bus;
 * it is not good as a type), WEIR_ELIMIT (it is too long), WEIR_ENOMEM, and of a persistent queue
 * those of its store. */
WEIR_API weir_code weir_workqueue_open(weir_workqueue **out, weir_bus *b,
                                       const weir_workqueue_config *config, weir_error *err);

/* Stop it. Work that was not done fails with WEIR_FAILURE_ERROR; that of a persistent queue stays
 * in its store. Not from a handler of the bus or a callback of the queue. NULL is fine. */
WEIR_API void weir_workqueue_close(weir_workqueue *q);

typedef struct weir_workqueue_stats {
    size_t   waiting, running;              /* messages; those in the store alone do not count */
    size_t   idle, busy;                    /* registrations */
    uint64_t done, timed_out;               /* messages since the start */
    double   done_per_second;               /* over the last seconds */
    bool     standby;                       /* another process of the bus serves the address */
    void    *reserved[WEIR_RESERVED];
} weir_workqueue_stats;
/* Any thread. */
WEIR_API void weir_workqueue_get_stats(weir_workqueue *q, weir_workqueue_stats *out);

#ifdef __cplusplus
}
#endif
#endif
