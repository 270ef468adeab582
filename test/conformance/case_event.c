/* case_event.c - the events of whole lives, with all they carry. */
#include "conformance/conformance.h"

static void a_plain_life(fixture *f)
{
    add(f, "a");
    const weir_job *job = take(f, "a");
    progress(f, job, 50, "{\"p\":1}");
    progress(f, job, 60, NULL);
    finish_with(f, job, "\"ok\"");
    CHECK_STR(events_in_full(f),
              "enqueue 1 a inactive 0 0 0, start 1 a active 0 0 1 host:1:1, "
              "progress 1 a active 0 50 1 {\"p\":1}, progress 1 a active 0 60 1 {\"p\":1}, "
              "complete 1 a complete 1 100 1 \"ok\"");
}

static void a_life_with_failures(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .attempts = 2 });
    fail_job(f, take(f, "a"), "one");
    fail_job(f, take(f, "a"), "two");
    CHECK_STR(events_in_full(f),
              "enqueue 1 a inactive 0 0 0, start 1 a active 0 0 1 host:1:1, "
              "failed_attempt 1 a inactive 1 0 1 one, enqueue 1 a inactive 1 0 1, "
              "start 1 a active 1 0 2 host:1:1, failed 1 a failed 2 0 2 two");
}

static void a_life_with_delays(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 10, .attempts = 2,
                              .backoff = { WEIR_BACKOFF_FIXED, .delay_ms = 20 } });
    CHECK_EVENTS(f, "");
    later(f, 10);
    fail_job(f, take(f, "a"), "x");
    later(f, 20);
    CHECK_STR(events_in_full(f),
              "promotion 1 a inactive 0 0 0, enqueue 1 a inactive 0 0 0, "
              "start 1 a active 0 0 1 host:1:1, failed_attempt 1 a delayed 1 0 1 x, "
              "promotion 1 a inactive 1 0 1, enqueue 1 a inactive 1 0 1");
}

static void what_is_refused_tells_nothing(fixture *f)
{
    uint64_t id = add(f, "a");
    events(f);
    promote_job(f, id);
    retry_job(f, id);
    remove_job(f, 99);
    finish(f, &(weir_job){ .id = id, .delivery = 1 });
    try_add(f, &(weir_spec){ .type = "" }, NULL);
    CHECK_EVENTS(f, "");
}

static void looking_tells_nothing(fixture *f)
{
    uint64_t id = add(f, "a");
    log_line(f, id, "x");
    events(f);
    get(f, id);
    list(f, &(weir_query){ 0 });
    logs(f, id, 0, 0);
    stats(f);
    check(f, false);
    tick(f);
    CHECK_EVENTS(f, "");
}

static void a_tick_keeps_its_order(fixture *f)
{
    configure(f, "done", &(weir_settings){ .keep_complete = { .age_ms = 1000 } });
    add(f, "done");                                                       /* 1: to be forgotten */
    finish(f, take(f, "done"));
    add_spec(f, &(weir_spec){ .type = "z", .delay_ms = 900 });            /* 2: to be promoted */
    add_spec(f, &(weir_spec){ .type = "z", .deadline_at = f->now + 950 });/* 3: too late */
    add_spec(f, &(weir_spec){ .type = "b", .ttl_ms = 1000 });             /* 4: too long */
    take(f, "b");
    add(f, "c");                                                          /* 5: lost */
    take_as(f, "c", "w", 1000);
    events(f);
    f->now += 1000;
    CHECK_INT(tick(f), 5);
    CHECK_EVENTS(f, "stalled 5, enqueue 5, ttl_exceeded 4, failed 4, promotion 2, enqueue 2, "
                    "failed 3, remove 1");
}

static void strings_of_jobs_that_are_gone_are_told(fixture *f)
{
    const char *type = "a";
    add_spec(f, &(weir_spec){ .type = "a", .attempts = 2 });
    const weir_job *job = take(f, "a");
    events(f);
    weir_job *got = NULL;
    weir_op fail_op = { .kind = WEIR_OP_FINISH, .now_ms = f->now,
                        .u.finish = { .id = 1, .delivery = job->delivery,
                                      .outcome = WEIR_OUTCOME_FAIL, .text = "first", .len = 5,
                                      .next = { .types = &type, .n_types = 1, .n = 1,
                                                .lease_ms = LEASE_MS, .worker = "other",
                                                .jobs = &got } } };
    weir_op progress_op = { .kind = WEIR_OP_PROGRESS, .now_ms = f->now,
                            .u.progress = { .id = 1, .delivery = 2, .percent = 1, .data = "[1]",
                                            .len = 3 } };
    weir_op again_op = progress_op;
    again_op.u.progress.data = "[2]";
    weir_op done_op = { .kind = WEIR_OP_FINISH, .now_ms = f->now,
                        .u.finish = { .id = 1, .delivery = 2, .text = "[3]", .len = 3 } };
    weir_op remove_op = { .kind = WEIR_OP_REMOVE, .now_ms = f->now, .u.remove = { 1 } };
    weir_op *ops[] = { &fail_op, &progress_op, &again_op, &done_op, &remove_op };
    CHECK_INT(run_batch(f, ops, 5), WEIR_OK);
    weir_job_free(got);
    CHECK_STR(events_in_full(f),
              "failed_attempt 1 a inactive 1 0 1 first, enqueue 1 a inactive 1 0 1, "
              "start 1 a active 1 0 2 other, progress 1 a active 1 1 2 [1], "
              "progress 1 a active 1 1 2 [2], complete 1 a complete 2 100 2 [3], "
              "remove 1 a any 2 100 2");
}

const conformance_case cases_event[] = {
    CASE(a_plain_life),
    CASE(a_life_with_failures),
    CASE(a_life_with_delays),
    CASE(what_is_refused_tells_nothing),
    CASE(looking_tells_nothing),
    ORDERED_CASE(a_tick_keeps_its_order),
    CASE(strings_of_jobs_that_are_gone_are_told),
    { 0 },
};
