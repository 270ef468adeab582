/* test_api_history.c - GET /v1/history: what it counts, in which buckets, of whom, and that minutes
 * and hours are there after a restart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/trend.h"
#include "support/server_rig.h"

WEB_FIXTURE

static json_int_t number_at(json_t *j, const char *curve, size_t i)
{
    json_t *v = json_array_get(json_object_get(j, curve), i);
    if (!v)
        fail_msg("%s has no number %zu", curve, i);
    return json_is_null(v) ? -1 : json_integer_value(v);
}

static json_int_t sum(json_t *j, const char *curve)
{
    json_int_t n = 0;
    for (size_t i = 0; i < json_array_size(json_object_get(j, curve)); i++)
        n += number_at(j, curve, i);
    return n;
}

/* Ask until a curve adds up to this. */
static json_t *history(web *s, const char *target, const char *curve, json_int_t want)
{
    for (int waited = 0;; waited += 10) {
        json_t *j = web_json(s, 200, "GET", target, NULL);
        if (sum(j, curve) == want)
            return j;
        if (waited > PATIENCE_MS)
            fail_msg("%s of %s is %d, not %d", curve, target, (int)sum(j, curve), (int)want);
        json_decref(j);
        usleep(10000);
    }
}

static weir_job *take_one(const char *type)
{
    rt         *t = &w.t;
    const char *types[] = { type, NULL };
    weir_job   *job = NULL;
    size_t      n;
    OK(weir_take(t->q, &(weir_taking){ .types = types, .n = 1 }, &job, &n, &t->err));
    assert_int_equal(n, 1);
    return job;
}

/* 1 completed after 40 ms, 1 failed for good after 400 ms, 1 retried, 1 that waits. */
static void make_some(void)
{
    rt_add_type(&w.t, "mail");
    rt_add_type(&w.t, "mail");
    rt_add_type(&w.t, "sms");
    rt_add(&w.t, &(weir_spec){ .type = "pdf", .attempts = 2 });
    rt_later(&w.t, 1000);
    weir_job *job = take_one("mail");
    rt_later(&w.t, 40);
    assert_int_equal(weir_job_done(job, NULL, 0, NULL), WEIR_OK);
    weir_job_free(job);
    job = take_one("mail");
    rt_later(&w.t, 400);
    assert_int_equal(weir_job_fail(job, "no"), WEIR_EJOB);
    weir_job_free(job);
    job = take_one("pdf");
    assert_int_equal(weir_job_fail(job, "no"), WEIR_EJOB);
    weir_job_free(job);
}

static void check_some(json_t *j, size_t last)
{
    assert_int_equal(sum(j, "added"), 4);
    assert_int_equal(sum(j, "completed"), 1);
    assert_int_equal(sum(j, "failed"), 1);
    assert_int_equal(sum(j, "retried"), 1);
    assert_int_equal(sum(j, "cancelled"), 0);
    assert_int_equal(sum(j, "lost"), 0);
    assert_int_equal(json_array_size(json_object_get(j, "added")), last + 1);
}

static void counts_by_outcome(void **state)
{
    (void)state;
    make_some();
    json_t *j = history(&w, "/v1/history?step=1m&n=3", "retried", 1);
    check_some(j, 2);
    assert_int_equal(json_integer_value(json_object_get(j, "step")), 60000);
    json_decref(j);
    j = history(&w, "/v1/history?step=1h&n=1", "retried", 1);
    check_some(j, 0);
    /* to within a bucket: 1000 ms and 1040 ms of mail, then pdf */
    assert_in_range(number_at(j, "wait_p50", 0), 1000, 1448);
    assert_in_range(number_at(j, "run_p99", 0), 400, 476);
    json_decref(j);
    j = history(&w, "/v1/history?step=1s&n=900", "retried", 1);
    check_some(j, 899);
    json_decref(j);
    j = web_json(&w, 200, "GET", "/v1/history?step=1m&n=3&type=mail", NULL);
    assert_int_equal(sum(j, "added"), 2);
    assert_int_equal(sum(j, "failed"), 1);
    assert_int_equal(sum(j, "retried"), 0);
    json_decref(j);
    j = web_json(&w, 200, "GET", "/v1/history?step=1m&type=none", NULL);
    assert_int_equal(sum(j, "added"), 0);
    assert_int_equal(json_array_size(json_object_get(j, "run_p50")), 300);
    assert_int_equal(number_at(j, "run_p50", 299), -1);
    json_decref(j);
}

static void start_again(void)
{
    srv_options o = { .listen = "127.0.0.1:0" };
    rt         *t = &w.t;
    srv_stop(w.s);
    srv_destroy(w.s);
    OK(srv_start(&w.s, t->q, &o, &t->err));
    snprintf(w.host, sizeof w.host, "%s", strstr(srv_address(w.s), "://") + 3);
}

static void history_survives_a_restart(void **state)
{
    (void)state;
    make_some();
    json_decref(history(&w, "/v1/history?step=1m&n=3", "retried", 1));
    start_again();
    json_t *j = history(&w, "/v1/history?step=1m&n=1", "retried", 1);
    check_some(j, 0);
    assert_int_equal(number_at(j, "backlog", 0), 2);        /* it was written with the rest */
    assert_int_equal(number_at(j, "oldest", 0), 1440);
    json_decref(j);
    rt_add_type(&w.t, "sms");                               /* the same minute goes on */
    json_decref(history(&w, "/v1/history?step=1m&n=1", "added", 5));
    json_decref(history(&w, "/v1/history?step=1h&n=1", "added", 5));
    json_decref(history(&w, "/v1/history?step=1m&n=1&type=sms", "added", 2));
    start_again();
    json_decref(history(&w, "/v1/history?step=1h&n=1", "added", 5));
    start_again();                                          /* nothing is counted twice */
    json_decref(history(&w, "/v1/history?step=1h&n=1", "added", 5));
    json_decref(history(&w, "/v1/history?step=1m&n=2", "added", 5));
    j = history(&w, "/v1/history?step=1s&n=900", "added", 0);
    json_decref(j);
    rt_later(&w.t, 7200000);                                /* and later, too */
    json_decref(history(&w, "/v1/history?step=1h&n=3", "added", 5));
    json_decref(history(&w, "/v1/history?step=1m&n=130", "added", 5));
    rt_later(&w.t, INT64_C(8) * 86400000);
    json_decref(history(&w, "/v1/history?step=1m&from=0&n=1440", "added", 0));
    json_decref(history(&w, "/v1/history?step=1h&from=0&n=1000", "added", 5));
}

static void buckets_have_several_steps(void **state)
{
    (void)state;
    make_some();
    char    target[120];
    int64_t now = weir_now(w.t.q);
    json_decref(history(&w, "/v1/history?step=1m&n=3", "retried", 1));
    snprintf(target, sizeof target, "/v1/history?step=1m&n=7&from=%lld",
             (long long)(now - 100 * 60000));
    json_t    *j = history(&w, target, "retried", 1);
    json_int_t step = json_integer_value(json_object_get(j, "step"));
    json_int_t from = json_integer_value(json_object_get(j, "from"));
    size_t     n = json_array_size(json_object_get(j, "added"));
    assert_int_equal(step % 60000, 0);
    assert_int_equal(from % step, 0);
    assert_true(n <= 7 && n >= 6);
    assert_true(from <= now - 100 * 60000);
    assert_true(from + (json_int_t)n * step > now);
    assert_int_equal(sum(j, "completed"), 1);
    json_decref(j);
}

static void bad_questions(void **state)
{
    (void)state;
    web_error(&w, 400, "EINVAL", "none of 1s, 1m, 1h", "GET", "/v1/history?step=1d", NULL);
    web_error(&w, 400, "EINVAL", "1m and 1h", "GET", "/v1/history?step=1s&type=a", NULL);
    web_error(&w, 400, "EINVAL", "n", "GET", "/v1/history?n=1441", NULL);
    web_error(&w, 400, "EINVAL", "from", "GET", "/v1/history?from=-1", NULL);
    json_t *j = web_json(&w, 200, "GET", "/v1/history?step=1h&from=900000000000000", NULL);
    assert_int_equal(json_array_size(json_object_get(j, "added")), 1);
    json_decref(j);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, start, stop)
    const struct CMUnitTest tests[] = {
        TEST(counts_by_outcome),
        TEST(history_survives_a_restart),
        TEST(buckets_have_several_steps),
        TEST(bad_questions),
    };
    return cmocka_run_group_tests_name("api_history", tests, NULL, NULL);
}
