/* test_firing.c - what a schedule does when it is due, decided without a store; dates that are left
 * out, the steady jitter, and a schedule as a text and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/civil.h"
#include "core/firing.h"
#include "op/schedule.h"

enum { HOUR = 3600000 };

static int64_t day(int year, int month, int d)
{
    return weir__days_of(year, month, d) * 86400000;
}

static weir_cron cron_of(const weir_schedule *s)
{
    weir_cron  c;
    weir_error err;
    if (weir__schedule_parse(&c, s, &err))
        fail_msg("%s", err.msg);
    return c;
}

static void in_time_it_fires(void **state)
{
    (void)state;
    int64_t       t0 = day(2026, 5, 1);
    weir_schedule s = { .name = "s", .when = "@hourly", .next_at = t0 };
    weir_cron     c = cron_of(&s);
    weir_plan     p = weir__schedule_decide(&s, &c, WEIR_STATE_ANY, t0 + 30000);
    assert_int_equal(p.outcome, WEIR_FIRING_DONE);
    assert_true(p.at == t0 && s.next_at == t0 + HOUR);
}

static void late_by_more_than_a_minute_it_was_missed(void **state)
{
    (void)state;
    int64_t t0 = day(2026, 5, 1), now = t0 + 5 * HOUR + 30 * 60000;
    for (weir_missed_kind k = WEIR_MISSED_ONCE; k <= WEIR_MISSED_ALL; k++) {
        weir_schedule s = { .name = "s", .when = "@hourly", .next_at = t0, .missed = k,
                            .missed_limit = 2 };
        weir_cron     c = cron_of(&s);
        int           done = 0;
        for (int i = 0; i < 10 && s.next_at <= now; i++)
            done += weir__schedule_decide(&s, &c, WEIR_STATE_ANY, now).outcome == WEIR_FIRING_DONE;
        assert_int_equal(done, k == WEIR_MISSED_ONCE ? 1 : k == WEIR_MISSED_SKIP ? 0 : 2);
        assert_true(s.next_at == t0 + 6 * HOUR);
    }
}

static void a_year_of_missed_seconds_costs_nothing(void **state)
{
    (void)state;
    int64_t       t0 = day(2026, 5, 1), now = day(2027, 5, 1) + 500;
    weir_schedule s = { .name = "s", .when = "* * * * * *", .next_at = t0,
                        .missed = WEIR_MISSED_SKIP };
    weir_cron     c = cron_of(&s);
    assert_int_equal(weir__schedule_decide(&s, &c, WEIR_STATE_ANY, now).outcome,
                     WEIR_FIRING_MISSED);
    assert_true(s.next_at > now - 2 * WEIR_MISSED_MS);
}

static void the_last_job_decides(void **state)
{
    (void)state;
    static const struct {
        weir_overlap_kind overlap;
        weir_state        last;
        weir_firing_kind  outcome;
        bool              cancel;
    } cases[] = {
        { WEIR_OVERLAP_ALLOW, WEIR_STATE_ACTIVE, WEIR_FIRING_DONE, false },
        { WEIR_OVERLAP_SKIP, WEIR_STATE_ACTIVE, WEIR_FIRING_RUNNING, false },
        { WEIR_OVERLAP_SKIP, WEIR_STATE_DELAYED, WEIR_FIRING_WAITING, false },
        { WEIR_OVERLAP_SKIP, WEIR_STATE_INACTIVE, WEIR_FIRING_WAITING, false },
        { WEIR_OVERLAP_SKIP, WEIR_STATE_FAILED, WEIR_FIRING_DONE, false },
        { WEIR_OVERLAP_QUEUE, WEIR_STATE_ACTIVE, WEIR_FIRING_DONE, false },
        { WEIR_OVERLAP_QUEUE, WEIR_STATE_INACTIVE, WEIR_FIRING_WAITING, false },
        { WEIR_OVERLAP_REPLACE, WEIR_STATE_ACTIVE, WEIR_FIRING_DONE, true },
        { WEIR_OVERLAP_REPLACE, WEIR_STATE_COMPLETE, WEIR_FIRING_DONE, false },
        { WEIR_OVERLAP_SKIP, WEIR_STATE_ANY, WEIR_FIRING_DONE, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weir_schedule s = { .name = "s", .when = "@hourly", .next_at = day(2026, 5, 1),
                            .overlap = cases[i].overlap };
        weir_cron     c = cron_of(&s);
        weir_plan     p = weir__schedule_decide(&s, &c, cases[i].last, s.next_at);
        assert_int_equal(p.outcome, cases[i].outcome);
        assert_int_equal(p.cancel, cases[i].cancel);
    }
}

static void dates_are_left_out(void **state)
{
    (void)state;
    /* Berlin: 2026-03-29 has 23 hours, so the day after begins early. */
    weir_schedule s = { .name = "s", .when = "0 0,12 * * *", .zone = "Europe/Berlin",
                        .except = "2026-03-29,2026-03-31" };
    weir_cron     c = cron_of(&s);
    int64_t       at = weir__schedule_after(&s, &c, day(2026, 3, 28));
    assert_true(at == day(2026, 3, 28) + 11 * HOUR);
    at = weir__schedule_after(&s, &c, at);
    assert_true(at == day(2026, 3, 29) + 22 * HOUR);        /* midnight of the 30th */
    at = weir__schedule_after(&s, &c, at);
    assert_true(at == day(2026, 3, 30) + 10 * HOUR);
    at = weir__schedule_after(&s, &c, at);
    assert_true(at == day(2026, 3, 31) + 22 * HOUR);
    static const char *const bad[] = { "2026-02-30", "tomorrow", "2026-1-1", "2026-12-25;", "," };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weir_error err;
        s.except = bad[i];
        assert_int_equal(weir__schedule_parse(&c, &s, &err), WEIR_EINVAL);
    }
}

static void start_and_end(void **state)
{
    (void)state;
    weir_schedule s = { .name = "s", .when = "@daily", .start_at = day(2026, 5, 1),
                        .end_at = day(2026, 5, 2) };
    weir_cron     c = cron_of(&s);
    assert_true(weir__schedule_after(&s, &c, day(2026, 1, 1)) == day(2026, 5, 1));
    assert_true(weir__schedule_after(&s, &c, day(2026, 5, 1)) == day(2026, 5, 2));
    assert_true(weir__schedule_after(&s, &c, day(2026, 5, 2)) == 0);
    s.next_at = 0;
    assert_true(weir__schedule_due(&s) == INT64_MAX);
}

static void jitter_is_steady(void **state)
{
    (void)state;
    weir_schedule a = { .name = "a", .next_at = 1000000, .jitter_ms = 60000 }, b = a;
    b.name = "b";
    int64_t due = weir__schedule_due(&a);
    assert_in_range(due, 1000000, 1060000);
    assert_true(weir__schedule_due(&a) == due);
    assert_true(weir__schedule_due(&b) != due);
    a.paused = true;
    assert_true(weir__schedule_due(&a) == INT64_MAX);
}

static void a_record_is_read_as_it_was_written(void **state)
{
    (void)state;
    weir_schedule s = { .name = "n \"1\"", .when = "0 6 * * 1", .zone = "Europe/Berlin",
                        .day_or_weekday = true, .start_at = 5, .end_at = 9,
                        .except = "2026-12-25", .jitter_ms = 7, .missed = WEIR_MISSED_ALL,
                        .missed_limit = 3, .overlap = WEIR_OVERLAP_QUEUE, .paused = true,
                        .created_at = 1, .next_at = 2, .last_at = 3, .last_job = 4, .fired = 5,
                        .caught_up = 2,
                        .job = { .type = "t", .data = "{\"a\":1}", .attempts = 3 } };
    for (int i = 0; i < WEIR_MAX_FIRED + 3; i++)
        weir__schedule_note(&s, (weir_firing){ .at = i, .done_at = i + 1, .job = (uint64_t)i + 1 });
    assert_int_equal(s.n_history, WEIR_MAX_FIRED);
    s.job.data_len = strlen(s.job.data);
    weir_buf    text = { 0 }, again = { 0 };
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena };
    weir__schedule_write(&text, &s);
    weir_schedule back;
    if (weir__schedule_read(&in, text.data, text.len, &back))
        fail_msg("%s: %s", text.data, in.err.msg);
    weir__schedule_write(&again, &back);
    assert_string_equal(text.data, again.data);
    assert_true(back.history[0].at == 3 && back.last_job == WEIR_MAX_FIRED + 3);
    weir__buf_fini(&text);
    weir__buf_fini(&again);
    weir__arena_free(&arena);
}

static void explains(const weir_schedule *s, int64_t now, const char *expected)
{
    char      *text;
    weir_error err;
    if (weir_schedule_explain(s, now, &text, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(text, expected);
    free(text);
}

static void begins(const weir_schedule *s, int64_t now, const char *expected)
{
    char      *text;
    weir_error err;
    assert_int_equal(weir_schedule_explain(s, now, &text, &err), WEIR_OK);
    if (strncmp(text, expected, strlen(expected)) != 0)
        fail_msg("%s", text);
    free(text);
}

static void it_says_when_and_why(void **state)
{
    (void)state;
    const int64_t next = INT64_C(1795411800000);        /* Monday 2026-11-23 05:30 UTC */
    weir_schedule s = { .name = "s", .when = "30 6 * * 1", .zone = "Europe/Berlin",
                        .next_at = next };
    const char   *when = "It fires next on Monday 2026-11-23 06:30 Europe/Berlin (in 2 d 4 h).";
    char          text[400];
    explains(&s, next - 52 * HOUR, when);
    weir__schedule_note(&s, (weir_firing){ .job = 7, .done_at = next - 55 * HOUR });
    snprintf(text, sizeof text, "%s The last run, job 7, was added 3 h 0 min ago.", when);
    explains(&s, next - 52 * HOUR, text);
    weir__schedule_note(&s, (weir_firing){ .outcome = WEIR_FIRING_RUNNING });
    snprintf(text, sizeof text, "%s The last run was skipped, because job 7 of the one before was "
             "still running. Of the last 2 runs, 1 was left out: 1 still running.", when);
    explains(&s, next - 52 * HOUR, text);
    weir__schedule_note(&s, (weir_firing){ .outcome = WEIR_FIRING_MISSED });
    snprintf(text, sizeof text, "%s The last run was missed, because no process had the store "
             "open. Of the last 3 runs, 2 were left out: 1 missed, 1 still running.", when);
    explains(&s, next - 52 * HOUR, text);
    weir__schedule_note(&s, (weir_firing){ .outcome = WEIR_FIRING_WAITING });
    snprintf(text, sizeof text, "%s The last run was skipped, because job 7 of the one before was "
             "still waiting. Of the last 4 runs, 3 were left out: 1 missed, 1 still running, "
             "1 still waiting.", when);
    explains(&s, next - 52 * HOUR, text);
    s.n_history = 0;
    explains(&s, next + HOUR, "It was to fire on Monday 2026-11-23 06:30 Europe/Berlin, which "
             "passed 1 h 0 min ago: no process has the store open.");
    s.start_at = next;
    explains(&s, next - 52 * HOUR, "It has not begun. It fires first on Monday 2026-11-23 06:30 "
             "Europe/Berlin (in 2 d 4 h).");
    s.start_at = 0;
    s.jitter_ms = 10 * 60000;           /* what is printed is what is counted to */
    int64_t due = weir__schedule_due(&s), minute = (due - next) / 60000;
    assert_true(due > next && due < next + s.jitter_ms);
    snprintf(text, sizeof text, "It fires next on Monday 2026-11-23 06:%02d", 30 + (int)minute);
    begins(&s, next - 52 * HOUR, text);
    s.jitter_ms = 0;
    s.next_at = WEIR_PARKED_AT + next;
    explains(&s, next, "It does not fire: it is on its way from one store to another. "
             "Repeating the migration goes on with it.");
    s.next_at = 0;
    explains(&s, next, "It has ended, and does not fire any more.");
    s.paused = true;
    explains(&s, next, "It is paused, and does not fire until it is resumed.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_time_it_fires),
        cmocka_unit_test(late_by_more_than_a_minute_it_was_missed),
        cmocka_unit_test(a_year_of_missed_seconds_costs_nothing),
        cmocka_unit_test(the_last_job_decides),
        cmocka_unit_test(dates_are_left_out),
        cmocka_unit_test(start_and_end),
        cmocka_unit_test(jitter_is_steady),
        cmocka_unit_test(a_record_is_read_as_it_was_written),
        cmocka_unit_test(it_says_when_and_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
