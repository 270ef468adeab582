/* worker.h - have jobs done: pools of handlers, or jobs taken by hand. */
#ifndef WEIR_WORKER_H
#define WEIR_WORKER_H

#include "weir/queue.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Does one job. Called on a thread of its pool; may block as long as it likes, the lease is
 * renewed meanwhile by another thread. The job is borrowed until it returns. Its answer:
 *
 *   return weir_job_done(job, json, 0, NULL);        complete, with a result
 *   return WEIR_OK;                                  complete, without one
 *   return weir_job_fail(job, "smtp: %s", why);      failed: tried again if attempts are left
 *   return weir_job_give_up(job, "no such user");    failed, however many attempts are left
 *   return weir_job_return(job, 5000, NULL);         not now: again in 5 s, no attempt is used
 *   return any other code;                           failed: with the message of the last call
 *                                                    weir_job_...() if that failed with this code,
 *                                                    else with the text of the code
 *   return WEIR_LATER;                               not yet: one of these four functions will be
 *                                                    called, from any thread; the job is valid
 *                                                    until then. (It may also have been called
 *                                                    before the handler returns.)
 *
 * The outcome reaches the store once the handler has returned; the event `complete` or `failed`
 * says that it did. */
typedef weir_code weir_handler(weir_job *job, void *ctx);

typedef struct weir_pool_config {
    weir_handler      *handler;
    void              *ctx;
    int32_t            threads;      /* handlers at once; 0: 1; at most WEIR_MAX_THREADS */
    int32_t            running;      /* jobs at once, with handlers that answer WEIR_LATER; 0: as
                                        many as threads; at most WEIR_MAX_RUNNING */
    int32_t            prefetch;     /* jobs taken ahead for each thread; 0: as the pool sees fit,
                                        see below; WEIR_PREFETCH_NONE */
    int64_t            lease_ms;     /* 0: WEIR_DEFAULT_LEASE_MS; at least WEIR_MIN_LEASE_MS */
    const char *const *types;        /* with type NULL: several types, NULL at the end; best job of
                                        all of them first */
    const char        *when;         /* only jobs for which this condition is true (condition.h);
                                        others stay as they are. NULL: all */
    void              *reserved[WEIR_RESERVED - 1];
} weir_pool_config;

/* Taking jobs ahead of time is faster when handlers are quick, since nobody waits for the store
 * between two jobs. But these jobs are active and not free for other workers, their ttl runs, an
 * urgent job that is added later comes after them, a pause of their type comes too late for them,
 * and if the process is killed they are lost with it (weir_job.lost).
 *
 * By default (prefetch 0) the pool prefetches about 1 ms of work, estimated from its slowest recent
 * handler, up to max(WEIR_AHEAD_JOBS, threads) jobs. The pool prefetches nothing if handlers are
 * slower, answer WEIR_LATER, or have not run yet. If all threads are busy in their handlers for
 * WEIR_AHEAD_MS, jobs that were not begun return to their place in the queue, without using an
 * attempt, for other workers. (On `mem:` prefetching gains nothing, and pools do not.)
 *
 * With a number, the pool always prefetches that many jobs for each thread, and keeps them. With
 * WEIR_PREFETCH_NONE it never holds a job that no handler works on. */
enum { WEIR_PREFETCH_NONE = -1, WEIR_AHEAD_JOBS = 32, WEIR_AHEAD_MS = 50 };

enum { WEIR_MAX_THREADS = 1024, WEIR_MAX_RUNNING = 100000, WEIR_MIN_LEASE_MS = 100 };

typedef struct weir_pool weir_pool;

/* Start a pool for jobs of `type`; returns at once. `config` is borrowed for the call, its ctx
 * until the pool has stopped. A type may have several pools. The pool works until weir_pool_stop(),
 * weir_stop() or weir_close() stops it. `out` may be NULL; otherwise *out belongs to the caller:
 * weir_pool_free(). Errors: WEIR_EINVAL, WEIR_ELIMIT, WEIR_ENOMEM, WEIR_EREADONLY. */
WEIR_API weir_code weir_process(weir_queue *q, const char *type, const weir_pool_config *config,
                                weir_pool **out, weir_error *err);

/* Stop this pool alone, with the rules of weir_stop(). A stopped pool does not start again: call
 * weir_process() for a new one. If the pool has stopped before, the answer is WEIR_OK; if another
 * call is stopping it, this one waits for that call. Waits; not from a handler or callback. */
WEIR_API weir_code weir_pool_stop(weir_pool *pool, int64_t timeout_ms, weir_error *err);

typedef struct weir_pool_stats {
    uint64_t started;                /* calls of the handler since weir_process() */
    uint64_t completed;              /* outcomes that handlers gave: weir_job_done() or WEIR_OK, */
    uint64_t failed;                 /* weir_job_fail(), weir_job_give_up() or an error, */
    uint64_t returned;               /* weir_job_return() */
    uint32_t running;                /* jobs that have no outcome yet, also behind WEIR_LATER */
    uint32_t prefetched;             /* jobs taken and not started */
    uint32_t threads;                /* threads of the pool; 0 once it has stopped */
    uint32_t busy;                   /* threads that are in the handler */
    void    *reserved[WEIR_RESERVED];
} weir_pool_stats;

/* The figures of a pool, also after it has stopped. The store may still reject an outcome that is
 * counted here, for instance of a job that was cancelled. Never waits for the store. Any thread. */
WEIR_API void weir_pool_get_stats(weir_pool *pool, weir_pool_stats *out);

/* Free the handle (NULL is fine). The pool itself goes on: weir_pool_stop() first to stop it. The
 * handle stays valid after weir_close(), which stops the pool; the figures can still be read. */
WEIR_API void weir_pool_free(weir_pool *pool);

/* Stop the pools of `type` (NULL: all): they take nothing more, hand back what they have not begun,
 * and their handlers may finish for `timeout_ms`. Then what is left fails with "Shutdown" by the
 * rule of attempts, and what its handler answers later is ignored. Waits; not from a handler or
 * callback. WEIR_ETIMEOUT: some jobs were failed so. Other errors are of the store: it did not take
 * the outcome of a job, which therefore runs again. A pool of several types stops as a whole. */
WEIR_API weir_code weir_stop(weir_queue *q, const char *type, int64_t timeout_ms, weir_error *err);

/* Work until SIGTERM or SIGINT arrives, then weir_stop() all pools with WEIR_DRAIN_MS. Blocks these
 * two signals in the calling thread for that time: call it from main(), and block them in threads
 * of your own. The answer is an exit status: 0 after a clean stop, if the store works then (see
 * weir_ready()).
 *
 * While the store takes no changes, a pool keeps its outcomes and retries them. WEIR_EVENT_ERROR
 * and weir_ready() report this. */
WEIR_API int weir_run(weir_queue *q, weir_error *err);
enum { WEIR_DRAIN_MS = 30000 };

/* For workers that run programs: a descriptor for a child that ends these programs when this
 * process has died. As long as a process has it open, the next owner of a SQLite file does not give
 * the jobs of dead workers to others; it waits 5 s at most. The descriptor is the queue's: do not
 * close it before weir_close(). A child has it after fork(); exec() closes it. -1: there is none,
 * and the jobs of dead workers come back when their leases end. */
WEIR_API int weir_guard_fd(weir_queue *q);

/* ---- inside a handler, or with a job from weir_take() ---- */

/* End the job. In a handler this only notes the outcome (see weir_handler); for a job from
 * weir_take() it goes to the store at once. `result` is JSON of `len` bytes (0: it ends at its NUL)
 * or NULL. Errors: WEIR_EINVAL (not JSON), WEIR_ELIMIT: then the job goes on; WEIR_ESTALE: it is no
 * longer ours. A second call ends with WEIR_ESTALE. weir_job_fail() returns WEIR_EJOB when it
 * worked, to be returned by the handler. */
WEIR_API weir_code weir_job_done(weir_job *job, const char *result, size_t len, weir_error *err);
WEIR_API weir_code weir_job_fail(weir_job *job, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* As weir_job_fail(), but the job is not tried again, however many attempts are left. */
WEIR_API weir_code weir_job_give_up(weir_job *job, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* Give the job back: another worker (or this one) runs it after `delay_ms`, 0 for at once, at most
 * WEIR_MAX_MS. No attempt is used; its history has an entry "returned". Otherwise as
 * weir_job_done(). Errors: WEIR_EINVAL (the delay): then the job goes on; WEIR_ESTALE. */
WEIR_API weir_code weir_job_return(weir_job *job, int64_t delay_ms, weir_error *err);

/* Append a line to the job's log, printf-like; extends the ttl. Any thread. */
WEIR_API weir_code weir_job_log(weir_job *job, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* done/total as percent, at most 100; extends the ttl. `data` is JSON of `len` bytes (0: it ends at
 * its NUL), or NULL. Errors: WEIR_EINVAL (total <= 0, done < 0, not JSON), WEIR_ELIMIT,
 * WEIR_ESTALE. Any thread. */
WEIR_API weir_code weir_job_progress(weir_job *job, int64_t done, int64_t total, const char *data,
                                     size_t len, weir_error *err);

/* Set one value of the job (weir_spec.values): `value` is JSON, NULL removes it. The store has it
 * when the call returns, and keeps it whatever becomes of this attempt; `job` itself does not
 * change. Errors: WEIR_EINVAL, WEIR_ELIMIT, WEIR_ESTALE. Any thread. */
WEIR_API weir_code weir_job_set(weir_job *job, const char *name, const char *value,
                                weir_error *err);

/* Is there no point in going on? True once the job was cancelled or removed, ran out of ttl, lost
 * its lease, or the pool was stopped and its time is up. Costs next to nothing. Any thread. */
WEIR_API bool weir_job_cancelled(const weir_job *job);

/* ---- by hand ---- */

/* Which jobs to take. */
typedef struct weir_taking {
    const char *const *types;       /* NULL at the end; best job of all of them first */
    size_t             n;           /* how many at most: 1 to WEIR_MAX_PAGE; fewer when they
                                       are large (WEIR_MAX_TAKE_BYTES) */
    int64_t            lease_ms;    /* 0: WEIR_DEFAULT_LEASE_MS. Nobody renews it but
                                       weir_job_renew() */
    const char        *worker;      /* its name, kept in the job, at most WEIR_MAX_WORKER bytes;
                                       NULL: this program's */
    bool               remote;      /* for a worker elsewhere, as is what follows: remote.h */
    bool               busy;        /* its process has other jobs, or waits for some: then it gets
                                       no suspect */
    bool              *suspect_waits;   /* out of weir_take(): a suspect was passed over. The
                                       caller's until the answer is there; NULL: no matter */
    const char        *when;        /* only jobs for which this condition is true (condition.h);
                                       others stay as they are. NULL: all */
    void              *reserved[WEIR_RESERVED - 1];
} weir_taking;

/* Take jobs, best first. out[0..*n_out) belong to the caller: end each with weir_job_done(),
 * weir_job_fail() or weir_job_return(), then weir_job_free(). None waiting is WEIR_OK with *n_out
 * 0. A job whose worker died (a suspect) is returned alone, and only when this process holds no
 * other job. While this process holds a suspect, or must first finish other jobs because of one,
 * weir_take() returns no job. The queue must be open as
 * long as they are used. */
WEIR_API weir_code weir_take(weir_queue *q, const weir_taking *what, weir_job **out, size_t *n_out,
                             weir_error *err);
WEIR_API weir_code weir_take_async(weir_queue *q, const weir_taking *what, weir_job **out,
                                   size_t *n_out, weir_future **f, weir_error *err);

/* A new lease from now. WEIR_ESTALE: it is no longer ours. */
WEIR_API weir_code weir_job_renew(weir_job *job, int64_t lease_ms, weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
