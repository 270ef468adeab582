/* test_cuts.c - the line to Redis is bad: connections are cut in the middle of a reply or of a
 * request, at random, or hang. What was answered is true all the same. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "redis/load.h"
#include "support/proxy.h"

enum { URL_MAX = 600, CUTS = 150 };

static uint64_t seed;

static load *load_over(proxy *p, const char *query, const load_options *opt)
{
    char        url[URL_MAX];
    const char *scheme = strstr(query, "profile=") ? "redis+kue" : "redis";
    snprintf(url, sizeof url, "%s://127.0.0.1:%d?%s", scheme, proxy_port(p), query);
    return load_start(url, opt);
}

static void cut_at_random(const char *query, uint32_t after, const load_options *opt)
{
    rig   *r = rig_start(NULL);
    proxy *p = r ? proxy_start(r, seed) : NULL;
    assert_non_null(p);
    print_message("# seed %" PRIu64 "\n", seed);
    load *l = load_over(p, query, opt);
    load_until_acked(l, 50);
    proxy_cut_after(p, after);
    for (uint64_t n; (n = proxy_cuts(p)) < CUTS;)
        UNTIL(proxy_cuts(p) > n);           /* the next one: a busy machine needs long for all */
    proxy_cut_after(p, 0);
    load_to_the_end(l);
    proxy_stop(p);
    rig_free(r);
}

/* There is time to repeat what was cut: nobody should notice. */
static void cut_now_and_then(void **state)
{
    (void)state;
    cut_at_random("timeout=5s", 20000, &(load_options){ .lease_ms = 3000 });
}

/* Jobs taken in lots are lost in lots. */
static void cut_with_prefetch(void **state)
{
    (void)state;
    cut_at_random("timeout=5s", 20000, &(load_options){ .lease_ms = 2000, .prefetch = 4 });
}

static void cut_from_kue(void **state)
{
    (void)state;
    cut_at_random("profile=kue&timeout=1s", 10000, &(load_options){ .lease_ms = 2000 });
}

/* Hardly anything gets through, and there is little time: many hear that it is not known. */
static void cut_all_the_time(void **state)
{
    (void)state;
    cut_at_random("timeout=100ms", 2500, &(load_options){ .lease_ms = 2000 });
}

/* A lot with unique keys goes to several partitions, in several calls. */
static void cut_with_partitions(void **state)
{
    (void)state;
    cut_at_random("partitions=16&timeout=100ms", 5000, &(load_options){ .lease_ms = 2000 });
}

static void a_line_that_hangs(void **state)
{
    (void)state;
    rig   *r = rig_start(NULL);
    proxy *p = r ? proxy_start(r, seed) : NULL;
    assert_non_null(p);
    load *l = load_over(p, "timeout=300ms", &(load_options){ .lease_ms = 2000 });
    load_through_hangs(l, p, 4);
    load_to_the_end(l);
    proxy_stop(p);
    rig_free(r);
}

typedef struct one_job {
    gate begun, go;
} one_job;

static weir_code wait_and_do(weir_job *job, void *ctx)
{
    one_job *o = ctx;
    gate_up(&o->begun);
    gate_wait(&o->go, 1);
    return weir_job_done(job, "{\"ok\":true}", 0, NULL);
}

/* The outcome of a job is sent, and lost on the way. It is not known whether it came: so it is
 * sent again, long before the lease is over. */
static void an_outcome_is_lost(int prefetch)
{
    rig   *r = rig_start(NULL);
    proxy *p = r ? proxy_start(r, seed) : NULL;
    assert_non_null(p);
    char    url[URL_MAX];
    rt      box, *t = &box;
    one_job o = { GATE_INIT, GATE_INIT };
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?timeout=2s", proxy_port(p));
    rt_open(t, url, false);
    record *trouble = record_start(t, &(weir_filter){ .events = WEIR_BIT(WEIR_EVENT_ERROR) });
    OK(weir_process(t->q, "a",
                    &(weir_pool_config){ .handler = wait_and_do, .ctx = &o, .prefetch = prefetch },
                    NULL, &t->err));
    uint64_t id = rt_add_type(t, "a");
    gate_wait(&o.begun, 1);
    proxy_hold(p, true);
    gate_up(&o.go);
    record_until(trouble, WEIR_EVENT_ERROR, 1);
    proxy_cut_all(p);
    proxy_hold(p, false);
    weir_job *job;
    UNTIL(weir_wait(t->q, id, PATIENCE_MS, &job, &t->err) != WEIR_EUNAVAIL);
    assert_non_null(job);
    assert_int_equal(job->state, WEIR_STATE_COMPLETE);
    assert_int_equal(job->lost, 0);
    assert_int_equal(gate_now(&o.begun), 1);
    weir_job_free(job);
    record_stop(trouble);
    rt_check_and_close(t);
    proxy_stop(p);
    rig_free(r);
}

static weir_code nth_waits(weir_job *job, void *ctx)
{
    one_job *o = ctx;
    gate_up(&o->begun);
    gate_wait(&o->go, gate_now(&o->begun));
    return weir_job_done(job, "{\"ok\":true}", 0, NULL);
}

/* The same, and no thread has the time: the only one is in its next handler by then. */
static void sent_again_beside_the_handlers(void **state)
{
    (void)state;
    rig   *r = rig_start(NULL);
    proxy *p = r ? proxy_start(r, seed) : NULL;
    assert_non_null(p);
    enum { TIMEOUT_MS = 1500 };
    char    url[URL_MAX];
    rt      box, *t = &box;
    one_job o = { GATE_INIT, GATE_INIT };
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?timeout=%dms", proxy_port(p), TIMEOUT_MS);
    rt_open(t, url, false);
    uint64_t first = rt_add_type(t, "a"), second = rt_add_type(t, "a");
    OK(weir_process(t->q, "a",
                    &(weir_pool_config){ .handler = nth_waits, .ctx = &o, .prefetch = 1 }, NULL,
                    &t->err));
    gate_wait(&o.begun, 1);
    proxy_hold(p, true);
    bool there;
    UNTIL(weir_exists(t->q, first, &there, &t->err));      /* the line hangs now */
    gate_up(&o.go);
    gate_wait(&o.begun, 2);
    int64_t end = rt_ms() + 3 * TIMEOUT_MS;
    UNTIL(rt_ms() > end);                   /* nobody waits for its answer now */
    proxy_cut_all(p);
    proxy_hold(p, false);
    rt_until(t, first, WEIR_STATE_COMPLETE);
    assert_int_equal(gate_now(&o.begun), 2);
    gate_up(&o.go);
    rt_until(t, second, WEIR_STATE_COMPLETE);
    rt_check_and_close(t);
    proxy_stop(p);
    rig_free(r);
}

static void a_lost_outcome_is_sent_again(void **state)
{
    (void)state;
    an_outcome_is_lost(0);
    an_outcome_is_lost(2);
}

/* Two takes of one call pass over a suspect, and the answer is lost behind the last job: repeated,
 * each take gets its own jobs, and says that a suspect waits. */
static void takes_are_repeated_on(const char *query)
{
    enum { TAKES = 2, EACH = 2, JOBS = TAKES + TAKES * EACH };
    static const char *const types[] = { "a", NULL };
    rig   *r = rig_start(NULL);
    proxy *p = r ? proxy_start(r, seed) : NULL;
    assert_non_null(p);
    char         url[URL_MAX];
    rt           box, *t = &box;
    weir_taking  one = { .remote = true, .types = types, .n = TAKES },
                more = { .types = types, .n = EACH, .busy = true };
    weir_job    *held[TAKES], *jobs[TAKES][EACH];
    weir_ended   ended[TAKES];
    weir_ending  endings[TAKES], lost = { .outcome = WEIR_OUTCOME_LOST };
    size_t       n;
    snprintf(url, sizeof url, "redis%s://127.0.0.1:%d?%s", strstr(query, "profile=") ? "+kue" : "",
             proxy_port(p), query);
    rt_open(t, url, false);
    lost.id = rt_add(t, &(weir_spec){ .type = "a", .max_lost = 10, .priority = -1 });
    OK(weir_take(t->q, &one, held, &n, &t->err));
    lost.delivery = held[0]->delivery;
    weir_job_free(held[0]);
    OK(weir_finish(t->q, &lost, 1, ended, &t->err));
    OK(ended[0].err.code);
    for (int i = 0; i < JOBS; i++)
        rt_add(t, &(weir_spec){ .type = "a", .data = i < JOBS - 1 ? "{}" : "{\"last\":1}" });
    one.busy = true;
    OK(weir_take(t->q, &one, held, &n, &t->err));
    assert_int_equal(n, TAKES);
    for (int i = 0; i < TAKES; i++)
        endings[i] = (weir_ending){ .id = held[i]->id, .delivery = held[i]->delivery,
                                    .next = &more, .jobs = jobs[i] };
    proxy_cut_behind(p, "{\"last\":1}");
    OK(weir_finish(t->q, endings, TAKES, ended, &t->err));
    assert_int_equal(proxy_cuts(p), 1);
    for (int i = 0; i < TAKES; i++) {
        OK(ended[i].err.code);
        assert_true(ended[i].suspect_waits);
        assert_int_equal(ended[i].n_jobs, EACH);
        for (int k = 0; k < EACH; k++) {
            assert_int_equal(jobs[i][k]->id, held[TAKES - 1]->id + 1 + (uint64_t)(i * EACH + k));
            weir_job_free(jobs[i][k]);
        }
    }
    for (int i = 0; i < TAKES; i++)
        weir_job_free(held[i]);
    rt_check_and_close(t);
    proxy_stop(p);
    rig_free(r);
}

static void takes_are_repeated(void **state)
{
    (void)state;
    takes_are_repeated_on("timeout=60s");
    takes_are_repeated_on("profile=kue&timeout=60s");
    takes_are_repeated_on("profile=vertx&timeout=60s");
}

int main(int argc, char **argv)
{
    const char *given = getenv("WEIR_TEST_SEED");
    seed = given ? strtoull(given, NULL, 10) : 1794804839;
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);     /* "paused*" */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_now_and_then),
        cmocka_unit_test(cut_with_prefetch),
        cmocka_unit_test(cut_from_kue),
        cmocka_unit_test(cut_all_the_time),
        cmocka_unit_test(cut_with_partitions),
        cmocka_unit_test(a_line_that_hangs),
        cmocka_unit_test(a_lost_outcome_is_sent_again),
        cmocka_unit_test(sent_again_beside_the_handlers),
        cmocka_unit_test(takes_are_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
