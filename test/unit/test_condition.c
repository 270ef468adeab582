/* test_condition.c - conditions: what is true when, what is refused and where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/condition.h"
#include "core/job.h"

#define HOUR_MS INT64_C(3600000)
#define DAY_MS  (24 * HOUR_MS)

/* 2023-11-14 22:13:20, a Tuesday. */
#define NOW INT64_C(1700000000000)

static int64_t when_at(const char *text, int64_t now)
{
    static const char data[] = "{\"region\":\"eu\",\"n\":5,\"big\":1.5e3,\"ok\":true,\"no\":false,"
                               "\"nil\":null,\"a\":{\"b c\":[1,\"x\"]}}";
    static const char values[] = "{\"step\":2,\"who\":\"ann\"}";
    weir_job job = { .id = 7, .type = "mail", .priority = -5, .attempts = 1, .data = data,
                     .data_len = sizeof data - 1, .values = values,
                     .values_len = sizeof values - 1 };
    weir_condition *c;
    weir_error      err;
    if (weir_condition_parse(&c, text, &err))
        fail_msg("%s: %s", text, err.msg);
    int64_t at = weir_condition_when(c, &job, now);
    weir_condition_free(c);
    weir__texts_free(job.texts);
    return at;
}

static void what_is_true(void **state)
{
    (void)state;
    static const struct { const char *text; bool is; } table[] = {
        { "data.region = \"eu\"", true },      { "data.region = \"us\"", false },
        { "data.region != \"us\"", true },     { "data.region < \"ez\"", true },
        { "data.n = 5", true },                { "data.n = \"5\"", false },
        { "data.n >= 5 and data.n <= 5", true }, { "data.n > 5 or data.n < 5", false },
        { "data.big = 1500", true },           { "data.big = 1.5e3", true },
        { "data.ok", true },                   { "data.no", false },
        { "not data.no", true },               { "not not data.ok", true },
        { "data.n", false },                   { "data.nil = null", true },
        { "data.gone = null", true },          { "data.gone < 1", false },
        { "data.ok = true", true },            { "data.no = false", true },
        { "data.a[\"b c\"][1] = \"x\"", true },  { "data.a[\"b c\"][0] = 1", true },
        { "data[\"region\"] = \"eu\"", true }, { "data = null", true },
        { "values.step = 2", true },           { "values.who = \"ann\"", true },
        { "values.none = null", true },
        { "job.type = \"mail\"", true },       { "job.id = 7", true },
        { "job.priority < 0", true },          { "job.attempts = 1", true },
        { "now.year = 2023 and now.month = 11 and now.day = 14", true },
        { "now.weekday = 2", true },           { "now.hour=22 and now.minute=13", true },
        { "data.no and data.no or data.ok", true },     /* and binds closer */
        { "data.ok or data.no and data.no", true },
        { "(data.ok or data.no) and data.no", false },
        { "not (data.ok and data.no)", true },
        { "\t( ( data.ok ) )\n", true },       { "\"a\\\"b\\\\\" = \"a\\\"b\\\\\"", true },
        { "-1.5 < -1", true },                 { "true", true }, { "false", false },
        { "null = null", true },               { "null != 0", true },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if ((when_at(table[i].text, NOW) == NOW) != table[i].is)
            fail_msg("%s: should be %s", table[i].text, table[i].is ? "true" : "false");
    }
}

static void when_it_will_be_true(void **state)
{
    (void)state;
    int64_t day = NOW / DAY_MS * DAY_MS;
    assert_int_equal(when_at("now.hour < 6", NOW), day + DAY_MS);
    assert_int_equal(when_at("now.hour = 23", NOW), day + 23 * HOUR_MS);
    assert_int_equal(when_at("now.hour = 22 and now.minute >= 30", NOW),
                     day + 22 * HOUR_MS + 30 * 60000);
    assert_int_equal(when_at("now.weekday = 1 and now.hour >= 8", NOW),
                     day + 6 * DAY_MS + 8 * HOUR_MS);
    assert_int_equal(when_at("now.month = 1", NOW), day + 48 * DAY_MS);
    assert_int_equal(when_at("now.hour < 6 and data.region = \"eu\"", NOW), day + DAY_MS);
    /* No clock makes these true. */
    assert_int_equal(when_at("data.region = \"us\"", NOW), NOW + WEIR_CONDITION_MS);
    assert_int_equal(when_at("now.hour < 6 and data.region = \"us\"", NOW),
                     NOW + WEIR_CONDITION_MS);
    assert_int_equal(when_at("now.minute = 61", NOW), NOW + WEIR_CONDITION_MS);
}

static void what_is_wrong_and_where(void **state)
{
    (void)state;
    static const struct { const char *text; int column; } table[] = {
        { "", 1 }, { "   ", 4 }, { "data.", 6 }, { "data.n =", 9 }, { "data.n = and", 10 },
        { "data.n = 5 5", 12 }, { "data.n = 5)", 11 }, { "(data.n = 5", 12 },
        { "now.second = 1", 5 },
        { "job.data = 1", 5 }, { "system(1)", 1 }, { "data.n = 1e", 10 }, { "data.n == 5", 9 },
        { "\"open", 1 }, { "not", 4 }, { "data.a and", 11 }, { "data.a[\"x", 6 },
        { "data..x = 1", 6 }, { "data.items[-1] = 1", 11 }, { "data.a. = 1", 7 },
        { "data[x] = 1", 5 }, { "data.n = 1e999", 10 }, { "data.n = 0x10", 11 }, { "andy", 1 },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        weir_condition *c;
        weir_error      err = { 0 };
        char            column[32];
        assert_int_equal(weir_condition_parse(&c, table[i].text, &err), WEIR_EINVAL);
        assert_null(c);
        assert_string_equal(err.field, "when");
        snprintf(column, sizeof column, "column %d:", table[i].column);
        if (!strstr(err.msg, column))
            fail_msg("%s: expected %s, got: %s", table[i].text, column, err.msg);
    }
}

static void limits(void **state)
{
    (void)state;
    char            text[3000] = "";
    weir_condition *c;
    weir_error      err;
    memset(text, ' ', WEIR_MAX_CONDITION + 1);
    assert_int_equal(weir_condition_parse(&c, text, &err), WEIR_ELIMIT);
    memset(text, '(', 100);
    text[100] = '\0';
    assert_int_equal(weir_condition_parse(&c, text, &err), WEIR_ELIMIT);
    text[0] = '\0';
    for (int i = 0; i < 90; i++)
        strcat(text, i ? " or true" : "true");
    assert_int_equal(weir_condition_parse(&c, text, &err), WEIR_OK);
    weir_condition_free(c);
    text[0] = '\0';
    for (int i = 0; i < 140; i++)
        strcat(text, i ? "or 1=1 " : "1=1 ");
    assert_int_equal(weir_condition_parse(&c, text, &err), WEIR_ELIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_true),
        cmocka_unit_test(when_it_will_be_true),
        cmocka_unit_test(what_is_wrong_and_where),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests_name("condition", tests, NULL, NULL);
}
