/* retryqueue.h - tasks to be tried again, in one sorted set of Redis: a small queue beside the jobs
 * of weir, in the format of the Redis retry queue with an observable interface, whose programs can
 * use the same set. New programs have more from jobs (queue.h): see docs/from-retry-queue.md.
 *
 * Format: a member is {"created":MS,"numFailures":N,"payload":"TEXT"}, its score WEIR_RETRY_MAX
 * less the time of the next try in ms since 1970. Two tasks that agree in all three are one
 * member. Not included by weir.h. All functions may be called from any thread. */
#ifndef WEIR_RETRYQUEUE_H
#define WEIR_RETRYQUEUE_H

#include <stddef.h>
#include <stdint.h>
#include "weir/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_RETRY_MAX INT64_C(2147483647000)

typedef struct weir_retryqueue weir_retryqueue;

typedef struct weir_retryqueue_options {
    const char *key;            /* of the sorted set, 1 to WEIR_RETRY_MAX_KEY bytes */
    int64_t     hold_ms;        /* 0: a task is gone when it was popped (at most once). Else it is
                                   in a second set until weir_retryqueue_done() or _fail(), and
                                   is popped again after hold_ms (at least once) */
    int64_t     backoff_ms;     /* a task that failed n times waits n * backoff_ms; 0: 2000 */
    int32_t     max_failures;   /* failures after which a task is discarded; 0: 2 */
    /* Lua that chooses what is popped; NULL: all that is due, oldest first. Runs in Redis, with
     * KEYS[1] the set, ARGV[1] the lowest score that is due, ARGV[2] WEIR_RETRY_MAX, ARGV[3] how
     * many are wanted, ARGV[4] the time in ms. It returns a list of members, which are then removed
     * if it has not done so. A member that it names twice, or that was not in the set, is popped
     * once or not at all. Redis compiles it when the queue is opened. At most
     * WEIR_RETRY_MAX_CONDITION bytes */
    const char *condition;
    void       *reserved[WEIR_RESERVED];
} weir_retryqueue_options;

enum {
    WEIR_RETRY_MAX_KEY       = 512,
    WEIR_RETRY_MAX_CONDITION = 65536,
    WEIR_RETRY_MAX_POP       = 1000,
    WEIR_RETRY_BACKOFF_MS    = 2000,
    WEIR_RETRY_FAILURES      = 2
};

typedef struct weir_retry_task {
    int64_t     created_at;     /* 0 for weir_retryqueue_add(): now */
    int32_t     failures;
    const char *payload;        /* text, without NUL inside */
    const char *member;         /* out of a pop: the task as it is in Redis */
    void       *reserved[WEIR_RESERVED];
} weir_retry_task;

typedef struct weir_retry_tasks {
    weir_retry_task *task;      /* those whose time has come first are first */
    size_t           n;
    size_t           malformed; /* members that are no tasks: moved to the set KEY:malformed */
} weir_retry_tasks;

/* `url` is that of a queue (docs/redis.md): redis://host, rediss://, redis+unix:, clusters and
 * sentinels. Connects. *out: weir_retryqueue_close(). Errors: WEIR_EINVAL (also: the condition does
 * not compile), WEIR_EUNAVAIL, WEIR_ENOMEM. */
WEIR_API weir_code weir_retryqueue_open(weir_retryqueue **out, const char *url,
                                        const weir_retryqueue_options *opt, weir_error *err);
/* After weir_retryqueue_stop(), if it was observed. NULL is fine. */
WEIR_API void weir_retryqueue_close(weir_retryqueue *rq);

/* Add a task, to be tried at `at_ms` (since 1970; 0: now). */
WEIR_API weir_code weir_retryqueue_add(weir_retryqueue *rq, const weir_retry_task *task,
                                       int64_t at_ms, weir_error *err);

/* Take up to `limit` tasks (0: WEIR_RETRY_MAX_POP, which is the most) that are due by the clock of
 * Redis, in one step: no two callers get the same one. None is WEIR_OK with n 0. *out:
 * weir_retry_tasks_free(). */
WEIR_API weir_code weir_retryqueue_pop(weir_retryqueue *rq, size_t limit, weir_retry_tasks **out,
                                       weir_error *err);
WEIR_API void weir_retry_tasks_free(weir_retry_tasks *tasks);

/* The task was done. WEIR_ESTALE: hold_ms was over, and somebody else has ended it. */
WEIR_API weir_code weir_retryqueue_done(weir_retryqueue *rq, const weir_retry_task *task,
                                        weir_error *err);

/* The task failed once more: it is added again, for later, or discarded. *again (may be NULL) says
 * which. WEIR_ESTALE as above: nothing was changed. */
WEIR_API weir_code weir_retryqueue_fail(weir_retryqueue *rq, const weir_retry_task *task,
                                        bool *again, weir_error *err);

/* ---- as a stream ---- */

/* Answers WEIR_OK: the task is done; anything else: it failed. The task is borrowed. */
typedef weir_code weir_retry_next_fn(const weir_retry_task *task, void *ctx);
/* Redis could not be asked, or members were malformed (WEIR_ECORRUPT). The stream goes on. */
typedef void weir_retry_error_fn(const weir_error *why, void *ctx);

typedef struct weir_retryqueue_observing {
    int64_t poll_ms;            /* ask Redis at most every poll_ms when nothing is due; 0: 1000 */
    int32_t threads;            /* that call on_next; 0: 1 */
    int32_t limit;              /* tasks that a thread pops at once; 0: 1. Those behind the first
                                   wait for it */
    void   *ctx;
    void   *reserved[WEIR_RESERVED];
} weir_retryqueue_observing;

/* Pass each task on when it is due, until weir_retryqueue_stop(). One stream at a time. on_error
 * may be NULL. Errors: WEIR_EINVAL, WEIR_ESTATE (it is observed already), WEIR_ENOMEM. */
WEIR_API weir_code weir_retryqueue_observe(weir_retryqueue *rq,
                                           const weir_retryqueue_observing *how,
                                           weir_retry_next_fn *on_next,
                                           weir_retry_error_fn *on_error, weir_error *err);
/* Wait until on_next() has returned; tasks that it has not seen go back. Not in a callback. */
WEIR_API void weir_retryqueue_stop(weir_retryqueue *rq);

#ifdef __cplusplus
}
#endif
#endif
