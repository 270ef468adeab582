/* test_spec.c - what may be asked for when adding a job, and how it is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/job.h"

#define S(n, c) filled((char[(n) + 1]){ 0 }, n, c)

static char *filled(char *s, size_t n, char c)
{
    memset(s, c, n);
    s[n] = '\0';
    return s;
}

static void accept(weir_spec spec)
{
    weir_error err = { 0 };
    if (weir__spec_check(&spec, -1, &err))
        fail_msg("refused: %s", err.msg);
}

static void refuse(weir_spec spec, weir_code code, const char *msg)
{
    weir_error err = { 0 };
    assert_int_equal(weir__spec_check(&spec, -1, &err), code);
    assert_int_equal(err.code, code);
    assert_string_equal(err.msg, msg);
    assert_int_equal(strlen(err.field), strcspn(msg, ":"));         /* both begin with its name */
    assert_memory_equal(err.field, msg, strlen(err.field));
    assert_int_equal(weir__spec_check(&spec, -1, NULL), code);
}

static void refuse_hidden(const char *type, const char *which)
{
    char msg[WEIR_ERROR_MAX];
    snprintf(msg, sizeof msg, "type: invisible or control character %s; use visible characters",
             which);
    refuse((weir_spec){ .type = type }, WEIR_EINVAL, msg);
}

static void types(void **state)
{
    (void)state;
    accept((weir_spec){ .type = "m" });
    accept((weir_spec){ .type = "learn weir: \xc3\xa9\xe2\x82\xac" });
    accept((weir_spec){ .type = "**" });
    accept((weir_spec){ .type = S(128, 'x') });
    refuse((weir_spec){ .type = S(129, 'x') }, WEIR_ELIMIT,
           "type: 129 bytes, at most 128 (WEIR_MAX_TYPE)");
    refuse((weir_spec){ 0 }, WEIR_EINVAL, "type: missing");
    refuse((weir_spec){ .type = "" }, WEIR_EINVAL, "type: empty");
    refuse_hidden("a\nb", "U+000A at byte 1");
    refuse_hidden("\x7f", "U+007F at byte 0");
    refuse_hidden("\xc2\x9b" "31m", "U+009B at byte 0");                /* C1: CSI */
    refuse_hidden("\xc2\xa0\xd8\x9c", "U+061C at byte 2");             /* Arabic letter mark */
    refuse_hidden("mail\xe2\x80\x8b", "U+200B at byte 4");              /* zero width space */
    refuse_hidden("\xe2\x80\x8e", "U+200E at byte 0");                  /* left-to-right mark */
    refuse_hidden("\xe2\x82\xac\xe2\x80\xae", "U+202E at byte 3");     /* right-to-left override */
    refuse_hidden("\xe2\x81\xa6", "U+2066 at byte 0");                  /* isolate */
    refuse_hidden("\xef\xbb\xbfmail", "U+FEFF at byte 0");              /* byte order mark */
    refuse_hidden("\xf3\xa0\x81\xa1", "U+E0061 at byte 0");             /* tag */
    accept((weir_spec){ .type = "\xf0\x9f\x93\xac mail \xd7\x90" });   /* Hebrew, an emoji */
    refuse((weir_spec){ .type = "a\xff" }, WEIR_EINVAL, "type: not valid UTF-8");
    refuse((weir_spec){ .type = "*" }, WEIR_EINVAL,
           "type: \"*\" stands for all types, a job needs one");
}

static void data(void **state)
{
    (void)state;
    accept((weir_spec){ .type = "m", .data = "1" });
    accept((weir_spec){ .type = "m", .data = "[1]garbage", .data_len = 3 });
    refuse((weir_spec){ .type = "m", .data = "" }, WEIR_EINVAL,
           "data: not JSON at byte 0: the text ends too early");
    refuse((weir_spec){ .type = "m", .data = "{\"a\":nil}" }, WEIR_EINVAL,
           "data: not JSON at byte 5: value expected");
    refuse((weir_spec){ .type = "m", .data_len = 3 }, WEIR_EINVAL, "data: NULL, but data_len is 3");
    refuse((weir_spec){ .type = "m", .data = S(101, '[') }, WEIR_ELIMIT,
           "data: nested too deeply at byte 100, at most 100 levels (WEIR_MAX_DEPTH)");

    char *big = malloc(WEIR_MAX_DATA + 2);
    assert_non_null(big);
    filled(big, WEIR_MAX_DATA + 1, ' ');
    big[0] = '1';
    refuse((weir_spec){ .type = "m", .data = big }, WEIR_ELIMIT,
           "data: 1048577 bytes, at most 1048576 (WEIR_MAX_DATA)");
    accept((weir_spec){ .type = "m", .data = big, .data_len = WEIR_MAX_DATA });
    free(big);
}

static void numbers(void **state)
{
    (void)state;
    accept((weir_spec){ .type = "m", .priority = INT32_MIN, .attempts = WEIR_MAX_ATTEMPTS,
                        .max_lost = 1 });
    accept((weir_spec){ .type = "m", .priority = INT32_MAX });
    refuse((weir_spec){ .type = "m", .attempts = -1 }, WEIR_EINVAL,
           "attempts: -1, must not be negative");
    refuse((weir_spec){ .type = "m", .attempts = WEIR_MAX_ATTEMPTS + 1 }, WEIR_ELIMIT,
           "attempts: 1000001, at most 1000000 (WEIR_MAX_ATTEMPTS)");
    refuse((weir_spec){ .type = "m", .max_lost = -1 }, WEIR_EINVAL,
           "max_lost: -1, must not be negative");
    refuse((weir_spec){ .type = "m", .max_lost = INT32_MAX }, WEIR_ELIMIT,
           "max_lost: 2147483647, at most 1000000 (WEIR_MAX_ATTEMPTS)");
}

static void times(void **state)
{
    (void)state;
    accept((weir_spec){ .type = "m", .delay_ms = WEIR_MAX_MS, .ttl_ms = WEIR_MAX_MS });
    accept((weir_spec){ .type = "m", .run_at = 1, .deadline_at = 1 });
    refuse((weir_spec){ .type = "m", .delay_ms = -1 }, WEIR_EINVAL,
           "delay_ms: -1, must not be negative");
    refuse((weir_spec){ .type = "m", .delay_ms = WEIR_MAX_MS + 1 }, WEIR_ELIMIT,
           "delay_ms: 3162240000001 ms, at most 3162240000000 (WEIR_MAX_MS)");
    refuse((weir_spec){ .type = "m", .delay_ms = 1, .run_at = 1 }, WEIR_EINVAL,
           "run_at: delay_ms is given, too; only one of them can be given");
    refuse((weir_spec){ .type = "m", .ttl_ms = INT64_MIN }, WEIR_EINVAL,
           "ttl_ms: -9223372036854775808, must not be negative");
    refuse((weir_spec){ .type = "m", .ttl_ms = INT64_MAX }, WEIR_ELIMIT,
           "ttl_ms: 9223372036854775807 ms, at most 3162240000000 (WEIR_MAX_MS)");
    refuse((weir_spec){ .type = "m", .run_at = -1 }, WEIR_EINVAL,
           "run_at: -1, must not be negative");
    refuse((weir_spec){ .type = "m", .run_at = INT64_MAX }, WEIR_ELIMIT,
           "run_at: 9223372036854775807, which is after the year 9999");
    refuse((weir_spec){ .type = "m", .deadline_at = INT64_MAX }, WEIR_ELIMIT,
           "deadline_at: 9223372036854775807, which is after the year 9999");
}

static void backoff(void **state)
{
    (void)state;
    accept((weir_spec){ .type = "m",
                        .backoff = { WEIR_BACKOFF_EXPONENTIAL, WEIR_MAX_MS, WEIR_MAX_MS, 100 } });
    refuse((weir_spec){ .type = "m", .backoff.kind = (weir_backoff_kind)4 }, WEIR_EINVAL,
           "backoff.kind: unknown number 4, must be 0 to 3");
    refuse((weir_spec){ .type = "m", .backoff.jitter_pct = 101 }, WEIR_EINVAL,
           "backoff.jitter_pct: 101, must be 0 to 100");
    refuse((weir_spec){ .type = "m", .backoff.jitter_pct = -1 }, WEIR_EINVAL,
           "backoff.jitter_pct: -1, must be 0 to 100");
    refuse((weir_spec){ .type = "m", .backoff.delay_ms = -1 }, WEIR_EINVAL,
           "backoff.delay_ms: -1, must not be negative");
    refuse((weir_spec){ .type = "m", .backoff.max_ms = WEIR_MAX_MS + 1 }, WEIR_ELIMIT,
           "backoff.max_ms: 3162240000001 ms, at most 3162240000000 (WEIR_MAX_MS)");
}

static void keys(void **state)
{
    (void)state;
    accept((weir_spec){ .type = "m", .unique = S(256, 'k'), .search_keys = S(512, 'k') });
    refuse((weir_spec){ .type = "m", .unique = "" }, WEIR_EINVAL, "unique: empty");
    refuse((weir_spec){ .type = "m", .unique = S(257, 'k') }, WEIR_ELIMIT,
           "unique: 257 bytes, at most 256 (WEIR_MAX_UNIQUE)");
    refuse((weir_spec){ .type = "m", .unique = "\xc3" }, WEIR_EINVAL, "unique: not valid UTF-8");
    refuse((weir_spec){ .type = "m", .search_keys = "" }, WEIR_EINVAL, "search_keys: empty");
    refuse((weir_spec){ .type = "m", .search_keys = S(513, 'k') }, WEIR_ELIMIT,
           "search_keys: 513 bytes, at most 512 (WEIR_MAX_SEARCH_KEYS)");
}

static void one_of_many_is_named(void **state)
{
    (void)state;
    weir_error err;
    weir_spec  spec = { .type = "" };
    assert_int_equal(weir__spec_check(&spec, 3, &err), WEIR_EINVAL);
    assert_string_equal(err.msg, "jobs[3].type: empty");
    assert_string_equal(err.field, "jobs[3].type");
    spec = (weir_spec){ .type = "m", .backoff.jitter_pct = 200 };
    assert_int_equal(weir__spec_check(&spec, 0, &err), WEIR_EINVAL);
    assert_string_equal(err.msg, "jobs[0].backoff.jitter_pct: 200, must be 0 to 100");
    assert_string_equal(err.field, "jobs[0].backoff.jitter_pct");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types),   cmocka_unit_test(data), cmocka_unit_test(numbers),
        cmocka_unit_test(times),   cmocka_unit_test(backoff), cmocka_unit_test(keys),
        cmocka_unit_test(one_of_many_is_named),
    };
    return cmocka_run_group_tests_name("spec", tests, NULL, NULL);
}
