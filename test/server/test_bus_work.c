/* test_bus_work.c - the work queues of a server: made and removed by the API and its settings, kept
 * through a restart, and used over the TCP bridge. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/access/tokens.h"
#include "server/bus/workqueues.h"
#include "support/bus_client.h"

static void answers(json_t *message, const char *body)
{
    char *text = json_dumps(json_object_get(message, "body"), JSON_ENCODE_ANY | JSON_COMPACT);
    assert_non_null(text);
    assert_string_equal(text, body);
    free(text);
    json_decref(message);
}

static long long number(web *w, size_t i, const char *name)
{
    json_t   *all = web_json(w, 200, "GET", "/v1/workqueues", NULL);
    long long n = json_integer_value(json_object_get(
        json_array_get(json_object_get(all, "work_queues"), i), name));
    json_decref(all);
    return n;
}

/* One that processes a message: replies with `body`. */
static void process(int fd, const char *body)
{
    char reply[WEIR_REPLY_ADDRESS];
    free(tcp_next_request(fd, reply));
    bus_send(fd, reply, NULL, NULL, body);
}

static void made_and_removed(void **state)
{
    (void)state;
    web w;
    bus_start(&w, NULL);
    int worker = bus_dial(&w), sender = bus_dial(&w);
    web_says(&w, 200, "{\"work_queues\":[]}", "GET", "/v1/workqueues", NULL);
    web_says(&w, 201, "{\"address\":\"mail/out\",\"process_timeout\":300000,", "PUT",
             "/v1/workqueues/mail%2Fout", "{}");
    web_says(&w, 200, "\"persist\":false", "PUT", "/v1/workqueues/mail%2Fout",
             "{\"process_timeout\":\"5m\"}");
    web_error(&w, 409, "ESTATE", "other settings", "PUT", "/v1/workqueues/mail%2Fout",
              "{\"persist\":true}");
    bus_register(worker, "p");
    answers(bus_request(worker, "mail/out.register", NULL, "{\"processor\":\"p\"}"),
            "{\"status\":\"ok\"}");
    bus_send(sender, "mail/out", "r1", NULL, "[1]");
    process(worker, "\"done\"");
    answers(bus_next(sender), "\"done\"");
    while (number(&w, 0, "idle") != 1)
        usleep(1000);
    assert_int_equal(number(&w, 0, "done"), 1);
    json_t *one = web_json(&w, 200, "GET", "/v1/workqueues/mail%2Fout", NULL);
    assert_true(json_number_value(json_object_get(one, "done_per_second")) > 0);
    json_decref(one);
    web_error(&w, 404, "ENOENT", "no work queue \"mail\"", "GET", "/v1/workqueues/mail", NULL);

    bus_send(sender, "mail/out", "r2", NULL, "[2]");        /* being processed when it is removed */
    free(tcp_next(worker));
    web_answer a = web_call(&w, "DELETE", "/v1/workqueues/mail%2Fout", NULL);
    assert_int_equal(a.status, 204);
    web_free(&a);
    json_t *failure = bus_next(sender);
    assert_string_equal(json_string_value(json_object_get(failure, "failureType")), "ERROR");
    json_decref(failure);
    bus_send(sender, "mail/out", "r3", NULL, "[3]");
    failure = bus_next(sender);
    assert_string_equal(json_string_value(json_object_get(failure, "failureType")), "NO_HANDLERS");
    json_decref(failure);
    web_error(&w, 404, "ENOENT", "no work queue \"mail/out\"", "DELETE",
              "/v1/workqueues/mail%2Fout", NULL);
    close(worker);
    close(sender);
    web_stop(&w);
}

/* Where the server itself answers, and where a work queue has its own addresses. */
static void reserved_addresses(void **state)
{
    static const char *const wrong[] = {
        "weir.bus", "weir.ends.x", "vertx.kue.service.job.internal",
        "vertx.kue.handler.workers.done.a", "a.register", "a.unregister", "weir.group.a",
    };
    (void)state;
    web w;
    bus_start(&w, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char path[100];
        snprintf(path, sizeof path, "/v1/workqueues/%s", wrong[i]);
        web_error(&w, 400, "EINVAL", "choose another", "PUT", path, "{}");
    }
    web_says(&w, 200, "{\"work_queues\":[]}", "GET", "/v1/workqueues", NULL);
    web_stop(&w);
    static const srv_workqueue in_settings = { .address = "weir.bus" };
    rt         t;
    weir_error err;
    srv_server *s;
    rt_open(&t, "mem:", false);
    assert_int_equal(srv_start(&s, t.q, &(srv_options){ .listen = "127.0.0.1:0", .bus = {
                               .workqueues = &in_settings, .n_workqueues = 1 } }, &err),
                     WEIR_EINVAL);
    assert_non_null(strstr(err.msg, "the server itself uses the address \"weir.bus\""));
    rt_close(&t);
}

/* The slots of a client that disconnects are gone, also if it was idle; it comes again as one. */
static void processors_disconnect(void **state)
{
    (void)state;
    web w;
    bus_start(&w, NULL);
    json_decref(web_json(&w, 201, "PUT", "/v1/workqueues/a", "{}"));
    for (int i = 0; i < 3; i++) {
        int worker = bus_dial(&w);
        bus_register(worker, "p");
        answers(bus_request(worker, "a.register", NULL, "{\"processor\":\"p\"}"),
                "{\"status\":\"ok\"}");
        assert_int_equal(number(&w, 0, "idle"), 1);
        close(worker);
        while (number(&w, 0, "idle"))
            usleep(1000);
    }
    web_stop(&w);
}

static void wrong_ones(void **state)
{
    static const struct { const char *body, *part; } wrong[] = {
        { "{\"process_timeout\":0}", "process_timeout" },
        { "{\"process_timeout\":\"8d\"}", "process_timeout" },
        { "{\"collection\":\"c\"}", "only a persistent work queue" },
        { "{\"persist\":true,\"collection\":\"\"}", "collection" },
        { "{\"address\":\"a\"}", "address" },
    };
    (void)state;
    web           w;
    srv_workqueue mine = { .address = "mine" };
    bus_start(&w, &(srv_options){ .bus = { .workqueues = &mine, .n_workqueues = 1 } });
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        web_error(&w, 400, "EINVAL", wrong[i].part, "PUT", "/v1/workqueues/a", wrong[i].body);
    web_says(&w, 200, "\"configured\":true", "GET", "/v1/workqueues", NULL);
    web_error(&w, 409, "ESTATE", "settings of the server", "DELETE", "/v1/workqueues/mine", NULL);
    for (int i = 1; i < SRV_MAX_WORKQUEUES; i++) {
        char path[60];
        snprintf(path, sizeof path, "/v1/workqueues/q%d", i);
        json_decref(web_json(&w, 201, "PUT", path, "{}"));
    }
    web_error(&w, 413, "ELIMIT", "SRV_MAX_WORKQUEUES", "PUT", "/v1/workqueues/more", "{}");
    web_stop(&w);
}

/* What waits in the store alone is counted, too. */
static void waiting_in_the_store(void **state)
{
    (void)state;
    web w;
    bus_start(&w, NULL);
    json_decref(web_json(&w, 201, "PUT", "/v1/workqueues/mail",
                         "{\"persist\":true,\"collection\":\"mails\"}"));
    for (int i = 0; i < 3; i++)
        json_decref(web_json(&w, 201, "POST", "/v1/jobs", "{\"type\":\"mails\",\"delay\":60000}"));
    json_decref(web_json(&w, 201, "POST", "/v1/jobs", "{\"type\":\"other\"}"));
    assert_int_equal(number(&w, 0, "waiting"), 3);
    web_stop(&w);
}

/* The service at weir.bus answers as the routes do. */
static void by_the_bus(void **state)
{
    static const struct { const char *action, *body; int code; const char *answer; } asks[] = {
        { "workQueues", "{}", 0, "{\"work_queues\":[]}" },
        { "putWorkQueue", "{\"address\":\"a\",\"process_timeout\":\"1m\"}", 0,
          "{\"address\":\"a\",\"process_timeout\":60000," },
        { "putWorkQueue", "{\"address\":\"a\"}", 409, "other settings" },
        { "putWorkQueue", "{\"address\":\"b\",\"collection\":\"c\"}", 400, "collection: only" },
        { "putWorkQueue", "{}", 400, "address" },
        { "putWorkQueue", "[]", 400, "object" },
        { "getWorkQueue", "{\"address\":\"a\"}", 0, "\"waiting\":0" },
        { "getWorkQueue", "{\"address\":\"b\"}", 404, "no work queue \"b\"" },
        { "addresses", "{}", 0, "{\"address\":\"a.register\",\"here\":1,\"elsewhere\":0,"
                                "\"delivered\":0,\"per_second\":0.0}" },
        { "removeWorkQueue", "{\"address\":\"a\"}", 0, "" },
        { "removeWorkQueue", "{\"address\":\"a\"}", 404, "no work queue \"a\"" },
        { "dance", "{}", 500, "Invalid action: dance" },
    };
    (void)state;
    web w;
    bus_start(&w, NULL);
    int fd = bus_dial(&w);
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        char headers[80];
        snprintf(headers, sizeof headers, "{\"action\":\"%s\"}", asks[i].action);
        json_t *got = bus_request(fd, "weir.bus", headers, asks[i].body);
        char   *body = json_dumps(json_object_get(got, "body"), JSON_ENCODE_ANY | JSON_COMPACT);
        assert_int_equal(json_integer_value(json_object_get(got, "failureCode")), asks[i].code);
        const char *text = asks[i].code ? json_string_value(json_object_get(got, "message")) : body;
        assert_non_null(strstr(text ? text : "", asks[i].answer));
        free(body);
        json_decref(got);
    }
    close(fd);
    web_stop(&w);
}

static void roles(void **state)
{
    static const char *const names[] = { "read", "produce", "work", "admin" };
    (void)state;
    web  w;
    char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 20], bearer[4][SRV_TOKEN_TEXT + 40];
    tempdir_make(dir);
    snprintf(file, sizeof file, "%s/tokens.json", dir);
    for (int i = 0; i < 4; i++) {
        srv_caller who = { 0 };
        char       text[SRV_TOKEN_TEXT];
        assert_true(srv_roles_parse(names[i], &who.roles));
        strcpy(who.name, names[i]);
        assert_int_equal(srv_tokens_add(file, &who, 1, text, NULL), WEIR_OK);
        snprintf(bearer[i], sizeof bearer[i], "Authorization: Bearer %s\r\n", text);
    }
    bus_start(&w, &(srv_options){ .tokens_file = file });
    for (int i = 0; i < 4; i++) {
        static const struct { const char *method, *target; } asks[] = {
            { "GET", "/v1/workqueues" }, { "PUT", "/v1/workqueues/a" },
            { "DELETE", "/v1/workqueues/a" } };
        for (int k = 0; k < 3; k++) {
            web_answer a = web_call_with(&w, asks[k].method, asks[k].target, bearer[i],
                                         k == 1 ? "{}" : NULL);
            bool       may = i == 3 || k == 0;              /* every role reads */
            int        status = a.status;
            web_free(&a);
            assert_int_equal(status == 403, !may);
        }
    }
    web_stop(&w);
    tempdir_remove(dir);
}

/* Those that were made start with the server; a file that is not right stops it. */
static void kept_in_a_file(void **state)
{
    (void)state;
    web  w;
    char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 20];
    tempdir_make(dir);
    snprintf(file, sizeof file, "%s/workqueues.json", dir);
    srv_options opt = { .data_dir = dir };
    bus_start(&w, &opt);
    json_decref(web_json(&w, 201, "PUT", "/v1/workqueues/a",
                         "{\"persist\":true,\"collection\":\"jobs\",\"process_timeout\":\"1s\"}"));
    json_decref(web_json(&w, 201, "PUT", "/v1/workqueues/b", "{\"timed_out_first\":true}"));
    json_decref(web_json(&w, 201, "PUT", "/v1/workqueues/c", "{}"));
    web_answer a = web_call(&w, "DELETE", "/v1/workqueues/c", NULL);
    assert_int_equal(a.status, 204);
    web_free(&a);
    web_stop(&w);
    bus_start(&w, &opt);
    json_t *all = web_json(&w, 200, "GET", "/v1/workqueues", NULL);
    assert_int_equal(json_array_size(json_object_get(all, "work_queues")), 2);
    json_decref(all);
    web_says(&w, 200, "\"process_timeout\":1000,\"timed_out_first\":false,\"persist\":true,"
             "\"collection\":\"jobs\",\"configured\":false", "GET", "/v1/workqueues", NULL);
    assert_int_equal(chmod(dir, 0500), 0);          /* it cannot be kept: so it is not made */
    if (access(dir, W_OK))
        web_says(&w, 503, "workqueues.json", "PUT", "/v1/workqueues/d", "{}");
    assert_int_equal(chmod(dir, 0700), 0);
    web_stop(&w);
    FILE *out = fopen(file, "w");
    fputs("{\"work_queues\":[{}]}", out);
    fclose(out);
    srv_server *s;
    weir_error  err;
    rt          t;
    rt_open(&t, "mem:", false);
    assert_int_equal(srv_start(&s, t.q, &(srv_options){ .listen = "127.0.0.1:0", .data_dir = dir },
                               &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, "workqueues.json: work_queues[0]: address must be specified"));
    rt_close(&t);
    tempdir_remove(dir);
}

/* The work of a queue waits for its processors; another one does not see it. */
static void two_queues(void **state)
{
    static const srv_workqueue both[] = { { .address = "a" }, { .address = "b", .persist = true } };
    (void)state;
    web w;
    bus_start(&w, &(srv_options){ .bus = { .workqueues = both, .n_workqueues = 2 } });
    int fd = bus_dial(&w);
    bus_register(fd, "pa");
    bus_register(fd, "pb");
    bus_send(fd, "a", NULL, NULL, "\"to a\"");
    bus_send(fd, "b", NULL, NULL, "\"to b\"");
    answers(bus_request(fd, "b.register", NULL, "{\"processor\":\"pb\"}"), "{\"status\":\"ok\"}");
    json_t *m = bus_next(fd);
    assert_string_equal(json_string_value(json_object_get(m, "address")), "pb");
    answers(m, "\"to b\"");
    answers(bus_request(fd, "a.register", NULL, "{\"processor\":\"pa\"}"), "{\"status\":\"ok\"}");
    answers(bus_next(fd), "\"to a\"");
    close(fd);
    web_stop(&w);
}

/* The store accepts nothing more: an error goes to the sender and to accepted_reply. */
static void a_store_that_fails(void **state)
{
    static const srv_workqueue q = { .address = "work", .persist = true };
    (void)state;
    web           w;
    struct rlimit before, none;
    bus_start_on(&w, RT_SQLITE, &(srv_options){ .bus = { .workqueues = &q, .n_workqueues = 1 } });
    int fd = bus_dial(&w), sender = bus_dial(&w);
    bus_register(fd, "ok");
    bus_send(sender, "work", NULL, NULL, "{\"n\":1,\"accepted_reply\":\"ok\"}");
    answers(bus_next(fd), "{\"status\":\"accepted\"}");
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    none = before;
    none.rlim_cur = 1;
    setrlimit(RLIMIT_FSIZE, &none);
    bus_send(sender, "work", "r", NULL, "{\"n\":2,\"accepted_reply\":\"ok\"}");
    json_t *told = bus_next(fd), *reply = bus_next(sender);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_string_equal(json_string_value(json_object_get(json_object_get(told, "body"), "status")),
                        "error");
    assert_true(json_equal(json_object_get(told, "body"), json_object_get(reply, "body")));
    json_decref(told);
    json_decref(reply);
    uint64_t n;
    assert_int_equal(weir_count(w.t.q, WEIR_STATE_ANY, "work", &n, NULL), WEIR_OK);
    assert_int_equal(n, 1);
    close(fd);
    close(sender);
    web_stop(&w);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_and_removed), cmocka_unit_test(wrong_ones),
        cmocka_unit_test(roles),            cmocka_unit_test(kept_in_a_file),
        cmocka_unit_test(two_queues),       cmocka_unit_test(a_store_that_fails),
        cmocka_unit_test(reserved_addresses),
        cmocka_unit_test(processors_disconnect),
        cmocka_unit_test(by_the_bus),       cmocka_unit_test(waiting_in_the_store),
    };
    return cmocka_run_group_tests_name("bus_work", tests, NULL, NULL);
}
