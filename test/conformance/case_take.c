/* case_take.c - which jobs a worker gets, and in which order. */
#include <stdio.h>
#include <string.h>

#include "conformance/conformance.h"

static uint64_t with_priority(fixture *f, const char *type, int32_t priority)
{
    return add_spec(f, &(weir_spec){ .type = type, .priority = priority });
}

static void nothing_waits(fixture *f)
{
    CHECK(!take(f, "mail"));
    add(f, "other");
    CHECK(!take(f, "mail"));
    CHECK(!stats_of(f, "mail"));        /* asking does not make it known */
}

static void a_taken_job_is_active(fixture *f)
{
    uint64_t id = add(f, "mail");
    f->now += 5;
    const weir_job *j = take(f, "mail");
    CHECK_INT(j->id, id);
    CHECK_INT(j->state, WEIR_STATE_ACTIVE);
    CHECK_INT(j->delivery, 1);
    CHECK_STR(j->worker, WORKER);
    CHECK_INT(j->started_at, f->now);
    CHECK_INT(j->updated_at, f->now);
    CHECK_INT(j->attempts, 0);
    CHECK(!take(f, "mail"));
    const weir_job *kept = get(f, id);
    CHECK_INT(kept->state, WEIR_STATE_ACTIVE);
    CHECK_INT(kept->delivery, 1);
    CHECK_STR(kept->worker, WORKER);
}

static void lowest_priority_number_first_then_oldest(fixture *f)
{
    with_priority(f, "a", WEIR_PRIORITY_LOW);
    with_priority(f, "a", WEIR_PRIORITY_CRITICAL);
    with_priority(f, "a", WEIR_PRIORITY_NORMAL);
    with_priority(f, "a", WEIR_PRIORITY_CRITICAL);
    with_priority(f, "a", INT32_MIN);
    with_priority(f, "a", INT32_MAX);
    const uint64_t want[] = { 5, 2, 4, 3, 1, 6 };
    for (size_t i = 0; i < 6; i++)
        CHECK_INT(take(f, "a")->id, want[i]);
}

static void the_best_over_several_types(fixture *f)
{
    const weir_job *got[10];
    with_priority(f, "a", 5);
    with_priority(f, "b", 1);
    with_priority(f, "c", 0);
    with_priority(f, "a", 1);
    with_priority(f, "b", 9);
    size_t n = take_some(f, (const char *[]){ "b", "a", "none", NULL }, 10, got);
    CHECK_INT(n, 4);
    const uint64_t want[] = { 2, 4, 1, 5 };
    for (size_t i = 0; i < n; i++)
        CHECK_INT(got[i]->id, want[i]);
    CHECK_STATE(f, 3, WEIR_STATE_INACTIVE);
}

static void no_more_than_asked_for(fixture *f)
{
    const weir_job *got[10];
    for (int i = 0; i < 5; i++)
        add(f, "a");
    CHECK_INT(take_some(f, (const char *[]){ "a", NULL }, 3, got), 3);
    CHECK_INT(count(f, WEIR_STATE_INACTIVE, "a"), 2);
    CHECK_INT(take_some(f, (const char *[]){ "a", NULL }, 3, got), 2);
}

static void the_same_type_twice_counts_once(fixture *f)
{
    const weir_job *got[10];
    add(f, "a");
    add(f, "a");
    CHECK_INT(take_some(f, (const char *[]){ "a", "a", NULL }, 10, got), 2);
    CHECK(got[0]->id == 1 && got[1]->id == 2);
    CHECK_EVENTS(f, "enqueue 1, enqueue 2, start 1, start 2");
}

static void delayed_ones_are_not_taken_before_their_time(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 100 });
    CHECK(!take(f, "a"));
    later(f, 99);
    CHECK(!take(f, "a"));
    later(f, 1);
    CHECK_INT(take(f, "a")->id, 1);
}

static void promoted_jobs_keep_their_age(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 100 });
    later(f, 50);
    add(f, "a");
    later(f, 50);
    CHECK_INT(take(f, "a")->id, 1);
    CHECK_INT(take(f, "a")->id, 2);
}

static void progress_starts_anew(fixture *f)
{
    uint64_t        id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 2 });
    const weir_job *first = take(f, "a");
    CHECK_INT(progress(f, first, 60, "{\"page\":3}"), WEIR_OK);
    fail_job(f, first, "x");
    CHECK_INT(get(f, id)->progress, 60);
    const weir_job *second = take(f, "a");
    CHECK_INT(second->progress, 0);
    CHECK(!second->progress_data);
    CHECK_INT(second->delivery, 2);
    CHECK_STR(second->error, "x");
}

static void the_copy_is_of_that_moment(fixture *f)
{
    add(f, "a");
    const weir_job *j = take(f, "a");
    finish(f, j);
    CHECK_INT(j->state, WEIR_STATE_ACTIVE);
}

static void a_batch_is_run_in_order(fixture *f)
{
    weir_spec   spec = { .type = "a", .data = "[1]" };
    weir_added  out;
    weir_job   *job = NULL;
    const char *type = "a";
    weir_op add_op = { .kind = WEIR_OP_ADD, .now_ms = f->now, .u.add = { &spec, 1, &out, NULL } };
    weir_op take_op = { .kind = WEIR_OP_TAKE, .now_ms = f->now,
                        .u.take = { .types = &type, .n_types = 1, .n = 1, .worker = WORKER,
                                    .lease_ms = LEASE_MS, .jobs = &job } };
    weir_op finish_op = { .kind = WEIR_OP_FINISH, .now_ms = f->now,
                          .u.finish = { .id = 1, .delivery = 1, .text = "7", .len = 1 } };
    weir_op again_op = finish_op;
    weir_op remove_op = { .kind = WEIR_OP_REMOVE, .now_ms = f->now, .u.remove = { 1 } };
    weir_op *ops[] = { &add_op, &take_op, &finish_op, &again_op, &remove_op };
    for (size_t i = 0; i < 5; i++)
        CHECK_INT(weir__op_check(ops[i], &f->err), WEIR_OK);
    CHECK_INT(run_batch(f, ops, 5), WEIR_OK);
    CHECK_INT(take_op.u.take.n_jobs, 1);
    CHECK_INT(job->id, 1);
    weir_job_free(job);
    CHECK_INT(finish_op.err.code, WEIR_OK);
    CHECK_INT(finish_op.u.finish.state, WEIR_STATE_COMPLETE);
    CHECK_INT(again_op.err.code, WEIR_ESTALE);
    CHECK_INT(remove_op.err.code, WEIR_OK);
    CHECK_STR(events_in_full(f), "enqueue 1 a inactive 0 0 0, start 1 a active 0 0 1 host:1:1, "
                                 "complete 1 a complete 1 100 1 7, remove 1 a any 1 100 1");
}

enum { LARGE = 12, SMALL = 100 };

/* JSON of the largest size. */
static const char *large(void)
{
    static char text[WEIR_MAX_DATA + 1];
    memset(text, 'x', WEIR_MAX_DATA);
    text[0] = text[WEIR_MAX_DATA - 1] = '"';
    return text;
}

/* A take of large jobs ends early, and what it left is as it was. */
static void large_jobs_come_in_lots(fixture *f)
{
    static const char *const types[] = { "a", NULL };
    const weir_job *jobs[1000], *first = NULL;
    size_t          n, all = 0;
    add(f, "a");
    for (int i = 0; i < LARGE; i++)
        add_spec(f, &(weir_spec){ .type = "a", .data = large() });
    while ((n = take_some(f, types, 1000, jobs))) {
        size_t bytes = 0;
        for (size_t i = 0; i < n; i++) {
            bytes += jobs[i]->data_len;
            CHECK_INT(jobs[i]->delivery, 1);
            CHECK_INT(jobs[i]->lost, 0);
        }
        CHECK(bytes < 2 * WEIR_MAX_TAKE_BYTES);         /* a partition gives as much, too */
        all += n;
        CHECK(bytes >= WEIR_MAX_TAKE_BYTES || all == LARGE + 1);
        first = first ? first : jobs[0];
    }
    CHECK_INT(all, LARGE + 1);
    uint64_t small = add(f, "a");
    CHECK_INT(finish_and_take(f, first, "a", &first), WEIR_OK);
    CHECK_INT(first->id, small);
    check_all_is_well(f);
}

/* More takes than a batch to a server may have. */
static void many_takes_at_once(fixture *f)
{
    const char *type = "a";
    weir_job   *job[SMALL] = { 0 };
    weir_op     op[SMALL], *ops[SMALL];
    for (int i = 0; i < SMALL; i++) {
        add(f, "a");
        op[i] = (weir_op){ .kind = WEIR_OP_TAKE, .now_ms = f->now,
                           .u.take = { .types = &type, .n_types = 1, .n = 1, .worker = WORKER,
                                       .lease_ms = LEASE_MS, .jobs = &job[i] } };
        ops[i] = &op[i];
        CHECK_INT(weir__op_check(ops[i], &f->err), WEIR_OK);
    }
    CHECK_INT(run_batch(f, ops, SMALL), WEIR_OK);
    for (int i = 0; i < SMALL; i++) {
        CHECK_INT(op[i].u.take.n_jobs, 1);
        weir_job_free(job[i]);
    }
}

/* ---- conditions ---- */

static const char *const only_a[] = { "a", NULL };

static uint64_t of_region(fixture *f, const char *type, const char *region, int32_t priority)
{
    char data[40];
    snprintf(data, sizeof data, "{\"region\":\"%s\"}", region);
    return add_spec(f, &(weir_spec){ .type = type, .data = data, .priority = priority });
}

/* What a condition refuses is as if nobody had looked, and free for others at once. */
static void what_a_condition_refuses_stays_for_others(fixture *f)
{
    const weir_job *got[4];
    uint64_t        us = of_region(f, "a", "us", WEIR_PRIORITY_HIGH);
    uint64_t        eu = of_region(f, "a", "eu", WEIR_PRIORITY_LOW);
    f->now += 1000;
    CHECK_INT(take_when(f, only_a, 4, "data.region = \"eu\"", got), 1);
    CHECK_INT(got[0]->id, eu);
    CHECK_INT(got[0]->delivery, 1);
    CHECK_INT(got[0]->started_at, f->now);
    CHECK_STR(got[0]->worker, WORKER);
    CHECK_STR(got[0]->data, "{\"region\":\"eu\"}");
    CHECK_INT(get(f, eu)->state, WEIR_STATE_ACTIVE);
    const weir_job *kept = get(f, us);
    CHECK_INT(kept->state, WEIR_STATE_INACTIVE);
    CHECK_INT(kept->delivery, 0);
    CHECK(kept->updated_at < f->now);
    CHECK_INT(take_when(f, only_a, 4, "data.region = \"eu\"", got), 0);
    CHECK_INT(take(f, "a")->id, us);
    CHECK_INT(finish(f, get(f, eu)), WEIR_OK);
}

/* Far behind those that are refused, in the order of all takes. */
static void a_condition_chooses_from_all_that_wait(fixture *f)
{
    enum { JOBS = 250, EVERY = 60 };
    const weir_job *got[WEIR_MAX_PAGE];
    for (int i = 0; i < JOBS; i++)
        of_region(f, i % 2 ? "a" : "b", i % EVERY ? "us" : "eu", -(i / EVERY));
    size_t n = take_when(f, (const char *[]){ "a", "none", "b", "a", NULL }, 3,
                         "data.region = \"eu\"", got);
    CHECK_INT(n, 3);
    for (size_t i = 0; i < n; i++)
        CHECK_INT(got[i]->id, (4 - i) * EVERY + 1);
    CHECK_INT(take_when(f, (const char *[]){ "b", NULL }, WEIR_MAX_PAGE, "data.region = \"eu\"",
                        got), 2);
    CHECK_INT(take_when(f, (const char *[]){ "b", NULL }, WEIR_MAX_PAGE, "data.region = \"eu\"",
                        got), 0);
}

static void a_condition_by_the_clock(fixture *f)
{
    enum { MINUTE_MS = 60000 };
    const weir_job *got[2];
    char            when[40];
    uint64_t        id = add(f, "a");
    int64_t         next = f->now + 2 * MINUTE_MS;
    snprintf(when, sizeof when, "now.minute = %d", (int)(next / MINUTE_MS % 60));
    CHECK_INT(take_when(f, only_a, 2, when, got), 0);
    later(f, 2 * MINUTE_MS);
    CHECK_INT(take_when(f, only_a, 2, when, got), 1);
    CHECK_INT(got[0]->id, id);
}

static void a_condition_takes_no_paused_type(fixture *f)
{
    const weir_job *got[2];
    add(f, "a");
    set_paused(f, "a", true);
    CHECK_INT(take_when(f, only_a, 2, "true", got), 0);
    set_paused(f, "a", false);
    set_paused(f, "*", true);
    CHECK_INT(take_when(f, only_a, 2, "true", got), 0);
    set_paused(f, "*", false);
    CHECK_INT(take_when(f, only_a, 2, "true", got), 1);
}

/* The next job of an end is chosen by its condition, too. */
static void an_end_takes_by_a_condition(fixture *f)
{
    const char *type = "a";
    weir_job   *next = NULL;
    uint64_t    first = of_region(f, "a", "eu", WEIR_PRIORITY_HIGH);
    of_region(f, "a", "us", 0);
    uint64_t    third = of_region(f, "a", "eu", WEIR_PRIORITY_LOW);
    const weir_job *job = take(f, "a");
    CHECK_INT(job->id, first);
    weir_op op = { .kind = WEIR_OP_FINISH, .u.finish = {
        .id = job->id, .delivery = job->delivery, .outcome = WEIR_OUTCOME_DONE,
        .next = { .types = &type, .n_types = 1, .n = 1, .worker = WORKER, .lease_ms = LEASE_MS,
                  .when = "data.region = \"eu\"", .jobs = &next } } };
    CHECK_INT(run(f, &op), WEIR_OK);
    CHECK_INT(op.u.finish.state, WEIR_STATE_COMPLETE);
    CHECK_INT(op.u.finish.next.n_jobs, 1);
    CHECK(next && next->id == third);
    weir_job_free(next);
}

static void a_wrong_condition_is_refused(fixture *f)
{
    const char *type = "a";
    weir_job   *job = NULL;
    weir_op     op = { .kind = WEIR_OP_TAKE, .u.take = { .types = &type, .n_types = 1, .n = 1,
                       .worker = WORKER, .lease_ms = LEASE_MS, .when = "data =", .jobs = &job } };
    CHECK_INT(run(f, &op), WEIR_EINVAL);
    CHECK_STR(f->err.field, "when");
}

const conformance_case cases_take[] = {
    CASE(nothing_waits),
    CASE(a_taken_job_is_active),
    ORDERED_CASE(lowest_priority_number_first_then_oldest),
    ORDERED_CASE(the_best_over_several_types),
    CASE(no_more_than_asked_for),
    ORDERED_CASE(the_same_type_twice_counts_once),
    CASE(delayed_ones_are_not_taken_before_their_time),
    CASE(promoted_jobs_keep_their_age),
    CASE(progress_starts_anew),
    CASE(the_copy_is_of_that_moment),
    ORDERED_CASE(a_batch_is_run_in_order),
    CASE(large_jobs_come_in_lots),
    CASE(many_takes_at_once),
    CASE(what_a_condition_refuses_stays_for_others),
    ORDERED_CASE(a_condition_chooses_from_all_that_wait),
    CASE(a_condition_by_the_clock),
    CASE(a_condition_takes_no_paused_type),
    CASE(an_end_takes_by_a_condition),
    CASE(a_wrong_condition_is_refused),
    { 0 },
};
