/* test_api_add.c - POST /v1/jobs: one job, lists of them, what is refused and how, and waiting. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "support/server_rig.h"

WEB_FIXTURE

static const char *text_of(const json_t *v, const char *name)
{
    return json_string_value(json_object_get(v, name));
}

static json_int_t int_of(const json_t *v, const char *name)
{
    return json_integer_value(json_object_get(v, name));
}

/* ---- one ---- */

static void one_job(void **state)
{
    (void)state;
    web_answer a = web_call(&w, "POST", "/v1/jobs", "{\"type\":\"mail\"}");
    assert_int_equal(a.status, 201);
    assert_string_equal(a.body, "{\"id\":1,\"state\":\"inactive\",\"existed\":false,"
                                "\"durability\":\"none\"}");
    web_free(&a);
    web_says(&w, 201, "{\"id\":2,\"state\":\"delayed\"", "POST", "/v1/jobs",
             " {\"type\":\"mail\",\"delay\":\"1h30m\"} ");
    weir_job *j = rt_get(&w.t, 2);
    assert_int_equal(j->delay_ms, 5400000);
    weir_job_free(j);
}

static void all_members(void **state)
{
    (void)state;
    web_says(&w, 201, "\"id\":1", "POST", "/v1/jobs",
             "{\"type\":\"caf\\u00e9\",\"data\":{ \"n\" : 12345678901234567890.10 },"
             "\"priority\":\"high\",\"attempts\":3,\"run_at\":1,\"ttl\":1000,"
             "\"backoff\":{\"type\":\"exponential\",\"delay\":500,\"maxDelay\":60000,\"jitter\":5},"
             "\"deadline\":99999999999999,\"unique\":\"k\",\"max_lost\":7,"
             "\"removeOnComplete\":true,\"search\":true,\"search_keys\":\"n\"}");
    weir_job *j = rt_get(&w.t, 1);
    assert_string_equal(j->type, "caf\xc3\xa9");
    assert_string_equal(j->data, "{ \"n\" : 12345678901234567890.10 }");
    assert_true(j->priority == WEIR_PRIORITY_HIGH && j->max_attempts == 3 && j->ttl_ms == 1000);
    assert_true(j->backoff.kind == WEIR_BACKOFF_EXPONENTIAL && j->backoff.delay_ms == 500 &&
                j->backoff.max_ms == 60000 && j->backoff.jitter_pct == 5);
    assert_true(j->deadline_at == 99999999999999 && j->max_lost == 7);
    assert_true(j->remove_on_complete && j->search);
    assert_string_equal(j->unique, "k");
    assert_string_equal(j->search_keys, "n");
    weir_job_free(j);
    /* what was stored is answered byte by byte */
    web_says(&w, 200, "\"data\":{ \"n\" : 12345678901234567890.10 },", "GET", "/v1/jobs/1", NULL);
}

static void a_unique_job_is_there_once(void **state)
{
    (void)state;
    const char *body = "{\"type\":\"mail\",\"unique\":\"ann\"}";
    web_says(&w, 201, "\"existed\":false", "POST", "/v1/jobs", body);
    web_says(&w, 200, "{\"id\":1,\"state\":\"inactive\",\"existed\":true", "POST", "/v1/jobs",
             body);
}

static void wrong(int status, const char *code, const char *field, const char *body)
{
    json_t *v = web_json(&w, status, "POST", "/v1/jobs", body);
    json_t *e = json_object_get(v, "error");
    assert_string_equal(text_of(e, "code"), code);
    if (field)
        assert_string_equal(text_of(e, "field"), field);
    else
        assert_null(json_object_get(e, "field"));
    assert_true(strlen(text_of(e, "message")) > 5);
    json_decref(v);
}

static void what_is_wrong_has_a_name(void **state)
{
    (void)state;
    wrong(400, "EINVAL", "type", "{}");
    wrong(400, "EINVAL", "type", "{\"type\":7}");
    wrong(400, "EINVAL", "type", "{\"type\":\"*\"}");
    wrong(400, "EINVAL", "type", "{\"type\":\"a\\u0000b\"}");
    wrong(400, "EINVAL", "type", "{\"type\":\"a\",\"type\":\"b\"}");
    wrong(400, "EINVAL", "tpye", "{\"tpye\":\"a\"}");
    wrong(400, "EINVAL", "attempts", "{\"type\":\"a\",\"attempts\":-1}");
    wrong(400, "EINVAL", "attempts", "{\"type\":\"a\",\"attempts\":1000001}");
    wrong(400, "EINVAL", "attempts", "{\"type\":\"a\",\"attempts\":99999999999999999999999}");
    wrong(400, "EINVAL", "attempts", "{\"type\":\"a\",\"attempts\":1.5}");
    wrong(400, "EINVAL", "attempts", "{\"type\":\"a\",\"attempts\":\"3\"}");
    wrong(400, "EINVAL", "priority", "{\"type\":\"a\",\"priority\":2147483648}");
    wrong(400, "EINVAL", "delay", "{\"type\":\"a\",\"delay\":-1}");
    wrong(400, "EINVAL", "delay", "{\"type\":\"a\",\"delay\":\"soon\"}");
    wrong(413, "ELIMIT", "delay", "{\"type\":\"a\",\"delay\":\"99999d\"}");
    wrong(400, "EINVAL", "run_at", "{\"type\":\"a\",\"delay\":5,\"run_at\":5}");
    wrong(400, "EINVAL", "backoff.type", "{\"type\":\"a\",\"backoff\":{\"type\":\"eval\"}}");
    wrong(400, "EINVAL", "unique", "{\"type\":\"a\",\"unique\":\"\"}");
    wrong(400, "EINVAL", "search", "{\"type\":\"a\",\"search\":1}");
    wrong(400, "EINVAL", NULL, "\"mail\"");
    wrong(400, "EINVAL", NULL, "null");
    wrong(400, "EINVAL", "type", "");
    wrong(400, "EINVAL", NULL, "{\"type\":\"a\"");
    wrong(400, "EINVAL", NULL, "{\"type\":\"\xc3\x28\"}");
    wrong(400, "EINVAL", NULL, "{'type':'a'}");
    wrong(400, "EINVAL", NULL, "{\"type\":\"a\"}{}");
    web_error(&w, 400, "EINVAL", "unknown parameter \"frob\"; this route accepts: wait", "POST",
              "/v1/jobs?frob=1", "{\"type\":\"a\"}");
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 0);
}

static char *nested(const char *before, int levels, const char *behind)
{
    weir_buf b = { 0 };
    weir__buf_str(&b, before);
    for (int i = 0; i < levels; i++)
        weir__buf_char(&b, '[');
    for (int i = 0; i < levels; i++)
        weir__buf_char(&b, ']');
    weir__buf_str(&b, behind);
    return weir__buf_steal(&b, NULL);
}

static void deep_json_is_refused(void **state)
{
    (void)state;
    char *body = nested("{\"type\":\"a\",\"data\":", WEIR_MAX_DEPTH, "}");
    web_says(&w, 201, "\"id\":1", "POST", "/v1/jobs", body);
    free(body);
    body = nested("{\"type\":\"a\",\"data\":", WEIR_MAX_DEPTH + 1, "}");
    wrong(413, "ELIMIT", "data", body);
    free(body);
    body = nested("{\"type\":\"a\",\"data\":", 100000, "}");
    wrong(413, "ELIMIT", NULL, body);
    free(body);
}

static void large_data_is_refused(void **state)
{
    (void)state;
    weir_buf b = { 0 };
    weir__buf_str(&b, "{\"type\":\"a\",\"data\":\"");
    for (int i = 0; i < WEIR_MAX_DATA; i++)
        weir__buf_char(&b, 'x');
    weir__buf_str(&b, "\"}");
    wrong(413, "ELIMIT", "data", b.data);
    weir__buf_fini(&b);
}

/* ---- lists ---- */

static void a_list_of_jobs(void **state)
{
    (void)state;
    web_answer a = web_call(&w, "POST", "/v1/jobs",
                            " [ {\"type\":\"a\"} , {\"type\":\"b\",\"delay\":5} ] ");
    assert_int_equal(a.status, 201);
    assert_string_equal(a.body,
                        "{\"results\":[{\"id\":1,\"state\":\"inactive\",\"existed\":false},"
                        "{\"id\":2,\"state\":\"delayed\",\"existed\":false}],\"added\":2,"
                        "\"refused\":0,\"durability\":\"none\"}");
    web_free(&a);
}

static void wrong_ones_are_refused_alone(void **state)
{
    (void)state;
    char       *deep = nested(",{\"type\":\"a\",\"data\":", WEIR_MAX_DEPTH + 1, "}");
    weir_buf    b = { 0 };
    weir__buf_str(&b, "[{\"type\":\"a\"},{\"type\":\"a\",\"attempts\":0},7,{\"type\":\"b\"},"
                      "{\"frob\":1},{\"type\":\"c\",\"unique\":\"u\"},"
                      "{\"type\":\"c\",\"unique\":\"u\"}");
    weir__buf_str(&b, deep);
    weir__buf_char(&b, ']');
    json_t     *v = web_json(&w, 207, "POST", "/v1/jobs", b.data);
    json_t     *list = json_object_get(v, "results");
    const char *field[] = { NULL, "attempts", "", NULL, "frob", NULL, NULL, "data" };
    json_int_t  ids[] = { 1, 0, 0, 2, 0, 3, 3, 0 };
    assert_int_equal(json_array_size(list), 8);
    assert_int_equal(int_of(v, "added"), 4);
    assert_int_equal(int_of(v, "refused"), 4);
    for (size_t i = 0; i < 8; i++) {
        const json_t *one = json_array_get(list, i), *e = json_object_get(one, "error");
        assert_int_equal(int_of(one, "id"), ids[i]);
        assert_true(!field[i] == !e);
        if (e && *field[i])
            assert_string_equal(text_of(e, "field"), field[i]);
        if (e)
            assert_non_null(text_of(e, "message"));
    }
    assert_true(json_is_true(json_object_get(json_array_get(list, 6), "existed")));
    json_decref(v);
    weir__buf_fini(&b);
    free(deep);
    /* all of them */
    web_says(&w, 207, "\"added\":0,\"refused\":2}", "POST", "/v1/jobs", "[1,{}]");
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 3);
}

static char *many(size_t n, size_t each_wrong)
{
    weir_buf b = { 0 };
    weir__buf_char(&b, '[');
    for (size_t i = 0; i < n; i++) {
        bool bad = each_wrong && i % each_wrong == each_wrong - 1;
        weir__buf_printf(&b, "%s{\"type\":\"%s\",\"data\":{\"i\":%zu}}", i ? "," : "",
                         bad ? "" : "bulk", i);
    }
    weir__buf_char(&b, ']');
    return weir__buf_steal(&b, NULL);
}

static void ten_thousand(void **state)
{
    (void)state;
    char   *body = many(WEIR_MAX_ADD, 7);
    json_t *v = web_json(&w, 207, "POST", "/v1/jobs", body);
    json_t *list = json_object_get(v, "results");
    free(body);
    assert_int_equal(json_array_size(list), WEIR_MAX_ADD);
    assert_int_equal(int_of(v, "refused"), WEIR_MAX_ADD / 7);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_INACTIVE), WEIR_MAX_ADD - WEIR_MAX_ADD / 7);
    json_int_t last = 0;
    for (size_t i = 0; i < WEIR_MAX_ADD; i++) {
        json_int_t id = int_of(json_array_get(list, i), "id");
        assert_int_equal(!id, i % 7 == 6);
        assert_true(!id || id == last + 1);         /* in their order */
        last = id ? id : last;
    }
    weir_job *j = rt_get(&w.t, (uint64_t)last);
    assert_string_equal(j->data, "{\"i\":9999}");
    weir_job_free(j);
    json_decref(v);
}

static void too_many_or_none(void **state)
{
    (void)state;
    char *body = many(WEIR_MAX_ADD + 1, 0);
    wrong(413, "ELIMIT", NULL, body);
    free(body);
    wrong(400, "EINVAL", NULL, "[]");
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 0);
}

/* ---- again ---- */

static void with_key(int status, const char *part, const char *key, const char *body)
{
    char header[400];
    snprintf(header, sizeof header, "Idempotency-Key: %s\r\n", key);
    web_answer a = web_call_with(&w, "POST", "/v1/jobs", header, body);
    if (a.status != status || !strstr(a.body, part))
        fail_msg("%s: %d %s, not %d with %s", key, a.status, a.body, status, part);
    web_free(&a);
}

static void what_is_repeated_is_done_once(void **state)
{
    (void)state;
    const char *one = "{\"type\":\"mail\"}";
    const char *lot = "[{\"type\":\"mail\"},{},{\"type\":\"mail\"}]";
    for (int i = 0; i < 3; i++) {
        with_key(201, "{\"id\":1,\"state\":\"inactive\",\"existed\":false,", "a", one);
        with_key(207, "{\"results\":[{\"id\":2,", "b", lot);
        with_key(207, ",{\"id\":3,\"state\":\"inactive\",\"existed\":false}]", "b", lot);
    }
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 3);
    with_key(409, "with another body", "a", lot);
    with_key(409, "with another body", "a", "{\"type\":\"other\"}");
    with_key(400, "\"field\":\"type\"", "c", "{}");
    with_key(201, "\"id\":4,", "c", one);       /* what was refused was not done */
    char key[300];
    memset(key, 'k', sizeof key);
    key[255] = '\0';
    with_key(201, "\"id\":5,", key, one);
    key[255] = 'k';
    key[256] = '\0';
    with_key(413, "256 bytes", key, one);
    with_key(400, "0 bytes", "", one);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 5);
}

/* ---- waiting ---- */

static weir_code answer(weir_job *job, void *ctx)
{
    (void)ctx;
    return !strcmp(job->data, "7") ? weir_job_fail(job, "no")
                                   : weir_job_done(job, "{\"n\":1}", 0, NULL);
}

static void create_and_wait(void **state)
{
    (void)state;
    rt *t = &w.t;
    web_says(&w, 202, "\"state\":\"inactive\"", "POST", "/v1/jobs?wait=10ms",
             "{\"type\":\"slow\"}");
    web_says(&w, 202, "\"id\":2", "POST", "/v1/jobs?wait=0", "{\"type\":\"slow\"}");
    OK(weir_process(t->q, "quick", &(weir_pool_config){ .handler = answer }, NULL, &t->err));
    web_says(&w, 200, "\"state\":\"complete\"", "POST", "/v1/jobs?wait=60s",
             "{\"type\":\"quick\"}");
    web_says(&w, 200, "\"result\":{\"n\":1}", "POST", "/v1/jobs?wait=60s", "{\"type\":\"quick\"}");
    web_says(&w, 200, "\"error\":\"no\"", "POST", "/v1/jobs?wait=60s",
             "{\"type\":\"quick\",\"data\":7}");
    web_error(&w, 400, "EINVAL", "wait", "POST", "/v1/jobs?wait=61s", "{\"type\":\"quick\"}");
    web_error(&w, 400, "EINVAL", "wait", "POST", "/v1/jobs?wait=x", "{\"type\":\"quick\"}");
    web_error(&w, 400, "EINVAL", "only for one job", "POST", "/v1/jobs?wait=1s",
              "[{\"type\":\"quick\"}]");
    OK(weir_stop(t->q, NULL, 1000, &t->err));
}

static void removed_while_waited_for(int status, const char *part, const char *body, uint64_t id)
{
    char request[300];
    rt  *t = &w.t;
    int  fd = web_connect(&w);
    snprintf(request, sizeof request, "POST /v1/jobs?wait=60s HTTP/1.1\r\nHost: localhost\r\n"
             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
    web_send(fd, request);
    rt_until(t, id, WEIR_STATE_INACTIVE);
    OK(weir_remove(t->q, id, &t->err));
    web_answer a = web_read(fd);
    if (a.status != status || !strstr(a.body, part))
        fail_msg("%d %s, not %d with %s", a.status, a.body, status, part);
    web_free(&a);
    close(fd);
}

/* Of a job that is removed when it is complete, nobody can tell: it was added, that is sure. */
static void gone_before_its_end_is_seen(void **state)
{
    (void)state;
    removed_while_waited_for(404, "job 1", "{\"type\":\"x\"}", 1);
    removed_while_waited_for(201, "{\"id\":2,\"state\":\"inactive\",\"existed\":false,",
                             "{\"type\":\"x\",\"removeOnComplete\":true}", 2);
}

static weir_code quickly(weir_job *job, void *ctx)
{
    (void)ctx;
    return weir_job_done(job, "7", 0, NULL);
}

static void removed_when_complete(void **state)
{
    (void)state;
    rt *t = &w.t;
    OK(weir_process(t->q, "x", &(weir_pool_config){ .handler = quickly }, NULL, &t->err));
    for (int i = 0; i < 50; i++) {
        web_answer a = web_call(&w, "POST", "/v1/jobs?wait=60s",
                                "{\"type\":\"x\",\"removeOnComplete\":true}");
        if (a.status == 200)
            assert_non_null(strstr(a.body, "\"result\":7"));
        else
            assert_int_equal(a.status, 201);
        web_free(&a);
    }
    OK(weir_stop(t->q, NULL, 1000, &t->err));
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, start, stop)
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(one_job),
        CASE(all_members),
        CASE(a_unique_job_is_there_once),
        CASE(what_is_wrong_has_a_name),
        CASE(deep_json_is_refused),
        CASE(large_data_is_refused),
        CASE(a_list_of_jobs),
        CASE(wrong_ones_are_refused_alone),
        CASE(ten_thousand),
        CASE(too_many_or_none),
        CASE(what_is_repeated_is_done_once),
        CASE(create_and_wait),
        CASE(gone_before_its_end_is_seen),
        CASE(removed_when_complete),
    };
    return cmocka_run_group_tests_name("api_add", tests, NULL, NULL);
}
