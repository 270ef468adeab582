/* case_finish.c - the end of a delivery: done, failed with retries and backoff, given back. */
#include "conformance/conformance.h"

#include <stdlib.h>
#include <string.h>

static void done_with_a_result(fixture *f)
{
    uint64_t        id = add(f, "a");
    const weir_job *job = take(f, "a");
    f->now += 40;
    CHECK_INT(finish_with(f, job, "{\"sent\":true}"), WEIR_OK);
    const weir_job *j = get(f, id);
    CHECK_INT(j->state, WEIR_STATE_COMPLETE);
    CHECK_STR(j->result, "{\"sent\":true}");
    CHECK_INT(j->result_len, 13);
    CHECK_INT(j->attempts, 1);
    CHECK_INT(j->progress, 100);
    CHECK_INT(j->duration_ms, 40);
    CHECK_INT(j->finished_at, f->now);
    CHECK_INT(j->updated_at, f->now);
    CHECK(!j->error);
}

static void done_without_a_result(fixture *f)
{
    uint64_t id = add(f, "a");
    CHECK_INT(finish(f, take(f, "a")), WEIR_OK);
    CHECK(!get(f, id)->result);
    CHECK_STATE(f, id, WEIR_STATE_COMPLETE);
}

static void gone_when_done(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .remove_on_complete = true });
    const weir_job *job = take(f, "a");
    log_from(f, job, "a line");
    events(f);
    CHECK_INT(finish_with(f, job, "[1]"), WEIR_OK);
    CHECK(!get(f, id));
    CHECK(!logs(f, id, 0, 0));
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 0);
    CHECK_INT(stats_of(f, "a")->completed, 1);
    CHECK_STR(events_in_full(f), "complete 1 a any 1 100 1 [1]");
    CHECK_INT(finish(f, job), WEIR_ESTALE);
}

static void stays_when_failed(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .remove_on_complete = true });
    fail_job(f, take(f, "a"), "x");
    CHECK_STATE(f, id, WEIR_STATE_FAILED);
}

static void nobody_finishes_twice(fixture *f)
{
    add(f, "a");
    const weir_job *job = take(f, "a");
    CHECK_INT(finish(f, job), WEIR_OK);
    CHECK_INT(finish(f, job), WEIR_ESTALE);
    CHECK_STR(f->err.msg, "job 1: delivery 1 is over");
    CHECK_INT(fail_job(f, job, "x"), WEIR_ESTALE);
    CHECK_INT(give_back(f, job), WEIR_ESTALE);
    CHECK_INT(stats_of(f, "a")->completed, 1);
}

static void what_was_never_there_is_stale(fixture *f)
{
    static const uint64_t ids[] = { 77, (UINT64_C(1) << 53) + 1, UINT64_C(1) << 60, UINT64_MAX };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        weir_job none = { .id = ids[i], .delivery = 1 };
        CHECK_INT(finish(f, &none), WEIR_ESTALE);
        CHECK_INT(progress(f, &none, 1, NULL), WEIR_ESTALE);
        CHECK_INT(renew(f, &none, 100), WEIR_ESTALE);
        CHECK_INT(log_from(f, &none, "x"), WEIR_ESTALE);
    }
}

static void only_this_delivery_counts(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .attempts = 3 });
    const weir_job *first = take(f, "a");
    fail_job(f, first, "x");
    const weir_job *second = take(f, "a");
    CHECK_INT(finish(f, first), WEIR_ESTALE);
    CHECK_INT(renew(f, first, 1000), WEIR_ESTALE);
    CHECK_INT(progress(f, first, 5, NULL), WEIR_ESTALE);
    CHECK_INT(log_from(f, first, "late"), WEIR_ESTALE);
    CHECK_INT(finish(f, second), WEIR_OK);
}

static void exactly_as_many_executions_as_attempts(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 3 });
    for (int i = 1; i <= 3; i++) {
        const weir_job *job = take(f, "a");
        CHECK_INT(job->attempts, i - 1);
        CHECK_INT(fail_job(f, job, "no luck"), WEIR_OK);
    }
    CHECK(!take(f, "a"));
    const weir_job *j = get(f, id);
    CHECK_INT(j->state, WEIR_STATE_FAILED);
    CHECK_INT(j->attempts, 3);
    CHECK_STR(j->error, "no luck");
    CHECK_INT(j->failed_at, f->now);
    CHECK_INT(j->finished_at, f->now);
    CHECK_INT(stats_of(f, "a")->failed, 3);
    CHECK_INT(logs(f, id, 0, 0)->n, 3);
    CHECK_STR(logs(f, id, 0, 0)->line[2].text, "error | no luck");
}

static void success_after_failure_clears_the_error(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 2 });
    fail_job(f, take(f, "a"), "once");
    CHECK_STR(get(f, id)->error, "once");
    finish(f, take(f, "a"));
    CHECK(!get(f, id)->error);
    CHECK_INT(get(f, id)->attempts, 2);
    CHECK(get(f, id)->failed_at > 0);
}

static void a_fixed_backoff_delays(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 3,
                                            .backoff = { WEIR_BACKOFF_FIXED, .delay_ms = 100 } });
    for (int i = 0; i < 2; i++) {
        fail_job(f, take(f, "a"), "x");
        CHECK_STATE(f, id, WEIR_STATE_DELAYED);
        CHECK_INT(get(f, id)->promote_at, f->now + 100);
        later(f, 99);
        CHECK_STATE(f, id, WEIR_STATE_DELAYED);
        later(f, 1);
        CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
    }
    fail_job(f, take(f, "a"), "x");
    CHECK_STATE(f, id, WEIR_STATE_FAILED);
}

static void a_fixed_backoff_without_delay_takes_that_of_the_job(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 2, .delay_ms = 70,
                                            .backoff = { .kind = WEIR_BACKOFF_FIXED } });
    later(f, 70);
    fail_job(f, take(f, "a"), "x");
    CHECK_INT(get(f, id)->promote_at, f->now + 70);
}

static void an_exponential_backoff_grows_to_its_cap(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){
        .type = "a", .attempts = 9,
        .backoff = { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 1000, .max_ms = 5000 } });
    const int64_t want[] = { 500, 1500, 3500, 5000, 5000 };
    for (size_t i = 0; i < 5; i++) {
        fail_job(f, take(f, "a"), "x");
        CHECK_INT(get(f, id)->promote_at - f->now, want[i]);
        later(f, want[i]);
    }
}

static void a_linear_backoff_grows_to_its_cap(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 9,
                                            .backoff = { WEIR_BACKOFF_LINEAR, 2000, 7000, 0 } });
    const int64_t want[] = { 2000, 4000, 6000, 7000, 7000 };
    for (size_t i = 0; i < 5; i++) {
        fail_job(f, take(f, "a"), "x");
        CHECK_INT(get(f, id)->backoff.kind, WEIR_BACKOFF_LINEAR);
        CHECK_INT(get(f, id)->promote_at - f->now, want[i]);
        later(f, want[i]);
    }
}

static void a_job_given_back_uses_no_attempt(fixture *f)
{
    uint64_t        id = add(f, "a");
    const weir_job *job = take(f, "a");
    events(f);
    CHECK_INT(give_back(f, job), WEIR_OK);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
    CHECK_INT(get(f, id)->attempts, 0);
    CHECK_INT(logs(f, id, 0, 0)->n, 0);
    CHECK_STR(events_in_full(f), "enqueue 1 a inactive 0 0 1");
    CHECK_INT(take(f, "a")->delivery, 2);
}

static void a_job_given_back_may_wait(fixture *f)
{
    uint64_t        id = add(f, "a");
    const weir_job *job = take(f, "a");
    events(f);
    CHECK_INT(give_back_for(f, job, 500), WEIR_OK);
    CHECK_STATE(f, id, WEIR_STATE_DELAYED);
    CHECK_INT(get(f, id)->attempts, 0);
    CHECK_INT(get(f, id)->promote_at, f->now + 500);
    CHECK_INT(get(f, id)->delay_ms, 0);
    CHECK_STR(events(f), "");
    later(f, 499);
    CHECK(!take(f, "a"));
    later(f, 1);
    CHECK_INT(take(f, "a")->delivery, 2);
    CHECK_INT(give_back_for(f, get(f, id), -1), WEIR_EINVAL);
    CHECK_INT(give_back_for(f, get(f, id), WEIR_MAX_MS + 1), WEIR_EINVAL);
    CHECK_STATE(f, id, WEIR_STATE_ACTIVE);
}

static void a_job_given_up_is_not_tried_again(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 5,
                                            .backoff = { WEIR_BACKOFF_FIXED, .delay_ms = 100 } });
    fail_job(f, take(f, "a"), "once");
    later(f, 100);
    const weir_job *job = take(f, "a");
    events(f);
    CHECK_INT(give_up(f, job, "no such user"), WEIR_OK);
    CHECK_EVENTS(f, "failed 1");
    const weir_job *now = get(f, id);
    CHECK_INT(now->state, WEIR_STATE_FAILED);
    CHECK_INT(now->attempts, 2);
    CHECK_STR(now->error, "no such user");
    CHECK_STR(logs(f, id, 0, 0)->line[1].text, "error | no such user");
    CHECK_INT(stats_of(f, "a")->failed, 2);
    CHECK_INT(give_up(f, job, "again"), WEIR_ESTALE);
    check_all_is_well(f);
}

static void finishing_may_take_the_next(fixture *f)
{
    const weir_job *next = NULL;
    add(f, "a");
    add(f, "a");
    const weir_job *job = take(f, "a");
    events(f);
    CHECK_INT(finish_and_take(f, job, "a", &next), WEIR_OK);
    CHECK(next && next->id == 2 && next->state == WEIR_STATE_ACTIVE);
    CHECK_EVENTS(f, "complete 1, start 2");
    CHECK_INT(finish_and_take(f, next, "a", &job), WEIR_OK);
    CHECK(!job);
}

static void a_stale_finish_takes_nothing(fixture *f)
{
    const weir_job *next = NULL;
    add(f, "a");
    add(f, "a");
    const weir_job *job = take(f, "a");
    finish(f, job);
    CHECK_INT(finish_and_take(f, job, "a", &next), WEIR_ESTALE);
    CHECK(!next);
    CHECK_STATE(f, 2, WEIR_STATE_INACTIVE);
}

static void a_failed_job_may_be_its_own_next(fixture *f)
{
    const char *type = "a";
    weir_job   *got = NULL;
    add_spec(f, &(weir_spec){ .type = "a", .attempts = 2 });
    const weir_job *job = take(f, "a");
    weir_op op = { .kind = WEIR_OP_FINISH,
                   .u.finish = { .id = job->id, .delivery = job->delivery,
                                 .outcome = WEIR_OUTCOME_FAIL, .text = "x", .len = 1,
                                 .next = { .types = &type, .n_types = 1, .n = 1,
                                           .lease_ms = LEASE_MS, .worker = "w2",
                                           .jobs = &got } } };
    CHECK_INT(run(f, &op), WEIR_OK);
    CHECK_INT(op.u.finish.state, WEIR_STATE_INACTIVE);
    CHECK_INT(op.u.finish.next.n_jobs, 1);
    CHECK_INT(got->id, 1);
    CHECK_INT(got->delivery, 2);
    CHECK_STR(got->error, "x");
    weir_job_free(got);
    CHECK_STATE(f, 1, WEIR_STATE_ACTIVE);
}

static void long_errors_are_cut(fixture *f)
{
    char *text = malloc(WEIR_MAX_TEXT + 100);
    memset(text, 'e', WEIR_MAX_TEXT + 99);
    text[WEIR_MAX_TEXT + 99] = '\0';
    uint64_t  id = add(f, "a");
    weir_code rc = fail_job(f, take(f, "a"), text);
    free(text);
    CHECK_INT(rc, WEIR_OK);
    CHECK_INT(strlen(get(f, id)->error), WEIR_MAX_TEXT);
    CHECK_INT(strlen(logs(f, id, 0, 0)->line[0].text), WEIR_MAX_TEXT);
}

static void progress_is_kept(fixture *f)
{
    uint64_t        id = add(f, "a");
    const weir_job *job = take(f, "a");
    f->now += 5;
    CHECK_INT(progress(f, job, 40, "{\"page\":1}"), WEIR_OK);
    CHECK_INT(get(f, id)->progress, 40);
    CHECK_INT(get(f, id)->updated_at, f->now);
    CHECK_STR(get(f, id)->progress_data, "{\"page\":1}");
    CHECK_INT(progress(f, job, 50, NULL), WEIR_OK);
    CHECK_INT(get(f, id)->progress, 50);
    CHECK_STR(get(f, id)->progress_data, "{\"page\":1}");
    CHECK_INT(get(f, id)->progress_data_len, 10);
    CHECK_INT(progress(f, job, 101, NULL), WEIR_EINVAL);
}

const conformance_case cases_finish[] = {
    CASE(done_with_a_result),
    CASE(done_without_a_result),
    CASE(gone_when_done),
    CASE(stays_when_failed),
    CASE(nobody_finishes_twice),
    CASE(what_was_never_there_is_stale),
    CASE(only_this_delivery_counts),
    CASE(exactly_as_many_executions_as_attempts),
    CASE(success_after_failure_clears_the_error),
    CASE(a_fixed_backoff_delays),
    CASE(a_fixed_backoff_without_delay_takes_that_of_the_job),
    CASE(an_exponential_backoff_grows_to_its_cap),
    CASE(a_linear_backoff_grows_to_its_cap),
    CASE(a_job_given_up_is_not_tried_again),
    CASE(a_job_given_back_uses_no_attempt),
    CASE(a_job_given_back_may_wait),
    ORDERED_CASE(finishing_may_take_the_next),
    ORDERED_CASE(a_stale_finish_takes_nothing),
    CASE(a_failed_job_may_be_its_own_next),
    CASE(long_errors_are_cut),
    CASE(progress_is_kept),
    { 0 },
};
