/* test_cron.c - expressions and their firings: the vectors of delayqueue, clock changes, errors and
 * their places, plain words, a table by another implementation (test/cron), and properties of
 * random expressions against a walk over every minute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "core/civil.h"
#include "core/cron.h"
#include "weir/schedule.h"

static const char *table_path;

/* ---- helpers ---- */

/* "2026-03-29T00:00:00Z", with a blank for the T, or only its first part. */
static int64_t moment(const char *text)
{
    int y, month, d, h = 0, m = 0, s = 0;
    int n = sscanf(text, "%d-%d-%d%*[T ]%d:%d:%d", &y, &month, &d, &h, &m, &s);
    if (n < 3)
        fail_msg("not a moment: %s", text);
    return (weir__days_of(y, month, d) * 86400 + h * 3600 + m * 60 + s) * 1000;
}

static const char *stamp(char out[32], int64_t ms)
{
    time_t    t = (time_t)(ms / 1000);
    struct tm tm;
    strftime(out, 32, ms == WEIR_CRON_NEVER ? "never" : "%Y-%m-%d %H:%M:%S", gmtime_r(&t, &tm));
    return out;
}

static weir_cron parsed(const char *text, const char *zone)
{
    weir_cron  c;
    weir_error err;
    if (weir__cron_parse(&c, text, zone, false, &err))
        fail_msg("%s", err.msg);
    return c;
}

static void check_next(const weir_cron *c, const char *text, const char *after, const char *next)
{
    char    got[32], want[32];
    int64_t from = moment(after), at = weir__cron_next(c, from, from);
    if (at != moment(next))
        fail_msg("%s after %s: %s, expected %s", text, after, stamp(got, at),
                 stamp(want, moment(next)));
}

static void next_is(const char *text, const char *zone, const char *after, const char *next)
{
    weir_cron c = parsed(text, zone);
    check_next(&c, text, after, next);
}

/* The firings after `after`, all of them. */
static void fires(const char *text, const char *zone, const char *after, const char *const *at)
{
    weir_cron   c = parsed(text, zone);
    const char *from = after;
    for (; *at; from = *at++)
        check_next(&c, text, from, *at);
}
#define FIRES(text, zone, after, ...) \
    fires(text, zone, after, (const char *const[]){ __VA_ARGS__, NULL })

static void refused(const char *text, const char *message)
{
    weir_cron  c;
    weir_error err = { 0 };
    if (weir__cron_parse(&c, text, NULL, false, &err) != WEIR_EINVAL)
        fail_msg("%s was not refused", text);
    if (!strstr(err.msg, message))
        fail_msg("%s: \"%s\" does not say \"%s\"", text, err.msg, message);
}

/* ---- the grammar ---- */

static void vectors_of_delayqueue(void **state)
{
    (void)state;
    next_is("5/15 * * * * *", NULL, "2012-04-10 13:00:50", "2012-04-10 13:01:05");
    next_is("0 0/15 * * * *", NULL, "2012-04-10 13:45", "2012-04-10 14:00");
    next_is("0 * 0/15 * * *", NULL, "2012-04-10 15:59", "2012-04-11 00:00");
    next_is("0 0 0 1/15 * *", NULL, "2012-04-16", "2012-05-01");
    next_is("0 0 0 L * *", NULL, "2012-02-12", "2012-02-29");
    next_is("0 0 0 3L * *", NULL, "2012-04-10 13:00", "2012-04-27");
    next_is("0 0 0 9W * *", NULL, "2012-05-09", "2012-06-08");
    next_is("0 0 0 9W * *", NULL, "2012-09-01", "2012-09-10");
    next_is("0 0 0 1 5/10 *", NULL, "2012-05-01", "2013-05-01");
    next_is("0 0 0 * * 3", NULL, "2012-04-12", "2012-04-18");
    next_is("0 0 0 * * 3/2", NULL, "2012-04-08", "2012-04-11");
    next_is("0 0 0 * * 5L", NULL, "2012-04-27", "2012-05-25");
    next_is("0 0 0 * * 0", NULL, "2012-04-01", "2012-04-08");
    next_is("0 0 0 * * 5#3", NULL, "2012-04-20", "2012-05-18");
    next_is("0 0 0 * * 3#5", NULL, "2012-02-06", "2012-02-29");
    next_is("* * 29 2 *", NULL, "2012-03-01", "2016-02-29");
    next_is("@at 12:00", NULL, "2018-10-30 20:07:23", "2018-10-31 12:00");
    next_is("@at ??:30", NULL, "2018-10-30 20:07:23", "2018-10-30 20:30");
    next_is("@every 15m", NULL, "2018-10-30 20:07:23", "2018-10-30 20:15");
    next_is("@every 2h", NULL, "2018-10-30 20:07:23", "2018-10-30 22:00");
}

static void aliases_and_names(void **state)
{
    (void)state;
    next_is("@monthly", NULL, "2026-01-15", "2026-02-01");
    next_is("@weekly", NULL, "2026-11-18", "2026-11-22");
    next_is("@daily", NULL, "2026-11-18 00:00:00", "2026-11-19");
    next_is("@midnight", NULL, "2026-11-18 00:00:01", "2026-11-19");
    next_is("@hourly", NULL, "2026-11-18 05:59:59", "2026-11-18 06:00");
    next_is("@YEARLY", NULL, "2026-11-18", "2027-01-01");
    next_is("@annually", NULL, "2026-11-18", "2027-01-01");
    next_is("  0\t0 *  feb-Apr  mon ", NULL, "2026-11-18", "2027-02-01");
    next_is("@every 5 Minutes", NULL, "2026-11-18 00:01", "2026-11-18 00:05");
    next_is("@EVERY 1 hour", NULL, "2026-11-18 00:01", "2026-11-18 01:00");
    FIRES("0 0 * * sun-tue", NULL, "2026-11-18", "2026-11-22", "2026-11-23", "2026-11-24",
          "2026-11-29");
    FIRES("0 0 * * fri-sun", NULL, "2026-11-18", "2026-11-20", "2026-11-21", "2026-11-22",
          "2026-11-27");
    FIRES("0 0 * * */2", NULL, "2026-11-15", "2026-11-16", "2026-11-18", "2026-11-20", "2026-11-22",
          "2026-11-23");
    FIRES("0 0 * * L", NULL, "2026-11-18", "2026-11-22", "2026-11-29");
}

static void days_of_a_month(void **state)
{
    (void)state;
    FIRES("0 0 L-3 * *", NULL, "2027-01-01", "2027-01-28", "2027-02-25", "2027-03-28");
    FIRES("0 0 30L * *", NULL, "2026-02-02", "2026-03-01", "2026-05-01");
    FIRES("0 0 LW * *", NULL, "2026-01-01", "2026-01-30", "2026-02-27", "2026-03-31", "2026-04-30",
          "2026-05-29");
    /* 1 August 2026 is a Saturday: the nearest weekday is in July. 31 May 2026 is a Sunday. */
    FIRES("0 0 1W * *", NULL, "2026-07-02", "2026-07-31", "2026-09-01", "2026-10-01");
    FIRES("0 0 31W * *", NULL, "2026-05-01", "2026-06-01", "2026-07-31", "2026-08-31");
    FIRES("0 0 L,15 * *", NULL, "2026-01-01", "2026-01-15", "2026-01-31", "2026-02-15");
    FIRES("0 0 13 * 5", NULL, "2026-01-01", "2026-02-13", "2026-03-13", "2026-11-13");
    FIRES("0 0 29 2 1", NULL, "2026-01-01", "2044-02-29", "2072-02-29", "2112-02-29");
    FIRES("0 0 * * 5#3,2L", NULL, "2026-03-28", "2026-03-31", "2026-04-17", "2026-04-28");
    next_is("*/45 * * * *", NULL, "2026-01-01 00:10", "2026-01-01 00:45");
}

static void day_or_weekday(void **state)
{
    (void)state;
    int64_t       at[4];
    size_t        n;
    weir_schedule s = { .when = "0 0 13 * 5", .day_or_weekday = true };
    assert_int_equal(weir_schedule_next(&s, moment("2026-02-07"), at, 4, &n, NULL), WEIR_OK);
    assert_int_equal(n, 4);
    assert_true(at[0] == moment("2026-02-13"));
    assert_true(at[1] == moment("2026-02-20"));
    assert_true(at[3] == moment("2026-03-06"));
    s.when = "0 0 */2 * 5";                 /* as in Vixie cron, this is no restriction of days */
    assert_int_equal(weir_schedule_next(&s, moment("2026-02-07"), at, 4, &n, NULL), WEIR_OK);
    assert_true(at[0] == moment("2026-02-13"));
    assert_true(at[1] == moment("2026-02-27"));
}

static void intervals(void **state)
{
    (void)state;
    weir_cron c = parsed("every 90m", "Europe/Berlin");
    int64_t   from = moment("2026-03-28 23:10");
    assert_true(weir__cron_next(&c, from, from) == moment("2026-03-29 00:40"));
    assert_true(weir__cron_next(&c, from, moment("2026-03-29 00:40")) ==
                moment("2026-03-29 02:10"));
    assert_true(weir__cron_next(&c, from, from + 1) == moment("2026-03-29 00:40"));
    assert_true(weir__cron_next(&c, from, moment("2020-01-01")) == moment("2026-03-29 00:40"));
    assert_true(weir__cron_next(&c, from, WEIR_CRON_END_MS - 1) == WEIR_CRON_NEVER);
    c = parsed("every 1m30s", NULL);
    assert_int_equal(c.every_ms, 90000);
    refused("every 500ms", "at least 1s");
    refused("every", "1 field");
    refused("every 90", "column 7");
    refused("every 5x", "column 7: \"5x\" is not a length of time");
    refused("every 5m please", "one length of time");
}

static void errors_give_the_place(void **state)
{
    (void)state;
    refused("* 3 *", "column 6: it has 3 fields; expected 5");
    refused("", "column 1: it has 0 fields");
    refused("1 2 3 4 5 6 7 8", "column 13: it has 8 fields");
    refused("42-63 * * * * *", "column 4, second: the value 63 is out of range; expected 0 to 59");
    refused("42#3 * * * * *", "column 3, second: \"#3\" is not understood");
    refused("9X * * * *", "column 2, minute: \"X\"");
    refused("* * 9#2 * *", "column 6, day of the month: \"#2\"");
    refused("* * * ? *", "column 7, month: \"?\" is not understood; expected a number from 1 to 12 "
                         "or JAN to DEC");
    refused("* * * * 5W", "column 10, weekday: \"W\"");
    refused("* 5-1 * * *", "column 5, hour: the range ends before it begins");
    refused("* * * * 5-0", "the range ends");
    refused("0 0 30 2 *", "column 5: it never fires");
    refused("0 0 0  30 2 *", "column 8: it never fires");
    refused("0 0 31 2,4,6,9,11 ?", "never fires");
    refused("0 0 30L 2 *", "never fires");
    refused("0 0 5W * 6", "never fires");
    refused("*/0 * * * *", "column 3, minute: the step 0 is out of range; expected 1 to 60");
    refused("*/61 * * * *", "the step 61 is out of range");
    refused("* * * * */8", "column 11, weekday: the step 8 is out of range; expected 1 to 7");
    refused("* * ?/2 * *", "column 6");
    refused("* * 31L * *", "column 5, day of the month: no month has");
    refused("* * L-31 * *", "column 7");
    refused("* * * * 5#6", "column 11, weekday: the number behind # 6 is out of range");
    refused("99999999999999999999 * * * *", "column 1, minute: the value 999999999999 is out");
    refused("1, * * * *", "column 3, minute: the value is missing");
    refused(",1 * * * *", "column 1");
    refused("1-/2 * * * *", "column 3");
    refused("* * * * MONDAY", "column 12");
    refused(" @sometimes", "column 2: \"@sometimes\" is unknown; expected @yearly");
    refused("@reboot", "is unknown");
    refused("@every 90m", "column 8: 90 is out of range, since @every follows the clock; expected "
                          "1 to 59, or write every 90m");
    refused("@every 24h", "1 to 23");
    refused("@every 0m", "column 8: \"0m\" is not understood; write it like");
    refused("@every 1.5h", "column 9: \"1.5h\" is not understood; write it like");
    refused("@every 10ms", "write it like");
    refused("@every 10s", "every 30s");
    refused("@every 99999999999999999999m", "out of range");
    refused("@at 7:30", "column 6: \"7:30\" is not understood; write it like @at 06:30");
    refused("@at ?:30", "column 5: \"?:30\" is not understood");
    refused("@at 24:00", "column 5: \"24:00\" is no time of a day");
    refused("@at ??:60", "no time of a day");
    refused("@at 12:00 pm", "no time of a day");
    char       text[WEIR_MAX_WHEN + 2];
    weir_cron  c;
    weir_error err;
    memset(text, ' ', sizeof text);
    memcpy(text, "* * * * *", 9);
    text[WEIR_MAX_WHEN + 1] = 0;
    refused(text, "longer than 256 bytes");
    text[WEIR_MAX_WHEN] = 0;
    assert_int_equal(weir__cron_parse(&c, text, NULL, false, &err), WEIR_OK);
    assert_int_equal(weir__cron_parse(&c, NULL, NULL, false, &err), WEIR_EINVAL);
    assert_int_equal(weir__cron_parse(&c, "* * * * *", "Mars/Olympus", false, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, "unknown time zone \"Mars/Olympus\", column 1"));
    assert_int_equal(weir__cron_parse(&c, "* * * * *", "Europe/Berlni", false, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, "unknown time zone \"Europe/Berlni\", column 8"));
}

/* ---- clock changes ---- */

static void skipped_times_fire_once_after_the_gap(void **state)
{
    (void)state;            /* Berlin: 2026-03-29 02:00 becomes 03:00, at 01:00 UTC */
    FIRES("30 2 * * *", "Europe/Berlin", "2026-03-28 00:00", "2026-03-28 01:30", "2026-03-29 01:00",
          "2026-03-30 00:30");
    FIRES("*/10 2 * * *", "Europe/Berlin", "2026-03-28 01:50", "2026-03-29 01:00",
          "2026-03-30 00:00");
    FIRES("0 2,3 * * *", "Europe/Berlin", "2026-03-29 00:00", "2026-03-29 01:00",
          "2026-03-30 00:00");
    next_is("30 2 * * *", "Europe/Berlin", "2026-03-29 00:59:59", "2026-03-29 01:00");
    next_is("30 2 * * *", "Europe/Berlin", "2026-03-29 01:00:00", "2026-03-30 00:30");
    next_is("30 2 29 3 *", "Europe/Berlin", "2026-01-01", "2026-03-29 01:00");
    /* A gap of 30 minutes; a gap at midnight; a day that there was not. */
    next_is("15 2 * * *", "Australia/Lord_Howe", "2026-10-03 00:00", "2026-10-03 15:30");
    next_is("0 0 * * *", "America/Sao_Paulo", "2018-11-03 12:00", "2018-11-04 03:00");
    FIRES("0 9 * * *", "Pacific/Apia", "2011-12-29 00:00", "2011-12-29 19:00", "2011-12-30 10:00",
          "2011-12-30 19:00");
}

static void doubled_times_fire_once(void **state)
{
    (void)state;            /* Berlin: 2026-10-25 03:00 becomes 02:00, at 01:00 UTC */
    FIRES("30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", "2026-10-25 00:30",
          "2026-10-26 01:30");
    FIRES("*/20 2 * * *", "Europe/Berlin", "2026-10-25 00:20", "2026-10-25 00:40",
          "2026-10-26 01:00");
    FIRES("0 */2 * * *", "Europe/Berlin", "2026-10-24 22:00", "2026-10-25 00:00",
          "2026-10-25 03:00");
    next_is("30 2 * * *", "Europe/Berlin", "2026-10-25 01:10", "2026-10-26 01:30");
    FIRES("30 1 * * *", "Australia/Lord_Howe", "2026-04-04 00:00", "2026-04-04 14:30",
          "2026-04-05 15:00");
}

static void every_hour_is_every_hour_that_passes(void **state)
{
    (void)state;
    weir_cron c = parsed("30 * * * *", "Europe/Berlin");
    for (int64_t at = moment("2026-03-28 00:30"); at < moment("2026-10-27"); at += 3600000)
        assert_true(weir__cron_next(&c, 0, at) == at + 3600000);
    int runs = 0;
    c = parsed("0 * * * *", "Europe/Berlin");
    for (int64_t at = moment("2026-10-24 21:59"); at < moment("2026-10-25 22:00"); runs++)
        at = weir__cron_next(&c, 0, at);
    assert_int_equal(runs, 25);
}

/* ---- words ---- */

static void words_are(const char *when, bool either, const char *zone, const char *want)
{
    char         *got;
    weir_error    err;
    weir_schedule s = { .when = when, .zone = zone, .day_or_weekday = either };
    if (weir_schedule_words(&s, &got, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(got, want);
    free(got);
}

static void plain_words(void **state)
{
    (void)state;
    words_are("30 6 * * 1", false, "Europe/Berlin", "at 06:30 on Monday (Europe/Berlin)");
    words_are("@daily", false, NULL, "at 00:00 every day");
    words_are("0 6,18 * * *", false, "UTC", "at 06:00 and 18:00 every day");
    words_are("* * * * *", false, NULL, "every minute");
    words_are("*/15 9-17 * * 1-5", false, NULL,
              "every 15 minutes from 09:00 to 17:59 on Monday to Friday");
    words_are("@hourly", false, NULL, "every hour");
    words_are("@every 2h", false, NULL, "every 2 hours");
    words_are("@every 45m", false, NULL, "at minutes 0 and 45 of every hour");
    words_are("7 */3 * * *", false, NULL, "at minute 7 of every 3rd hour");
    words_are("5,10 0,1,2,3,4,7 * * *", false, NULL, "at minutes 5 and 10 of hours 0 to 4 and 7");
    words_are("0 0 13 * 5", false, NULL, "at 00:00 on day 13 of the month if that is Friday");
    words_are("0 0 13 * 5", true, NULL, "at 00:00 on day 13 of the month, and on Friday");
    words_are("0 0 1-5,9 JAN,MAR *", false, NULL,
              "at 00:00 on days 1 to 5 and 9 of the month in January and March");
    words_are("0 0 L * *", false, NULL, "at 00:00 on the last day of the month");
    words_are("0 0 L-3,15W,LW * *", false, NULL,
              "at 00:00 on the weekday nearest to day 15 of the month and on the day 3 days before "
              "the last of the month and on the last weekday of the month");
    words_are("0 0 * * 5#3,2L", false, NULL,
              "at 00:00 on the third Friday of the month and the last Tuesday of the month");
    words_are("0 0 * * 6,0", false, NULL, "at 00:00 on Saturday and Sunday");
    words_are("*/10 * * * * *", false, NULL, "every 10 seconds");
    words_are("30 0 12 * * *", false, NULL, "at 12:00:30 every day");
    words_are("5,35 * * * * *", false, NULL, "at seconds 5 and 35 of every minute");
    words_are("5,35 */2 * * * *", false, NULL, "at seconds 5 and 35, every 2 minutes");
    words_are("every 90m", false, NULL, "every 1 hour 30 minutes");
    words_are("every 1d", false, NULL, "every day");
    words_are("every 30s", false, NULL, "every 30 seconds");
}

/* ---- the public calls ---- */

static void the_start_counts_and_limits(void **state)
{
    (void)state;
    int64_t       at[WEIR_MAX_FIRINGS];
    size_t        n;
    weir_error    err;
    weir_schedule s = { .when = "0 0 * * *", .start_at = moment("2026-05-01") };
    assert_int_equal(weir_schedule_next(&s, moment("2026-01-01"), at, 1, &n, &err), WEIR_OK);
    assert_true(n == 1 && at[0] == moment("2026-05-01"));
    assert_int_equal(weir_schedule_next(&s, moment("2026-05-01"), at, 1, &n, &err), WEIR_OK);
    assert_true(n == 1 && at[0] == moment("2026-05-02"));
    s.when = "every 1h";
    assert_int_equal(weir_schedule_next(&s, moment("2026-01-01"), at, 2, &n, &err), WEIR_OK);
    assert_int_equal(n, 2);
    assert_true(at[0] == moment("2026-05-01 01:00") && at[1] == moment("2026-05-01 02:00"));
    assert_int_equal(weir_schedule_next(&s, moment("9999-12-31 22:30"), at, 5, &n, &err), WEIR_OK);
    assert_int_equal(n, 1);
    assert_int_equal(weir_schedule_next(&s, 0, at, WEIR_MAX_FIRINGS + 1, &n, &err), WEIR_ELIMIT);
    assert_int_equal(n, 0);
    assert_int_equal(weir_schedule_next(&(weir_schedule){ 0 }, 0, at, 1, &n, &err), WEIR_EINVAL);
    char *words = "";
    s.when = "x";
    assert_int_equal(weir_schedule_words(&s, &words, &err), WEIR_EINVAL);
    assert_null(words);
}

/* ---- another implementation ---- */

static void agrees_with_croner(void **state)
{
    (void)state;
    char  line[200];
    int   pairs = 0;
    FILE *f = fopen(table_path, "r");
    if (!f)
        fail_msg("no table at %s", table_path);
    while (fgets(line, sizeof line, f)) {
        char *text = strtok(line, "|\n"), *zone = strtok(NULL, "|\n");
        char *after = strtok(NULL, "|\n"), *next = strtok(NULL, "|\n");
        assert_non_null(next);
        next_is(text, zone, after, next);
        pairs++;
    }
    fclose(f);
    assert_in_range(pairs, 2000, 100000);
}

/* ---- properties ---- */

/* "L-3", "15W" and "LW" of days; "5L" and "5#2" of weekdays. */
typedef struct special {
    enum { BEFORE_LAST, NEAREST, LAST_WEEKDAY, LAST_OF_KIND, NTH_OF_KIND } kind;
    int n, k;
} special;

enum { SPECIALS = 3 };

typedef struct sets {
    bool    minute[60], hour[24], day[32], month[13], weekday[7];
    special days[SPECIALS], weekdays[SPECIALS];
    size_t  n_days, n_weekdays;
    bool    either;                     /* day or weekday is enough */
} sets;

static uint64_t seed = 12345;

static int below(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)(seed >> 33) % n;
}

/* A random field as text, and as the set that it must mean. */
static void random_field(char *text, bool *set, int min, int max)
{
    *text = 0;
    int parts = 1 + below(3);
    for (int i = 0; i < parts; i++) {
        int  a = min + below(max - min + 1), b = a + below(max - a + 1), step = 1 + below(4);
        char part[24];
        switch (below(5)) {
        case 0: snprintf(part, sizeof part, "*"), a = min, b = max, step = 1; break;
        case 1: snprintf(part, sizeof part, "*/%d", step), a = min, b = max; break;
        case 2: snprintf(part, sizeof part, "%d-%d/%d", a, b, step); break;
        case 3: snprintf(part, sizeof part, "%d/%d", a, step), b = max; break;
        default: snprintf(part, sizeof part, "%d", a), b = a, step = 1; break;
        }
        if (i)
            strcat(text, ",");
        strcat(text, part);
        for (int n = a; n <= b; n += step)
            set[n] = true;
    }
}

/* One part of a field, in the way of the fields above or special. */
static void random_special(char *text, bool of_days, special *x)
{
    static const int borders[] = { 1, 28, 29, 30, 31 };
    x->kind = of_days ? (int)below(3) : LAST_OF_KIND + below(2);
    x->n = 1 + below(x->kind == NEAREST ? 31 : x->kind == BEFORE_LAST ? 12 : 7);
    x->k = 1 + below(5);
    if (x->kind == NEAREST && below(2))
        x->n = borders[below(5)];
    switch (x->kind) {
    case BEFORE_LAST:
        x->n -= 1;
        sprintf(text, x->n == 0 ? "L" : x->k < 3 ? "L-%d" : "%dL", x->n);
        break;
    case NEAREST:      sprintf(text, "%dW", x->n); break;
    case LAST_WEEKDAY: strcpy(text, "LW"); break;
    case LAST_OF_KIND: sprintf(text, "%dL", x->n); break;
    case NTH_OF_KIND:  sprintf(text, "%d#%d", x->n, x->k); break;
    }
}

/* A field of days or weekdays: one in three is plain, one mixed, one has special parts alone. */
static void random_days(char *text, bool of_days, bool *set, special *x, size_t *n)
{
    int which = below(3);
    *text = 0;
    if (which < 2)
        random_field(text, set, 1, of_days ? 31 : 7);
    for (*n = 0; which && *n < (size_t)(1 + which % 2); (*n)++) {
        if (*text)
            strcat(text, ",");
        random_special(text + strlen(text), of_days, &x[*n]);
    }
}

/* ---- a plain matcher, by the words of docs/time.md ---- */

static int weekday_of(int64_t day)      /* 1 to 7, from Monday */
{
    int w = weir__weekday_of(day);
    return w ? w : 7;
}

/* The Monday to Friday nearest to a day. */
static int64_t nearest(int64_t day)
{
    return weekday_of(day) == 6 ? day - 1 : weekday_of(day) == 7 ? day + 1 : day;
}

static bool special_matches(const special *x, int64_t day)
{
    weir_date d = weir__date_of(day);
    int       last = weir__days_in_month(d.year, d.month);
    int64_t   end = weir__days_of(d.year, d.month, last);
    switch (x->kind) {
    case BEFORE_LAST:
        return d.day == last - x->n;
    case NEAREST:
        for (int64_t other = day - 1; other <= day + 1; other++)
            if (weir__date_of(other).day == x->n && nearest(other) == day)
                return true;
        return false;
    case LAST_WEEKDAY:
        while (weekday_of(end) > 5)
            end--;
        return day == end;
    case LAST_OF_KIND:
        return weekday_of(day) == x->n && d.day + 7 > last;
    case NTH_OF_KIND:
        return weekday_of(day) == x->n && (d.day - 1) / 7 + 1 == x->k;
    }
    return false;
}

static bool day_matches(const sets *s, int64_t at)
{
    weir_date d = weir__date_of(at);
    bool      day = s->day[d.day], weekday = s->weekday[weir__weekday_of(at)];
    for (size_t i = 0; i < s->n_days; i++)
        day = day || special_matches(&s->days[i], at);
    for (size_t i = 0; i < s->n_weekdays; i++)
        weekday = weekday || special_matches(&s->weekdays[i], at);
    return s->month[d.month] && (s->either ? day || weekday : day && weekday);
}

static bool matches(const sets *s, int64_t local)
{
    int64_t day = weir__div_floor(local, 86400);
    int     of_day = (int)(local - day * 86400);
    return s->minute[of_day / 60 % 60] && s->hour[of_day / 3600] && day_matches(s, day);
}

/* As text, and as the sets that it must mean. */
static void random_expression(sets *s, char *text, size_t size)
{
    char part[5][100];
    bool weekday[8] = { 0 };
    *s = (sets){ 0 };
    random_field(part[0], s->minute, 0, 59);
    random_field(part[1], s->hour, 0, 23);
    random_days(part[2], true, s->day, s->days, &s->n_days);
    random_field(part[3], s->month, 1, 12);
    random_days(part[4], false, weekday, s->weekdays, &s->n_weekdays);
    for (int w = 0; w < 7; w++)
        s->weekday[w] = weekday[w ? w : 7];
    snprintf(text, size, "%s %s %s %s %s", part[0], part[1], part[2], part[3], part[4]);
}

/* Is either field enough? As in Vixie cron: if both begin with something else than "*". */
static bool either_counts(const char *all)
{
    const char *day = all;
    for (int i = 0; i < 2; i++)
        day = strchr(day, ' ') + 1;
    return *day != '*' && strrchr(all, ' ')[1] != '*';
}

/* Without clock changes a firing is a match, and there is no match on the way to it: no minute for
 * some days, and no day at all. */
static void nothing_lies_between(void **state)
{
    (void)state;
    enum { EXPRESSIONS = 3000, MINUTES = 10 * 1440, DAYS = 2000 };
    int fired = 0;
    for (int i = 0; i < EXPRESSIONS; i++) {
        sets      s;
        char      all[600];
        bool      either = below(2);
        weir_cron c;
        random_expression(&s, all, sizeof all);
        if (weir__cron_parse(&c, all, NULL, either, NULL))
            continue;               /* too long, or no date at all: it says so elsewhere */
        s.either = either && either_counts(all);
        int64_t after = moment("2020-01-01") / 1000 + (int64_t)below(3000) * 86400 + below(86400);
        int64_t next = weir__cron_next(&c, 0, after * 1000) / 1000;
        assert_true(next > after);
        if (!matches(&s, next) || next % 60 != 0)
            fail_msg("%s (%d): %lld does not match", all, either, (long long)next);
        int64_t first = after / 60 * 60 + 60;
        for (int64_t t = first; t < next && t < first + MINUTES * 60; t += 60)
            if (matches(&s, t))
                fail_msg("%s (%d): %lld lies between", all, either, (long long)t);
        for (int64_t d = after / 86400 + 1; d < next / 86400 && d < after / 86400 + DAYS; d++)
            if (day_matches(&s, d))
                fail_msg("%s (%d): the day %lld lies between", all, either, (long long)d);
        fired++;
    }
    assert_in_range(fired, EXPRESSIONS / 2, EXPRESSIONS);
}

/* The same with seconds. */
static void nothing_lies_between_seconds(void **state)
{
    (void)state;
    enum { EXPRESSIONS = 1000, SPAN = 4000 };
    int fired = 0;
    for (int i = 0; i < EXPRESSIONS; i++) {
        sets      s;
        bool      second[60] = { 0 }, either = below(2);
        char      all[600], seconds[80], with[700];
        weir_cron c;
        random_expression(&s, all, sizeof all);
        random_field(seconds, second, 0, 59);
        snprintf(with, sizeof with, "%s %s", seconds, all);
        if (weir__cron_parse(&c, with, NULL, either, NULL))
            continue;
        s.either = either && either_counts(all);
        /* From a match of the minutes on, where seconds matter, or from anywhere. */
        int64_t after = moment("2020-01-01") / 1000 + (int64_t)below(3000) * 86400 + below(86400);
        if (below(2))
            after = weir__cron_next(&c, 0, after * 1000) / 1000;
        int64_t next = weir__cron_next(&c, 0, after * 1000) / 1000;
        assert_true(next > after);
        if (!matches(&s, next) || !second[next % 60])
            fail_msg("%s (%d): %lld does not match", with, either, (long long)next);
        for (int64_t t = after + 1; t < next && t < after + SPAN; t++)
            if (second[t % 60] && matches(&s, t))
                fail_msg("%s (%d): %lld lies between", with, either, (long long)t);
        fired++;
    }
    assert_in_range(fired, EXPRESSIONS / 2, EXPRESSIONS);
}

/* How far a zone's clock is from UTC all the time up to `until`; false: it changes meanwhile. */
static bool steady(const weir_zone *z, int64_t from, int64_t until, int64_t *offset)
{
    *offset = weir__zone_span(z, from).offset;
    for (int64_t at = from; at < until; at += 900)
        if (weir__zone_span(z, at).offset != *offset)
            return false;
    return weir__zone_span(z, until).offset == *offset;
}

/* The same in zones, where the clock does not change on the way: a firing matches what a clock
 * there shows, and no minute before it does. */
static void nothing_lies_between_in_zones(void **state)
{
    (void)state;
    static const char *const zones[] = { "Europe/Berlin", "America/New_York", "Asia/Kolkata",
                                         "Australia/Lord_Howe", "Pacific/Chatham",
                                         "America/St_Johns" };
    enum { EXPRESSIONS = 1200, MINUTES = 5 * 1440 };
    int fired = 0;
    for (int i = 0; i < EXPRESSIONS; i++) {
        sets      s = { 0 };
        char      minute[80], hour[80], all[200];
        weir_cron c;
        int64_t   offset;
        memset(s.day, true, sizeof s.day);
        memset(s.month, true, sizeof s.month);
        memset(s.weekday, true, sizeof s.weekday);
        random_field(minute, s.minute, 0, 59);
        random_field(hour, s.hour, 0, 23);
        snprintf(all, sizeof all, "%s %s * * *", minute, hour);
        if (weir__cron_parse(&c, all, zones[i % 6], false, NULL))
            continue;
        int64_t after = moment("2020-01-01") / 1000 + (int64_t)below(3000) * 86400 + below(86400);
        int64_t next = weir__cron_next(&c, 0, after * 1000) / 1000;
        assert_true(next > after);
        if (!steady(c.zone, after - 7200, next, &offset))
            continue;
        assert_true(matches(&s, next + offset) && (next + offset) % 60 == 0);
        int64_t first = (after + offset) / 60 * 60 + 60 - offset;
        for (int64_t t = first; t < next && t < first + MINUTES * 60; t += 60)
            if (matches(&s, t + offset))
                fail_msg("%s in %s: %lld lies between", all, zones[i % 6], (long long)t);
        fired++;
    }
    assert_in_range(fired, EXPRESSIONS / 2, EXPRESSIONS);
}

/* In zones, through clock changes: strictly later, and the same when asked at any moment before. */
static void firings_do_not_depend_on_when_one_asks(void **state)
{
    (void)state;
    static const char *const zones[] = { "Europe/Berlin", "America/New_York", "Pacific/Chatham",
                                         "Australia/Lord_Howe", "Africa/Casablanca" };
    static const char *const texts[] = { "30 2 * * *", "*/7 * * * *", "*/25 1-3 * * *", "0 0 1 * *",
                                         "15 2 L 3,10 *", "*/40 * 2 * * 0", "0 3 * * 0#2" };
    for (size_t z = 0; z < 5; z++) {
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            weir_cron c = parsed(texts[i], zones[z]);
            for (int k = 0; k < 400; k++) {
                int64_t after = moment("2020-01-01") + (int64_t)below(10 * 365 * 1440) * 60000;
                int64_t next = weir__cron_next(&c, 0, after);
                assert_true(next > after);
                int64_t between = after + (next - after) / 1000 * below(1000);
                assert_true(weir__cron_next(&c, 0, between) == next);
                assert_true(weir__cron_next(&c, 0, next - 1) == next);
            }
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_of_delayqueue),
        cmocka_unit_test(aliases_and_names),
        cmocka_unit_test(days_of_a_month),
        cmocka_unit_test(day_or_weekday),
        cmocka_unit_test(intervals),
        cmocka_unit_test(errors_give_the_place),
        cmocka_unit_test(skipped_times_fire_once_after_the_gap),
        cmocka_unit_test(doubled_times_fire_once),
        cmocka_unit_test(every_hour_is_every_hour_that_passes),
        cmocka_unit_test(plain_words),
        cmocka_unit_test(the_start_counts_and_limits),
        cmocka_unit_test(agrees_with_croner),
        cmocka_unit_test(nothing_lies_between),
        cmocka_unit_test(nothing_lies_between_seconds),
        cmocka_unit_test(nothing_lies_between_in_zones),
        cmocka_unit_test(firings_do_not_depend_on_when_one_asks),
    };
    table_path = argc > 1 ? argv[1] : "test/cron/table.txt";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
