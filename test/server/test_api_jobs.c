/* test_api_jobs.c - jobs over HTTP: lists, one of them, its log and progress, acts, waiting and
 * explanations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/server_rig.h"

WEB_FIXTURE

/* Take the best job of type "x"; its delivery. */
static uint32_t take(uint64_t id)
{
    static const char *const types[] = { "x", NULL };
    rt         *t = &w.t;
    weir_job   *job = NULL;
    size_t      n = 0;
    weir_taking what = { .remote = true, .types = types, .n = 1, .lease_ms = 1000000 };
    OK(weir_take(t->q, &what, &job, &n, &t->err));
    assert_int_equal(n, 1);
    assert_int_equal(job->id, id);
    uint32_t delivery = job->delivery;
    weir_job_free(job);
    return delivery;
}

static void end(uint64_t id, uint32_t delivery, weir_outcome outcome, const char *text)
{
    rt         *t = &w.t;
    weir_ending e = { .id = id, .delivery = delivery, .outcome = outcome, .text = text };
    weir_ended  out;
    OK(weir_finish(t->q, &e, 1, &out, &t->err));
    assert_int_equal(out.err.code, WEIR_OK);
}

/* ---- lists ---- */

static void ids_are(const char *target, const char *want)
{
    web_answer a = web_call(&w, "GET", target, NULL);
    if (a.status != 200 || strcmp(a.body, want) != 0)
        fail_msg("%s: %d %s, not %s", target, a.status, a.body, want);
    web_free(&a);
}

static void lists(void **state)
{
    (void)state;
    ids_are("/v1/jobs", "{\"jobs\":[],\"next\":null}");
    rt_add(&w.t, &(weir_spec){ .type = "x", .priority = 5 });
    rt_add(&w.t, &(weir_spec){ .type = "y", .data = "{\"to\":\"ann smith\"}", .search = true });
    rt_add(&w.t, &(weir_spec){ .type = "x", .priority = -5 });
    rt_add(&w.t, &(weir_spec){ .type = "x", .delay_ms = 1000 });
    ids_are("/v1/jobs?ids=true", "{\"jobs\":[1,2,3,4],\"next\":null}");
    ids_are("/v1/jobs?ids=1&order=desc", "{\"jobs\":[4,3,2,1],\"next\":null}");
    ids_are("/v1/jobs?ids=true&state=inactive", "{\"jobs\":[3,2,1],\"next\":null}");
    ids_are("/v1/jobs?ids=true&state=delayed&order=asc", "{\"jobs\":[4],\"next\":null}");
    ids_are("/v1/jobs?ids=true&type=x", "{\"jobs\":[1,3,4],\"next\":null}");
    ids_are("/v1/jobs?ids=true&type=x&state=inactive", "{\"jobs\":[3,1],\"next\":null}");
    ids_are("/v1/jobs?ids=true&type=nobody", "{\"jobs\":[],\"next\":null}");
    ids_are("/v1/jobs?ids=true&search=ann", "{\"jobs\":[2],\"next\":null}");
    ids_are("/v1/jobs?ids=true&search=sm%2A%20ann", "{\"jobs\":[2],\"next\":null}");
    ids_are("/v1/jobs?ids=true&search=bob", "{\"jobs\":[],\"next\":null}");
    web_says(&w, 200, "{\"jobs\":[{\"id\":2,\"type\":\"y\",\"data\":{\"to\":\"ann smith\"},", "GET",
             "/v1/jobs?type=y", NULL);
}

static void lists_of_several_states_sorted_and_between_times(void **state)
{
    char target[120];
    (void)state;
    rt_add(&w.t, &(weir_spec){ .type = "x", .priority = 5 });
    rt_add(&w.t, &(weir_spec){ .type = "y", .priority = -5 });
    rt_later(&w.t, 3600 * 1000);
    rt_add(&w.t, &(weir_spec){ .type = "x", .delay_ms = 1000 });
    assert_int_equal(weir_cancel(w.t.q, 2, &w.t.err), WEIR_OK);
    ids_are("/v1/jobs?ids=true&state=inactive,delayed", "{\"jobs\":[1,3],\"next\":null}");
    ids_are("/v1/jobs?ids=true&state=inactive,delayed&order=desc&limit=1",
            "{\"jobs\":[3],\"next\":\"0.3\"}");
    ids_are("/v1/jobs?ids=true&state=inactive,delayed&order=desc&limit=1&after=0.3",
            "{\"jobs\":[1],\"next\":null}");
    ids_are("/v1/jobs?ids=true&state=failed,complete", "{\"jobs\":[],\"next\":null}");
    ids_are("/v1/jobs?ids=true&since=30m", "{\"jobs\":[2,3],\"next\":null}");
    ids_are("/v1/jobs?ids=true&until=30m", "{\"jobs\":[1],\"next\":null}");
    snprintf(target, sizeof target, "/v1/jobs?ids=true&until=%lld&state=cancelled",
             (long long)weir_now(w.t.q));
    ids_are(target, "{\"jobs\":[],\"next\":null}");
    snprintf(target, sizeof target, "/v1/jobs?ids=true&since=%lld&state=cancelled",
             (long long)weir_now(w.t.q));
    ids_are(target, "{\"jobs\":[2],\"next\":null}");
    ids_are("/v1/jobs?ids=true&sort=priority", "{\"jobs\":[2,3,1],\"next\":null}");
    ids_are("/v1/jobs?ids=true&sort=created&order=desc&limit=2&type=x",
            "{\"jobs\":[3,1],\"next\":null}");
    web_says(&w, 200, "{\"jobs\":[{\"id\":2,\"type\":\"y\"", "GET",
             "/v1/jobs?sort=ended&order=desc&limit=1", NULL);
}

/* Jobs so large that a page of them ends early. */
static void a_sorted_page_of_large_jobs_ends_early(void **state)
{
    enum { LARGE = 900 * 1000, N = 12 };
    static char data[LARGE + 3];
    size_t      n = 0;
    (void)state;
    memset(data, 'x', LARGE + 2);
    data[0] = data[LARGE + 1] = '"';
    for (int i = 0; i < N; i++)
        rt_add(&w.t, &(weir_spec){ .type = "x", .data = data });
    json_t *v = web_json(&w, 200, "GET", "/v1/jobs?sort=attempts", NULL);
    n = json_array_size(json_object_get(v, "jobs"));
    assert_true(n > 0 && n < N);
    assert_true(json_is_string(json_object_get(v, "next")));
    json_decref(v);
}

static void by_priority(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++)
        rt_add(&w.t, &(weir_spec){ .type = i % 2 ? "p" : "q", .delay_ms = i < 3 ? 0 : 60000,
                                   .priority = i % 3 ? WEIR_PRIORITY_HIGH : 7 });
    ids_are("/v1/jobs?ids=true&priority=high", "{\"jobs\":[2,3,5,6],\"next\":null}");
    ids_are("/v1/jobs?ids=true&priority=-10&type=p", "{\"jobs\":[2,6],\"next\":null}");
    ids_are("/v1/jobs?ids=true&priority=7&state=inactive", "{\"jobs\":[1],\"next\":null}");
    ids_are("/v1/jobs?ids=true&priority=high&state=delayed&order=desc",
            "{\"jobs\":[6,5],\"next\":null}");
    ids_are("/v1/jobs?ids=true&priority=8", "{\"jobs\":[],\"next\":null}");
}

/* The store stops when it has looked at enough jobs: so does the page. */
static void a_page_of_a_priority_ends_before_it_is_full(void **state)
{
    (void)state;
    static weir_spec specs[WEIR_MAX_LOOK];
    rt              *t = &w.t;
    char             target[200], want[80];
    for (size_t i = 0; i < WEIR_MAX_LOOK; i++)
        specs[i] = (weir_spec){ .type = "many", .delay_ms = 60000 };
    OK(weir_add_many(t->q, specs, WEIR_MAX_LOOK, NULL, NULL, &t->err));
    uint64_t last = rt_add(t, &(weir_spec){ .type = "many", .priority = WEIR_PRIORITY_CRITICAL,
                                            .delay_ms = 90000 });
    web_answer  a = web_call(&w, "GET", "/v1/jobs?type=many&priority=critical&ids=true", NULL);
    const char *next = strstr(a.body, "\"next\":\"");
    assert_int_equal(a.status, 200);
    assert_memory_equal(a.body, "{\"jobs\":[],", 11);
    assert_non_null(next);
    snprintf(target, sizeof target, "/v1/jobs?type=many&priority=critical&ids=true&after=%.*s",
             (int)strcspn(next + 8, "\""), next + 8);
    web_free(&a);
    snprintf(want, sizeof want, "{\"jobs\":[%llu],\"next\":null}", (unsigned long long)last);
    ids_are(target, want);
}

static void pages(void **state)
{
    (void)state;
    char target[200], after[64] = "";
    for (int i = 0; i < 10; i++)
        rt_add(&w.t, &(weir_spec){ .type = "x", .priority = -i });
    json_int_t expect = 10;
    for (int page = 0; page < 4; page++) {
        snprintf(target, sizeof target, "/v1/jobs?state=inactive&limit=3%s%s",
                 *after ? "&after=" : "", after);
        json_t *v = web_json(&w, 200, "GET", target, NULL), *jobs = json_object_get(v, "jobs");
        assert_int_equal(json_array_size(jobs), page < 3 ? 3 : 1);
        for (size_t i = 0; i < json_array_size(jobs); i++)
            assert_int_equal(
                json_integer_value(json_object_get(json_array_get(jobs, i), "id")), expect--);
        json_t *next = json_object_get(v, "next");
        assert_true(page < 3 ? json_is_string(next) : json_is_null(next));
        snprintf(after, sizeof after, "%s", page < 3 ? json_string_value(next) : "");
        json_decref(v);
    }
    assert_int_equal(expect, 0);
}

static void a_page_ends_when_it_is_large(void **state)
{
    (void)state;
    enum { SIZE = 200 * 1024, JOBS = 150 };
    char *data = malloc(SIZE + 1);
    assert_non_null(data);
    memset(data, 'x', SIZE);
    data[0] = data[SIZE - 1] = '"';
    data[SIZE] = '\0';
    for (int i = 0; i < JOBS; i++)
        rt_add(&w.t, &(weir_spec){ .type = "x", .data = data });
    free(data);
    json_t *v = web_json(&w, 200, "GET", "/v1/jobs?limit=1000", NULL);
    char    target[80];
    size_t  n = json_array_size(json_object_get(v, "jobs"));
    assert_true(n * SIZE >= SRV_MAX_PAGE && n < JOBS);
    snprintf(target, sizeof target, "/v1/jobs?limit=1000&after=%s",
             json_string_value(json_object_get(v, "next")));
    json_decref(v);
    v = web_json(&w, 200, "GET", target, NULL);
    assert_int_equal(json_array_size(json_object_get(v, "jobs")), JOBS - n);
    assert_true(json_is_null(json_object_get(v, "next")));
    json_decref(v);
    v = web_json(&w, 200, "GET", "/v1/jobs?limit=1000&ids=true", NULL);
    assert_int_equal(json_array_size(json_object_get(v, "jobs")), JOBS);
    json_decref(v);
}

static void lists_refuse(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "state=any", "state=", "limit=0", "limit=1001", "limit=x", "limit=99999999999999999999",
        "order=up", "ids=maybe", "priority=", "priority=urgent", "priority=1.5",
        "after=1", "after=.1", "after=1.", "after=-.1", "after=1.2.3", "after=1.-2",
        "after=99999999999999999999.1", "after=1.99999999999999999999",
        "after=%201.1", "after=a.b", "state=failed,", "state=failed,no", "state=,failed",
        "since=", "since=0", "since=-1", "since=yesterday", "until=x", "until=9999999999999999",
        "sort=", "sort=usual", "sort=data",
    };
    char target[120], name[20];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(target, sizeof target, "/v1/jobs?%s", wrong[i]);
        snprintf(name, sizeof name, "%.*s:", (int)strcspn(wrong[i], "="), wrong[i]);
        web_error(&w, 400, "EINVAL", name, "GET", target, NULL);
    }
    web_error(&w, 400, "EINVAL", "unknown parameter \"frob\"", "GET", "/v1/jobs?frob=1", NULL);
    ids_are("/v1/jobs?after=-5.3&state=inactive", "{\"jobs\":[],\"next\":null}");
}

/* ---- one job ---- */

static void one(void **state)
{
    (void)state;
    uint64_t id = rt_add(&w.t, &(weir_spec){ .type = "x", .data = "[9007199254740993, 1e400]" });
    assert_int_equal(id, 1);
    web_says(&w, 200, "{\"id\":1,\"type\":\"x\",\"data\":[9007199254740993, 1e400],", "GET",
             "/v1/jobs/1", NULL);
    web_error(&w, 404, "ENOENT", "there is no job 7", "GET", "/v1/jobs/7", NULL);
    static const char *const wrong[] = { "0", "-1", "x", "1x", "%201", "99999999999999999999" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char target[60];
        snprintf(target, sizeof target, "/v1/jobs/%s", wrong[i]);
        web_error(&w, 400, "EINVAL", "id:", "GET", target, NULL);
    }
}

static void patches(void **state)
{
    (void)state;
    rt_add_type(&w.t, "x");
    web_says(&w, 200, "\"priority\":-15,", "PATCH", "/v1/jobs/1", "{\"priority\":\"critical\"}");
    web_says(&w, 200, "\"priority\":-15,", "PATCH", "/v1/jobs/1", "{}");
    web_says(&w, 200, "\"data\":{\"n\":18446744073709551617},", "PATCH", "/v1/jobs/1",
             "{\"data\":{\"n\":18446744073709551617}}");
    web_says(&w, 200, "\"state\":\"delayed\",\"delay\":5000,", "PATCH", "/v1/jobs/1",
             "{\"delay\":\"5s\"}");
    web_says(&w, 200, "\"state\":\"inactive\",\"delay\":0,", "PATCH", "/v1/jobs/1",
             "{\"delay\":0}");
    web_says(&w, 200, "\"promote_at\":250000000000000", "PATCH", "/v1/jobs/1",
             "{\"run_at\":250000000000000}");
    web_says(&w, 200, "\"state\":\"inactive\"", "PATCH", "/v1/jobs/1", "{\"state\":\"inactive\"}");
    web_error(&w, 409, "ESTATE", "must be failed", "PATCH", "/v1/jobs/1",
              "{\"state\":\"cancelled\",\"from\":[\"failed\"]}");
    web_says(&w, 200, "\"state\":\"cancelled\"", "PATCH", "/v1/jobs/1",
             "{\"state\":\"cancelled\",\"from\":[\"inactive\",\"delayed\"]}");
    web_says(&w, 200, "\"state\":\"inactive\"", "PATCH", "/v1/jobs/1",
             "{\"state\":\"inactive\",\"from\":\"cancelled\"}");
    web_says(&w, 200, "\"state\":\"complete\"", "PATCH", "/v1/jobs/1", "{\"state\":\"complete\"}");
    web_says(&w, 200, "\"error\":\"Failed by hand\"", "PATCH", "/v1/jobs/1",
             "{\"state\":\"failed\"}");
    web_says(&w, 200, "\"workerId\":\"me\"", "PATCH", "/v1/jobs/1",
             "{\"state\":\"active\",\"worker\":\"me\",\"lease\":\"5s\"}");
    web_error(&w, 409, "ESTATE", "a worker has it", "PATCH", "/v1/jobs/1",
              "{\"state\":\"failed\"}");
    web_error(&w, 400, "EINVAL", "worker", "PATCH", "/v1/jobs/1", "{\"worker\":\"me\"}");
    web_says(&w, 200, "\"state\":\"cancelled\"", "PATCH", "/v1/jobs/1",
             "{\"state\":\"cancelled\"}");
    web_says(&w, 200, "\"workerId\":\"127.0.0.1\"", "PATCH", "/v1/jobs/1",
             "{\"state\":\"active\"}");
    web_says(&w, 200, "\"state\":\"cancelled\"", "PATCH", "/v1/jobs/1",
             "{\"state\":\"cancelled\"}");
    web_says(&w, 200, "\"state\":\"inactive\"", "PATCH", "/v1/jobs/1", "{\"state\":\"inactive\"}");
    take(1);
    web_error(&w, 409, "ESTATE", "active", "PATCH", "/v1/jobs/1", "{\"priority\":1}");
    web_error(&w, 404, "ENOENT", "there is no job 7", "PATCH", "/v1/jobs/7", "{\"priority\":1}");
}

static void patches_refuse(void **state)
{
    (void)state;
    static const struct { const char *body, *part; } cases[] = {
        { "{\"priority\":\"urgent\"}", "priority:" },
        { "{\"delay\":-1}", "delay:" },
        { "{\"delay\":1,\"run_at\":5}", "run_at: there is a delay, too" },
        { "{\"run_at\":0}", "run_at:" },
        { "{\"state\":\"done\"}", "state:" },
        { "{\"from\":[]}", "from:" },
        { "{\"from\":[\"failed\",\"frob\"]}", "from[1]:" },
        { "{\"id\":1}", "id: unknown member" },
        { "{\"priority\":1,\"priority\":2}", "priority: is given twice" },
        { "[]", "is not an object" },
        { "{", "not JSON" },
    };
    rt_add_type(&w.t, "x");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        web_error(&w, 400, "EINVAL", cases[i].part, "PATCH", "/v1/jobs/1", cases[i].body);
}

static void is_gone(void **state)
{
    (void)state;
    rt_add_type(&w.t, "x");
    web_answer a = web_call(&w, "DELETE", "/v1/jobs/1", NULL);
    assert_int_equal(a.status, 204);
    assert_int_equal(a.len, 0);
    web_free(&a);
    web_error(&w, 404, "ENOENT", "there is no job 1", "DELETE", "/v1/jobs/1", NULL);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 0);
}

static void acts(void **state)
{
    (void)state;
    rt_add(&w.t, &(weir_spec){ .type = "x", .delay_ms = 5000 });
    web_error(&w, 409, "ESTATE", "delayed", "POST", "/v1/jobs/1/retry", NULL);
    web_says(&w, 200, "{\"id\":1,\"state\":\"inactive\"}", "POST", "/v1/jobs/1/promote", NULL);
    web_error(&w, 409, "ESTATE", "inactive", "POST", "/v1/jobs/1/promote", NULL);
    web_says(&w, 200, "{\"id\":1,\"state\":\"cancelled\"}", "POST", "/v1/jobs/1/cancel", NULL);
    web_error(&w, 409, "ESTATE", "cancelled", "POST", "/v1/jobs/1/cancel", NULL);
    web_says(&w, 200, "{\"id\":1,\"state\":\"inactive\"}", "POST", "/v1/jobs/1/retry", NULL);
    assert_int_equal(rt_state(&w.t, 1), WEIR_STATE_INACTIVE);
    web_error(&w, 404, "ENOENT", "there is no job 9", "POST", "/v1/jobs/9/cancel", NULL);
    web_error(&w, 400, "EINVAL", "id:", "POST", "/v1/jobs/x/cancel", NULL);
    web_error(&w, 404, "http", "", "POST", "/v1/jobs/1/explode", NULL);
    web_error(&w, 405, "http", "", "GET", "/v1/jobs/1/cancel", NULL);
}

/* ---- log and progress ---- */

static void logs(void **state)
{
    (void)state;
    rt_add_type(&w.t, "x");
    web_says(&w, 200, "{\"lines\":[],\"next\":null}", "GET", "/v1/jobs/1/log", NULL);
    web_says(&w, 204, "", "POST", "/v1/jobs/1/log", "{\"text\":\"one \\\"1\\\"\"}");
    uint32_t delivery = take(1);
    char     body[80];
    snprintf(body, sizeof body, "{\"text\":\"two\",\"delivery\":%u}", delivery);
    web_says(&w, 204, "", "POST", "/v1/jobs/1/log", body);
    web_error(&w, 409, "ESTALE", "delivery 9", "POST", "/v1/jobs/1/log",
              "{\"text\":\"late\",\"delivery\":9}");
    web_says(&w, 200, "\"text\":\"one \\\"1\\\"\"},{\"n\":2,", "GET", "/v1/jobs/1/log", NULL);
    web_says(&w, 200, "\"text\":\"two\"}],\"next\":null}", "GET", "/v1/jobs/1/log?after=1", NULL);
    web_says(&w, 200, "}],\"next\":1}", "GET", "/v1/jobs/1/log?limit=1", NULL);
    web_says(&w, 200, "{\"lines\":[],\"next\":null}", "GET", "/v1/jobs/1/log?after=2", NULL);
    web_error(&w, 400, "EINVAL", "limit:", "GET", "/v1/jobs/1/log?limit=1001", NULL);
    web_error(&w, 400, "EINVAL", "after:", "GET", "/v1/jobs/1/log?after=-1", NULL);
    web_error(&w, 404, "ENOENT", "there is no job 2", "GET", "/v1/jobs/2/log", NULL);
    web_error(&w, 404, "ENOENT", "there is no job 2", "POST", "/v1/jobs/2/log",
              "{\"text\":\"a\"}");
    web_error(&w, 400, "EINVAL", "text: missing", "POST", "/v1/jobs/1/log", "{}");
    web_error(&w, 400, "EINVAL", "text:", "POST", "/v1/jobs/1/log", "{\"text\":1}");
    web_error(&w, 400, "EINVAL", "delivery:", "POST", "/v1/jobs/1/log",
              "{\"text\":\"a\",\"delivery\":0}");
}

/* As JSON such a line is six times as long: a page of 1000 would be larger than the budget. */
static void a_page_of_a_log_ends_when_it_is_large(void **state)
{
    (void)state;
    enum { LINES = 60, SIZE = 60 * 1000 };
    weir_error err;
    char      *text = calloc(1, SIZE + 1);
    assert_non_null(text);
    memset(text, '\1', SIZE);
    rt_add(&w.t, &(weir_spec){ .type = "x" });
    for (int i = 0; i < LINES; i++)
        assert_int_equal(weir_log(w.t.q, 1, 0, text, 0, &err), WEIR_OK);
    free(text);
    char   target[80];
    size_t n = 0, pages = 0;
    for (json_int_t after = 0; n < LINES; pages++) {
        snprintf(target, sizeof target, "/v1/jobs/1/log?limit=1000&after=%d", (int)after);
        json_t *v = web_json(&w, 200, "GET", target, NULL), *next = json_object_get(v, "next");
        n += json_array_size(json_object_get(v, "lines"));
        assert_true(json_is_null(next) ? n == LINES : json_integer_value(next) == (json_int_t)n);
        after = json_integer_value(next);
        json_decref(v);
    }
    assert_int_equal(pages, 2);
}

static void values(void **state)
{
    (void)state;
    const char *target = "/v1/jobs/1/values";
    web_says(&w, 201, "\"id\":1", "POST", "/v1/jobs",
             "{\"type\":\"x\",\"values\":{\"color\":\"red\",\"a\":[1.50]}}");
    web_says(&w, 200, "\"values\":{\"a\":[1.50],\"color\":\"red\"}", "GET", "/v1/jobs/1", NULL);
    web_says(&w, 204, "", "POST", target, "{\"values\":{\"a\":null,\"b\":true}}");
    web_says(&w, 200, "\"values\":{\"b\":true,\"color\":\"red\"}", "GET", "/v1/jobs/1", NULL);
    web_says(&w, 200, "\"values\":{\"color\":\"red\"},\"priority\":3,", "PATCH", "/v1/jobs/1",
             "{\"values\":{\"b\":null},\"priority\":3}");
    uint32_t delivery = take(1);
    char     body[80];
    snprintf(body, sizeof body, "{\"values\":{\"n\":1},\"delivery\":%u}", delivery);
    web_says(&w, 204, "", "POST", target, body);
    web_error(&w, 409, "ESTALE", "delivery 9", "POST", target,
              "{\"values\":{\"n\":2},\"delivery\":9}");
    web_says(&w, 200, "\"values\":{\"color\":\"red\",\"n\":1}", "GET", "/v1/jobs/1", NULL);
    web_error(&w, 404, "ENOENT", "there is no job 2", "POST", "/v1/jobs/2/values",
              "{\"values\":{}}");
    web_error(&w, 400, "EINVAL", "values: missing", "POST", target, "{}");
    web_error(&w, 400, "EINVAL", "values: not an object", "POST", target, "{\"values\":7}");
    web_error(&w, 400, "EINVAL", "values.data: ", "POST", target, "{\"values\":{\"data\":1}}");
    web_error(&w, 400, "EINVAL", "values.x: null is no value", "POST", "/v1/jobs",
              "{\"type\":\"x\",\"values\":{\"x\":null}}");
}

static void progress(void **state)
{
    (void)state;
    rt_add_type(&w.t, "x");
    uint32_t delivery = take(1);
    char     body[120];
    snprintf(body, sizeof body, "{\"delivery\":%u,\"done\":1,\"total\":3,\"data\":{\"a\":1.0}}",
             delivery);
    web_says(&w, 204, "", "POST", "/v1/jobs/1/progress", body);
    web_says(&w, 200, "\"progress\":33,\"progress_data\":{\"a\":1.0}", "GET", "/v1/jobs/1", NULL);
    snprintf(body, sizeof body, "{\"delivery\":%u,\"done\":9223372036854775807,\"total\":7}",
             delivery);
    web_says(&w, 204, "", "POST", "/v1/jobs/1/progress", body);
    web_says(&w, 200, "\"progress\":100,", "GET", "/v1/jobs/1", NULL);
    web_error(&w, 409, "ESTALE", "delivery 9", "POST", "/v1/jobs/1/progress",
              "{\"delivery\":9,\"done\":1,\"total\":3}");
    static const struct { const char *body, *part; } cases[] = {
        { "{\"done\":1,\"total\":3}", "delivery: missing" },
        { "{\"delivery\":1,\"total\":3}", "done: missing" },
        { "{\"delivery\":1,\"done\":1}", "total: missing" },
        { "{\"delivery\":1,\"done\":-1,\"total\":3}", "done:" },
        { "{\"delivery\":1,\"done\":1,\"total\":0}", "total:" },
        { "{\"delivery\":1,\"done\":0.5,\"total\":1}", "done:" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        web_error(&w, 400, "EINVAL", cases[i].part, "POST", "/v1/jobs/1/progress", cases[i].body);
}

/* ---- waiting and explaining ---- */

static void ended_before(void **state)
{
    (void)state;
    rt_add_type(&w.t, "x");
    end(1, take(1), WEIR_OUTCOME_DONE, "{\"sent\":true}");
    web_says(&w, 200, "\"result\":{\"sent\":true}", "GET", "/v1/jobs/1/wait", NULL);
    web_says(&w, 200, "\"result\":{\"sent\":true}", "GET", "/v1/jobs/1/wait?timeout=0", NULL);
    web_error(&w, 404, "ENOENT", "there is no job 2", "GET", "/v1/jobs/2/wait", NULL);
    web_error(&w, 400, "EINVAL", "timeout:", "GET", "/v1/jobs/1/wait?timeout=61s", NULL);
}

static void ends_while_waited_for(void **state)
{
    (void)state;
    rt_add_type(&w.t, "x");
    uint32_t delivery = take(1);
    web_says(&w, 202, "\"state\":\"active\"", "GET", "/v1/jobs/1/wait?timeout=20ms", NULL);
    int fd = web_connect(&w);
    web_send(fd, "GET /v1/jobs/1/wait?timeout=60s HTTP/1.1\r\nHost: localhost\r\n\r\n");
    web_says(&w, 200, "", "GET", "/healthz", NULL);
    end(1, delivery, WEIR_OUTCOME_FAIL, "broken");
    web_answer a = web_read(fd);
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.body, "\"state\":\"failed\""));
    assert_non_null(strstr(a.body, "\"error\":\"broken\""));
    web_free(&a);
    close(fd);
}

static void who_waits_may_go(void **state)
{
    (void)state;
    rt_add_type(&w.t, "x");
    for (int i = 0; i < 5; i++) {
        int fd = web_connect(&w);
        web_send(fd, "GET /v1/jobs/1/wait?timeout=60s HTTP/1.1\r\nHost: localhost\r\n\r\n");
        if (i % 2)
            web_says(&w, 200, "", "GET", "/healthz", NULL);
        close(fd);
    }
    web_says(&w, 202, "\"id\":1", "GET", "/v1/jobs/1/wait?timeout=5ms", NULL);
    int fd = web_connect(&w);       /* and a server that stops answers at once */
    web_send(fd, "GET /v1/jobs/1/wait?timeout=60s HTTP/1.1\r\nHost: localhost\r\n\r\n");
    web_says(&w, 200, "", "GET", "/healthz", NULL);
    srv_stop(w.s);
    web_answer a = web_read(fd);
    assert_true(a.status == 202 || a.status == 0);
    web_free(&a);
    close(fd);
}

static void explained(void **state)
{
    (void)state;
    rt_add(&w.t, &(weir_spec){ .type = "x", .attempts = 2 });
    json_t *v = web_json(&w, 200, "GET", "/v1/jobs/1/explain", NULL);
    assert_non_null(strstr(json_string_value(json_object_get(v, "why")), "waits for a worker"));
    assert_string_equal(json_string_value(json_object_get(v, "remedy")), "start_worker");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(v, "job"), "id")), 1);
    json_decref(v);
    end(1, take(1), WEIR_OUTCOME_FAIL, "broken \"pipe\"");
    v = web_json(&w, 200, "GET", "/v1/jobs/1/explain", NULL);
    json_t *moments = json_object_get(v, "moments");
    assert_int_equal(json_array_size(moments), 3);
    json_t *last = json_array_get(moments, 2);
    assert_true(json_is_integer(json_object_get(last, "at")));
    assert_non_null(strstr(json_string_value(json_object_get(v, "why")), "broken \"pipe\""));
    json_decref(v);
    web_error(&w, 404, "ENOENT", "there is no job 2", "GET", "/v1/jobs/2/explain", NULL);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, start, stop)
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(lists),
        CASE(lists_of_several_states_sorted_and_between_times),
        CASE(a_sorted_page_of_large_jobs_ends_early),
        CASE(by_priority),
        CASE(a_page_of_a_priority_ends_before_it_is_full),
        CASE(pages),
        CASE(a_page_ends_when_it_is_large),
        CASE(lists_refuse),
        CASE(one),
        CASE(patches),
        CASE(patches_refuse),
        CASE(is_gone),
        CASE(acts),
        CASE(logs),
        CASE(a_page_of_a_log_ends_when_it_is_large),
        CASE(values),
        CASE(progress),
        CASE(ended_before),
        CASE(ends_while_waited_for),
        CASE(who_waits_may_go),
        CASE(explained),
    };
    return cmocka_run_group_tests_name("api_jobs", tests, NULL, NULL);
}
