/* observe.h - jobs as a stream: the consumer asks for as many as it can use, and gets them one by
 * one, or in groups, until it has had enough.
 *
 *   static weir_code on_next(weir_item *item, size_t n, void *ctx)
 *   {
 *       return send_mail(item->job->data) ? WEIR_OK : weir_job_fail(item->job, "smtp");
 *   }
 *   weir_observe(q, "mail", &(weir_observing){ .demand = 100 }, on_next, on_error, on_end,
 *                &stream, &err);
 *   weir_stream_request(stream, 50);           50 more
 *   weir_stream_stop(stream, 5000, &err);
 *   weir_stream_free(stream);
 *
 * A stream is a worker pool (worker.h): its jobs are taken, and their leases renewed while the
 * consumer holds them. Delivery is at least once. If the process dies, the jobs that it held go to
 * other workers. weir_stop() and weir_close() stop streams, too. */
#ifndef WEIR_OBSERVE_H
#define WEIR_OBSERVE_H

#include "weir/worker.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_stream weir_stream;

typedef struct weir_item {
    weir_job *job;
    void     *value;        /* of weir_observing.map; NULL without it */
    void     *reserved[WEIR_RESERVED];
} weir_item;

/* Receives n items: 1, or up to buffer_count. Each item has one outcome, from any thread:
 *
 *   weir_job_done()      acknowledged: complete
 *   weir_job_fail()      retried, if attempts are left, after the job's backoff
 *   weir_job_return()    retried after a delay; no attempt is used
 *   weir_job_give_up()   failed, however many attempts are left
 *
 * The answer is the outcome of the items that have none: WEIR_OK acknowledges them; WEIR_LATER
 * keeps them until they have one; any other code fails them with its text. A job is valid until it
 * has an outcome and on_next() has returned. The array is valid until on_next() returns.
 *
 * Runs on a thread of the stream, with no lock held, and may block: other callbacks of the stream
 * wait for it if the stream has one thread. */
typedef weir_code weir_next_fn(weir_item *items, size_t n, void *ctx);

/* The store could not be asked. The stream goes on: it asks again each second. */
typedef void weir_trouble_fn(const weir_error *why, void *ctx);

/* No item comes any more. The last call of a stream, made exactly once: after `take` items,
 * weir_stream_cancel(), weir_stream_stop(), weir_stop() or weir_close(). Items that are kept
 * (WEIR_LATER) may still be ended. */
typedef void weir_end_fn(void *ctx);

typedef struct weir_observing {
    void   *ctx;            /* of all functions; the caller's, until on_end() has returned and each
                               item has an outcome */

    /* How many. Jobs are taken only while there is demand and room. */
    int64_t demand;         /* items to begin with; 0: any number, without weir_stream_request();
                               WEIR_NO_DEMAND: none before weir_stream_request() */
    int64_t take;           /* end after this number of items; 0: no limit */
    int32_t held;           /* items at once without an outcome; 0: one for each thread, or with a
                               buffer as many as all threads can use. At most WEIR_MAX_RUNNING */
    int32_t threads;        /* that run the functions; 0: 1, so that no two run at once. At most
                               WEIR_MAX_THREADS */
    int32_t prefetch;       /* as weir_pool_config.prefetch; never beyond the demand */
    int64_t poll_ms;        /* ask at most every poll_ms; 0: as soon as a job waits (no polling) */
    int64_t lease_ms;       /* 0: WEIR_DEFAULT_LEASE_MS */

    /* Which, and as what. Items pass these in the order in which they are written here. */
    const char *const *types;   /* with type NULL: several types in one stream, NULL at the end;
                                   best job of all of them first */
    const char *when;           /* only jobs for which this condition is true (condition.h); others
                                   stay as they are. NULL: all */
    /* False: on_next() does not get the job, and the demand is as before. Unless the function has
     * given it an outcome, the job is acknowledged: weir_job_return() leaves it to others. */
    bool  (*filter)(weir_job *job, void *ctx);
    /* Makes the item's value, which belongs to on_next(). On failure it returns NULL and fills in
     * `err`: then the job fails with its message, and the demand is as before. */
    void *(*map)(weir_job *job, void *ctx, weir_error *err);
    /* Items are passed on in groups: of buffer_count (at most WEIR_MAX_BUFFER; 0 and 1: no
     * buffer), fewer when the first of them has waited for buffer_ms (0: however long), when the
     * demand is used up, and at the end of `take`. A stream that is stopped hands back what is in
     * its buffer. */
    int32_t buffer_count;
    int64_t buffer_ms;
    void   *reserved[WEIR_RESERVED - 1];
} weir_observing;

enum { WEIR_NO_DEMAND = -1, WEIR_MAX_BUFFER = 10000 };

/* Start a stream of jobs of `type`. `how` (NULL: the defaults) is borrowed for the call; on_error
 * and on_end may be NULL. *out: weir_stream_free(). Errors: WEIR_EINVAL, WEIR_ELIMIT, WEIR_ENOMEM,
 * WEIR_EREADONLY; then no function is called. */
WEIR_API weir_code weir_observe(weir_queue *q, const char *type, const weir_observing *how,
                                weir_next_fn *on_next, weir_trouble_fn *on_error,
                                weir_end_fn *on_end, weir_stream **out, weir_error *err);

/* Ask for n more items, n > 0. They add up, and never exceed `take`. Any thread, also in on_next().
 * A stream without a limit on its demand stays so. */
WEIR_API void weir_stream_request(weir_stream *s, int64_t n);

/* Take no more. Jobs that on_next() has not seen go back, without using an attempt; then on_end()
 * is called. Never blocks. Any thread, also in on_next(). */
WEIR_API void weir_stream_cancel(weir_stream *s);

/* weir_stream_cancel(), and wait until all functions have returned and all items have an outcome,
 * at most timeout_ms. The remaining jobs then fail with "Shutdown", by the rule of attempts. Not in
 * a
 * callback. Errors: WEIR_ETIMEOUT (items were failed so), and those of weir_stop(). */
WEIR_API weir_code weir_stream_stop(weir_stream *s, int64_t timeout_ms, weir_error *err);

/* Let go of it; NULL is fine. A stream that was not stopped goes on until weir_stop() or
 * weir_close(). Never blocks. */
WEIR_API void weir_stream_free(weir_stream *s);

#ifdef __cplusplus
}
#endif
#endif
