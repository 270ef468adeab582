/* test_names.c - names and their parsers: states, priorities, events, durations, backoffs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "weir/weir.h"

static void states(void **state)
{
    (void)state;
    weir_state s;
    for (int i = WEIR_STATE_INACTIVE; i < WEIR_STATE_COUNT; i++) {
        assert_true(weir_state_parse(weir_state_name((weir_state)i), &s));
        assert_int_equal(s, i);
    }
    assert_string_equal(weir_state_name(WEIR_STATE_ANY), "any");
    assert_string_equal(weir_state_name(WEIR_STATE_COUNT), "unknown");
    assert_true(weir_state_parse("FAILED", &s));
    assert_int_equal(s, WEIR_STATE_FAILED);
    static const char *const none[] = { "any", "", "fail", "failed ", "inactivex" };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(weir_state_parse(none[i], &s));
    assert_false(weir_state_parse(NULL, &s));
}

static void events(void **state)
{
    (void)state;
    weir_event_kind k;
    for (int i = 0; i < WEIR_EVENT_COUNT; i++) {
        assert_true(weir_event_parse(weir_event_name((weir_event_kind)i), &k));
        assert_int_equal(k, i);
    }
    static const char *const same[] = { "failed attempt", "failed_attempt", "failed-attempt",
                                        "Failed_Attempt" };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        assert_true(weir_event_parse(same[i], &k));
        assert_int_equal(k, WEIR_EVENT_FAILED_ATTEMPT);
    }
    static const char *const none[] = { "", "fail", "failed_", "failedattempt", "start ",
                                        "xstart" };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(weir_event_parse(none[i], &k));
    assert_false(weir_event_parse(NULL, &k));
    assert_string_equal(weir_event_name((weir_event_kind)99), "unknown");
}

static void priorities(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int32_t     n;
    } good[] = {
        { "low", 10 },        { "normal", 0 },   { "medium", -5 },
        { "high", -10 },      { "critical", -15 }, { "HIGH", -10 },
        { "0", 0 },           { "-3", -3 },      { "+7", 7 },
        { "2147483647", INT32_MAX }, { "-2147483648", INT32_MIN },
    };
    static const char *const bad[] = { "", "-", "+", " 1", "1 ", "1x", "0x10", "--1", "2147483648",
                                       "-2147483649", "99999999999999999999", "urgent", "1.5" };
    int32_t n;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(weir_priority_parse(good[i].text, &n));
        assert_int_equal(n, good[i].n);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        n = 42;
        assert_false(weir_priority_parse(bad[i], &n));
        assert_int_equal(n, 42);
    }
    assert_false(weir_priority_parse(NULL, &n));
    assert_string_equal(weir_priority_name(-15), "critical");
    assert_string_equal(weir_priority_name(0), "normal");
    assert_null(weir_priority_name(3));
}

static void durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t     ms;
    } good[] = {
        { "0", 0 },          { "250", 250 },       { "250ms", 250 },    { "5s", 5000 },
        { "1m30s", 90000 },  { "2h", 7200000 },    { "7d", 604800000 }, { "1d2h3m4s5ms", 93784005 },
        { "1h5ms", 3600005 }, { "90m", 5400000 },  { "007s", 7000 },    { "36600d", WEIR_MAX_MS },
        { "3162240000000", WEIR_MAX_MS },
    };
    static const char *const bad[] = { "", "s", "ms", "5x", "5 s", " 5s", "5s ", "-5s", "+5s",
                                       "1.5s", "30s1m", "1s1s", "1m30", "5S", "1e3", "5sm",
                                       "5mss" };
    static const char *const over[] = { "36600d1ms", "3162240000001", "99999999999999999999999d",
                                        "40000d" };
    weir_error err;
    int64_t    ms;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (weir_duration_parse(good[i].text, &ms, &err))
            fail_msg("%s", err.msg);
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ms = 42;
        assert_int_equal(weir_duration_parse(bad[i], &ms, &err), WEIR_EINVAL);
        assert_int_equal(ms, 0);
        assert_non_null(strstr(err.msg, bad[i]));
        assert_non_null(strstr(err.msg, "write it like"));
    }
    for (size_t i = 0; i < sizeof over / sizeof *over; i++) {
        assert_int_equal(weir_duration_parse(over[i], &ms, &err), WEIR_ELIMIT);
        assert_non_null(strstr(err.msg, "WEIR_MAX_MS"));
    }
    assert_int_equal(weir_duration_parse(NULL, &ms, &err), WEIR_EINVAL);
}

static void backoffs(void **state)
{
    (void)state;
    static const struct {
        const char  *text;
        weir_backoff b;
    } good[] = {
        { "none", { 0 } },
        { "immediate", { 0 } },
        { "fixed", { .kind = WEIR_BACKOFF_FIXED } },
        { "fixed:1s", { .kind = WEIR_BACKOFF_FIXED, .delay_ms = 1000 } },
        { "Fixed:250:100%", { .kind = WEIR_BACKOFF_FIXED, .delay_ms = 250, .jitter_pct = 100 } },
        { "exponential", { .kind = WEIR_BACKOFF_EXPONENTIAL } },
        { "exponential:20%", { .kind = WEIR_BACKOFF_EXPONENTIAL, .jitter_pct = 20 } },
        { "exponential:1s", { .kind = WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 1000 } },
        { "exponential:1s:60s",
          { .kind = WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 1000, .max_ms = 60000 } },
        { "exponential:1s:1m30s:20%",
          { .kind = WEIR_BACKOFF_EXPONENTIAL,
            .delay_ms = 1000,
            .max_ms = 90000,
            .jitter_pct = 20 } },
        { "linear", { .kind = WEIR_BACKOFF_LINEAR } },
        { "linear:2s", { .kind = WEIR_BACKOFF_LINEAR, .delay_ms = 2000 } },
        { "LINEAR:2s:1m:5%",
          { .kind = WEIR_BACKOFF_LINEAR, .delay_ms = 2000, .max_ms = 60000, .jitter_pct = 5 } },
    };
    static const char *const bad[] = {
        "", ":", "line:1s", "linear:1s:2s:3s",
        "fix", "none:1s", "none:20%", "fixed:", "fixed::", "fixed:x",
        "fixed:1s:60s", "fixed:1s:", "exponential:1s:2s:3s", "fixed:1s:101%", "fixed:1s:%",
        "fixed:1s:-5%", "fixed:20%:1s", "fixed:1s:20%:", "exponential:1s:2s:20%:20%", "fixed:1.5s",
    };
    weir_error err;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        weir_backoff b = { .delay_ms = 1 };
        if (weir_backoff_parse(good[i].text, &b, &err))
            fail_msg("%s", err.msg);
        assert_int_equal(b.kind, good[i].b.kind);
        assert_int_equal(b.delay_ms, good[i].b.delay_ms);
        assert_int_equal(b.max_ms, good[i].b.max_ms);
        assert_int_equal(b.jitter_pct, good[i].b.jitter_pct);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weir_backoff b = { .delay_ms = 1 };
        if (weir_backoff_parse(bad[i], &b, &err) != WEIR_EINVAL)
            fail_msg("accepted: %s", bad[i]);
        assert_int_equal(b.delay_ms, 0);
        assert_non_null(strstr(err.msg, "write it like"));
    }
    assert_int_equal(weir_backoff_parse("fixed:99999d", &(weir_backoff){ 0 }, &err), WEIR_ELIMIT);
    assert_int_equal(weir_backoff_parse(NULL, &(weir_backoff){ 0 }, NULL), WEIR_EINVAL);
}

static void the_rest(void **state)
{
    (void)state;
    assert_string_equal(weir_durability_name(WEIR_DURABILITY_DISK), "disk");
    assert_string_equal(weir_durability_name(WEIR_DURABILITY_OS), "os");
    assert_string_equal(weir_durability_name(WEIR_DURABILITY_NONE), "none");
    assert_string_equal(weir_durability_name((weir_durability)9), "unknown");
    assert_string_equal(weir_version(), WEIR_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states),    cmocka_unit_test(events),   cmocka_unit_test(priorities),
        cmocka_unit_test(durations), cmocka_unit_test(backoffs), cmocka_unit_test(the_rest),
    };
    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
