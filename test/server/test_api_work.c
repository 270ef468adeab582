/* test_api_work.c - remote workers over HTTP: take, finish, renew; the delivery number as fence;
 * waiting for jobs; clients that go away; who was seen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http/inner.h"
#include "server/access/tokens.h"
#include "support/redis_rig.h"
#include "support/server_rig.h"

#define TAKE "/v1/take"

static srv_counters *counts(web *w)
{
    return &w->s->counters;
}

/* A request on a connection of its own whose answer comes later. */
static int begin(web *w, const char *target, const char *body)
{
    char head[512];
    int  fd = web_connect(w);
    snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: %s\r\n"
             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n", target, w->host,
             strlen(body));
    web_send(fd, head);
    web_send(fd, body);
    return fd;
}

static int begin_take(web *w, const char *body)
{
    int64_t before = counts(w)->takes_waiting;
    int     fd = begin(w, TAKE, body);
    UNTIL(counts(w)->takes_waiting == before + 1);
    return fd;
}

static json_t *read_json(int fd, int status)
{
    web_answer a = web_read(fd);
    if (a.status != status)
        fail_msg("status %d, not %d: %s", a.status, status, a.body ? a.body : "(nothing)");
    json_t *json = json_loadb(a.body, a.len, 0, NULL);
    assert_non_null(json);
    web_free(&a);
    return json;
}

/* How many jobs; *id and *delivery of the first. */
static size_t jobs_of(json_t *answer, uint64_t *id, uint64_t *delivery)
{
    json_t *jobs = json_object_get(answer, "jobs");
    assert_true(json_is_array(jobs));
    json_t *job = json_array_get(jobs, 0);
    if (id)
        *id = (uint64_t)json_integer_value(json_object_get(job, "id"));
    if (delivery)
        *delivery = (uint64_t)json_integer_value(json_object_get(job, "delivery"));
    size_t n = json_array_size(jobs);
    json_decref(answer);
    return n;
}

static size_t take(web *w, const char *body, uint64_t *id, uint64_t *delivery)
{
    return jobs_of(web_json(w, 200, "POST", TAKE, body), id, delivery);
}

/* The answer of a take that waited. */
static size_t end_take(int fd, uint64_t *id)
{
    size_t n = jobs_of(read_json(fd, 200), id, NULL);
    close(fd);
    return n;
}

/* The i-th result: its state, or the code of its error. */
static const char *result_of(json_t *answer, size_t i)
{
    json_t *one = json_array_get(json_object_get(answer, "results"), i);
    json_t *error = json_object_get(one, "error");
    if (error)
        return json_string_value(json_object_get(error, "code"));
    if (json_is_true(json_object_get(one, "ok")))
        return "ok";
    return json_is_null(json_object_get(one, "state"))
               ? "gone" : json_string_value(json_object_get(one, "state"));
}

/* End or renew one delivery: what became of it. */
static const char *deliver(web *w, const char *target, int status, uint64_t id, uint64_t delivery,
                           const char *more)
{
    static char said[32];
    char        body[256];
    snprintf(body, sizeof body, "{\"jobs\":[{\"id\":%llu,\"delivery\":%llu%s}]}",
             (unsigned long long)id, (unsigned long long)delivery, more);
    json_t *answer = web_json(w, status, "POST", target, body);
    snprintf(said, sizeof said, "%s", result_of(answer, 0));
    json_decref(answer);
    return said;
}

static const char *finish(web *w, int status, uint64_t id, uint64_t delivery, const char *more)
{
    return deliver(w, "/v1/finish", status, id, delivery, more);
}

static const char *renew(web *w, uint64_t id, uint64_t delivery)
{
    return deliver(w, "/v1/renew", 200, id, delivery, "");
}

/* ---- take and finish ---- */

static void jobs_are_taken_and_ended(void **state)
{
    (void)state;
    web      w;
    uint64_t id, delivery;
    web_start(&w, RT_SQLITE, false, NULL);
    assert_int_equal(take(&w, "{\"types\":[\"mail\"]}", NULL, NULL), 0);
    uint64_t added = rt_add_type(&w.t, "mail");
    json_t *answer = web_json(&w, 200, "POST", TAKE,
                              "{\"types\":[\"sms\",\"mail\"],\"n\":5,\"worker\":\"w1\"}");
    json_t *job = json_array_get(json_object_get(answer, "jobs"), 0);
    assert_string_equal(json_string_value(json_object_get(job, "type")), "mail");
    assert_string_equal(json_string_value(json_object_get(job, "state")), "active");
    assert_string_equal(json_string_value(json_object_get(job, "workerId")), "w1");
    assert_int_equal(jobs_of(answer, &id, &delivery), 1);
    assert_int_equal(id, added);
    assert_string_equal(finish(&w, 200, id, delivery, ",\"result\":{\"big\":98765432109876543210}"),
                        "complete");
    weir_job *done = rt_get(&w.t, id);
    assert_string_equal(done->result, "{\"big\":98765432109876543210}");
    weir_job_free(done);

    rt_add_type(&w.t, "mail");
    assert_int_equal(take(&w, "{\"types\":[\"mail\"]}", &id, &delivery), 1);
    assert_string_equal(finish(&w, 200, id, delivery, ",\"error\":\"no \\u00e4nswer\""), "failed");
    done = rt_get(&w.t, id);
    assert_string_equal(done->error, "no \xc3\xa4nswer");
    weir_job_free(done);

    rt_add(&w.t, &(weir_spec){ .type = "mail", .attempts = 3 });
    assert_int_equal(take(&w, "{\"types\":[\"mail\"]}", &id, &delivery), 1);
    finish(&w, 400, id, delivery, ",\"final\":true");
    assert_string_equal(finish(&w, 200, id, delivery, ",\"error\":\"no\",\"final\":true"),
                        "failed");

    rt_add(&w.t, &(weir_spec){ .type = "mail", .remove_on_complete = true });
    assert_int_equal(take(&w, "{\"types\":[\"mail\"]}", &id, &delivery), 1);
    assert_string_equal(finish(&w, 200, id, delivery, ",\"return\":true"), "inactive");
    assert_int_equal(take(&w, "{\"types\":[\"mail\"]}", &id, &delivery), 1);
    assert_int_equal(delivery, 2);
    assert_string_equal(finish(&w, 200, id, delivery, ""), "gone");
    assert_int_equal(counts(&w)->jobs_taken, 5);
    assert_int_equal(counts(&w)->jobs_ended, 5);

    rt_add_type(&w.t, "mail");
    assert_int_equal(take(&w, "{\"types\":[\"mail\"]}", &id, &delivery), 1);
    finish(&w, 400, id, delivery, ",\"delay\":5000");
    assert_string_equal(finish(&w, 200, id, delivery, ",\"return\":true,\"delay\":\"5s\""),
                        "delayed");
    web_stop(&w);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    static const struct {
        const char *target, *body, *code;
        int         status;
        const char *part;
    } cases[] = {
        { TAKE, "", "EINVAL", 400, "types: missing" },
        { TAKE, "{}", "EINVAL", 400, "types: missing" },
        { TAKE, "[]", "EINVAL", 400, "an object" },
        { TAKE, "{\"types\":[]}", "EINVAL", 400, "types: 0 of them" },
        { TAKE, "{\"types\":\"mail\"}", "EINVAL", 400, "types: \"mail\" is not a list" },
        { TAKE, "{\"types\":[\"mail\",7]}", "EINVAL", 400, "types[1]: 7 is not a text" },
        { TAKE, "{\"types\":[\"mail\",\"\"]}", "EINVAL", 400, "types[1]" },
        { TAKE, "{\"types\":[\"mail\"],\"when\":\"data.n =\"}", "EINVAL", 400, "when: column 9"},
        { TAKE, "{\"types\":[\"mail\"],\"n\":0}", "EINVAL", 400, "n: 0, must be between 1 and" },
        { TAKE, "{\"types\":[\"mail\"],\"n\":1001}", "EINVAL", 400, "between 1 and 1000" },
        { TAKE, "{\"types\":[\"mail\"],\"wait\":\"61s\"}", "EINVAL", 400, "wait: 61s" },
        { TAKE, "{\"types\":[\"mail\"],\"lease\":\"99ms\"}", "EINVAL", 400, "lease: 99ms" },
        { TAKE, "{\"types\":[\"mail\"],\"worker\":\"\"}", "EINVAL", 400, "worker: empty" },
        { TAKE, "{\"types\":[\"mail\"],\"count\":1}", "EINVAL", 400, "count: unknown member" },
        { "/v1/finish", "{}", "EINVAL", 400, "jobs: missing" },
        { "/v1/finish", "{\"jobs\":[]}", "EINVAL", 400, "jobs: 0 of them" },
        { "/v1/finish", "{\"jobs\":[{\"id\":1}]}", "EINVAL", 400, "jobs[0].delivery: missing" },
        { "/v1/finish", "{\"jobs\":[{\"id\":1,\"delivery\":1},{\"id\":1,\"delivery\":1,"
          "\"result\":1,\"error\":\"x\"}]}", "EINVAL", 400, "jobs[1]: only one of" },
        { "/v1/finish", "{\"jobs\":[{\"id\":1,\"delivery\":1}],\"take\":{\"types\":[\"a\"],"
          "\"wait\":\"1s\"}}", "EINVAL", 400, "take.wait" },
        { "/v1/finish", "{\"jobs\":[{\"id\":1,\"delivery\":4294967296}]}", "EINVAL", 400,
          "jobs[0].delivery" },
        { "/v1/renew", "{\"jobs\":[{\"id\":1,\"delivery\":1,\"result\":1}]}", "EINVAL", 400,
          "jobs[0].result: unknown member" },
        { "/v1/renew", "{\"jobs\":[{\"id\":1,\"delivery\":1}],\"lease\":1}", "EINVAL", 400,
          "lease: 1" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        web_error(&w, cases[i].status, cases[i].code, cases[i].part, "POST", cases[i].target,
                  cases[i].body);
    web_stop(&w);
}

static void each_ending_has_an_answer_of_its_own(void **state)
{
    (void)state;
    web    w;
    char   body[512];
    web_start(&w, RT_SQLITE, false, NULL);
    uint64_t first = rt_add_type(&w.t, "mail");
    rt_add_type(&w.t, "mail");
    assert_int_equal(take(&w, "{\"types\":[\"mail\"],\"n\":10}", NULL, NULL), 2);
    uint64_t more = rt_add_type(&w.t, "mail");
    snprintf(body, sizeof body,
             "{\"jobs\":[{\"id\":%llu,\"delivery\":1,\"result\":1},{\"id\":%llu,\"delivery\":7},"
             "{\"id\":999999,\"delivery\":1}],\"take\":{\"types\":[\"mail\"],\"n\":10}}",
             (unsigned long long)first, (unsigned long long)first + 1);
    json_t *answer = web_json(&w, 207, "POST", "/v1/finish", body);
    assert_string_equal(result_of(answer, 0), "complete");
    assert_string_equal(result_of(answer, 1), "ESTALE");
    assert_string_equal(result_of(answer, 2), "ESTALE");
    uint64_t id;        /* the last one was refused, and there are jobs all the same */
    assert_int_equal(jobs_of(answer, &id, NULL), 1);
    assert_int_equal(id, more);
    assert_int_equal(counts(&w)->jobs_stale, 2);
    web_stop(&w);
}

static void a_busy_worker_needs_one_call(void **state)
{
    (void)state;
    web      w;
    uint64_t id = 0, delivery = 0;
    char     body[256];
    web_start(&w, RT_SQLITE, false, NULL);
    for (int i = 0; i < 5; i++)
        rt_add_type(&w.t, "mail");
    assert_int_equal(take(&w, "{\"types\":[\"mail\"],\"worker\":\"w1\"}", &id, &delivery), 1);
    for (int i = 0; i < 5; i++) {
        snprintf(body, sizeof body, "{\"jobs\":[{\"id\":%llu,\"delivery\":%llu}],\"take\":"
                 "{\"types\":[\"mail\"],\"worker\":\"w1\"}}", (unsigned long long)id,
                 (unsigned long long)delivery);
        json_t *answer = web_json(&w, 200, "POST", "/v1/finish", body);
        assert_string_equal(result_of(answer, 0), "complete");
        assert_int_equal(jobs_of(answer, &id, &delivery), i < 4);
    }
    assert_int_equal(rt_count(&w.t, WEIR_STATE_COMPLETE), 5);
    web_stop(&w);
}

static void many_at_once(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_SQLITE, false, NULL);
    enum { N = 1000 };
    for (int i = 0; i < N; i++)
        rt_add(&w.t, &(weir_spec){ .type = "mail", .data = "{\"to\":\"ann@example.org\"}" });
    json_t  *taken = web_json(&w, 200, "POST", TAKE, "{\"types\":[\"mail\"],\"n\":1000}");
    weir_buf body = { 0 };
    json_t  *jobs = json_object_get(taken, "jobs"), *job;
    size_t   i;
    assert_int_equal(json_array_size(jobs), N);
    weir__buf_str(&body, "{\"jobs\":[");
    json_array_foreach(jobs, i, job) {
        weir__buf_printf(&body, "%s{\"id\":%lld,\"delivery\":1,\"error\":\"no %zu\"}", i ? "," : "",
                         json_integer_value(json_object_get(job, "id")), i);
    }
    weir__buf_str(&body, "]}");
    json_t *answer = web_json(&w, 200, "POST", "/v1/finish", body.data);
    assert_string_equal(result_of(answer, N - 1), "failed");
    assert_int_equal(rt_count(&w.t, WEIR_STATE_FAILED), N);
    json_decref(answer);
    json_decref(taken);
    weir__buf_fini(&body);
    web_stop(&w);
}

/* ---- the fence ---- */

static void a_late_worker_changes_nothing(void **state)
{
    (void)state;
    web      w;
    uint64_t id, delivery;
    web_start(&w, RT_SQLITE, true, NULL);
    rt_add_type(&w.t, "mail");
    assert_int_equal(take(&w, "{\"types\":[\"mail\"],\"lease\":\"10s\"}", &id, &delivery), 1);
    rt_later(&w.t, 9000);
    assert_string_equal(renew(&w, id, 1), "ok");            /* for 30 s */
    rt_later(&w.t, 29000);
    assert_int_equal(rt_state(&w.t, id), WEIR_STATE_ACTIVE);
    rt_later(&w.t, 2000);
    rt_until(&w.t, id, WEIR_STATE_INACTIVE);
    UNTIL(counts(&w)->leases_lost == 1);
    assert_string_equal(renew(&w, id, 1), "ESTALE");
    assert_int_equal(take(&w, "{\"types\":[\"mail\"]}", &id, &delivery), 1);
    assert_int_equal(delivery, 2);
    assert_string_equal(finish(&w, 207, id, 1, ",\"result\":\"late\""), "ESTALE");
    assert_string_equal(finish(&w, 207, id, 1, ",\"return\":true"), "ESTALE");
    assert_string_equal(renew(&w, id, 1), "ESTALE");
    assert_string_equal(renew(&w, id, 2), "ok");
    assert_string_equal(finish(&w, 200, id, 2, ",\"result\":\"in time\""), "complete");
    assert_string_equal(finish(&w, 207, id, 2, ""), "ESTALE");
    weir_job *job = rt_get(&w.t, id);
    assert_string_equal(job->result, "\"in time\"");
    weir_job_free(job);
    web_stop(&w);
}

static void a_cancelled_job_is_told_at_the_next_renewal(void **state)
{
    (void)state;
    web      w;
    uint64_t id;
    char     body[128];
    web_start(&w, RT_MEM, false, NULL);
    rt_add_type(&w.t, "mail");
    take(&w, "{\"types\":[\"mail\"]}", &id, NULL);
    rt *t = &w.t;
    OK(weir_cancel(t->q, id, &t->err));
    snprintf(body, sizeof body, "{\"jobs\":[{\"id\":%llu,\"delivery\":1}],\"lease\":\"5s\"}",
             (unsigned long long)id);
    json_t *answer = web_json(&w, 200, "POST", "/v1/renew", body);
    json_t *error = json_object_get(json_array_get(json_object_get(answer, "results"), 0), "error");
    assert_non_null(strstr(json_string_value(json_object_get(error, "message")), "stop, it is"));
    json_decref(answer);
    web_stop(&w);
}

/* ---- waiting ---- */

static const char wait_mail[] = "{\"types\":[\"mail\"],\"wait\":\"60s\"}";

static void a_wait_ends_with_a_job(void **state)
{
    (void)state;
    web      w;
    uint64_t id, got;
    web_start(&w, RT_SQLITE, true, NULL);
    rt *t = &w.t;
    int fd = begin_take(&w, wait_mail);                     /* a new one */
    id = rt_add_type(&w.t, "mail");
    assert_int_equal(end_take(fd, &got), 1);
    assert_int_equal(got, id);
    fd = begin_take(&w, wait_mail);                         /* given back */
    finish(&w, 200, id, 1, ",\"return\":true");
    assert_int_equal(end_take(fd, &got), 1);
    fd = begin_take(&w, wait_mail);                         /* its worker was lost */
    rt_later(t, 31000);
    assert_int_equal(end_take(fd, &got), 1);
    finish(&w, 200, id, 3, "");
    fd = begin_take(&w, wait_mail);                         /* its time has come */
    id = rt_add(t, &(weir_spec){ .type = "mail", .delay_ms = 5000 });
    rt_later(t, 5000);
    assert_int_equal(end_take(fd, &got), 1);
    assert_int_equal(got, id);
    finish(&w, 200, id, 1, "");
    OK(weir_pause(t->q, "mail", &t->err));                  /* the type goes on */
    id = rt_add_type(&w.t, "mail");
    fd = begin_take(&w, wait_mail);
    OK(weir_resume(t->q, "mail", &t->err));
    assert_int_equal(end_take(fd, &got), 1);
    assert_int_equal(got, id);
    finish(&w, 200, id, 1, "");
    OK(weir_pause(t->q, "*", &t->err));                     /* all types go on */
    id = rt_add_type(&w.t, "mail");
    fd = begin_take(&w, wait_mail);
    OK(weir_resume(t->q, "*", &t->err));
    assert_int_equal(end_take(fd, &got), 1);
    assert_int_equal(got, id);
    assert_int_equal(counts(&w)->takes_waiting, 0);
    web_stop(&w);
}

/* The job of a worker that dies; returns its id. */
static uint64_t lose_one(web *w)
{
    uint64_t    id, delivery;
    rt         *t = &w->t;
    weir_ended  ended;
    take(w, "{\"types\":[\"mail\"],\"worker\":\"dead\"}", &id, &delivery);
    weir_ending end = { .id = id, .delivery = (uint32_t)delivery, .outcome = WEIR_OUTCOME_LOST };
    OK(weir_finish(t->q, &end, 1, &ended, &t->err));
    assert_int_equal(ended.err.code, WEIR_OK);
    return id;
}

#define BY(name) "{\"types\":[\"mail\"],\"n\":5,\"worker\":\"" name "\"}"
#define WAIT_BY(name) "{\"types\":[\"mail\"],\"n\":5,\"wait\":\"60s\",\"worker\":\"" name "\"}"

static void a_suspect_comes_alone(void **state)
{
    (void)state;
    web      w;
    uint64_t first, second, third, id, delivery;
    web_start(&w, RT_SQLITE, true, NULL);
    rt_add_type(&w.t, "mail");
    first = lose_one(&w);
    assert_int_equal(take(&w, "{\"types\":[\"mail\"],\"worker\":\"w1\",\"busy\":true}", NULL, NULL),
                     0);                                            /* it says it has others */
    assert_int_equal(take(&w, BY("w1"), &id, &delivery), 1);
    assert_int_equal(id, first);
    second = rt_add_type(&w.t, "mail");
    assert_int_equal(take(&w, BY("w1"), NULL, NULL), 0);            /* and nothing beside it */
    assert_int_equal(take(&w, BY("w2"), &id, NULL), 1);             /* others are free */
    assert_int_equal(id, second);
    int fd = begin_take(&w, WAIT_BY("w1"));
    third = rt_add_type(&w.t, "mail");
    finish(&w, 200, first, delivery, "");                           /* wakes who waits for it */
    assert_int_equal(end_take(fd, &id), 1);
    assert_int_equal(id, third);
    web_stop(&w);
}

/* Who asks for a thousand large jobs gets some; those who wait behind it get the others. */
static void large_jobs_come_in_lots(void **state)
{
    (void)state;
    enum { LARGE = 10, FIT = WEIR_MAX_TAKE_BYTES / WEIR_MAX_DATA };
    static char data[WEIR_MAX_DATA + 1];
    web         w;
    web_start(&w, RT_MEM, false, NULL);
    memset(data, 'x', WEIR_MAX_DATA);
    data[0] = data[WEIR_MAX_DATA - 1] = '"';
    int first = begin_take(&w, WAIT_BY("w1")), second = begin_take(&w, WAIT_BY("w2"));
    weir_spec  specs[LARGE];
    weir_added added[LARGE];
    for (int i = 0; i < LARGE; i++)
        specs[i] = (weir_spec){ .type = "mail", .data = data };
    assert_int_equal(weir_add_many(w.t.q, specs, LARGE, NULL, added, NULL), WEIR_OK);
    assert_int_equal(end_take(first, NULL), FIT);
    assert_int_equal(end_take(second, NULL), FIT);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_INACTIVE), LARGE - 2 * FIT);
    assert_int_equal(take(&w, "{\"types\":[\"mail\"],\"n\":1000,\"worker\":\"w3\"}", NULL, NULL),
                     LARGE - 2 * FIT);
    web_stop(&w);
}

static void a_busy_worker_ends_what_it_has_first(void **state)
{
    (void)state;
    web      w;
    uint64_t first, second, id, delivery;
    char     body[300];
    web_start(&w, RT_SQLITE, true, NULL);
    first = rt_add_type(&w.t, "mail");
    assert_int_equal(take(&w, BY("w1"), &id, &delivery), 1);
    rt_add(&w.t, &(weir_spec){ .type = "mail", .priority = -10 });
    second = lose_one(&w);
    rt_add_type(&w.t, "mail");
    assert_int_equal(take(&w, BY("w1"), &id, NULL), 1);             /* the one behind it ... */
    assert_true(id != second);
    rt_add_type(&w.t, "mail");
    assert_int_equal(take(&w, BY("w1"), NULL, NULL), 0);            /* ... and then none */
    finish(&w, 200, id, 1, "");
    int fd = begin_take(&w, WAIT_BY("w1"));
    finish(&w, 200, first, 1, "");
    assert_int_equal(end_take(fd, &id), 1);
    assert_int_equal(id, second);
    snprintf(body, sizeof body, "{\"jobs\":[{\"id\":%llu,\"delivery\":2}],\"take\":" BY("w1") "}",
             (unsigned long long)second);
    json_t *answer = web_json(&w, 200, "POST", "/v1/finish", body);
    assert_int_equal(jobs_of(answer, &id, &delivery), 1);           /* what waited behind it */
    web_stop(&w);
}

static void a_wait_ends_when_its_time_is_up(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    assert_int_equal(take(&w, "{\"types\":[\"mail\"],\"wait\":20}", NULL, NULL), 0);
    rt_add_type(&w.t, "sms");
    assert_int_equal(take(&w, "{\"types\":[\"mail\"],\"wait\":20}", NULL, NULL), 0);
    assert_int_equal(counts(&w)->takes_waiting, 0);
    web_stop(&w);
}

static uint64_t operations(web *w)
{
    weir_metrics m;
    weir_get_metrics(w->t.q, &m);
    return m.operations;
}

/* One job wakes one of many, and that is the one that has waited longest, on whatever loop. */
static void one_job_wakes_one(void **state)
{
    (void)state;
    /* The queue's first tick, and trends of the hour so far, which are 14 minutes at 10 a read. */
    enum { N = 6, LOOPS = 3, SO_FAR = 1 + 2 + N + LOOPS };
    web w;
    int fd[N];
    web_start(&w, RT_SQLITE, true, &(srv_options){ .threads = LOOPS });
    for (int i = 0; i < N; i++)
        fd[i] = begin_take(&w, i % 2 ? wait_mail
                                     : "{\"types\":[\"sms\",\"mail\"],\"wait\":\"60s\"}");
    for (int i = 0; i < LOOPS; i++)         /* what they were answered has come to their loops */
        take(&w, "{\"types\":[\"none\"]}", NULL, NULL);
    UNTIL(operations(&w) == SO_FAR);
    for (int i = 0; i < N; i++) {
        uint64_t id, added = rt_add_type(&w.t, "mail");
        assert_int_equal(end_take(fd[i], &id), 1);
        assert_int_equal(id, added);
        assert_int_equal(counts(&w)->takes_waiting, N - 1 - i);
        UNTIL(operations(&w) >= SO_FAR + 2u * (unsigned)(i + 1));    /* an add and one take each */
        assert_int_equal(operations(&w), SO_FAR + 2 * (i + 1));
    }
    web_stop(&w);
}

static void a_lot_wakes_as_many_as_it_needs(void **state)
{
    (void)state;
    enum { N = 8 };
    web       w;
    int       fd[N];
    weir_spec specs[N + 2];
    web_start(&w, RT_SQLITE, false, &(srv_options){ .threads = 2 });
    for (int i = 0; i < N; i++)
        fd[i] = begin_take(&w, wait_mail);
    for (int i = 0; i < N + 2; i++)
        specs[i] = (weir_spec){ .type = "mail" };
    rt *t = &w.t;
    OK(weir_add_many(t->q, specs, N + 2, NULL, NULL, &t->err));
    for (int i = 0; i < N; i++)
        assert_int_equal(end_take(fd[i], NULL), 1);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_INACTIVE), 2);
    web_stop(&w);
}

/* After a pause nobody knows how many wait: all of them are handed out, without another event. */
static void a_resumed_type_serves_all_who_wait(void **state)
{
    (void)state;
    enum { N = 5 };
    web w;
    int fd[N];
    web_start(&w, RT_SQLITE, false, &(srv_options){ .threads = 2 });
    rt *t = &w.t;
    OK(weir_pause(t->q, "mail", &t->err));
    for (int i = 0; i < N; i++)
        rt_add_type(t, "mail");
    for (int i = 0; i < N; i++)
        fd[i] = begin_take(&w, wait_mail);
    OK(weir_resume(t->q, "mail", &t->err));
    for (int i = 0; i < N; i++)
        assert_int_equal(end_take(fd[i], NULL), 1);
    web_stop(&w);
}

/* ---- clients that go away ---- */

static void who_is_gone_waits_no_longer(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    int first = begin_take(&w, wait_mail), second = begin_take(&w, wait_mail);
    close(first);
    UNTIL(counts(&w)->takes_waiting == 1);
    uint64_t id = rt_add_type(&w.t, "mail"), got;
    assert_int_equal(end_take(second, &got), 1);
    assert_int_equal(got, id);
    /* one that closes only its side hears that there are none */
    int fd = begin_take(&w, wait_mail);
    shutdown(fd, SHUT_WR);
    assert_int_equal(end_take(fd, NULL), 0);
    web_stop(&w);
}

/* Holds the queue's callback thread, and with it all answers, when a job of the type "hold" is
 * added. */
typedef struct holder {
    gate held, go;
} holder;

static void hold_on(const weir_event *ev, void *ctx)
{
    (void)ev;
    holder *h = ctx;
    gate_up(&h->held);
    gate_wait(&h->go, 1);
}

static void hang_up(int fd)
{
    struct linger at_once = { .l_onoff = 1 };
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

static void jobs_for_a_client_that_is_gone_are_free_at_once(void **state)
{
    (void)state;
    web            w;
    holder         h = { GATE_INIT, GATE_INIT };
    weir_listener *l;
    web_start(&w, RT_SQLITE, true, NULL);
    rt *t = &w.t;
    OK(weir_listen(t->q, &(weir_filter){ .type = "hold" }, hold_on, &h, &l, &t->err));
    uint64_t id = rt_add_type(t, "mail");
    UNTIL(w.s->n_conns == 0);
    rt_add_type(t, "hold");
    gate_wait(&h.held, 1);
    int fd = begin(&w, TAKE, "{\"types\":[\"mail\"],\"lease\":\"1h\"}");
    rt_until(t, id, WEIR_STATE_ACTIVE);           /* taken, and the answer is on its way */
    hang_up(fd);
    UNTIL(w.s->n_conns == 0);
    int other = begin_take(&w, wait_mail);
    gate_up(&h.go);
    uint64_t got;
    assert_int_equal(end_take(other, &got), 1);
    assert_int_equal(got, id);
    UNTIL(counts(&w)->jobs_returned == 1);
    assert_int_equal(rt_state(t, id), WEIR_STATE_ACTIVE);
    weir_unlisten(l);
    web_stop(&w);
}

static void so_are_those_that_were_taken_with_an_ending(void **state)
{
    (void)state;
    web            w;
    holder         h = { GATE_INIT, GATE_INIT };
    weir_listener *l;
    uint64_t       first, next;
    web_start(&w, RT_SQLITE, true, NULL);
    rt *t = &w.t;
    OK(weir_listen(t->q, &(weir_filter){ .type = "hold" }, hold_on, &h, &l, &t->err));
    rt_add_type(t, "mail");
    take(&w, "{\"types\":[\"mail\"]}", &first, NULL);
    next = rt_add_type(t, "mail");
    UNTIL(w.s->n_conns == 0);
    rt_add_type(t, "hold");
    gate_wait(&h.held, 1);
    int fd = begin(&w, "/v1/finish", "{\"jobs\":[{\"id\":1,\"delivery\":1}],\"take\":"
                                     "{\"types\":[\"mail\"],\"lease\":\"1h\"}}");
    rt_until(t, next, WEIR_STATE_ACTIVE);
    hang_up(fd);
    UNTIL(w.s->n_conns == 0);
    gate_up(&h.go);
    rt_until(t, next, WEIR_STATE_INACTIVE);
    assert_int_equal(rt_state(t, first), WEIR_STATE_COMPLETE);
    weir_unlisten(l);
    web_stop(&w);
}

static void a_server_that_stops_answers_those_who_wait(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, &(srv_options){ .threads = 2 });
    int first = begin_take(&w, wait_mail), second = begin_take(&w, wait_mail);
    srv_stop(w.s);
    assert_int_equal(end_take(first, NULL), 0);
    assert_int_equal(end_take(second, NULL), 0);
    web_stop(&w);
}

/* ---- a store that others use, and that may be away ---- */

static void away(web *w, const char *target, const char *body)
{
    web_answer a = web_call(w, "POST", target, body);
    if (a.status != 503 || !web_header(&a, "Retry-After") || !strstr(a.body, "{\"error\":{"))
        fail_msg("%s: %d %s", target, a.status, a.body);
    web_free(&a);
}

static bool can_take(web *w)
{
    web_answer a = web_call(w, "POST", TAKE, "{\"types\":[\"none\"]}");
    bool       can = a.status == 200;
    web_free(&a);
    return can;
}

static void jobs_of_other_processes_and_a_store_that_is_away(void **state)
{
    (void)state;
    web         w;
    char        url[512];
    weir_queue *other;
    rig        *redis = rig_start(NULL);
    web_start(&w, rig_url(redis, "redis+unix", "timeout=1s", url, sizeof url), false, NULL);
    rt *t = &w.t;
    OK(weir_open(&other, url, NULL, &t->err));
    for (int i = 0; i < 2; i++) {
        int fd = begin_take(&w, wait_mail);
        OK(weir_add(other, &(weir_spec){ .type = "mail" }, NULL, &t->err));
        assert_int_equal(end_take(fd, NULL), 1);
        if (i)
            break;
        assert_true(rig_stop(redis));
        away(&w, TAKE, "{\"types\":[\"mail\"]}");
        away(&w, TAKE, wait_mail);
        away(&w, "/v1/finish", "{\"jobs\":[{\"id\":1,\"delivery\":1}],\"take\":"
                               "{\"types\":[\"mail\"]}}");
        away(&w, "/v1/renew", "{\"jobs\":[{\"id\":1,\"delivery\":1}]}");
        away(&w, TAKE, wait_mail);
        assert_true(rig_begin(redis) && rig_ready(redis));
        bool there;
        UNTIL(weir_exists(t->q, 1, &there, &t->err) == WEIR_OK);
        UNTIL(weir_exists(other, 1, &there, &t->err) == WEIR_OK);
        UNTIL(can_take(&w));                    /* that is a connection of its own */
        if (there)          /* it may have been lost with the server, which kept nothing on disk */
            finish(&w, 200, 1, 1, "");
    }
    assert_int_equal(counts(&w)->takes_waiting, 0);
    weir_close(other);
    web_stop(&w);
    rig_free(redis);
}

/* ---- a storm ---- */

typedef struct storm {
    web             *w;
    atomic_bool      over;
    atomic_int       ended;
    _Atomic uint8_t *done;          /* by id: times it was done */
} storm;

typedef struct storm_worker {
    storm    *s;
    bool      both;                 /* it always asks for both types: nobody else need take a b */
    pthread_t thread;
} storm_worker;

/* Take with a long wait, end what came; now and then hang up instead of listening. No lease is over
 * before the end of the test, however slow the machine is. */
static void *work_in_storm(void *arg)
{
    const storm_worker *me = arg;
    storm              *s = me->s;
    unsigned            seed = (unsigned)(uintptr_t)&seed;
    while (!atomic_load(&s->over)) {
        char body[96];
        snprintf(body, sizeof body,
                 "{\"types\":[\"%s\"],\"n\":%d,\"wait\":\"60s\",\"lease\":\"10m\"}",
                 rand_r(&seed) % 2 || me->both ? "a\",\"b" : "a", 1 + rand_r(&seed) % 4);
        int fd = begin(s->w, TAKE, body);
        if (rand_r(&seed) % 8 == 0) {
            hang_up(fd);
            continue;
        }
        json_t *answer = read_json(fd, 200), *job;
        size_t  i;
        close(fd);
        json_array_foreach(json_object_get(answer, "jobs"), i, job) {
            uint64_t id = (uint64_t)json_integer_value(json_object_get(job, "id"));
            uint64_t delivery = (uint64_t)json_integer_value(json_object_get(job, "delivery"));
            char     end[128];
            snprintf(end, sizeof end, "{\"jobs\":[{\"id\":%llu,\"delivery\":%llu}]}",
                     (unsigned long long)id, (unsigned long long)delivery);
            json_decref(web_json(s->w, 200, "POST", "/v1/finish", end));
            atomic_fetch_add(&s->done[id], 1);
        }
        json_decref(answer);
    }
    atomic_fetch_add(&s->ended, 1);
    return NULL;
}

/* Nobody waits while there is a job for it, whoever comes and goes meanwhile. (A job whose answer
 * was on the wire when its client hung up stays active until its lease is over.) */
static void nobody_waits_in_vain(void **state)
{
    (void)state;
    enum { WORKERS = 12, JOBS = 400, MORE = 4000 };
    web          w;
    storm_worker worker[WORKERS];
    web_start(&w, RT_SQLITE, false, &(srv_options){ .threads = 2 });
    rt   *t = &w.t;
    storm s = { .w = &w, .done = calloc(JOBS + MORE + 1, 1) };
    assert_non_null(s.done);
    for (int i = 0; i < WORKERS; i++) {
        worker[i] = (storm_worker){ .s = &s, .both = i % 2 };
        assert_int_equal(pthread_create(&worker[i].thread, NULL, work_in_storm, &worker[i]), 0);
    }
    for (int i = 0; i < JOBS; i++) {
        rt_add_type(t, i % 3 ? "a" : "b");
        if (i % 20 == 0)
            UNTIL(rt_count(t, WEIR_STATE_INACTIVE) == 0);
        if (i % 50 == 0) {
            OK(weir_pause(t->q, "a", &t->err));
            OK(weir_resume(t->q, "a", &t->err));
        }
    }
    UNTIL(rt_count(t, WEIR_STATE_INACTIVE) == 0);
    atomic_store(&s.over, true);
    for (int i = 0; i < MORE && atomic_load(&s.ended) < WORKERS; i++) {
        rt_add_type(t, "a");
        rt_breathe();
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_join(worker[i].thread, NULL);
    for (int i = 1; i <= JOBS + MORE; i++)
        assert_true(s.done[i] <= 1);
    free((void *)s.done);
    web_stop(&w);
}

/* ---- who was seen ---- */

static json_t *worker(web *w, const char *name, json_t **all)
{
    json_t *one;
    size_t  i;
    *all = web_json(w, 200, "GET", "/v1/workers", NULL);
    json_array_foreach(json_object_get(*all, "workers"), i, one)
        if (strcmp(json_string_value(json_object_get(one, "name")), name) == 0)
            return one;
    return NULL;
}

/* A number of the first job that it holds. */
static json_int_t held_by(const json_t *worker, const char *member)
{
    return json_integer_value(json_object_get(json_array_get(json_object_get(worker, "jobs"), 0),
                                              member));
}

static void workers_are_seen_and_forgotten(void **state)
{
    (void)state;
    enum { LEASE_MS = 3 * 3600 * 1000 };
    web      w;
    json_t  *all, *one;
    uint64_t id;
    web_start(&w, RT_SQLITE, true, NULL);
    rt_add_type(&w.t, "mail");
    take(&w, "{\"types\":[\"mail\",\"sms\"],\"worker\":\"ann\",\"lease\":\"3h\"}", &id, NULL);
    rt_later(&w.t, 1000);
    int fd = begin_take(&w, "{\"types\":[\"mail\"],\"wait\":\"60s\"}");
    one = worker(&w, "ann", &all);
    assert_int_equal(json_array_size(json_object_get(one, "types")), 2);
    assert_true(json_is_false(json_object_get(one, "waiting")));
    assert_int_equal(json_array_size(json_object_get(one, "jobs")), 1);
    assert_int_equal(held_by(one, "id"), id);
    assert_int_equal(held_by(one, "started_at"), w.t.now - 1000);
    assert_int_equal(held_by(one, "lease_until"), w.t.now - 1000 + LEASE_MS);
    assert_int_equal(json_integer_value(json_object_get(one, "last_seen_at")),
                     json_integer_value(json_object_get(one, "first_seen_at")));
    json_decref(all);
    one = worker(&w, "127.0.0.1", &all);
    assert_true(json_is_true(json_object_get(one, "waiting")));
    assert_int_equal(json_array_size(json_object_get(one, "jobs")), 0);
    json_decref(all);

    rt_later(&w.t, 1000);
    char body[128];
    snprintf(body, sizeof body, "{\"jobs\":[{\"id\":%llu,\"delivery\":1}],\"worker\":\"ann\","
             "\"lease\":\"3h\"}", (unsigned long long)id);
    json_decref(web_json(&w, 200, "POST", "/v1/renew", body));
    one = worker(&w, "ann", &all);
    assert_int_equal(json_integer_value(json_object_get(one, "last_seen_at")),
                     json_integer_value(json_object_get(one, "first_seen_at")) + 2000);
    assert_int_equal(held_by(one, "started_at"), w.t.now - 2000);
    assert_int_equal(held_by(one, "lease_until"), w.t.now + LEASE_MS);
    json_decref(all);

    rt_later(&w.t, 3600 * 1000 + 1);                /* who waits is not forgotten */
    one = worker(&w, "ann", &all);                  /* she is, but for the job that she holds */
    assert_null(json_object_get(one, "last_seen_at"));
    assert_int_equal(held_by(one, "id"), id);
    json_decref(all);
    assert_int_equal(weir_cancel(w.t.q, id, &w.t.err), WEIR_OK);
    assert_null(worker(&w, "ann", &all));
    json_decref(all);
    assert_non_null(worker(&w, "127.0.0.1", &all));
    json_decref(all);
    close(fd);
    web_stop(&w);
}

/* How many types this worker is known to take. */
static size_t types_of(web *w, const char *name)
{
    json_t *all, *one = worker(w, name, &all);
    size_t  n = one ? json_array_size(json_object_get(one, "types")) : 0;
    json_decref(all);
    return n;
}

/* Those in this process are, too: events tell of them. */
static void workers_that_never_called_are_seen(void **state)
{
    (void)state;
    static const char *const types[] = { "mail", "sms" };
    web w;
    web_start(&w, RT_SQLITE, false, NULL);
    for (size_t i = 0; i < 2; i++) {
        weir_job *job;
        size_t    n = 0;
        char      name[256];
        rt_add_type(&w.t, types[i]);
        const char *const one[] = { types[i], NULL };
        assert_int_equal(weir_take(w.t.q, &(weir_taking){ .types = one, .n = 1, .lease_ms = 60000 },
                                   &job, &n, &w.t.err),
                         WEIR_OK);
        assert_int_equal(n, 1);
        snprintf(name, sizeof name, "%s", job->worker);
        assert_int_equal(weir_job_done(job, NULL, 0, NULL), WEIR_OK);
        weir_job_free(job);
        UNTIL(types_of(&w, name) == i + 1);
    }
    web_stop(&w);
}

/* Also those who began before this server did, in another process. */
static void whoever_holds_a_job_is_there(void **state)
{
    (void)state;
    web         w;
    char        url[512], name[256];
    weir_error  err;
    weir_queue *other;
    weir_job   *job[3];
    size_t      n;
    json_t     *all, *one;
    rig        *redis = rig_start(NULL);
    static const char *const types[] = { "mail", "sms", NULL };
    assert_int_equal(weir_open(&other, rig_url(redis, "redis+unix", NULL, url, sizeof url), NULL,
                               &err), WEIR_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_add(other, &(weir_spec){ .type = types[i % 2] }, NULL, &err),
                         WEIR_OK);
    assert_int_equal(weir_take(other, &(weir_taking){ .types = types, .n = 3, .lease_ms = 60000 },
                               job, &n, &err),
                     WEIR_OK);
    assert_int_equal(n, 3);
    snprintf(name, sizeof name, "%s", job[0]->worker);
    web_start(&w, url, false, NULL);
    one = worker(&w, name, &all);
    assert_non_null(one);
    assert_null(json_object_get(one, "last_seen_at"));
    assert_int_equal(json_array_size(json_object_get(one, "types")), 2);
    assert_int_equal(json_array_size(json_object_get(one, "jobs")), 3);
    assert_int_equal(held_by(one, "lease_until"), job[0]->lease_until);
    json_decref(all);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir_job_done(job[i], NULL, 0, NULL), WEIR_OK);
        weir_job_free(job[i]);
    }
    assert_null(worker(&w, name, &all));
    json_decref(all);
    weir_close(other);
    web_stop(&w);
    rig_free(redis);
}

/* ---- tokens ---- */

static void add_token(const char *file, const char *name, const char *roles, const char *type,
                      char *header, size_t size)
{
    srv_caller c = { 0 };
    weir_error err;
    char       text[SRV_TOKEN_TEXT];
    assert_true(srv_roles_parse(roles, &c.roles));
    snprintf(c.name, sizeof c.name, "%s", name);
    snprintf(c.types, sizeof c.types, "%s", type);
    if (srv_tokens_add(file, &c, 1, text, &err))
        fail_msg("%s", err.msg);
    snprintf(header, size, "Authorization: Bearer %s\r\n", text);
}

/* What is said to this caller has this status and all these parts (NULL at the end). */
static void says(web *w, const char *header, int status, const char *const *parts,
                 const char *target, const char *body)
{
    web_answer a = web_call_with(w, body ? "POST" : "GET", target, header, body);
    bool       right = a.status == status;
    for (; right && *parts; parts++)
        right = strstr(a.body, *parts) != NULL;
    if (!right)
        fail_msg("%s %s: %d %.500s, not %d with %s", target, body, a.status, a.body, status,
                 *parts ? *parts : "that");
    web_free(&a);
}
#define SAYS(header, status, target, body, ...)                                                  \
    says(&w, header, status, (const char *const[]){ __VA_ARGS__, NULL }, target, body)

static void a_token_of_a_type_touches_that_alone(void **state)
{
    (void)state;
    web  w;
    char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 16], reader[200], worker_[200], mailer[200];
    char mail_reader[200];
    assert_true(tempdir_make(dir));
    snprintf(file, sizeof file, "%s/tokens.json", dir);
    add_token(file, "reader", "read", "", reader, sizeof reader);
    add_token(file, "worker", "work", "", worker_, sizeof worker_);
    add_token(file, "mailer", "work", "mail", mailer, sizeof mailer);
    add_token(file, "mail-reader", "read", "mail", mail_reader, sizeof mail_reader);
    web_start(&w, RT_SQLITE, true, &(srv_options){ .tokens_file = file });
    rt_add_type(&w.t, "mail");                          /* 1 */
    rt_add_type(&w.t, "sms");                           /* 2 */
    static const char both[] = "{\"types\":[\"mail\",\"sms\"],\"n\":2}";
    static const char ends[] = "{\"jobs\":[{\"id\":1,\"delivery\":1},{\"id\":2,\"delivery\":1},"
                               "{\"id\":9,\"delivery\":1}]}";
    static const char sms_only[] = "{\"jobs\":[{\"id\":2,\"delivery\":1}],\"take\":"
                                   "{\"types\":[\"mail\"]}}";
    SAYS(NULL, 401, TAKE, both, "error");
    SAYS(reader, 403, TAKE, both, "forbidden");
    SAYS(reader, 403, "/v1/finish", ends, "forbidden");
    SAYS(reader, 403, "/v1/renew", ends, "forbidden");
    SAYS(mailer, 403, TAKE, both, "forbidden");
    SAYS(worker_, 200, TAKE, both, "\"id\":1", "\"id\":2", "\"workerId\":\"worker@127.0.0.1\"");
    SAYS(mailer, 200, "/v1/renew", ends, "{\"id\":1,\"ok\":true}",
         "{\"id\":2,\"error\":{\"code\":\"ENOENT\"", "{\"id\":9,\"error\":{\"code\":\"ENOENT\"");
    SAYS(mailer, 403, "/v1/finish", "{\"jobs\":[{\"id\":1,\"delivery\":1}],\"take\":"
         "{\"types\":[\"sms\"]}}", "forbidden");
    assert_int_equal(rt_state(&w.t, 1), WEIR_STATE_ACTIVE);
    SAYS(mailer, 207, "/v1/finish", ends, "{\"id\":1,\"state\":\"complete\"}",
         "{\"id\":2,\"error\":{\"code\":\"ENOENT\"", "{\"id\":9,\"error\":{\"code\":\"ENOENT\"");
    rt_add_type(&w.t, "mail");                          /* 3 */
    SAYS(mailer, 207, "/v1/finish", sms_only, "ENOENT", "\"jobs\":[{\"id\":3,");
    assert_int_equal(rt_state(&w.t, 2), WEIR_STATE_ACTIVE);
    SAYS(mail_reader, 200, "/v1/workers", NULL, "{\"workers\":[{\"name\":\"worker@127.0.0.1\","
         "\"types\":[\"mail\"],", "\"jobs\":[]},{\"name\":\"mailer@127.0.0.1\"",
         "\"jobs\":[{\"id\":3,\"type\":\"mail\",");
    SAYS(reader, 200, "/v1/workers", NULL, "\"types\":[\"mail\",\"sms\"],",
         "\"jobs\":[{\"id\":2,\"type\":\"sms\",");
    SAYS(mail_reader, 403, "/v1/events?type=sms", NULL, "forbidden");
    /* the events of its type alone, though it asks for all */
    int   fd = web_connect(&w);
    char *heard = NULL, req[400];
    snprintf(req, sizeof req, "GET /v1/events HTTP/1.1\r\nHost: %s\r\n%s\r\n", w.host, mail_reader);
    web_send(fd, req);
    web_read_until(fd, &heard, "retry: ");
    rt_add_type(&w.t, "sms");
    rt_add_type(&w.t, "mail");
    web_read_until(fd, &heard, "\"type\":\"mail\"");
    assert_null(strstr(heard, "sms"));
    free(heard);
    close(fd);
    web_stop(&w);
    tempdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_are_taken_and_ended),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(each_ending_has_an_answer_of_its_own),
        cmocka_unit_test(a_busy_worker_needs_one_call),
        cmocka_unit_test(many_at_once),
        cmocka_unit_test(a_late_worker_changes_nothing),
        cmocka_unit_test(a_cancelled_job_is_told_at_the_next_renewal),
        cmocka_unit_test(a_wait_ends_with_a_job),
        cmocka_unit_test(a_suspect_comes_alone),
        cmocka_unit_test(large_jobs_come_in_lots),
        cmocka_unit_test(a_busy_worker_ends_what_it_has_first),
        cmocka_unit_test(a_wait_ends_when_its_time_is_up),
        cmocka_unit_test(one_job_wakes_one),
        cmocka_unit_test(a_lot_wakes_as_many_as_it_needs),
        cmocka_unit_test(a_resumed_type_serves_all_who_wait),
        cmocka_unit_test(who_is_gone_waits_no_longer),
        cmocka_unit_test(jobs_for_a_client_that_is_gone_are_free_at_once),
        cmocka_unit_test(so_are_those_that_were_taken_with_an_ending),
        cmocka_unit_test(a_server_that_stops_answers_those_who_wait),
        cmocka_unit_test(jobs_of_other_processes_and_a_store_that_is_away),
        cmocka_unit_test(nobody_waits_in_vain),
        cmocka_unit_test(workers_are_seen_and_forgotten),
        cmocka_unit_test(workers_that_never_called_are_seen),
        cmocka_unit_test(whoever_holds_a_job_is_there),
        cmocka_unit_test(a_token_of_a_type_touches_that_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
