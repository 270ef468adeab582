/* case_hand.c - changing jobs by hand: update, retry, promote, cancel, remove. */
#include "conformance/conformance.h"

#include <string.h>

static uint64_t add_delayed(fixture *f)
{
    return add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 1000 });
}

static void a_new_priority_moves_a_job(fixture *f)
{
    add(f, "a");
    add(f, "a");
    f->now += 5;
    CHECK_INT(update(f, 2, &(weir_change){ .set_priority = true, .priority = -3 }), WEIR_OK);
    CHECK_INT(get(f, 2)->priority, -3);
    CHECK_INT(get(f, 2)->updated_at, f->now);
    CHECK_STR(listed(f, &(weir_query){ .state = WEIR_STATE_INACTIVE }), "2 1");
}

static void a_new_priority_is_what_counts(fixture *f)
{
    add(f, "a");
    add(f, "a");
    CHECK_INT(update(f, 2, &(weir_change){ .set_priority = true, .priority = -3 }), WEIR_OK);
    CHECK_INT(take(f, "a")->id, 2);
}

static void new_data_replaces_the_old(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .data = "{\"n\":1}" });
    CHECK_INT(update(f, id, &(weir_change){ .data = "{\"n\":22}" }), WEIR_OK);
    CHECK_STR(get(f, id)->data, "{\"n\":22}");
    CHECK_INT(get(f, id)->data_len, 8);
    CHECK_INT(update(f, id, &(weir_change){ .data = "[3]xx", .data_len = 3 }), WEIR_OK);
    CHECK_STR(get(f, id)->data, "[3]");
    CHECK_STR(take(f, "a")->data, "[3]");
}

static void changing_nothing_is_fine(fixture *f)
{
    uint64_t id = add(f, "a");
    events(f);
    CHECK_INT(update(f, id, &(weir_change){ 0 }), WEIR_OK);
    CHECK_EVENTS(f, "");
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
}

static void a_delay_can_be_given_later(fixture *f)
{
    uint64_t id = add(f, "a");
    events(f);
    CHECK_INT(update(f, id, &(weir_change){ .set_delay = true, .delay_ms = 500 }), WEIR_OK);
    CHECK_STATE(f, id, WEIR_STATE_DELAYED);
    CHECK_INT(get(f, id)->promote_at, f->now + 500);
    CHECK_EVENTS(f, "");
    CHECK(!take(f, "a"));
    CHECK_DUE(f, f->now + 500);
    CHECK_INT(update(f, id, &(weir_change){ .set_delay = true, .delay_ms = 900 }), WEIR_OK);
    later(f, 500);
    CHECK_STATE(f, id, WEIR_STATE_DELAYED);
    later(f, 400);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
}

static void a_delay_of_zero_promotes(fixture *f)
{
    uint64_t id = add_delayed(f);
    CHECK_INT(update(f, id, &(weir_change){ .set_delay = true }), WEIR_OK);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
    CHECK_EVENTS(f, "promotion 1, enqueue 1");
}

static void a_moment_can_be_given_later(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 70 });
    later(f, 70);
    CHECK_INT(update(f, id, &(weir_change){ .run_at = f->now + 500 }), WEIR_OK);
    CHECK_STATE(f, id, WEIR_STATE_DELAYED);
    CHECK_INT(get(f, id)->promote_at, f->now + 500);
    CHECK_INT(get(f, id)->delay_ms, 70);                         /* its own stays */
    CHECK_DUE(f, f->now + 500);
    int64_t far = INT64_C(253402300799999);
    CHECK_INT(update(f, id, &(weir_change){ .run_at = far }), WEIR_OK);
    CHECK_INT(get(f, id)->promote_at, far);
    CHECK_STR(listed(f, &(weir_query){ .state = WEIR_STATE_DELAYED }), "1");
    later(f, 1000);
    CHECK_STATE(f, id, WEIR_STATE_DELAYED);
    events(f);
    CHECK_INT(update(f, id, &(weir_change){ .run_at = f->now - 5 }), WEIR_OK);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
    CHECK_INT(get(f, id)->promote_at, f->now);
    CHECK_EVENTS(f, "promotion 1, enqueue 1");
    finish(f, take(f, "a"));
    CHECK_INT(update(f, id, &(weir_change){ .run_at = f->now + 5 }), WEIR_ESTATE);
    CHECK_INT(update(f, id, &(weir_change){ .run_at = f->now + 5, .state = WEIR_STATE_DELAYED }),
              WEIR_OK);
    CHECK_STATE(f, id, WEIR_STATE_DELAYED);
}

/* As `weir migrate` does it: nobody takes what is parked, and later it is as it was. */
static void what_was_parked_gets_its_time_back(fixture *f)
{
    int64_t  spans[] = { 0, WEIR_PARKED_SPAN };
    uint64_t id = add(f, "a"), delayed = add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 900 });
    int64_t  own = get(f, id)->promote_at;
    for (size_t i = 0; i < 2; i++) {
        f->now += 50;
        CHECK_INT(update(f, id, &(weir_change){ .run_at = WEIR_PARKED_AT + spans[i] + own }),
                  WEIR_OK);
        CHECK_INT(update(f, delayed, &(weir_change){ .run_at = WEIR_PARKED_AT + spans[i] + own +
                                                               900 }), WEIR_OK);
        CHECK(!take(f, "a"));
        CHECK_INT(update(f, id,
                         &(weir_change){ .run_at = own, .from = WEIR_BIT(WEIR_STATE_DELAYED) }),
                  WEIR_OK);
        CHECK_INT(update(f, delayed, &(weir_change){ .run_at = own + 900 }), WEIR_OK);
        CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
        CHECK_INT(get(f, id)->promote_at, own);
        CHECK_STATE(f, delayed, WEIR_STATE_DELAYED);
        CHECK_INT(get(f, delayed)->promote_at, own + 900);
    }
    CHECK(take(f, "a")->id == id);
}

static void a_moment_that_cannot_be_is_refused(fixture *f)
{
    uint64_t id = add(f, "a");
    CHECK_INT(update(f, id, &(weir_change){ .run_at = f->now + 5, .set_delay = true }),
              WEIR_EINVAL);
    CHECK_INT(update(f, id, &(weir_change){ .run_at = -1 }), WEIR_EINVAL);
    CHECK_INT(update(f, id, &(weir_change){ .run_at = INT64_C(253402300800000) }), WEIR_ELIMIT);
    CHECK_INT(update(f, id, &(weir_change){ .run_at = f->now + 5, .state = WEIR_STATE_CANCELLED }),
              WEIR_EINVAL);
    take(f, "a");
    CHECK_INT(update(f, id, &(weir_change){ .run_at = f->now + 5 }), WEIR_ESTATE);
    CHECK_STATE(f, id, WEIR_STATE_ACTIVE);
}

static void promote_does_not_wait(fixture *f)
{
    uint64_t id = add_delayed(f);
    f->now += 10;
    CHECK_INT(promote_job(f, id), WEIR_OK);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
    CHECK_INT(get(f, id)->promote_at, f->now);
    CHECK_EVENTS(f, "promotion 1, enqueue 1");
    CHECK_INT(promote_job(f, id), WEIR_ESTATE);
    CHECK(strstr(f->err.msg, "inactive"));
    later(f, 2000);
    CHECK_EVENTS(f, "");
}

static void cancel_what_waits(fixture *f)
{
    uint64_t one = add(f, "a"), two = add_delayed(f);
    events(f);
    CHECK_INT(cancel_job(f, one), WEIR_OK);
    CHECK_INT(cancel_job(f, two), WEIR_OK);
    CHECK_STATE(f, one, WEIR_STATE_CANCELLED);
    CHECK_STATE(f, two, WEIR_STATE_CANCELLED);
    CHECK_INT(get(f, one)->finished_at, f->now);
    CHECK_STR(events_in_full(f), "cancelled 1 a cancelled 0 0 0, cancelled 2 a cancelled 0 0 0");
    CHECK(!take(f, "a"));
    later(f, 2000);
    CHECK(!take(f, "a"));
    CHECK_INT(cancel_job(f, one), WEIR_ESTATE);
}

static void cancel_what_runs(fixture *f)
{
    uint64_t        id = add_spec(f, &(weir_spec){ .type = "a", .ttl_ms = 100 });
    const weir_job *job = take(f, "a");
    CHECK_INT(cancel_job(f, id), WEIR_OK);
    CHECK_INT(finish(f, job), WEIR_ESTALE);
    CHECK_INT(renew(f, job, 1000), WEIR_ESTALE);
    CHECK_INT(progress(f, job, 5, NULL), WEIR_ESTALE);
    events(f);
    later(f, LEASE_MS);
    CHECK_STATE(f, id, WEIR_STATE_CANCELLED);
    CHECK_EVENTS(f, "");
}

static void what_has_ended_cannot_be_cancelled(fixture *f)
{
    uint64_t id = add(f, "a");
    finish(f, take(f, "a"));
    CHECK_INT(cancel_job(f, id), WEIR_ESTATE);
    CHECK(strstr(f->err.msg, "complete"));
    CHECK_STATE(f, id, WEIR_STATE_COMPLETE);
}

static void retry_starts_over(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 2 });
    fail_job(f, take(f, "a"), "1");
    fail_job(f, take(f, "a"), "2");
    CHECK_STATE(f, id, WEIR_STATE_FAILED);
    events(f);
    CHECK_INT(retry_job(f, id), WEIR_OK);
    const weir_job *j = get(f, id);
    CHECK_INT(j->state, WEIR_STATE_INACTIVE);
    CHECK_INT(j->attempts, 0);
    CHECK_INT(j->finished_at, 0);
    CHECK_INT(j->delivery, 2);
    CHECK_EVENTS(f, "enqueue 1");
    fail_job(f, take(f, "a"), "3");
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
    finish_with(f, take(f, "a"), "1");
    CHECK_INT(retry_job(f, id), WEIR_OK);
    CHECK(!get(f, id)->result);
    CHECK_INT(get(f, id)->progress, 0);
    cancel_job(f, id);
    CHECK_INT(retry_job(f, id), WEIR_OK);
    CHECK_INT(take(f, "a")->delivery, 5);
}

static void only_what_has_ended_can_be_retried(fixture *f)
{
    uint64_t id = add(f, "a");
    CHECK_INT(retry_job(f, id), WEIR_ESTATE);
    take(f, "a");
    CHECK_INT(retry_job(f, id), WEIR_ESTATE);
    CHECK(strstr(f->err.msg, "active"));
}

static void what_has_ended_can_be_delayed(fixture *f)
{
    uint64_t id = add(f, "a");
    finish(f, take(f, "a"));
    CHECK_INT(update(f, id, &(weir_change){ .set_delay = true, .delay_ms = 100 }), WEIR_ESTATE);
    CHECK_INT(update(f, id, &(weir_change){ .set_delay = true, .delay_ms = 100,
                                            .state = WEIR_STATE_DELAYED }), WEIR_OK);
    CHECK_STATE(f, id, WEIR_STATE_DELAYED);
    later(f, 100);
    CHECK_INT(take(f, "a")->id, id);
}

static void a_running_job_is_not_changed(fixture *f)
{
    uint64_t id = add(f, "a");
    take(f, "a");
    CHECK_INT(update(f, id, &(weir_change){ .set_priority = true, .priority = 1 }), WEIR_ESTATE);
    CHECK_INT(update(f, id, &(weir_change){ .data = "[1]" }), WEIR_ESTATE);
    CHECK_INT(update(f, id, &(weir_change){ .set_delay = true, .delay_ms = 1 }), WEIR_ESTATE);
    CHECK_INT(update(f, id, &(weir_change){ .state = WEIR_STATE_INACTIVE }), WEIR_ESTATE);
    CHECK_STR(get(f, id)->data, "{}");
    CHECK_INT(get(f, id)->priority, 0);
}

static void a_refused_change_changes_nothing(fixture *f)
{
    uint64_t id = add(f, "a");
    CHECK_INT(update(f, id, &(weir_change){ .set_priority = true, .priority = 9, .data = "[1]",
                                            .state = WEIR_STATE_INACTIVE }), WEIR_ESTATE);
    CHECK_INT(get(f, id)->priority, 0);
    CHECK_STR(get(f, id)->data, "{}");
}

static void complete_by_hand(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .unique = "u", .search = true,
                                            .remove_on_complete = true });
    events(f);
    CHECK_INT(update(f, id, &(weir_change){ .state = WEIR_STATE_COMPLETE, .set_priority = true,
                                            .priority = 4 }), WEIR_OK);
    CHECK_STR(events_in_full(f), "complete 1 a complete 0 100 0");
    const weir_job *j = get(f, id);                              /* not removed: nobody ran it */
    CHECK_INT(j->state, WEIR_STATE_COMPLETE);
    CHECK_INT(j->attempts, 0);
    CHECK_INT(j->progress, 100);
    CHECK_INT(j->priority, 4);
    CHECK_INT(j->finished_at, j->updated_at);
    CHECK_INT(j->started_at, 0);
    CHECK(!j->result && !j->error && !j->duration_ms);
    CHECK(strstr(j->history, "\"event\":\"set\",\"state\":\"complete\""));
    CHECK(!take(f, "a"));
    CHECK_INT(stats(f)->type[0].completed, 0);                   /* of executions */
    CHECK_INT(count(f, WEIR_STATE_COMPLETE, "a"), 1);
    CHECK_INT(add_spec(f, &(weir_spec){ .type = "a", .unique = "u" }), 2);   /* its key is free */
    remove_job(f, 2);
    CHECK_INT(retry_job(f, id), WEIR_OK);
    finish(f, take(f, "a"));
    CHECK(!get(f, id));
}

static void failed_by_hand(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 3, .delay_ms = 100,
                                            .search = true });
    CHECK_INT(update(f, id, &(weir_change){ .state = WEIR_STATE_FAILED }), WEIR_OK);
    CHECK_EVENTS(f, "failed 1");
    const weir_job *j = get(f, id);
    CHECK_INT(j->state, WEIR_STATE_FAILED);
    CHECK_STR(j->error, "Failed by hand");
    CHECK_INT(j->attempts, 0);
    CHECK_INT(j->failed_at, j->finished_at);
    CHECK_STR(logs(f, id, 0, 0)->line[0].text, "error | Failed by hand");
    CHECK_INT(stats(f)->type[0].failed, 0);
    later(f, 1000);
    CHECK_STATE(f, id, WEIR_STATE_FAILED);
    CHECK_INT(update(f, id, &(weir_change){ .state = WEIR_STATE_COMPLETE }), WEIR_OK);
    CHECK(!get(f, id)->error);
    CHECK_INT(get(f, id)->failed_at, get(f, id)->created_at);
    CHECK_INT(retry_job(f, id), WEIR_OK);
    finish_with(f, take(f, "a"), "[1]");
    CHECK_INT(update(f, id, &(weir_change){ .state = WEIR_STATE_FAILED }), WEIR_OK);
    j = get(f, id);
    CHECK(!j->result && !j->duration_ms);
    CHECK_INT(j->attempts, 1);
    CHECK(strstr(j->history, "\"event\":\"complete\""));         /* that it once was */
}

static void active_by_hand(fixture *f)
{
    uint64_t    id = add_spec(f, &(weir_spec){ .type = "a", .ttl_ms = 500, .attempts = 2 });
    weir_change have = { .state = WEIR_STATE_ACTIVE, .worker = "me", .lease_ms = 300 };
    events(f);
    CHECK_INT(update(f, id, &have), WEIR_OK);
    CHECK_STR(events_in_full(f), "start 1 a active 0 0 1 me");
    CHECK(!take(f, "a"));
    const weir_job *j = get(f, id);
    CHECK_INT(j->state, WEIR_STATE_ACTIVE);
    CHECK_STR(j->worker, "me");
    CHECK_INT(j->delivery, 1);
    CHECK_INT(stats(f)->type[0].last_taken_at, j->started_at);
    CHECK_INT(update(f, id, &have), WEIR_ESTATE);
    CHECK(strstr(f->err.msg, "a worker has it"));
    CHECK_INT(update(f, id, &(weir_change){ .state = WEIR_STATE_COMPLETE }), WEIR_ESTATE);
    CHECK_INT(renew(f, j, 300), WEIR_OK);
    CHECK_INT(finish_with(f, j, "[1]"), WEIR_OK);                 /* as any worker does */
    CHECK_STR(get(f, id)->result, "[1]");

    CHECK_INT(update(f, id, &have), WEIR_OK);                    /* from what has ended, too */
    j = get(f, id);
    CHECK(!j->result);
    CHECK_INT(j->attempts, 0);
    CHECK_INT(j->delivery, 2);
    events(f);
    later(f, 299);
    CHECK_STATE(f, id, WEIR_STATE_ACTIVE);
    later(f, 2);                                                 /* nobody renewed it */
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
    CHECK_EVENTS(f, "stalled 1, enqueue 1");
    CHECK_INT(finish(f, j), WEIR_ESTALE);
    have.lease_ms = 1000;
    CHECK_INT(update(f, id, &have), WEIR_OK);
    later(f, 501);                                               /* its ttl */
    CHECK_STR(get(f, id)->error, "TTL exceeded");
}

static void what_does_not_go_with_a_state_by_hand(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .unique = "u" });
    CHECK_INT(update(f, id, &(weir_change){ .state = WEIR_STATE_FAILED, .data = "{}" }),
              WEIR_EINVAL);
    CHECK_INT(update(f, id, &(weir_change){ .state = WEIR_STATE_COMPLETE, .set_delay = true }),
              WEIR_EINVAL);
    CHECK_STR(f->err.field, "delay");
    CHECK_INT(update(f, id, &(weir_change){ .state = WEIR_STATE_ACTIVE, .worker = "me",
                                            .run_at = FIXTURE_START + 9000 }), WEIR_EINVAL);
    CHECK_INT(update(f, id, &(weir_change){ .worker = "me" }), WEIR_EINVAL);
    CHECK_INT(update(f, id, &(weir_change){ .state = WEIR_STATE_COMPLETE, .lease_ms = 5 }),
              WEIR_EINVAL);
    CHECK_INT(update(f, id, &(weir_change){ .state = WEIR_STATE_COMPLETE }), WEIR_OK);
    CHECK_INT(update(f, id, &(weir_change){ .state = WEIR_STATE_COMPLETE }), WEIR_ESTATE);
    CHECK_STR(f->err.msg, "job 1 is already complete");
    add_spec(f, &(weir_spec){ .type = "a", .unique = "u" });
    CHECK_INT(update(f, id, &(weir_change){ .state = WEIR_STATE_ACTIVE, .worker = "me" }),
              WEIR_ESTATE);
    CHECK(strstr(f->err.msg, "key"));
    CHECK_STATE(f, id, WEIR_STATE_COMPLETE);
}

static void several_changes_at_once(fixture *f)
{
    uint64_t id = add(f, "a");
    finish(f, take(f, "a"));
    CHECK_INT(update(f, id, &(weir_change){ .set_priority = true, .priority = 9, .data = "[1]",
                                            .state = WEIR_STATE_INACTIVE }), WEIR_OK);
    const weir_job *j = take(f, "a");
    CHECK_INT(j->priority, 9);
    CHECK_STR(j->data, "[1]");
}

static void the_answer_has_both_states(fixture *f)
{
    uint64_t id = add_delayed(f);
    weir_op  op = { .kind = WEIR_OP_UPDATE,
                    .u.update = { .id = id, .from = WEIR_BIT(WEIR_STATE_DELAYED) |
                                  WEIR_BIT(WEIR_STATE_INACTIVE),
                                  .change = { .state = WEIR_STATE_CANCELLED } } };
    CHECK_INT(run(f, &op), WEIR_OK);
    CHECK_INT(op.u.update.old_state, WEIR_STATE_DELAYED);
    CHECK_INT(op.u.update.new_state, WEIR_STATE_CANCELLED);
    CHECK_INT(run(f, &op), WEIR_ESTATE);
    CHECK_STR(f->err.msg, "job 1 is cancelled, but must be inactive or delayed for this");
}

static void finished_jobs_take_new_data_and_priority(fixture *f)
{
    uint64_t id = add(f, "a");
    finish(f, take(f, "a"));
    CHECK_INT(update(f, id, &(weir_change){ .set_priority = true, .priority = 4, .data = "[9]" }),
              WEIR_OK);
    CHECK_STATE(f, id, WEIR_STATE_COMPLETE);
    CHECK_STR(get(f, id)->data, "[9]");
    CHECK_INT(get(f, id)->priority, 4);
}

static void a_removed_job_is_gone(fixture *f)
{
    uint64_t id = add(f, "a");
    log_line(f, id, "hello");
    events(f);
    CHECK_INT(remove_job(f, id), WEIR_OK);
    CHECK(!get(f, id));
    CHECK(!logs(f, id, 0, 0));
    CHECK(!take(f, "a"));
    CHECK_STR(events_in_full(f), "remove 1 a any 0 0 0");
    CHECK_INT(remove_job(f, id), WEIR_ENOENT);
    CHECK_STR(f->err.msg, "there is no job 1");
    CHECK_INT(add(f, "a"), 2);                                   /* ids are not used again */
}

static void any_state_can_be_removed(fixture *f)
{
    add(f, "a");
    add_delayed(f);
    add(f, "b");
    const weir_job *job = take(f, "b");
    add(f, "c");
    finish(f, take(f, "c"));
    add(f, "d");
    fail_job(f, take(f, "d"), "x");
    cancel_job(f, add(f, "a"));
    for (uint64_t id = 1; id <= 6; id++)
        CHECK_INT(remove_job(f, id), WEIR_OK);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 0);
    CHECK_INT(finish(f, job), WEIR_ESTALE);
    later(f, LEASE_MS * 2);
    CHECK_INT(stats(f)->n, 4);                                   /* the types are still known */
}

static void unknown_ids_are_not_found(fixture *f)
{
    CHECK(!get(f, 0));
    CHECK(!get(f, 5));
    CHECK(!get(f, UINT64_MAX));
    CHECK_INT(update(f, 5, &(weir_change){ 0 }), WEIR_ENOENT);
    CHECK_INT(cancel_job(f, 5), WEIR_ENOENT);
    CHECK_INT(remove_job(f, 0), WEIR_ENOENT);
    CHECK_INT(remove_job(f, UINT64_MAX), WEIR_ENOENT);
    CHECK_INT(log_line(f, 5, "x"), WEIR_ENOENT);
    CHECK(!logs(f, 5, 0, 0));
    CHECK_INT(f->err.code, WEIR_ENOENT);
}

const conformance_case cases_hand[] = {
    CASE(a_new_priority_moves_a_job),
    ORDERED_CASE(a_new_priority_is_what_counts),
    CASE(new_data_replaces_the_old),
    CASE(changing_nothing_is_fine),
    CASE(a_delay_can_be_given_later),
    CASE(a_delay_of_zero_promotes),
    CASE(a_moment_can_be_given_later),
    CASE(what_was_parked_gets_its_time_back),
    CASE(a_moment_that_cannot_be_is_refused),
    CASE(promote_does_not_wait),
    CASE(cancel_what_waits),
    CASE(cancel_what_runs),
    CASE(what_has_ended_cannot_be_cancelled),
    CASE(retry_starts_over),
    CASE(only_what_has_ended_can_be_retried),
    CASE(what_has_ended_can_be_delayed),
    CASE(a_running_job_is_not_changed),
    CASE(a_refused_change_changes_nothing),
    CASE(complete_by_hand),
    CASE(failed_by_hand),
    CASE(active_by_hand),
    CASE(what_does_not_go_with_a_state_by_hand),
    CASE(several_changes_at_once),
    CASE(the_answer_has_both_states),
    CASE(finished_jobs_take_new_data_and_priority),
    CASE(a_removed_job_is_gone),
    CASE(any_state_can_be_removed),
    CASE(unknown_ids_are_not_found),
    { 0 },
};
