/* timer.h - the thread that makes time pass: it sleeps until the store says that something is due
 * (a delay, ttl, deadline or lease is over, a finished job is old enough), renews the leases of the
 * jobs that this queue's pools are working on, and takes back from pools what they do not come to.
 * With nothing due it sleeps for good. All its times are of the queue's steady clock
 * (weir__queue_steady()), so nobody who sets the wall clock makes it sleep longer or less. */
#ifndef WEIR_RUNTIME_TIMER_H
#define WEIR_RUNTIME_TIMER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "weir/error.h"

struct weir_queue;

enum {
    WEIR_TICK_LIMIT    = 1000,     /* jobs of each sort that one TICK deals with */
    WEIR_TICK_RETRY_MS = 1000      /* after a TICK that failed */
};

typedef struct weir_timer {
    struct weir_queue *q;
    pthread_t          thread;
    bool               started;
    pthread_mutex_t    lock;       /* guards what follows */
    int                wall_fd;    /* readable when somebody has set the wall clock; -1: none */
    int                wake_fd;    /* readable when the thread is to look again */
    bool               asleep;     /* the thread is, or is about to be, and nobody has woken it */
    int64_t            due_at;     /* the next TICK; INT64_MAX: none */
    int64_t            renew_at;   /* the next renewal of leases; INT64_MAX: none */
    int64_t            tend_at;    /* the next look at pools: weir__pools_tend(); INT64_MAX: none */
    bool               turned;     /* the clock was, since it was last looked at */
    bool               own_clock;  /* the queue has a clock of its own: sleep until it is turned */
    bool               closed;
} weir_timer;

void weir__timer_init(weir_timer *t, struct weir_queue *q, bool own_clock);
weir_code weir__timer_start(weir_timer *t, weir_error *err);

/* Something is due at that time. Any thread, also from inside the store. */
void weir__timer_due(weir_timer *t, int64_t at_ms);
/* A lease must be renewed by then. */
void weir__timer_renew(weir_timer *t, int64_t at_ms);
/* A pool is to be looked at then. */
void weir__timer_tend(weir_timer *t, int64_t at_ms);
/* The clock was turned. */
void weir__timer_wake(weir_timer *t);

void weir__timer_close(weir_timer *t);
void weir__timer_fini(weir_timer *t);

#endif
