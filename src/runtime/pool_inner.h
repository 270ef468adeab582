/* pool_inner.h - the inside of a worker pool: pool.c is its work, prefetch.c what it takes ahead,
 * process.c starts and stops it. */
#ifndef WEIR_RUNTIME_POOL_INNER_H
#define WEIR_RUNTIME_POOL_INNER_H


#include "core/condition.h"
#include "runtime/gate.h"
#include "runtime/pool.h"

#define HINT_UNKNOWN (UINT64_C(1) << 48)  /* more than there can be, but many add up */

/* The state of the pool when the store was asked for jobs. */
typedef struct question {
    uint64_t hinted;
    uint32_t resets;
} question;

/* The part that a stream (observe.c) adds to its pool; {0}: a plain pool. All of it is called on
 * threads of the pool and with no lock held, but `release`. */
typedef struct weir__ports {
    void   *ctx;
    bool    metered;                   /* jobs are begun only while there is demand */
    int64_t poll_ms;                   /* ask the store at this interval, not on events; 0: on
                                          events */
    void  (*trouble)(void *ctx, const weir_error *err);
    void  (*alarm)(void *ctx);         /* the time of weir__pool_set_alarm() has come */
    void  (*ended)(void *ctx);         /* once: the last thread leaves, no handler runs */
    void  (*release)(void *ctx);       /* once: the pool is gone */
} weir__ports;

typedef struct weir_pool {
    weir_queue        *q;              /* a reference */
    _Atomic uint32_t   refs;           /* the queue's list, each thread, delivery and handle */
    struct weir_pool  *next;           /* q->pools */
    weir_pool_config   cfg;
    weir__ports        ports;
    char             **types;
    size_t             n_types;
    weir_condition    *when;           /* cfg.when, which is the pool's copy; NULL: none */
    _Atomic int32_t    begun;          /* jobs whose outcome is not known; raised under lock */
    int32_t            max_begun;
    bool               by_itself;      /* finds how much to take ahead */
    _Atomic uint64_t   started;        /* calls of the handler */
    _Atomic uint64_t   ended[WEIR_OUTCOME_GIVE_UP + 1]; /* what handlers answered, by outcome */
    _Atomic int32_t    handling;       /* threads that are in the handler */
    bool               knows;          /* of a suspect: see core/gate.h; guarded by q->gate.lock */

    pthread_mutex_t    lock;           /* guards what follows */
    pthread_cond_t     wake;           /* idle threads: there may be something to do */
    pthread_cond_t     trouble;        /* threads that wait for the store to come back */
    pthread_cond_t     quiet;          /* weir_stop(): something has ended */
    uint64_t           hint, hinted;   /* hinted: all that was ever added to hint */
    uint32_t           resets;         /* how often an empty answer has set hint */
    bool               suspects;       /* `knows`, as of the last answer */
    int32_t            idle, live;     /* threads */
    int32_t            leaving;        /* threads that take nothing more */
    int64_t            demand;         /* metered: jobs that may still be begun */
    int64_t            poll_at;        /* when the store is asked next; 0: when a job comes */
    int64_t            alarm_at;       /* INT64_MAX: none set */
    bool               alarmed;        /* it is time, and no thread has seen to it yet */
    bool               waking;         /* one of the idle has been signalled and is on its way */
    int32_t            running;        /* jobs begun whose outcome is not settled */
    int32_t            max_running;
    int32_t            busy;           /* threads that take, or send an outcome and wait */
    bool               stopping;
    bool               stopped;        /* whoever stops the pool has waited for it */
    weir__delivery    *ready, **ready_tail;   /* taken ahead */
    size_t             n_ready;
    weir__delivery    *again;          /* outcomes that the store could not take yet ... */
    int64_t            again_at;       /* ... and when the timer sends them, if no thread did */
    uint32_t           unsaved;        /* outcomes given up in weir_stop() ... */
    weir_error         unsaved_why;    /* ... and why the store did not take the last */
    int64_t            slowest_ns;     /* recent handlers: see weir__pool_pace() */
    bool               fetching;       /* the fetch ticket is under way, or not unpacked yet */
    weir_ticket        fetch;
    question           fetch_asked;
    int64_t            fetch_at;       /* when it was asked, by the steady clock */
    weir_pass          fetch_pass;
    weir_job          *fetched[WEIR_MAX_PAGE];
    size_t             n_fetched;      /* to be unpacked */
    int64_t            back_at;        /* of these, by_itself: see weir__delivery.back_at */
} pool;

/* The main function of a thread of the pool; owns a reference to the pool. */
void *weir__pool_main(void *p);

/* Nothing more is to be begun. Lock held. */
void weir__pool_begin_stop(pool *p);

/* Hand back all jobs that were taken ahead. Lock held, but not all the time. */
void weir__pool_return_ready(pool *p);

/* ---- for streams; no lock held ---- */

/* weir_process() with ports; *out is a reference of the caller's. ports.release is also called when
 * the pool could not be started. */
weir_code weir__pool_start(weir_queue *q, const char *type, const weir_pool_config *cfg,
                           const weir__ports *ports, pool **out, weir_error *err);

/* n more jobs may be begun. Returns the demand that is open now. */
int64_t weir__pool_demand(pool *p, int64_t n);

/* Have an idle thread call ports.alarm at this time of the queue's steady clock. */
void weir__pool_set_alarm(pool *p, int64_t at_ms);

/* The answer of a handler that keeps its job: weir__pool_handled() follows, from any thread. */
#define WEIR__HELD WEIR_CODE_COUNT
/* The handler has let go of the job and answered `rc`. True: its outcome is known, and the caller
 * must send it (weir__pool_send()). */
bool weir__pool_handled(weir__delivery *h, weir_code rc);

/* ---- pool.c, with the lock held ---- */

/* Wake an idle thread if there may be something to do. */
void weir__pool_wake(pool *p);

/* Note the state before jobs are asked for; and update it from the answer. `alone`: that is a
 * suspect. */
question weir__pool_ask(const pool *p);
void     weir__pool_learn(pool *p, question then, const weir_op_take *take, bool alone);
weir_op_take weir__pool_taking(pool *p, weir_pass pass, weir_job **jobs, size_t n,
                               const char *worker);

/* May the pool take, if it has reason to? */
weir_pass weir__pool_enter(pool *p);

/* The store is in trouble: emit an error event, and wait a while unless the pool is stopping. */
void weir__pool_pause(pool *p, const weir_error *err);

/* Send all of p->again once more; not locked all the time. */
void weir__pool_submit_again(pool *p);

/* ---- prefetch.c, with the lock held ---- */

/* A handler took so long. */
void weir__pool_pace(pool *p, int64_t took_ns);
/* Nothing is known of the handlers. */
void weir__pool_pace_init(pool *p);

/* Do jobs come from the list of ready ones now, so that outcomes are sent without waiting? Else
 * each thread ends its job and takes the next in one step. */
bool weir__pool_takes_bulk(const pool *p);

/* See that jobs are on their way, if the pool may take more ahead. */
void weir__pool_fetch(pool *p);
/* If the last bulk did not come because of trouble, wait a while; not locked all the time. */
void weir__pool_mind_fetch(pool *p);

/* Make what has been fetched ready; not locked all the time. */
void weir__pool_unpack(pool *p);

/* The first of the ready ones; there is one. */
weir__delivery *weir__pool_ready_pop(pool *p);

#endif
