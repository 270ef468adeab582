/* test_api_observe.c - POST /v1/observe: jobs as a stream, never more than the window, whose leases
 * the server renews; what becomes of them when the stream ends, in each way it can. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/http/inner.h"
#include "support/redis_rig.h"
#include "support/web_tokens.h"

WEB_FIXTURE

/* A stream, and what it has sent, with the chunks around it. */
typedef struct stream {
    int   fd;
    char *all;
} stream;

static stream begin_as(const char *bearer, const char *body)
{
    char   head[700];
    stream s = { .fd = web_connect(&w) };
    snprintf(head, sizeof head, "POST /v1/observe HTTP/1.1\r\nHost: %s\r\n%s"
             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n", w.host, bearer,
             strlen(body));
    web_send(s.fd, head);
    web_send(s.fd, body);
    return s;
}

static stream begin(const char *body)
{
    stream s = begin_as("", body);
    web_read_until(s.fd, &s.all, "text/event-stream");
    return s;
}

static void until(stream *s, const char *text)
{
    web_read_until(s->fd, &s->all, text);
}

static void end(stream *s)
{
    close(s->fd);
    free(s->all);
}

static size_t times(const stream *s, const char *text)
{
    size_t n = 0;
    for (const char *at = s->all; (at = strstr(at, text)); at += strlen(text))
        n++;
    return n;
}

static void until_times(stream *s, const char *text, size_t n)
{
    while (times(s, text) < n) {
        char *more = NULL;
        web_read_until(s->fd, &more, "\n\n");
        size_t len = strlen(s->all);
        s->all = realloc(s->all, len + strlen(more) + 1);
        assert_non_null(s->all);
        strcpy(s->all + len, more);
        free(more);
    }
}

#define JOB "event: job\n"

static void add(const char *type, int n)
{
    for (int i = 0; i < n; i++)
        rt_add_type(&w.t, type);
}

static void finish(uint64_t id, uint32_t delivery, const char *how)
{
    char body[200];
    snprintf(body, sizeof body, "{\"jobs\":[{\"id\":%llu,\"delivery\":%u%s}]}",
             (unsigned long long)id, delivery, how);
    web_says(&w, 200, "\"state\"", "POST", "/v1/finish", body);
}

static uint64_t active(void)
{
    return rt_count(&w.t, WEIR_STATE_ACTIVE);
}

/* ---- the demand ---- */

static void no_more_than_the_window(void **state)
{
    (void)state;
    add("mail", 5);
    stream s = begin("{\"types\":[\"mail\"],\"window\":2}");
    until_times(&s, JOB, 2);
    assert_int_equal(active(), 2);
    for (uint64_t id = 1; id <= 3; id++) {
        char over[80];
        finish(id, 1, id == 2 ? ",\"error\":\"no\",\"final\":true" : "");
        snprintf(over, sizeof over, "{\"event\":\"over\",\"id\":%llu,\"delivery\":1}",
                 (unsigned long long)id);
        until(&s, over);
        until_times(&s, JOB, 2 + id);
        assert_int_equal(active(), 2);
    }
    assert_int_equal(rt_state(&w.t, 2), WEIR_STATE_FAILED);
    finish(4, 1, "");
    finish(5, 1, "");
    add("mail", 1);                     /* it waits for jobs that come */
    until(&s, "{\"id\":6,\"type\":\"mail\"");
    assert_int_equal(times(&s, JOB), 6);
    end(&s);
}

static void one_at_a_time_by_default(void **state)
{
    (void)state;
    add("mail", 3);
    stream s = begin("{\"types\":[\"mail\"]}");
    until(&s, "{\"id\":1,");
    finish(1, 1, "");
    until(&s, "{\"id\":2,");
    assert_int_equal(rt_state(&w.t, 3), WEIR_STATE_INACTIVE);
    end(&s);
}

static void several_types(void **state)
{
    (void)state;
    add("mail", 1);
    add("other", 1);
    stream s = begin("{\"types\":[\"mail\",\"sms\"],\"window\":10}");
    until(&s, "{\"id\":1,\"type\":\"mail\"");
    add("sms", 1);
    until(&s, "{\"id\":3,\"type\":\"sms\"");
    assert_int_equal(rt_state(&w.t, 2), WEIR_STATE_INACTIVE);
    end(&s);
}

static void a_condition_leaves_jobs_to_others(void **state)
{
    (void)state;
    rt_add(&w.t, &(weir_spec){ .type = "mail", .data = "{\"region\":\"us\"}" });
    rt_add(&w.t, &(weir_spec){ .type = "mail", .data = "{\"region\":\n\r\"eu\"}" });
    stream s = begin("{\"types\":[\"mail\"],\"window\":10,\"when\":\"data.region = \\\"eu\\\"\"}");
    until(&s, "\n\n");
    until(&s, "\"data\":{\"region\":  \"eu\"}");     /* on one line */
    rt_add(&w.t, &(weir_spec){ .type = "mail", .data = "{\"region\":\"eu\",\"n\":3}" });
    until(&s, "\"n\":3");
    assert_int_equal(times(&s, JOB), 2);
    assert_int_equal(rt_state(&w.t, 1), WEIR_STATE_INACTIVE);
    end(&s);
}

static void it_ends_after_so_many(void **state)
{
    (void)state;
    add("mail", 4);
    stream s = begin("{\"types\":[\"mail\"],\"window\":2,\"take\":3}");
    until_times(&s, JOB, 2);
    finish(1, 1, "");
    until_times(&s, JOB, 3);
    finish(2, 1, "");
    until(&s, "\"id\":2,\"delivery\":1}");
    assert_null(strstr(s.all, "event: end"));
    finish(3, 1, "");
    until(&s, "event: end\ndata: {\"event\":\"end\",\"text\":\"all jobs of \\\"take\\\"");
    until(&s, "0\r\n\r\n");
    assert_int_equal(times(&s, JOB), 3);
    assert_int_equal(rt_state(&w.t, 4), WEIR_STATE_INACTIVE);
    web_send(s.fd, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    web_answer a = web_read(s.fd);      /* the connection goes on */
    assert_int_equal(a.status, 200);
    web_free(&a);
    end(&s);
}

/* ---- what ends a job ---- */

static void a_return_makes_room(void **state)
{
    (void)state;
    add("mail", 2);
    stream s = begin("{\"types\":[\"mail\"]}");
    until(&s, "{\"id\":1,");
    finish(1, 1, ",\"return\":true,\"delay\":\"1h\"");      /* there is no event of this */
    until(&s, "{\"id\":2,");
    finish(2, 1, ",\"return\":true");
    until(&s, "\"delivery\":2,");
    finish(2, 2, "");
    end(&s);
}

static void a_job_that_others_end_makes_room(void **state)
{
    (void)state;
    rt *t = &w.t;
    add("mail", 4);
    stream s = begin("{\"types\":[\"mail\"],\"worker\":\"me\"}");
    until(&s, "{\"id\":1,");
    OK(weir_cancel(t->q, 1, &t->err));
    until(&s, "{\"event\":\"over\",\"id\":1,\"delivery\":1}");
    until(&s, "{\"id\":2,");
    OK(weir_remove(t->q, 2, &t->err));
    until(&s, "{\"id\":3,");
    weir_ended  ended;
    weir_ending done = { .id = 3, .delivery = 1 };
    OK(weir_finish(t->q, &done, 1, &ended, &t->err));       /* as from another server */
    until(&s, "{\"id\":4,");
    /* A return with a delay elsewhere has no event: the stream learns of it when it renews. */
    end(&s);
    UNTIL(!active());
    s = begin("{\"types\":[\"mail\"],\"lease\":\"300ms\"}");
    until(&s, "{\"id\":4,");
    add("mail", 1);
    done = (weir_ending){ .id = 4, .delivery = 2, .outcome = WEIR_OUTCOME_RETURN,
                          .delay_ms = 3600000 };
    OK(weir_finish(t->q, &done, 1, &ended, &t->err));
    until(&s, "{\"event\":\"over\",\"id\":4,\"delivery\":2}");
    until(&s, "{\"id\":5,");
    end(&s);
}

static int64_t lease_of(uint64_t id)
{
    weir_job *job = rt_get(&w.t, id);
    int64_t   at = job->lease_until;
    weir_job_free(job);
    return at;
}

static void leases_are_renewed(void **state)
{
    (void)state;
    enum { LEASE = 600 };
    add("mail", 2);
    stream s = begin("{\"types\":[\"mail\"],\"window\":2,\"lease\":\"600ms\"}");
    until_times(&s, JOB, 2);
    for (int i = 0; i < 6; i++) {
        rt_later(&w.t, LEASE - 100);
        UNTIL(lease_of(1) == w.t.now + LEASE && lease_of(2) == w.t.now + LEASE);
    }
    weir_job *job = rt_get(&w.t, 1);
    assert_int_equal(job->state, WEIR_STATE_ACTIVE);
    assert_int_equal(job->delivery, 1);
    weir_job_free(job);
    finish(1, 1, "");
    finish(2, 1, "");
    end(&s);
}

/* ---- how a stream ends ---- */

static void a_client_that_goes_gives_back_at_once(void **state)
{
    (void)state;
    add("mail", 3);
    stream s = begin("{\"types\":[\"mail\"],\"window\":3}");
    until_times(&s, JOB, 3);
    finish(3, 1, "");
    end(&s);
    UNTIL(rt_state(&w.t, 1) == WEIR_STATE_INACTIVE && rt_state(&w.t, 2) == WEIR_STATE_INACTIVE);
    weir_job *job = rt_get(&w.t, 1);
    assert_int_equal(job->attempts, 0);
    assert_int_equal(job->lost, 1);             /* it may have died of the job */
    weir_job_free(job);
    UNTIL(!atomic_load(&w.s->counters.listeners) && !atomic_load(&w.s->counters.takes_waiting));
    /* A suspect comes alone. */
    s = begin("{\"types\":[\"mail\"],\"window\":3,\"worker\":\"next\"}");
    until(&s, "{\"id\":1,");
    assert_int_equal(active(), 1);
    finish(1, 2, "");
    until(&s, "{\"id\":2,");
    finish(2, 2, "");
    end(&s);
}

static void a_job_that_kills_its_consumers_fails(void **state)
{
    (void)state;
    rt_add(&w.t, &(weir_spec){ .type = "mail", .max_lost = 2 });
    for (int i = 0; i < 3; i++) {
        stream s = begin("{\"types\":[\"mail\"]}");
        until(&s, JOB);
        end(&s);
        UNTIL(!active());
    }
    assert_int_equal(rt_state(&w.t, 1), WEIR_STATE_FAILED);
}

static void a_server_that_stops_says_so(void **state)
{
    (void)state;
    add("mail", 2);
    stream s = begin("{\"types\":[\"mail\"]}");
    until(&s, JOB);
    stream idle = begin("{\"types\":[\"other\"]}");
    srv_stop(w.s);
    until(&s, "event: closing\ndata: {\"event\":\"closing\",\"text\":\"the server stops\"}");
    until(&idle, "event: closing");
    weir_job *job = rt_get(&w.t, 1);
    assert_int_equal(job->state, WEIR_STATE_INACTIVE);
    assert_int_equal(job->lost, 0);
    weir_job_free(job);
    end(&s);
    end(&idle);
}

static void a_token_that_is_taken_away(void **state)
{
    (void)state;
    static const web_token tokens[] = { { "work", "mail", "one" }, { "work", "", "two" },
                                        { "read", "", NULL } };
    weir_error err;
    web_stop(&w);
    web_tokens_begin(&guard);
    web_tokens_make(&guard, tokens, 3);
    web_start(&w, RT_MEM, true, &(srv_options){ .tokens_file = guard.file });
    web_token_says(&w, &guard, 2, 403, "may not", "POST", "/v1/observe",
                   "{\"types\":[\"mail\"]}");
    web_token_says(&w, &guard, 0, 403, "of the type sms", "POST", "/v1/observe",
                   "{\"types\":[\"sms\"]}");
    web_token_says(&w, &guard, -1, 401, "a token is needed", "POST", "/v1/observe", "{}");
    add("mail", 2);
    stream s = begin_as(guard.bearer[0], "{\"types\":[\"mail\"]}");
    until(&s, "{\"id\":1,");
    stream idle = begin_as(guard.bearer[0], "{\"types\":[\"mail\"],\"when\":\"data.x = 1\"}");
    until(&idle, "text/event-stream");
    assert_int_equal(srv_tokens_remove(guard.file, "one", &err), WEIR_OK);
    until(&s, "event: revoked");
    until(&idle, "event: revoked");
    assert_int_equal(rt_state(&w.t, 1), WEIR_STATE_INACTIVE);
    end(&idle);
    end(&s);
    s = begin_as(guard.bearer[1], "{\"types\":[\"mail\"]}");
    until(&s, "{\"id\":1,");
    end(&s);
    web_tokens_remove(&guard);
}

/* ---- what is refused ---- */

static void wrong_calls(void **state)
{
    (void)state;
    static const struct { const char *body, *says; int status; } wrong[] = {
        { "{}", "types: missing", 400 },
        { "{\"types\":[]}", "types", 400 },
        { "{\"types\":[\"\"]}", "types[0]", 400 },
        { "{\"types\":\"mail\"}", "types", 400 },
        { "{\"types\":[\"m\"],\"window\":0}", "window", 400 },
        { "{\"types\":[\"m\"],\"window\":1001}", "window", 400 },
        { "{\"types\":[\"m\"],\"take\":0}", "take", 400 },
        { "{\"types\":[\"m\"],\"lease\":\"1ms\"}", "lease", 400 },
        { "{\"types\":[\"m\"],\"worker\":\"\"}", "worker", 400 },
        { "{\"types\":[\"m\"],\"wait\":\"1s\"}", "wait", 400 },
        { "{\"types\":[\"m\"],\"n\":1}", "\"n\"", 400 },
        { "{\"types\":[\"m\"],\"when\":\"data.x =\"}", "column", 400 },
        { "[]", "", 400 },
        { "{\"types\":[\"m\"]", "", 400 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        web_answer a = web_call(&w, "POST", "/v1/observe", wrong[i].body);
        if (a.status != wrong[i].status || !strstr(a.body, wrong[i].says))
            fail_msg("%s: %d %s", wrong[i].body, a.status, a.body);
        web_free(&a);
    }
    static const char *const methods[] = { "GET", "HEAD", "PUT", "DELETE" };
    for (size_t i = 0; i < 4; i++) {
        web_answer a = web_call(&w, methods[i], "/v1/observe", NULL);
        assert_int_equal(a.status, 405);
        assert_string_equal(web_header(&a, "Allow"), "POST");
        web_free(&a);
    }
    assert_int_equal(atomic_load(&w.s->counters.listeners), 0);
    assert_int_equal(atomic_load(&w.s->counters.takes_waiting), 0);
}

static void it_is_one_of_the_listeners(void **state)
{
    (void)state;
    web_stop(&w);
    web_start(&w, RT_MEM, true, &(srv_options){ .limits.listeners = 1 });
    stream s = begin("{\"types\":[\"mail\"]}");
    web_says(&w, 503, "too many listeners (limit 1", "POST", "/v1/observe",
             "{\"types\":[\"mail\"]}");
    web_says(&w, 200, "\"waiting\":true", "GET", "/v1/workers", NULL);
    end(&s);
    UNTIL(!atomic_load(&w.s->counters.listeners));
    web_says(&w, 200, "\"waiting\":false", "GET", "/v1/workers", NULL);
    s = begin("{\"types\":[\"mail\"]}");
    end(&s);
}

static void it_is_audited(void **state)
{
    (void)state;
    web_stop(&w);
    web_start(&w, RT_MEM, true, &(srv_options){ .audit = SRV_AUDIT_ALL });
    add("mail", 1);
    stream s = begin("{\"types\":[\"mail\"],\"take\":1}");
    until(&s, JOB);
    web_says(&w, 200, "\"action\":\"job.take\"", "GET", "/v1/audit", NULL);
    finish(1, 1, "");
    until(&s, "event: end");
    web_says(&w, 200, "\"action\":\"job.observe\"", "GET", "/v1/audit", NULL);
    end(&s);
}

/* Jobs of other processes; and the store is away for a while: a stream that was there goes on with
 * what is added then, a new one is refused. What the server had is lost with it here. */
static void jobs_of_others_and_a_store_that_is_away(void **state)
{
    (void)state;
    static const char mail[] = "{\"types\":[\"mail\"],\"window\":5,\"lease\":\"2s\"}";
    char              url[512];
    weir_queue       *other;
    weir_ended        ended;
    rt               *t = &w.t;
    rig              *redis = rig_start(NULL);
    web_stop(&w);
    web_start(&w, rig_url(redis, "redis+unix", "timeout=1s", url, sizeof url), false, NULL);
    OK(weir_open(&other, url, NULL, &t->err));
    stream s = begin(mail);
    OK(weir_add(other, &(weir_spec){ .type = "mail", .data = "{\"n\":1}" }, NULL, &t->err));
    until(&s, "\"n\":1}");
    OK(weir_finish(other, &(weir_ending){ .id = 1, .delivery = 1 }, 1, &ended, &t->err));
    OK(ended.err.code);
    until(&s, "{\"event\":\"over\",\"id\":1,\"delivery\":1}");
    assert_true(rig_stop(redis));
    web_says(&w, 503, "{\"error\":{", "POST", "/v1/observe", mail);
    assert_true(rig_begin(redis) && rig_ready(redis));
    UNTIL(!weir_add(other, &(weir_spec){ .type = "mail", .data = "{\"n\":2}" }, NULL, &t->err));
    until(&s, "\"n\":2}");
    assert_null(strstr(s.all, "event: error"));
    end(&s);
    UNTIL(!atomic_load(&w.s->counters.listeners));
    weir_close(other);
    web_stop(&w);
    rig_free(redis);
    web_start(&w, RT_MEM, true, NULL);
}

/* Many streams on several loops share jobs: each job once, none forgotten. */
static void many_streams(void **state)
{
    (void)state;
    enum { STREAMS = 8, JOBS = 200 };
    stream   s[STREAMS];
    uint64_t seen[JOBS + 1] = { 0 };
    web_stop(&w);
    web_start(&w, RT_SQLITE, false, &(srv_options){ .threads = 4 });
    for (int i = 0; i < STREAMS; i++)
        s[i] = begin("{\"types\":[\"mail\"],\"window\":4}");
    add("mail", JOBS);
    for (int done = 0; done < JOBS;) {
        for (int i = 0; i < STREAMS; i++) {
            char       *all = s[i].all;
            const char *at = strstr(all, "data: {\"id\":");
            struct timeval soon = { .tv_usec = 1000 };
            fd_set         set;
            if (at && strstr(at, "\n\n")) {
                uint64_t id = strtoull(at + 12, NULL, 10);
                assert_in_range(id, 1, JOBS);
                assert_int_equal(seen[id]++, 0);
                finish(id, 1, "");
                done++;
                memmove(all, at + 12, strlen(at + 12) + 1);
                continue;
            }
            FD_ZERO(&set);
            FD_SET(s[i].fd, &set);
            if (select(s[i].fd + 1, &set, NULL, NULL, &soon) == 1) {
                char   *more = NULL;
                size_t  len = strlen(all);
                web_read_until(s[i].fd, &more, "\n");
                s[i].all = realloc(all, len + strlen(more) + 1);
                assert_non_null(s[i].all);
                strcpy(s[i].all + len, more);
                free(more);
            }
        }
    }
    assert_int_equal(rt_count(&w.t, WEIR_STATE_COMPLETE), JOBS);
    for (int i = 0; i < STREAMS; i++)
        end(&s[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_more_than_the_window),
        TEST(one_at_a_time_by_default),
        TEST(several_types),
        TEST(a_condition_leaves_jobs_to_others),
        TEST(it_ends_after_so_many),
        TEST(a_return_makes_room),
        TEST(a_job_that_others_end_makes_room),
        TEST(leases_are_renewed),
        TEST(a_client_that_goes_gives_back_at_once),
        TEST(a_job_that_kills_its_consumers_fails),
        TEST(a_server_that_stops_says_so),
        TEST(a_token_that_is_taken_away),
        TEST(wrong_calls),
        TEST(it_is_one_of_the_listeners),
        TEST(it_is_audited),
        TEST(jobs_of_others_and_a_store_that_is_away),
        TEST(many_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
