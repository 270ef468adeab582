/* runtime_fixture.c - queues, clocks, gates and records of events: see runtime_fixture.h. */
#include "support/runtime_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/server.h"
#include "support/redis_rig.h"
#include "support/store_fixture.h"

/* ---- a queue ---- */

static int64_t turned_now(void *ctx)
{
    rt *t = ctx;
    return atomic_load(&t->now) - atomic_load(&t->set_back);
}

static int64_t turned_steady(void *ctx)
{
    rt *t = ctx;
    return atomic_load(&t->now);
}

static weir_code try_to_open(rt *t, weir_queue **q)
{
    weir_options opt = { .now = t->test_clock ? turned_now : NULL, .now_ctx = t,
                         .steady = t->test_clock ? turned_steady : NULL };
    return weir_open(q, t->url, &opt, &t->err);
}

static void open_it(rt *t, weir_queue **q)
{
    assert_ok_(try_to_open(t, q), &t->err, "weir_open", __FILE__, __LINE__);
}

/* The URL becomes the server's address. */
static void serve(rt *t)
{
    open_it(t, &t->served);
    OK(srv_start(&t->server, t->served, &(srv_options){ .listen = "127.0.0.1:0" }, &t->err));
    snprintf(t->url, sizeof t->url, "%s", srv_address(t->server));
}

/* All but the last step of rt_open(). */
static void prepare(rt *t, const char *url, bool test_clock)
{
    memset(t, 0, sizeof *t);
    t->test_clock = test_clock;
    t->now = INT64_C(1700000000000);
    bool        served = !strncmp(url, "served:", 7), beside = !strncmp(url, "shared:", 7);
    const char *at = strstr(url, ":@/") ? strchr(url, '@') : NULL;
    url += served || beside ? 7 : 0;
    if (rig_is_shared(url)) {
        assert_true(rig_shared_url(url, t->url, sizeof t->url));
    } else if (at) {
        assert_true(tempdir_make(t->dir));
        snprintf(t->url, sizeof t->url, "%.*s%s%s", (int)(at - url), url, t->dir, at + 1);
    } else {
        snprintf(t->url, sizeof t->url, "%s", url);
    }
    if (served)
        serve(t);
    if (beside)
        open_it(t, &t->served);
}

void rt_open(rt *t, const char *url, bool test_clock)
{
    prepare(t, url, test_clock);
    open_it(t, &t->q);
}

void rt_open_until(rt *t, const char *url)
{
    weir_code rc;
    prepare(t, url, false);
    UNTIL((rc = try_to_open(t, &t->q)) != WEIR_EUNAVAIL && rc != WEIR_EUNKNOWN);
    assert_ok_(rc, &t->err, "weir_open", __FILE__, __LINE__);
}

void rt_each(void (*test)(rt *t), bool test_clock)
{
    static const char *const usual[] = { RT_MEM, RT_SQLITE, RT_REDIS, RT_SERVED };
    const char *listed = getenv("WEIR_TEST_STORES");
    char      **urls = NULL;
    size_t      n = sizeof usual / sizeof *usual;
    if (listed && *listed)
        n = store_urls(0, NULL, &urls);
    for (size_t i = 0; i < n; i++) {
        rt t;
        rt_open(&t, urls ? urls[i] : usual[i], test_clock);
        test(&t);
        rt_check_and_close(&t);
    }
    free(urls);
}

void rt_refused(const char *url, weir_code want, const char *words)
{
    weir_queue *q;
    weir_error  err;
    weir_code   rc = weir_open(&q, url, NULL, &err);
    if (rc != want || !strstr(err.msg, words) || q)
        fail_msg("%s: %s (%s)", url, weir_code_name(rc), err.msg);
    assert_null(strstr(err.msg, "s3cret"));
}

void rt_reopen(rt *t)
{
    weir_close(t->q);
    open_it(t, &t->q);
}

void rt_close(rt *t)
{
    weir_close(t->q);
    if (t->server)
        srv_stop(t->server);
    srv_destroy(t->server);
    weir_close(t->served);
    t->q = t->served = NULL;
    t->server = NULL;
    tempdir_remove(t->dir);
    t->dir[0] = 0;
}

void rt_check_and_close(rt *t)
{
    weir_report *report;
    OK(weir_check(t->q, false, &report, &t->err));
    if (report->n)
        fail_msg("the store is not consistent: %s", report->line[0]);
    weir_report_free(report);
    rt_close(t);
}

void rt_later(rt *t, int64_t ms)
{
    atomic_fetch_add(&t->now, ms);
    if (t->served)
        weir_wake(t->served);
    weir_wake(t->q);
}

void rt_set_back(rt *t, int64_t ms)
{
    atomic_fetch_add(&t->set_back, ms);
    rt_later(t, 0);
}

uint64_t rt_add(rt *t, const weir_spec *spec)
{
    weir_added added;
    OK(weir_add(t->q, spec, &added, &t->err));
    assert_true(added.id);
    return added.id;
}

uint64_t rt_add_type(rt *t, const char *type)
{
    return rt_add(t, &(weir_spec){ .type = type });
}

weir_job *rt_get(rt *t, uint64_t id)
{
    weir_job *job;
    OK(weir_get(t->q, id, &job, &t->err));
    return job;
}

weir_state rt_state(rt *t, uint64_t id)
{
    weir_job *job;
    weir_code rc = weir_get(t->q, id, &job, &t->err);
    if (rc == WEIR_ENOENT)
        return WEIR_STATE_ANY;
    OK(rc);
    weir_state state = job->state;
    weir_job_free(job);
    return state;
}

uint64_t rt_count(rt *t, weir_state state)
{
    uint64_t n;
    OK(weir_count(t->q, state, NULL, &n, &t->err));
    return n;
}

void rt_until(rt *t, uint64_t id, weir_state state)
{
    int64_t end = rt_ms() + PATIENCE_MS;
    weir_state is;
    while ((is = rt_state(t, id)) != state) {
        if (rt_ms() > end)
            fail_msg("job %llu is %s, not %s", (unsigned long long)id, weir_state_name(is),
                     weir_state_name(state));
        rt_breathe();
    }
}

void rt_until_count(rt *t, weir_state state, uint64_t n)
{
    int64_t end = rt_ms() + PATIENCE_MS;
    uint64_t is;
    while ((is = rt_count(t, state)) != n) {
        if (rt_ms() > end)
            fail_msg("%llu jobs are %s, not %llu", (unsigned long long)is, weir_state_name(state),
                     (unsigned long long)n);
        rt_breathe();
    }
}

/* ---- waiting ---- */

int64_t rt_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void rt_breathe(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

void gate_up(gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->n++;
    pthread_cond_broadcast(&g->moved);
    pthread_mutex_unlock(&g->lock);
}

int gate_now(gate *g)
{
    pthread_mutex_lock(&g->lock);
    int n = g->n;
    pthread_mutex_unlock(&g->lock);
    return n;
}

bool gate_wait_ms(gate *g, int n, int ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&g->lock);
    int rc = 0;
    while (g->n < n && !rc)
        rc = pthread_cond_timedwait(&g->moved, &g->lock, &until);
    bool there = g->n >= n;
    pthread_mutex_unlock(&g->lock);
    return there;
}

void gate_wait(gate *g, int n)
{
    if (!gate_wait_ms(g, n, PATIENCE_MS)) {
        fprintf(stderr, "gate: %d, not %d\n", gate_now(g), n);
        abort();      /* cmocka's fail is not for other threads than the test's own */
    }
}

void assert_ok_(weir_code rc, const weir_error *err, const char *what, const char *file, int line)
{
    if (!rc)
        return;
    print_error("%s:%d: %s: %s (%s)\n", file, line, what, weir_code_name(rc), err ? err->msg : "");
    _fail(file, line);
}

/* ---- events ---- */

static void on_event(const weir_event *ev, void *ctx)
{
    record *r = ctx;
    pthread_mutex_lock(&r->lock);
    if (r->n < RT_MAX_EVENTS) {
        r->event[r->n] = *ev;
        r->event[r->n].type = NULL;
        r->event[r->n].text = NULL;
        snprintf(r->text[r->n], sizeof r->text[0], "%s", ev->text ? ev->text : "");
        r->n++;
    }
    pthread_mutex_unlock(&r->lock);
}

record *record_start(rt *t, const weir_filter *filter)
{
    record *r = calloc(1, sizeof *r);
    assert_non_null(r);
    pthread_mutex_init(&r->lock, NULL);
    OK(weir_listen(t->q, filter, on_event, r, &r->listener, &t->err));
    return r;
}

size_t record_count(record *r, weir_event_kind kind)
{
    size_t n = 0;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->n; i++)
        n += r->event[i].kind == kind;
    pthread_mutex_unlock(&r->lock);
    return n;
}

void record_until(record *r, weir_event_kind kind, size_t n)
{
    int64_t end = rt_ms() + PATIENCE_MS;
    while (record_count(r, kind) < n) {
        if (rt_ms() > end) {
            char line[1000];
            record_line(r, line, sizeof line);
            fail_msg("no %zu %s in: %s", n, weir_event_name(kind), line);
        }
        rt_breathe();
    }
}

void record_line(record *r, char *out, size_t size)
{
    size_t at = 0;
    out[0] = 0;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->n && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%s", i ? " " : "",
                               weir_event_name(r->event[i].kind));
    pthread_mutex_unlock(&r->lock);
}

void record_stop(record *r)
{
    weir_unlisten(r->listener);
    pthread_mutex_destroy(&r->lock);
    free(r);
}
