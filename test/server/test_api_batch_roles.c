/* test_api_batch_roles.c - POST /v1/batch: who may do what, with every role for every operation,
 * and tokens that are bound to a type, for each element. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/web_tokens.h"
#include "weir/remote.h"

static web w;

#define CALLER "0123456789abcdef0123456789abcdef"
#define OPS(ops) "{\"ops\":[" ops "]}"
#define ADD "{\"op\":\"add\",\"jobs\":[{\"type\":\"mail\"}]}"

enum { READER, PRODUCER, WORKER, ADMIN, MAIL_READER, MAIL_PRODUCER, MAIL_WORKER, MAIL_ADMIN,
       TOKENS };
static const web_token tokens[TOKENS] = {
    { "read", "", NULL },     { "produce", "", NULL },     { "work", "", NULL },
    { "admin", "", NULL },    { "read", "mail", NULL },    { "produce", "mail", NULL },
    { "work", "mail", NULL }, { "admin", "mail", NULL },
};

static int start(void **state)
{
    (void)state;
    web_tokens_make(&guard, tokens, TOKENS);
    web_start(&w, RT_MEM, true, &(srv_options){ .tokens_file = guard.file });
    rt_add(&w.t, &(weir_spec){ .type = "mail" });           /* 1, 2 */
    rt_add(&w.t, &(weir_spec){ .type = "other" });
    return 0;
}

static int stop(void **state)
{
    web_stop(&w);
    return guard_teardown(state);
}

/* The code of each answer, with blanks between; "OK" where there is no error. */
static char *codes(int token, const char *body)
{
    static char out[1000];
    size_t      n = 0;
    web_answer  a = web_call_with(&w, "POST", "/v1/batch", guard.bearer[token], body);
    assert_int_equal(a.status, 200);
    json_t *all = json_loads(a.body, 0, NULL), *one;
    size_t  i;
    out[0] = '\0';
    json_array_foreach (json_object_get(all, "answers"), i, one) {
        json_t *error = json_object_get(one, "error");
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%s", n ? " " : "",
                              error ? json_string_value(json_object_get(error, "code")) : "OK");
    }
    json_decref(all);
    web_free(&a);
    return out;
}

static const struct {
    const char *op;
    unsigned    role;
} each[] = {
    { ADD, WEIR_ROLE_PRODUCE },
    { "{\"op\":\"take\",\"types\":[\"mail\"],\"n\":1,\"worker\":\"w\"}", WEIR_ROLE_WORK },
    { "{\"op\":\"finish\",\"id\":1,\"delivery\":99}", WEIR_ROLE_WORK },
    { "{\"op\":\"renew\",\"jobs\":[{\"id\":1,\"delivery\":99}]}", WEIR_ROLE_WORK },
    { "{\"op\":\"progress\",\"id\":1,\"delivery\":99,\"percent\":1}", WEIR_ROLE_WORK },
    { "{\"op\":\"log\",\"id\":1,\"text\":\"x\"}", WEIR_ROLE_WORK },
    { "{\"op\":\"tick\"}", WEIR_ROLE_ADMIN },
    { "{\"op\":\"update\",\"id\":1,\"from\":[\"delayed\"],\"state\":\"inactive\"}",
      WEIR_ROLE_ADMIN },
    { "{\"op\":\"update\",\"id\":1,\"values\":{\"a\":1}}", WEIR_ROLE_WORK },
    { "{\"op\":\"update\",\"id\":1,\"values\":{\"a\":1},\"priority\":1}", WEIR_ROLE_ADMIN },
    { "{\"op\":\"remove\",\"id\":999}", WEIR_ROLE_ADMIN },
    { "{\"op\":\"configure\",\"type\":\"mail\",\"paused\":false}", WEIR_ROLE_ADMIN },
    { "{\"op\":\"import\",\"jobs\":[]}", WEIR_ROLE_ADMIN },
    { "{\"op\":\"get\",\"id\":1}", WEIR_ROLE_READ },
    { "{\"op\":\"list\"}", WEIR_ROLE_READ },
    { "{\"op\":\"logs\",\"id\":1}", WEIR_ROLE_READ },
    { "{\"op\":\"stats\"}", WEIR_ROLE_READ },
    { "{\"op\":\"check\"}", WEIR_ROLE_ADMIN },
};

static void each_operation_wants_its_role(void **state)
{
    (void)state;
    for (int t = READER; t <= ADMIN; t++) {
        for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
            char body[400];
            snprintf(body, sizeof body, "{\"ops\":[%s]}", each[i].op);
            const char *got = codes(t, body);
            unsigned roles;
            assert_true(srv_roles_parse(tokens[t].roles, &roles));
            if ((strcmp(got, "EREADONLY") == 0) == ((roles & each[i].role) != 0))
                fail_msg("token %d: %s: %s", t, each[i].op, got);
        }
    }
}

static void a_token_of_one_type_touches_it_alone(void **state)
{
    (void)state;
    const char *named = OPS("{\"op\":\"get\",\"id\":1},{\"op\":\"get\",\"id\":2},"
                            "{\"op\":\"logs\",\"id\":2},{\"op\":\"list\",\"type\":\"other\"},"
                            "{\"op\":\"list\"}");
    assert_string_equal(codes(MAIL_READER, named), "OK ENOENT ENOENT EREADONLY OK");
    assert_string_equal(codes(MAIL_PRODUCER,
                              OPS(ADD ",{\"op\":\"add\",\"jobs\":[{\"type\":\"mail\"},"
                                      "{\"type\":\"other\"}]}")), "OK EREADONLY");
    assert_string_equal(codes(MAIL_WORKER,
                              OPS("{\"op\":\"take\",\"types\":[\"mail\",\"other\"],\"n\":1,"
                                  "\"worker\":\"w\"},"
                                  "{\"op\":\"finish\",\"id\":2,\"delivery\":1},"
                                  "{\"op\":\"finish\",\"id\":1,\"delivery\":99,"
                                  "\"next\":{\"types\":[\"other\"],\"n\":1,\"worker\":\"w\"}},"
                                  "{\"op\":\"log\",\"id\":2,\"text\":\"x\"},"
                                  "{\"op\":\"log\",\"id\":1,\"text\":\"x\"}")),
                        "EREADONLY ENOENT EREADONLY ENOENT OK");
    assert_string_equal(codes(MAIL_ADMIN,
                              OPS("{\"op\":\"remove\",\"id\":2},"
                                  "{\"op\":\"update\",\"id\":2,\"priority\":1},"
                                  "{\"op\":\"configure\",\"type\":\"other\",\"paused\":true},"
                                  "{\"op\":\"configure\",\"type\":\"mail\",\"paused\":false},"
                                  "{\"op\":\"import\",\"jobs\":[{\"job\":{\"type\":\"other\","
                                  "\"state\":\"inactive\",\"data\":1}}]},"
                                  "{\"op\":\"tick\"},{\"op\":\"check\"}")),
                        "ENOENT ENOENT EREADONLY OK EREADONLY EREADONLY EREADONLY");
    assert_int_equal(rt_state(&w.t, 2), WEIR_STATE_INACTIVE);
}

static void a_token_of_one_type_sees_its_numbers_alone(void **state)
{
    (void)state;
    web_answer a = web_call_with(&w, "POST", "/v1/batch", guard.bearer[MAIL_READER],
                                 OPS("{\"op\":\"stats\"},{\"op\":\"list\",\"ids\":true}"));
    assert_null(strstr(a.body, "other"));
    assert_non_null(strstr(a.body, "\"type\":\"mail\""));
    web_free(&a);
}

static void a_lease_of_another_type_is_over(void **state)
{
    (void)state;
    weir_job *job;
    size_t    n;
    weir_taking other = { .remote = true, .types = (const char *[]){ "other", NULL }, .n = 1 };
    assert_int_equal(weir_take(w.t.q, &other, &job, &n, NULL), WEIR_OK);
    assert_int_equal(n, 1);
    web_answer a = web_call_with(&w, "POST", "/v1/batch", guard.bearer[MAIL_WORKER],
                                 OPS("{\"op\":\"renew\",\"jobs\":[{\"id\":2,\"delivery\":1}]}"));
    assert_non_null(strstr(a.body, "\"codes\":[\"ESTALE\"]"));
    web_free(&a);
    weir_job_free(job);
}

static void an_answer_is_for_its_token_alone(void **state)
{
    (void)state;
    const char *body = "{\"caller\":\"" CALLER "\",\"number\":1,\"ops\":[{\"op\":\"stats\"}]}";
    assert_string_equal(codes(ADMIN, body), "OK");
    assert_string_equal(codes(MAIL_READER, body), "OK");        /* of its types alone */
    web_answer all = web_call_with(&w, "POST", "/v1/batch", guard.bearer[ADMIN], body);
    web_answer one = web_call_with(&w, "POST", "/v1/batch", guard.bearer[MAIL_READER], body);
    assert_non_null(strstr(all.body, "\"other\""));
    assert_null(strstr(one.body, "\"other\""));
    web_free(&all);
    web_free(&one);
}

/* The id of the job that this added; 0: none. */
static json_int_t added_by(int token, const char *headers, const char *target, const char *body)
{
    char all[300];
    snprintf(all, sizeof all, "%s%s", guard.bearer[token], headers);
    web_answer a = web_call_with(&w, "POST", target, all, body);
    const char *id = strstr(a.body, "\"id\":");
    json_int_t  n = id ? atoll(id + 5) : 0;
    web_free(&a);
    return n;
}

/* Once a key could be used up for another token, by whoever may send batches. */
static void a_key_belongs_to_its_token(void **state)
{
    (void)state;
    static const char *once = "{\"ops\":[{\"op\":\"add\",\"once\":{\"key\":\"order-17\","
                              "\"number\":1},\"jobs\":[{\"type\":\"mail\"}]}]}";
    static const struct { const char *headers, *target, *body; } ways[] = {
        { "", "/v1/batch", NULL },
        { "Idempotency-Key: order-17\r\n", "/v1/jobs", "{\"type\":\"mail\"}" },
    };
    json_int_t id[4];
    for (int i = 0; i < 4; i++) {
        int token = i % 2 ? PRODUCER : MAIL_PRODUCER;
        id[i] = added_by(token, ways[i / 2].headers, ways[i / 2].target,
                         i / 2 ? ways[1].body : once);
        assert_true(id[i] > 0);
        for (int k = 0; k < i; k++)
            assert_true(id[i] != id[k]);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(added_by(i % 2 ? PRODUCER : MAIL_PRODUCER, ways[i / 2].headers,
                                  ways[i / 2].target, i / 2 ? ways[1].body : once), id[i]);
}

/* What the store would take for a key of POST /v1/jobs is no such key in a batch. */
static void a_key_cannot_name_another_token(void **state)
{
    (void)state;
    json_int_t mine = added_by(PRODUCER, "Idempotency-Key: k1\r\n", "/v1/jobs",
                               "{\"type\":\"mail\"}");
    json_int_t stolen = added_by(MAIL_PRODUCER, "", "/v1/batch",
                                 OPS("{\"op\":\"add\",\"once\":{\"key\":\"http:token-1:=k1\","
                                     "\"number\":1},\"jobs\":[{\"type\":\"mail\"}]}"));
    assert_true(mine && stolen && mine != stolen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_operation_wants_its_role),
        cmocka_unit_test(a_token_of_one_type_touches_it_alone),
        cmocka_unit_test(a_token_of_one_type_sees_its_numbers_alone),
        cmocka_unit_test(a_lease_of_another_type_is_over),
        cmocka_unit_test(an_answer_is_for_its_token_alone),
        cmocka_unit_test(a_key_belongs_to_its_token),
        cmocka_unit_test(a_key_cannot_name_another_token),
    };
    return cmocka_run_group_tests_name("batch roles", tests, start, stop);
}
