/* case_time.c - what time does: delays, leases, ttl, deadlines, and when a TICK is wanted. */
#include "conformance/conformance.h"

#include <string.h>

/* ---- leases ---- */

static void late_worker_cannot_finish(fixture *f)
{
    uint64_t        id = add(f, "mail");
    const weir_job *first = take(f, "mail");
    CHECK_INT(first->id, id);
    later(f, LEASE_MS);                               /* the lease runs out */
    const weir_job *second = take(f, "mail");
    CHECK_INT(second->id, id);
    CHECK_INT(second->delivery, 2);
    CHECK_INT(finish(f, first), WEIR_ESTALE);
    CHECK_INT(finish(f, second), WEIR_OK);
}

static void a_lease_holds_to_its_last_millisecond(fixture *f)
{
    uint64_t id = add(f, "a");
    take(f, "a");
    later(f, LEASE_MS - 1);
    CHECK_STATE(f, id, WEIR_STATE_ACTIVE);
    later(f, 1);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
}

static void a_lost_job_keeps_its_attempts(fixture *f)
{
    uint64_t id = add(f, "a");
    take_as(f, "a", "box:9:1", 1000);
    events(f);
    later(f, 1000);
    const weir_job *j = get(f, id);
    CHECK_INT(j->state, WEIR_STATE_INACTIVE);
    CHECK_INT(j->attempts, 0);
    CHECK_INT(j->lost, 1);
    CHECK_STR(logs(f, id, 0, 0)->line[0].text, "stalled | worker box:9:1 was lost (1 of 3)");
    CHECK_STR(events_in_full(f), "stalled 1 a inactive 0 0 1, enqueue 1 a inactive 0 0 1");
    CHECK_INT(stats_of(f, "a")->failed, 0);
}

static void a_job_that_kills_workers_fails(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .max_lost = 2, .attempts = 5 });
    for (int i = 0; i < 2; i++) {
        take_as(f, "a", "w", 1000);
        later(f, 1000);
        CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
    }
    take_as(f, "a", "w", 1000);
    events(f);
    later(f, 1000);
    const weir_job *j = get(f, id);
    CHECK_INT(j->state, WEIR_STATE_FAILED);
    CHECK_INT(j->attempts, 0);
    CHECK_STR(j->error, logs(f, id, 2, 0)->line[0].text);
    CHECK(!strncmp(j->error, "stalled | ", 10));
    CHECK_EVENTS(f, "stalled 1, failed 1");
}

static void renewing_extends_a_lease(fixture *f)
{
    uint64_t        id = add(f, "a");
    const weir_job *job = take_as(f, "a", "w", 1000);
    int64_t         updated_at = get(f, id)->updated_at;
    later(f, 900);
    CHECK_INT(renew(f, job, 1000), WEIR_OK);
    CHECK_INT(get(f, id)->updated_at, updated_at);
    later(f, 999);
    CHECK_STATE(f, id, WEIR_STATE_ACTIVE);
    later(f, 1);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
    CHECK_INT(renew(f, job, 1000), WEIR_ESTALE);
}

/* The end of its lease, as all who ask for the job are told. */
static int64_t seen_lease(fixture *f, uint64_t id)
{
    const weir_query queries[] = { { .state = state_of(f, id) }, { .type = "a" }, { 0 },
                                   { .search = "ann" } };
    int64_t          until = get(f, id)->lease_until;
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        const weir_page *page = list(f, &queries[i]);
        CHECK_INT(page->n, 1);
        CHECK_INT(page->job[0]->lease_until, until);
    }
    return until;
}

static void everybody_sees_when_a_lease_ends(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .data = "{\"to\":\"ann\"}", .search = true,
                                            .attempts = 9 });
    CHECK_INT(seen_lease(f, id), 0);
    f->now += 5;
    const weir_job *job = take_as(f, "a", "w", 1000);
    CHECK_INT(job->lease_until, f->now + 1000);
    CHECK_INT(seen_lease(f, id), f->now + 1000);
    f->now += 400;
    CHECK_INT(progress(f, job, 10, "[1]"), WEIR_OK);
    CHECK_INT(seen_lease(f, id), f->now + 600);
    CHECK_INT(renew(f, job, 5000), WEIR_OK);
    CHECK_INT(seen_lease(f, id), f->now + 5000);
    CHECK_INT(renew(f, job, 50), WEIR_OK);          /* also a shorter one */
    CHECK_INT(seen_lease(f, id), f->now + 50);
    f->now += 100;                                  /* over, but nobody has looked yet */
    CHECK_INT(seen_lease(f, id), f->now - 50);
    CHECK_INT(fail_job(f, job, "no"), WEIR_OK);
    CHECK_INT(seen_lease(f, id), 0);
}

static void who_has_a_job_no_more_has_no_lease(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .data = "{\"to\":\"ann\"}",
                                            .search = true });
    CHECK_INT(give_back(f, take(f, "a")), WEIR_OK);
    CHECK_INT(seen_lease(f, id), 0);
    take_as(f, "a", "w", 1000);
    later(f, 1000);                                 /* lost */
    CHECK_INT(seen_lease(f, id), 0);
    const weir_job *job, *next;
    CHECK((job = take(f, "a")) != NULL);
    CHECK_INT(cancel_job(f, id), WEIR_OK);
    CHECK_INT(seen_lease(f, id), 0);
    CHECK_INT(retry_job(f, id), WEIR_OK);
    CHECK((job = take(f, "a")) != NULL);
    CHECK_INT(finish_with(f, job, "1"), WEIR_OK);
    CHECK_INT(seen_lease(f, id), 0);
    add(f, "b");
    add(f, "b");
    CHECK_INT(finish_and_take(f, take(f, "b"), "b", &next), WEIR_OK);
    CHECK_INT(next->lease_until, f->now + LEASE_MS);
}

static void each_lease_has_its_own_answer(fixture *f)
{
    add(f, "a");
    add(f, "a");
    const weir_job *one = take(f, "a"), *two = take(f, "a");
    finish(f, one);
    weir_renewal items[] = { { .id = one->id, .delivery = 1, .lease_ms = 5 },
                           { .id = two->id, .delivery = 1, .lease_ms = LEASE_MS * 2 },
                           { .id = two->id, .delivery = 2, .lease_ms = 5 } };
    weir_op op = { .kind = WEIR_OP_RENEW, .u.renew = { items, 3 } };
    CHECK_INT(run(f, &op), WEIR_OK);
    CHECK_INT(items[0].code, WEIR_ESTALE);
    CHECK_INT(items[1].code, WEIR_OK);
    CHECK_INT(items[2].code, WEIR_ESTALE);
    later(f, LEASE_MS);
    CHECK_STATE(f, two->id, WEIR_STATE_ACTIVE);
}

static void without_a_tick_a_late_worker_is_still_in_time(fixture *f)
{
    add(f, "a");
    const weir_job *job = take_as(f, "a", "w", 1000);
    f->now += 5000;
    CHECK_INT(finish(f, job), WEIR_OK);
}

static void lost_ones_come_by_id(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .priority = 5 });
    add_spec(f, &(weir_spec){ .type = "b", .priority = 1 });
    add_spec(f, &(weir_spec){ .type = "a", .priority = 0 });
    const weir_job *got[3];
    take_some(f, (const char *[]){ "a", "b", NULL }, 3, got);
    CHECK_INT(got[0]->id, 3);
    events(f);
    later(f, LEASE_MS);
    CHECK_EVENTS(f, "stalled 1, enqueue 1, stalled 2, enqueue 2, stalled 3, enqueue 3");
}

/* ---- ttl ---- */

static const weir_spec brief_ones = { .type = "a", .ttl_ms = 500, .attempts = 2 };

static void an_attempt_that_takes_too_long_fails(fixture *f)
{
    uint64_t        id = add_spec(f, &brief_ones);
    const weir_job *job = take(f, "a");
    events(f);
    later(f, 499);
    CHECK_STATE(f, id, WEIR_STATE_ACTIVE);
    later(f, 1);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
    CHECK_STR(get(f, id)->error, "TTL exceeded");
    CHECK_INT(get(f, id)->attempts, 1);
    CHECK_INT(finish(f, job), WEIR_ESTALE);
    CHECK_EVENTS(f, "ttl_exceeded 1, failed_attempt 1, enqueue 1");
    take(f, "a");
    events(f);
    later(f, 500);
    CHECK_STATE(f, id, WEIR_STATE_FAILED);
    CHECK_STR(events_in_full(f),
              "ttl_exceeded 1 a failed 2 0 2, failed 1 a failed 2 0 2 TTL exceeded");
    CHECK_INT(stats_of(f, "a")->failed, 2);
    CHECK_STR(logs(f, id, 1, 0)->line[0].text, "error | TTL exceeded");
}

static void progress_and_log_extend_the_ttl(fixture *f)
{
    uint64_t        id = add_spec(f, &brief_ones);
    const weir_job *job = take(f, "a");
    later(f, 400);
    CHECK_INT(progress(f, job, 10, NULL), WEIR_OK);
    later(f, 400);
    CHECK_INT(log_from(f, job, "still at it"), WEIR_OK);
    later(f, 400);
    CHECK_STATE(f, id, WEIR_STATE_ACTIVE);
    CHECK_INT(log_line(f, id, "from outside"), WEIR_OK);       /* that is not the worker */
    later(f, 100);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
}

static void renewing_does_not_extend_the_ttl(fixture *f)
{
    uint64_t        id = add_spec(f, &brief_ones);
    const weir_job *job = take(f, "a");
    later(f, 400);
    renew(f, job, LEASE_MS);
    later(f, 100);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
    CHECK_INT(get(f, id)->lost, 0);
}

static void a_lost_lease_comes_before_the_ttl(fixture *f)
{
    uint64_t id = add_spec(f, &brief_ones);
    take_as(f, "a", "w", 500);
    later(f, 500);
    CHECK_INT(get(f, id)->lost, 1);
    CHECK_INT(get(f, id)->attempts, 0);
}

static void ttl_with_backoff_delays(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .ttl_ms = 500, .attempts = 2,
                                            .backoff = { WEIR_BACKOFF_FIXED, .delay_ms = 50 } });
    take(f, "a");
    later(f, 500);
    CHECK_STATE(f, id, WEIR_STATE_DELAYED);
    later(f, 50);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
}

/* ---- deadlines ---- */

static void what_is_too_late_never_starts(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .deadline_at = f->now + 100 });
    f->now += 100;
    CHECK(!take(f, "a"));
    events(f);
    later(f, 0);
    const weir_job *j = get(f, id);
    CHECK_INT(j->state, WEIR_STATE_FAILED);
    CHECK_STR(j->error, "Deadline exceeded");
    CHECK_INT(j->attempts, 0);
    CHECK_STR(events_in_full(f), "failed 1 a failed 0 0 0 Deadline exceeded");
    CHECK_STR(logs(f, id, 0, 0)->line[0].text, "error | Deadline exceeded");
    CHECK_INT(stats_of(f, "a")->failed, 0);
}

static void a_late_job_does_not_hide_the_next(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .deadline_at = f->now + 100, .priority = -1 });
    add(f, "a");
    f->now += 100;
    CHECK_INT(take(f, "a")->id, 2);
}

static void what_has_begun_may_go_on(fixture *f)
{
    uint64_t        id = add_spec(f, &(weir_spec){ .type = "a", .deadline_at = f->now + 100 });
    const weir_job *job = take(f, "a");
    later(f, 200);
    CHECK_STATE(f, id, WEIR_STATE_ACTIVE);
    CHECK_INT(finish(f, job), WEIR_OK);
}

static void a_retry_after_the_deadline_fails(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 5,
                                            .deadline_at = f->now + 100 });
    const weir_job *job = take(f, "a");
    f->now += 200;
    fail_job(f, job, "x");
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
    later(f, 0);
    CHECK_STATE(f, id, WEIR_STATE_FAILED);
    CHECK_STR(get(f, id)->error, "Deadline exceeded");
    CHECK_INT(get(f, id)->attempts, 1);
}

static void a_deadline_before_its_time_fails_a_delayed_job(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 1000,
                                            .deadline_at = f->now + 100 });
    later(f, 100);
    CHECK_STATE(f, id, WEIR_STATE_FAILED);
}

static void both_at_once_fails(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 100,
                                            .deadline_at = f->now + 100 });
    events(f);
    later(f, 100);
    CHECK_STATE(f, id, WEIR_STATE_FAILED);
    CHECK_EVENTS(f, "failed 1");
}

/* ---- delays, and the timer ---- */

static void delayed_jobs_come_by_their_time(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 300 });
    add_spec(f, &(weir_spec){ .type = "b", .delay_ms = 100 });
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 200 });
    add_spec(f, &(weir_spec){ .type = "b", .delay_ms = 100 });
    later(f, 1000);
    CHECK_EVENTS(f, "promotion 2, enqueue 2, promotion 4, enqueue 4, promotion 3, enqueue 3, "
                    "promotion 1, enqueue 1");
}

static void a_tick_does_no_more_than_its_limit(fixture *f)
{
    int64_t next;
    for (int i = 0; i < 5; i++)
        add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 10 });
    f->now += 10;
    CHECK_INT(tick_some(f, 2, &next), 2);
    CHECK(next <= f->now);
    CHECK_INT(count(f, WEIR_STATE_INACTIVE, "a"), 2);
    CHECK_INT(tick_some(f, 2, &next), 2);
    CHECK_INT(tick_some(f, 2, &next), 1);
    CHECK_INT(tick_some(f, 2, &next), 0);
    CHECK(next > f->now);
}

static void a_tick_says_when_to_come_again(fixture *f)
{
    int64_t next;
    CHECK_INT(tick_some(f, 10, &next), 0);
    CHECK(next == INT64_MAX || (looks_around(f) && next > f->now));
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 700 });
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 300 });
    tick_some(f, 10, &next);
    CHECK(next > f->now && next <= f->now + 300);
}

static void whatever_will_be_due_is_announced(fixture *f)
{
    tick(f);
    add(f, "a");
    CHECK(f->due == INT64_MAX);
    add_spec(f, &(weir_spec){ .type = "b", .delay_ms = 700 });
    CHECK_DUE(f, f->now + 700);
    add_spec(f, &(weir_spec){ .type = "b", .deadline_at = f->now + 600 });
    CHECK_DUE(f, f->now + 600);
    take_as(f, "a", "w", 500);
    CHECK_DUE(f, f->now + 500);
    add_spec(f, &(weir_spec){ .type = "a", .ttl_ms = 400 });
    take(f, "a");
    CHECK_DUE(f, f->now + 400);
}

static void retention_is_announced(fixture *f)
{
    tick(f);
    configure(f, "a", &(weir_settings){ .keep_complete = { .age_ms = 300 },
                                        .keep_failed = { .count = 1 } });
    int64_t next;
    tick_some(f, 10, &next);
    CHECK(next > f->now);
    add(f, "a");
    finish(f, take_as(f, "a", "w", 5000));
    CHECK_DUE(f, f->now + 300);
    for (int i = 0; i < 2; i++) {
        later(f, 0);
        add(f, "a");
        cancel_job(f, add(f, "a"));
    }
    CHECK_DUE(f, f->now);
}

static void time_may_stand_still_or_go_back(fixture *f)
{
    uint64_t        id = add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 100 });
    int64_t         start = f->now;
    later(f, 100);
    f->now = start - 5000;
    tick(f);
    const weir_job *job = take(f, "a");
    f->now -= 100;
    CHECK_INT(finish(f, job), WEIR_OK);
    CHECK_INT(get(f, id)->duration_ms, 0);
}

const conformance_case cases_time[] = {
    CASE(late_worker_cannot_finish),
    CASE(a_lease_holds_to_its_last_millisecond),
    CASE(a_lost_job_keeps_its_attempts),
    CASE(a_job_that_kills_workers_fails),
    CASE(renewing_extends_a_lease),
    CASE(everybody_sees_when_a_lease_ends),
    CASE(who_has_a_job_no_more_has_no_lease),
    CASE(each_lease_has_its_own_answer),
    CASE(without_a_tick_a_late_worker_is_still_in_time),
    ORDERED_CASE(lost_ones_come_by_id),
    CASE(an_attempt_that_takes_too_long_fails),
    CASE(progress_and_log_extend_the_ttl),
    CASE(renewing_does_not_extend_the_ttl),
    CASE(a_lost_lease_comes_before_the_ttl),
    CASE(ttl_with_backoff_delays),
    CASE(what_is_too_late_never_starts),
    CASE(a_late_job_does_not_hide_the_next),
    CASE(what_has_begun_may_go_on),
    CASE(a_retry_after_the_deadline_fails),
    CASE(a_deadline_before_its_time_fails_a_delayed_job),
    CASE(both_at_once_fails),
    ORDERED_CASE(delayed_jobs_come_by_their_time),
    ORDERED_CASE(a_tick_does_no_more_than_its_limit),
    CASE(a_tick_says_when_to_come_again),
    CASE(whatever_will_be_due_is_announced),
    ORDERED_CASE(retention_is_announced),
    CASE(time_may_stand_still_or_go_back),
    { 0 },
};
