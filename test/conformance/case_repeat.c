/* case_repeat.c - operations that were done, and whose answer was lost, are sent again: those that
 * allow it get an answer as if nothing had been, the others WEIR_EUNKNOWN and are not sent. */
#include "conformance/conformance.h"

#include <string.h>

#include "store/remote/attempt.h"

static weir_code send_again(fixture *f, weir_op *op)
{
    weir_caller  caller = { 0 };
    weir_attempt a;
    weir_op     *ops[] = { op };
    CHECK_INT(weir__caller_init(&caller, NULL), WEIR_OK);
    weir__attempt_begin(&a, &caller, ops, 1);
    weir__attempt_forget(&a, "its process was killed");
    if (a.n)
        run(f, op);
    weir__attempt_end(&a);
    weir_doubts *d = weir__doubts_create(&a);
    for (size_t i = 0; d && i < d->n; i++)
        run(f, d->asked[i]);
    weir__doubts_settle(d);
    weir__caller_fini(&caller);
    f->err = op->err;
    return op->err.code;
}

static weir_code do_twice(fixture *f, weir_op *op)
{
    CHECK_INT(run(f, op), WEIR_OK);
    weir__op_free(op);
    return send_again(f, op);
}

static weir_op finish_of(const weir_job *job, weir_outcome outcome, const char *text)
{
    return (weir_op){ .kind = WEIR_OP_FINISH,
                      .u.finish = { .id = job->id, .delivery = job->delivery, .outcome = outcome,
                                    .text = text } };
}

static weir_op update_of(uint64_t id, weir_change change)
{
    return (weir_op){ .kind = WEIR_OP_UPDATE, .u.update = { .id = id, .change = change } };
}

/* ---- the end of a delivery ---- */

static void each_outcome_is_recognised(fixture *f)
{
    static const struct {
        weir_outcome outcome;
        const char  *text;
        weir_state   state;
        int          attempts;
    } ends[] = {
        { WEIR_OUTCOME_DONE, "[1]", WEIR_STATE_COMPLETE, 1 },
        { WEIR_OUTCOME_FAIL, "no", WEIR_STATE_INACTIVE, 1 },
        { WEIR_OUTCOME_GIVE_UP, "no", WEIR_STATE_FAILED, 1 },
        { WEIR_OUTCOME_RETURN, NULL, WEIR_STATE_INACTIVE, 0 },
        { WEIR_OUTCOME_LOST, NULL, WEIR_STATE_INACTIVE, 0 },
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 3 });
        weir_op  op = finish_of(take(f, "a"), ends[i].outcome, ends[i].text);
        CHECK_INT(do_twice(f, &op), WEIR_OK);
        CHECK_INT(op.u.finish.state, ends[i].state);
        CHECK_INT(get(f, id)->attempts, ends[i].attempts);
        CHECK_INT(remove_job(f, id), WEIR_OK);
    }
}

/* Somebody was faster: the job runs again, or has run again. */
static void an_outcome_is_recognised_later(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 3 });
    weir_op  op = finish_of(take(f, "a"), WEIR_OUTCOME_FAIL, "no");
    CHECK_INT(run(f, &op), WEIR_OK);
    const weir_job *second = take(f, "a");
    CHECK_INT(send_again(f, &op), WEIR_OK);
    CHECK_STATE(f, id, WEIR_STATE_ACTIVE);
    op = finish_of(second, WEIR_OUTCOME_DONE, "[2]");
    CHECK_INT(run(f, &op), WEIR_OK);
    CHECK_INT(retry_job(f, id), WEIR_OK);
    CHECK_INT(send_again(f, &op), WEIR_OK);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
}

static void another_end_is_stale(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 3 });
    weir_op  op = finish_of(take(f, "a"), WEIR_OUTCOME_DONE, "[1]");
    CHECK_INT(cancel_job(f, id), WEIR_OK);
    CHECK_INT(send_again(f, &op), WEIR_ESTALE);
    CHECK_STATE(f, id, WEIR_STATE_CANCELLED);
    add(f, "b");
    const weir_job *job = take(f, "b");
    CHECK_INT(finish(f, job), WEIR_OK);
    op = finish_of(job, WEIR_OUTCOME_GIVE_UP, "no");
    CHECK_INT(send_again(f, &op), WEIR_ESTALE);
}

static void of_a_job_that_is_gone_nobody_knows(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .remove_on_complete = true });
    weir_op op = finish_of(take(f, "a"), WEIR_OUTCOME_DONE, "[1]");
    CHECK_INT(do_twice(f, &op), WEIR_EUNKNOWN);
}

static void what_was_not_done_is_done_then(fixture *f)
{
    uint64_t id = add(f, "a");
    weir_op  op = finish_of(take(f, "a"), WEIR_OUTCOME_DONE, "[1]");
    CHECK_INT(send_again(f, &op), WEIR_OK);
    CHECK_STATE(f, id, WEIR_STATE_COMPLETE);
}

static void signs_of_life_can_be_repeated(fixture *f)
{
    uint64_t        id = add(f, "a");
    const weir_job *job = take(f, "a");
    weir_renewal    item = { .id = id, .delivery = job->delivery, .lease_ms = LEASE_MS };
    weir_op renew_op = { .kind = WEIR_OP_RENEW, .u.renew = { .items = &item, .n = 1 } };
    weir_op progress_op = { .kind = WEIR_OP_PROGRESS, .u.progress = { .id = id,
                            .delivery = job->delivery, .percent = 40 } };
    weir_op log_op = { .kind = WEIR_OP_LOG, .u.log = { .id = id, .text = "once" } };
    CHECK_INT(do_twice(f, &renew_op), WEIR_OK);
    CHECK_INT(item.code, WEIR_OK);
    CHECK_INT(do_twice(f, &progress_op), WEIR_OK);
    CHECK_INT(get(f, id)->progress, 40);
    CHECK_INT(do_twice(f, &log_op), WEIR_EUNKNOWN);
    CHECK_INT(logs(f, id, 0, 10)->n, 1);
}

/* ---- by hand ---- */

static void states_that_stay_can_be_repeated(fixture *f)
{
    uint64_t id = add(f, "a");
    weir_op  op = update_of(id, (weir_change){ .state = WEIR_STATE_CANCELLED });
    CHECK_INT(do_twice(f, &op), WEIR_OK);
    CHECK_INT(op.u.update.new_state, WEIR_STATE_CANCELLED);
    op = update_of(id, (weir_change){ .state = WEIR_STATE_COMPLETE });
    CHECK_INT(do_twice(f, &op), WEIR_OK);
    CHECK_INT(cancel_job(f, id), WEIR_ESTATE);
    op = update_of(id, (weir_change){ .state = WEIR_STATE_CANCELLED });
    CHECK_INT(send_again(f, &op), WEIR_EUNKNOWN);
    CHECK_STATE(f, id, WEIR_STATE_COMPLETE);
}

static void a_job_does_not_wait_again_twice(fixture *f)
{
    uint64_t id = add(f, "a");
    CHECK_INT(finish(f, take(f, "a")), WEIR_OK);
    weir_op op = update_of(id, (weir_change){ .state = WEIR_STATE_INACTIVE });
    CHECK_INT(run(f, &op), WEIR_OK);
    CHECK_INT(finish(f, take(f, "a")), WEIR_OK);
    CHECK_INT(send_again(f, &op), WEIR_EUNKNOWN);
    CHECK_STATE(f, id, WEIR_STATE_COMPLETE);
}

static void values_are_set_again(fixture *f)
{
    uint64_t id = add(f, "a");
    weir_op  op = update_of(id, (weir_change){ .set_priority = true, .priority = -3,
                                               .data = "{\"n\":2}" });
    CHECK_INT(do_twice(f, &op), WEIR_OK);
    CHECK_INT(get(f, id)->priority, -3);
    take(f, "a");
    CHECK_INT(send_again(f, &op), WEIR_OK);
    CHECK_STATE(f, id, WEIR_STATE_ACTIVE);
}

static void a_removed_job_is_removed(fixture *f)
{
    weir_op op = { .kind = WEIR_OP_REMOVE, .u.remove.id = add(f, "a") };
    CHECK_INT(do_twice(f, &op), WEIR_OK);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 0);
}

static void settings_are_set_again(fixture *f)
{
    const weir_settings s = { .keep_complete = { .age_ms = 1000 } };
    weir_op             op = { .kind = WEIR_OP_CONFIGURE, .u.configure = { .type = "a",
                               .set_paused = true, .paused = true, .settings = &s } };
    add(f, "a");
    CHECK_INT(do_twice(f, &op), WEIR_OK);
    CHECK_INT(stats_of(f, "a")->paused, true);
}

static void jobs_with_ids_come_in_once(fixture *f)
{
    weir_job      job = { .id = 7, .type = "a", .created_at = f->now, .updated_at = f->now };
    weir_incoming in = { .job = &job };
    weir_imported out = { 0 };
    weir_op       op = { .kind = WEIR_OP_IMPORT, .u.import = { .jobs = &in, .n = 1, .out = &out } };
    CHECK_INT(do_twice(f, &op), WEIR_OK);
    CHECK_INT(out.existed, true);
    in.new_id = true;
    CHECK_INT(do_twice(f, &op), WEIR_EUNKNOWN);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 2);
}

static void schedules_know_their_versions(fixture *f)
{
    weir_op op = { .kind = WEIR_OP_SCHEDULE, .u.schedule = { .name = "s", .due_at = f->now + 1000,
                   .record = "{\"name\":\"s\",\"when\":\"1 * * * *\",\"job\":{\"type\":\"a\"}}" } };
    CHECK_INT(run(f, &op), WEIR_OK);
    uint64_t version = op.u.schedule.new_version;
    CHECK_INT(send_again(f, &op), WEIR_OK);
    CHECK_INT(op.u.schedule.new_version, version);
    op.u.schedule.due_at += 1000;                       /* another change, refused */
    CHECK_INT(send_again(f, &op), WEIR_EUNKNOWN);
    op.u.schedule = (weir_op_schedule){ .name = "s", .due_at = INT64_MAX, .version = version };
    CHECK_INT(do_twice(f, &op), WEIR_OK);
}

const conformance_case cases_repeat[] = {
    CASE(each_outcome_is_recognised),
    CASE(an_outcome_is_recognised_later),
    CASE(another_end_is_stale),
    CASE(of_a_job_that_is_gone_nobody_knows),
    CASE(what_was_not_done_is_done_then),
    CASE(signs_of_life_can_be_repeated),
    CASE(states_that_stay_can_be_repeated),
    CASE(a_job_does_not_wait_again_twice),
    CASE(values_are_set_again),
    CASE(a_removed_job_is_removed),
    CASE(settings_are_set_again),
    CASE(jobs_with_ids_come_in_once),
    CASE(schedules_know_their_versions),
    { 0 }
};
