/* test_trend.c - records of trends: histograms, joining, what follows, text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/trend.h"

static weir_trend read_ok(const char *text)
{
    weir_trend t;
    weir_error err;
    if (weir__trend_read(&t, text, &err))
        fail_msg("%s: %s", text, err.msg);
    return t;
}

static void assert_text(const weir_trend *t, const char *text)
{
    char out[WEIR_TREND_MAX_BYTES];
    assert_int_equal(weir__trend_write(t, out), strlen(text));
    assert_string_equal(out, text);
}

static void percentiles_are_within_a_bucket(void **state)
{
    (void)state;
    static const double shares[] = { 0.01, 0.5, 0.95, 0.99, 1 };
    for (int64_t n = 1; n < 3000000; n = n * 3 + 1) {
        uint32_t histogram[WEIR_TREND_BUCKETS] = { 0 };
        int64_t  step = n / 1000 + 1;
        int64_t  jobs = 0;
        for (int64_t ms = step; ms <= n; ms += step, jobs++)
            weir__trend_time(histogram, ms);
        for (size_t i = 0; jobs && i < sizeof shares / sizeof *shares; i++) {
            int64_t rank = (int64_t)((double)jobs * shares[i] + 0.999999), got;
            int64_t exact = step * (rank ? rank : 1);
            got = weir__trend_share(histogram, shares[i]);
            assert_true(got + 1 >= exact);
            assert_true((double)got <= (double)exact * 1.19 + 1);
        }
    }
}

static void times_at_the_ends(void **state)
{
    (void)state;
    uint32_t h[WEIR_TREND_BUCKETS] = { 0 };
    assert_int_equal(weir__trend_share(h, 0.5), -1);
    weir__trend_time(h, -5);
    weir__trend_time(h, 0);
    weir__trend_time(h, 1);
    assert_int_equal(h[0], 3);
    assert_int_equal(weir__trend_share(h, 1), 1);
    weir__trend_time(h, INT64_MAX);
    assert_int_equal(h[WEIR_TREND_BUCKETS - 1], 1);
    h[5] = UINT32_MAX;
    weir__trend_time(h, 2);                             /* bucket 4 */
    assert_int_equal(h[4], 1);
    assert_int_equal(weir__trend_share(h, 0.5), 2);     /* 2^(5/4) */
}

static void joining_again_changes_nothing(void **state)
{
    (void)state;
    weir_trend a = read_ok("added=3 complete=1 backlog=2 w0=1 r7=9");
    weir_trend b = read_ok("added=2 failed=1 backlog=0 oldest=7 w0=4");
    weir__trend_join(&a, &b);
    assert_text(&a, "added=3 complete=1 failed=1 backlog=2 oldest=7 w0=4 r7=9");
    weir__trend_join(&a, &b);
    assert_text(&a, "added=3 complete=1 failed=1 backlog=2 oldest=7 w0=4 r7=9");
    char out[WEIR_TREND_MAX_BYTES];
    weir__trend_join_texts("added=1", "no record", out);
    assert_string_equal(out, "added=1");
}

static void what_follows_is_added_up(void **state)
{
    (void)state;
    weir_trend a = read_ok("added=3 backlog=2 oldest=9 w0=1 r7=4294967295");
    weir_trend b = read_ok("added=2 backlog=0 w0=4 r7=1");
    weir_trend c = read_ok("added=1 lost=2");
    weir__trend_follow(&a, &b);
    assert_text(&a, "added=5 backlog=0 oldest=9 w0=5 r7=4294967295");
    weir__trend_follow(&a, &c);
    assert_text(&a, "added=6 lost=2 backlog=0 oldest=9 w0=5 r7=4294967295");
    a = read_ok("added=99999999999999");
    weir__trend_follow(&a, &c);
    assert_text(&a, "added=99999999999999 lost=2");
}

static void texts_go_both_ways(void **state)
{
    (void)state;
    weir_trend t;
    weir__trend_clear(&t);
    assert_true(weir__trend_is_empty(&t));
    assert_text(&t, "");
    for (int i = 0; i < WEIR_TREND_N_COUNTS; i++)
        t.count[i] = (uint64_t)WEIR_TREND_MOST;
    for (int i = 0; i < WEIR_TREND_N_GAUGES; i++)
        t.gauge[i] = WEIR_TREND_MOST;
    memset(t.waited, 0xff, sizeof t.waited);
    memset(t.ran, 0xff, sizeof t.ran);
    char out[WEIR_TREND_MAX_BYTES];
    weir__trend_write(&t, out);                     /* the longest there is */
    weir_trend back = read_ok(out);
    assert_memory_equal(&back, &t, sizeof t);
    assert_false(weir__trend_is_empty(&back));
    back = read_ok("r3=1  added=2 ");               /* any order */
    assert_text(&back, "added=2 r3=1");
}

static void what_is_no_record(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "x", "added", "added=", "added=x", "added=-1", "added=1,", "added=1 added=2", "w=1",
        "w128=1", "w1x=1", "x1=1", "added=100000000000000", "w1=4294967296", " added=1", "=1",
        "added=1=1", "backlog=1 backlog=2",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weir_trend t;
        weir_error err;
        if (weir__trend_read(&t, bad[i], &err) != WEIR_EINVAL)
            fail_msg("\"%s\" was read", bad[i]);
        assert_true(weir__trend_is_empty(&t));
        assert_string_equal(err.field, "record");
    }
}

static void slots_that_are_kept(void **state)
{
    (void)state;
    int64_t now = INT64_C(1700000000000);
    assert_int_equal(weir__trend_last_kept(WEIR_TREND_MINUTE, now) -
                         weir__trend_first_kept(WEIR_TREND_MINUTE, now),
                     WEIR_TREND_MINUTES - 1 + 60);
    assert_int_equal(weir__trend_first_kept(WEIR_TREND_HOUR, now),
                     now / 3600000 - WEIR_TREND_HOURS + 1);
    assert_int_equal(weir__trend_first_kept(WEIR_TREND_HOUR, 5), 0);
    assert_int_equal(weir__trend_step_named("1h", 2), WEIR_TREND_HOUR);
    assert_int_equal(weir__trend_step_named("1s", 2), WEIR_TREND_STEPS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_within_a_bucket),
        cmocka_unit_test(times_at_the_ends),
        cmocka_unit_test(joining_again_changes_nothing),
        cmocka_unit_test(what_follows_is_added_up),
        cmocka_unit_test(texts_go_both_ways),
        cmocka_unit_test(what_is_no_record),
        cmocka_unit_test(slots_that_are_kept),
    };
    return cmocka_run_group_tests_name("trend", tests, NULL, NULL);
}
