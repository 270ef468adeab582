/* test_error_mask.c - what varies in an error, and groups of errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/error_mask.h"

static void what_varies_is_masked(void **state)
{
    (void)state;
    static const struct {
        const char *error, *mask;
    } cases[] = {
        { NULL, "" },
        { "", "" },
        { " \n\n  \t", "" },
        { "connection reset by peer", "connection reset by peer" },
        { "\n  first line \r\nsecond", "first line" },
        /* numbers */
        { "HTTP 503", "HTTP *" },
        { "timeout after 30000ms", "timeout after *ms" },
        { "step 3/7: 1,234.5 of -2", "step *: * of -*" },
        { "worker-12 at 2026-11-19T04:25:38.123Z", "worker-* at *Z" },
        { "at parse (/srv/app/mail.js:120:7)", "at parse (/srv/app/mail.js:*)" },
        { "utf8 and sha256", "utf* and sha*" },
        /* quoted strings */
        { "no user \"ann\"", "no user \"*\"" },
        { "no user 'ann o\\'neil' here", "no user '*' here" },
        { "unknown column `total` in \"a \\\" b\"", "unknown column `*` in \"*\"" },
        { "can't open the user's file", "can't open the user's file" },
        { "it isn't 'there'", "it isn't '*'" },
        { "an open \"quote", "an open \"quote" },
        { "\"\"", "\"*\"" },
        /* addresses */
        { "550 ann.b+c@mail.example.org: no such user", "* *: no such user" },
        { "connect ECONNREFUSED 10.0.0.7:6379", "connect ECONNREFUSED *" },
        { "connect [fe80::1]:25 refused", "connect [*]:* refused" },
        { "2001:db8::ff00:42:8329: refused", "*: refused" },
        { "std::bad_alloc", "std::bad_alloc" },
        { "GET https://example.org/a?b=c: gone", "GET https://*: gone" },
        { "see (https://example.org/x).", "see (https://*)." },
        { "@ home", "@ home" },
        /* ids */
        { "order 3f2504e0-4f89-11d3-9a0c-0305e82c3301 is gone", "order * is gone" },
        { "segfault at 0x7ffe", "segfault at *" },
        { "commit deadbee1 of id_8f3a2b9c", "commit * of id_*" },
        { "deadbeef facade defaced", "deadbeef facade defaced" },
        { "token Zm9vYmFyYmF6cXV4MQ expired", "token * expired" },
        { "* is * already", "* is * already" },
        /* shorter ones: digits and letters in turn */
        { "request 7f3a418: too many requests", "request *: too many requests" },
        { "request 7f3a: gone", "request *: gone" },
        { "commit a1b2c is not 12ab34", "commit * is not *" },
        { "session x77y9 of shard-3a41", "session * of shard-*" },
        { "k8s and i18n of p2p", "k*s and i*n of p*p" },
        { "h264 in 4xx, 30s", "h* in *xx, *s" },
        /* other letters */
        { "l\xc3\xa9on 7 \xe2\x82\xac", "l\xc3\xa9on * \xe2\x82\xac" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char   mask[WEIR_MAX_ERROR_MASK + 1];
        size_t len = weir_mask_error(cases[i].error, mask);
        if (strcmp(mask, cases[i].mask) != 0 || len != strlen(mask))
            fail_msg("\"%s\": \"%s\", not \"%s\"", cases[i].error, mask, cases[i].mask);
    }
}

/* At a character, and after what is masked: a long value does not push the rest out. */
static void a_mask_is_cut(void **state)
{
    (void)state;
    char error[5000], mask[WEIR_MAX_ERROR_MASK + 1];
    for (size_t i = 0; i + 1 < sizeof error; i += 2)
        memcpy(error + i, "\xc3\xa9", 2);
    memcpy(error, "x", 1);
    error[1] = 'y';
    error[2] = 'z';             /* now its characters begin at odd places */
    memmove(error + 3, error + 4, sizeof error - 4);
    error[sizeof error - 2] = '\0';
    assert_int_equal(weir_mask_error(error, mask), WEIR_MAX_ERROR_MASK - 1);
    memset(error, 'q', sizeof error);
    memcpy(error, "no \"", 4);
    memcpy(error + 1000, "\" there", 8);
    weir_mask_error(error, mask);
    assert_string_equal(mask, "no \"*\" there");
}

static void add(weir_error_groups *g, uint64_t id, const char *type, const char *error, int64_t at)
{
    assert_true(weir__error_groups_add(g, &(weir_job){
        .id = id, .type = (char *)type, .error = error, .finished_at = at }));
}

static void groups_have_count_times_and_an_example(void **state)
{
    (void)state;
    weir_error_groups *g = weir__error_groups_create();
    add(g, 1, "mail", "no user \"ann\"", 100);
    add(g, 2, "mail", "no user \"bob\"", 300);
    add(g, 3, "sms", "no user \"bob\"", 250);
    add(g, 4, "mail", "no user \"eve\"", 200);
    add(g, 5, "mail", NULL, 50);
    weir__error_groups_sort(g);
    assert_int_equal(g->n, 3);
    assert_int_equal(g->looked, 5);
    assert_int_equal(g->others, 0);
    assert_string_equal(g->group[0].type, "mail");
    assert_string_equal(g->group[0].error, "no user \"*\"");
    assert_int_equal(g->group[0].count, 3);
    assert_int_equal(g->group[0].first_at, 100);
    assert_int_equal(g->group[0].last_at, 300);
    assert_int_equal(g->group[0].example, 2);
    assert_string_equal(g->group[1].type, "sms");
    assert_string_equal(g->group[2].error, "");
    weir_error_groups_free(g);
}

static void beyond_the_most_groups_jobs_are_counted(void **state)
{
    (void)state;
    weir_error_groups *g = weir__error_groups_create();
    for (int i = 0; i < WEIR_MAX_ERROR_GROUPS + 10; i++) {
        char error[8] = { (char)('a' + i / 26), (char)('a' + i % 26) };
        add(g, (uint64_t)i + 1, "x", error, i);
    }
    add(g, 1000, "x", "aa", 1000);
    assert_int_equal(g->n, WEIR_MAX_ERROR_GROUPS);
    assert_int_equal(g->others, 10);
    weir__error_groups_sort(g);
    assert_int_equal(g->group[0].count, 2);
    weir_error_groups_free(g);
    weir_error_groups_free(NULL);
}

static void a_look_is_bounded_by_jobs_and_bytes(void **state)
{
    (void)state;
    weir_look l = { 0 };
    size_t    n, pages = 0;
    for (; (n = weir__look_next(&l)); pages++)
        for (size_t i = 0; i < n; i++)
            weir__look_add(&l, &(weir_job){ .data_len = 100 });
    assert_int_equal(l.jobs, WEIR_MAX_ERROR_JOBS);
    assert_true(pages < 30);
    l = (weir_look){ 0 };
    while ((n = weir__look_next(&l)))
        for (size_t i = 0; i < n; i++)
            weir__look_add(&l, &(weir_job){ .data_len = WEIR_MAX_DATA });
    assert_true(l.bytes >= WEIR_MAX_ERROR_BYTES);
    assert_true(l.bytes < WEIR_MAX_ERROR_BYTES + 4 * WEIR_MAX_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_varies_is_masked),
        cmocka_unit_test(a_mask_is_cut),
        cmocka_unit_test(groups_have_count_times_and_an_example),
        cmocka_unit_test(beyond_the_most_groups_jobs_are_counted),
        cmocka_unit_test(a_look_is_bounded_by_jobs_and_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
