/* job_update.c - changes of a job by hand: which are allowed, and what they make of it. */
#include "core/job.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "core/life.h"
#include "core/values.h"

static weir_code wrong_state(const weir_job *j, weir_error *err, const char *what)
{
    return weir_fail(err, WEIR_ESTATE, "job %" PRIu64 " is %s: %s", j->id,
                     weir_state_name(j->state), what);
}

static weir_code check_from(const weir_job *j, uint32_t from, weir_error *err)
{
    if (!from || (from & WEIR_BIT(j->state)))
        return WEIR_OK;
    char   list[80] = "";
    size_t len = 0;
    for (int s = WEIR_STATE_INACTIVE; s < WEIR_STATE_COUNT; s++) {
        if (!(from & WEIR_BIT(s)))
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
    if (j->state == WEIR_STATE_ACTIVE)
        return wrong_state(j, err, "a worker has it, and must end it; or cancel it first");
    if (j->state == c->state)
        return weir_fail(err, WEIR_ESTATE, "job %" PRIu64 " is already %s", j->id,
                         weir_state_name(j->state));
    if (later)
        return weir__fail_field(err, WEIR_EINVAL, "delay", "not together with state %s",
                                weir_state_name(c->state));
    if (c->data)
        return weir__fail_field(err, WEIR_EINVAL, "data", "not together with state %s: change it "
                                "before", weir_state_name(c->state));
    return WEIR_OK;
}

static weir_code check_target(const weir_job *j, const weir_change *c, weir_error *err)
{
    weir_state s = j->state;
    bool       later = c->set_delay || c->run_at;
    switch (c->state) {
    case WEIR_STATE_ANY:
        if (later && s == WEIR_STATE_ACTIVE)
            return wrong_state(j, err, "its delay can change once it is inactive or delayed");
        if (later && weir__finished(s))
            return wrong_state(j, err, "to run it again later, set its state to delayed too");
        return WEIR_OK;
    case WEIR_STATE_INACTIVE:
        if (s == WEIR_STATE_INACTIVE)
            return weir_fail(err, WEIR_ESTATE, "job %" PRIu64 " is already inactive", j->id);
        if (s == WEIR_STATE_ACTIVE)
            return wrong_state(j, err, "its worker must end it, or cancel it and then retry");
        if ((c->set_delay && c->delay_ms > 0) || c->run_at)
            return weir__fail_field(err, WEIR_EINVAL, "delay", "not together with state inactive, "
                                    "but with delayed");
        return WEIR_OK;
    case WEIR_STATE_DELAYED:
        if (s == WEIR_STATE_ACTIVE)
            return wrong_state(j, err, "its worker must end it, or cancel it and then retry");
        if (later)
            return WEIR_OK;
        if (s == WEIR_STATE_DELAYED)
            return weir_fail(err, WEIR_ESTATE, "job %" PRIu64 " is already delayed", j->id);
        return weir__fail_field(err, WEIR_EINVAL, "state", "delayed needs a delay");
    case WEIR_STATE_CANCELLED:
        if (s == WEIR_STATE_CANCELLED)
            return weir_fail(err, WEIR_ESTATE, "job %" PRIu64 " is already cancelled", j->id);
        if (weir__finished(s))
            return wrong_state(j, err, "only inactive, delayed and active ones can be cancelled");
        if (later)
            return weir__fail_field(err, WEIR_EINVAL, "delay", "not together with state cancelled");
        return WEIR_OK;
    case WEIR_STATE_ACTIVE:
    case WEIR_STATE_COMPLETE:
    case WEIR_STATE_FAILED:
        return check_set(j, c, later, err);
    default:
        return weir__check_number(c->state, WEIR_STATE_COUNT, "state", err);
    }
}

/* Finished: as new, but for its past (error, failed_at, delivery, created_at). */
static void reset(weir_job *j, weir_effects *e)
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
    e->texts |= WEIR__NEW(progress_data) | WEIR__NEW(result);
}

static void wait_again(weir_job *j, int64_t delay_ms, bool at_moment, int64_t now, weir_effects *e)
{
    if (weir__finished(j->state))
        reset(j, e);
    j->at_moment = at_moment && delay_ms > 0;
    if (j->state != WEIR_STATE_INACTIVE || delay_ms > 0)
        j->promote_at = now + delay_ms;
    weir__life_enter(j, delay_ms > 0 ? WEIR_STATE_DELAYED : WEIR_STATE_INACTIVE, now);
}

static bool is_parked(const weir_job *j)
{
    return j->state == WEIR_STATE_DELAYED && j->promote_at >= WEIR_PARKED_AT;
}

/* Run it at this time, or now when that has passed. A job that was parked can get its own time
 * back, also one in the past. */
static void wait_until(weir_job *j, int64_t run_at, int64_t now, weir_effects *e)
{
    bool back = is_parked(j) && (j->promote_at - WEIR_PARKED_AT) % WEIR_PARKED_SPAN == run_at;
    wait_again(j, run_at > now ? run_at - now : 0, true, now, e);
    if (back)
        j->promote_at = run_at;
}

static void set_complete(weir_job *j, int64_t now, weir_effects *e)
{
    j->progress = 100;
    j->error = NULL;
    e->texts |= WEIR__NEW(error);
    weir__life_enter(j, WEIR_STATE_COMPLETE, now);
}

static void set_failed(weir_job *j, int64_t now, weir_effects *e)
{
    j->result = NULL;
    j->result_len = 0;
    j->duration_ms = 0;
    e->texts |= WEIR__NEW(result);
    weir__life_error(j, WEIR__BY_HAND_TEXT, now, e);
    weir__life_enter(j, WEIR_STATE_FAILED, now);
}

/* The caller has the job, as if the caller had taken it. */
static void set_active(weir_job *j, const weir_change *c, int64_t now, weir_effects *e)
{
    weir_effects take;
    if (j->state != WEIR_STATE_INACTIVE)
        wait_again(j, 0, false, now, e);
    weir__job_take(j, c->worker, c->lease_ms, now, &take);
    e->texts |= take.texts;
}

/* Is it parked, or no longer so, for its way to another store? There it goes on as it was. */
static bool is_moved(const weir_job *was, const weir_job *is)
{
    return is_parked(is) || is_parked(was);
}

/* Which change was made by hand, judged by its result; WEIR__HISTORY_COUNT: nothing. */
static weir_history_kind done_by_hand(const weir_job *was, const weir_job *is, bool new_data)
{
    if (is->state != was->state &&
        (is->state == WEIR_STATE_ACTIVE || is->state == WEIR_STATE_COMPLETE ||
         is->state == WEIR_STATE_FAILED))
        return WEIR__HISTORY_SET;
    if (weir__finished(was->state) && !weir__finished(is->state))
        return WEIR__HISTORY_RETRIED;
    if (is->state != was->state && is->state == WEIR_STATE_CANCELLED)
        return WEIR__HISTORY_CANCELLED;
    if (is_moved(was, is))
        return WEIR__HISTORY_COUNT;
    if (is->state != was->state && is->state == WEIR_STATE_INACTIVE)
        return WEIR__HISTORY_PROMOTED;
    if (is->state == WEIR_STATE_DELAYED &&
        (was->state != is->state || was->promote_at != is->promote_at))
        return WEIR__HISTORY_DELAYED;
    return is->priority != was->priority || new_data ? WEIR__HISTORY_CHANGED : WEIR__HISTORY_COUNT;
}

static void note_by_hand(weir_job *j, const weir_job *was, const char *by, int64_t now,
                         weir_effects *e)
{
    bool           new_data = e->texts & WEIR__NEW(data);
    weir_history_kind kind = done_by_hand(was, j, new_data);
    bool           is_over = kind == WEIR__HISTORY_RETRIED || kind == WEIR__HISTORY_SET;
    /* The state no longer shows that a worker completed it: the history does. */
    if (is_over && was->state == WEIR_STATE_COMPLETE &&
        was->finished_at <= was->started_at + was->duration_ms) {
        weir_history_entry end =
            weir__life_entry(was, was, WEIR__HISTORY_COMPLETE, was->finished_at);
        weir__life_remember(j, &end, e);
    }
    if (kind == WEIR__HISTORY_COUNT)
        return;
    weir_history_entry p = weir__life_entry(was, j, kind, now);
    p.by = by;
    p.new_priority = j->priority != was->priority;
    p.old_priority = was->priority;
    p.priority = j->priority;
    p.new_data = new_data;
    weir__life_remember(j, &p, e);
}

/* Events: of the state that the job enters, if that is another one. */
static void add_events(const weir_job *j, weir_effects *e)
{
    static const weir_event_kind entered[WEIR_STATE_COUNT] = {
        [WEIR_STATE_INACTIVE] = WEIR_EVENT_ENQUEUE,   [WEIR_STATE_ACTIVE] = WEIR_EVENT_START,
        [WEIR_STATE_COMPLETE] = WEIR_EVENT_COMPLETE,  [WEIR_STATE_FAILED] = WEIR_EVENT_FAILED,
        [WEIR_STATE_CANCELLED] = WEIR_EVENT_CANCELLED,
    };
    if (j->state == e->from || j->state == WEIR_STATE_DELAYED)
        return;
    if (j->state == WEIR_STATE_INACTIVE && e->from == WEIR_STATE_DELAYED)
        weir__life_event(e, WEIR_EVENT_PROMOTION);
    weir__life_event(e, entered[j->state]);
}

static weir_code check(const weir_job *j, const weir_change *change, uint32_t from, weir_error *err)
{
    if (change->delivery && (j->state != WEIR_STATE_ACTIVE || j->delivery != change->delivery))
        return weir__stale(err, j->id, change->delivery);
    weir_code rc = check_from(j, from, err);
    if (!rc)
        rc = check_target(j, change, err);
    if (rc)
        return rc;
    if (j->state == WEIR_STATE_ACTIVE && change->set_priority)
        return wrong_state(j, err, "its priority can change when no worker has it");
    if (j->state == WEIR_STATE_ACTIVE && change->data)
        return wrong_state(j, err, "its data can change when no worker has it");
    return WEIR_OK;
}

static void set_members(weir_job *j, const weir_change *change, int64_t now, weir_effects *e)
{
    if (change->set_priority)
        j->priority = change->priority;
    if (change->data) {
        j->data = change->data;
        j->data_len = change->data_len ? change->data_len : strlen(change->data);
        e->texts |= WEIR__NEW(data);
    }
    if (change->values) {
        j->values = e->values.len ? e->values.data : NULL;
        j->values_len = e->values.len;
        e->texts |= WEIR__NEW(values);
    }
    if (change->set_delay)
        j->delay_ms = change->delay_ms;
    if (change->set_priority || change->data || change->values)
        j->updated_at = now;
}

static void set_state(weir_job *j, const weir_change *change, int64_t now, weir_effects *e)
{
    if (change->state == WEIR_STATE_CANCELLED)
        weir__life_enter(j, WEIR_STATE_CANCELLED, now);
    else if (change->state == WEIR_STATE_ACTIVE)
        set_active(j, change, now, e);
    else if (change->state == WEIR_STATE_COMPLETE)
        set_complete(j, now, e);
    else if (change->state == WEIR_STATE_FAILED)
        set_failed(j, now, e);
    else if (change->set_delay)
        wait_again(j, change->delay_ms, false, now, e);
    else if (change->run_at)
        wait_until(j, change->run_at, now, e);
    else if (change->state == WEIR_STATE_INACTIVE && j->state == WEIR_STATE_DELAYED)
        weir__life_promote(j, now);
    else if (change->state == WEIR_STATE_INACTIVE)
        wait_again(j, 0, false, now, e);
}

/* Values leave no entry in the history. */
weir_code weir__job_update(weir_job *j, const weir_change *change, uint32_t from, int64_t now,
                           weir_effects *e, weir_error *err)
{
    weir__life_begin(j, e);
    weir_code rc = check(j, change, from, err);
    size_t    len = !rc && change->values && !change->values_len ? strlen(change->values)
                                                                 : change->values_len;
    if (!rc && change->values)
        rc = weir__values_merge(&e->values, j->values, j->values_len, change->values, len, err);
    if (rc) {
        weir__effects_fini(e);
        return rc;
    }
    weir_job was = *j;
    set_members(j, change, now, e);
    set_state(j, change, now, e);
    note_by_hand(j, &was, change->by, now, e);
    add_events(j, e);
    weir__life_end(j, e);
    return WEIR_OK;
}
