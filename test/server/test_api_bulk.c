/* test_api_bulk.c - POST /v1/jobs/bulk: what is matched, what is done, what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "support/server_rig.h"

WEB_FIXTURE

static void bulk(const char *body, int matched, int done, int skipped, bool more)
{
    web_answer a = web_call(&w, "POST", "/v1/jobs/bulk", body);
    char       want[200];
    snprintf(want, sizeof want, "{\"matched\":%d,\"done\":%d,\"skipped\":%d,\"more\":%s}", matched,
             done, skipped, more ? "true" : "false");
    if (a.status != 200 || strcmp(a.body, want) != 0)
        fail_msg("%s: %d %s, not %s", body, a.status, a.body, want);
    web_free(&a);
}

static void add(const char *type, size_t n, int64_t delay_ms)
{
    rt       *t = &w.t;
    weir_spec spec[100];
    for (size_t i = 0; i < n; i += 100) {
        size_t lot = n - i < 100 ? n - i : 100;
        for (size_t k = 0; k < lot; k++)
            spec[k] = (weir_spec){ .type = type, .delay_ms = delay_ms, .search = true,
                                   .data = k % 2 ? "\"odd\"" : "\"even\"" };
        OK(weir_add_many(t->q, spec, lot, NULL, NULL, &t->err));
    }
}

static void each_action(void **state)
{
    (void)state;
    add("x", 30, 0);
    add("y", 5, 0);
    add("x", 20, 5000);
    bulk("{\"action\":\"promote\",\"filter\":{\"type\":\"y\"}}", 0, 0, 0, false);
    bulk("{\"action\":\"promote\",\"filter\":{\"type\":\"x\"}}", 20, 20, 0, false);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_DELAYED), 0);
    bulk("{\"action\":\"cancel\",\"filter\":{\"state\":\"inactive\",\"type\":\"x\"}}", 50, 50, 0,
         false);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_CANCELLED), 50);
    bulk("{\"action\":\"retry\",\"filter\":{\"type\":\"x\"},\"limit\":7}", 7, 7, 0, true);
    bulk("{\"action\":\"retry\",\"filter\":{\"state\":\"cancelled\"},\"limit\":43}", 43, 43, 0,
         false);
    bulk("{\"action\":\"delete\",\"filter\":{\"type\":\"x\"}}", 50, 50, 0, false);
    bulk("{\"action\":\"delete\",\"all\":true}", 5, 5, 0, false);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 0);
}

static void several_states(void **state)
{
    (void)state;
    add("x", 10, 0);
    add("x", 10, 5000);
    bulk("{\"action\":\"cancel\",\"all\":true,\"limit\":10}", 10, 10, 0, true);
    bulk("{\"action\":\"cancel\",\"all\":true,\"limit\":10}", 10, 10, 0, false);
    bulk("{\"action\":\"cancel\",\"all\":true,\"limit\":10}", 0, 0, 0, false);
}

static void of_some_states_and_times(void **state)
{
    char body[200];
    (void)state;
    add("x", 4, 0);
    rt_later(&w.t, 3600 * 1000);
    add("x", 3, 0);
    add("x", 2, 7200 * 1000);
    snprintf(body, sizeof body, "{\"action\":\"cancel\",\"filter\":{\"state\":[\"inactive\","
             "\"active\"],\"until\":%lld},\"dry_run\":true}", (long long)weir_now(w.t.q));
    bulk(body, 4, 0, 0, false);
    snprintf(body, sizeof body, "{\"action\":\"cancel\",\"filter\":{\"since\":%lld}}",
             (long long)weir_now(w.t.q));
    bulk(body, 5, 5, 0, false);
    snprintf(body, sizeof body, "{\"action\":\"cancel\",\"filter\":{\"until\":%lld,"
             "\"ids\":[1,9]}}", (long long)weir_now(w.t.q));
    bulk(body, 1, 1, 1, false);
    bulk("{\"action\":\"retry\",\"filter\":{\"state\":[\"cancelled\",\"failed\"]}}", 6, 6, 0,
         false);
    web_error(&w, 400, "EINVAL", "retry cannot be done to jobs that are active", "POST",
              "/v1/jobs/bulk",
              "{\"action\":\"retry\",\"filter\":{\"state\":[\"failed\",\"active\"]}}");
}

static void dry_runs_only_count(void **state)
{
    (void)state;
    add("x", 30, 0);
    add("y", 5, 5000);
    bulk("{\"action\":\"cancel\",\"all\":true,\"dry_run\":true}", 35, 0, 0, false);
    bulk("{\"action\":\"cancel\",\"all\":true,\"dry_run\":true,\"limit\":10}", 35, 0, 0, true);
    bulk("{\"action\":\"promote\",\"all\":true,\"dry_run\":true}", 5, 0, 0, false);
    bulk("{\"action\":\"retry\",\"all\":true,\"dry_run\":true}", 0, 0, 0, false);
    bulk("{\"action\":\"delete\",\"filter\":{\"type\":\"x\"},\"dry_run\":true}", 30, 0, 0, false);
    bulk("{\"action\":\"delete\",\"filter\":{\"type\":\"z\"},\"dry_run\":true}", 0, 0, 0, false);
    bulk("{\"action\":\"delete\",\"filter\":{\"state\":\"delayed\",\"type\":\"x\"},"
         "\"dry_run\":true}", 0, 0, 0, false);
    bulk("{\"action\":\"cancel\",\"filter\":{\"search\":\"odd\"},\"dry_run\":true}", 17, 0, 0,
         false);
    bulk("{\"action\":\"cancel\",\"filter\":{\"search\":\"odd\"},\"dry_run\":true,\"limit\":5}", 5,
         0, 0, true);
    bulk("{\"action\":\"cancel\",\"filter\":{\"ids\":[1,2,999]},\"dry_run\":true}", 2, 0, 1, false);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_INACTIVE), 30);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_DELAYED), 5);
}

static void by_words(void **state)
{
    (void)state;
    add("x", 10, 0);
    add("y", 10, 0);
    bulk("{\"action\":\"cancel\",\"filter\":{\"search\":\"ev*\",\"type\":\"x\"}}", 5, 5, 0, false);
    bulk("{\"action\":\"delete\",\"filter\":{\"search\":\"even\",\"state\":\"cancelled\"}}", 5, 5,
         0, false);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 15);
}

static void by_priority(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++)
        rt_add(&w.t, &(weir_spec){ .type = i % 2 ? "x" : "y", .delay_ms = i < 4 ? 0 : 60000,
                                   .priority = i % 4 ? 0 : WEIR_PRIORITY_HIGH });
    bulk("{\"action\":\"cancel\",\"filter\":{\"priority\":\"high\"},\"dry_run\":true}", 2, 0, 0,
         false);
    bulk("{\"action\":\"cancel\",\"filter\":{\"priority\":0,\"type\":\"x\"},\"dry_run\":true,"
         "\"limit\":3}", 3, 0, 0, true);
    bulk("{\"action\":\"promote\",\"filter\":{\"priority\":\"high\"}}", 1, 1, 0, false);
    bulk("{\"action\":\"cancel\",\"filter\":{\"state\":\"inactive\",\"priority\":-10}}", 2, 2, 0,
         false);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_CANCELLED), 2);
    bulk("{\"action\":\"retry\",\"filter\":{\"priority\":0}}", 0, 0, 0, false);
    bulk("{\"action\":\"delete\",\"filter\":{\"priority\":0,\"ids\":[1,2,3]}}", 2, 2, 1, false);
    bulk("{\"action\":\"delete\",\"filter\":{\"priority\":\"normal\"}}", 4, 4, 0, false);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 2);
}

static void by_ids(void **state)
{
    (void)state;
    add("x", 3, 0);
    add("y", 3, 5000);
    bulk("{\"action\":\"cancel\",\"filter\":{\"ids\":[3,1,5,77]}}", 3, 3, 1, false);
    bulk("{\"action\":\"cancel\",\"filter\":{\"ids\":[3,2,2]}}", 2, 1, 2, false);
    bulk("{\"action\":\"retry\",\"filter\":{\"ids\":[1,2,3,5],\"type\":\"y\"}}", 1, 1, 3, false);
    bulk("{\"action\":\"delete\",\"filter\":{\"ids\":[1,4,5],\"state\":\"delayed\"}}", 1, 1, 2,
         false);
    bulk("{\"action\":\"delete\",\"filter\":{\"ids\":[1,2,3]},\"limit\":2}", 2, 2, 0, true);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 3);
}

static void thousands(void **state)
{
    (void)state;
    add("x", 10500, 0);
    bulk("{\"action\":\"cancel\",\"filter\":{\"type\":\"x\"}}", 10000, 10000, 0, true);
    bulk("{\"action\":\"cancel\",\"filter\":{\"type\":\"x\"}}", 500, 500, 0, false);
    weir_buf b = { 0 };
    weir__buf_str(&b, "{\"action\":\"delete\",\"filter\":{\"ids\":[1");
    for (int i = 2; i <= 10000; i++)
        weir__buf_printf(&b, ",%d", i);
    weir__buf_str(&b, "]}}");
    bulk(b.data, 10000, 10000, 0, false);
    weir__buf_fini(&b);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 500);
}

static void refused(void **state)
{
    (void)state;
    static const struct { const char *body, *part; } cases[] = {
        { "{}", "action: missing" },
        { "{\"action\":\"explode\"}", "action: \"explode\" is not" },
        { "{\"action\":7}", "action:" },
        { "{\"action\":\"cancel\"}", "filter: empty" },
        { "{\"action\":\"cancel\",\"filter\":{}}", "filter: empty" },
        { "{\"action\":\"cancel\",\"filter\":{},\"all\":false}", "filter: empty" },
        { "{\"action\":\"cancel\",\"filter\":{\"type\":\"x\"},\"all\":true}", "all:" },
        { "{\"action\":\"cancel\",\"filter\":{\"state\":\"failed\"}}", "filter.state: cancel" },
        { "{\"action\":\"retry\",\"filter\":{\"state\":\"active\"}}", "filter.state: retry" },
        { "{\"action\":\"promote\",\"filter\":{\"state\":\"inactive\"}}", "filter.state: promote" },
        { "{\"action\":\"cancel\",\"filter\":{\"state\":\"frob\"}}", "filter.state:" },
        { "{\"action\":\"cancel\",\"filter\":{\"type\":\"\"}}", "filter.type: empty" },
        { "{\"action\":\"cancel\",\"filter\":{\"priority\":\"urgent\"}}", "filter.priority:" },
        { "{\"action\":\"cancel\",\"filter\":{\"ids\":[]}}", "filter.ids:" },
        { "{\"action\":\"cancel\",\"filter\":{\"ids\":[0]}}", "filter.ids[0]:" },
        { "{\"action\":\"cancel\",\"filter\":{\"ids\":[1],\"search\":\"a\"}}", "filter.search:" },
        { "{\"action\":\"cancel\",\"filter\":{\"frob\":1}}", "filter.frob:" },
        { "{\"action\":\"cancel\",\"filter\":{\"error\":\"x\"}}", "filter.error:" },
        { "{\"action\":\"retry\",\"filter\":{\"error\":\"x\",\"state\":\"complete\"}}",
          "filter.error:" },
        { "{\"action\":\"retry\",\"filter\":{\"error\":\"x\",\"ids\":[1]}}", "filter.error:" },
        { "{\"action\":\"retry\",\"filter\":{\"error\":\"x\"},\"after\":\"frob\"}", "after:" },
        { "{\"action\":\"retry\",\"filter\":{\"type\":\"x\"},\"after\":\"1.1\"}", "after:" },
        { "{\"action\":\"cancel\",\"all\":true,\"limit\":0}", "limit:" },
        { "{\"action\":\"cancel\",\"all\":true,\"limit\":10001}", "limit:" },
        { "{\"action\":\"cancel\",\"all\":1}", "all:" },
    };
    add("x", 1, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        web_error(&w, 400, "EINVAL", cases[i].part, "POST", "/v1/jobs/bulk", cases[i].body);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_INACTIVE), 1);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, start, stop)
/* ---- groups of errors ---- */

static void add_failed(const char *type, const char *error)
{
    static int64_t later;
    weir_imported  out;
    int64_t        at = weir_now(w.t.q) - 60000 + later++;
    weir_job       job = { .type = type, .state = WEIR_STATE_FAILED, .data = "{}", .data_len = 2,
                           .error = error, .attempts = 1, .max_attempts = 1, .created_at = at,
                           .failed_at = at + 1, .finished_at = at + 1 };
    rt            *t = &w.t;
    OK(weir_import(t->q, &(weir_incoming){ .job = &job, .new_id = true }, 1, &out, &t->err));
    assert_int_equal(out.err.code, WEIR_OK);
}

static void expect(const char *method, const char *target, const char *body, const char *want)
{
    web_answer a = web_call(&w, method, target, body);
    if (a.status != 200 || !strstr(a.body, want))
        fail_msg("%s: %d %s, not %s", target, a.status, a.body, want);
    web_free(&a);
}

static void groups_of_errors(void **state)
{
    (void)state;
    expect("GET", "/v1/errors", NULL,
           "{\"groups\":[],\"looked\":0,\"others\":0,\"more\":false}");
    add_failed("mail", "no user \"ann\"");
    add_failed("sms", "no user \"ann\"");
    add_failed("mail", "timeout after 30s");
    add_failed("mail", "no user \"bob\"");
    expect("GET", "/v1/errors", NULL, "{\"groups\":[{\"type\":\"mail\","
           "\"error\":\"no user \\\"*\\\"\",\"count\":2,\"first_at\":");
    expect("GET", "/v1/errors", NULL, "\"example\":4}");
    expect("GET", "/v1/errors", NULL, "\"looked\":4,\"others\":0,\"more\":false}");
    expect("GET", "/v1/errors?type=sms", NULL, "\"looked\":1,");
    expect("GET", "/v1/jobs?ids=true&state=failed&error=no+user+%22*%22", NULL,
           "{\"jobs\":[1,2,4],");
    expect("GET", "/v1/jobs?ids=true&type=mail&error=no+user+%22*%22&limit=1", NULL,
           "{\"jobs\":[1],\"next\":\"");
    expect("GET", "/v1/jobs?ids=true&error=", NULL, "{\"jobs\":[],\"next\":null}");
}

#define NO_USER "\"error\":\"no user \\\"*\\\"\""

static void by_error(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        add_failed(i % 5 ? "mail" : "sms", i % 2 ? "no user \"ann\"" : "timeout");
    bulk("{\"action\":\"retry\",\"filter\":{" NO_USER "},\"dry_run\":true}", 5, 0, 0, false);
    bulk("{\"action\":\"retry\",\"filter\":{\"type\":\"mail\"," NO_USER "},\"dry_run\":true}", 4, 0,
         0, false);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_FAILED), 10);
    /* one first; then it goes on from there */
    web_answer a = web_call(&w, "POST", "/v1/jobs/bulk",
                            "{\"action\":\"retry\",\"filter\":{" NO_USER "},\"limit\":1}");
    assert_non_null(strstr(a.body, "{\"matched\":1,\"done\":1,\"skipped\":0,\"more\":true,"
                                   "\"next\":\""));
    assert_int_equal(rt_count(&w.t, WEIR_STATE_INACTIVE), 1);
    char body[400];
    snprintf(body, sizeof body, "{\"action\":\"retry\",\"filter\":{" NO_USER "},\"after\":%s",
             strstr(a.body, "\"next\":") + strlen("\"next\":"));
    web_free(&a);
    bulk(body, 4, 4, 0, false);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_FAILED), 5);
    bulk("{\"action\":\"delete\",\"filter\":{\"state\":\"failed\",\"error\":\"timeout\"}}", 5, 5, 0,
         false);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(each_action),
        CASE(several_states),
        CASE(of_some_states_and_times),
        CASE(dry_runs_only_count),
        CASE(by_words),
        CASE(by_priority),
        CASE(by_ids),
        CASE(by_error),
        CASE(groups_of_errors),
        CASE(thousands),
        CASE(refused),
    };
    return cmocka_run_group_tests_name("api_bulk", tests, NULL, NULL);
}
