/* remote.h - work on jobs by id and delivery alone: for a program that hands jobs on to workers
 * elsewhere, as the server does.
 *
 * A job that was taken here is only a copy of what the worker is to get. Its lease, which runs
 * until it is renewed, ended or lost, and its delivery number, by which late workers are fenced
 * off, are kept in the store. This process keeps no state for it, so workers are unaffected by a
 * restart. */
#ifndef WEIR_REMOTE_H
#define WEIR_REMOTE_H

#include "weir/worker.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- take ---- */

/* weir_take() with weir_taking.remote takes jobs for a worker elsewhere: they are copies, and
 * weir_job_free() only frees them (to give one back, end it with WEIR_OUTCOME_RETURN).
 *
 * A job whose worker died (weir_job.lost > 0) is a suspect: perhaps it kills its workers. It must
 * run alone, so that no other job is lost with it again. A worker that is not busy gets a suspect
 * as the only job of an answer, and must then be given nothing else until that has ended. A busy
 * worker gets the next jobs, and suspect_waits is set: let it finish its jobs, and take for it
 * again when it is not busy. weir_process(), and weir_take() without `remote`, do so by
 * themselves. */

/* ---- finish ---- */

typedef enum weir_outcome {
    WEIR_OUTCOME_DONE,      /* text: the result (JSON) or NULL */
    WEIR_OUTCOME_FAIL,      /* text: the error; NULL: the text of WEIR_EJOB */
    WEIR_OUTCOME_RETURN,    /* not now: inactive again, or delayed by delay_ms; no attempt is used,
                               nothing is logged */
    WEIR_OUTCOME_LOST,      /* its worker died: as if its lease were over (weir_job.lost) */
    WEIR_OUTCOME_GIVE_UP    /* as FAIL, but failed for good, however many attempts are left */
} weir_outcome;

/* How one delivery of a job ended. */
typedef struct weir_ending {
    uint64_t           id;
    uint32_t           delivery;
    weir_outcome       outcome;
    const char        *text;
    size_t             len;         /* 0: text ends at its NUL */
    int64_t            delay_ms;    /* of WEIR_OUTCOME_RETURN; 0: at once */
    const weir_taking *next;        /* take these in the same step, if it worked; NULL: none */
    weir_job         **jobs;        /* room for next->n; as weir_take() */
    void              *reserved[WEIR_RESERVED];
} weir_ending;

typedef struct weir_ended {
    weir_error err;                 /* code WEIR_OK: it has ended. WEIR_ESTALE: it was no longer
                                       this worker's. WEIR_EINVAL, WEIR_ELIMIT name the member */
    weir_state state;               /* the job's now; WEIR_STATE_ANY: it is gone */
    size_t     n_jobs;              /* how many are in jobs of its weir_ending */
    bool       suspect_waits;       /* its `next` has passed over a suspect */
    void      *reserved[WEIR_RESERVED];
} weir_ended;

/* End n deliveries (at most WEIR_MAX_ADD, with at most WEIR_MAX_ADD_BYTES of texts, and as many
 * next jobs as WEIR_MAX_ADD together). Each has an answer of its own in out[i], whatever becomes of
 * the others; they go to the store together and so share a commit. When the call itself fails, none
 * has ended and all carry its error. Errors: WEIR_EINVAL, WEIR_ELIMIT. */
WEIR_API weir_code weir_finish(weir_queue *q, const weir_ending *endings, size_t n, weir_ended *out,
                               weir_error *err);
WEIR_API weir_code weir_finish_async(weir_queue *q, const weir_ending *endings, size_t n,
                                     weir_ended *out, weir_future **f, weir_error *err);

/* ---- meanwhile ---- */

/* One lease to be renewed. */
typedef struct weir_lease {
    uint64_t id;
    uint32_t delivery;
    int64_t  lease_ms;              /* from now; 0: WEIR_DEFAULT_LEASE_MS */
    void    *reserved[WEIR_RESERVED];
} weir_lease;

typedef struct weir_renewed {
    weir_error err;                 /* code WEIR_OK: renewed. WEIR_ESTALE: the job is no longer this
                                       worker's */
    void      *reserved[WEIR_RESERVED];
} weir_renewed;

/* Renew n leases (at most WEIR_MAX_ADD), each with an answer of its own in out[i]. When the call
 * itself fails, none was renewed and all carry its error. Errors: WEIR_EINVAL, WEIR_ELIMIT. */
WEIR_API weir_code weir_renew(weir_queue *q, const weir_lease *leases, size_t n, weir_renewed *out,
                              weir_error *err);
WEIR_API weir_code weir_renew_async(weir_queue *q, const weir_lease *leases, size_t n,
                                    weir_renewed *out, weir_future **f, weir_error *err);

/* How far it is, in percent; extends the ttl. `data` is JSON of `len` bytes (0: it ends at its
 * NUL), or NULL: what was said last stays. Errors: WEIR_ESTALE, WEIR_EINVAL, WEIR_ELIMIT. */
WEIR_API weir_code weir_progress(weir_queue *q, uint64_t id, uint32_t delivery, int32_t percent,
                                 const char *data, size_t len, weir_error *err);
WEIR_API weir_code weir_progress_async(weir_queue *q, uint64_t id, uint32_t delivery,
                                       int32_t percent, const char *data, size_t len,
                                       weir_future **f, weir_error *err);

/* ---- time ---- */

/* Do what is due now by the queue's clock (delays, leases, ttls, deadlines, retention), at most
 * `limit` jobs of each sort (0: WEIR_MAX_PAGE, which is also the most). *changed: how many jobs it
 * concerned; *next_at: when something is due again (INT64_MAX: nothing; now or before: there is
 * more). Both may be NULL. The queue does all this by itself: this call is for tests with a clock
 * of their own, and for stores that reach this queue over a wire. */
WEIR_API weir_code weir_tick(weir_queue *q, size_t limit, size_t *changed, int64_t *next_at,
                             weir_error *err);
WEIR_API weir_code weir_tick_async(weir_queue *q, size_t limit, size_t *changed, int64_t *next_at,
                                   weir_future **f, weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
