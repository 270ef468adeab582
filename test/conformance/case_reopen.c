/* case_reopen.c - stores that keep jobs: close, open again, and all is as it was. */
#include "conformance/conformance.h"

#include <string.h>

static void everything_is_still_there(fixture *f)
{
    add_spec(f, &(weir_spec){
        .type = "a", .data = "{\"to\":\"ann\"}", .priority = -7, .attempts = 4, .delay_ms = 50,
        .backoff = { WEIR_BACKOFF_EXPONENTIAL, 100, 900, 30 }, .ttl_ms = 77,
            .deadline_at = f->now + 99999,
        .unique = "k", .max_lost = 8, .remove_on_complete = true, .search = true,
        .search_keys = "to", .values = "{\"color\":\"red\"}" });
    later(f, 50);
    const weir_job *job = take(f, "a");
    progress(f, job, 33, "[3]");
    log_from(f, job, "hello");
    fail_job(f, job, "why");
    const weir_job *was = get(f, 1);
    CHECK_INT(reopen(f), WEIR_OK);
    const weir_job *is = get(f, 1);
    CHECK_STR(is->type, was->type);
    CHECK_STR(is->data, was->data);
    CHECK_STR(is->error, "why");
    CHECK_STR(is->progress_data, "[3]");
    CHECK_STR(is->unique, "k");
    CHECK_STR(is->worker, WORKER);
    CHECK_STR(is->search_keys, "to");
    CHECK_STR(is->history, was->history);
    CHECK_STR(is->values, "{\"color\":\"red\"}");
    CHECK_INT(is->state, was->state);
    CHECK_INT(is->priority, -7);
    CHECK_INT(is->attempts, 1);
    CHECK_INT(is->max_attempts, 4);
    CHECK_INT(is->delivery, 1);
    CHECK_INT(is->max_lost, 8);
    CHECK_INT(is->progress, 33);
    CHECK_INT(is->delay_ms, 50);
    CHECK_INT(is->ttl_ms, 77);
    CHECK_INT(is->deadline_at, was->deadline_at);
    CHECK_INT(is->created_at, was->created_at);
    CHECK_INT(is->promote_at, was->promote_at);
    CHECK_INT(is->updated_at, was->updated_at);
    CHECK_INT(is->started_at, was->started_at);
    CHECK_INT(is->failed_at, was->failed_at);
    CHECK_INT(is->finished_at, was->finished_at);
    CHECK_INT(is->backoff.kind, WEIR_BACKOFF_EXPONENTIAL);
    CHECK_INT(is->backoff.delay_ms, 100);
    CHECK_INT(is->backoff.max_ms, 900);
    CHECK_INT(is->backoff.jitter_pct, 30);
    CHECK(is->remove_on_complete && is->search);
    CHECK_INT(logs(f, 1, 0, 0)->n, 2);
    CHECK_STR(listed(f, &(weir_query){ .search = "ann hello" }), "1");
    weir_added out = { 0 };
    CHECK_INT(try_add(f, &(weir_spec){ .type = "a", .unique = "k" }, &out), WEIR_OK);
    CHECK(out.existed && out.id == 1);
}

static void results_are_still_there(fixture *f)
{
    add(f, "a");
    const weir_job *job = take(f, "a");
    f->now += 9;
    finish_with(f, job, "{\"r\":1}");
    reopen(f);
    const weir_job *j = get(f, 1);
    CHECK_INT(j->state, WEIR_STATE_COMPLETE);
    CHECK_STR(j->result, "{\"r\":1}");
    CHECK_INT(j->result_len, 7);
    CHECK_INT(j->duration_ms, 9);
    CHECK_INT(j->finished_at, f->now);
}

static void running_jobs_are_stalled_at_open(fixture *f)
{
    add(f, "a");
    const weir_job *job = take(f, "a");
    events(f);
    CHECK_INT(reopen(f), WEIR_OK);
    CHECK_STATE(f, 1, WEIR_STATE_INACTIVE);
    CHECK_INT(get(f, 1)->lost, 1);
    CHECK_INT(get(f, 1)->attempts, 0);
    CHECK_INT(finish(f, job), WEIR_ESTALE);
    CHECK_EVENTS(f, "stalled 1, enqueue 1");
    CHECK_STR(logs(f, 1, 0, 0)->line[0].text, "stalled | worker " WORKER " was lost (1 of 3)");
    CHECK_INT(take(f, "a")->delivery, 2);
}

static void they_come_by_id(fixture *f)
{
    const weir_job *got[3];
    add_spec(f, &(weir_spec){ .type = "b", .priority = 9 });
    add_spec(f, &(weir_spec){ .type = "a", .priority = 5 });
    add_spec(f, &(weir_spec){ .type = "b", .priority = 1 });
    CHECK_INT(take_some(f, (const char *[]){ "a", "b", NULL }, 3, got), 3);
    events(f);
    CHECK_INT(reopen(f), WEIR_OK);
    CHECK_EVENTS(f, "stalled 1, enqueue 1, stalled 2, enqueue 2, stalled 3, enqueue 3");
}

static void a_job_that_kills_its_process_fails_at_last(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .max_lost = 1 });
    take(f, "a");
    reopen(f);
    CHECK_STATE(f, 1, WEIR_STATE_INACTIVE);
    take(f, "a");
    events(f);
    reopen(f);
    CHECK_STATE(f, 1, WEIR_STATE_FAILED);
    CHECK_EVENTS(f, "stalled 1, failed 1");
}

/* The worker may be in another process. */
static void running_jobs_stay_with_their_worker(fixture *f)
{
    uint64_t        id = add(f, "a");
    const weir_job *job = take(f, "a");
    events(f);
    CHECK_INT(reopen(f), WEIR_OK);
    CHECK_EVENTS(f, "");
    CHECK_STATE(f, id, WEIR_STATE_ACTIVE);
    CHECK(!take(f, "a"));
    CHECK_INT(get(f, id)->lease_until, job->lease_until);
    CHECK_INT(renew(f, job, LEASE_MS), WEIR_OK);
    CHECK_INT(progress(f, job, 50, NULL), WEIR_OK);
    CHECK_INT(finish_with(f, job, "1"), WEIR_OK);
    CHECK_STATE(f, id, WEIR_STATE_COMPLETE);
}

static void leases_end_also_when_opened_again(fixture *f)
{
    uint64_t        id = add(f, "a");
    const weir_job *job = take(f, "a");
    CHECK_INT(reopen(f), WEIR_OK);
    events(f);
    later(f, LEASE_MS);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
    CHECK_INT(get(f, id)->lost, 1);
    CHECK_INT(finish(f, job), WEIR_ESTALE);
    CHECK_STR(logs(f, id, 0, 0)->line[0].text, "stalled | worker " WORKER " was lost (1 of 3)");
    CHECK_INT(take(f, "a")->delivery, 2);
}

static void ids_are_never_used_again(fixture *f)
{
    add(f, "a");
    add(f, "a");
    remove_job(f, 2);
    reopen(f);
    CHECK_INT(stats(f)->last_id, 2);
    CHECK_INT(add(f, "a"), 3);
    remove_job(f, 1);
    remove_job(f, 3);
    reopen(f);
    CHECK_INT(add(f, "a"), 4);
}

static void counts_and_work_are_still_right(fixture *f)
{
    add(f, "a");
    const weir_job *job = take(f, "a");
    f->now += 30;
    finish(f, job);
    add_spec(f, &(weir_spec){ .type = "a", .remove_on_complete = true });
    finish(f, take(f, "a"));
    add(f, "a");
    fail_job(f, take(f, "a"), "x");
    add_spec(f, &(weir_spec){ .type = "b", .delay_ms = 10 });
    add(f, "b");
    reopen(f);
    const weir_type_stats *a = stats_of(f, "a");
    CHECK_INT(a->count[WEIR_STATE_COMPLETE], 1);
    CHECK_INT(a->count[WEIR_STATE_FAILED], 1);
    CHECK_INT(a->count[WEIR_STATE_ANY], 2);
    CHECK_INT(a->completed, 2);
    CHECK_INT(a->failed, 1);
    CHECK_INT(a->work_ms, 30);
    CHECK_INT(a->last_taken_at, f->now);
    CHECK_INT(count(f, WEIR_STATE_DELAYED, "b"), 1);
    CHECK_INT(count(f, WEIR_STATE_INACTIVE, "b"), 1);
}

static void types_stay_as_they_were_set(fixture *f)
{
    set_paused(f, "a", true);
    set_paused(f, "*", true);
    configure(f, "a", &(weir_settings){ .keep_complete = { 5, 6 }, .keep_failed = { 7, 8 } });
    configure(f, "*", &(weir_settings){ .search = true });
    add(f, "b");
    reopen(f);
    CHECK(stats(f)->all.paused);
    CHECK(stats_of(f, "a")->paused);
    CHECK(!stats_of(f, "b")->paused);
    CHECK_INT(stats_of(f, "a")->settings.keep_failed.count, 8);
    CHECK(!stats_of(f, "a")->settings.search);
    CHECK(stats_of(f, "b")->settings.search);
    CHECK(!take(f, "b"));
}

static void what_is_due_after_opening_is_done(fixture *f)
{
    configure(f, "c", &(weir_settings){ .keep_complete = { .age_ms = 100 } });
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 100 });
    add_spec(f, &(weir_spec){ .type = "b", .deadline_at = f->now + 100 });
    add(f, "c");
    finish(f, take(f, "c"));
    reopen(f);
    later(f, 100);
    CHECK_STATE(f, 1, WEIR_STATE_INACTIVE);
    CHECK_STATE(f, 2, WEIR_STATE_FAILED);
    CHECK(!get(f, 3));
}

static void pages_go_on_after_opening(fixture *f)
{
    for (int i = 0; i < 5; i++)
        add_spec(f, &(weir_spec){ .type = "a", .priority = -i });
    weir_query       q = { .state = WEIR_STATE_INACTIVE, .limit = 3 };
    const weir_page *page = list(f, &q);
    CHECK_STR(ids_of(f, page), "5 4 3");
    q.after = page->next;
    reopen(f);
    CHECK_STR(listed(f, &q), "2 1");
}

static void opening_often_changes_nothing(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 10 });
    add(f, "b");
    events(f);
    for (int i = 0; i < 3; i++)
        CHECK_INT(reopen(f), WEIR_OK);
    CHECK_EVENTS(f, "");
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 2);
    check_all_is_well(f);
}

const conformance_case cases_reopen[] = {
    PERSISTENT_CASE(everything_is_still_there),
    PERSISTENT_CASE(results_are_still_there),
    OWNED_CASE(running_jobs_are_stalled_at_open),
    OWNED_CASE(they_come_by_id),
    OWNED_CASE(a_job_that_kills_its_process_fails_at_last),
    SHARED_CASE(running_jobs_stay_with_their_worker),
    SHARED_CASE(leases_end_also_when_opened_again),
    PERSISTENT_CASE(ids_are_never_used_again),
    PERSISTENT_CASE(counts_and_work_are_still_right),
    PERSISTENT_CASE(types_stay_as_they_were_set),
    PERSISTENT_CASE(what_is_due_after_opening_is_done),
    PERSISTENT_CASE(pages_go_on_after_opening),
    PERSISTENT_CASE(opening_often_changes_nothing),
    { 0 },
};
