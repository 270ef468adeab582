/* test_bus_jobs.c - Vert.x Kue's JobService and job events on the bus, over the TCP bridge: every
 * action, every way to fail, the worker protocol, events in their order. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/bus/job_service.h"
#include "support/bus_client.h"

static web w;
static int fd;

static int start(void **state)
{
    (void)state;
    bus_start(&w, NULL);
    fd = bus_dial(&w);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    close(fd);
    web_stop(&w);
    return 0;
}

/* The answer to an action, whole. */
static json_t *ask(const char *action, const char *body)
{
    char headers[100];
    snprintf(headers, sizeof headers, "{\"action\":\"%s\"}", action);
    return bus_request(fd, SRV_JOB_SERVICE, headers, body);
}

/* The body of the answer must be this. */
static void says(const char *action, const char *body, const char *want)
{
    json_t *m = ask(action, body), *b = json_object_get(m, "body");
    char   *text = b ? json_dumps(b, JSON_ENCODE_ANY | JSON_COMPACT) : strdup("null");
    if (!text || strcmp(text, want) || json_object_get(m, "failureCode"))
        fail_msg("%s %s: %s, not %s", action, body, text ? text : "?", want);
    free(text);
    json_decref(m);
}

static void fails(const char *action, const char *body, int code, const char *part)
{
    json_t     *m = ask(action, body);
    const char *text = json_string_value(json_object_get(m, "message"));
    if (json_integer_value(json_object_get(m, "failureCode")) != code || !text ||
        !strstr(text, part) ||
        strcmp(json_string_value(json_object_get(m, "failureType")), "RECIPIENT_FAILURE"))
        fail_msg("%s %s: %s, not %d %s", action, body, text ? text : "?", code, part);
    json_decref(m);
}

static const char *text_of(json_t *m, const char *name)
{
    return json_string_value(json_object_get(json_object_get(m, "body"), name));
}

/* ---- the service ---- */

static void looking(void **state)
{
    (void)state;
    for (int i = 1; i <= 4; i++)
        rt_add(&w.t, &(weir_spec){ .type = i % 2 ? "mail" : "sms", .data = "{\"title\":\"t\"}",
                                   .priority = -i });
    assert_int_equal(weir_log(w.t.q, 1, 0, "one", 3, NULL), WEIR_OK);
    assert_int_equal(weir_log(w.t.q, 1, 0, "two", 3, NULL), WEIR_OK);
    says("getJob", "{\"id\":99}", "null");
    says("existsJob", "{\"id\":1}", "true");
    says("existsJob", "{\"id\":99}", "false");
    says("getJobLog", "{\"id\":1}", "[\"one\",\"two\"]");
    says("getJobLog", "{\"id\":99}", "[]");
    says("getAllTypes", "{}", "[\"mail\",\"sms\"]");
    says("card", "{\"state\":\"INACTIVE\"}", "4");
    says("cardByType", "{\"type\":\"sms\",\"state\":\"INACTIVE\"}", "2");
    says("inactiveCount", "{\"type\":\"mail\"}", "2");
    says("inactiveCount", "{\"type\":null}", "4");
    says("completeCount", "{}", "0");
    says("failedCount", "{}", "0");
    says("activeCount", "{}", "0");
    says("delayedCount", "{}", "0");
    says("getIdsByState", "{\"state\":\"INACTIVE\"}", "[4,3,2,1]");    /* as they will run */
    says("getWorkTime", "{}", "0");
    json_t *m = ask("getJob", "{\"id\":2}");
    assert_string_equal(text_of(m, "type"), "sms");
    assert_string_equal(text_of(m, "state"), "INACTIVE");
    json_decref(m);
    says("removeJob", "{\"id\":2}", "null");
    says("removeJob", "{\"id\":2}", "null");
    web_says(&w, 200, "\"action\":\"job.delete\",\"path\":\"" SRV_JOB_SERVICE "\"", "GET",
             "/v1/audit", NULL);
    says("existsJob", "{\"id\":2}", "false");
}

static void expect_ids(const char *action, const char *body, const char *want)
{
    char    ids[100] = "";
    json_t *m = ask(action, body), *each;
    size_t  i;
    json_array_foreach(json_object_get(m, "body"), i, each)
        sprintf(ids + strlen(ids), "%lld,", json_integer_value(json_object_get(each, "id")));
    json_decref(m);
    assert_string_equal(ids, want);
}

static void ranges(void **state)
{
    (void)state;
    for (int i = 1; i <= 5; i++)
        rt_add(&w.t, &(weir_spec){ .type = i < 4 ? "a" : "b", .priority = 10 - i });
    expect_ids("jobRange", "{\"from\":0,\"to\":9,\"order\":\"asc\"}", "1,2,3,4,5,");
    expect_ids("jobRange", "{\"from\":0,\"to\":1,\"order\":\"asc\"}", "4,5,");  /* by priority */
    expect_ids("jobRangeByState", "{\"state\":\"inactive\",\"from\":0,\"to\":4}", "5,4,3,2,1,");
    expect_ids("jobRangeByState", "{\"state\":\"INACTIVE\",\"from\":3,\"to\":4,\"order\":\"asc\"}",
               "1,2,");
    expect_ids("jobRangeByType", "{\"type\":\"a\",\"state\":\"Inactive\",\"from\":0,\"to\":9,"
               "\"order\":\"asc\"}", "1,2,3,");
    expect_ids("jobRangeByState", "{\"state\":\"bogus\",\"from\":0,\"to\":9}", "");
    fails("jobRange", "{\"from\":2,\"to\":1,\"order\":\"asc\"}", -1,
          "to can not be greater than from");
}

static void wrong_calls(void **state)
{
    (void)state;
    json_t *m = bus_request(fd, SRV_JOB_SERVICE, NULL, "{}");
    assert_string_equal(json_string_value(json_object_get(m, "message")), "action not specified");
    assert_int_equal(json_integer_value(json_object_get(m, "failureCode")), 500);
    json_decref(m);
    fails("dance", "{}", 500, "Invalid action: dance");
    fails("card", "{\"state\":\"bogus\"}", 500, "No enum constant");
    fails("card", "{\"state\":\"inactive\"}", 500, "No enum constant");
    fails("getIdsByState", "{}", 500, "state: missing");
    fails("getJob", "{}", 500, "id: missing");
    fails("getJob", "{\"id\":\"x\"}", 500, "id: ");
    fails("jobRange", "{\"from\":1}", 500, "from and to: missing");
    fails("saveJob", "{}", -1, "Job type cannot be null");
    fails("saveJob", "{\"job\":{\"type\":\"a\",\"priority\":\"WILD\"}}", 500, "priority");
    fails("saveJob", "{\"job\":{\"priority\":5,\"type\":\"a\"}}", 500,
          "priority: 5 is not LOW, NORMAL, MEDIUM, HIGH or CRITICAL");
    fails("saveJob", "{\"job\":{\"id\":1,\"type\":\"a\"}}", -1, "saved already");
    fails("jobDone", "{\"id\":1}", -1, "no job 1");
    rt_add(&w.t, &(weir_spec){ .type = "a" });
    fails("jobDone", "{\"id\":1}", -1, "job 1 is not active");
    fails("jobDone", "{\"id\":1,\"delivery\":5}", -1, "");
    fails("jobProgress", "{\"id\":1,\"complete\":1,\"total\":0}", 500, "total");
    fails("jobDoneFail", "{\"id\":1}", 500, "message: missing");
    fails("renewJob", "{\"id\":1,\"delivery\":1}", -1, "no longer");
    fails("takeJob", "{}", 500, "type: missing");
}

/* A client that produces and one that processes. */
static void produce_and_process(void **state)
{
    (void)state;
    json_t *m = ask("createJob", "{\"type\":\"mail\",\"data\":{\"to\":\"ann\"}}");
    json_t *job = json_object_get(m, "body");
    assert_int_equal(json_integer_value(json_object_get(job, "id")), -1);
    json_object_set_new(job, "max_attempts", json_integer(2));
    char *text = json_dumps(job, 0), *body;
    assert_true(asprintf(&body, "{\"job\":%s}", text) > 0);
    json_t *saved = ask("saveJob", body);
    assert_string_equal(text_of(saved, "address_id"), text_of(m, "address_id"));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(saved, "body"), "id")), 1);
    free(text);
    free(body);
    json_decref(saved);
    json_decref(m);

    says("takeJob", "{\"type\":\"sms\"}", "null");
    m = ask("takeJob", "{\"type\":\"mail\",\"lease\":\"1m\",\"worker\":\"js-1\"}");
    assert_string_equal(text_of(m, "state"), "ACTIVE");
    job = json_object_get(m, "body");
    assert_int_equal(json_integer_value(json_object_get(job, "delivery")), 1);
    json_decref(m);
    says("renewJob", "{\"id\":1,\"delivery\":1,\"lease\":60000}", "null");
    says("jobProgress", "{\"job\":{\"id\":1,\"delivery\":1},\"complete\":1,\"total\":3}", "null");
    says("jobDoneFail", "{\"job\":{\"id\":1,\"delivery\":1},\"message\":\"smtp\"}", "\"inactive\"");
    fails("jobDone", "{\"id\":1,\"delivery\":1}", -1, "");          /* it is late */
    json_decref(ask("takeJob", "{\"type\":\"mail\"}"));
    says("jobDone", "{\"job\":{\"id\":1,\"delivery\":2,\"result\":{\"ok\":true}}}", "\"complete\"");
    m = ask("getJob", "{\"id\":1}");
    assert_true(json_is_true(json_object_get(json_object_get(json_object_get(m, "body"), "result"),
                                             "ok")));
    json_decref(m);
}

/* done.ADDRESS_ID and done_fail.ADDRESS_ID end a job, as Vert.x Kue's own worker does. */
static void the_worker_protocol(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        char body[100];
        snprintf(body, sizeof body, "{\"job\":{\"type\":\"mail\",\"address_id\":\"a%d\"}}", i);
        json_decref(ask("saveJob", body));
    }
    for (int i = 0; i < 2; i++)
        json_decref(ask("takeJob", "{\"type\":\"mail\"}"));
    bus_send(fd, "vertx.kue.handler.workers.done.a0", NULL, NULL,
             "{\"id\":1,\"result\":{\"n\":7}}");
    json_t *m = bus_request(fd, "vertx.kue.handler.workers.done_fail.a1", NULL, "\"no paper\"");
    assert_string_equal(json_string_value(json_object_get(m, "body")), "failed");
    json_decref(m);
    weir_job *job;
    assert_int_equal(weir_wait(w.t.q, 1, PATIENCE_MS, &job, NULL), WEIR_OK);
    assert_string_equal(job->result, "{\"n\":7}");
    weir_job_free(job);
    assert_int_equal(weir_get(w.t.q, 2, &job, NULL), WEIR_OK);
    assert_string_equal(job->error, "no paper");
    weir_job_free(job);
    weir_change mine = { .state = WEIR_STATE_ACTIVE };      /* taken elsewhere: found by its id */
    assert_int_equal(weir_update(w.t.q, 3, &mine, NULL, NULL), WEIR_OK);
    m = bus_request(fd, "vertx.kue.handler.workers.done.a2", NULL, "{\"id\":3}");
    assert_string_equal(json_string_value(json_object_get(m, "body")), "complete");
    json_decref(m);
    m = bus_request(fd, "vertx.kue.handler.workers.done_fail.unknown", NULL, "\"x\"");
    assert_string_equal(json_string_value(json_object_get(m, "message")), "job_not_exist");
    json_decref(m);
}

/* ---- events ---- */

#define JOB "vertx.kue.handler.job."
#define ALL "vertx.kue.handler.workers."

/* The next message on `at` comes to this address; its body has `part`. */
static void event(int at, const char *address, const char *part)
{
    json_t *m = bus_next(at);
    json_t *b = json_object_get(m, "body");
    char   *text = b ? json_dumps(b, JSON_ENCODE_ANY | JSON_COMPACT) : strdup("null");
    if (strcmp(json_string_value(json_object_get(m, "address")), address) || !strstr(text, part))
        fail_msg("%s %s, not %s %s", json_string_value(json_object_get(m, "address")), text,
                 address, part);
    free(text);
    json_decref(m);
}

/* Listeners that are there before the job see all of its life, in order, and nothing else: of two
 * failures two errors. */
static void a_life(void **state)
{
    static const char *const mine[] = { "enqueue", "start", "progress", "failed_attempt", "error",
                                        "complete", "remove", "greeting" };
    static const char *const all[] = { "job_start", "job_failed_attempt", "error", "job_complete" };
    (void)state;
    int  one = bus_dial(&w), queue = bus_dial(&w);
    char address[100];
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++) {
        snprintf(address, sizeof address, JOB "%s.ann-1.mail", mine[i]);
        bus_register(one, address);
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        snprintf(address, sizeof address, ALL "%s", all[i]);
        bus_register(queue, address);
    }
    json_decref(ask("saveJob", "{\"job\":{\"type\":\"mail\",\"address_id\":\"ann-1\","
                    "\"max_attempts\":3,\"removeOnComplete\":true}}"));
    event(one, JOB "enqueue.ann-1.mail", "\"state\":\"INACTIVE\"");
    json_decref(ask("takeJob", "{\"type\":\"mail\"}"));
    event(one, JOB "start.ann-1.mail", "\"state\":\"ACTIVE\"");
    event(queue, ALL "job_start", "\"extra\":null");
    json_decref(ask("jobProgress", "{\"id\":1,\"complete\":1,\"total\":2}"));
    event(one, JOB "progress.ann-1.mail", "50");
    for (int failure = 0; failure < 2; failure++) {
        json_decref(ask("jobDoneFail", "{\"id\":1,\"message\":\"smtp\"}"));
        event(one, JOB "error.ann-1.mail", "\"message\":\"smtp\"");
        event(one, JOB "failed_attempt.ann-1.mail", "\"extra\":{\"message\":\"smtp\"}");
        event(queue, ALL "error", "\"id\":1");
        event(queue, ALL "job_failed_attempt", "\"address_id\":\"ann-1\"");
        event(one, JOB "enqueue.ann-1.mail", "\"id\":1");
        json_decref(ask("takeJob", "{\"type\":\"mail\"}"));
        event(one, JOB "start.ann-1.mail", "\"id\":1");
        event(queue, ALL "job_start", "\"id\":1");
    }
    json_decref(ask("jobDone", "{\"id\":1,\"result\":{\"n\":1}}"));     /* and it is gone */
    event(one, JOB "remove.ann-1.mail", "{\"id\":1}");
    event(one, JOB "complete.ann-1.mail", "\"result\":{\"n\":1}");
    event(queue, ALL "job_complete", "\"state\":\"COMPLETE\"");
    /* an event of the program's own travels as any message */
    tcp_tell(fd, "{\"type\":\"publish\",\"address\":\"" JOB "greeting.ann-1.mail\","
                 "\"body\":\"hi\"}");
    event(one, JOB "greeting.ann-1.mail", "hi");
    close(one);
    close(queue);
}

/* The first listener comes when the job has started, and the job is gone when it has ended. */
static void a_job_that_had_started(void **state)
{
    (void)state;
    int one = bus_dial(&w);
    json_decref(ask("saveJob", "{\"job\":{\"type\":\"mail\",\"address_id\":\"ann-1\","
                    "\"removeOnComplete\":true}}"));
    json_decref(ask("takeJob", "{\"type\":\"mail\"}"));
    bus_register(one, JOB "complete.ann-1.mail");
    bus_register(one, JOB "remove.ann-1.mail");
    bus_register(one, ALL "job_cancelled");
    json_decref(ask("saveJob", "{\"job\":{\"type\":\"other\"}}"));
    assert_int_equal(weir_cancel(w.t.q, 2, NULL), WEIR_OK);
    event(one, ALL "job_cancelled", "\"id\":2");       /* by now the server has looked around */
    json_decref(ask("jobDone", "{\"id\":1,\"result\":{\"n\":1}}"));
    event(one, JOB "remove.ann-1.mail", "{\"id\":1}");
    event(one, JOB "complete.ann-1.mail", "\"result\":{\"n\":1}");
    close(one);
}

/* The address of a job with long names is too long for the bus: what cannot be published is
 * counted. */
static void an_address_that_is_too_long(void **state)
{
    char body[500];
    (void)state;
    int one = bus_dial(&w);
    bus_register(one, ALL "job_enqueue");
    snprintf(body, sizeof body, "{\"job\":{\"type\":\"%0100d\",\"address_id\":\"%0150d\"}}", 0, 0);
    json_decref(ask("saveJob", body));
    event(one, ALL "job_enqueue", "\"id\":1");
    web_says(&w, 200, "\nweir_bus_job_events_lost_total 0\n", "GET", "/metrics", NULL);
    for (bool counted = false; !counted; usleep(1000)) {
        web_answer a = web_call(&w, "GET", "/metrics", NULL);
        counted = strstr(a.body, "\nweir_bus_job_events_too_long_total 1\n");
        web_free(&a);
    }
    close(one);
}

static void more_events(void **state)
{
    (void)state;
    static const char *const names[] = { "promotion.ann.mail", "failed.2.sms", "remove.2.sms",
                                         "cancelled.3.sms" };
    char address[100];
    int  one = bus_dial(&w);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(address, sizeof address, JOB "%s", names[i]);
        bus_register(one, address);
    }
    bus_register(one, ALL "job_promotion");
    json_decref(ask("saveJob", "{\"job\":{\"type\":\"mail\",\"address_id\":\"ann\","
                    "\"delay\":3600000}}"));
    assert_int_equal(weir_promote(w.t.q, 1, NULL), WEIR_OK);
    event(one, ALL "job_promotion", "\"address_id\":\"ann\"");
    event(one, JOB "promotion.ann.mail", "\"id\":1");
    rt_add(&w.t, &(weir_spec){ .type = "sms" });        /* without an address: its id is it */
    rt_add(&w.t, &(weir_spec){ .type = "sms" });
    json_decref(ask("takeJob", "{\"type\":\"sms\"}"));
    json_decref(ask("jobDoneFail", "{\"id\":2,\"message\":\"no\"}"));
    event(one, JOB "failed.2.sms", "\"extra\":{\"message\":\"no\"}");
    says("removeJob", "{\"id\":2}", "null");
    event(one, JOB "remove.2.sms", "{\"id\":2}");
    assert_int_equal(weir_cancel(w.t.q, 3, NULL), WEIR_OK);
    event(one, JOB "cancelled.3.sms", "\"state\":\"CANCELLED\"");
    close(one);
}

/* Many events keep their order and none is lost. */
static void a_thousand_jobs(void **state)
{
    enum { N = 1000 };
    (void)state;
    int one = bus_dial(&w);
    bus_register(one, ALL "job_complete");
    for (int i = 0; i < N; i++)
        rt_add(&w.t, &(weir_spec){ .type = "t", .remove_on_complete = true });
    for (int i = 1; i <= N; i++) {
        const char *types[] = { "t", NULL };
        weir_taking what = { .types = types, .n = 1, .remote = true };
        weir_job   *job;
        size_t      n;
        assert_int_equal(weir_take(w.t.q, &what, &job, &n, NULL), WEIR_OK);
        weir_ending e = { .id = job->id, .delivery = job->delivery };
        weir_ended  done;
        assert_int_equal(weir_finish(w.t.q, &e, 1, &done, NULL), WEIR_OK);
        weir_job_free(job);
    }
    for (int i = 1; i <= N; i++) {
        json_t *m = bus_next(one);
        assert_int_equal(json_integer_value(json_object_get(json_object_get(
                         json_object_get(m, "body"), "job"), "id")), i);
        json_decref(m);
    }
    close(one);
}

/* More events than may wait: the rest is lost, and how many is published. */
static void lost_events_are_reported(void **state)
{
    enum { N = 1000, CALLS = 60 };
    static weir_spec  spec[N];
    static weir_added added[CALLS][N];
    (void)state;
    int           one = bus_dial(&w);
    struct pollfd p = { .fd = one, .events = POLLIN };
    bus_register(one, ALL "error");
    for (int i = 0; i < N; i++)
        spec[i] = (weir_spec){ .type = "t" };
    while (!poll(&p, 1, 0)) {
        weir_future *f[CALLS];
        for (int i = 0; i < CALLS; i++)
            assert_int_equal(weir_add_many_async(w.t.q, spec, N, NULL, added[i], &f[i], NULL),
                             WEIR_OK);
        for (int i = 0; i < CALLS; i++) {
            assert_int_equal(weir_future_wait(f[i], -1, NULL), WEIR_OK);
            weir_future_free(f[i]);
        }
    }
    event(one, ALL "error", " events of jobs were lost: more than 20000 waited");
    web_answer a = web_call(&w, "GET", "/metrics", NULL);
    assert_null(strstr(a.body, "\nweir_bus_job_events_lost_total 0\n"));
    web_free(&a);
    close(one);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, start, stop)
    static const struct CMUnitTest tests[] = {
        CASE(looking),      CASE(ranges),              CASE(wrong_calls),
        CASE(produce_and_process), CASE(the_worker_protocol), CASE(a_life),
        CASE(a_job_that_had_started), CASE(an_address_that_is_too_long),
        CASE(more_events),  CASE(a_thousand_jobs),     CASE(lost_events_are_reported),
    };
    return cmocka_run_group_tests_name("bus_jobs", tests, NULL, NULL);
}
