/* case_history.c - what is remembered of a job: every delivery that ended badly, every wait, and
 * what was done by hand; and of a job that is done at once, nothing. */
#include "conformance/conformance.h"

#include <stdlib.h>
#include <string.h>

/* Times in a history as they are written by these cases: T and then milliseconds since the start,
 * so "T1000" stands for FIXTURE_START + 1000. */
static void check_history(fixture *f, uint64_t id, const char *want)
{
    weir_buf text = { 0 };
    for (const char *p = want; *p; p++) {
        if (*p != 'T') {
            weir__buf_char(&text, *p);
            continue;
        }
        char *end;
        weir__buf_int(&text, FIXTURE_START + strtoll(p + 1, &end, 10));
        p = end - 1;
    }
    const weir_job *j = get(f, id);
    CHECK(j != NULL);
    if (j->history)
        CHECK_STR(j->history, text.data);
    else
        CHECK_STR("", want);
    CHECK_INT(j->history_len, text.len);
    weir__buf_fini(&text);
}

static void done_at_once_leaves_nothing(fixture *f)
{
    uint64_t        id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 3, .ttl_ms = 500 });
    const weir_job *job = take(f, "a");
    CHECK(!job->history);
    progress(f, job, 50, "[1]");
    log_from(f, job, "a line");
    renew(f, job, LEASE_MS);
    finish_with(f, job, "[1]");
    check_history(f, id, "");
}

#define ATTEMPT_1                                                                             \
    "{\"n\":1,\"at\":T100,\"event\":\"failed_attempt\",\"state\":\"delayed\",\"delivery\":1," \
    "\"worker\":\"w1\",\"started_at\":T0,\"error\":\"no luck\",\"until\":T1100}"
#define DUE_2                                                                                  \
    "{\"n\":2,\"at\":T1200,\"event\":\"due\",\"state\":\"inactive\",\"planned\":T1100}"

static void failed_attempts_and_waits(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 3,
                                            .backoff = { WEIR_BACKOFF_FIXED, .delay_ms = 1000 } });
    const weir_job *job = take_as(f, "a", "w1", LEASE_MS);
    f->now += 100;
    fail_job(f, job, "no luck");
    check_history(f, id, "[" ATTEMPT_1 "]");
    later(f, 1100);
    check_history(f, id, "[" ATTEMPT_1 "," DUE_2 "]");
    job = take_as(f, "a", "w2", LEASE_MS);
    CHECK_STR(job->history, get(f, id)->history);
    progress(f, job, 5, "[1]");
    log_from(f, job, "a line");
    f->now += 50;
    finish_with(f, job, "[1]");
    check_history(f, id, "[" ATTEMPT_1 "," DUE_2 "]");
    CHECK_STR(get(f, id)->worker, "w2");
}

static void for_good(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 2 });
    fail_job(f, take(f, "a"), "1");
    f->now += 10;
    const weir_job *job = take_as(f, "a", "w2", LEASE_MS);
    f->now += 10;
    fail_job(f, job, "");
    check_history(f, id,
        "[{\"n\":1,\"at\":T0,\"event\":\"failed_attempt\",\"state\":\"inactive\",\"delivery\":1,"
        "\"worker\":\"" WORKER "\",\"started_at\":T0,\"error\":\"1\"},"
        "{\"n\":2,\"at\":T20,\"event\":\"failed\",\"state\":\"failed\",\"delivery\":2,"
        "\"worker\":\"w2\",\"started_at\":T10,\"error\":\"\"}]");
}

static void lost_slow_and_given_back(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 2, .max_lost = 1,
                                            .ttl_ms = 60000 });
    give_back(f, take_as(f, "a", "w1", LEASE_MS));
    f->now += 5;
    take_as(f, "a", "w2", 1000);
    later(f, 1000);
    take_as(f, "a", "w3", 100000);
    later(f, 60000);
    take_as(f, "a", "w4", 1000);
    later(f, 2000);
    check_history(f, id,
        "[{\"n\":1,\"at\":T0,\"event\":\"returned\",\"state\":\"inactive\",\"delivery\":1,"
        "\"worker\":\"w1\",\"started_at\":T0},"
        "{\"n\":2,\"at\":T1005,\"event\":\"stalled\",\"state\":\"inactive\",\"delivery\":2,"
        "\"worker\":\"w2\",\"started_at\":T5},"
        "{\"n\":3,\"at\":T61005,\"event\":\"ttl_exceeded\",\"state\":\"inactive\",\"delivery\":3,"
        "\"worker\":\"w3\",\"started_at\":T1005},"
        "{\"n\":4,\"at\":T63005,\"event\":\"stalled\",\"state\":\"failed\",\"delivery\":4,"
        "\"worker\":\"w4\",\"started_at\":T61005}]");
    CHECK_STATE(f, id, WEIR_STATE_FAILED);
}

static void given_back_with_the_next_one_taken(fixture *f)
{
    uint64_t        first = add(f, "a"), second;
    const weir_job *job = take_as(f, "a", "w1", LEASE_MS), *next;
    second = add_spec(f, &(weir_spec){ .type = "a", .priority = -5 });
    events(f);
    CHECK_INT(finish_and_take(f, job, "a", &next), WEIR_OK);
    CHECK_INT(next->id, second);
    give_back(f, next);
    check_history(f, first, "");
    CHECK_INT(give_back(f, next), WEIR_ESTALE);
    CHECK_INT(give_back(f, job), WEIR_ESTALE);
}

static void too_late(fixture *f)
{
    uint64_t waits = add_spec(f, &(weir_spec){ .type = "a", .deadline_at = f->now + 50 });
    uint64_t delayed = add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 500,
                                                 .deadline_at = f->now + 50 });
    later(f, 60);
    check_history(f, waits, "[{\"n\":1,\"at\":T60,\"event\":\"deadline\",\"state\":\"failed\"}]");
    check_history(f, delayed, "[{\"n\":1,\"at\":T60,\"event\":\"deadline\",\"state\":\"failed\","
                              "\"planned\":T500}]");
}

static void by_hand(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 500 });
    f->now += 10;
    update(f, id, &(weir_change){ .set_delay = true, .delay_ms = 900 });
    update(f, id, &(weir_change){ .set_priority = true, .priority = -10, .data = "[1]" });
    update(f, id, &(weir_change){ .set_priority = true, .priority = -10 });    /* as it was */
    f->now += 10;
    promote_job(f, id);
    f->now += 10;
    cancel_job(f, id);
    f->now += 10;
    CHECK_INT(update(f, id, &(weir_change){ .state = WEIR_STATE_DELAYED, .set_delay = true,
                                            .delay_ms = 70 }), WEIR_OK);
    f->now += 10;
    CHECK_INT(update(f, id, &(weir_change){ .state = WEIR_STATE_DELAYED }), WEIR_ESTATE);
    check_history(f, id,
        "[{\"n\":1,\"at\":T10,\"event\":\"delayed\",\"state\":\"delayed\",\"planned\":T500,"
        "\"until\":T910},"
        "{\"n\":2,\"at\":T10,\"event\":\"changed\",\"state\":\"delayed\","
        "\"old_priority\":0,\"priority\":-10,\"new_data\":true},"
        "{\"n\":3,\"at\":T20,\"event\":\"promoted\",\"state\":\"inactive\",\"planned\":T910},"
        "{\"n\":4,\"at\":T30,\"event\":\"cancelled\",\"state\":\"cancelled\"},"
        "{\"n\":5,\"at\":T40,\"event\":\"retried\",\"state\":\"delayed\",\"until\":T110}]");
}

static void by_whom(fixture *f)
{
    char     long_name[WEIR_MAX_BY + 2];
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a" });
    weir_change change = { .state = WEIR_STATE_CANCELLED, .by = long_name };
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    CHECK_INT(update(f, id, &change), WEIR_EINVAL);
    change.by = "\xff";
    CHECK_INT(update(f, id, &change), WEIR_EINVAL);
    f->now += 10;
    change.by = "the schedule \"x\"";
    CHECK_INT(update(f, id, &change), WEIR_OK);
    f->now += 10;
    CHECK_INT(update(f, id, &(weir_change){ .state = WEIR_STATE_DELAYED, .run_at = f->now + 50,
                                            .by = "its schedule" }), WEIR_OK);
    check_history(f, id,
        "[{\"n\":1,\"at\":T10,\"event\":\"cancelled\",\"state\":\"cancelled\","
        "\"by\":\"the schedule \\\"x\\\"\"},"
        "{\"n\":2,\"at\":T20,\"event\":\"retried\",\"state\":\"delayed\","
        "\"by\":\"its schedule\",\"until\":T70}]");
}

static void a_retry_keeps_what_was_done(fixture *f)
{
    uint64_t        id = add(f, "a");
    const weir_job *job = take_as(f, "a", "w1", LEASE_MS);
    f->now += 30;
    finish_with(f, job, "[1]");
    f->now += 10;
    retry_job(f, id);
    job = take_as(f, "a", "w2", LEASE_MS);
    f->now += 5;
    cancel_job(f, id);
    check_history(f, id,
        "[{\"n\":1,\"at\":T30,\"event\":\"complete\",\"state\":\"complete\",\"delivery\":1,"
        "\"worker\":\"w1\",\"started_at\":T0},"
        "{\"n\":2,\"at\":T40,\"event\":\"retried\",\"state\":\"inactive\"},"
        "{\"n\":3,\"at\":T45,\"event\":\"cancelled\",\"state\":\"cancelled\",\"delivery\":2,"
        "\"worker\":\"w2\",\"started_at\":T40}]");
}

/* The first ones go, and it shows. */
static void only_so_many_are_kept(fixture *f)
{
    uint64_t id = add(f, "a");
    for (int i = 0; i < WEIR_MAX_HISTORY + 3; i++)
        give_back(f, take(f, "a"));
    const weir_job *j = get(f, id);
    size_t          n = 0;
    CHECK(!strncmp(j->history, "[{\"n\":4,", 8));
    CHECK(strstr(j->history, "{\"n\":53,") != NULL);
    for (const char *p = j->history; (p = strstr(p, "{\"n\":")); p++)
        n++;
    CHECK_INT(n, WEIR_MAX_HISTORY);
    CHECK_INT(take(f, "a")->history_len, j->history_len);
}

static void long_errors_are_cut(fixture *f)
{
    char error[3000];
    memset(error, '\x01', sizeof error - 1);
    error[sizeof error - 1] = '\0';
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 100 });
    for (int i = 0; i < 20; i++)
        fail_job(f, take(f, "a"), error);
    const weir_job *j = get(f, id);
    CHECK(j->history_len <= WEIR_MAX_HISTORY_BYTES);
    CHECK(j->history_len > WEIR_MAX_HISTORY_BYTES - 1600);
    CHECK(strstr(j->history, "{\"n\":20,") != NULL);
    CHECK(strstr(j->history, "{\"n\":1,") == NULL);
    CHECK_INT(strlen(j->error), sizeof error - 1);
}

static void what_came_in_goes_on(fixture *f)
{
    const char *come = "[ {\"n\":7,\"at\":T,\"event\":\"due\",\"state\":\"inactive\"} ]";
    weir_job    j = { .id = 9, .type = "a", .created_at = 5, .history = come,
                      .history_len = strlen(come) };
    weir_imported out;
    CHECK_INT(import_many(f, &(weir_incoming){ .job = &j }, 1, &out), WEIR_EINVAL);
    j.history = "[ {\"n\":7,\"at\":5,\"event\":\"due\",\"state\":\"inactive\"} ]";
    j.history_len = strlen(j.history);
    CHECK_INT(import_job(f, &j).err.code, WEIR_OK);
    give_back(f, take(f, "a"));
    check_history(f, 9,
        "[ {\"n\":7,\"at\":5,\"event\":\"due\",\"state\":\"inactive\"} ,"
        "{\"n\":8,\"at\":T0,\"event\":\"returned\",\"state\":\"inactive\",\"delivery\":1,"
        "\"worker\":\"" WORKER "\",\"started_at\":T0}]");
}

const conformance_case cases_history[] = {
    CASE(done_at_once_leaves_nothing),
    CASE(failed_attempts_and_waits),
    CASE(for_good),
    CASE(lost_slow_and_given_back),
    CASE(given_back_with_the_next_one_taken),
    CASE(too_late),
    CASE(by_hand),
    CASE(by_whom),
    CASE(a_retry_keeps_what_was_done),
    CASE(only_so_many_are_kept),
    CASE(long_errors_are_cut),
    CASE(what_came_in_goes_on),
    { 0 }
};
