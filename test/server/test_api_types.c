/* test_api_types.c - types, their counts and settings, the check and the server itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/server_rig.h"

static web w;

static int start(void **state)
{
    (void)state;
    web_start(&w, RT_MEM, true, &(srv_options){ .title = "Jobs \"1\"", .store_url = "mem:" });
    return 0;
}

static int stop(void **state)
{
    (void)state;
    web_stop(&w);
    return 0;
}

static json_int_t count(const json_t *type, const char *state)
{
    return json_integer_value(json_object_get(json_object_get(type, "counts"), state));
}

static void stats(void **state)
{
    (void)state;
    json_t *v = web_json(&w, 200, "GET", "/v1/stats", NULL);
    assert_int_equal(json_array_size(json_object_get(v, "types")), 0);
    assert_int_equal(count(v, "total"), 0);
    json_decref(v);
    rt_add_type(&w.t, "x");
    rt_add_type(&w.t, "caf\xc3\xa9 \"au lait\"");
    rt_add(&w.t, &(weir_spec){ .type = "x", .delay_ms = 5 });
    v = web_json(&w, 200, "GET", "/v1/stats", NULL);
    assert_int_equal(count(v, "total"), 3);
    assert_int_equal(count(v, "inactive"), 2);
    assert_int_equal(count(v, "delayed"), 1);
    assert_int_equal(json_integer_value(json_object_get(v, "last_id")), 3);
    json_t *types = json_object_get(v, "types"), *x = json_array_get(types, 1);
    assert_int_equal(json_array_size(types), 2);
    assert_string_equal(json_string_value(json_object_get(x, "type")), "x");
    assert_int_equal(count(x, "total"), 2);
    assert_int_equal(count(x, "cancelled"), 0);
    static const char *const names[] = { "completed", "failures", "work_time", "last_taken_at",
                                         "oldest_at" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_true(json_is_integer(json_object_get(x, names[i])));
    json_decref(v);
    web_says(&w, 200, "{\"types\":[{\"type\":\"caf\xc3\xa9 \\\"au lait\\\"\",\"paused\":false,",
             "GET", "/v1/types", NULL);
}

static void one_type(void **state)
{
    (void)state;
    rt_add_type(&w.t, "a/b");
    web_says(&w, 200, "{\"type\":\"a/b\",", "GET", "/v1/types/a%2Fb", NULL);
    web_says(&w, 200, "{\"type\":\"*\",", "GET", "/v1/types/%2A", NULL);
    web_says(&w, 200, "{\"type\":\"*\",", "GET", "/v1/types/*", NULL);
    web_error(&w, 404, "ENOENT", "there is no type \"x\"", "GET", "/v1/types/x", NULL);
}

#define SETTINGS(ca, cc, fa, fc, s)                                                     \
    "\"settings\":{\"keep_complete\":{\"age\":" #ca ",\"count\":" #cc "},"              \
    "\"keep_failed\":{\"age\":" #fa ",\"count\":" #fc "},\"search\":" #s "}"

#define TEN   "0123456789"
#define FIFTY TEN TEN TEN TEN TEN
#define LONG  FIFTY FIFTY TEN TEN TEN

static void settings(void **state)
{
    (void)state;
    web_says(&w, 200, SETTINGS(604800000, 100000, 7776000000, 9, false), "PATCH",
             "/v1/types/*",
             "{\"keep_failed\":{\"count\":9}}");
    web_says(&w, 200, SETTINGS(3600000, 100000, 7776000000, 9, false), "PATCH",
             "/v1/types/mail",
             "{\"keep_complete\":{\"age\":\"1h\"}}");
    web_says(&w, 200, SETTINGS(3600000, 5, 7776000000, 9, true), "PATCH", "/v1/types/mail",
             "{\"search\":true,\"keep_complete\":{\"count\":5}}");
    web_says(&w, 200, SETTINGS(3600000, 5, 7776000000, 9, true), "PATCH", "/v1/types/mail", "{}");
    web_says(&w, 200, SETTINGS(0, 5, 1000, 0, true), "PATCH", "/v1/types/mail",
             "{\"keep_complete\":{\"age\":0},\"keep_failed\":{\"age\":1000,\"count\":0}}");
    web_says(&w, 200, SETTINGS(0, 5, 1000, 0, true), "GET", "/v1/types/mail", NULL);
    web_says(&w, 200, SETTINGS(0, 0, 1000, 0, true), "PATCH", "/v1/types/mail",
             "{\"keep_complete\":{\"age\":0,\"count\":0}}");      /* for ever */
    static const struct { const char *body, *part; } cases[] = {
        { "{\"keep_complete\":7}", "keep_complete:" },
        { "{\"keep_complete\":{\"age\":-1}}", "keep_complete.age:" },
        { "{\"keep_complete\":{\"size\":1}}", "keep_complete.size:" },
        { "{\"keep_failed\":{\"count\":-1}}", "keep_failed.count:" },
        { "{\"search\":\"on\"}", "search:" },
        { "{\"paused\":true}", "paused: unknown member" },
        { "[]", "is not an object" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        web_error(&w, 400, "EINVAL", cases[i].part, "PATCH", "/v1/types/mail", cases[i].body);
    web_error(&w, 413, "ELIMIT", "WEIR_MAX_TYPE", "PATCH", "/v1/types/" LONG, "{}");
}

static void pause_and_resume(void **state)
{
    (void)state;
    rt_add_type(&w.t, "x");
    web_says(&w, 200, "{\"type\":\"x\",\"paused\":true}", "POST", "/v1/types/x/pause", NULL);
    web_says(&w, 200, "{\"type\":\"x\",\"paused\":true", "GET", "/v1/types/x", NULL);
    web_says(&w, 200, "{\"type\":\"x\",\"paused\":false}", "POST", "/v1/types/x/resume", NULL);
    web_says(&w, 200, "{\"type\":\"x\",\"paused\":false", "GET", "/v1/types/x", NULL);
    web_says(&w, 200, "{\"type\":\"*\",\"paused\":true}", "POST", "/v1/types/*/pause", NULL);
    web_says(&w, 200, "{\"type\":\"*\",\"paused\":true", "GET", "/v1/stats", NULL);
    web_says(&w, 200, "\"paused\":false}", "POST", "/v1/types/*/resume", NULL);
    web_error(&w, 413, "ELIMIT", "WEIR_MAX_TYPE", "POST", "/v1/types/" LONG "/pause", NULL);
    web_error(&w, 405, "http", "", "GET", "/v1/types/x/pause", NULL);
}

static void check(void **state)
{
    (void)state;
    rt_add_type(&w.t, "x");
    web_says(&w, 200, "{\"lines\":[],\"mended\":0,\"jobs\":1}", "POST", "/v1/check", "{}");
    web_says(&w, 200, "{\"lines\":[],\"mended\":0,\"jobs\":1}", "POST", "/v1/check", NULL);
    web_says(&w, 200, "\"jobs\":1", "POST", "/v1/check", "{\"mend\":true}");
    web_error(&w, 400, "EINVAL", "mend:", "POST", "/v1/check", "{\"mend\":1}");
    web_error(&w, 405, "http", "", "GET", "/v1/check", NULL);
}

static void server(void **state)
{
    (void)state;
    json_t *v = web_json(&w, 200, "GET", "/v1/server", NULL), *you = json_object_get(v, "you");
    assert_string_equal(json_string_value(json_object_get(v, "version")), WEIR_VERSION);
    assert_string_equal(json_string_value(json_object_get(v, "title")), "Jobs \"1\"");
    assert_string_equal(json_string_value(json_object_get(v, "store")), "mem:");
    assert_string_equal(json_string_value(json_object_get(v, "api")), "kue");
    assert_true(json_is_integer(json_object_get(v, "started_at")));
    assert_int_equal(json_integer_value(json_object_get(v, "now")), w.t.now);
    assert_int_equal(json_array_size(json_object_get(you, "roles")), 4);
    assert_true(json_is_null(json_object_get(you, "name")));
    assert_true(json_is_null(json_object_get(you, "types")));
    json_decref(v);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, start, stop)
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(stats),
        CASE(one_type),
        CASE(settings),
        CASE(pause_and_resume),
        CASE(check),
        CASE(server),
    };
    return cmocka_run_group_tests_name("api_types", tests, NULL, NULL);
}
