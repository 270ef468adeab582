/* test_api_schedules.c - schedules over HTTP: put, list, firings to come, by hand, pause, removal;
 * roles, tokens that are bound to types, and each way to fail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/web_tokens.h"

enum { HOUR = 3600000 };

static web w;

enum { READER, PRODUCER, WORKER, ADMIN, MAIL_READER, MAIL_ADMIN, TOKENS };
static const web_token tokens[TOKENS] = {
    { "read", "", NULL }, { "produce", "", NULL }, { "work", "", NULL }, { "admin", "", NULL },
    { "read", "mail", NULL }, { "admin", "mail", NULL },
};

static int start(void **state)
{
    (void)state;
    web_start(&w, RT_MEM, true, NULL);
    rt_later(&w.t, HOUR - w.t.now % HOUR + 1);
    return 0;
}

static int start_guarded(void **state)
{
    (void)state;
    web_tokens_make(&guard, tokens, TOKENS);
    web_start(&w, RT_MEM, true, &(srv_options){ .tokens_file = guard.file });
    return 0;
}

static int stop(void **state)
{
    (void)state;
    web_stop(&w);
    return 0;
}

static int stop_guarded(void **state)
{
    web_stop(&w);
    return guard_teardown(state);
}

static void says(int token, int status, const char *part, const char *method, const char *target,
                 const char *body)
{
    web_token_says(&w, &guard, token, status, part, method, target, body);
}

static json_int_t number(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

#define HOURLY "{\"when\":\"@hourly\",\"job\":{\"type\":\"mail\",\"attempts\":3}}"

static void a_schedule_is_put_and_fires(void **state)
{
    (void)state;
    json_t *v = web_json(&w, 200, "PUT", "/v1/schedules/night%20%C3%BC", HOURLY);
    assert_string_equal(json_string_value(json_object_get(v, "name")), "night \xc3\xbc");
    assert_string_equal(json_string_value(json_object_get(v, "words")), "every hour");
    assert_non_null(strstr(json_string_value(json_object_get(v, "explanation")),
                           "It fires next on "));
    assert_int_equal(json_array_size(json_object_get(v, "next")), 5);
    assert_int_equal(number(v, "next_at"), w.t.now - 1 + HOUR);
    assert_int_equal(number(v, "fired"), 0);
    assert_null(json_object_get(v, "series"));
    json_decref(v);
    rt_later(&w.t, HOUR);
    rt_until_count(&w.t, WEIR_STATE_ANY, 1);
    UNTIL((v = web_json(&w, 200, "GET", "/v1/schedules/night%20%C3%BC", NULL), number(v, "fired") ||
           (json_decref(v), false)));
    const json_t *firing = json_array_get(json_object_get(v, "history"), 0);
    assert_string_equal(json_string_value(json_object_get(firing, "outcome")), "fired");
    assert_int_equal(number(firing, "job"), number(v, "last_job"));
    json_decref(v);
}

static void a_put_changes_what_is_there(void **state)
{
    (void)state;
    json_decref(web_json(&w, 200, "PUT", "/v1/schedules/s", HOURLY));
    web_says(&w, 200, "\"when\":\"30 6 * * 1\",\"zone\":\"Europe/Berlin\"", "PUT",
             "/v1/schedules/s",
             "{\"name\":\"s\",\"when\":\"30 6 * * 1\",\"zone\":\"Europe/Berlin\",\"jitter\":\"5s\","
             "\"missed\":\"all\",\"missed_limit\":7,\"overlap\":\"skip\",\"paused\":true,"
             "\"except\":\"2026-12-25\",\"job\":{\"type\":\"mail\"}}");
    web_says(&w, 200, "\"jitter\":5000,\"missed\":\"all\",\"missed_limit\":7,\"overlap\":\"skip\","
             "\"paused\":true", "GET", "/v1/schedules/s", NULL);
    web_says(&w, 200, "\"next\":[]", "GET", "/v1/schedules/s", NULL);
}

static void pages(void **state)
{
    (void)state;
    web_says(&w, 200, "{\"schedules\":[],\"next\":null}", "GET", "/v1/schedules", NULL);
    for (char name[] = "/v1/schedules/a"; name[14] < 'e'; name[14]++)
        json_decref(web_json(&w, 200, "PUT", name, HOURLY));
    json_t *v = web_json(&w, 200, "GET", "/v1/schedules?limit=3", NULL);
    assert_int_equal(json_array_size(json_object_get(v, "schedules")), 3);
    assert_string_equal(json_string_value(json_object_get(v, "next")), "c");
    json_decref(v);
    v = web_json(&w, 200, "GET", "/v1/schedules?limit=3&after=c", NULL);
    assert_int_equal(json_array_size(json_object_get(v, "schedules")), 1);
    assert_true(json_is_null(json_object_get(v, "next")));
    json_decref(v);
}

static void by_hand(void **state)
{
    (void)state;
    char body[100];
    json_decref(web_json(&w, 200, "PUT", "/v1/schedules/s", HOURLY));
    web_says(&w, 201, "{\"id\":1}", "POST", "/v1/schedules/s/fire", NULL);
    snprintf(body, sizeof body, "{\"from\":%lld,\"to\":%lld}", (long long)w.t.now - 3 * HOUR,
             (long long)w.t.now);
    web_says(&w, 201, "{\"added\":3}", "POST", "/v1/schedules/s/backfill", body);
    web_says(&w, 201, "{\"added\":0}", "POST", "/v1/schedules/s/backfill", body);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 4);
    web_error(&w, 413, "ELIMIT", "1000", "POST", "/v1/schedules/s/backfill", "{\"from\":0}");
    web_error(&w, 400, "EINVAL", "from", "POST", "/v1/schedules/s/backfill", "{}");
    snprintf(body, sizeof body, "{\"from\":%lld}", (long long)w.t.now + HOUR);
    web_error(&w, 400, "EINVAL", "to: ", "POST", "/v1/schedules/s/backfill", body);
    snprintf(body, sizeof body, "{\"from\":0,\"to\":%lld}", (long long)w.t.now + HOUR);
    web_error(&w, 400, "EINVAL", "in the past", "POST", "/v1/schedules/s/backfill", body);
    web_says(&w, 200, "\"outcome\":\"by hand\"", "GET", "/v1/schedules/s", NULL);
}

static void pause_resume_remove(void **state)
{
    (void)state;
    json_decref(web_json(&w, 200, "PUT", "/v1/schedules/s", HOURLY));
    web_says(&w, 200, "\"paused\":true", "POST", "/v1/schedules/s/pause", NULL);
    web_says(&w, 200, "\"paused\":false", "POST", "/v1/schedules/s/resume", NULL);
    web_says(&w, 204, "", "DELETE", "/v1/schedules/s", NULL);
    static const char *const asks[][2] = {
        { "GET", "" }, { "DELETE", "" }, { "POST", "/pause" }, { "POST", "/resume" },
        { "POST", "/fire" }, { "POST", "/backfill" } };
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        char target[60];
        snprintf(target, sizeof target, "/v1/schedules/s%s", asks[i][1]);
        web_error(&w, 404, "ENOENT", "there is no schedule s", asks[i][0], target, NULL);
    }
}

/* No name is a path of the API. */
static void every_name_can_be_read(void **state)
{
    (void)state;
    static const char *const names[] = { "next", "fire", "backfill", "pause", "firings" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char target[60], part[60];
        snprintf(target, sizeof target, "/v1/schedules/%s", names[i]);
        snprintf(part, sizeof part, "{\"name\":\"%s\",\"when\":\"@hourly\"", names[i]);
        web_says(&w, 200, part, "PUT", target, HOURLY);
        web_says(&w, 200, part, "GET", target, NULL);
        web_says(&w, 204, "", "DELETE", target, NULL);
    }
}

/* The mark of a task table is weir's own: no list has it, and nobody can fire it. */
static void what_weir_keeps_is_hidden(void **state)
{
    (void)state;
    const weir_schedule mark = { .name = WEIR_OWN_SCHEDULE "x", .when = "@hourly",
                                 .job = { .type = "a" } };
    assert_int_equal(weir_schedule_import(w.t.q, &mark, NULL, NULL), WEIR_OK);
    web_says(&w, 200, "{\"schedules\":[],\"next\":null}", "GET", "/v1/schedules", NULL);
    web_says(&w, 200, "\"name\":\"weir/x\"", "GET", "/v1/schedules/weir%2Fx", NULL);
    web_error(&w, 400, "EINVAL", "weir's own", "PUT", "/v1/schedules/weir%2Fx", HOURLY);
    web_error(&w, 400, "EINVAL", "weir's own", "POST", "/v1/schedules/weir%2Fx/fire", NULL);
    web_error(&w, 400, "EINVAL", "weir's own", "POST", "/v1/schedules/weir%2Fx/resume", NULL);
    web_error(&w, 400, "EINVAL", "weir's own", "POST", "/v1/schedules/weir%2Fx/backfill",
              "{\"from\":0}");
    web_says(&w, 204, "", "DELETE", "/v1/schedules/weir%2Fx", NULL);
}

static void firings_to_come(void **state)
{
    (void)state;
    web_says(&w, 200, "{\"words\":\"at 06:30 on Monday (Europe/Berlin)\","
             "\"next\":[1774845000000,1775449800000]}", "GET",
             "/v1/firings?when=30+6+*+*+1&zone=Europe/Berlin&n=2&from=1774569600000", NULL);
    web_says(&w, 200, "\"next\":[1775449800000]", "GET",
             "/v1/firings?when=30+6+*+*+1&zone=Europe/Berlin&n=1&from=1774569600000"
             "&except=2026-03-30", NULL);
    web_error(&w, 400, "EINVAL", "column 5", "GET", "/v1/firings?when=0+0+32+*+*", NULL);
    web_error(&w, 400, "EINVAL", "when: missing", "GET", "/v1/firings", NULL);
    web_error(&w, 400, "EINVAL", "n", "GET", "/v1/firings?when=@daily&n=1001", NULL);
}

static void what_is_refused(void **state)
{
    (void)state;
    static const struct { const char *body, *part; } cases[] = {
        { "{\"job\":{\"type\":\"a\"}}", "when" },
        { "{\"when\":\"@daily\"}", "job" },
        { "{\"when\":\"@daily\",\"job\":{}}", "type" },
        { "{\"when\":\"61 * * * *\",\"job\":{\"type\":\"a\"}}", "column 1" },
        { "{\"when\":\"@daily\",\"zone\":\"Nowhere\",\"job\":{\"type\":\"a\"}}", "Nowhere" },
        { "{\"when\":\"@daily\",\"overlap\":\"no\",\"job\":{\"type\":\"a\"}}", "overlap" },
        { "{\"when\":\"@daily\",\"fired\":1,\"job\":{\"type\":\"a\"}}", "fired" },
        { "{\"name\":\"other\",\"when\":\"@daily\",\"job\":{\"type\":\"a\"}}", "name" },
        { "{\"when\":", "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        web_error(&w, 400, "EINVAL", cases[i].part, "PUT", "/v1/schedules/s", cases[i].body);
    web_says(&w, 200, "{\"schedules\":[]", "GET", "/v1/schedules", NULL);
}

static void roles(void **state)
{
    (void)state;
    static const struct { const char *method, *target, *body; unsigned role; } asks[] = {
        { "PUT", "/v1/schedules/s", HOURLY, WEIR_ROLE_ADMIN },
        { "GET", "/v1/schedules", NULL, WEIR_ROLE_READ },
        { "GET", "/v1/firings?when=@daily", NULL, WEIR_ROLE_READ },
        { "GET", "/v1/schedules/s", NULL, WEIR_ROLE_READ },
        { "POST", "/v1/schedules/s/pause", NULL, WEIR_ROLE_ADMIN },
        { "POST", "/v1/schedules/s/resume", NULL, WEIR_ROLE_ADMIN },
        { "POST", "/v1/schedules/s/fire", NULL, WEIR_ROLE_ADMIN },
        { "POST", "/v1/schedules/s/backfill", "{\"from\":0,\"to\":1}", WEIR_ROLE_ADMIN },
        { "DELETE", "/v1/schedules/none", NULL, WEIR_ROLE_ADMIN },
    };
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        says(-1, 401, "error", asks[i].method, asks[i].target, asks[i].body);
        for (int token = 0; token < TOKENS; token++) {
            unsigned has;
            assert_true(srv_roles_parse(tokens[token].roles, &has));
            web_answer a = web_call_with(&w, asks[i].method, asks[i].target, guard.bearer[token],
                                         asks[i].body);
            if ((a.status == 403) != !(has & asks[i].role) || a.status == 401 || a.status >= 500)
                fail_msg("%s: %s %s: %d %s", tokens[token].roles, asks[i].method, asks[i].target,
                         a.status, a.body);
            web_free(&a);
        }
    }
}

static void a_token_for_a_type(void **state)
{
    (void)state;
    says(ADMIN, 200, "", "PUT", "/v1/schedules/sms",
         "{\"when\":\"@daily\",\"job\":{\"type\":\"sms\"}}");
    says(MAIL_ADMIN, 200, "", "PUT", "/v1/schedules/mail", HOURLY);
    says(MAIL_READER, 200, "{\"schedules\":[{\"name\":\"mail\"", "GET", "/v1/schedules", NULL);
    web_answer a = web_call_with(&w, "GET", "/v1/schedules", guard.bearer[MAIL_READER], NULL);
    assert_null(strstr(a.body, "sms"));
    web_free(&a);
    says(MAIL_READER, 404, "there is no schedule sms", "GET", "/v1/schedules/sms", NULL);
    says(MAIL_ADMIN, 404, "there is no schedule sms", "POST", "/v1/schedules/sms/fire", NULL);
    says(MAIL_ADMIN, 404, "there is no schedule sms", "DELETE", "/v1/schedules/sms", NULL);
    says(MAIL_ADMIN, 403, "of the type sms", "PUT", "/v1/schedules/new",
         "{\"when\":\"@daily\",\"job\":{\"type\":\"sms\"}}");
    says(MAIL_ADMIN, 403, "another type", "PUT", "/v1/schedules/sms", HOURLY);
    says(ADMIN, 200, "\"type\":\"sms\"", "GET", "/v1/schedules/sms", NULL);
}

#define CASE(fn)    cmocka_unit_test_setup_teardown(fn, start, stop)
#define GUARDED(fn) cmocka_unit_test_setup_teardown(fn, start_guarded, stop_guarded)
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_schedule_is_put_and_fires),
        CASE(a_put_changes_what_is_there),
        CASE(pages),
        CASE(by_hand),
        CASE(pause_resume_remove),
        CASE(every_name_can_be_read),
        CASE(what_weir_keeps_is_hidden),
        CASE(firings_to_come),
        CASE(what_is_refused),
        GUARDED(roles),
        GUARDED(a_token_for_a_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
