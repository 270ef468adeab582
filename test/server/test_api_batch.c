/* test_api_batch.c - POST /v1/batch: operations and their answers, batches that come again or are
 * for another run of the server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/server_rig.h"

#define CALLER "0123456789abcdef0123456789abcdef"
#define OTHER  "ffffffffffffffffffffffffffffffff"

WEB_FIXTURE

/* The answers; the call must work. */
static json_t *answers(const char *body)
{
    json_t *all = web_json(&w, 200, "POST", "/v1/batch", body);
    json_t *list = json_incref(json_object_get(all, "answers"));
    assert_true(json_is_array(list));
    assert_true(json_is_string(json_object_get(all, "run")));
    json_decref(all);
    return list;
}

static void answers_are(const char *body, const char *want)
{
    json_t *got = answers(body);
    char   *text = json_dumps(got, JSON_COMPACT);
    assert_string_equal(text, want);
    free(text);
    json_decref(got);
}

#define OPS(ops) "{\"ops\":[" ops "]}"
#define NUMBERED(caller, number, ops) \
    "{\"caller\":\"" caller "\",\"number\":" #number ",\"ops\":[" ops "]}"
#define ADD "{\"op\":\"add\",\"jobs\":[{\"type\":\"mail\"}]}"

/* ---- operations ---- */

static void a_life_in_one_batch(void **state)
{
    (void)state;
    answers_are(OPS(ADD ","
                    "{\"op\":\"take\",\"types\":[\"mail\"],\"n\":5,\"lease\":1000,"
                    "\"worker\":\"w\"},"
                    "{\"op\":\"finish\",\"id\":1,\"delivery\":1,\"result\":{\"x\":1.50}},"
                    "{\"op\":\"finish\",\"id\":1,\"delivery\":1},"
                    "{\"op\":\"finish\",\"id\":2,\"delivery\":1,\"error\":\"no\"},"
                    "{\"op\":\"remove\",\"id\":1},"
                    "{\"op\":\"get\",\"id\":1}"),
                "[{\"durability\":\"none\",\"jobs\":[{\"id\":1,\"state\":\"inactive\"}]},"
                "{\"jobs\":[{\"id\":1,\"type\":\"mail\",\"data\":{},\"priority\":0,"
                "\"state\":\"active\",\"delay\":0,\"max_attempts\":1,\"attempts\":0,\"progress\":0,"
                "\"created_at\":1700000000000,\"promote_at\":1700000000000,"
                "\"updated_at\":1700000000000,\"started_at\":1700000000000,"
                "\"lease_until\":1700000001000,\"workerId\":\"w\",\"delivery\":1}]},"
                "{\"state\":\"complete\"},"
                "{\"error\":{\"code\":\"ESTALE\",\"message\":\"job 1: delivery 1 is over\"}},"
                "{\"error\":{\"code\":\"ESTALE\",\"message\":\"job 2: delivery 1 is over\"}},"
                "{},"
                "{\"error\":{\"code\":\"ENOENT\",\"message\":\"there is no job 1\"}}]");
}

static void an_operation_that_is_refused_leaves_the_others(void **state)
{
    (void)state;
    json_t *a = answers(OPS("{\"op\":\"add\",\"jobs\":[{\"type\":\"mail\"},{\"type\":\"\"}]},"
                            ADD ",{\"op\":\"stats\"}"));
    assert_string_equal(json_string_value(json_object_get(json_object_get(json_array_get(a, 0),
                                                                          "error"), "message")),
                        "jobs[1].type: empty");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(a, 2), "last_id")), 2);
    json_decref(a);
}

static void what_is_not_a_batch_is_refused_whole(void **state)
{
    (void)state;
    web_error(&w, 400, "EINVAL", "ops: missing", "POST", "/v1/batch", "{}");
    web_error(&w, 400, "EINVAL", "ops[1].op: \"fly\" is not an operation", "POST", "/v1/batch",
              OPS(ADD ",{\"op\":\"fly\"}"));
    web_error(&w, 400, "EINVAL", "caller: missing", "POST", "/v1/batch",
              "{\"number\":1,\"ops\":[" ADD "]}");
    web_error(&w, 400, "EINVAL", "not JSON", "POST", "/v1/batch", "{\"ops\":[");
    json_t *a = answers(OPS("{\"op\":\"stats\"}"));
    assert_int_equal(json_integer_value(json_object_get(json_array_get(a, 0), "last_id")), 2);
    json_decref(a);
}

static void both_halves_of_configure(void **state)
{
    (void)state;
    answers_are(OPS("{\"op\":\"configure\",\"type\":\"both\",\"paused\":true,"
                    "\"settings\":{\"keep_failed\":{\"count\":7}}},"
                    "{\"op\":\"configure\",\"type\":\"both\",\"paused\":true,"
                    "\"settings\":{\"keep_failed\":{\"count\":7,\"age\":3}}}"), "[{},{}]");
    json_t *t = web_json(&w, 200, "GET", "/v1/types/both", NULL);
    assert_true(json_is_true(json_object_get(t, "paused")));
    json_decref(t);
}

/* ---- batches that come again ---- */

static json_int_t jobs_now(void)
{
    json_t    *a = answers(OPS("{\"op\":\"stats\"}"));
    json_int_t n = json_integer_value(json_object_get(json_array_get(a, 0), "last_id"));
    json_decref(a);
    return n;
}

static void a_batch_that_comes_again_is_not_done_again(void **state)
{
    (void)state;
    web_answer one = web_call(&w, "POST", "/v1/batch", NUMBERED(CALLER, 1, ADD));
    json_int_t n = jobs_now();
    web_answer two = web_call(&w, "POST", "/v1/batch", NUMBERED(CALLER, 1, ADD));
    assert_int_equal(two.status, 200);
    assert_string_equal(one.body, two.body);
    assert_int_equal(jobs_now(), n);
    web_free(&one);
    web_free(&two);
    json_decref(answers(NUMBERED(OTHER, 1, ADD)));          /* another caller's */
    assert_int_equal(jobs_now(), n + 1);
    json_decref(answers(NUMBERED(CALLER, 7, ADD)));
    assert_int_equal(jobs_now(), n + 2);
    web_error(&w, 409, "ESTALE", "number: 1, but 7 was sent already", "POST", "/v1/batch",
              NUMBERED(CALLER, 1, ADD));
    assert_int_equal(jobs_now(), n + 2);
}

static void many_at_once_are_one(void **state)
{
    (void)state;
    enum { N = 20 };
    int        fd[N];
    json_int_t n = jobs_now();
    char       head[300];
    const char *body = NUMBERED("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 1, ADD);
    snprintf(head, sizeof head, "POST /v1/batch HTTP/1.1\r\nHost: %s\r\nContent-Type: "
             "application/json\r\nContent-Length: %zu\r\n\r\n", w.host, strlen(body));
    for (int i = 0; i < N; i++)
        fd[i] = web_connect(&w);
    for (int i = 0; i < N; i++)
        web_send(fd[i], head);
    for (int i = 0; i < N; i++)
        web_send(fd[i], body);
    char *first = NULL;
    for (int i = 0; i < N; i++) {
        web_answer a = web_read(fd[i]);
        assert_int_equal(a.status, 200);
        if (!first)
            first = strdup(a.body);
        assert_string_equal(a.body, first);
        web_free(&a);
        close(fd[i]);
    }
    free(first);
    assert_int_equal(jobs_now(), n + 1);
}

static void a_batch_for_another_run_is_left_alone(void **state)
{
    (void)state;
    json_int_t n = jobs_now();
    json_t    *a = web_json(&w, 409, "POST", "/v1/batch",
                            "{\"caller\":\"" CALLER "\",\"number\":100,\"run\":\"gone\","
                            "\"ops\":[" ADD "]}");
    const char *run = json_string_value(json_object_get(a, "run"));
    assert_non_null(run);
    assert_int_equal(json_array_size(json_object_get(a, "answers")), 0);
    assert_int_equal(jobs_now(), n);
    char body[400];
    snprintf(body, sizeof body, "{\"caller\":\"" CALLER "\",\"number\":100,\"run\":\"%s\","
             "\"ops\":[" ADD "]}", run);
    json_decref(answers(body));
    assert_int_equal(jobs_now(), n + 1);
    json_decref(a);
}

static void an_add_with_a_token_is_done_once(void **state)
{
    (void)state;
    const char *body = OPS("{\"op\":\"add\",\"once\":{\"key\":\"me\",\"number\":1},"
                           "\"jobs\":[{\"type\":\"mail\"}]}");
    json_t *one = answers(body), *two = answers(body);
    assert_true(json_equal(one, two));
    json_decref(one);
    json_decref(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_life_in_one_batch),
        cmocka_unit_test(an_operation_that_is_refused_leaves_the_others),
        cmocka_unit_test(what_is_not_a_batch_is_refused_whole),
        cmocka_unit_test(both_halves_of_configure),
        cmocka_unit_test(a_batch_that_comes_again_is_not_done_again),
        cmocka_unit_test(many_at_once_are_one),
        cmocka_unit_test(a_batch_for_another_run_is_left_alone),
        cmocka_unit_test(an_add_with_a_token_is_done_once),
    };
    return cmocka_run_group_tests_name("batch", tests, start, stop);
}
