/* test_api_roles.c - who may do what to jobs: every route of the jobs resource with every role, and
 * tokens that are bound to a type, for each element of what they ask for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/web_tokens.h"

static web w;

enum { READER, PRODUCER, WORKER, ADMIN, MAIL_READER, MAIL_PRODUCER, MAIL_WORKER, MAIL_ADMIN,
       BOTH_ADMIN, TOKENS };
static const web_token tokens[TOKENS] = {
    { "read", "", NULL }, { "produce", "", NULL }, { "work", "", NULL }, { "admin", "", NULL },
    { "read", "mail", NULL }, { "produce", "mail", NULL }, { "work", "mail", NULL },
    { "admin", "mail", NULL }, { "admin", "mail,sms", NULL },
};

static int start(void **state)
{
    (void)state;
    web_tokens_make(&guard, tokens, TOKENS);
    web_start(&w, RT_MEM, true, &(srv_options){ .tokens_file = guard.file });
    return 0;
}

static int stop(void **state)
{
    web_stop(&w);
    return guard_teardown(state);
}

static void says(int token, int status, const char *part, const char *method, const char *target,
                 const char *body)
{
    web_token_says(&w, &guard, token, status, part, method, target, body);
}

/* ---- roles ---- */

static const struct {
    const char *method, *target, *body;
    unsigned    role;
} asks[] = {
    { "POST", "/v1/jobs", "{\"type\":\"mail\"}", WEIR_ROLE_PRODUCE },
    { "POST", "/v1/jobs", "[{\"type\":\"mail\"}]", WEIR_ROLE_PRODUCE },
    { "GET", "/v1/jobs", NULL, WEIR_ROLE_READ },
    { "GET", "/v1/jobs/1", NULL, WEIR_ROLE_READ },
    { "PATCH", "/v1/jobs/1", "{}", WEIR_ROLE_ADMIN },
    { "DELETE", "/v1/jobs/1", NULL, WEIR_ROLE_ADMIN },
    { "POST", "/v1/jobs/1/retry", NULL, WEIR_ROLE_ADMIN },
    { "POST", "/v1/jobs/1/promote", NULL, WEIR_ROLE_ADMIN },
    { "POST", "/v1/jobs/1/cancel", NULL, WEIR_ROLE_ADMIN },
    { "GET", "/v1/jobs/1/log", NULL, WEIR_ROLE_READ },
    { "POST", "/v1/jobs/1/log", "{\"text\":\"a\"}", WEIR_ROLE_WORK },
    { "POST", "/v1/jobs/1/progress", "{\"delivery\":1,\"done\":1,\"total\":2}", WEIR_ROLE_WORK },
    { "POST", "/v1/jobs/1/values", "{\"values\":{}}", WEIR_ROLE_WORK },
    { "GET", "/v1/jobs/1/explain", NULL, WEIR_ROLE_READ },
    { "GET", "/v1/jobs/1/wait?timeout=1ms", NULL, WEIR_ROLE_READ },
    { "POST", "/v1/jobs/bulk", "{\"action\":\"cancel\",\"filter\":{\"type\":\"mail\"}}",
      WEIR_ROLE_ADMIN },
    { "GET", "/v1/errors?type=mail", NULL, WEIR_ROLE_READ },
    { "GET", "/v1/stats", NULL, WEIR_ROLE_READ },
    { "GET", "/v1/types", NULL, WEIR_ROLE_READ },
    { "GET", "/v1/types/mail", NULL, WEIR_ROLE_READ },
    { "PATCH", "/v1/types/mail", "{}", WEIR_ROLE_ADMIN },
    { "POST", "/v1/types/mail/pause", NULL, WEIR_ROLE_ADMIN },
    { "POST", "/v1/types/mail/resume", NULL, WEIR_ROLE_ADMIN },
    { "GET", "/v1/server", NULL, WEIR_ROLE_READ },
};

static void every_role(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        says(-1, 401, "error", asks[i].method, asks[i].target, asks[i].body);
        for (int token = 0; token < TOKENS; token++) {
            unsigned roles;
            assert_true(srv_roles_parse(tokens[token].roles, &roles));
            web_answer a = web_call_with(&w, asks[i].method, asks[i].target, guard.bearer[token],
                                         asks[i].body);
            if ((a.status == 403) != !(roles & asks[i].role) || a.status == 401)
                fail_msg("%s of %s: %s %s: %d %s", tokens[token].roles, tokens[token].types,
                         asks[i].method, asks[i].target, a.status, a.body);
            web_free(&a);
        }
    }
    says(MAIL_ADMIN, 403, "mail", "POST", "/v1/check", "{}");      /* concerns all types */
    says(WORKER, 403, "error", "POST", "/v1/check", "{}");
    says(ADMIN, 200, "lines", "POST", "/v1/check", "{}");
}

static void who_am_i(void **state)
{
    (void)state;
    says(PRODUCER, 200, "\"you\":{\"name\":\"token-1\",\"roles\":[\"read\",\"produce\"],"
                        "\"types\":null}", "GET", "/v1/server", NULL);
    says(MAIL_ADMIN, 200,
         "\"roles\":[\"read\",\"produce\",\"work\",\"admin\"],\"types\":[\"mail\"]}",
         "GET", "/v1/server", NULL);
}

/* ---- bound to a type ---- */

/* 1 is mail, 2 is sms. */
static void two_jobs(void)
{
    rt_add_type(&w.t, "mail");
    rt_add_type(&w.t, "sms");
}

static void other_jobs_are_not_there(void **state)
{
    (void)state;
    two_jobs();
    says(MAIL_READER, 200, "\"id\":1", "GET", "/v1/jobs/1", NULL);
    static const struct { int token; const char *method, *target, *body; } cases[] = {
        { MAIL_READER, "GET", "/v1/jobs/2", NULL },
        { MAIL_READER, "GET", "/v1/jobs/2/log", NULL },
        { MAIL_READER, "GET", "/v1/jobs/2/explain", NULL },
        { MAIL_READER, "GET", "/v1/jobs/2/wait", NULL },
        { MAIL_WORKER, "POST", "/v1/jobs/2/log", "{\"text\":\"a\"}" },
        { MAIL_WORKER, "POST", "/v1/jobs/2/progress", "{\"delivery\":1,\"done\":1,\"total\":2}" },
        { MAIL_WORKER, "POST", "/v1/jobs/2/values", "{\"values\":{\"a\":1}}" },
        { MAIL_ADMIN, "PATCH", "/v1/jobs/2", "{\"priority\":1}" },
        { MAIL_ADMIN, "DELETE", "/v1/jobs/2", NULL },
        { MAIL_ADMIN, "POST", "/v1/jobs/2/retry", NULL },
        { MAIL_ADMIN, "POST", "/v1/jobs/2/promote", NULL },
        { MAIL_ADMIN, "POST", "/v1/jobs/2/cancel", NULL },
        { MAIL_READER, "GET", "/v1/types/sms", NULL },
        { MAIL_READER, "GET", "/v1/types/*", NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        says(cases[i].token, 404, "there is no ", cases[i].method, cases[i].target, cases[i].body);
    /* just as one that is really not there */
    says(MAIL_READER, 404, "there is no job 2\"", "GET", "/v1/jobs/2", NULL);
    says(MAIL_READER, 404, "there is no job 3\"", "GET", "/v1/jobs/3", NULL);
    assert_int_equal(rt_state(&w.t, 2), WEIR_STATE_INACTIVE);
    says(MAIL_ADMIN, 200, "cancelled", "POST", "/v1/jobs/1/cancel", NULL);
    says(MAIL_WORKER, 204, "", "POST", "/v1/jobs/1/log", "{\"text\":\"a\"}");
    says(MAIL_ADMIN, 204, "", "DELETE", "/v1/jobs/1", NULL);
}

static void lists_are_of_its_type(void **state)
{
    (void)state;
    two_jobs();
    says(READER, 200, "{\"jobs\":[1,2],", "GET", "/v1/jobs?ids=true", NULL);
    says(MAIL_READER, 200, "{\"jobs\":[1],", "GET", "/v1/jobs?ids=true", NULL);
    says(MAIL_READER, 200, "{\"jobs\":[1],", "GET", "/v1/jobs?ids=true&type=mail", NULL);
    says(MAIL_READER, 403, "forbidden", "GET", "/v1/jobs?ids=true&type=sms", NULL);
    says(MAIL_READER, 200, "{\"type\":\"mail\",\"paused\":false,\"counts\":{\"inactive\":1,", "GET",
         "/v1/stats", NULL);
    web_answer a = web_call_with(&w, "GET", "/v1/stats", guard.bearer[MAIL_READER], NULL);
    assert_null(strstr(a.body, "sms"));
    assert_null(strstr(a.body, "last_id"));
    web_free(&a);
    a = web_call_with(&w, "GET", "/v1/types", guard.bearer[MAIL_READER], NULL);
    assert_non_null(strstr(a.body, "mail"));
    assert_null(strstr(a.body, "sms"));
    web_free(&a);
}

/* 1 is mail, 2 is sms, 3 is other. */
static void a_token_of_two_types(void **state)
{
    (void)state;
    two_jobs();
    rt_add_type(&w.t, "other");
    says(BOTH_ADMIN, 200, "\"types\":[\"mail\",\"sms\"]}", "GET", "/v1/server", NULL);
    says(BOTH_ADMIN, 200, "\"id\":2", "GET", "/v1/jobs/2", NULL);
    says(BOTH_ADMIN, 404, "there is no job 3", "GET", "/v1/jobs/3", NULL);
    says(BOTH_ADMIN, 200, "{\"jobs\":[1,2],\"next\":null}", "GET", "/v1/jobs?ids=true", NULL);
    says(BOTH_ADMIN, 200, "{\"jobs\":[2],", "GET", "/v1/jobs?ids=true&type=sms", NULL);
    says(BOTH_ADMIN, 200, "{\"jobs\":[2,1],", "GET", "/v1/jobs?ids=true&order=desc&limit=2", NULL);
    says(BOTH_ADMIN, 200, "{\"jobs\":[2,1],\"next\":null}", "GET",
         "/v1/jobs?ids=true&order=desc&sort=created", NULL);
    says(BOTH_ADMIN, 403, "forbidden", "GET", "/v1/jobs?type=other", NULL);
    says(BOTH_ADMIN, 403, "name one", "GET", "/v1/errors", NULL);
    says(BOTH_ADMIN, 200, "\"counts\":{\"inactive\":2,", "GET", "/v1/stats", NULL);
    says(BOTH_ADMIN, 404, "no type", "GET", "/v1/types/other", NULL);
    says(BOTH_ADMIN, 403, "alone", "GET", "/metrics", NULL);
    says(BOTH_ADMIN, 403, "name one (mail, sms)", "POST", "/v1/jobs/bulk",
         "{\"action\":\"cancel\",\"all\":true}");
    says(BOTH_ADMIN, 403, "forbidden", "POST", "/v1/jobs/bulk",
         "{\"action\":\"cancel\",\"filter\":{\"type\":\"other\"}}");
    says(BOTH_ADMIN, 200, "\"done\":2,\"skipped\":1", "POST", "/v1/jobs/bulk",
         "{\"action\":\"cancel\",\"filter\":{\"ids\":[1,2,3]}}");
    says(BOTH_ADMIN, 403, "several types", "GET", "/jobs/cancelled/0..9/asc", NULL);
    says(BOTH_ADMIN, 200, "\"id\":2", "GET", "/jobs/sms/cancelled/0..9/asc", NULL);
    says(BOTH_ADMIN, 200, "\"inactiveCount\":0", "GET", "/stats", NULL);
    says(BOTH_ADMIN, 403, "forbidden", "POST", "/v1/jobs", "{\"type\":\"other\"}");
    says(BOTH_ADMIN, 201, "\"id\":4", "POST", "/v1/jobs", "{\"type\":\"sms\"}");
    says(BOTH_ADMIN, 403, "forbidden", "POST", "/v1/take",
         "{\"types\":[\"sms\",\"other\"],\"worker\":\"w\"}");
    says(BOTH_ADMIN, 200, "\"id\":4", "POST", "/v1/take",
         "{\"types\":[\"mail\",\"sms\"],\"worker\":\"w\"}");
    says(BOTH_ADMIN, 200, "\"error\"", "POST", "/v1/batch",
         "{\"ops\":[{\"op\":\"list\",\"limit\":5}]}");
    says(BOTH_ADMIN, 200, "\"answers\":[{\"error\":{\"code\":\"ENOENT\"", "POST", "/v1/batch",
         "{\"ops\":[{\"op\":\"get\",\"id\":3}]}");
    says(BOTH_ADMIN, 200, "\"answers\":[{\"job\":{\"id\":2,", "POST", "/v1/batch",
         "{\"ops\":[{\"op\":\"get\",\"id\":2}]}");
    assert_int_equal(rt_state(&w.t, 3), WEIR_STATE_INACTIVE);
}

static void adds_are_of_its_type(void **state)
{
    (void)state;
    says(MAIL_PRODUCER, 201, "\"id\":1", "POST", "/v1/jobs", "{\"type\":\"mail\"}");
    says(MAIL_PRODUCER, 403, "forbidden", "POST", "/v1/jobs", "{\"type\":\"sms\"}");
    says(MAIL_PRODUCER, 207,
         "{\"results\":[{\"error\":{\"code\":\"forbidden\",\"message\":\"this token may not add "
         "jobs of the type sms\",\"field\":\"type\"}},{\"id\":2,", "POST", "/v1/jobs",
         "[{\"type\":\"sms\"},{\"type\":\"mail\"}]");
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 2);
}

static void keys_are_the_tokens_own(void **state)
{
    (void)state;
    static const int who[] = { PRODUCER, MAIL_PRODUCER, ADMIN };
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < 3; i++) {
            char headers[sizeof guard.bearer[0] + 40], want[20];
            snprintf(headers, sizeof headers, "%sIdempotency-Key: k\r\n", guard.bearer[who[i]]);
            web_answer a = web_call_with(&w, "POST", "/v1/jobs", headers, "{\"type\":\"mail\"}");
            snprintf(want, sizeof want, "{\"id\":%d,", i + 1);
            assert_int_equal(a.status, 201);
            assert_non_null(strstr(a.body, want));
            web_free(&a);
        }
    }
}

static void orders_are_of_its_type(void **state)
{
    (void)state;
    two_jobs();
    says(MAIL_ADMIN, 200, "\"matched\":1,\"done\":0", "POST", "/v1/jobs/bulk",
         "{\"action\":\"cancel\",\"all\":true,\"dry_run\":true}");
    says(MAIL_ADMIN, 403, "forbidden", "POST", "/v1/jobs/bulk",
         "{\"action\":\"cancel\",\"filter\":{\"type\":\"sms\"}}");
    says(MAIL_ADMIN, 200, "\"matched\":1,\"done\":1,\"skipped\":1", "POST", "/v1/jobs/bulk",
         "{\"action\":\"cancel\",\"filter\":{\"ids\":[1,2]}}");
    says(MAIL_ADMIN, 200, "\"matched\":1,\"done\":1,\"skipped\":0", "POST", "/v1/jobs/bulk",
         "{\"action\":\"delete\",\"all\":true}");
    assert_int_equal(rt_state(&w.t, 2), WEIR_STATE_INACTIVE);
    says(MAIL_ADMIN, 200, "paused", "POST", "/v1/types/mail/pause", NULL);
    says(MAIL_ADMIN, 403, "forbidden", "POST", "/v1/types/sms/pause", NULL);
    says(MAIL_ADMIN, 403, "forbidden", "POST", "/v1/types/*/pause", NULL);
    says(MAIL_ADMIN, 403, "forbidden", "POST", "/v1/types/*/resume", NULL);
    says(MAIL_ADMIN, 403, "forbidden", "PATCH", "/v1/types/sms", "{}");
    says(MAIL_ADMIN, 403, "forbidden", "PATCH", "/v1/types/*", "{}");
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, start, stop)
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_role),
        CASE(who_am_i),
        CASE(other_jobs_are_not_there),
        CASE(lists_are_of_its_type),
        CASE(a_token_of_two_types),
        CASE(adds_are_of_its_type),
        CASE(keys_are_the_tokens_own),
        CASE(orders_are_of_its_type),
    };
    return cmocka_run_group_tests_name("api_roles", tests, NULL, NULL);
}
