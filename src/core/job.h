/* job.h - the life of a job, as pure functions on weir_job: no clock, no store. The stores call
 * them, so that they agree.
 *
 * They change the numbers of a job. Its strings (type, data, error ...) are only pointed at: a
 * store that keeps a job copies them. A transition also fills a weir_effects (effects.h): what the
 * store does beside keeping the changed job. The job may point into it. */
#ifndef WEIR_CORE_JOB_H
#define WEIR_CORE_JOB_H

#include <inttypes.h>
#include "core/effects.h"
#include "weir/queue.h"
#include "weir/remote.h"

#define WEIR__TTL_TEXT      "TTL exceeded"
#define WEIR__DEADLINE_TEXT "Deadline exceeded"
#define WEIR__SHUTDOWN_TEXT "Shutdown"
#define WEIR__BY_HAND_TEXT  "Failed by hand"

/* Is the spec within the limits? `index` names it in errors ("jobs[3].type"); -1 for a lone one. */
weir_code weir__spec_check(const weir_spec *spec, ptrdiff_t index, weir_error *err);
/* The same for a lone spec whose data is known to be JSON that is not too deep. */
weir_code weir__spec_check_known(const weir_spec *spec, weir_error *err);
weir_code weir__type_check(const char *type, const char *field, weir_error *err);

/* Does this valid UTF-8 have a character that weir_is_hidden()? The first one, and its byte. */
bool weir__has_hidden(const char *text, size_t len, size_t *at, uint32_t *code_point);

/* And a type that a worker can take: not "*". */
weir_code weir__take_type_check(const char *type, const char *field, weir_error *err);

/* Can this job be put in as it is: within the limits, and true what is drawn at the top of job.c?
 * An error names the member. */
weir_code weir__job_valid(const weir_job *j, weir_error *err);
weir_code weir__lines_valid(const weir_line *lines, size_t n, weir_error *err);

/* At most WEIR_MAX_DATA bytes of valid JSON? An error names `field` and the place. */
weir_code weir__json_check(const char *json, size_t len, const char *field, weir_error *err);

/* Is `ms` a length of time: not negative and at most WEIR_MAX_MS? */
weir_code weir__ms_check(int64_t ms, const char *field, weir_error *err);

/* Is `at` a moment: not negative and not after the year 9999? */
#define WEIR__MAX_AT INT64_C(253402300799999)       /* its last millisecond */
weir_code weir__moment_check(int64_t at, const char *field, weir_error *err);

/* A new job: inactive, or delayed when its time is yet to come. Strings point into the spec. */
void weir__job_init(weir_job *j, const weir_spec *spec, uint64_t id, int64_t now);

/* A job from elsewhere that is to be here with this id: as it is, but when active it becomes
 * inactive, and what is zero gets its default. */
void weir__job_import(weir_job *j, uint64_t id, int64_t now);

/* A job that was made by one of these two is in the store now. Events: enqueue if it is
 * inactive. */
void weir__job_added(const weir_job *j, weir_effects *e);

/* Remove it, whatever its state. Event: remove. */
void weir__job_remove(const weir_job *j, weir_effects *e);

/* A worker has it now, with a lease until now + lease_ms. Event: start. */
void weir__job_take(weir_job *j, const char *worker, int64_t lease_ms, int64_t now,
                    weir_effects *e);

/* Percent, and data (NULL: unchanged). Event: progress. */
void weir__job_progress(weir_job *j, int32_t percent, const char *data, size_t len, int64_t now,
                        weir_effects *e);

/* A delivery ends as its worker says: one of the next four. `delay_ms` is of a return. */
void weir__job_finish(weir_job *j, weir_outcome outcome, const char *text, size_t len,
                      int64_t delay_ms, int64_t now, weir_effects *e);

/* It was done. `result` may be NULL. Gone if remove_on_complete. Event: complete. */
void weir__job_complete(weir_job *j, const char *result, size_t len, int64_t now, weir_effects *e);

/* It was not. Uses up an attempt; becomes inactive, delayed (backoff) or failed, which is for sure
 * if this is `final`. A log line. Events: failed_attempt, then enqueue if inactive; or failed. */
void weir__job_fail(weir_job *j, const char *error, size_t len, bool final, int64_t now,
                    weir_effects *e);

/* Given back unused: inactive as before, or delayed until now + delay_ms; the delivery number stays
 * used up. Event: enqueue if inactive. */
void weir__job_return(weir_job *j, int64_t delay_ms, int64_t now, weir_effects *e);

/* Its worker is gone: inactive again, or failed with the loss number max_lost + 1. The log line
 * ("stalled | worker W was lost (2 of 3)") is then its error. Events: stalled, then enqueue or
 * failed. */
void weir__job_lose(weir_job *j, int64_t now, weir_effects *e);

/* It took too long: fails with WEIR__TTL_TEXT. Events: ttl_exceeded, then as when it fails. */
void weir__job_exceed(weir_job *j, int64_t now, weir_effects *e);

/* Deadline passed while it waited: failed. A log line. Event: failed. */
void weir__job_expire(weir_job *j, int64_t now, weir_effects *e);

/* Nobody can run it, whatever its state and its numbers: failed, as by expire, but without an entry
 * in its history. */
void weir__job_set_aside(weir_job *j, const char *error, int64_t now, weir_effects *e);

/* Its time has come: delayed becomes inactive. Events: promotion, enqueue. */
void weir__job_promote(weir_job *j, int64_t now, weir_effects *e);

/* Change by hand, all or nothing. `from`: allowed states as bits, 0 for any. Events: the event of
 * the state it enters, if the state changes (none for delayed); promotion before enqueue, if it was
 * delayed. A job that is set to failed gets a log line. WEIR_ESTALE, WEIR_ESTATE, WEIR_EINVAL;
 * WEIR_ELIMIT, WEIR_ENOMEM (values): *e is empty then. */
weir_code weir__job_update(weir_job *j, const weir_change *change, uint32_t from, int64_t now,
                           weir_effects *e, weir_error *err);

/* The job is not active with this delivery (or is missing). */
static inline weir_code weir__stale(weir_error *err, uint64_t id, uint32_t delivery)
{
    return weir_fail(err, WEIR_ESTALE, "job %" PRIu64 ": delivery %" PRIu32 " is over", id,
                     delivery);
}

/* Somebody set the wall clock `step_ms` forth (or back): lengths of time that are under way (a
 * lease, a delay) end as much later. */
void weir__job_clock_set(weir_job *j, int64_t step_ms);

/* The place in the list of its state: see weir_query. */
int64_t weir__job_rank(const weir_job *j);

/* When a TICK must look at a waiting job (its promotion or deadline, whichever comes first); 0:
 * never. For active jobs the lease and the ttl are the store's. */
int64_t weir__job_due(const weir_job *j);

/* When the ttl ends that begins now; INT64_MAX: it has none. A ttl begins with a delivery, and
 * again with progress and log lines of its worker. */
static inline int64_t weir__job_ttl_until(const weir_job *j, int64_t now)
{
    return j->ttl_ms ? now + j->ttl_ms : INT64_MAX;
}

/* Milliseconds until the next attempt, after `failures` of them; 0: at once. */
int64_t weir__backoff_ms(const weir_job *j, int32_t failures);

/* A worker died with the job, so the job may be what killed the worker: until it has ended it runs
 * alone in its worker (weir_op_take). */
static inline bool weir__job_is_suspect(const weir_job *j)
{
    return j->lost > 0;
}

/* Do these jobs have WEIR_MAX_TAKE_BYTES of data, so that a take ends with them? */
bool weir__jobs_fill_take(weir_job *const *jobs, size_t n);

static inline bool weir__finished(weir_state s)
{
    return s == WEIR_STATE_COMPLETE || s == WEIR_STATE_FAILED || s == WEIR_STATE_CANCELLED;
}

/* `done` (at least 0) of `total` (at least 1) as percent, at most 100. */
static inline int32_t weir__percent(int64_t done, int64_t total)
{
    return done >= total ? 100 : (int32_t)((long double)done * 100 / (long double)total);
}

/* A copy with all its strings in one block: weir_job_free(). hold is NULL.
 * NULL: out of memory. */
weir_job *weir__job_copy(const weir_job *j);

/* weir_job_json(), at the end of `out`; data, result and progress data keep their line breaks. */
void weir__job_json(weir_buf *out, const weir_job *job);

/* Let go of what ties a taken job to its queue, and of the job. Defined by the runtime, which alone
 * makes such jobs; weir_job_free() calls it when job->taken is set. */
void weir__delivery_release(struct weir__delivery *d);

/* Free what weir_data_text() has kept with a job; weir_job_free() calls it. */
void weir__texts_free(struct weir__texts *texts);

/* The facts drawn at the top of job.c, asserted. Nothing in release builds. */
void weir__job_check(const weir_job *j);

/* Compare jobs as take does: by priority, then id. */
static inline bool weir__job_before(int32_t prio_a, uint64_t id_a, int32_t prio_b, uint64_t id_b)
{
    return prio_a != prio_b ? prio_a < prio_b : id_a < id_b;
}

#endif
