/* test_values.c - the values of a job as texts of their own, as Kue's processes see them. What can
 * be set, and what comes of it, is case_values.c's, on every store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/values.h"
#include "weir/data.h"

/* The text of the only value of `json`, and back. */
static void one(const char *json, const char *text)
{
    weir_value value[WEIR__VALUES];
    size_t     n;
    weir_buf   room = { 0 }, back = { 0 };
    assert_true(weir__values_split(json, strlen(json), value, &n, &room));
    assert_int_equal(n, 1);
    assert_int_equal(value[0].name_len, 1);
    assert_memory_equal(value[0].name, "a", 1);
    assert_int_equal(value[0].len, strlen(text));
    assert_memory_equal(value[0].text, text, value[0].len);
    weir__values_join(&back, value, n);
    assert_string_equal(back.data, json);
    weir__buf_fini(&room);
    weir__buf_fini(&back);
}

static void strings_lose_their_quotes(void **state)
{
    (void)state;
    one("{\"a\":\"red\"}", "red");
    one("{\"a\":\"\"}", "");
    one("{\"a\":\"x\\ny \\\"z\\\"\"}", "x\ny \"z\"");
    one("{\"a\":5}", "5");
    one("{\"a\":1.50}", "1.50");
    one("{\"a\":[1, null]}", "[1, null]");
    one("{\"a\":{\"b\":\"c\"}}", "{\"b\":\"c\"}");
    one("{\"a\":false}", "false");
    one("{\"a\":\"null\"}", "null");           /* which is no value, so it must be a text */
}

static void but_not_where_they_would_be_taken_for_something_else(void **state)
{
    (void)state;
    one("{\"a\":\"5\"}", "\"5\"");
    one("{\"a\":\" 5 \"}", "\" 5 \"");
    one("{\"a\":\"\\\"q\\\"\"}", "\"\\\"q\\\"\"");
    one("{\"a\":\"{}\"}", "\"{}\"");
}

static void what_others_wrote(void **state)
{
    (void)state;
    weir_value value[] = { { "b", " [1] ", 1, 5 }, { "a", "null", 1, 4 }, { "ab", "1,5", 2, 3 },
                           { "B", "\xff\"", 1, 2 } };
    weir_buf   json = { 0 };
    weir__values_join(&json, value, 4);
    assert_string_equal(json.data, "{\"B\":\"\xef\xbf\xbd\\\"\",\"a\":\"null\",\"ab\":\"1,5\","
                                   "\"b\":[1]}");
    weir__buf_clear(&json);
    weir__values_join(&json, value, 0);
    assert_int_equal(json.len, 0);
    weir__buf_fini(&json);
}

static void one_value_is_one(void **state)
{
    (void)state;
    weir_buf   b = { 0 };
    weir_error err;
    assert_int_equal(weir__values_one(&b, "a", "1,\"b\":2", &err), WEIR_EINVAL);
    assert_string_equal(err.msg, "values.a: not JSON at byte 1: more text behind the value");
    assert_int_equal(weir__values_one(&b, NULL, "1", &err), WEIR_EINVAL);
    assert_int_equal(b.len, 0);
    assert_int_equal(weir__values_one(&b, "a\"", NULL, &err), WEIR_OK);
    assert_string_equal(b.data, "{\"a\\\"\":null}");
    weir__buf_fini(&b);
}

static void they_are_read_by_name(void **state)
{
    (void)state;
    const char *json = "{\"a.b\":1,\"f\":1.5,\"n\":42,\"t\":\"x\",\"y\":true}";
    weir_job   *job = weir__job_copy(&(weir_job){ .id = 1, .data = "{\"n\":7}", .data_len = 7,
                                                  .values = json, .values_len = strlen(json) });
    assert_int_equal(weir_value_int(job, "n", 0), 42);
    assert_int_equal(weir_value_int(job, "a.b", 0), 1);
    assert_int_equal(weir_value_int(job, "t", 3), 3);
    assert_true(weir_value_number(job, "f", 0) == 1.5);
    assert_true(weir_value_bool(job, "y", false));
    assert_false(weir_value_bool(job, "none", false));
    assert_string_equal(weir_value_text(job, "t", NULL), "x");
    assert_null(weir_value_text(job, "n", NULL));
    weir_job_free(job);
    assert_int_equal(weir_value_int(&(weir_job){ 0 }, "n", 5), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_lose_their_quotes),
        cmocka_unit_test(but_not_where_they_would_be_taken_for_something_else),
        cmocka_unit_test(what_others_wrote),
        cmocka_unit_test(one_value_is_one),
        cmocka_unit_test(they_are_read_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
