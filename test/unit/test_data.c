/* test_data.c - members of a job's data, by path: what is found, and when the default is. */
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/job.h"
#include "weir/data.h"

static weir_job *job_with(const char *data)
{
    weir_job *job = weir__job_copy(&(weir_job){ .id = 1, .data = data, .data_len = strlen(data) });
    assert_non_null(job);
    return job;
}

static int64_t int_in(const char *data, const char *path)
{
    weir_job *job = job_with(data);
    int64_t   n = weir_data_int(job, path, -7);
    weir_job_free(job);
    return n;
}

static double number_in(const char *data, const char *path)
{
    weir_job *job = job_with(data);
    double    n = weir_data_number(job, path, -7.5);
    weir_job_free(job);
    return n;
}

#define TEXT_IS(data, path, want)                                                   \
    do {                                                                            \
        weir_job *text_job = job_with(data);                                        \
        assert_string_equal(weir_data_text(text_job, path, "(none)"), want);        \
        weir_job_free(text_job);                                                 \
    } while (0)

static void paths_lead_to_members_and_elements(void **state)
{
    (void)state;
    const char *data = " { \"user\" : {\"address\":{\"city\":\"Ulm\"}, \"n\":3},"
                       " \"items\":[{\"sku\":\"a\"},{\"sku\":\"b\"}, [10, 20]], \"\":4,"
                       " \"a.b\":{\"c\":5}, \"x[0]\":6, \"\\u0041\\n\":7 } ";
    TEXT_IS(data, "user.address.city", "Ulm");
    TEXT_IS(data, "items[1].sku", "b");
    TEXT_IS(data, "items[0][\"sku\"]", "a");
    assert_int_equal(int_in(data, "user.n"), 3);
    assert_int_equal(int_in(data, "items[2][1]"), 20);
    assert_int_equal(int_in(data, "[\"a.b\"].c"), 5);
    assert_int_equal(int_in(data, "[\"x[0]\"]"), 6);
    assert_int_equal(int_in(data, "[\"\"]"), 4);
    assert_int_equal(int_in(data, "A\n"), 7);
    assert_int_equal(int_in("{\"a\":1,\"a\":2}", "a"), 2);
    assert_int_equal(int_in("[[1],[2,3]]", "[1][1]"), 3);
    assert_int_equal(int_in(" 5 ", ""), 5);
    TEXT_IS("\"all of it\"", "", "all of it");
}

static void what_is_not_there_is_the_default(void **state)
{
    (void)state;
    const char *data = "{\"a\":{\"b\":[1,2]},\"t\":\"5\",\"o\":{},\"nil\":null}";
    static const char *const paths[] = {
        "b", "a.c", "a.b[2]", "a.b[4294967296]", "a.b[99999999999999999999]", "a.b.c", "a[0]",
        "t.x", "a..b", ".a", "a.", "a.b[", "a.b[]", "a.b[x]", "a.b[0", "a.b[-1]", "a.b[0]x",
        "a[\"b\"", "a[\"b]", "a b", "t", "o", "nil", "a", "a.b", "",
    };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        assert_int_equal(int_in(data, paths[i]), -7);
        assert_true(number_in(data, paths[i]) == -7.5);
    }
    assert_int_equal(int_in(data, "a.b[0]"), 1);
    TEXT_IS(data, "nil", "(none)");
    TEXT_IS(data, "a", "(none)");
    TEXT_IS("{\"z\":\"a\\u0000b\"}", "z", "(none)");
    assert_null(weir_data_text(&(weir_job){ .data = "{}", .data_len = 2 }, "x", NULL));
    assert_int_equal(weir_data_int(&(weir_job){ 0 }, "x", 9), 9);
}

static void whole_numbers(void **state)
{
    (void)state;
    assert_int_equal(int_in("[0]", "[0]"), 0);
    assert_int_equal(int_in("[-0]", "[0]"), 0);
    assert_int_equal(int_in("[9223372036854775807]", "[0]"), INT64_MAX);
    assert_int_equal(int_in("[-9223372036854775808]", "[0]"), INT64_MIN);
    assert_int_equal(int_in("[9223372036854775808]", "[0]"), -7);
    assert_int_equal(int_in("[-9223372036854775809]", "[0]"), -7);
    assert_int_equal(int_in("[42.0]", "[0]"), 42);
    assert_int_equal(int_in("[4.2e1]", "[0]"), 42);
    assert_int_equal(int_in("[1e300]", "[0]"), -7);
    assert_int_equal(int_in("[9.3e18]", "[0]"), -7);
    assert_int_equal(int_in("[-9.3e18]", "[0]"), -7);
    assert_int_equal(int_in("[1.5]", "[0]"), -7);
    assert_int_equal(int_in("[true]", "[0]"), -7);
}

static void numbers_are_read_in_every_locale(void **state)
{
    (void)state;
    static const char *const names[] = { "C", "de_DE.UTF-8", "fr_FR.UTF-8" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        setlocale(LC_ALL, names[i]);            /* one that is not installed changes nothing */
        assert_true(number_in("{\"x\":-1.5e2,\"y\":7}", "x") == -150);
        assert_true(number_in("{\"x\":-1.5e2,\"y\":7}", "y") == 7);
        assert_true(number_in("1e999", "") == -7.5);
    }
    setlocale(LC_ALL, "C");
}

static void flags(void **state)
{
    (void)state;
    weir_job *job = job_with("{\"yes\":true,\"no\":false,\"one\":1,\"text\":\"true\"}");
    assert_true(weir_data_bool(job, "yes", false));
    assert_false(weir_data_bool(job, "no", true));
    assert_true(weir_data_bool(job, "one", true));
    assert_false(weir_data_bool(job, "text", false));
    assert_true(weir_data_bool(job, "none", true));
    weir_job_free(job);
}

static void texts_live_as_long_as_the_job(void **state)
{
    (void)state;
    weir_job   *job = job_with("{\"a\":\"caf\\u00e9 \\ud83d\\ude00\\n\",\"b\":\"\"}");
    const char *a = weir_data_text(job, "a", NULL), *b = weir_data_text(job, "b", NULL);
    assert_string_equal(a, "caf\xc3\xa9 \xf0\x9f\x98\x80\n");
    assert_string_equal(b, "");
    assert_ptr_equal(weir_data_text(job, "a", NULL), a);        /* asked again: the same one */
    weir_job *copy = weir__job_copy(job);
    const char *c = weir_data_text(copy, "a", NULL);
    assert_ptr_not_equal(c, a);
    weir_job_free(job);
    assert_string_equal(c, "caf\xc3\xa9 \xf0\x9f\x98\x80\n");
    weir_job_free(copy);
}

enum { WORDS = 50 };

static void *read_all(void *arg)
{
    for (int i = 0; i < WORDS; i++) {
        char path[16];
        snprintf(path, sizeof path, "[%d]", i);
        if (strlen(weir_data_text(arg, path, "")) != 3)
            return arg;
    }
    return NULL;
}

static void threads_share_a_job(void **state)
{
    (void)state;
    char      data[WORDS * 6 + 3] = "[";
    pthread_t thread[4];
    for (int i = 0; i < WORDS; i++)
        strcat(data, i ? ",\"abc\"" : "\"abc\"");
    strcat(data, "]");
    weir_job *job = job_with(data);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, read_all, job), 0);
    for (size_t i = 0; i < 4; i++) {
        void *failed;
        pthread_join(thread[i], &failed);
        assert_null(failed);
    }
    weir_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_lead_to_members_and_elements),
        cmocka_unit_test(what_is_not_there_is_the_default),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(numbers_are_read_in_every_locale),
        cmocka_unit_test(flags),
        cmocka_unit_test(texts_live_as_long_as_the_job),
        cmocka_unit_test(threads_share_a_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
