/* test_audit.c - the audit log: which requests are recorded and as what, its filters and pages, its
 * limits, its file, and who may read it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/access/audit.h"
#include "support/web_tokens.h"

static web w;

enum { READER, WORKER, ADMIN, MAIL_ADMIN, TOKENS };
static const web_token tokens[TOKENS] = {
    { "read", "", "eve" }, { "work,produce", "", "bob" }, { "admin", "", "ann" },
    { "admin", "mail", "mia" },
};

static void serve(srv_audit_mode mode)
{
    web_start(&w, RT_MEM, true, &(srv_options){ .data_dir = guard.dir, .audit = mode });
}

static int make(void **state)
{
    (void)state;
    web_tokens_make(&guard, tokens, TOKENS);
    return 0;
}

static int start(void **state)
{
    make(state);
    serve(SRV_AUDIT_ADMIN);
    return 0;
}

static int stop(void **state)
{
    web_stop(&w);
    return guard_teardown(state);
}

static int call(int token, const char *method, const char *target, const char *body)
{
    web_answer a = web_call_with(&w, method, target, guard.bearer[token], body);
    int        status = a.status;
    web_free(&a);
    return status;
}

/* "token action status count" of each entry, the newest first, with "; " between. */
static char *entries(const char *query)
{
    static char text[4000];
    char        target[200];
    size_t      n = 0, i;
    json_t     *each;
    snprintf(target, sizeof target, "/v1/audit%s", query);
    web_answer a = web_call_with(&w, "GET", target, guard.bearer[ADMIN], NULL);
    assert_int_equal(a.status, 200);
    json_t *all = json_loads(a.body, 0, NULL);
    web_free(&a);
    *text = 0;
    json_array_foreach(json_object_get(all, "entries"), i, each) {
        const char *token = json_string_value(json_object_get(each, "token"));
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %s %d %d", i ? "; " : "",
                              token ? token : "-",
                              json_string_value(json_object_get(each, "action")),
                              (int)json_integer_value(json_object_get(each, "status")),
                              (int)json_integer_value(json_object_get(each, "count")));
    }
    json_decref(all);
    return text;
}

static void what_is_recorded(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        rt_add_type(&w.t, "mail");
    assert_int_equal(call(ADMIN, "POST", "/v1/jobs/1/cancel", NULL), 200);
    assert_int_equal(call(ADMIN, "POST", "/v1/jobs/1/retry", NULL), 200);
    assert_int_equal(call(ADMIN, "PATCH", "/v1/jobs/2", "{\"priority\":5}"), 200);
    assert_int_equal(call(ADMIN, "DELETE", "/job/3", NULL), 200);
    assert_int_equal(call(ADMIN, "POST", "/v1/types/mail/pause", NULL), 200);
    assert_int_equal(call(ADMIN, "PATCH", "/v1/types/mail", "{\"search\":true}"), 200);
    assert_string_equal(entries(""),
                        "ann type.settings 200 0; ann type.pause 200 0; ann job.delete 200 1; "
                        "ann job.change 200 1; ann job.retry 200 1; ann job.cancel 200 1");
    /* looking, working and what is refused without a token are not; what a token may not is */
    assert_int_equal(call(WORKER, "POST", "/v1/jobs", "{\"type\":\"sms\"}"), 201);
    assert_int_equal(call(WORKER, "POST", "/v1/take",
                          "{\"types\":[\"sms\"],\"worker\":\"w\"}"), 200);
    assert_int_equal(call(ADMIN, "GET", "/v1/jobs/1", NULL), 200);
    web_error(&w, 401, "unauthorized", "a token is needed", "DELETE", "/v1/jobs/1", NULL);
    assert_string_equal(entries("?limit=1"), "ann type.settings 200 0");
    assert_int_equal(call(READER, "DELETE", "/v1/jobs/1", NULL), 403);
    assert_int_equal(call(MAIL_ADMIN, "DELETE", "/v1/jobs/99", NULL), 404);
    assert_string_equal(entries("?limit=2"), "mia job.delete 404 0; eve job.delete 403 0");
}

/* Kue answers 200 to a mistake, Vert.x Kue 204 to a DELETE of what is not there. */
static void what_a_route_of_kue_did(void **state)
{
    (void)state;
    rt_add_type(&w.t, "mail");
    assert_int_equal(call(ADMIN, "DELETE", "/job/99", NULL), 200);
    assert_int_equal(call(ADMIN, "PUT", "/job/99/state/complete", NULL), 200);
    assert_int_equal(call(ADMIN, "PUT", "/job/99/priority/1", NULL), 200);
    assert_int_equal(call(ADMIN, "PUT", "/job/1/priority/much", NULL), 200);
    assert_string_equal(entries(""), "ann job.change 400 0; ann job.change 404 0; "
                                     "ann job.state 404 0; ann job.delete 404 0");
    assert_int_equal(call(ADMIN, "DELETE", "/job/1", NULL), 200);
    assert_string_equal(entries("?limit=1"), "ann job.delete 200 1");
    web_stop(&w);
    web_start(&w, RT_MEM, true, &(srv_options){ .data_dir = guard.dir, .audit = SRV_AUDIT_ADMIN,
                                                .api = SRV_API_VERTX });
    rt_add_type(&w.t, "mail");
    assert_int_equal(call(ADMIN, "DELETE", "/job/99", NULL), 204);
    assert_string_equal(entries("?limit=1"), "ann job.delete 404 0");
    assert_int_equal(call(ADMIN, "DELETE", "/job/1", NULL), 204);
    assert_string_equal(entries("?limit=1"), "ann job.delete 204 1");
}

static void bulk_and_batches(void **state)
{
    (void)state;
    for (int i = 0; i < 150; i++)
        rt_add_type(&w.t, "mail");
    assert_int_equal(call(ADMIN, "POST", "/v1/jobs/bulk",
                          "{\"action\":\"cancel\",\"all\":true,\"dry_run\":true}"), 200);
    assert_string_equal(entries(""), "");
    assert_int_equal(call(ADMIN, "POST", "/v1/jobs/bulk",
                          "{\"action\":\"cancel\",\"filter\":{\"type\":\"mail\"}}"), 200);
    assert_string_equal(entries("?id=1"), "ann job.bulk 200 150");
    assert_string_equal(entries("?id=150"), "");            /* past SRV_AUDIT_IDS */
    web_answer a = web_call_with(&w, "GET", "/v1/audit", guard.bearer[ADMIN], NULL);
    assert_non_null(strstr(a.body, "\"detail\":\"cancel, type mail: 150 of 150 done\""));
    assert_non_null(strstr(a.body, "\"address\":\"127.0.0.1:"));
    assert_non_null(strstr(a.body, "\"path\":\"/v1/jobs/bulk\""));
    assert_non_null(strstr(a.body, "\"mode\":\"admin\",\"next\":null}"));
    web_free(&a);
    assert_int_equal(call(ADMIN, "POST", "/v1/batch",
                          "{\"ops\":[{\"op\":\"add\",\"jobs\":[{\"type\":\"mail\"}]},"
                          "{\"op\":\"remove\",\"id\":1},{\"op\":\"remove\",\"id\":2},"
                          "{\"op\":\"remove\",\"id\":999},{\"op\":\"get\",\"id\":3},"
                          "{\"op\":\"update\",\"id\":3,\"state\":\"inactive\"},"
                          "{\"op\":\"configure\",\"type\":\"mail\",\"paused\":true}]}"), 200);
    assert_string_equal(entries("?limit=4"), "ann type.pause 200 0; ann job.change 200 1; "
                                             "ann job.delete 404 0; ann job.delete 200 2");
    assert_int_equal(call(READER, "POST", "/v1/batch",
                          "{\"ops\":[{\"op\":\"remove\",\"id\":3}]}"), 200);
    assert_string_equal(entries("?limit=1"), "eve job.delete 403 0");
}

static void filters_and_pages(void **state)
{
    (void)state;
    rt_add_type(&w.t, "mail");
    for (int i = 0; i < 5; i++) {
        call(ADMIN, "POST", "/v1/types/mail/pause", NULL);
        call(MAIL_ADMIN, "PATCH", "/v1/jobs/1", "{\"priority\":5}");
    }
    assert_string_equal(entries("?token=mia&limit=1"), "mia job.change 200 1");
    assert_string_equal(entries("?action=type.pause&limit=1"), "ann type.pause 200 0");
    assert_string_equal(entries("?action=type&limit=1"), "ann type.pause 200 0");
    assert_string_equal(entries("?action=typ"), "");
    assert_string_equal(entries("?token="), "");
    assert_string_equal(entries("?id=2"), "");
    assert_string_equal(entries("?since=9000000000000"), "");
    int  n = 0;
    char query[100] = "?limit=3";
    for (;;) {
        char target[120], *next;
        snprintf(target, sizeof target, "/v1/audit%s", query);
        web_answer a = web_call_with(&w, "GET", target, guard.bearer[ADMIN], NULL);
        for (char *at = a.body; (at = strstr(at, "\"number\":")); at++)
            n++;
        next = strstr(a.body, "\"next\":\"");
        if (next)
            snprintf(query, sizeof query, "?limit=3&after=%d", atoi(next + 8));
        web_free(&a);
        if (!next)
            break;
    }
    assert_int_equal(n, 10);
    web_answer a = web_call_with(&w, "GET", "/v1/audit?limit=0", guard.bearer[ADMIN], NULL);
    assert_int_equal(a.status, 400);
    web_free(&a);
}

static void who_may_read_it(void **state)
{
    (void)state;
    assert_int_equal(call(ADMIN, "GET", "/v1/audit", NULL), 200);
    assert_int_equal(call(READER, "GET", "/v1/audit", NULL), 403);
    assert_int_equal(call(WORKER, "GET", "/v1/audit", NULL), 403);
    assert_int_equal(call(MAIL_ADMIN, "GET", "/v1/audit", NULL), 403);     /* it has all types */
    web_error(&w, 401, "unauthorized", "a token is needed", "GET", "/v1/audit", NULL);
    assert_int_equal(call(READER, "GET", "/v1/stats", NULL), 200);
    assert_string_equal(entries(""), "mia audit.read 403 0; bob audit.read 403 0; "
                                     "eve audit.read 403 0");
}

static void it_survives_a_restart(void **state)
{
    (void)state;
    struct stat st;
    char        path[TEMPDIR_MAX + 16];
    rt_add_type(&w.t, "mail");
    call(ADMIN, "POST", "/v1/jobs/1/cancel", NULL);
    snprintf(path, sizeof path, "%s/audit.log", guard.dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    int fd = open(path, O_WRONLY | O_APPEND);               /* cut short by a full disk */
    assert_int_equal(write(fd, "{\"number\":7,\n", 13), 13);
    close(fd);
    web_stop(&w);
    serve(SRV_AUDIT_ADMIN);
    assert_string_equal(entries("?id=1"), "ann job.cancel 200 1");
    call(ADMIN, "POST", "/v1/types/mail/resume", NULL);
    assert_string_equal(entries(""), "ann type.resume 200 0; ann job.cancel 200 1");
}

static void tokens_that_come_and_go(void **state)
{
    (void)state;
    rt        *t = &w.t;
    char       text[SRV_TOKEN_TEXT];
    srv_caller c = { .name = "new", .roles = WEIR_ROLE_READ };
    OK(srv_tokens_add(guard.file, &c, 1, text, &t->err));
    OK(srv_reload(w.s, &t->err));
    OK(srv_tokens_remove(guard.file, "eve", &t->err));
    OK(srv_reload(w.s, &t->err));
    assert_string_equal(entries("?action=token"), "- token.remove 200 0; - token.add 200 0");
}

static void all_and_off(void **state)
{
    (void)state;
    serve(SRV_AUDIT_ALL);
    call(WORKER, "POST", "/v1/jobs", "[{\"type\":\"sms\"},{\"type\":\"sms\"}]");
    call(WORKER, "POST", "/v1/take", "{\"types\":[\"sms\"],\"worker\":\"w\"}");
    call(WORKER, "POST", "/v1/finish", "{\"jobs\":[{\"id\":1,\"delivery\":1}]}");
    call(WORKER, "POST", "/v1/batch", "{\"ops\":[{\"op\":\"add\",\"jobs\":[{\"type\":\"sms\"}]}]}");
    assert_string_equal(entries("?id=1"), "bob job.finish 200 1; bob job.take 200 1; "
                                          "bob job.add 201 2");
    assert_string_equal(entries("?limit=1"), "bob job.add 200 1");
    web_stop(&w);
    serve(SRV_AUDIT_OFF);
    call(ADMIN, "POST", "/v1/types/sms/pause", NULL);
    assert_string_equal(entries(""), "");
}

/* ---- the log alone ---- */

static void it_stays_within_its_limits(void **state)
{
    (void)state;
    srv_audit *a;
    weir_error err;
    char       path[TEMPDIR_MAX + 16], aside[TEMPDIR_MAX + 16], long_text[1000];
    struct stat st;
    weir_buf    out = { 0 };
    enum { LIMIT = 20000 };
    memset(long_text, 'x', sizeof long_text);
    long_text[999] = 0;
    snprintf(path, sizeof path, "%s/audit.log", guard.dir);
    snprintf(aside, sizeof aside, "%s/audit.log.1", guard.dir);
    assert_int_equal(srv_audit_create(&a, guard.dir, LIMIT, &err), WEIR_OK);
    for (int i = 0; i < SRV_AUDIT_ENTRIES + 10; i++)
        srv_audit_record(a, &(srv_audit_item){ .at = 5, .action = "job.x", .detail = long_text,
                                               .token = "t", .status = 200 });
    assert_true(stat(path, &st) == 0 && st.st_size <= LIMIT);
    assert_true(stat(aside, &st) == 0 && st.st_size <= LIMIT && st.st_size > LIMIT / 2);
    srv_audit_query q = { .limit = 2 * SRV_AUDIT_ENTRIES };
    assert_true(srv_audit_list(a, &q, &out) == 0);
    size_t n = 0;
    for (const char *at = out.data; (at = strstr(at, "\"number\":")); at++)
        n++;
    assert_in_range(n, 1000, SRV_AUDIT_ENTRIES);
    assert_null(strstr(out.data, "\"number\":10,"));         /* the oldest made room */
    weir__buf_fini(&out);
    srv_audit_destroy(a);
    /* both files are read again, and numbers go on */
    assert_int_equal(srv_audit_create(&a, guard.dir, LIMIT, &err), WEIR_OK);
    srv_audit_record(a, &(srv_audit_item){ .at = 5, .action = "job.y", .status = 200 });
    q.limit = 2;
    assert_true(srv_audit_list(a, &q, &out) == SRV_AUDIT_ENTRIES + 10);
    assert_non_null(strstr(out.data, "{\"number\":10011,"));
    weir__buf_fini(&out);
    srv_audit_destroy(a);
}

/* A route that changes something has a name in the log, and no route that only looks has. */
static void every_route_has_a_name(void **state)
{
    (void)state;
    for (const srv_route *const *table = srv_routes; *table; table++) {
        for (const srv_route *r = *table; r->method; r++) {
            const char *all = srv_audit_action(r, SRV_AUDIT_ALL, true);
            const char *admin = srv_audit_action(r, SRV_AUDIT_ADMIN, true);
            bool        looks = !strcmp(r->method, "GET") && strcmp(r->path, "/inactive/{id}") != 0;
            assert_null(srv_audit_action(r, SRV_AUDIT_OFF, true));
            if (looks || r->roles == WEIR_ROLE_ALL || (r->flags & SRV_OPEN))
                assert_null(all);
            else if (!all || !strchr(all, '.') || *all == '/')
                fail_msg("%s %s: %s", r->method, r->path, all ? all : "not recorded");
            if (!looks && r->roles == WEIR_ROLE_ADMIN)
                assert_string_equal(admin, all);
            else
                assert_null(admin);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_recorded, start, stop),
        cmocka_unit_test_setup_teardown(what_a_route_of_kue_did, start, stop),
        cmocka_unit_test_setup_teardown(bulk_and_batches, start, stop),
        cmocka_unit_test_setup_teardown(filters_and_pages, start, stop),
        cmocka_unit_test_setup_teardown(who_may_read_it, start, stop),
        cmocka_unit_test_setup_teardown(it_survives_a_restart, start, stop),
        cmocka_unit_test_setup_teardown(tokens_that_come_and_go, start, stop),
        cmocka_unit_test_setup_teardown(all_and_off, make, stop),
        cmocka_unit_test(every_route_has_a_name),
        cmocka_unit_test_setup_teardown(it_stays_within_its_limits, start, stop),
    };
    return cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
