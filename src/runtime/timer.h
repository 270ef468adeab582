/* timer.h - a thread that calls functions at set times. A queue has three entries. It examines its
 * pools, and renews the leases of the jobs that its pools work on. It submits a TICK when the store
 * has something due (a delay, ttl, deadline or lease is over, a finished job is old enough).
 *
 * Entries that are due together run one after the other, in the order in which they were added. The
 * queue adds renewals before the TICK. So if the process was stopped for a while, its jobs keep
 * their leases, and the TICK does not give them to other workers.
 *
 * All times are of the queue's steady clock (weir__queue_steady()): setting the wall clock makes no
 * entry run earlier or later. The thread starts when the first time is set; with no time set, it
 * sleeps without end. */
#ifndef WEIR_RUNTIME_TIMER_H
#define WEIR_RUNTIME_TIMER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "weir/error.h"

struct weir_queue;

enum {
    WEIR_TICK_LIMIT    = 1000,     /* jobs of each sort in one TICK, at most */
    WEIR_TICK_RETRY_MS = 1000      /* after a TICK that failed */
};

/* A function and the time of its next call. The memory is the owner's, and must stay until
 * weir__timer_close(). */
typedef struct weir_timer_entry {
    /* Called on the timer's thread, or by weir__timer_open(), with no lock held; may call
     * weir__timer_set(). Returns the time of the next call; INT64_MAX: none before somebody sets
     * one. */
    int64_t                (*run)(struct weir_queue *q, void *ctx);
    void                    *ctx;
    bool                     on_clock_set;   /* also run it when somebody has set the wall clock */
    int64_t                  at_ms;          /* the timer's lock guards it; INT64_MAX: none */
    struct weir_timer_entry *next;           /* in the timer's list */
} weir_timer_entry;

typedef struct weir_timer {
    struct weir_queue *q;
    pthread_mutex_t    lock;       /* guards what follows */
    pthread_t          thread;
    bool               started;    /* the thread */
    int                wall_fd;    /* readable when somebody has set the wall clock; -1: none */
    int                wake_fd;    /* readable when the thread is to look again */
    bool               asleep;     /* the thread is, or is about to be, and nobody has woken it */
    weir_timer_entry  *first;
    bool               turned;     /* the clock was, since it was last looked at */
    bool               test_clock; /* the queue has a clock of its own: sleep until it is turned */
    bool               open;       /* entries may run */
} weir_timer;

void weir__timer_init(weir_timer *t, struct weir_queue *q, bool test_clock);

/* Run the entries that are due by now, on the calling thread. From here on the timer starts its
 * thread when a time is set. WEIR_ENOMEM: a time is set, and there is no thread for it. */
weir_code weir__timer_open(weir_timer *t, weir_error *err);

/* Add an entry behind the present ones, with no time set; its run, ctx and on_clock_set are filled
 * in. Any thread. */
void weir__timer_add(weir_timer *t, weir_timer_entry *e);

/* Run the entry at that time, or earlier if an earlier time is set; INT64_MIN: at once. Any thread,
 * also from inside the store. If the thread cannot be started, the next call tries again. */
void weir__timer_set(weir_timer *t, weir_timer_entry *e, int64_t at_ms);

/* The clock was turned. */
void weir__timer_wake(weir_timer *t);

/* Wait for the entry that is running, and stop the thread. */
void weir__timer_close(weir_timer *t);
void weir__timer_fini(weir_timer *t);

#endif
