/* test_runtime_events.c - what listeners are told and in which order, waiting for the end of a job,
 * what happens when its time comes, and what weir_explain() says. */
#include "support/runtime_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- order and filters ---- */

static weir_code second_time_lucky(weir_job *job, void *ctx)
{
    (void)ctx;
    if (weir_job_progress(job, 1, 2, NULL, 0, NULL))
        abort();
    return job->attempts ? weir_job_done(job, "\"yes\"", 0, NULL) : weir_job_fail(job, "not yet");
}

RT_TEST(a_whole_life)
{
    char line[600];
    record *all = record_start(t, NULL);
    uint64_t id = rt_add(t, &(weir_spec){ .type = "life", .attempts = 2, .delay_ms = 1,
                                          .backoff = { WEIR_BACKOFF_FIXED, .delay_ms = 1 } });
    rt_until(t, id, WEIR_STATE_INACTIVE);
    OK(weir_process(t->q, "life", &(weir_pool_config){ .handler = second_time_lucky }, NULL,
                    &t->err));
    rt_until(t, id, WEIR_STATE_COMPLETE);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
    OK(weir_retry(t->q, id, &t->err));
    OK(weir_cancel(t->q, id, &t->err));
    OK(weir_pause(t->q, "life", &t->err));
    OK(weir_resume(t->q, "life", &t->err));
    OK(weir_remove(t->q, id, &t->err));
    record_until(all, WEIR_EVENT_REMOVE, 1);
    record_line(all, line, sizeof line);
    assert_string_equal(line, "promotion enqueue start progress failed_attempt promotion enqueue "
                              "start progress complete enqueue cancelled pause resume remove");
    int64_t at = 0;
    for (size_t i = 0; i < all->n; i++) {
        const weir_event *ev = &all->event[i];
        bool of_type = ev->kind == WEIR_EVENT_PAUSE || ev->kind == WEIR_EVENT_RESUME;
        assert_int_equal(ev->id, of_type ? 0 : id);
        assert_int_equal(ev->missed, 0);
        assert_true(ev->at >= at);
        at = ev->at;
    }
    assert_string_equal(all->text[4], "not yet");
    assert_string_equal(all->text[9], "\"yes\"");
    assert_int_equal(all->event[4].state, WEIR_STATE_DELAYED);
    assert_int_equal(all->event[4].attempts, 1);
    assert_int_equal(all->event[8].progress, 50);
    assert_int_equal(all->event[9].delivery, 2);
    assert_int_equal(all->event[14].state, WEIR_STATE_ANY);
    record_stop(all);
}

RT_TEST(filters)
{
    record *before = record_start(t, NULL);
    uint64_t one = rt_add_type(t, "one"), two = rt_add_type(t, "two");
    record_until(before, WEIR_EVENT_ENQUEUE, 2);    /* over HTTP they may come after the answer */
    record_stop(before);
    char type[8] = "two";
    record *by_id = record_start(t, &(weir_filter){ .id = one });
    record *by_type = record_start(t, &(weir_filter){ .type = type });
    record *by_kind = record_start(t, &(weir_filter){ .events = WEIR_BIT(WEIR_EVENT_REMOVE) });
    record *by_all = record_start(t, &(weir_filter){ .id = two, .type = type,
                                                     .events = WEIR_BIT(WEIR_EVENT_CANCELLED) });
    record *none = record_start(t, &(weir_filter){ .id = one, .type = type });
    record *last = record_start(t, NULL);
    type[0] = '?';
    OK(weir_cancel(t->q, one, &t->err));
    OK(weir_cancel(t->q, two, &t->err));
    OK(weir_remove(t->q, one, &t->err));
    OK(weir_pause(t->q, "two", &t->err));
    OK(weir_remove(t->q, two, &t->err));
    record_until(last, WEIR_EVENT_REMOVE, 2);
    char line[200];
    record_line(by_id, line, sizeof line);
    assert_string_equal(line, "cancelled remove");
    record_line(by_type, line, sizeof line);
    assert_string_equal(line, "cancelled pause remove");
    record_line(by_kind, line, sizeof line);
    assert_string_equal(line, "remove remove");
    record_line(by_all, line, sizeof line);
    assert_string_equal(line, "cancelled");
    record_line(none, line, sizeof line);
    assert_string_equal(line, "");
    record *all[] = { by_id, by_type, by_kind, by_all, none, last };
    for (size_t i = 0; i < 6; i++)
        record_stop(all[i]);
    weir_listener *l = (weir_listener *)-1;
    assert_int_equal(weir_listen(t->q, NULL, NULL, NULL, &l, &t->err), WEIR_EINVAL);
    assert_null(l);
    weir_unlisten(NULL);
}

/* ---- ending to listen ---- */

typedef struct ear {
    rt            *t;
    weir_listener *l, *other;
    gate           came, go, left;
    atomic_int     called;
} ear;

static void hear_once(const weir_event *ev, void *ctx)
{
    (void)ev;
    ear *e = ctx;
    atomic_fetch_add(&e->called, 1);
    weir_unlisten(e->l);                 /* of itself */
    weir_unlisten(e->other);             /* and of one that comes after it */
    e->other = NULL;
}

static void hear_never(const weir_event *ev, void *ctx)
{
    (void)ev;
    (void)ctx;
    abort();
}

RT_TEST(unlisten_from_inside)
{
    for (int i = 0; i < 20; i++) {
        ear e = { .t = t };
        OK(weir_listen(t->q, NULL, hear_once, &e, &e.l, &t->err));
        OK(weir_listen(t->q, NULL, hear_never, NULL, &e.other, &t->err));
        record *after = record_start(t, NULL);
        rt_add_type(t, "a");
        rt_add_type(t, "a");
        record_until(after, WEIR_EVENT_ENQUEUE, 2);
        assert_int_equal(e.called, 1);
        record_stop(after);
    }
}

static void hear_slowly(const weir_event *ev, void *ctx)
{
    (void)ev;
    ear *e = ctx;
    gate_up(&e->came);
    gate_wait(&e->go, 1);
    atomic_fetch_add(&e->called, 1);
}

static void *unlisten_thread(void *ctx)
{
    ear *e = ctx;
    weir_unlisten(e->l);
    gate_up(&e->left);
    return NULL;
}

/* It waits for the call that is running, but not for those that would come. */
RT_TEST(unlisten_from_outside)
{
    ear e = { .t = t, .came = GATE_INIT, .go = GATE_INIT, .left = GATE_INIT };
    OK(weir_listen(t->q, NULL, hear_slowly, &e, &e.l, &t->err));
    for (int i = 0; i < 50; i++)
        rt_add_type(t, "a");
    gate_wait(&e.came, 1);
    pthread_t thread;
    pthread_create(&thread, NULL, unlisten_thread, &e);
    assert_false(gate_wait_ms(&e.left, 1, 20));
    gate_up(&e.go);
    gate_wait(&e.left, 1);
    int called = e.called;
    assert_true(called >= 1);
    pthread_join(thread, NULL);
    record *r = record_start(t, NULL);
    rt_add_type(t, "a");
    record_until(r, WEIR_EVENT_ENQUEUE, 1);
    assert_int_equal(e.called, called);
    record_stop(r);
}

/* ---- too slow ---- */

typedef struct slow {
    gate       came, go;
    atomic_int called, missed;
} slow;

static void count_message(const weir_event *ev, void *ctx)
{
    slow *s = ctx;
    atomic_fetch_add(&s->called, 1);
    atomic_fetch_add(&s->missed, (int)ev->missed);
    gate_up(&s->came);
    gate_wait(&s->go, 1);
}

/* On mem alone: it is about the list of events, and takes many jobs. */
static void too_slow(void **state)
{
    (void)state;
    enum { MORE = 500, LOT = 1000 };
    rt box, *t = &box;
    rt_open(t, RT_MEM, false);
    slow s = { .came = GATE_INIT, .go = GATE_INIT }, other = { .came = GATE_INIT, .go = GATE_INIT };
    weir_listener *l, *others;
    gate_up(&other.go);
    uint64_t waited = rt_add_type(t, "w");
    OK(weir_listen(t->q, &(weir_filter){ .events = WEIR_BIT(WEIR_EVENT_ENQUEUE) }, count_message,
                   &s, &l, &t->err));
    OK(weir_listen(t->q, &(weir_filter){ .type = "other" }, count_message, &other, &others,
                   &t->err));
    weir_future *f;
    weir_job    *job = NULL;
    OK(weir_wait_async(t->q, waited, &job, &f, &t->err));
    rt_add_type(t, "a");
    gate_wait(&s.came, 1);                         /* one is told, the others gather */
    OK(weir_cancel(t->q, waited, &t->err));        /* must reach whoever waits for it */
    rt_add_type(t, "other");                       /* the oldest that can be dropped */
    weir_spec *specs = calloc(LOT, sizeof *specs);
    for (int i = 0; i < LOT; i++)
        specs[i].type = "a";
    size_t added = 0, want = WEIR_MAX_BACKLOG + MORE;
    while (added < want) {
        size_t n = want - added < LOT ? want - added : LOT;
        OK(weir_add_many(t->q, specs, n, NULL, NULL, &t->err));
        added += n;
    }
    free(specs);
    gate_up(&s.go);
    OK(weir_future_wait(f, PATIENCE_MS, &t->err));
    assert_int_equal(job->state, WEIR_STATE_CANCELLED);
    weir_job_free(job);
    weir_future_free(f);
    int total = (int)want + 2;
    UNTIL(s.called + s.missed == total);
    assert_in_range(s.missed, MORE, MORE + 3);
    assert_int_equal(other.called, 0);             /* its only one was dropped ... */
    rt_add_type(t, "other");
    gate_wait(&other.came, 1);
    assert_int_equal(other.missed, 1);             /* ... and it is told of that, and of no other */
    weir_unlisten(l);
    weir_unlisten(others);
    rt_check_and_close(t);
}

/* ---- callbacks that call ---- */

static void add_another(const weir_event *ev, void *ctx)
{
    ear *e = ctx;
    weir_job *job;
    if (strcmp(ev->type, "first") != 0)
        return;
    if (weir_get(e->t->q, ev->id, &job, NULL))
        abort();
    weir_job_free(job);
    if (weir_wait(e->t->q, ev->id, 10, NULL, NULL) != WEIR_EINVAL)   /* it would wait for itself */
        abort();
    if (weir_add(e->t->q, &(weir_spec){ .type = "second" }, NULL, NULL))
        abort();
    gate_up(&e->came);
}

RT_TEST(callbacks_call)
{
    ear e = { .t = t, .came = GATE_INIT };
    OK(weir_listen(t->q, &(weir_filter){ .events = WEIR_BIT(WEIR_EVENT_ENQUEUE) }, add_another, &e,
                   &e.l, &t->err));
    for (int i = 0; i < 30; i++)
        rt_add_type(t, "first");
    gate_wait(&e.came, 30);
    rt_until_count(t, WEIR_STATE_INACTIVE, 60);
    weir_unlisten(e.l);
}

/* ---- waiting for the end ---- */

static weir_code as_told(weir_job *job, void *ctx)
{
    if (ctx)
        gate_wait(ctx, 1);
    return strcmp(job->data, "\"fail\"") == 0 ? weir_job_fail(job, "as told")
                                              : weir_job_done(job, "{\"n\":1}", 0, NULL);
}

RT_TEST(waiting_for_the_end)
{
    weir_job *job;
    OK(weir_process(t->q, "w", &(weir_pool_config){ .handler = as_told, .threads = 2 }, NULL,
                    &t->err));
    for (int i = 0; i < 30; i++) {
        uint64_t id = rt_add(t, &(weir_spec){ .type = "w" });
        OK(weir_wait(t->q, id, PATIENCE_MS, &job, &t->err));
        assert_int_equal(job->state, WEIR_STATE_COMPLETE);
        assert_string_equal(job->result, "{\"n\":1}");
        weir_job_free(job);
        OK(weir_wait(t->q, id, 0 + PATIENCE_MS, NULL, &t->err));        /* it has ended already */

        id = rt_add(t, &(weir_spec){ .type = "w", .data = "\"fail\"", .attempts = 2 });
        OK(weir_wait(t->q, id, PATIENCE_MS, &job, &t->err));
        assert_int_equal(job->state, WEIR_STATE_FAILED);
        assert_string_equal(job->error, "as told");
        assert_int_equal(job->attempts, 2);
        weir_job_free(job);

        OK(weir_pause(t->q, "w", &t->err));
        id = rt_add(t, &(weir_spec){ .type = "w", .remove_on_complete = true });
        weir_future *f;
        OK(weir_wait_async(t->q, id, &job, &f, &t->err));
        OK(weir_resume(t->q, "w", &t->err));
        OK(weir_future_wait(f, PATIENCE_MS, &t->err));
        weir_future_free(f);
        assert_int_equal(job->id, id);
        assert_string_equal(job->type, "w");
        assert_int_equal(job->state, WEIR_STATE_COMPLETE);
        assert_string_equal(job->result, "{\"n\":1}");
        assert_int_equal(job->attempts, 1);
        weir_job_free(job);
    }
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
}

RT_TEST(waiting_for_what_does_not_end_well)
{
    weir_job *job = (weir_job *)-1;
    weir_future *f;
    uint64_t id = rt_add_type(t, "w");
    assert_int_equal(weir_wait(t->q, id, 5, &job, &t->err), WEIR_ETIMEOUT);
    assert_null(job);
    assert_non_null(strstr(t->err.msg, "has not ended"));
    assert_int_equal(weir_wait(t->q, 9999, PATIENCE_MS, &job, &t->err), WEIR_ENOENT);
    assert_null(job);
    OK(weir_wait_async(t->q, id, &job, &f, &t->err));
    OK(weir_remove(t->q, id, &t->err));
    assert_int_equal(weir_future_wait(f, PATIENCE_MS, &t->err), WEIR_ENOENT);
    assert_null(job);
    weir_future_free(f);

    id = rt_add_type(t, "w");
    OK(weir_wait_async(t->q, id, &job, &f, &t->err));
    weir_future_free(f);                                  /* never mind */
    OK(weir_wait_async(t->q, id, &job, NULL, &t->err));
    OK(weir_wait_async(t->q, id, &job, &f, &t->err));
    OK(weir_cancel(t->q, id, &t->err));
    OK(weir_future_wait(f, PATIENCE_MS, &t->err));
    assert_int_equal(job->state, WEIR_STATE_CANCELLED);
    weir_job_free(job);
    weir_future_free(f);
}

typedef struct waiters {
    rt        *t;
    uint64_t   id;
    atomic_int ended, late;
} waiters;

static void *wait_thread(void *ctx)
{
    waiters *w = ctx;
    for (int i = 0; i < 40; i++) {
        weir_job *job = NULL;
        weir_code rc = weir_wait(w->t->q, w->id, i % 3, &job, NULL);
        if ((rc == WEIR_OK) != (job != NULL) || (rc && rc != WEIR_ETIMEOUT))
            abort();
        atomic_fetch_add(rc ? &w->late : &w->ended, 1);
        weir_job_free(job);
    }
    return NULL;
}

/* Times so short that the end and the timeout meet. */
RT_TEST(waiting_meets_the_end)
{
    for (int round = 0; round < 10; round++) {
        waiters w = { .t = t, .id = rt_add_type(t, "w") };
        pthread_t thread[4];
        for (int i = 0; i < 4; i++)
            pthread_create(&thread[i], NULL, wait_thread, &w);
        for (int i = 0; i < 30; i++) {
            OK(weir_cancel(t->q, w.id, &t->err));
            OK(weir_retry(t->q, w.id, &t->err));
        }
        OK(weir_cancel(t->q, w.id, &t->err));
        for (int i = 0; i < 4; i++)
            pthread_join(thread[i], NULL);
        assert_int_equal(w.ended + w.late, 160);
    }
}

/* ---- when its time comes ---- */

RT_CLOCK_TEST(a_delay_to_the_millisecond)
{
    record *r = record_start(t, NULL);
    uint64_t id = rt_add(t, &(weir_spec){ .type = "d", .delay_ms = 1000 });
    uint64_t other = rt_add(t, &(weir_spec){ .type = "d", .delay_ms = 999 });
    rt_later(t, 999);
    rt_until(t, other, WEIR_STATE_INACTIVE);
    assert_int_equal(rt_state(t, id), WEIR_STATE_DELAYED);
    rt_later(t, 1);
    rt_until(t, id, WEIR_STATE_INACTIVE);
    record_until(r, WEIR_EVENT_ENQUEUE, 2);
    char line[100];
    record_line(r, line, sizeof line);
    assert_string_equal(line, "promotion enqueue promotion enqueue");
    assert_int_equal(r->event[2].id, id);
    assert_int_equal(r->event[2].at, t->now);
    record_stop(r);
}

RT_CLOCK_TEST(a_deadline)
{
    record *r = record_start(t, NULL);
    uint64_t id = rt_add(t, &(weir_spec){ .type = "d", .deadline_at = t->now + 500 });
    uint64_t other = rt_add(t, &(weir_spec){ .type = "d", .delay_ms = 499 });
    rt_later(t, 499);
    rt_until(t, other, WEIR_STATE_INACTIVE);
    assert_int_equal(rt_state(t, id), WEIR_STATE_INACTIVE);
    rt_later(t, 1);
    rt_until(t, id, WEIR_STATE_FAILED);
    weir_job *job = rt_get(t, id);
    assert_string_equal(job->error, "Deadline exceeded");
    assert_int_equal(job->attempts, 0);
    weir_job_free(job);
    record_until(r, WEIR_EVENT_FAILED, 1);
    record_stop(r);
}

RT_CLOCK_TEST(retention)
{
    weir_settings keep = { .keep_failed = { .age_ms = 1000 } };
    OK(weir_configure(t->q, "r", &keep, &t->err));
    record *r = record_start(t, NULL);
    uint64_t old = rt_add_type(t, "r"), young = rt_add_type(t, "r");
    OK(weir_cancel(t->q, old, &t->err));
    rt_later(t, 500);
    OK(weir_cancel(t->q, young, &t->err));
    rt_later(t, 500);
    rt_until(t, old, WEIR_STATE_ANY);
    assert_int_equal(rt_state(t, young), WEIR_STATE_CANCELLED);
    rt_later(t, 500);
    rt_until(t, young, WEIR_STATE_ANY);
    record_until(r, WEIR_EVENT_REMOVE, 2);
    record_stop(r);
}

typedef struct locked_clock {
    pthread_mutex_t lock;
    int64_t         now;
} locked_clock;

static int64_t locked_now(void *ctx)
{
    locked_clock *c = ctx;
    pthread_mutex_lock(&c->lock);
    int64_t now = c->now;
    pthread_mutex_unlock(&c->lock);
    return now;
}

/* The user's clock has a lock, and the user calls weir_wake() with it held. */
static void a_clock_with_a_lock(void **state)
{
    (void)state;
    locked_clock c = { PTHREAD_MUTEX_INITIALIZER, 1000000 };
    rt box = { 0 }, *t = &box;
    OK(weir_open(&t->q, "mem:", &(weir_options){ .now = locked_now, .now_ctx = &c }, &t->err));
    for (int i = 0; i < 2000; i++) {
        uint64_t id = i % 100 ? 0 : rt_add(t, &(weir_spec){ .type = "d", .delay_ms = 100 });
        pthread_mutex_lock(&c.lock);
        c.now += i % 100 ? 1 : 100;
        weir_wake(t->q);
        pthread_mutex_unlock(&c.lock);
        if (id)
            rt_until(t, id, WEIR_STATE_INACTIVE);
    }
    weir_close(t->q);
}

/* ---- explanations ---- */

static void explains(rt *t, uint64_t id, const char *why, weir_remedy remedy)
{
    weir_explanation *e;
    OK(weir_explain(t->q, id, &e, &t->err));
    if (!strstr(e->why, why) || e->remedy != remedy)
        fail_msg("'%s', %s: lacks '%s', or is not %s", e->why, weir_remedy_name(e->remedy), why,
                 weir_remedy_name(remedy));
    assert_int_equal(e->job->id, id);
    assert_true(e->n >= 1);
    assert_non_null(strstr(e->moment[0].what, "added"));
    for (size_t i = 1; i < e->n; i++)
        assert_true(e->moment[i - 1].at <= e->moment[i].at);
    weir_explanation_free(e);
}

RT_CLOCK_TEST(explain_every_state)
{
    static const char *const types[] = { "x", NULL };
    weir_job *job[2];
    size_t    n;
    uint64_t  a = rt_add(t, &(weir_spec){ .type = "x", .attempts = 2, .ttl_ms = 60000,
                                          .backoff = { WEIR_BACKOFF_FIXED, .delay_ms = 5000 } });
    uint64_t  b = rt_add_type(t, "x"), c = rt_add_type(t, "x");
    explains(t, a, "No worker has ever taken", WEIR_REMEDY_START_WORKER);
    explains(t, a, "the conditions of the running workers (--when) are not true for this job",
             WEIR_REMEDY_START_WORKER);
    explains(t, c, "2 of its type are before it", WEIR_REMEDY_START_WORKER);
    OK(weir_pause(t->q, "x", &t->err));
    explains(t, a, "type x is paused", WEIR_REMEDY_RESUME);
    OK(weir_pause(t->q, "*", &t->err));
    explains(t, a, "the whole queue is paused", WEIR_REMEDY_RESUME_ALL);
    OK(weir_resume(t->q, "*", &t->err));
    OK(weir_resume(t->q, "x", &t->err));
    OK(weir_take(t->q, &(weir_taking){ .types = types, .n = 1, .lease_ms = 1000000 }, job, &n,
                 &t->err));
    assert_int_equal(n, 1);
    explains(t, a, "attempt 1 of 2", WEIR_REMEDY_CANCEL);
    explains(t, a, "ttl", WEIR_REMEDY_CANCEL);
    explains(t, a, "Its lease ends in 16 min 40 s, unless the worker renews it.",
             WEIR_REMEDY_CANCEL);
    t->now += 1020000;              /* nobody is told: the job is still where it was */
    explains(t, a, "Its lease ended 20.0 s ago: the worker seems to be lost, and the job will be "
                   "queued again.", WEIR_REMEDY_CANCEL);
    t->now -= 1020000;
    explains(t, b, "1 of them is running now", WEIR_REMEDY_ADD_WORKERS);
    assert_int_equal(weir_job_fail(job[0], "broken pipe"), WEIR_EJOB);
    weir_job_free(job[0]);
    explains(t, a, "Attempt 1 of 2 failed; it will be tried again in 5.0 s",
             WEIR_REMEDY_PROMOTE);
    explains(t, a, "broken pipe", WEIR_REMEDY_PROMOTE);
    OK(weir_cancel(t->q, b, &t->err));
    explains(t, b, "before it was ever started", WEIR_REMEDY_RETRY);
    rt_later(t, 5000);
    rt_until(t, a, WEIR_STATE_INACTIVE);
    OK(weir_take(t->q, &(weir_taking){ .types = types, .n = 2, .lease_ms = 1000000 }, job, &n,
                 &t->err));
    assert_int_equal(n, 2);
    assert_int_equal(weir_job_done(job[job[0]->id == a ? 1 : 0], NULL, 0, NULL), WEIR_OK);
    assert_int_equal(weir_job_fail(job[job[0]->id == a ? 0 : 1], "again"), WEIR_EJOB);
    weir_job_free(job[0]);
    weir_job_free(job[1]);
    explains(t, a, "It failed for good", WEIR_REMEDY_RETRY);
    explains(t, a, "after 2 of 2 attempts: again", WEIR_REMEDY_RETRY);
    explains(t, c, "It was completed", WEIR_REMEDY_NONE);
    uint64_t d = rt_add(t, &(weir_spec){ .type = "x", .delay_ms = 90000,
                                         .deadline_at = t->now + 1000 });
    explains(t, d, "It was asked to start in 1 min 30 s", WEIR_REMEDY_PROMOTE);
    rt_later(t, 1000);
    rt_until(t, d, WEIR_STATE_FAILED);
    explains(t, d, "its deadline came", WEIR_REMEDY_RETRY);
    weir_explanation *e = (weir_explanation *)-1;
    assert_int_equal(weir_explain(t->q, 555, &e, &t->err), WEIR_ENOENT);
    assert_null(e);
}

typedef struct from_inside {
    weir_queue *q;
    gate        done;
} from_inside;

static void explain_inside(const weir_event *ev, void *ctx)
{
    from_inside      *in = ctx;
    weir_explanation *e = NULL;
    if (weir_explain(in->q, ev->id, &e, NULL) == WEIR_OK)
        gate_up(&in->done);
    weir_explanation_free(e);
}

RT_TEST(explanations_come_later)
{
    weir_explanation *e = NULL;
    weir_future      *f;
    uint64_t          id = rt_add_type(t, "x");
    OK(weir_explain_async(t->q, id, &e, &f, &t->err));
    OK(weir_future_wait(f, WEIR_FOREVER, &t->err));
    weir_future_free(f);
    assert_int_equal(e->job->id, id);
    weir_explanation_free(e);
    OK(weir_explain_async(t->q, 555, &e, &f, &t->err));
    assert_int_equal(weir_future_wait(f, WEIR_FOREVER, &t->err), WEIR_ENOENT);
    weir_future_free(f);
    assert_null(e);
    for (int i = 0; i < 50; i++) {              /* nobody wants it after all */
        OK(weir_explain_async(t->q, id, &e, &f, &t->err));
        weir_future_free(f);
        weir_explanation_free(e);            /* it may have been there just before */
        e = NULL;
    }
    from_inside    in = { t->q, GATE_INIT };         /* a callback may ask, too */
    weir_listener *l;
    OK(weir_listen(t->q, NULL, explain_inside, &in, &l, &t->err));
    rt_add_type(t, "x");
    gate_wait(&in.done, 1);
    weir_unlisten(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_life),
        cmocka_unit_test(filters),
        cmocka_unit_test(unlisten_from_inside),
        cmocka_unit_test(unlisten_from_outside),
        cmocka_unit_test(too_slow),
        cmocka_unit_test(callbacks_call),
        cmocka_unit_test(waiting_for_the_end),
        cmocka_unit_test(waiting_for_what_does_not_end_well),
        cmocka_unit_test(waiting_meets_the_end),
        cmocka_unit_test(a_delay_to_the_millisecond),
        cmocka_unit_test(a_deadline),
        cmocka_unit_test(retention),
        cmocka_unit_test(a_clock_with_a_lock),
        cmocka_unit_test(explain_every_state),
        cmocka_unit_test(explanations_come_later),
    };
    return cmocka_run_group_tests_name("runtime_events", tests, NULL, NULL);
}
