/* test_zone.c - time zones: every zone of the system against libc, far beyond the tables of the
 * files; rules, names that are refused, files that are damaged, many threads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "core/zone.h"
#include "core/zone_rule.h"

static const weir_zone *find(const char *name)
{
    const weir_zone *z;
    weir_error       err;
    if (weir__zone_find(&z, name, &err))
        fail_msg("%s", err.msg);
    return z;
}

/* The library never sets TZ; this test does, to ask libc. */
static void use_libc(const char *name)
{
    setenv("TZ", name, 1);
    tzset();
}

static int32_t libc_offset(int64_t at)
{
    time_t    t = (time_t)at;
    struct tm tm;
    localtime_r(&t, &tm);
    return (int32_t)tm.tm_gmtoff;
}

static void check_span(const char *name, const weir_zone *z, int64_t at)
{
    weir_zone_span s = weir__zone_span(z, at);
    if (s.offset != libc_offset(at))
        fail_msg("%s at %lld: %d, libc says %d", name, (long long)at, s.offset, libc_offset(at));
    assert_true(s.from <= at && at < s.until);
    if (s.until != INT64_MAX) {
        weir_zone_span next = weir__zone_span(z, s.until);
        assert_true(next.from == s.until && next.before == s.offset && next.offset != s.offset);
        assert_true(libc_offset(s.until - 1) == s.offset && libc_offset(s.until) == next.offset);
    }
}

/* From 1902, which libc reads from the table, to 2500, which only the rule knows. */
static void all_zones_as_libc_has_them(void **state)
{
    (void)state;
    char  line[300];
    int   zones = 0;
    FILE *f = fopen("/usr/share/zoneinfo/zone1970.tab", "r");
    if (!f)
        fail_msg("tzdata is not installed");
    while (fgets(line, sizeof line, f)) {
        if (*line == '#')
            continue;
        strtok(line, "\t");
        strtok(NULL, "\t");
        char            *name = strtok(NULL, "\t\n");
        const weir_zone *z = find(name);
        assert_string_equal(weir__zone_name(z), name);
        use_libc(name);
        for (int64_t at = -2145916800; at < INT64_C(16725225600); at += 86400 * 97 + 12345)
            check_span(name, z, at);
        zones++;
    }
    fclose(f);
    assert_in_range(zones, 300, 1000);
}

static void one_zone_is_loaded_once(void **state)
{
    (void)state;
    assert_ptr_equal(find("Europe/Berlin"), find("Europe/Berlin"));
    assert_ptr_equal(find(NULL), find("UTC"));
    weir_zone_span s = weir__zone_span(find("UTC"), 0);
    assert_true(s.from == INT64_MIN && s.until == INT64_MAX && s.offset == 0 && s.before == 0);
    assert_int_equal(weir__zone_span(find("Etc/GMT+5"), 0).offset, -5 * 3600);
}

static void names_stay_in_the_directory(void **state)
{
    (void)state;
    static const char *const names[] = { "", "/etc/passwd", "../passwd", "Europe/../UTC",
                                         "Europe//Berlin", "Europe/", "Europe", "europe\n",
                                         "zone.tab", "tzdata.zi", "right/UTC", "Mars/Olympus",
                                         "Europe/Berlin " };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const weir_zone *z;
        weir_error       err;
        if (weir__zone_find(&z, names[i], &err) != WEIR_EINVAL)
            fail_msg("\"%s\" was found", names[i]);
        assert_null(z);
        assert_non_null(strstr(err.msg, "unknown time zone"));
    }
    char long_name[WEIR_ZONE_NAME_MAX + 2];
    memset(long_name, 'A', sizeof long_name);
    long_name[sizeof long_name - 1] = 0;
    const weir_zone *z;
    assert_int_equal(weir__zone_find(&z, long_name, NULL), WEIR_EINVAL);
}

static void rules(void **state)
{
    (void)state;
    static const char *const good[] = { "UTC0", "<+0330>-3:30", "CET-1CEST,M3.5.0,M10.5.0/3",
        "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "IST-2IDT,M3.4.4/26,M10.5.0",
        "XXX3YYY4:30:15,J60/1:02:03,300" };
    static const char *const bad[] = { "", "C", "CET", "CET-25", "CET-1CEST", "CET-1CEST,M3.5.0",
        "CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,M3.5.7,M10.5.0",
        "<CET-1", "CET-1CEST,M3.5.0,M10.5.0/168", "CET-1CEST,J0,J365", "CET-1CEST,1,366", "CET-1 ",
        "CET-1:60",
        "CET-1CEST,M3.5.0,M10.5.0,", "CET-99999999999999999999" };
    weir_zone_rule r;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!weir__zone_rule_parse(&r, good[i]))
            fail_msg("%s was refused", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (weir__zone_rule_parse(&r, bad[i]))
            fail_msg("%s was accepted", bad[i]);
    /* Summer all year, which RFC 8536 writes like this. */
    assert_true(weir__zone_rule_parse(&r, "EST5EDT,0/0,J365/25"));
    for (int64_t at = 0; at < INT64_C(7258118400); at += 86400 * 13 + 4321)
        assert_int_equal(weir__zone_rule_span(&r, at).offset, -4 * 3600);
    /* Libc knows the others, too. */
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        weir__zone_rule_parse(&r, good[i]);
        use_libc(good[i]);
        for (int64_t at = 0; at < INT64_C(7258118400); at += 86400 * 13 + 4321) {
            weir_zone_span s = weir__zone_rule_span(&r, at);
            if (s.offset != libc_offset(at))
                fail_msg("%s at %lld: %d, libc says %d", good[i], (long long)at, s.offset,
                         libc_offset(at));
            assert_true(s.from <= at && at < s.until);
        }
    }
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    unsigned char file[8192];
    FILE         *f = fopen("/usr/share/zoneinfo/Europe/Berlin", "rb");
    assert_non_null(f);
    size_t size = fread(file, 1, sizeof file, f);
    fclose(f);
    weir_zone *z;
    weir_error err;
    assert_int_equal(weir__zone_parse(&z, "B", file, size, &err), WEIR_OK);
    weir__zone_destroy(z);
    for (size_t len = 0; len < size; len++) {
        assert_int_equal(weir__zone_parse(&z, "B", file, len, &err), WEIR_ECORRUPT);
        assert_null(z);
    }
    assert_non_null(strstr(err.msg, "time zone B: its file is no TZif file"));
    weir__zone_destroy(NULL);
}

static void *look_up(void *arg)
{
    static const char *const names[] = { "Asia/Tokyo", "Asia/Seoul", "Asia/Manila", "Asia/Dubai",
                                         "Asia/Baku", "Asia/Riyadh", "Asia/Kabul" };
    (void)arg;
    intptr_t sum = 0;
    for (int i = 0; i < 700; i++) {
        const weir_zone *z;
        if (weir__zone_find(&z, names[i % 7], NULL))
            return NULL;
        sum += weir__zone_span(z, 1700000000).offset;
    }
    return (void *)sum;
}

static void many_threads(void **state)
{
    (void)state;
    pthread_t thread[8];
    void     *sum, *first = look_up(NULL);
    assert_non_null(first);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, look_up, NULL), 0);
    for (int i = 0; i < 8; i++) {
        pthread_join(thread[i], &sum);
        assert_ptr_equal(sum, first);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_zones_as_libc_has_them),
        cmocka_unit_test(one_zone_is_loaded_once),
        cmocka_unit_test(names_stay_in_the_directory),
        cmocka_unit_test(rules),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
