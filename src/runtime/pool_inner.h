/* pool_inner.h - the inside of a worker pool: pool.c is its work, process.c starts and stops it. */
#ifndef WEIR_RUNTIME_POOL_INNER_H
#define WEIR_RUNTIME_POOL_INNER_H

#include <time.h>

#include "runtime/pool.h"
#include "runtime/queue.h"

#define HINT_UNKNOWN (UINT64_C(1) << 48)  /* more than there can be, but many add up */

/* What was known when the store was asked for jobs. */
typedef struct question {
    uint64_t hinted;
    uint32_t resets;
} question;

typedef struct weir__pool {
    weir_queue        *q;              /* a reference */
    _Atomic uint32_t   refs;           /* the queue's list, each thread, each hold */
    struct weir__pool *next;           /* q->pools */
    weir_pool          cfg;
    char             **types;
    size_t             n_types;
    _Atomic int32_t    begun;          /* jobs whose outcome is not known; raised under lock */
    int32_t            max_begun;

    pthread_mutex_t    lock;           /* guards what follows */
    pthread_cond_t     wake;           /* idle threads: there may be something to do */
    pthread_cond_t     trouble;        /* threads that wait for the store to come back */
    pthread_cond_t     quiet;          /* weir_stop(): something has ended */
    uint64_t           hint, hinted;   /* hinted: all that was ever added to hint */
    uint32_t           resets;         /* how often an empty answer has set hint */
    int32_t            idle, live;     /* threads */
    bool               waking;         /* one of the idle has been signalled and is on its way */
    int32_t            running;        /* jobs begun whose outcome is not settled */
    int32_t            max_running;
    int32_t            busy;           /* threads that take, or send an outcome and wait */
    bool               stopping;
    weir__hold        *ready, **ready_tail;   /* taken ahead */
    size_t             n_ready;
    weir__hold        *again;          /* outcomes that the store could not take yet */
    bool               fetching;       /* the fetch ticket is under way, or not unpacked yet */
    weir_ticket        fetch;
    question           fetch_asked;
    weir_job          *fetched[WEIR_MAX_PAGE];
    size_t             n_fetched;      /* to be unpacked */
} pool;

/* What a thread of the pool does, all its life; owns a reference to the pool. */
void *weir__pool_main(void *p);

/* Nothing more is to be begun. Lock held. */
void weir__pool_tell_stop(pool *p);

/* Make what has been fetched ready. Lock held, but not all the time. */
void weir__pool_unpack(pool *p);

/* The first of the ready ones; there is one. Lock held. */
weir__hold *weir__pool_ready_pop(pool *p);

/* The moment that comes in `ms`, for pthread_cond_timedwait() on the pool's conditions. */
static inline struct timespec weir__after_ms(int64_t ms)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    ts.tv_sec += (time_t)(ms / 1000);
    ts.tv_nsec += (long)(ms % 1000) * 1000000;
    if (ts.tv_nsec >= 1000000000) {
        ts.tv_sec++;
        ts.tv_nsec -= 1000000000;
    }
    return ts;
}

#endif
