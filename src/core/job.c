/* job.c - the life of a job.
 *
 *    init ──► delayed ──promote──► inactive ──take──► active ──complete──► complete
 *      │       ▲   │                ▲  ▲  │            │ │ │
 *      └───────┼───┼────────────────┘  │  │            │ │ └──fail, lose──► failed
 *              │   └──expire───────────┼──┴──expire────┼─┼────────────────►   "
 *              │                       │               │ └──cancel────────► cancelled
 *              │   release, lose, fail └───────────────┤                 (also of the waiting)
 *              └──────────────fail, with a backoff─────┘
 *
 *    complete, failed, cancelled ──retry──► inactive, delayed
 *    any but active ──set──► active (the caller has it then), complete, failed
 *    any, from another store ──import──► the same, but active becomes inactive
 *
 * Each arrow is the function weir__job_<its name>; cancel, retry, set and what else is done by hand
 * is weir__job_update(). Each but init, take, complete and import leaves an entry in the job's
 * history (history.h). What is true in a state:
 *
 *   always      0 <= attempts <= max_attempts, 0 <= lost <= max_lost + 1, 0 <= progress <= 100;
 *               delivery only grows, created_at and delay_ms (but by hand) never change
 *   inactive,   attempts < max_attempts, lost <= max_lost; no result, no finished_at, no duration.
 *   delayed     error and failed_at tell of the last failure, also after a retry
 *   active      as before, and: delivery > 0, worker is set
 *   complete    progress 100, no error; attempts > 0, unless that was set by hand
 *   failed      error says why; attempts are used up, or lost > max_lost, or the deadline passed,
 *               or it was set by hand
 *   cancelled   no result
 *   not finished (the first three): finished_at is 0
 *   not active  lease_until is 0; of an active one it is, where the lease is not known
 *
 * weir__job_check() asserts these, weir__job_valid() asks for them. Gone (removed) is no state. */
#include "core/job.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/history.h"
#include "core/values.h"

void weir__job_check(const weir_job *j)
{
    (void)j;
#ifndef NDEBUG
    assert(j->id != 0);
    assert(j->state > WEIR_ANY && j->state < WEIR_STATES);
    assert(j->max_attempts >= 1 && j->attempts >= 0 && j->attempts <= j->max_attempts);
    assert(j->max_lost >= 1 && j->lost >= 0 && j->lost <= j->max_lost + 1);
    assert(j->progress >= 0 && j->progress <= 100);
    assert(j->state == WEIR_ACTIVE || !j->lease_until);
    if (!weir__finished(j->state)) {
        assert(j->attempts < j->max_attempts && j->lost <= j->max_lost);
        assert(j->finished_at == 0 && j->duration_ms == 0 && !j->result);
    }
    switch (j->state) {
    case WEIR_ACTIVE:
        assert(j->delivery > 0 && j->worker);
        break;
    case WEIR_COMPLETE:
        assert(j->progress == 100 && !j->error);
        break;
    case WEIR_FAILED:
        assert(j->error && !j->result && j->duration_ms == 0);
        break;
    case WEIR_CANCELLED:
        assert(!j->result && j->duration_ms == 0);
        break;
    default:
        break;
    }
#endif
}

/* run_at is not turned into a delay_ms: that one is also the default of the backoff, for which
 * "at noon tomorrow" says nothing. */
void weir__job_init(weir_job *j, const weir_spec *spec, uint64_t id, int64_t now)
{
    int64_t at = now + spec->delay_ms;
    if (spec->run_at > at)
        at = spec->run_at;
    *j = (weir_job){
        .id = id,
        .type = spec->type,
        .state = at > now ? WEIR_DELAYED : WEIR_INACTIVE,
        .priority = spec->priority,
        .data = spec->data ? spec->data : "{}",
        .data_len = !spec->data ? 2 : spec->data_len ? spec->data_len : strlen(spec->data),
        .unique = spec->unique,
        .search_keys = spec->search_keys,
        .backoff = spec->backoff,
        .max_attempts = spec->attempts ? spec->attempts : 1,
        .max_lost = spec->max_lost ? spec->max_lost : WEIR_DEFAULT_MAX_LOST,
        .delay_ms = spec->delay_ms,
        .ttl_ms = spec->ttl_ms,
        .deadline_at = spec->deadline_at,
        .created_at = now,
        .promote_at = at,
        .at_moment = at > now && at == spec->run_at,
        .updated_at = now,
        .remove_on_complete = spec->remove_on_complete,
        .search = spec->search || spec->search_keys,
        .values = spec->values,
        .values_len = !spec->values || spec->values_len ? spec->values_len : strlen(spec->values),
    };
    weir__job_check(j);
}

void weir__job_import(weir_job *j, uint64_t id, int64_t now)
{
    j->id = id;
    j->hold = NULL;
    j->lease_until = 0;
    j->at_moment = j->state == WEIR_DELAYED;
    if (j->state == WEIR_ACTIVE || j->state == WEIR_ANY)
        j->state = WEIR_INACTIVE;
    if (!j->data) {
        j->data = "{}";
        j->data_len = 2;
    }
    if (!j->max_attempts)
        j->max_attempts = 1;
    if (!j->max_lost)
        j->max_lost = WEIR_DEFAULT_MAX_LOST;
    if (!j->created_at)
        j->created_at = now;
    if (!j->promote_at && j->state != WEIR_DELAYED)
        j->promote_at = j->created_at;
    if (!j->updated_at)
        j->updated_at = j->created_at;
    if (!j->finished_at && weir__finished(j->state))
        j->finished_at = j->updated_at;
    j->search = j->search || j->search_keys;
}

static void enter(weir_job *j, weir_state state, int64_t now)
{
    j->state = state;
    j->updated_at = now;
    if (state != WEIR_ACTIVE)
        j->lease_until = 0;
    if (weir__finished(state))
        j->finished_at = now;
    weir__job_check(j);
}

/* The entry of what `was` and is over now. */
static weir_past entry(const weir_job *was, const weir_job *is, weir_past_kind kind, int64_t now)
{
    weir_past p = { .kind = kind, .at = now, .state = is->state };
    if (was->state == WEIR_ACTIVE || kind == WEIR__PAST_COMPLETE) {
        p.delivery = was->delivery;
        p.worker = was->worker;
        p.started_at = was->started_at;
    }
    if (was->state == is->state && was->promote_at == is->promote_at)
        return p;               /* of a delay there is nothing new */
    if (was->state == WEIR_DELAYED)
        p.planned = was->promote_at;
    if (is->state == WEIR_DELAYED)
        p.until = is->promote_at;
    return p;
}

static void remember(weir_job *j, const weir_past *p, weir_buf *past)
{
    if (j->history && !past->len)
        weir__buf_add(past, j->history, j->history_len);
    weir__history_add(past, p);
    j->history = past->data;
    j->history_len = past->len;
}

/* A delivery or a wait ended; `error` may be NULL. */
static void note(weir_job *j, const weir_job *was, weir_past_kind kind, const char *error,
                 int64_t now, weir_buf *past)
{
    weir_past p = entry(was, j, kind, now);
    p.error = error;
    remember(j, &p, past);
}

void weir__job_take(weir_job *j, const char *worker, int64_t lease_ms, int64_t now)
{
    assert(j->state == WEIR_INACTIVE);
    j->delivery++;
    j->worker = worker;
    j->started_at = now;
    j->lease_until = now + lease_ms;
    j->progress = 0;
    j->progress_data = NULL;
    j->progress_data_len = 0;
    enter(j, WEIR_ACTIVE, now);
}

void weir__job_complete(weir_job *j, const char *result, size_t len, int64_t now)
{
    assert(j->state == WEIR_ACTIVE);
    j->attempts++;
    j->progress = 100;
    j->result = result;
    j->result_len = result ? len : 0;
    j->error = NULL;
    j->duration_ms = now > j->started_at ? now - j->started_at : 0;   /* clocks go back, too */
    enter(j, WEIR_COMPLETE, now);
}

static void fail(weir_job *j, const char *error, int64_t now)
{
    assert(j->state == WEIR_ACTIVE);
    j->attempts++;
    j->error = error;
    j->failed_at = now;
    if (j->attempts >= j->max_attempts) {
        enter(j, WEIR_FAILED, now);
        return;
    }
    int64_t delay = weir__backoff_ms(j, j->attempts);
    if (delay > 0)
        j->promote_at = now + delay;
    j->at_moment = false;
    enter(j, delay > 0 ? WEIR_DELAYED : WEIR_INACTIVE, now);
}

void weir__job_fail(weir_job *j, const char *error, int64_t now, weir_buf *past)
{
    weir_job was = *j;
    fail(j, error, now);
    note(j, &was, j->state == WEIR_FAILED ? WEIR__PAST_FAILED : WEIR__PAST_FAILED_ATTEMPT, error,
         now, past);
}

void weir__job_exceed(weir_job *j, int64_t now, weir_buf *past)
{
    weir_job was = *j;
    fail(j, WEIR__TTL_TEXT, now);
    note(j, &was, WEIR__PAST_TTL_EXCEEDED, NULL, now, past);
}

void weir__job_release(weir_job *j, int64_t now, weir_buf *past)
{
    assert(j->state == WEIR_ACTIVE);
    weir_job was = *j;
    enter(j, WEIR_INACTIVE, now);
    note(j, &was, WEIR__PAST_RELEASED, NULL, now, past);
}

void weir__job_lose(weir_job *j, int64_t now, char line[WEIR__LINE], weir_buf *past)
{
    assert(j->state == WEIR_ACTIVE);
    weir_job    was = *j;
    const char *worker = j->worker ? j->worker : "?";
    j->lost++;
    if (j->lost <= j->max_lost) {
        snprintf(line, WEIR__LINE, "stalled | worker %.200s was lost (%" PRId32 " of %" PRId32 ")",
                 worker, j->lost, j->max_lost);
        enter(j, WEIR_INACTIVE, now);
        note(j, &was, WEIR__PAST_STALLED, NULL, now, past);
        return;
    }
    snprintf(line, WEIR__LINE,
             "stalled | worker %.200s was lost, and %" PRId32 " before it: not tried again", worker,
             j->max_lost);
    j->error = line;
    j->failed_at = now;
    enter(j, WEIR_FAILED, now);
    note(j, &was, WEIR__PAST_STALLED, NULL, now, past);
}

void weir__job_expire(weir_job *j, int64_t now, weir_buf *past)
{
    assert(j->state == WEIR_INACTIVE || j->state == WEIR_DELAYED);
    weir_job was = *j;
    j->error = WEIR__DEADLINE_TEXT;
    j->failed_at = now;
    enter(j, WEIR_FAILED, now);
    note(j, &was, WEIR__PAST_DEADLINE, NULL, now, past);
}

static void promote(weir_job *j, int64_t now)
{
    assert(j->state == WEIR_DELAYED);
    if (j->promote_at > now)    /* by hand, before its time */
        j->promote_at = now;
    enter(j, WEIR_INACTIVE, now);
}

void weir__job_promote(weir_job *j, int64_t now, weir_buf *past)
{
    weir_job was = *j;
    promote(j, now);
    note(j, &was, WEIR__PAST_DUE, NULL, now, past);
}

void weir__job_clock_set(weir_job *j, int64_t step_ms)
{
    if (j->state == WEIR_ACTIVE && j->lease_until)
        j->lease_until += step_ms;
    else if (j->state == WEIR_DELAYED && !j->at_moment)
        j->promote_at += step_ms;
}

int64_t weir__job_rank(const weir_job *j)
{
    switch (j->state) {
    case WEIR_INACTIVE:
        return j->priority;
    case WEIR_DELAYED:
        return j->promote_at;
    case WEIR_ACTIVE:
        return j->started_at;
    default:
        return j->finished_at;
    }
}

int64_t weir__job_due(const weir_job *j)
{
    if (j->state == WEIR_DELAYED)
        return j->deadline_at && j->deadline_at < j->promote_at ? j->deadline_at : j->promote_at;
    return j->state == WEIR_INACTIVE ? j->deadline_at : 0;
}

/* ---- backoff ---- */

/* round(d/2 * (2^n - 1)), at most WEIR_MAX_MS. */
static int64_t exponential(int64_t d, int32_t n)
{
    if (d <= 0 || n <= 0)
        return 0;
    if (n >= 43)    /* 2^42 > WEIR_MAX_MS */
        return WEIR_MAX_MS;
    int64_t times = (INT64_C(1) << n) - 1;
    if (d > 2 * WEIR_MAX_MS / times)
        return WEIR_MAX_MS;
    int64_t ms = (d * times + 1) / 2;
    return ms < WEIR_MAX_MS ? ms : WEIR_MAX_MS;
}

static int64_t linear(int64_t d, int32_t failures)
{
    if (failures < 1)
        return 0;
    return d > WEIR_MAX_MS / failures ? WEIR_MAX_MS : d * failures;
}

/* What jitter takes off. A hash of job and failure rather than a random number, so that all stores
 * agree. It must come out the same in a store that only has doubles, hence the small numbers and
 * delay * pct * h / (100 * MODULUS) in two steps, none of which passes 2^53. */
static int64_t jitter(int64_t delay, int32_t pct, uint64_t id, int32_t failures)
{
    enum { MODULUS = 10007, WHOLE = 100 * MODULUS };
    int64_t h = ((int64_t)(id % 9973) * 7919 + (int64_t)failures * 104729) % MODULUS;
    return delay / WHOLE * pct * h + delay % WHOLE * pct * h / WHOLE;
}

int64_t weir__backoff_ms(const weir_job *j, int32_t failures)
{
    const weir_backoff *b = &j->backoff;
    int64_t             d = b->delay_ms ? b->delay_ms : j->delay_ms;
    int64_t             ms = 0;
    if (b->kind == WEIR_FIXED)
        ms = d;
    else if (b->kind == WEIR_EXPONENTIAL)
        ms = exponential(d, failures);
    else if (b->kind == WEIR_LINEAR)
        ms = linear(d, failures);
    if (b->max_ms > 0 && ms > b->max_ms)
        ms = b->max_ms;
    if (ms > 0 && b->jitter_pct > 0)
        ms -= jitter(ms, b->jitter_pct, j->id, failures);
    return ms;
}

/* ---- by hand ---- */

static weir_code wrong_state(const weir_job *j, weir_error *err, const char *what)
{
    return weir_fail(err, WEIR_ESTATE, "job %" PRIu64 " is %s: %s", j->id,
                     weir_state_name(j->state), what);
}

static weir_code check_from(const weir_job *j, uint32_t from, weir_error *err)
{
    if (!from || (from & 1u << j->state))
        return WEIR_OK;
    char   list[80] = "";
    size_t len = 0;
    for (int s = WEIR_INACTIVE; s < WEIR_STATES; s++) {
        if (!(from & 1u << s))
            continue;
        const char *sep = !len ? "" : from >> (s + 1) ? ", " : " or ";
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%s", sep,
                                weir_state_name((weir_state)s));
    }
    return weir_fail(err, WEIR_ESTATE, "job %" PRIu64 " is %s, but must be %s for this", j->id,
                     weir_state_name(j->state), list);
}

/* Its state is to be active, complete or failed, without a worker's doing. */
static weir_code check_set(const weir_job *j, const weir_change *c, bool later, weir_error *err)
{
    if (j->state == WEIR_ACTIVE)
        return wrong_state(j, err, "a worker has it, and must end it; or cancel it first");
    if (j->state == c->state)
        return weir_fail(err, WEIR_ESTATE, "job %" PRIu64 " is already %s", j->id,
                         weir_state_name(j->state));
    if (later)
        return weir_fail(err, WEIR_EINVAL, "delay: not together with state %s",
                         weir_state_name(c->state));
    if (c->data)
        return weir_fail(err, WEIR_EINVAL, "data: not together with state %s: change it before",
                         weir_state_name(c->state));
    return WEIR_OK;
}

static weir_code check_target(const weir_job *j, const weir_change *c, weir_error *err)
{
    weir_state s = j->state;
    bool       later = c->set_delay || c->run_at;
    switch (c->state) {
    case WEIR_ANY:
        if (later && s == WEIR_ACTIVE)
            return wrong_state(j, err, "its delay can change once it is inactive or delayed");
        if (later && weir__finished(s))
            return wrong_state(j, err, "to run it again later, set its state to delayed too");
        return WEIR_OK;
    case WEIR_INACTIVE:
        if (s == WEIR_INACTIVE)
            return weir_fail(err, WEIR_ESTATE, "job %" PRIu64 " is already inactive", j->id);
        if (s == WEIR_ACTIVE)
            return wrong_state(j, err, "its worker must end it, or cancel it and then retry");
        if ((c->set_delay && c->delay_ms > 0) || c->run_at)
            return weir_fail(err, WEIR_EINVAL, "delay: not together with state inactive, but with "
                                               "delayed");
        return WEIR_OK;
    case WEIR_DELAYED:
        if (s == WEIR_ACTIVE)
            return wrong_state(j, err, "its worker must end it, or cancel it and then retry");
        if (later)
            return WEIR_OK;
        if (s == WEIR_DELAYED)
            return weir_fail(err, WEIR_ESTATE, "job %" PRIu64 " is already delayed", j->id);
        return weir_fail(err, WEIR_EINVAL, "state: delayed needs a delay");
    case WEIR_CANCELLED:
        if (s == WEIR_CANCELLED)
            return weir_fail(err, WEIR_ESTATE, "job %" PRIu64 " is already cancelled", j->id);
        if (weir__finished(s))
            return wrong_state(j, err, "only inactive, delayed and active ones can be cancelled");
        if (later)
            return weir_fail(err, WEIR_EINVAL, "delay: not together with state cancelled");
        return WEIR_OK;
    case WEIR_ACTIVE:
    case WEIR_COMPLETE:
    case WEIR_FAILED:
        return check_set(j, c, later, err);
    default:
        return weir_fail(err, WEIR_EINVAL, "state: %d is none", (int)c->state);
    }
}

/* Finished: as new, but for what tells of its past (error, failed_at, delivery, created_at). */
static void reset(weir_job *j)
{
    j->attempts = 0;
    j->lost = 0;
    j->progress = 0;
    j->progress_data = NULL;
    j->progress_data_len = 0;
    j->result = NULL;
    j->result_len = 0;
    j->finished_at = 0;
    j->duration_ms = 0;
}

static void wait_again(weir_job *j, int64_t delay_ms, bool at_moment, int64_t now)
{
    if (weir__finished(j->state))
        reset(j);
    j->at_moment = at_moment && delay_ms > 0;
    if (j->state != WEIR_INACTIVE || delay_ms > 0)
        j->promote_at = now + delay_ms;
    enter(j, delay_ms > 0 ? WEIR_DELAYED : WEIR_INACTIVE, now);
}

static bool is_parked(const weir_job *j)
{
    return j->state == WEIR_DELAYED && j->promote_at >= WEIR_PARKED_AT;
}

/* Run it at this time, or now when that has passed. A job that was parked can get its own time
 * back, also one in the past. */
static void wait_until(weir_job *j, int64_t run_at, int64_t now)
{
    bool back = is_parked(j) && (j->promote_at - WEIR_PARKED_AT) % WEIR_PARKED_SPAN == run_at;
    wait_again(j, run_at > now ? run_at - now : 0, true, now);
    if (back)
        j->promote_at = run_at;
}

static void set_complete(weir_job *j, int64_t now)
{
    j->progress = 100;
    j->error = NULL;
    enter(j, WEIR_COMPLETE, now);
}

static void set_failed(weir_job *j, int64_t now)
{
    j->result = NULL;
    j->result_len = 0;
    j->duration_ms = 0;
    j->error = WEIR__BY_HAND_TEXT;
    j->failed_at = now;
    enter(j, WEIR_FAILED, now);
}

/* Whoever asked for it has it, as if it had been taken. */
static void set_active(weir_job *j, const weir_change *c, int64_t now)
{
    if (j->state != WEIR_INACTIVE)
        wait_again(j, 0, false, now);
    weir__job_take(j, c->worker, c->lease_ms, now);
}

/* Is it parked, or no longer so, for its way to another store? There it goes on as it was. */
static bool is_moved(const weir_job *was, const weir_job *is)
{
    return is_parked(is) || is_parked(was);
}

/* What was done by hand, told by what came of it; WEIR__PAST_KINDS: nothing. */
static weir_past_kind done_by_hand(const weir_job *was, const weir_job *is, bool new_data)
{
    if (is->state != was->state && (is->state == WEIR_ACTIVE || is->state == WEIR_COMPLETE ||
                                    is->state == WEIR_FAILED))
        return WEIR__PAST_SET;
    if (weir__finished(was->state) && !weir__finished(is->state))
        return WEIR__PAST_RETRIED;
    if (is->state != was->state && is->state == WEIR_CANCELLED)
        return WEIR__PAST_CANCELLED;
    if (is_moved(was, is))
        return WEIR__PAST_KINDS;
    if (is->state != was->state && is->state == WEIR_INACTIVE)
        return WEIR__PAST_PROMOTED;
    if (is->state == WEIR_DELAYED && (was->state != is->state || was->promote_at != is->promote_at))
        return WEIR__PAST_DELAYED;
    return is->priority != was->priority || new_data ? WEIR__PAST_CHANGED : WEIR__PAST_KINDS;
}

static void note_by_hand(weir_job *j, const weir_job *was, bool new_data, int64_t now,
                         weir_buf *past)
{
    weir_past_kind kind = done_by_hand(was, j, new_data);
    bool           is_over = kind == WEIR__PAST_RETRIED || kind == WEIR__PAST_SET;
    /* That a worker completed it is not told any more; that it was set by hand is. */
    if (is_over && was->state == WEIR_COMPLETE &&
        was->finished_at <= was->started_at + was->duration_ms) {
        weir_past end = entry(was, was, WEIR__PAST_COMPLETE, was->finished_at);
        remember(j, &end, past);
    }
    if (kind == WEIR__PAST_KINDS)
        return;
    weir_past p = entry(was, j, kind, now);
    p.new_priority = j->priority != was->priority;
    p.old_priority = was->priority;
    p.priority = j->priority;
    p.new_data = new_data;
    remember(j, &p, past);
}

weir_code weir__job_update(weir_job *j, const weir_change *change, uint32_t from, int64_t now,
                           weir_buf *past, weir_error *err)
{
    if (change->delivery && (j->state != WEIR_ACTIVE || j->delivery != change->delivery))
        return weir__stale(err, j->id, change->delivery);
    weir_code rc = check_from(j, from, err);
    if (!rc)
        rc = check_target(j, change, err);
    if (rc)
        return rc;
    if (j->state == WEIR_ACTIVE && change->set_priority)
        return wrong_state(j, err, "its priority can change when no worker has it");
    if (j->state == WEIR_ACTIVE && change->data)
        return wrong_state(j, err, "its data can change when no worker has it");

    weir_job was = *j;
    if (change->set_priority)
        j->priority = change->priority;
    if (change->data) {
        j->data = change->data;
        j->data_len = change->data_len ? change->data_len : strlen(change->data);
    }
    if (change->set_delay)
        j->delay_ms = change->delay_ms;
    if (change->set_priority || change->data)
        j->updated_at = now;

    if (change->state == WEIR_CANCELLED)
        enter(j, WEIR_CANCELLED, now);
    else if (change->state == WEIR_ACTIVE)
        set_active(j, change, now);
    else if (change->state == WEIR_COMPLETE)
        set_complete(j, now);
    else if (change->state == WEIR_FAILED)
        set_failed(j, now);
    else if (change->set_delay)
        wait_again(j, change->delay_ms, false, now);
    else if (change->run_at)
        wait_until(j, change->run_at, now);
    else if (change->state == WEIR_INACTIVE && j->state == WEIR_DELAYED)
        promote(j, now);
    else if (change->state == WEIR_INACTIVE)
        wait_again(j, 0, false, now);
    note_by_hand(j, &was, change->data != NULL, now, past);
    return WEIR_OK;
}

weir_code weir__job_set_values(weir_job *j, const weir_change *change, int64_t now,
                               weir_buf *values, weir_error *err)
{
    if (!change->values)
        return WEIR_OK;
    size_t    len = change->values_len ? change->values_len : strlen(change->values);
    weir_code rc = weir__values_merge(values, j->values, j->values_len, change->values, len, err);
    if (rc)
        return rc;
    j->values = values->len ? values->data : NULL;
    j->values_len = values->len;
    j->updated_at = now;
    return WEIR_OK;
}

size_t weir__update_events(const weir_job *j, weir_state old, weir_event_kind kind[2])
{
    static const weir_event_kind entered[WEIR_STATES] = {
        [WEIR_INACTIVE] = WEIR_EVENT_ENQUEUE,   [WEIR_ACTIVE] = WEIR_EVENT_START,
        [WEIR_COMPLETE] = WEIR_EVENT_COMPLETE,  [WEIR_FAILED] = WEIR_EVENT_FAILED,
        [WEIR_CANCELLED] = WEIR_EVENT_CANCELLED,
    };
    size_t n = 0;
    if (j->state == old || j->state == WEIR_DELAYED)
        return 0;
    if (j->state == WEIR_INACTIVE && old == WEIR_DELAYED)
        kind[n++] = WEIR_EVENT_PROMOTION;
    kind[n++] = entered[j->state];
    return n;
}

const char *weir__update_text(const weir_job *j, weir_event_kind kind)
{
    return kind == WEIR_EVENT_START ? j->worker : kind == WEIR_EVENT_FAILED ? j->error : NULL;
}
