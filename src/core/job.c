/* job.c - the life of a job.
 *
 *    init ──► delayed ──promote──► inactive ──take──► active ──complete──► complete
 *      │       ▲   │                ▲  ▲  │            │ │ │
 *      └───────┼───┼────────────────┘  │  │            │ │ └──fail, lose──► failed
 *              │   └──expire───────────┼──┴──expire────┼─┼────────────────►   "
 *              │                       │               │ └──cancel────────► cancelled
 *              │   return, lose, fail  └───────────────┤                 (also of the waiting)
 *              └──────────────fail, with a backoff─────┘
 *
 *    complete, failed, cancelled ──retry──► inactive, delayed
 *    any but active ──set──► active (the caller has it then), complete, failed
 *    any, from another store ──import──► the same, but active becomes inactive
 *
 * Each arrow is the function weir__job_<its name>; cancel, retry, set and what else is done by hand
 * is weir__job_update() (job_update.c). Each but init, take, complete and import leaves an entry in
 * the job's history (history.h). What is true in a state:
 *
 *   always      0 <= attempts <= max_attempts, 0 <= lost <= max_lost + 1, 0 <= progress <= 100;
 *               delivery only grows, created_at and delay_ms (but by hand) never change
 *   inactive,   attempts < max_attempts, lost <= max_lost; no result, no finished_at, no duration.
 *   delayed     error and failed_at are of the last failure, also after a retry
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
#include <string.h>

#include "core/life.h"

void weir__job_check(const weir_job *j)
{
    (void)j;
#ifndef NDEBUG
    assert(j->id != 0);
    assert(j->state > WEIR_STATE_ANY && j->state < WEIR_STATE_COUNT);
    assert(j->max_attempts >= 1 && j->attempts >= 0 && j->attempts <= j->max_attempts);
    assert(j->max_lost >= 1 && j->lost >= 0 && j->lost <= j->max_lost + 1);
    assert(j->progress >= 0 && j->progress <= 100);
    assert(j->state == WEIR_STATE_ACTIVE || !j->lease_until);
    if (!weir__finished(j->state)) {
        assert(j->attempts < j->max_attempts && j->lost <= j->max_lost);
        assert(j->finished_at == 0 && j->duration_ms == 0 && !j->result);
    }
    switch (j->state) {
    case WEIR_STATE_ACTIVE:
        assert(j->delivery > 0 && j->worker);
        break;
    case WEIR_STATE_COMPLETE:
        assert(j->progress == 100 && !j->error);
        break;
    case WEIR_STATE_FAILED:
        assert(j->error && !j->result && j->duration_ms == 0);
        break;
    case WEIR_STATE_CANCELLED:
        assert(!j->result && j->duration_ms == 0);
        break;
    default:
        break;
    }
#endif
}

/* run_at is not turned into a delay_ms: delay_ms is also the default of the backoff, for which "at
 * noon tomorrow" has no meaning. */
void weir__job_init(weir_job *j, const weir_spec *spec, uint64_t id, int64_t now)
{
    int64_t at = now + spec->delay_ms;
    if (spec->run_at > at)
        at = spec->run_at;
    *j = (weir_job){
        .id = id,
        .type = spec->type,
        .state = at > now ? WEIR_STATE_DELAYED : WEIR_STATE_INACTIVE,
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
    j->taken = NULL;
    j->lease_until = 0;
    j->at_moment = j->state == WEIR_STATE_DELAYED;
    if (j->state == WEIR_STATE_ACTIVE || j->state == WEIR_STATE_ANY)
        j->state = WEIR_STATE_INACTIVE;
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
    if (!j->promote_at && j->state != WEIR_STATE_DELAYED)
        j->promote_at = j->created_at;
    if (!j->updated_at)
        j->updated_at = j->created_at;
    if (!j->finished_at && weir__finished(j->state))
        j->finished_at = j->updated_at;
    j->search = j->search || j->search_keys;
}

/* ---- the parts of a transition ---- */

void weir__life_begin(const weir_job *j, weir_effects *e)
{
    *e = (weir_effects){ .from = j->state, .to = j->state };
}

void weir__life_enter(weir_job *j, weir_state state, int64_t now)
{
    j->state = state;
    j->updated_at = now;
    if (state != WEIR_STATE_ACTIVE)
        j->lease_until = 0;
    if (weir__finished(state))
        j->finished_at = now;
    weir__job_check(j);
}

weir_history_entry weir__life_entry(const weir_job *was, const weir_job *is, weir_history_kind kind,
                                    int64_t now)
{
    weir_history_entry p = { .kind = kind, .at = now, .state = is->state };
    if (was->state == WEIR_STATE_ACTIVE || kind == WEIR__HISTORY_COMPLETE) {
        p.delivery = was->delivery;
        p.worker = was->worker;
        p.started_at = was->started_at;
    }
    if (was->state == is->state && was->promote_at == is->promote_at)
        return p;               /* of a delay there is nothing new */
    if (was->state == WEIR_STATE_DELAYED)
        p.planned = was->promote_at;
    if (is->state == WEIR_STATE_DELAYED)
        p.until = is->promote_at;
    return p;
}

void weir__life_remember(weir_job *j, const weir_history_entry *p, weir_effects *e)
{
    if (j->history && !e->history.len)
        weir__buf_add(&e->history, j->history, j->history_len);
    weir__history_add(&e->history, p);
    j->history = e->history.data;
    j->history_len = e->history.len;
    e->texts |= WEIR__NEW(history);
}

/* A delivery or a wait ended; `error` may be NULL. */
static void note(weir_job *j, const weir_job *was, weir_history_kind kind, const char *error,
                 int64_t now, weir_effects *e)
{
    weir_history_entry p = weir__life_entry(was, j, kind, now);
    p.error = error;
    weir__life_remember(j, &p, e);
}

static void set_error(weir_job *j, const char *text, int64_t now, weir_effects *e)
{
    j->error = text;
    j->failed_at = now;
    e->texts |= WEIR__NEW(error);
}

void weir__life_error(weir_job *j, const char *text, int64_t now, weir_effects *e)
{
    set_error(j, text, now, e);
    weir__buf_str(&e->log, "error | ");
    weir__buf_add(&e->log, text, weir__utf8_cut(text, strlen(text), WEIR_MAX_TEXT - e->log.len));
}

void weir__life_promote(weir_job *j, int64_t now)
{
    assert(j->state == WEIR_STATE_DELAYED);
    if (j->promote_at > now)    /* by hand, before its time */
        j->promote_at = now;
    weir__life_enter(j, WEIR_STATE_INACTIVE, now);
}

void weir__life_event(weir_effects *e, weir_event_kind kind)
{
    assert(e->n_events < WEIR__MAX_EVENTS);
    e->event[e->n_events++] = kind;
}

static bool holds_key(const weir_job *j, weir_state state)
{
    return j->unique && state != WEIR_STATE_ANY && !weir__finished(state);
}

static void leave_for(const weir_job *j, weir_state to, weir_effects *e)
{
    e->to = to;
    e->takes_key = holds_key(j, to) && !holds_key(j, e->from);
    e->frees_key = holds_key(j, e->from) && !holds_key(j, to);
}

void weir__life_end(const weir_job *j, weir_effects *e)
{
    leave_for(j, j->state, e);
}

/* ---- transitions ---- */

void weir__job_added(const weir_job *j, weir_effects *e)
{
    *e = (weir_effects){ .from = WEIR_STATE_ANY };
    if (j->state == WEIR_STATE_INACTIVE)
        weir__life_event(e, WEIR_EVENT_ENQUEUE);
    weir__life_end(j, e);
}

void weir__job_remove(const weir_job *j, weir_effects *e)
{
    weir__life_begin(j, e);
    weir__life_event(e, WEIR_EVENT_REMOVE);
    leave_for(j, WEIR_STATE_ANY, e);
}

void weir__job_take(weir_job *j, const char *worker, int64_t lease_ms, int64_t now,
                    weir_effects *e)
{
    assert(j->state == WEIR_STATE_INACTIVE);
    weir__life_begin(j, e);
    j->delivery++;
    j->worker = worker;
    j->started_at = now;
    j->lease_until = now + lease_ms;
    j->progress = 0;
    j->progress_data = NULL;
    j->progress_data_len = 0;
    e->texts = WEIR__NEW(worker) | WEIR__NEW(progress_data);
    weir__life_enter(j, WEIR_STATE_ACTIVE, now);
    weir__life_event(e, WEIR_EVENT_START);
    weir__life_end(j, e);
}

void weir__job_progress(weir_job *j, int32_t percent, const char *data, size_t len, int64_t now,
                        weir_effects *e)
{
    assert(j->state == WEIR_STATE_ACTIVE);
    weir__life_begin(j, e);
    j->progress = percent;
    j->updated_at = now;
    if (data) {
        j->progress_data = data;
        j->progress_data_len = len;
        e->texts = WEIR__NEW(progress_data);
    }
    weir__life_event(e, WEIR_EVENT_PROGRESS);
}

void weir__job_complete(weir_job *j, const char *result, size_t len, int64_t now, weir_effects *e)
{
    assert(j->state == WEIR_STATE_ACTIVE);
    weir__life_begin(j, e);
    j->attempts++;
    j->progress = 100;
    j->result = result;
    j->result_len = result ? len : 0;
    j->error = NULL;
    j->duration_ms = now > j->started_at ? now - j->started_at : 0;   /* clocks go back, too */
    e->texts = WEIR__NEW(result) | WEIR__NEW(error);
    e->completed = 1;
    e->work_ms = j->duration_ms;
    weir__life_enter(j, WEIR_STATE_COMPLETE, now);
    weir__life_event(e, WEIR_EVENT_COMPLETE);
    leave_for(j, j->remove_on_complete ? WEIR_STATE_ANY : WEIR_STATE_COMPLETE, e);
}

/* It runs again after this delay. */
static void wait_again(weir_job *j, int64_t delay_ms, int64_t now)
{
    if (delay_ms > 0) {
        j->promote_at = now + delay_ms;
        j->at_moment = false;
    }
    weir__life_enter(j, delay_ms > 0 ? WEIR_STATE_DELAYED : WEIR_STATE_INACTIVE, now);
}

/* An execution failed with this text; `final`: it is not tried again. */
static void fail(weir_job *j, const char *error, bool final, int64_t now, weir_effects *e)
{
    assert(j->state == WEIR_STATE_ACTIVE);
    j->attempts++;
    weir__life_error(j, error, now, e);
    e->failed = 1;
    if (final || j->attempts >= j->max_attempts) {
        weir__life_enter(j, WEIR_STATE_FAILED, now);
        weir__life_event(e, WEIR_EVENT_FAILED);
        return;
    }
    j->at_moment = false;
    wait_again(j, weir__backoff_ms(j, j->attempts), now);
    weir__life_event(e, WEIR_EVENT_FAILED_ATTEMPT);
    if (j->state == WEIR_STATE_INACTIVE)
        weir__life_event(e, WEIR_EVENT_ENQUEUE);
}

/* A text that the job points at, in *e; "" when out of memory. */
static const char *keep(weir_buf *b, const char *text, size_t len)
{
    weir__buf_add(b, text, len);
    return b->failed ? "" : b->data;
}

void weir__job_fail(weir_job *j, const char *error, size_t len, bool final, int64_t now,
                    weir_effects *e)
{
    weir_job was = *j;
    weir__life_begin(j, e);
    const char *text = keep(&e->error, error, len);
    fail(j, text, final, now, e);
    note(j, &was,
         j->state == WEIR_STATE_FAILED ? WEIR__HISTORY_FAILED : WEIR__HISTORY_FAILED_ATTEMPT, text,
         now, e);
    weir__life_end(j, e);
}

void weir__job_exceed(weir_job *j, int64_t now, weir_effects *e)
{
    weir_job was = *j;
    weir__life_begin(j, e);
    weir__life_event(e, WEIR_EVENT_TTL_EXCEEDED);
    fail(j, WEIR__TTL_TEXT, false, now, e);
    note(j, &was, WEIR__HISTORY_TTL_EXCEEDED, NULL, now, e);
    weir__life_end(j, e);
}

void weir__job_return(weir_job *j, int64_t delay_ms, int64_t now, weir_effects *e)
{
    assert(j->state == WEIR_STATE_ACTIVE);
    weir_job was = *j;
    weir__life_begin(j, e);
    wait_again(j, delay_ms, now);
    if (j->state == WEIR_STATE_INACTIVE)
        weir__life_event(e, WEIR_EVENT_ENQUEUE);
    note(j, &was, WEIR__HISTORY_RETURNED, NULL, now, e);
    weir__life_end(j, e);
}

void weir__job_lose(weir_job *j, int64_t now, weir_effects *e)
{
    assert(j->state == WEIR_STATE_ACTIVE);
    weir_job    was = *j;
    const char *worker = j->worker ? j->worker : "?";
    weir__life_begin(j, e);
    weir__life_event(e, WEIR_EVENT_STALLED);
    j->lost++;
    if (j->lost <= j->max_lost) {
        weir__buf_printf(&e->log, "stalled | worker %.200s was lost (%" PRId32 " of %" PRId32 ")",
                         worker, j->lost, j->max_lost);
        weir__life_enter(j, WEIR_STATE_INACTIVE, now);
        weir__life_event(e, WEIR_EVENT_ENQUEUE);
    } else {
        weir__buf_printf(&e->log, "stalled | worker %.200s was lost, and %" PRId32
                         " before it: not tried again", worker, j->max_lost);
        set_error(j, keep(&e->error, e->log.data, e->log.len), now, e);
        weir__life_enter(j, WEIR_STATE_FAILED, now);
        weir__life_event(e, WEIR_EVENT_FAILED);
    }
    note(j, &was, WEIR__HISTORY_STALLED, NULL, now, e);
    weir__life_end(j, e);
}

void weir__job_finish(weir_job *j, weir_outcome outcome, const char *text, size_t len,
                      int64_t delay_ms, int64_t now, weir_effects *e)
{
    switch (outcome) {
    case WEIR_OUTCOME_DONE:
        weir__job_complete(j, text, len, now, e);
        break;
    case WEIR_OUTCOME_FAIL:
    case WEIR_OUTCOME_GIVE_UP:
        weir__job_fail(j, text ? text : "", text ? len : 0, outcome == WEIR_OUTCOME_GIVE_UP, now,
                       e);
        break;
    case WEIR_OUTCOME_RETURN:
        weir__job_return(j, delay_ms, now, e);
        break;
    case WEIR_OUTCOME_LOST:
        weir__job_lose(j, now, e);
        break;
    }
}

void weir__job_set_aside(weir_job *j, const char *error, int64_t now, weir_effects *e)
{
    weir__life_begin(j, e);
    weir__life_error(j, error, now, e);
    j->state = WEIR_STATE_FAILED;
    j->updated_at = j->finished_at = now;
    j->lease_until = 0;
    weir__life_event(e, WEIR_EVENT_FAILED);
    weir__life_end(j, e);
}

void weir__job_expire(weir_job *j, int64_t now, weir_effects *e)
{
    assert(j->state == WEIR_STATE_INACTIVE || j->state == WEIR_STATE_DELAYED);
    weir_job was = *j;
    weir__job_set_aside(j, WEIR__DEADLINE_TEXT, now, e);
    weir__job_check(j);
    note(j, &was, WEIR__HISTORY_DEADLINE, NULL, now, e);
}

void weir__job_promote(weir_job *j, int64_t now, weir_effects *e)
{
    weir_job was = *j;
    weir__life_begin(j, e);
    weir__life_promote(j, now);
    weir__life_event(e, WEIR_EVENT_PROMOTION);
    weir__life_event(e, WEIR_EVENT_ENQUEUE);
    note(j, &was, WEIR__HISTORY_DUE, NULL, now, e);
    weir__life_end(j, e);
}

/* ---- places and times ---- */

void weir__job_clock_set(weir_job *j, int64_t step_ms)
{
    if (j->state == WEIR_STATE_ACTIVE && j->lease_until)
        j->lease_until += step_ms;
    else if (j->state == WEIR_STATE_DELAYED && !j->at_moment)
        j->promote_at += step_ms;
}

int64_t weir__job_rank(const weir_job *j)
{
    switch (j->state) {
    case WEIR_STATE_INACTIVE:
        return j->priority;
    case WEIR_STATE_DELAYED:
        return j->promote_at;
    case WEIR_STATE_ACTIVE:
        return j->started_at;
    default:
        return j->finished_at;
    }
}

int64_t weir_job_moment(const weir_job *j)
{
    return j->state == WEIR_STATE_INACTIVE ? j->created_at : weir__job_rank(j);
}

int64_t weir__job_due(const weir_job *j)
{
    if (j->state == WEIR_STATE_DELAYED)
        return j->deadline_at && j->deadline_at < j->promote_at ? j->deadline_at : j->promote_at;
    return j->state == WEIR_STATE_INACTIVE ? j->deadline_at : 0;
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

/* The part that jitter takes off. A hash of job and failure rather than a random number, so that
 * all stores agree. The result must be the same in a store that only has doubles. Hence the small
 * numbers, and delay * pct * h / (100 * MODULUS) in two steps, none of which passes 2^53. */
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
    if (b->kind == WEIR_BACKOFF_FIXED)
        ms = d;
    else if (b->kind == WEIR_BACKOFF_EXPONENTIAL)
        ms = exponential(d, failures);
    else if (b->kind == WEIR_BACKOFF_LINEAR)
        ms = linear(d, failures);
    if (b->max_ms > 0 && ms > b->max_ms)
        ms = b->max_ms;
    if (ms > 0 && b->jitter_pct > 0)
        ms -= jitter(ms, b->jitter_pct, j->id, failures);
    return ms;
}

bool weir__jobs_fill_take(weir_job *const *jobs, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += jobs[i]->data_len;
    return bytes >= WEIR_MAX_TAKE_BYTES;
}
