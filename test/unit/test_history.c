/* test_history.c - the entries of a job's history: writing, reading, what goes and what is refused;
 * and the story that is told of them.
 * Which step of a job's life writes what is case_history.c's, on every store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/history.h"
#include "core/job.h"
#include "weir/queue.h"

static void add_to(weir_buf *text, int64_t at)
{
    weir__history_add(text, &(weir_history_entry){ .at = at, .kind = WEIR__HISTORY_DUE,
                                          .state = WEIR_STATE_INACTIVE });
    assert_false(text->failed);
    assert_int_equal(strlen(text->data), text->len);
}

static void set(weir_buf *b, const char *text)
{
    weir__buf_clear(b);
    weir__buf_str(b, text);
}

#define ENTRY(n, at) \
    "{\"n\":" #n ",\"at\":" #at ",\"event\":\"due\",\"state\":\"inactive\"}"

static void entries_are_numbered(void **state)
{
    (void)state;
    weir_buf text = { 0 };
    add_to(&text, 5);
    assert_string_equal(text.data, "[" ENTRY(1, 5) "]");
    add_to(&text, 6);
    assert_string_equal(text.data, "[" ENTRY(1, 5) "," ENTRY(2, 6) "]");
    weir__buf_fini(&text);
}

static void whatever_was_there_before(void **state)
{
    (void)state;
    static const struct { const char *before, *after; } cases[] = {
        { "[]", "[" ENTRY(1, 5) "]" },
        { " [ ] \n", " [ " ENTRY(1, 5) "]" },
        { "[{\"at\":1,\"n\":41}\n]\t", "[{\"at\":1,\"n\":41}\n," ENTRY(42, 5) "]" },
        { "[{\"m\":41}]", "[{\"m\":41}," ENTRY(1, 5) "]" },
        { "[7]", "[7," ENTRY(1, 5) "]" },
        { "[{\"n\":-3}]", "[{\"n\":-3}," ENTRY(1, 5) "]" },
        /* none: it begins anew */
        { "{}", "[" ENTRY(1, 5) "]" },
        { "nonsense", "[" ENTRY(1, 5) "]" },
        { "[{\"n\":1}", "[" ENTRY(1, 5) "]" },
        { "[[[]]]", "[" ENTRY(1, 5) "]" },
        { " ", "[" ENTRY(1, 5) "]" },
    };
    weir_buf text = { 0 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set(&text, cases[i].before);
        add_to(&text, 5);
        assert_string_equal(text.data, cases[i].after);
    }
    weir__buf_fini(&text);
}

static void the_oldest_go(void **state)
{
    (void)state;
    weir_buf text = { 0 };
    char     first[40];
    for (int i = 1; i <= 3 * WEIR_MAX_HISTORY; i++) {
        add_to(&text, i);
        int oldest = i > WEIR_MAX_HISTORY ? i - WEIR_MAX_HISTORY + 1 : 1;
        snprintf(first, sizeof first, "[{\"n\":%d,\"at\":%d,", oldest, oldest);
        assert_memory_equal(text.data, first, strlen(first));
        assert_int_equal(weir__history_valid(text.data, text.len, NULL), WEIR_OK);
    }
    weir__buf_fini(&text);
}

static void bytes_are_counted_too(void **state)
{
    (void)state;
    weir_buf  text = { 0 };
    char      worst[1000];
    memset(worst, '\x01', sizeof worst - 1);            /* six bytes each in JSON */
    worst[sizeof worst - 1] = '\0';
    weir_history_entry p = { .at = 5,
                             .kind = WEIR__HISTORY_FAILED,
                             .state = WEIR_STATE_FAILED,
                             .delivery = 1,
                             .worker = worst,
                             .error = worst,
                             .started_at = WEIR__MAX_AT };
    for (int i = 0; i < 20; i++) {
        weir__history_add(&text, &p);
        assert_true(text.len <= WEIR_MAX_HISTORY_BYTES);
        assert_int_equal(weir__history_valid(text.data, text.len, NULL), WEIR_OK);
    }
    assert_true(text.len > WEIR_MAX_HISTORY_BYTES - 2700);
    weir__buf_fini(&text);
}

static void all_of_it_is_read(void **state)
{
    (void)state;
    weir_history_entry p = { .at = 50,
                             .kind = WEIR__HISTORY_FAILED_ATTEMPT,
                             .state = WEIR_STATE_DELAYED,
                             .delivery = 3,
                             .worker = "w \"x\"",
                             .started_at = 40,
                             .error = "caf\xc3\xa9\n",
                             .planned = 45,
                             .until = 60,
                             .new_priority = true,
                             .old_priority = -7,
                             .priority = INT32_MIN,
                             .new_data = true };
    weir_buf    text = { 0 };
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena };
    weir_items  all;
    weir__history_add(&text, &p);
    add_to(&text, 70);
    assert_int_equal(weir__history_read(&in, text.data, text.len, &all), WEIR_OK);
    const weir_history_entry *r = all.item;
    assert_int_equal(all.n, 2);
    assert_int_equal(r->n, 1);
    assert_int_equal(r->at, 50);
    assert_int_equal(r->kind, WEIR__HISTORY_FAILED_ATTEMPT);
    assert_int_equal(r->state, WEIR_STATE_DELAYED);
    assert_int_equal(r->delivery, 3);
    assert_string_equal(r->worker, "w \"x\"");
    assert_int_equal(r->started_at, 40);
    assert_string_equal(r->error, "caf\xc3\xa9\n");
    assert_int_equal(r->planned, 45);
    assert_int_equal(r->until, 60);
    assert_true(r->new_priority && r->new_data);
    assert_int_equal(r->old_priority, -7);
    assert_int_equal(r->priority, INT32_MIN);
    assert_int_equal(r[1].n, 2);
    assert_false(r[1].new_priority || r[1].new_data);
    weir__arena_free(&arena);
    weir__buf_fini(&text);
}

static void what_is_no_history_is_refused(void **state)
{
    (void)state;
    static const struct { const char *text, *why; } cases[] = {
        { "", "history: not JSON at byte 0: the text ends too early" },
        { "{}", "history: {} is not a list" },
        { "[1]", "history[0]: 1 is not an object" },
        { "[{\"n\":1}]", "history[0].at: missing" },
        { "[" ENTRY(1, 5) "," ENTRY(3, 5) "]",
          "history[1].n: 3, must be one more than that of the entry before" },
        { "[" ENTRY(0, 5) "]",
          "history[0].n: 0, must be between 1 and 9223372036854775806" },
        { "[{\"n\":1,\"at\":5,\"event\":\"due\",\"state\":\"gone\"}]",
          "history[0].state: \"gone\" is not inactive, delayed, active, complete, failed or "
          "cancelled" },
        { "[{\"n\":1,\"at\":5,\"event\":\"done\",\"state\":\"failed\"}]",
          "history[0].event: \"done\" is not an event of a history" },
        { "[{\"n\":1,\"at\":5,\"event\":\"due\",\"state\":\"failed\",\"who\":1}]",
          "history[0].who: unknown member; this object accepts: n, at, event, state, delivery, "
          "worker, started_at, error, by, planned, until, old_priority, priority, new_data" },
    };
    weir_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(weir__history_valid(cases[i].text, strlen(cases[i].text), &err),
                         WEIR_EINVAL);
        assert_string_equal(err.msg, cases[i].why);
    }
    weir_buf text = { 0 };
    set(&text, "[" ENTRY(1, 5));
    for (int i = 2; i <= WEIR_MAX_HISTORY + 1; i++)
        weir__buf_printf(&text, "," ENTRY(%d, 5), i);
    weir__buf_char(&text, ']');
    assert_int_equal(weir__history_valid(text.data, text.len, &err), WEIR_ELIMIT);
    assert_string_equal(err.msg, "history: more than 50 of them");
    set(&text, "[]");
    while (text.len <= WEIR_MAX_HISTORY_BYTES)
        weir__buf_char(&text, ' ');
    assert_int_equal(weir__history_valid(text.data, text.len, &err), WEIR_ELIMIT);
    assert_string_equal(err.msg, "history: 16385 bytes, at most 16384 (WEIR_MAX_HISTORY_BYTES)");
    weir__buf_fini(&text);
}

/* ---- in words ---- */

/* The moments, one a line: how long after T0, and what. */
enum { T0 = 1000000 };

static void check_story(const weir_job *j, const char *want)
{
    weir_story *s;
    weir_error  err;
    weir_buf    text = { 0 };
    assert_int_equal(weir_job_story(j, &s, &err), WEIR_OK);
    for (size_t i = 0; i < s->n; i++)
        weir__buf_printf(&text, "%lld %s\n", (long long)(s->moment[i].at - T0), s->moment[i].what);
    assert_string_equal(text.data, want);
    weir__buf_fini(&text);
    weir_story_free(s);
}

static weir_job job_with(const char *history)
{
    weir_job j;
    weir__job_init(&j, &(weir_spec){ .type = "a", .attempts = 3 }, 7, T0);
    j.history = history;
    j.history_len = history ? strlen(history) : 0;
    return j;
}

static void a_short_story(void **state)
{
    (void)state;
    weir_job j = job_with(NULL);
    check_story(&j, "0 added, priority 0, 3 attempts\n");
    weir_effects e;
    weir__job_take(&j, "w", 30, T0 + 10, &e);
    check_story(&j, "0 added, priority 0, 3 attempts\n10 started by w (delivery 1)\n");
    weir__job_complete(&j, NULL, 0, T0 + 1510, &e);
    check_story(&j, "0 added, priority 0, 3 attempts\n10 started by w (delivery 1)\n"
                    "1510 complete after 1.5 s\n");
    j = job_with(NULL);
    j.deadline_at = T0 + 90;
    j.promote_at = T0 + 70;
    j.state = WEIR_STATE_DELAYED;
    check_story(&j, "0 added, priority 0, 3 attempts\n70 due\n90 deadline\n");
}

/* Its record was damaged: it is failed, and its history is as it was. */
static void a_job_that_was_set_aside_failed_once(void **state)
{
    (void)state;
    weir_job     j = job_with(NULL);
    weir_effects e;
    weir__job_set_aside(&j, "damaged", T0 + 10, &e);
    weir__effects_fini(&e);
    check_story(&j, "0 added, priority 0, 3 attempts\n10 failed: damaged\n");
}

static void a_long_story(void **state)
{
    (void)state;
    weir_job j = job_with(
        "[{\"n\":4,\"at\":1000030,\"event\":\"failed_attempt\",\"state\":\"delayed\","
        "\"delivery\":2,\"worker\":\"w2\",\"started_at\":1000020,\"error\":\"no\","
        "\"until\":1000080},"
        "{\"n\":5,\"at\":1003080,\"event\":\"due\",\"state\":\"inactive\",\"planned\":1000080},"
        "{\"n\":6,\"at\":1003090,\"event\":\"returned\",\"state\":\"inactive\",\"delivery\":3,"
        "\"worker\":\"w3\",\"started_at\":1003085},"
        "{\"n\":7,\"at\":1003090,\"event\":\"delayed\",\"state\":\"delayed\",\"until\":1004090,"
        "\"old_priority\":5,\"priority\":-10,\"new_data\":true},"
        "{\"n\":8,\"at\":1003190,\"event\":\"promoted\",\"state\":\"inactive\","
        "\"planned\":1004090},"
        "{\"n\":9,\"at\":1005000,\"event\":\"stalled\",\"state\":\"failed\",\"delivery\":4,"
        "\"started_at\":1004000},"
        "{\"n\":10,\"at\":1006000,\"event\":\"retried\",\"state\":\"inactive\"},"
        "{\"n\":11,\"at\":1006500,\"event\":\"delayed\",\"state\":\"delayed\","
        "\"by\":\"its schedule\",\"until\":1006700},"
        "{\"n\":12,\"at\":1007000,\"event\":\"cancelled\",\"state\":\"cancelled\"}]");
    j.state = WEIR_STATE_CANCELLED;
    j.priority = -10;
    j.delivery = 4;
    j.started_at = 1004000;
    j.finished_at = 1007000;
    check_story(&j,
        "0 added, priority 5, 3 attempts\n"
        "20 (what happened before is forgotten: 3 of 12)\n"
        "20 started by w2 (delivery 2)\n"
        "30 failed after 10 ms: no; tried again in 50 ms\n"
        "3080 its time came, 3.0 s late\n"
        "3085 started by w3 (delivery 3)\n"
        "3090 given back by its worker after 5 ms; queued again\n"
        "3090 delayed by hand, to start in 1.0 s, priority -10 (it was 5), new data\n"
        "3190 promoted by hand, 900 ms early\n"
        "4000 started by ? (delivery 4)\n"
        "5000 its worker was lost after 1.0 s; failed for good\n"
        "6000 retried by hand\n"
        "6500 delayed by its schedule, to start in 200 ms\n"
        "7000 cancelled by hand\n");
}

static void a_story_of_which_little_is_known(void **state)
{
    (void)state;
    weir_job j = job_with(NULL);
    j.state = WEIR_STATE_FAILED;              /* Kue did it, or a weir without histories */
    j.error = "smtp";
    j.delivery = 1;
    j.started_at = T0 + 5;
    j.failed_at = j.finished_at = T0 + 9;
    check_story(&j, "0 added, priority 0, 3 attempts\n5 started by ? (delivery 1)\n"
                    "9 failed: smtp\n");
    j = job_with("[{\"n\":1,\"at\":5,\"event\":\"flown\",\"state\":\"failed\"}]");
    check_story(&j, "0 (history[0].event: \"flown\" is not an event of a history)\n"
                    "0 added, priority 0, 3 attempts\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_numbered),
        cmocka_unit_test(whatever_was_there_before),
        cmocka_unit_test(the_oldest_go),
        cmocka_unit_test(bytes_are_counted_too),
        cmocka_unit_test(all_of_it_is_read),
        cmocka_unit_test(what_is_no_history_is_refused),
        cmocka_unit_test(a_short_story),
        cmocka_unit_test(a_job_that_was_set_aside_failed_once),
        cmocka_unit_test(a_long_story),
        cmocka_unit_test(a_story_of_which_little_is_known),
    };
    return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
