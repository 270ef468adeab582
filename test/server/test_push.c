/* test_push.c - jobs pushed to a URL: what is sent, what each answer does to the job and to the
 * target, limits, what is refused, and what is left after a restart. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/access/tokens.h"
#include "support/proxy.h"
#include "support/receiver.h"
#include "support/server_rig.h"
#include "weir/remote.h"

#define SECRET "a secret of the tests"

static const srv_options private_too = { .push_private = true };

/* ---- rig ---- */

/* PUT a target "t" for jobs of type "x"; `more` are members with a comma in front. */
static void put_to(web *w, const char *url, const char *more)
{
    char body[1024];
    snprintf(body, sizeof body, "{\"types\":[\"x\"],\"url\":\"%s\",\"secret\":\"" SECRET "\"%s}",
             url, more);
    web_answer a = web_call(w, "PUT", "/v1/push/t", body);
    if (a.status != 200 && a.status != 201)
        fail_msg("PUT %s: %d %s", body, a.status, a.body);
    assert_null(strstr(a.body, SECRET));
    web_free(&a);
}

static void put(web *w, int port, const char *more)
{
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/jobs", port);
    put_to(w, url, more);
}

/* The first target, as GET shows it. */
static json_t *target(web *w)
{
    json_t *all = web_json(w, 200, "GET", "/v1/push", NULL);
    json_t *one = json_incref(json_array_get(json_object_get(all, "targets"), 0));
    json_decref(all);
    assert_non_null(one);
    return one;
}

static bool has_state(web *w, const char *state)
{
    json_t *t = target(w);
    bool    yes = !strcmp(json_string_value(json_object_get(t, "state")), state);
    json_decref(t);
    return yes;
}

static json_int_t running(web *w)
{
    json_t    *t = target(w);
    json_int_t n = json_integer_value(json_object_get(t, "running"));
    json_decref(t);
    return n;
}

static bool has_error(web *w, const char *part)
{
    json_t     *t = target(w);
    const char *error = json_string_value(json_object_get(t, "error"));
    bool        yes = error && strstr(error, part);
    json_decref(t);
    return yes;
}

static void has_result(rt *t, uint64_t id, const char *result)
{
    weir_job *job = rt_get(t, id);
    if (!result)
        assert_null(job->result);
    else
        assert_string_equal(job->result, result);
    weir_job_free(job);
}

static void has_failed(rt *t, uint64_t id, const char *error)
{
    rt_until(t, id, WEIR_STATE_FAILED);
    weir_job *job = rt_get(t, id);
    assert_string_equal(job->error, error);
    assert_int_equal(job->attempts, job->max_attempts);
    weir_job_free(job);
}

/* Neither done nor tried. */
static void is_untouched(rt *t, uint64_t id)
{
    rt_until(t, id, WEIR_STATE_INACTIVE);
    weir_job *job = rt_get(t, id);
    assert_int_equal(job->attempts, 0);
    assert_null(job->error);
    weir_job_free(job);
}

/* Answers one after the other, the last again and again. */
typedef struct script {
    const reply *answers;
    size_t       n;
} script;

static reply from_script(const received *in, size_t n, void *ctx)
{
    const script *s = ctx;
    (void)in;
    return s->answers[n < s->n ? n : s->n - 1];
}

#define SCRIPT(...) (script){ (const reply[]){ __VA_ARGS__ },                       \
                              sizeof((const reply[]){ __VA_ARGS__ }) / sizeof(reply) }

/* ---- what is sent ---- */

/* ",v2=HEX" by the words of the documentation, not by the code that makes it. */
static void signature_of(const received *in, const char *secret, char out[80])
{
    static const char *const lines[] = { "Weir-Timestamp", "Weir-Job-Id", "Weir-Delivery",
                                         "Weir-Attempt", "Weir-Job-Type" };
    char          text[4096] = "v2\n";
    unsigned char mac[32];
    unsigned      len = sizeof mac;
    size_t        n = 3;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\n", received_header(in, lines[i]));
    n += (size_t)snprintf(text + n, sizeof text - n, "%s", in->body);
    HMAC(EVP_sha256(), secret, (int)strlen(secret), (unsigned char *)text, n, mac, &len);
    strcpy(out, ",v2=");
    for (size_t i = 0; i < sizeof mac; i++)
        snprintf(out + 4 + 2 * i, 3, "%02x", mac[i]);
}

/* `old` NULL: one secret signs. */
static void check_signatures(const received *in, const char *secret, const char *old)
{
    char one[80], other[80] = "", want[200];
    signature_of(in, secret, one);
    if (old)
        signature_of(in, old, other);
    snprintf(want, sizeof want, "t=%s%s%s", received_header(in, "Weir-Timestamp"), one, other);
    assert_string_equal(received_header(in, "Weir-Signature"), want);
}

static void check_signature(const received *in)
{
    check_signatures(in, SECRET, NULL);
}

/* The secret is changed: both sign, also after a restart would (push.json has them), until the
 * target is put without `rotate`. */
static void a_secret_is_changed(void **state)
{
    (void)state;
    static const struct { const char *more, *secret, *old; } steps[] = {
        { ",\"secret\":\"the second secret\",\"rotate\":true", "the second secret", SECRET },
        { ",\"rotate\":true", "the second secret", SECRET },
        { "", "the second secret", NULL },
        { ",\"rotate\":true", "the second secret", NULL },
        { ",\"secret\":\"the third secret!\"", "the third secret!", NULL },
    };
    web      w;
    receiver r;
    script   s = SCRIPT({ .body = "1" });
    web_start(&w, RT_MEM, true, &private_too);
    receiver_start(&r, 0, from_script, &s);
    put(&w, r.port, "");
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char        body[300];
        web_answer  a;
        const char *type = i % 2 ? "x" : "x.y z";
        snprintf(body, sizeof body, "{\"types\":[\"x\",\"x.y z\"],"
                 "\"url\":\"http://127.0.0.1:%d/jobs\"%s}", r.port, steps[i].more);
        a = web_call(&w, "PUT", "/v1/push/t", body);
        assert_int_equal(a.status, 200);
        assert_int_equal(strstr(a.body, "\"rotating\":true") != NULL, steps[i].old != NULL);
        assert_null(strstr(a.body, "secret"));
        web_free(&a);
        rt_until(&w.t, rt_add(&w.t, &(weir_spec){ .type = type, .data = "{}" }),
                 WEIR_STATE_COMPLETE);
        assert_int_equal(receiver_count(&r), i + 1);
        check_signatures(&r.kept[i], steps[i].secret, steps[i].old);
    }
    receiver_stop(&r);
    web_stop(&w);
}

static void a_job_is_posted_and_signed(void **state)
{
    (void)state;
    web      w;
    receiver r;
    script   s = SCRIPT({ .body = "{\"sent\": 1.10}" });
    web_start(&w, RT_MEM, true, &private_too);
    receiver_start(&r, 0, from_script, &s);
    put(&w, r.port, "");
    static const char data[] = "{\"to\": \"\\u00e9\", \"n\":1.0}";
    uint64_t          id = rt_add(&w.t, &(weir_spec){ .type = "x", .data = data });
    rt_until(&w.t, id, WEIR_STATE_COMPLETE);
    has_result(&w.t, id, "{\"sent\": 1.10}");

    assert_int_equal(receiver_count(&r), 1);
    const received *in = &r.kept[0];
    char            text[64];
    assert_memory_equal(in->head, "POST /jobs HTTP/1.1\r\n", 21);
    assert_string_equal(in->body, data);
    assert_string_equal(received_header(in, "Content-Type"), "application/json");
    assert_string_equal(received_header(in, "User-Agent"), "weir/" WEIR_VERSION);
    snprintf(text, sizeof text, "%llu", (unsigned long long)id);
    assert_string_equal(received_header(in, "Weir-Job-Id"), text);
    assert_string_equal(received_header(in, "Weir-Job-Type"), "x");
    assert_string_equal(received_header(in, "Weir-Delivery"), "1");
    assert_string_equal(received_header(in, "Weir-Attempt"), "1");
    snprintf(text, sizeof text, "%lld", (long long)weir_now(w.t.q) / 1000);
    assert_string_equal(received_header(in, "Weir-Timestamp"), text);
    assert_null(received_header(in, "Expect"));
    assert_null(received_header(in, "Authorization"));
    check_signature(in);

    weir_job *job = rt_get(&w.t, id);
    assert_string_equal(job->worker, "push:t");
    weir_job_free(job);
    web_stop(&w);
    receiver_stop(&r);
}

/* A type may have characters that a header may not. */
static void odd_types_are_escaped(void **state)
{
    (void)state;
    web      w;
    receiver r;
    char     body[256];
    web_start(&w, RT_MEM, false, &private_too);
    receiver_start(&r, 0, NULL, NULL);
    snprintf(body, sizeof body, "{\"types\":[\"a b%%\xc3\xa9\"],\"url\":\"http://127.0.0.1:%d\","
             "\"secret\":\"" SECRET "\"}", r.port);
    json_decref(web_json(&w, 201, "PUT", "/v1/push/t", body));
    uint64_t id = rt_add_type(&w.t, "a b%\xc3\xa9");
    rt_until(&w.t, id, WEIR_STATE_COMPLETE);
    assert_string_equal(received_header(&r.kept[0], "Weir-Job-Type"), "a%20b%25%C3%A9");
    has_result(&w.t, id, NULL);
    web_stop(&w);
    receiver_stop(&r);
}

/* Connections are used again, and a big job needs no word in between. */
static void big_jobs_on_one_connection(void **state)
{
    (void)state;
    web      w;
    receiver r;
    char    *data = malloc(WEIR_MAX_DATA + 1);
    memset(data, 'x', WEIR_MAX_DATA);
    data[0] = data[WEIR_MAX_DATA - 1] = '"';
    data[WEIR_MAX_DATA] = '\0';
    web_start(&w, RT_MEM, false, &private_too);
    receiver_start(&r, 0, NULL, NULL);
    put(&w, r.port, ",\"concurrency\":1");
    for (int i = 0; i < 3; i++)
        rt_until(&w.t, rt_add(&w.t, &(weir_spec){ .type = "x", .data = data }),
                 WEIR_STATE_COMPLETE);
    assert_int_equal(receiver_conns(&r), 1);
    assert_string_equal(r.kept[2].body, data);
    web_stop(&w);
    receiver_stop(&r);
    free(data);
}

/* ---- what the answer does to the job ---- */

static void any_text_is_a_result(void **state)
{
    (void)state;
    web      w;
    receiver r;
    script   s = SCRIPT({ .status = 204 }, { .body = "done\nat \"once\"" }, { .body = "12.50" },
                        { .status = 201, .body = "\"text\"" }, { .body = "\xff\xfe" });
    static const char *const results[] = { NULL, "\"done\\nat \\\"once\\\"\"", "12.50", "\"text\"",
                                           "\"\xef\xbf\xbd\xef\xbf\xbd\"" };
    web_start(&w, RT_MEM, false, &private_too);
    receiver_start(&r, 0, from_script, &s);
    put(&w, r.port, "");
    for (size_t i = 0; i < s.n; i++) {
        uint64_t id = rt_add_type(&w.t, "x");
        rt_until(&w.t, id, WEIR_STATE_COMPLETE);
        has_result(&w.t, id, results[i]);
    }
    web_stop(&w);
    receiver_stop(&r);
}

static void other_answers_fail_with_the_first_line(void **state)
{
    (void)state;
    web      w;
    receiver r;
    script   s = SCRIPT({ .status = 500, .body = "no such user\r\ntrace ..." }, { .status = 404 },
                        { .status = 400, .body = "{\"error\":\"x\"}" },
                        { .status = 302, .headers = "Location: http://127.0.0.1:1/\r\n" },
                        { .status = 503, .body = "down" }, { .status = 429 });
    static const char *const errors[] = {
        "HTTP 500: no such user", "HTTP 404", "HTTP 400: {\"error\":\"x\"}",
        "HTTP 302: redirects are not followed", "HTTP 503: down", "HTTP 429",
    };
    web_start(&w, RT_MEM, false, &private_too);
    receiver_start(&r, 0, from_script, &s);
    put(&w, r.port, "");
    for (size_t i = 0; i < s.n; i++)
        has_failed(&w.t, rt_add_type(&w.t, "x"), errors[i]);
    assert_int_equal(receiver_count(&r), s.n);
    assert_true(has_state(&w, "ready"));
    web_stop(&w);
    receiver_stop(&r);
}

static void a_receiver_that_dies_loses_the_job(void **state)
{
    (void)state;
    web      w;
    receiver r;
    script   s = SCRIPT({ .hang_up = true }, { .body = "1" });
    web_start(&w, RT_MEM, false, &private_too);
    receiver_start(&r, 0, from_script, &s);
    put(&w, r.port, "");
    uint64_t id = rt_add_type(&w.t, "x");
    rt_until(&w.t, id, WEIR_STATE_COMPLETE);              /* though it has one attempt only */
    weir_job *job = rt_get(&w.t, id);
    assert_int_equal(job->lost, 1);
    assert_int_equal(job->attempts, 1);
    weir_job_free(job);
    web_stop(&w);
    receiver_stop(&r);
}

/* The receiver dies with its second job: its connection ends, and nobody listens any more. */
static reply until_the_second(const received *in, size_t n, void *ctx)
{
    (void)in;
    receiver *r = ctx;
    if (n == 1)
        shutdown(r->fd, SHUT_RDWR);
    return (reply){ .hang_up = n == 1, .body = "1" };
}

static void a_job_whose_receiver_is_gone_is_lost(void **state)
{
    (void)state;
    web      w;
    receiver r;
    web_start(&w, RT_MEM, false, &private_too);
    receiver_start(&r, 0, until_the_second, &r);
    int port = r.port;
    put(&w, port, ",\"concurrency\":1");
    rt_until(&w.t, rt_add_type(&w.t, "x"), WEIR_STATE_COMPLETE);    /* its connection is kept */
    uint64_t id = rt_add_type(&w.t, "x");
    UNTIL(has_state(&w, "backing off"));
    assert_int_equal(receiver_conns(&r), 1);
    receiver_stop(&r);
    receiver_start(&r, port, NULL, NULL);
    rt_until(&w.t, id, WEIR_STATE_COMPLETE);              /* though it has one attempt only */
    weir_job *job = rt_get(&w.t, id);
    assert_int_equal(job->lost, 1);
    weir_job_free(job);
    web_stop(&w);
    receiver_stop(&r);
}

/* One job kills the receiver whenever it comes, and all that is there dies with it. */
typedef struct mortal {
    pthread_mutex_t lock;
    int             deaths;
} mortal;

static reply until_it_dies(const received *in, size_t n, void *ctx)
{
    (void)n;
    mortal *m = ctx;
    if (strstr(in->body, "poison")) {
        pthread_mutex_lock(&m->lock);
        m->deaths++;
        pthread_mutex_unlock(&m->lock);
        return (reply){ .hang_up = true };
    }
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&m->lock);
        int before = m->deaths;
        pthread_mutex_unlock(&m->lock);
        rt_breathe();
        pthread_mutex_lock(&m->lock);
        bool died = m->deaths > before;
        pthread_mutex_unlock(&m->lock);
        if (died)
            return (reply){ .hang_up = true };
    }
    return (reply){ .body = "1" };
}

static void a_job_that_kills_its_receiver_takes_no_other_along(void **state)
{
    (void)state;
    enum { JOBS = 40 };
    web      w;
    receiver r;
    mortal   m = { .lock = PTHREAD_MUTEX_INITIALIZER };
    web_start(&w, RT_MEM, false, &private_too);
    receiver_start(&r, 0, until_it_dies, &m);
    uint64_t poison = 0;
    for (int i = 0; i < JOBS; i++) {
        uint64_t id = rt_add(&w.t, &(weir_spec){ .type = "x", .max_lost = 1,
                                                 .data = i == 5 ? "\"poison\"" : "1" });
        if (i == 5)
            poison = id;
    }
    put(&w, r.port, ",\"concurrency\":8");
    rt_until(&w.t, poison, WEIR_STATE_FAILED);
    rt_until_count(&w.t, WEIR_STATE_COMPLETE, JOBS - 1);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_FAILED), 1);
    web_stop(&w);
    receiver_stop(&r);
}

static void a_failed_job_is_tried_again_by_its_own_rule(void **state)
{
    (void)state;
    web      w;
    receiver r;
    script   s = SCRIPT({ .status = 500 }, { .status = 500 }, { .body = "3" });
    web_start(&w, RT_MEM, false, &private_too);
    receiver_start(&r, 0, from_script, &s);
    put(&w, r.port, "");
    uint64_t id = rt_add(&w.t, &(weir_spec){ .type = "x", .attempts = 3 });
    rt_until(&w.t, id, WEIR_STATE_COMPLETE);
    has_result(&w.t, id, "3");
    assert_int_equal(receiver_count(&r), 3);
    assert_string_equal(received_header(&r.kept[2], "Weir-Attempt"), "3");
    assert_string_equal(received_header(&r.kept[2], "Weir-Delivery"), "3");
    web_stop(&w);
    receiver_stop(&r);
}

static void an_answer_that_is_too_long_fails(void **state)
{
    (void)state;
    web      w;
    receiver r;
    char    *text = malloc(WEIR_MAX_DATA + 2);
    memset(text, '\n', WEIR_MAX_DATA + 1);
    text[WEIR_MAX_DATA + 1] = '\0';
    script s = SCRIPT({ .body = text }, { .body = text + WEIR_MAX_DATA / 3 },
                      { .status = 500, .body = text }, { .body = text + 1, .len = 3 });
    web_start(&w, RT_MEM, false, &private_too);
    receiver_start(&r, 0, from_script, &s);
    put(&w, r.port, "");
    has_failed(&w.t, rt_add_type(&w.t, "x"), "the answer is longer than 1048576 bytes");
    /* each of its bytes becomes two in a JSON string */
    has_failed(&w.t, rt_add_type(&w.t, "x"), "the answer is longer than 1048576 bytes");
    has_failed(&w.t, rt_add_type(&w.t, "x"), "HTTP 500");
    uint64_t id = rt_add_type(&w.t, "x");
    rt_until(&w.t, id, WEIR_STATE_COMPLETE);
    has_result(&w.t, id, "\"\\n\\n\\n\"");
    web_stop(&w);
    receiver_stop(&r);
    free(text);
}

/* ---- waiting for an answer ---- */

typedef struct held {
    gate arrived, go;
} held;

static reply hold(const received *in, size_t n, void *ctx)
{
    held *h = ctx;
    (void)in;
    gate_up(&h->arrived);
    gate_wait(&h->go, (int)n + 1);
    return (reply){ .body = "true" };
}

static void no_answer_in_time_fails(void **state)
{
    (void)state;
    web      w;
    receiver r;
    held     h = { GATE_INIT, GATE_INIT };
    web_start(&w, RT_MEM, true, &private_too);
    receiver_start(&r, 0, hold, &h);
    put(&w, r.port, ",\"timeout\":\"200ms\"");
    uint64_t id = rt_add_type(&w.t, "x");
    gate_wait(&h.arrived, 1);
    rt_later(&w.t, 10000);              /* the lease is longer than the request may be */
    assert_int_equal(weir_tick(w.t.q, 0, NULL, NULL, NULL), WEIR_OK);
    has_failed(&w.t, id, "no answer within 200 ms");
    gate_up(&h.go);
    web_stop(&w);
    receiver_stop(&r);
}

static void the_lease_is_over_some_time(void **state)
{
    (void)state;
    web      w;
    receiver r;
    held     h = { GATE_INIT, GATE_INIT };
    web_start(&w, RT_MEM, true, &private_too);
    receiver_start(&r, 0, hold, &h);
    put(&w, r.port, "");
    uint64_t id = rt_add_type(&w.t, "x");
    gate_wait(&h.arrived, 1);
    rt_later(&w.t, 30000 + 10000 + 1);
    gate_wait(&h.arrived, 2);           /* it is given out again */
    gate_up(&h.go);                     /* and the first answer comes too late */
    gate_up(&h.go);
    rt_until(&w.t, id, WEIR_STATE_COMPLETE);
    assert_string_equal(received_header(&r.kept[1], "Weir-Delivery"), "2");
    web_stop(&w);
    receiver_stop(&r);
}

static void never_more_than_the_limit_at_once(void **state)
{
    (void)state;
    enum { JOBS = 40, LIMIT = 3 };
    web      w;
    receiver r;
    held     h = { GATE_INIT, GATE_INIT };
    web_start(&w, RT_MEM, false, &private_too);
    receiver_start(&r, 0, hold, &h);
    put(&w, r.port, ",\"concurrency\":3");
    for (int i = 0; i < JOBS; i++)
        rt_add_type(&w.t, "x");
    for (int i = 0; i < JOBS; i++) {
        int all = i + LIMIT < JOBS ? i + LIMIT : JOBS;
        gate_wait(&h.arrived, all);
        /* nothing waits here with its lease running */
        assert_int_equal(rt_count(&w.t, WEIR_STATE_ACTIVE), all - i);
        gate_up(&h.go);
        rt_until_count(&w.t, WEIR_STATE_COMPLETE, (uint64_t)i + 1);
    }
    assert_int_equal(receiver_most(&r), LIMIT);
    assert_int_equal(running(&w), 0);
    web_stop(&w);
    receiver_stop(&r);
}

static void a_cancelled_job_stays_cancelled(void **state)
{
    (void)state;
    web      w;
    receiver r;
    held     h = { GATE_INIT, GATE_INIT };
    web_start(&w, RT_MEM, false, &private_too);
    receiver_start(&r, 0, hold, &h);
    put(&w, r.port, "");
    uint64_t id = rt_add_type(&w.t, "x");
    rt      *t = &w.t;
    gate_wait(&h.arrived, 1);
    OK(weir_cancel(t->q, id, &t->err));
    gate_up(&h.go);
    uint64_t next = rt_add_type(t, "x");
    gate_up(&h.go);
    rt_until(t, next, WEIR_STATE_COMPLETE);
    assert_int_equal(rt_state(t, id), WEIR_STATE_CANCELLED);
    web_stop(&w);
    receiver_stop(&r);
}

/* ---- later ---- */

static void accepted_jobs_are_finished_later(void **state)
{
    (void)state;
    web      w;
    receiver r;
    script   s = SCRIPT({ .status = 202 });
    web_start(&w, RT_MEM, true, &private_too);
    receiver_start(&r, 0, from_script, &s);
    put(&w, r.port, ",\"timeout\":\"1s\",\"later\":\"1h\"");
    uint64_t id = rt_add_type(&w.t, "x"), slow = rt_add_type(&w.t, "x");
    rt      *t = &w.t;
    UNTIL(receiver_count(&r) == 2);
    UNTIL(running(&w) == 0);

    char body[160];
    rt_later(t, 3600 * 1000 - 10);      /* far beyond timeout and lease of the request */
    assert_int_equal(rt_state(t, id), WEIR_STATE_ACTIVE);
    snprintf(body, sizeof body, "{\"jobs\":[{\"id\":%llu,\"delivery\":%s,"
             "\"result\":{\"late\":true}}]}", (unsigned long long)id,
             received_header(&r.kept[0], "Weir-Delivery"));
    json_decref(web_json(&w, 200, "POST", "/v1/finish", body));
    rt_until(t, id, WEIR_STATE_COMPLETE);
    has_result(t, id, "{\"late\":true}");
    rt_later(t, 20);
    UNTIL(receiver_count(&r) == 3);     /* the other was never finished: it comes again */
    assert_int_equal(atoi(received_header(&r.kept[2], "Weir-Job-Id")), (int)slow);
    web_stop(&w);
    receiver_stop(&r);
}

/* ---- what the answer does to the target ---- */

static void gone_pauses_until_it_is_put_again(void **state)
{
    (void)state;
    web      w;
    receiver r;
    char     dir[TEMPDIR_MAX];
    script   s = SCRIPT({ .status = 410 }, { .body = "1" });
    assert_true(tempdir_make(dir));
    srv_options opt = { .push_private = true, .data_dir = dir };
    receiver_start(&r, 0, from_script, &s);
    web_start(&w, RT_MEM, false, &opt);
    put(&w, r.port, "");
    uint64_t id = rt_add_type(&w.t, "x");
    UNTIL(has_state(&w, "paused"));
    assert_true(has_error(&w, "HTTP 410"));
    is_untouched(&w.t, id);
    rt_add_type(&w.t, "x");
    web_stop(&w);
    web_start(&w, RT_MEM, false, &opt);
    assert_true(has_state(&w, "paused"));
    id = rt_add_type(&w.t, "x");
    assert_int_equal(receiver_count(&r), 1);
    put(&w, r.port, "");
    assert_false(has_state(&w, "paused"));
    rt_until(&w.t, id, WEIR_STATE_COMPLETE);
    web_stop(&w);
    receiver_stop(&r);
    tempdir_remove(dir);
}

static void a_busy_target_is_left_alone(void **state)
{
    (void)state;
    web      w;
    receiver r;
    script   s = SCRIPT({ .status = 429, .headers = "Retry-After: 1\r\n" }, { .body = "1" },
                        { .status = 503,
                          .headers = "Retry-After: Fri, 31 Dec 2100 00:00:00 GMT\r\n" },
                        { .body = "2" });
    web_start(&w, RT_MEM, false, &private_too);
    receiver_start(&r, 0, from_script, &s);
    put(&w, r.port, ",\"concurrency\":1");
    uint64_t id = rt_add(&w.t, &(weir_spec){ .type = "x", .attempts = 1 });
    UNTIL(has_state(&w, "backing off"));
    assert_true(has_error(&w, "HTTP 429"));
    rt_until(&w.t, id, WEIR_STATE_COMPLETE);
    assert_string_equal(received_header(&r.kept[1], "Weir-Attempt"), "1");
    UNTIL(!has_error(&w, "HTTP"));

    id = rt_add_type(&w.t, "x");        /* never longer than an hour, whatever it asks for */
    UNTIL(has_state(&w, "backing off"));
    json_t *t = target(&w);
    int64_t until = json_integer_value(json_object_get(t, "until"));
    json_decref(t);
    assert_in_range(until, weir_now(w.t.q) + 3000 * 1000, weir_now(w.t.q) + 3600 * 1000);
    is_untouched(&w.t, id);
    put(&w, r.port, "");                /* now */
    rt_until(&w.t, id, WEIR_STATE_COMPLETE);
    web_stop(&w);
    receiver_stop(&r);
}

static int free_port(void)
{
    receiver r;
    receiver_start(&r, 0, NULL, NULL);
    int port = r.port;
    receiver_stop(&r);
    return port;
}

static void an_unreachable_target_costs_no_attempt(void **state)
{
    (void)state;
    web      w;
    receiver r;
    int      port = free_port();
    web_start(&w, RT_MEM, false, &private_too);
    put(&w, port, "");
    uint64_t id[5];
    for (int i = 0; i < 5; i++)
        id[i] = rt_add_type(&w.t, "x");
    UNTIL(has_state(&w, "backing off"));
    assert_true(has_error(&w, "connect"));
    for (int i = 0; i < 5; i++)
        is_untouched(&w.t, id[i]);
    receiver_start(&r, port, NULL, NULL);
    for (int i = 0; i < 5; i++)
        rt_until(&w.t, id[i], WEIR_STATE_COMPLETE);
    UNTIL(!has_error(&w, "connect"));
    assert_true(has_state(&w, "ready"));
    web_stop(&w);
    receiver_stop(&r);
}

static void certificates_are_checked(void **state)
{
    (void)state;
    web      w;
    receiver r;
    char     url[64];
    web_start(&w, RT_MEM, false, &private_too);
    receiver_start_tls(&r, NULL, NULL);
    snprintf(url, sizeof url, "https://127.0.0.1:%d/", r.port);
    put_to(&w, url, "");
    uint64_t id = rt_add_type(&w.t, "x");
    UNTIL(has_state(&w, "backing off"));
    assert_true(has_error(&w, "certificate"));
    is_untouched(&w.t, id);
    assert_int_equal(receiver_count(&r), 0);
    web_stop(&w);
    receiver_stop(&r);
}

/* ---- what wakes it ---- */

static void whatever_makes_a_job_ready_wakes_it(void **state)
{
    (void)state;
    web      w;
    receiver r;
    web_start(&w, RT_MEM, true, &private_too);
    receiver_start(&r, 0, NULL, NULL);
    rt      *t = &w.t;
    uint64_t before = rt_add_type(t, "x");
    put(&w, r.port, "");
    rt_until(t, before, WEIR_STATE_COMPLETE);
    uint64_t delayed = rt_add(t, &(weir_spec){ .type = "x", .delay_ms = 5000 });
    uint64_t other = rt_add_type(t, "y");
    rt_later(t, 5001);
    rt_until(t, delayed, WEIR_STATE_COMPLETE);
    OK(weir_pause(t->q, "x", &t->err));
    uint64_t paused = rt_add_type(t, "x");
    OK(weir_resume(t->q, "x", &t->err));
    rt_until(t, paused, WEIR_STATE_COMPLETE);
    OK(weir_retry(t->q, paused, &t->err));
    UNTIL(receiver_count(&r) == 4);
    rt_until(t, paused, WEIR_STATE_COMPLETE);
    assert_int_equal(rt_state(t, other), WEIR_STATE_INACTIVE);
    web_stop(&w);
    receiver_stop(&r);
}

/* ---- the store ---- */

/* What the receiver did is not done again because the store was away when it answered. */
static void an_outcome_waits_for_the_store(void **state)
{
    (void)state;
    web      w;
    receiver r;
    char     url[128];
    held     h = { GATE_INIT, GATE_INIT };
    rig     *redis = rig_start(NULL);
    assert_non_null(redis);
    proxy *line = proxy_start(redis, 1);
    assert_non_null(line);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?timeout=1s", proxy_port(line));
    web_start(&w, url, false, &private_too);
    receiver_start(&r, 0, hold, &h);
    put(&w, r.port, "");
    rt      *t = &w.t;
    uint64_t id = rt_add_type(t, "x");
    gate_wait(&h.arrived, 1);
    proxy_hold(line, true);
    gate_up(&h.go);
    UNTIL(running(&w) == 0);
    for (int i = 0; i < 4; i++) {       /* meanwhile the outcome is not taken either */
        uint64_t n;
        assert_int_not_equal(weir_count(t->q, WEIR_STATE_ANY, NULL, &n, &t->err), WEIR_OK);
    }
    proxy_hold(line, false);
    rt_until(t, id, WEIR_STATE_COMPLETE);
    has_result(t, id, "true");
    gate_up(&h.go);
    rt_until(t, rt_add_type(t, "x"), WEIR_STATE_COMPLETE);    /* and it goes on */
    assert_int_equal(receiver_count(&r), 2);
    web_stop(&w);
    receiver_stop(&r);
    proxy_stop(line);
    rig_free(redis);
}

/* ---- private addresses ---- */

static void private_addresses_are_refused(void **state)
{
    (void)state;
    static const char *const hosts[] = { "127.0.0.1", "localhost", "[::1]", "10.1.2.3", "0x7f.1",
                                         "169.254.169.254", "[::ffff:127.0.0.1]", "a.localhost" };
    web w;
    web_start(&w, RT_MEM, false, NULL);
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        char body[256];
        snprintf(body, sizeof body, "{\"types\":[\"x\"],\"url\":\"http://%s:8080/\","
                 "\"secret\":\"" SECRET "\"}", hosts[i]);
        web_error(&w, 400, "EINVAL", "not a public address", "PUT", "/v1/push/t", body);
    }
    web_stop(&w);
}

/* What the name stands for is looked at when it is connected to, whatever it was before. */
static void the_address_connected_to_is_looked_at(void **state)
{
    (void)state;
    static const char *const hosts[] = { "localhost", "127.0.0.1" };
    for (size_t i = 0; i < 2; i++) {
        web      w;
        receiver r;
        char     dir[TEMPDIR_MAX], path[TEMPDIR_MAX + 16];
        assert_true(tempdir_make(dir));
        receiver_start(&r, 0, NULL, NULL);
        snprintf(path, sizeof path, "%s/push.json", dir);
        FILE *f = fopen(path, "w");
        fprintf(f, "{\"targets\":[{\"name\":\"t\",\"types\":[\"x\"],\"url\":\"http://%s:%d/\","
                "\"secret\":\"" SECRET "\"}]}", hosts[i], r.port);
        fclose(f);
        web_start(&w, RT_MEM, false, &(srv_options){ .data_dir = dir });
        uint64_t id = rt_add_type(&w.t, "x");
        UNTIL(has_state(&w, "backing off"));
        assert_true(has_error(&w, "is not a public address (loopback)"));
        is_untouched(&w.t, id);
        assert_int_equal(receiver_conns(&r), 0);
        web_stop(&w);
        receiver_stop(&r);
        tempdir_remove(dir);
    }
}

/* ---- the routes ---- */

#define URL "\"url\":\"https://example.org/\""
#define KEY "\"secret\":\"" SECRET "\""

static void bad_targets_are_refused_by_name(void **state)
{
    (void)state;
    static const struct { const char *body, *field, *part; } bad[] = {
        { "{" URL "," KEY "}", "types", "missing" },
        { "{\"types\":[]," URL "," KEY "}", "types", "at least 1" },
        { "{\"types\":[\"*\"]," URL "," KEY "}", "types", "name the types" },
        { "{\"types\":[\"a\",\"a\"]," URL "," KEY "}", "types", "twice" },
        { "{\"types\":[\"a\"]," KEY "}", "url", "missing" },
        { "{\"types\":[\"a\"],\"url\":\"ftp://example.org\"," KEY "}", "url", "https://" },
        { "{\"types\":[\"a\"],\"url\":\"https://me:me@example.org\"," KEY "}", "url", "password" },
        { "{\"types\":[\"a\"]," URL "}", "secret", "missing" },
        { "{\"types\":[\"a\"]," URL ",\"secret\":\"short\"}", "secret", "at least 16" },
        { "{\"types\":[\"a\"]," URL "," KEY ",\"concurrency\":0}", "concurrency", "between" },
        { "{\"types\":[\"a\"]," URL "," KEY ",\"concurrency\":101}", "concurrency", "between" },
        { "{\"types\":[\"a\"]," URL "," KEY ",\"timeout\":\"2h\"}", "timeout", "between" },
        { "{\"types\":[\"a\"]," URL "," KEY ",\"timeout\":99}", "timeout", "between" },
        { "{\"types\":[\"a\"]," URL "," KEY ",\"later\":\"8d\"}", "later", "between" },
        { "{\"types\":[\"a\"]," URL "," KEY ",\"paused\":true}", "paused", "unknown member" },
    };
    web w;
    web_start(&w, RT_MEM, false, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *all = web_json(&w, 400, "PUT", "/v1/push/t", bad[i].body);
        json_t *error = json_object_get(all, "error");
        if (strcmp(json_string_value(json_object_get(error, "field")), bad[i].field) ||
            !strstr(json_string_value(json_object_get(error, "message")), bad[i].part))
            fail_msg("%s: %s", bad[i].body, json_string_value(json_object_get(error, "message")));
        json_decref(all);
    }
    web_error(&w, 400, "EINVAL", "letters", "PUT", "/v1/push/a%20b", "{\"types\":[\"a\"]," URL "}");
    web_error(&w, 404, "ENOENT", "there is no target \"t\"", "DELETE", "/v1/push/t", NULL);
    web_stop(&w);
}

static void targets_are_put_shown_and_removed(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    json_t *t = web_json(&w, 201, "PUT", "/v1/push/t", "{\"types\":[\"a\",\"b\"]," URL "," KEY "}");
    assert_string_equal(json_string_value(json_object_get(t, "kept")), "memory");
    assert_string_equal(json_string_value(json_object_get(t, "name")), "t");
    assert_int_equal(json_integer_value(json_object_get(t, "concurrency")), 4);
    assert_int_equal(json_integer_value(json_object_get(t, "timeout")), 30000);
    assert_int_equal(json_integer_value(json_object_get(t, "later")), 300000);
    json_decref(t);
    t = web_json(&w, 200, "PUT", "/v1/push/t",         /* the secret stays */
                 "{\"types\":[\"a\"]," URL ",\"concurrency\":9,\"timeout\":\"5s\"}");
    json_decref(t);
    t = target(&w);
    assert_int_equal(json_integer_value(json_object_get(t, "concurrency")), 9);
    assert_int_equal(json_integer_value(json_object_get(t, "timeout")), 5000);
    assert_int_equal(json_array_size(json_object_get(t, "types")), 1);
    assert_string_equal(json_string_value(json_object_get(t, "state")), "ready");
    assert_string_equal(json_string_value(json_object_get(t, "url")), "https://example.org/");
    json_decref(t);
    web_answer a = web_call(&w, "GET", "/v1/push", NULL);
    assert_null(strstr(a.body, SECRET));
    assert_null(strstr(a.body, "secret"));
    web_free(&a);
    a = web_call(&w, "DELETE", "/v1/push/t", NULL);
    assert_int_equal(a.status, 204);
    web_free(&a);
    t = web_json(&w, 200, "GET", "/v1/push", NULL);
    assert_int_equal(json_array_size(json_object_get(t, "targets")), 0);
    json_decref(t);
    web_stop(&w);
}

static void there_is_a_most_of_targets(void **state)
{
    (void)state;
    web  w;
    char path[64];
    web_start(&w, RT_MEM, false, NULL);
    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof path, "/v1/push/t%d", i);
        json_decref(web_json(&w, 201, "PUT", path, "{\"types\":[\"a\"]," URL "," KEY "}"));
    }
    web_error(&w, 413, "ELIMIT", "SRV_PUSH_MAX_TARGETS", "PUT", "/v1/push/more",
              "{\"types\":[\"a\"]," URL "," KEY "}");
    json_decref(web_json(&w, 200, "PUT", "/v1/push/t0", "{\"types\":[\"b\"]," URL "}"));
    web_stop(&w);
}

static void a_removed_target_gets_no_more(void **state)
{
    (void)state;
    web      w;
    receiver r;
    held     h = { GATE_INIT, GATE_INIT };
    web_start(&w, RT_MEM, false, &private_too);
    receiver_start(&r, 0, hold, &h);
    put(&w, r.port, ",\"concurrency\":1");
    uint64_t id = rt_add_type(&w.t, "x"), next = rt_add_type(&w.t, "x");
    gate_wait(&h.arrived, 1);
    web_answer a = web_call(&w, "DELETE", "/v1/push/t", NULL);
    assert_int_equal(a.status, 204);
    web_free(&a);
    gate_up(&h.go);                     /* what it has, it may finish */
    rt_until(&w.t, id, WEIR_STATE_COMPLETE);
    is_untouched(&w.t, next);
    put(&w, r.port, "");
    gate_up(&h.go);
    rt_until(&w.t, next, WEIR_STATE_COMPLETE);
    web_stop(&w);
    receiver_stop(&r);
}

static void only_an_admin_of_all_types_may(void **state)
{
    (void)state;
    static const struct { const char *name, *type; unsigned roles; int status; } callers[] = {
        { "eye", "", WEIR_ROLE_READ, 403 }, { "maker", "", WEIR_ROLE_PRODUCE, 403 },
        { "hand", "", WEIR_ROLE_WORK, 403 }, { "half", "x", WEIR_ROLE_ADMIN, 403 },
        { "boss", "", WEIR_ROLE_ADMIN, 200 },
    };
    web  w;
    char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 16], token[SRV_TOKEN_TEXT], header[128];
    assert_true(tempdir_make(dir));
    snprintf(file, sizeof file, "%s/tokens.json", dir);
    web_start(&w, RT_MEM, false, &(srv_options){ .data_dir = dir });
    for (size_t i = 0; i < sizeof callers / sizeof *callers; i++) {
        static const char *const asked[][3] = {
            { "PUT", "/v1/push/t", "{\"types\":[\"x\"]," URL "," KEY "}" },
            { "GET", "/v1/push", NULL }, { "DELETE", "/v1/push/t", NULL },
        };
        srv_caller who = { .roles = callers[i].roles };
        rt        *t = &w.t;
        snprintf(who.name, sizeof who.name, "%s", callers[i].name);
        snprintf(who.types, sizeof who.types, "%s", callers[i].type);
        OK(srv_tokens_add(file, &who, 1, token, &t->err));
        OK(srv_reload(w.s, &t->err));
        snprintf(header, sizeof header, "Authorization: Bearer %s\r\n", token);
        for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
            web_answer a = web_call_with(&w, asked[k][0], asked[k][1], header, asked[k][2]);
            if (a.status / 100 != callers[i].status / 100)
                fail_msg("%s, %s: %d", callers[i].name, asked[k][0], a.status);
            web_free(&a);
        }
    }
    web_stop(&w);
    tempdir_remove(dir);
}

/* ---- the end, and after ---- */

static void targets_outlive_the_server(void **state)
{
    (void)state;
    web         w;
    receiver    r;
    char        dir[TEMPDIR_MAX], path[TEMPDIR_MAX + 16];
    struct stat st;
    assert_true(tempdir_make(dir));
    snprintf(path, sizeof path, "%s/push.json", dir);
    srv_options opt = { .push_private = true, .data_dir = dir };
    receiver_start(&r, 0, NULL, NULL);
    web_start(&w, RT_MEM, false, &opt);
    put(&w, r.port, ",\"concurrency\":2");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    web_stop(&w);
    web_start(&w, RT_MEM, false, &opt);
    json_t *t = web_json(&w, 200, "GET", "/v1/push", NULL);
    assert_string_equal(json_string_value(json_object_get(t, "kept")), "file");
    json_decref(t);
    uint64_t id = rt_add_type(&w.t, "x");
    rt_until(&w.t, id, WEIR_STATE_COMPLETE);
    check_signature(&r.kept[0]);
    web_answer a = web_call(&w, "DELETE", "/v1/push/t", NULL);
    assert_int_equal(a.status, 204);
    web_free(&a);
    web_stop(&w);
    web_start(&w, RT_MEM, false, &opt);
    t = web_json(&w, 200, "GET", "/v1/push", NULL);
    assert_int_equal(json_array_size(json_object_get(t, "targets")), 0);
    json_decref(t);
    web_stop(&w);
    receiver_stop(&r);
    tempdir_remove(dir);
}

static void a_bad_file_stops_the_start(void **state)
{
    (void)state;
    char        dir[TEMPDIR_MAX], path[TEMPDIR_MAX + 16];
    rt          t;
    srv_server *s;
    assert_true(tempdir_make(dir));
    snprintf(path, sizeof path, "%s/push.json", dir);
    FILE *f = fopen(path, "w");
    fprintf(f, "{\"targets\":[{\"name\":\"t\"}]}");
    fclose(f);
    rt_open(&t, RT_MEM, false);
    assert_int_equal(srv_start(&s, t.q, &(srv_options){ .listen = "127.0.0.1:0", .data_dir = dir },
                               &t.err), WEIR_EINVAL);
    assert_non_null(strstr(t.err.msg, path));
    assert_non_null(strstr(t.err.msg, "targets[0].types: missing"));
    rt_close(&t);
    tempdir_remove(dir);
}

/* What can not be written has not happened. */
static void what_cannot_be_kept_is_refused(void **state)
{
    (void)state;
    web  w;
    char dir[TEMPDIR_MAX], none[TEMPDIR_MAX + 16];
    assert_true(tempdir_make(dir));
    snprintf(none, sizeof none, "%s/none", dir);
    web_start(&w, RT_MEM, false, &(srv_options){ .data_dir = none, .audit = SRV_AUDIT_OFF });
    web_error(&w, 503, "EIO", "push.json", "PUT", "/v1/push/t",
              "{\"types\":[\"a\"]," URL "," KEY "}");
    json_t *t = web_json(&w, 200, "GET", "/v1/push", NULL);
    assert_int_equal(json_array_size(json_object_get(t, "targets")), 0);
    json_decref(t);
    web_stop(&w);
    tempdir_remove(dir);
}

static void *stopping(void *arg)
{
    srv_stop(arg);
    return NULL;
}

/* It takes no more connections, and so no more jobs either. */
static bool is_stopping(web *w)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_port = htons((uint16_t)atoi(strrchr(w->host, ':') + 1));
    bool refused = connect(fd, (struct sockaddr *)&to, sizeof to) < 0;
    close(fd);
    return refused;
}

static void the_stop_waits_for_answers(void **state)
{
    (void)state;
    web       w;
    receiver  r;
    pthread_t thread;
    held      h = { GATE_INIT, GATE_INIT };
    web_start(&w, RT_MEM, false, &private_too);
    receiver_start(&r, 0, hold, &h);
    put(&w, r.port, ",\"concurrency\":1");
    uint64_t id = rt_add_type(&w.t, "x"), next = rt_add_type(&w.t, "x");
    gate_wait(&h.arrived, 1);
    pthread_create(&thread, NULL, stopping, w.s);
    UNTIL(is_stopping(&w));
    gate_up(&h.go);
    pthread_join(thread, NULL);
    assert_int_equal(rt_state(&w.t, id), WEIR_STATE_COMPLETE);
    is_untouched(&w.t, next);
    web_stop(&w);
    receiver_stop(&r);
}

/* Takes SRV_DRAIN_MS. */
static void what_is_not_answered_is_returned(void **state)
{
    (void)state;
    web      w;
    receiver r;
    held     h = { GATE_INIT, GATE_INIT };
    web_start(&w, RT_MEM, false, &private_too);
    receiver_start(&r, 0, hold, &h);
    put(&w, r.port, "");
    uint64_t id = rt_add_type(&w.t, "x");
    gate_wait(&h.arrived, 1);
    srv_stop(w.s);
    is_untouched(&w.t, id);
    gate_up(&h.go);
    web_stop(&w);
    receiver_stop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_posted_and_signed),
        cmocka_unit_test(a_secret_is_changed),
        cmocka_unit_test(odd_types_are_escaped),
        cmocka_unit_test(big_jobs_on_one_connection),
        cmocka_unit_test(any_text_is_a_result),
        cmocka_unit_test(other_answers_fail_with_the_first_line),
        cmocka_unit_test(a_receiver_that_dies_loses_the_job),
        cmocka_unit_test(a_job_whose_receiver_is_gone_is_lost),
        cmocka_unit_test(a_job_that_kills_its_receiver_takes_no_other_along),
        cmocka_unit_test(a_failed_job_is_tried_again_by_its_own_rule),
        cmocka_unit_test(an_answer_that_is_too_long_fails),
        cmocka_unit_test(no_answer_in_time_fails),
        cmocka_unit_test(the_lease_is_over_some_time),
        cmocka_unit_test(never_more_than_the_limit_at_once),
        cmocka_unit_test(a_cancelled_job_stays_cancelled),
        cmocka_unit_test(accepted_jobs_are_finished_later),
        cmocka_unit_test(gone_pauses_until_it_is_put_again),
        cmocka_unit_test(a_busy_target_is_left_alone),
        cmocka_unit_test(an_unreachable_target_costs_no_attempt),
        cmocka_unit_test(certificates_are_checked),
        cmocka_unit_test(whatever_makes_a_job_ready_wakes_it),
        cmocka_unit_test(an_outcome_waits_for_the_store),
        cmocka_unit_test(private_addresses_are_refused),
        cmocka_unit_test(the_address_connected_to_is_looked_at),
        cmocka_unit_test(bad_targets_are_refused_by_name),
        cmocka_unit_test(targets_are_put_shown_and_removed),
        cmocka_unit_test(there_is_a_most_of_targets),
        cmocka_unit_test(a_removed_target_gets_no_more),
        cmocka_unit_test(only_an_admin_of_all_types_may),
        cmocka_unit_test(targets_outlive_the_server),
        cmocka_unit_test(a_bad_file_stops_the_start),
        cmocka_unit_test(what_cannot_be_kept_is_refused),
        cmocka_unit_test(the_stop_waits_for_answers),
        cmocka_unit_test(what_is_not_answered_is_returned),
    };
    return cmocka_run_group_tests_name("push", tests, NULL, NULL);
}
