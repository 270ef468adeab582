/* test_api_tasks.c - tasks over HTTP: submit one and many, find, list, adjust, fire, cancel, wait;
 * roles, tokens that are bound to types, and each way to fail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/access/tokens.h"
#include "support/server_rig.h"

static web  w;
static char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 16];

enum { READER, PRODUCER, ADMIN, MAIL_READER, MAIL_PRODUCER, MAIL_ADMIN, TOKENS };
static const struct { const char *roles, *type; } tokens[TOKENS] = {
    { "read", "" }, { "produce", "" }, { "admin", "" }, { "read", "mail" }, { "produce", "mail" },
    { "admin", "mail" },
};
static char bearer[TOKENS][SRV_TOKEN_TEXT + 40];

static int start(void **state)
{
    (void)state;
    web_start(&w, RT_MEM, false, NULL);
    return 0;
}

static int start_guarded(void **state)
{
    (void)state;
    assert_true(tempdir_make(dir));
    snprintf(file, sizeof file, "%s/tokens.json", dir);
    for (int i = 0; i < TOKENS; i++) {
        srv_caller c = { 0 };
        weir_error err;
        char       text[SRV_TOKEN_TEXT];
        assert_true(srv_roles_parse(tokens[i].roles, &c.roles));
        snprintf(c.name, sizeof c.name, "token-%d", i);
        if (*tokens[i].type)
            assert_true(srv_caller_add_type(&c, tokens[i].type));
        if (srv_tokens_add(file, &c, 1, text, &err))
            fail_msg("%s", err.msg);
        snprintf(bearer[i], sizeof bearer[i], "Authorization: Bearer %s\r\n", text);
    }
    web_start(&w, RT_MEM, false, &(srv_options){ .tokens_file = file });
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
    stop(state);
    tempdir_remove(dir);
    return 0;
}

static void says(int token, int status, const char *part, const char *method, const char *target,
                 const char *body)
{
    web_answer a = web_call_with(&w, method, target, token < 0 ? NULL : bearer[token], body);
    if (a.status != status || !strstr(a.body ? a.body : "", part))
        fail_msg("token %d: %s %s: %d %.300s, not %d with %s", token, method, target, a.status,
                 a.body ? a.body : "", status, part);
    web_free(&a);
}

#define LATER "\"run_at\":4102444800000"

static void tasks_are_submitted_and_found(void **state)
{
    (void)state;
    says(-1, 201, "{\"id\":\"t1\",\"job\":1}", "POST", "/v1/tasks",
         "{\"service\":\"mail\",\"id\":\"t1\",\"relative_id\":\"x\",\"attachment\":[1]," LATER "}");
    says(-1, 409, "there is a task t1", "POST", "/v1/tasks",
         "{\"service\":\"mail\",\"id\":\"t1\"}");
    says(-1, 200, "\"id\":\"t1\"", "POST", "/v1/tasks?or_find=true",
         "{\"service\":\"mail\",\"id\":\"t1\"}");
    says(-1, 201, "\"state\":\"ready\"", "POST", "/v1/tasks?or_find=true",
         "{\"service\":\"mail\",\"id\":\"t2\"}");
    says(-1, 200, "\"attachment\":[1]", "GET", "/v1/tasks/t1", NULL);
    says(-1, 404, "there is no task t9", "GET", "/v1/tasks/t9", NULL);
    says(-1, 200, "[{\"id\":\"a\",\"job\":3},{\"error\":{\"code\":\"EINVAL\"", "POST", "/v1/tasks",
         "[{\"service\":\"mail\",\"id\":\"a\",\"classifier\":\"c\"},{\"id\":\"b\"}]");
    says(-1, 200, "\"next\":null", "GET", "/v1/tasks", NULL);
    says(-1, 200, "\"id\":\"a\"", "GET", "/v1/tasks?classifier=c", NULL);
    says(-1, 200, "\"id\":\"t1\"", "GET", "/v1/tasks?relative_ids=y,x&state=ready", NULL);
    says(-1, 200, "{\"tasks\":[],\"next\":null}", "GET", "/v1/tasks?state=timed_out", NULL);
    says(-1, 200, "\"next\":\"0.1\"", "GET", "/v1/tasks?limit=1", NULL);
    says(-1, 200, "\"id\":\"t2\"", "GET", "/v1/tasks?limit=1&after=0.1", NULL);
}

static void tasks_are_changed(void **state)
{
    (void)state;
    says(-1, 201, "\"var1\":\"a\"", "PUT", "/v1/tasks/t1",
         "{\"service\":\"mail\",\"relative_id\":\"x\",\"var1\":\"a\"," LATER "}");
    says(-1, 200, "\"var1\":\"b\"", "PUT", "/v1/tasks/t1", "{\"var1\":\"b\"}");
    says(-1, 400, "it cannot change", "PUT", "/v1/tasks/t1", "{\"service\":\"other\"}");
    says(-1, 404, "to submit it, name its service", "PUT", "/v1/tasks/t9", "{\"var1\":\"b\"}");
    says(-1, 404, "there is no task cancel", "GET", "/v1/tasks/cancel", NULL);
    says(-1, 400, "not the id in the path", "PUT", "/v1/tasks/t1", "{\"id\":\"t2\"}");
    says(-1, 200, "\"state\":\"ready\"", "POST", "/v1/tasks/t1/fire", NULL);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_INACTIVE), 1);
    says(-1, 404, "there is no task", "POST", "/v1/tasks/t9/fire", NULL);
    says(-1, 200, "{\"cancelled\":1}", "POST", "/v1/tasks/cancel",
         "{\"relative_ids\":[\"x\"],\"reason\":\"withdrawn\"}");
    says(-1, 200, "\"result_state\":\"withdrawn\"", "GET", "/v1/tasks/t1", NULL);
    says(-1, 200, "{\"cancelled\":0}", "POST", "/v1/tasks/cancel", "{\"ids\":[\"t1\",\"t9\"]}");
    says(-1, 409, "the task t1 is cancelled, not ready", "POST", "/v1/tasks/t1/fire", NULL);
    says(-1, 409, "the task t1 is cancelled, not ready", "PUT", "/v1/tasks/t1", "{" LATER "}");
    says(-1, 200, "\"var1\":\"c\"", "PUT", "/v1/tasks/t1", "{\"var1\":\"c\"}");
    says(-1, 200, "{\"armed\":0}", "POST", "/v1/tasks/initialize", NULL);
}

static weir_code answer(weir_task_run *run, const weir_task *task, void *ctx)
{
    (void)ctx;
    return weir_task_done(run, "hello", task->spec.attachment);
}

static void a_task_is_waited_for(void **state)
{
    (void)state;
    weir_tasks *t;
    weir_error  err;
    assert_int_equal(weir_tasks_open(&t, w.t.q, NULL, &err), WEIR_OK);
    weir_task_service service = { .run = answer };
    assert_int_equal(weir_task_serve(t, "mail", &service, &err), WEIR_OK);
    assert_int_equal(weir_tasks_run(t, 1, &err), WEIR_OK);
    says(-1, 200, "\"result\":[7]", "POST", "/v1/tasks?wait=60s",
         "{\"service\":\"mail\",\"attachment\":[7]}");
    says(-1, 202, "\"unfinished\":true", "POST", "/v1/tasks?wait=20ms",
         "{\"service\":\"nobody\"}");
    assert_int_equal(weir_tasks_stop(t, PATIENCE_MS, &err), WEIR_OK);
    weir_tasks_close(t);
}

static void what_is_refused(void **state)
{
    (void)state;
    says(-1, 400, "service: missing", "POST", "/v1/tasks", "{}");
    says(-1, 400, "colour", "POST", "/v1/tasks", "{\"service\":\"a\",\"colour\":1}");
    says(-1, 400, "\"field\":\"schedule\"", "POST", "/v1/tasks",
         "{\"service\":\"a\",\"schedule\":\"61 * * * *\"}");
    says(-1, 400, "only for one task", "POST", "/v1/tasks?wait=1s", "[{\"service\":\"a\"}]");
    says(-1, 400, "only for one task", "POST", "/v1/tasks?or_find=true", "[]");
    says(-1, 400, "not together", "POST", "/v1/tasks?or_find=true&wait=1s", "{\"service\":\"a\"}");
    says(-1, 400, "unknown state", "GET", "/v1/tasks?state=odd", NULL);
    says(-1, 400, "after", "GET", "/v1/tasks?after=x", NULL);
    says(-1, 400, "after", "GET", "/v1/tasks?after=1.1.1", NULL);
    says(-1, 400, "expected either", "POST", "/v1/tasks/cancel", "{}");
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 0);
}

static void roles_are_needed(void **state)
{
    (void)state;
    const char *mail = "{\"service\":\"mail\",\"id\":\"m\"," LATER "}";
    says(READER, 403, "", "POST", "/v1/tasks", mail);
    says(PRODUCER, 201, "\"m\"", "POST", "/v1/tasks", mail);
    says(READER, 200, "\"m\"", "GET", "/v1/tasks/m", NULL);
    says(READER, 403, "", "PUT", "/v1/tasks/m", "{}");
    says(PRODUCER, 403, "", "POST", "/v1/tasks/m/fire", NULL);
    says(PRODUCER, 403, "", "POST", "/v1/tasks/cancel", "{\"ids\":[\"m\"]}");
    says(READER, 403, "", "POST", "/v1/tasks/initialize", NULL);
    says(ADMIN, 200, "\"ready\"", "POST", "/v1/tasks/m/fire", NULL);
}

static void tokens_of_types_have_their_tasks(void **state)
{
    (void)state;
    says(MAIL_PRODUCER, 201, "\"m\"", "POST", "/v1/tasks", "{\"service\":\"mail\",\"id\":\"m\"}");
    says(MAIL_PRODUCER, 403, "", "POST", "/v1/tasks", "{\"service\":\"pay\",\"id\":\"p\"}");
    says(MAIL_PRODUCER, 403, "", "POST", "/v1/tasks",
         "[{\"service\":\"mail\"},{\"service\":\"pay\"}]");
    says(ADMIN, 201, "\"p\"", "POST", "/v1/tasks", "{\"service\":\"pay\",\"id\":\"p\"}");
    says(MAIL_READER, 404, "there is no task p", "GET", "/v1/tasks/p", NULL);
    says(MAIL_READER, 200, "\"id\":\"m\"", "GET", "/v1/tasks/m", NULL);
    says(MAIL_READER, 200, "{\"tasks\":[{\"id\":\"m\"", "GET", "/v1/tasks", NULL);
    says(MAIL_READER, 200, "\"job\":1}],\"next\":null}", "GET", "/v1/tasks", NULL);
    says(MAIL_ADMIN, 404, "there is no task p", "POST", "/v1/tasks/p/fire", NULL);
    says(MAIL_ADMIN, 403, "", "PUT", "/v1/tasks/p", "{\"service\":\"pay\"}");
    says(MAIL_ADMIN, 404, "there is no task p", "PUT", "/v1/tasks/p", "{\"service\":\"mail\"}");
    says(MAIL_ADMIN, 403, "", "POST", "/v1/tasks/cancel", "{\"ids\":[\"p\"]}");
    says(MAIL_ADMIN, 200, "\"ready\"", "POST", "/v1/tasks/m/fire", NULL);
}

#define TEST(fn)    cmocka_unit_test_setup_teardown(fn, start, stop)
#define GUARDED(fn) cmocka_unit_test_setup_teardown(fn, start_guarded, stop_guarded)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tasks_are_submitted_and_found), TEST(tasks_are_changed), TEST(a_task_is_waited_for),
        TEST(what_is_refused), GUARDED(roles_are_needed),
        GUARDED(tokens_of_types_have_their_tasks),
    };
    return cmocka_run_group_tests_name("api-tasks", tests, NULL, NULL);
}
