/* test_runtime_pool.c - pools of handlers: how many at once, in which order, how often, what
 * becomes of their answers, and what stopping does. */
#include "support/runtime_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- how many, in which order, how often ---- */

typedef struct crowd {
    gate        came, go;
    atomic_int  now, most, total;
} crowd;

static weir_code in_crowd(weir_job *job, void *ctx)
{
    (void)job;
    crowd *c = ctx;
    int now = atomic_fetch_add(&c->now, 1) + 1, most = atomic_load(&c->most);
    while (now > most && !atomic_compare_exchange_weak(&c->most, &most, now))
        ;
    gate_up(&c->came);
    gate_wait(&c->go, 1);
    atomic_fetch_sub(&c->now, 1);
    atomic_fetch_add(&c->total, 1);
    return WEIR_OK;
}

static void all_threads_but_no_more(rt *t, int prefetch)
{
    crowd c = { .came = GATE_INIT, .go = GATE_INIT };
    for (int i = 0; i < 40; i++)
        rt_add_type(t, "many");
    weir_pool_config pool = { .handler = in_crowd, .ctx = &c, .threads = 5, .prefetch = prefetch };
    OK(weir_process(t->q, "many", &pool, NULL, &t->err));
    gate_wait(&c.came, 5);
    assert_false(gate_wait_ms(&c.came, 6, 20));
    gate_up(&c.go);
    rt_until_count(t, WEIR_STATE_COMPLETE, 40);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
    assert_int_equal(c.most, 5);
    assert_int_equal(c.total, 40);
}

RT_TEST(never_more_than_n_handlers) { all_threads_but_no_more(t, 0); }
RT_TEST(never_more_than_n_handlers_with_prefetch) { all_threads_but_no_more(t, 3); }

typedef struct order {
    pthread_mutex_t lock;
    uint64_t        id[64];
    size_t          n;
} order;

static weir_code note_order(weir_job *job, void *ctx)
{
    order *o = ctx;
    pthread_mutex_lock(&o->lock);
    o->id[o->n++ % 64] = job->id;
    pthread_mutex_unlock(&o->lock);
    return WEIR_OK;
}

RT_TEST(strict_priority_with_one_thread)
{
    static const int32_t priority[] = { 10, 0, -15, 0, -5, 7, -10, -15 };
    static const int     rank[] = { 2, 7, 6, 4, 1, 3, 5, 0 };     /* by priority, then age */
    order    o = { .lock = PTHREAD_MUTEX_INITIALIZER };
    uint64_t id[8];
    const char *const types[] = { "one", "two", NULL };
    for (int i = 0; i < 8; i++)
        id[i] = rt_add(t, &(weir_spec){ .type = types[i % 2], .priority = priority[i] });
    OK(weir_process(t->q, NULL,
                    &(weir_pool_config){ .handler = note_order, .ctx = &o, .types = types }, NULL,
                    &t->err));
    rt_until_count(t, WEIR_STATE_COMPLETE, 8);
    OK(weir_stop(t->q, "two", PATIENCE_MS, &t->err));
    assert_int_equal(o.n, 8);
    for (int i = 0; i < 8; i++)
        assert_int_equal(o.id[i], id[rank[i]]);
}

static weir_code always_fails(weir_job *job, void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
    return weir_job_fail(job, "no luck, try %d", job->attempts + 1);
}

RT_TEST(exactly_attempts_executions)
{
    atomic_int ran = 0;
    uint64_t now = rt_add(t, &(weir_spec){ .type = "f", .attempts = 4 });
    uint64_t later = rt_add(t, &(weir_spec){ .type = "f", .attempts = 3,
                                             .backoff = { WEIR_BACKOFF_FIXED, .delay_ms = 2 } });
    OK(weir_process(t->q, "f",
                    &(weir_pool_config){ .handler = always_fails, .ctx = &ran, .threads = 2 }, NULL,
                    &t->err));
    rt_until(t, now, WEIR_STATE_FAILED);
    rt_until(t, later, WEIR_STATE_FAILED);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
    assert_int_equal(ran, 7);
    weir_job *job = rt_get(t, later);
    assert_int_equal(job->attempts, 3);
    assert_string_equal(job->error, "no luck, try 3");
    weir_job_free(job);
}

static weir_code gives_back_twice(weir_job *job, void *ctx)
{
    int run = atomic_fetch_add((atomic_int *)ctx, 1);
    if (run == 0)
        assert_int_equal(weir_job_return(job, -1, NULL), WEIR_EINVAL);
    return run < 2 ? weir_job_return(job, run, NULL) : weir_job_done(job, "[3]", 0, NULL);
}

RT_TEST(a_handler_may_give_its_job_back)
{
    atomic_int ran = 0;
    uint64_t   id = rt_add(t, &(weir_spec){ .type = "r" });
    OK(weir_process(t->q, "r", &(weir_pool_config){ .handler = gives_back_twice, .ctx = &ran },
                    NULL, &t->err));
    rt_until(t, id, WEIR_STATE_COMPLETE);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
    assert_int_equal(ran, 3);
    weir_job *job = rt_get(t, id);
    assert_int_equal(job->attempts, 1);
    assert_int_equal(job->delivery, 3);
    assert_non_null(strstr(job->history, "\"returned\",\"state\":\"delayed\""));
    weir_job_free(job);

    size_t            n;
    const char *const types[] = { "h", NULL };
    id = rt_add_type(t, "h");
    OK(weir_take(t->q, &(weir_taking){ .types = types, .n = 1 }, &job, &n, &t->err));  /* by hand */
    assert_int_equal(n, 1);
    OK(weir_job_return(job, 60000, NULL));
    assert_int_equal(weir_job_done(job, NULL, 0, NULL), WEIR_ESTALE);
    weir_job_free(job);
    assert_int_equal(rt_state(t, id), WEIR_STATE_DELAYED);
}

/* ---- what handlers answer ---- */

static weir_code answer(weir_job *job, void *ctx)
{
    (void)ctx;
    const char *type = job->type;
    if (strcmp(type, "ok") == 0)
        return WEIR_OK;
    if (strcmp(type, "done") == 0)
        return weir_job_done(job, "{\"sent\":true}", 0, NULL);
    if (strcmp(type, "twice") == 0) {
        if (weir_job_done(job, "1", 0, NULL) || weir_job_done(job, "2", 0, NULL) != WEIR_ESTALE)
            abort();
        if (weir_job_fail(job, "no") != WEIR_ESTALE)
            abort();
        return WEIR_OK;
    }
    if (strcmp(type, "fail") == 0)
        return weir_job_fail(job, "smtp: %s", "refused");
    if (strcmp(type, "code") == 0)
        return WEIR_EUNAVAIL;
    if (strcmp(type, "invalid") == 0)
        return weir_job_done(job, "{\"sent\":tru}", 0, NULL);
    if (strcmp(type, "mended") == 0) {
        if (weir_job_done(job, "nonsense", 0, NULL) != WEIR_EINVAL)
            abort();
        return weir_job_done(job, "\"sense\"", 0, NULL);
    }
    if (strcmp(type, "other") == 0) {
        if (weir_job_done(job, "nonsense", 0, NULL) != WEIR_EINVAL)
            abort();
        return WEIR_EIO;
    }
    char *big = malloc(WEIR_MAX_DATA + 3);
    memset(big, 'x', WEIR_MAX_DATA + 2);
    big[0] = big[WEIR_MAX_DATA + 1] = '"';
    big[WEIR_MAX_DATA + 2] = 0;
    weir_code rc = weir_job_done(job, big, 0, NULL);
    free(big);
    return rc;
}

static const char *const answers[] = { "ok", "done", "twice", "fail", "code", "invalid", "mended",
                                       "other", "big", NULL };

static void what_becomes_of_answers(rt *t, int prefetch)
{
    static const struct { weir_state state; const char *result, *error; } want[] = {
        { WEIR_STATE_COMPLETE, NULL, NULL },
        { WEIR_STATE_COMPLETE, "{\"sent\":true}", NULL },
        { WEIR_STATE_COMPLETE, "1", NULL },
        { WEIR_STATE_FAILED, NULL, "smtp: refused" },
        { WEIR_STATE_FAILED, NULL, "the store cannot be reached" },
        { WEIR_STATE_FAILED, NULL, "result: not JSON" },
        { WEIR_STATE_COMPLETE, "\"sense\"", NULL },
        { WEIR_STATE_FAILED, NULL, "input or output error" },
        { WEIR_STATE_FAILED, NULL, "WEIR_MAX_DATA" },
    };
    OK(weir_process(t->q, NULL,
                    &(weir_pool_config){
                        .handler = answer, .threads = 2, .types = answers, .prefetch = prefetch },
                    NULL, &t->err));
    for (size_t i = 0; answers[i]; i++) {
        uint64_t  id = rt_add_type(t, answers[i]);
        weir_job *job;
        OK(weir_wait(t->q, id, PATIENCE_MS, &job, &t->err));
        assert_int_equal(job->state, want[i].state);
        if (want[i].result)
            assert_string_equal(job->result, want[i].result);
        else
            assert_null(job->result);
        if (want[i].error && !strstr(job->error, want[i].error))
            fail_msg("%s: error is '%s'", answers[i], job->error);
        assert_true(want[i].error || !job->error);
        weir_job_free(job);
    }
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
}

RT_TEST(answers_of_handlers) { what_becomes_of_answers(t, 0); }
RT_TEST(answers_of_handlers_with_prefetch) { what_becomes_of_answers(t, 2); }

/* ---- answers that come later ---- */

typedef struct shelf {
    pthread_mutex_t lock;
    weir_job       *job[256];
    size_t          n;
    gate            came;
    bool            at_once;      /* answer before the handler returns */
} shelf;

static weir_code put_on_shelf(weir_job *job, void *ctx)
{
    shelf *s = ctx;
    if (s->at_once) {
        weir_code rc = weir_job_done(job, "\"early\"", 0, NULL);
        return rc ? rc : WEIR_LATER;
    }
    pthread_mutex_lock(&s->lock);
    s->job[s->n++] = job;
    pthread_mutex_unlock(&s->lock);
    gate_up(&s->came);
    return WEIR_LATER;
}

static weir_job *from_shelf(shelf *s)
{
    pthread_mutex_lock(&s->lock);
    weir_job *job = s->n ? s->job[--s->n] : NULL;
    pthread_mutex_unlock(&s->lock);
    return job;
}

static void later_up_to_running(rt *t, int prefetch)
{
    shelf s = { .lock = PTHREAD_MUTEX_INITIALIZER, .came = GATE_INIT };
    for (int i = 0; i < 20; i++)
        rt_add_type(t, "slow");
    OK(weir_process(
        t->q, "slow",
        &(weir_pool_config){
            .handler = put_on_shelf, .ctx = &s, .threads = 2, .running = 6, .prefetch = prefetch },
        NULL, &t->err));
    gate_wait(&s.came, 6);
    assert_false(gate_wait_ms(&s.came, 7, 20));      /* six at once, not one more */
    for (int i = 0; i < 20; i++) {
        gate_wait(&s.came, i + 1);
        weir_job *job = from_shelf(&s);
        assert_non_null(job);
        assert_int_equal(weir_job_done(job, "\"late\"", 0, NULL), WEIR_OK);
    }
    rt_until_count(t, WEIR_STATE_COMPLETE, 20);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
}

RT_TEST(later_from_another_thread) { later_up_to_running(t, 0); }
RT_TEST(later_with_prefetch_keeps_to_running) { later_up_to_running(t, 2); }

RT_TEST(later_but_done_before_the_return)
{
    shelf s = { .lock = PTHREAD_MUTEX_INITIALIZER, .came = GATE_INIT, .at_once = true };
    OK(weir_process(t->q, "slow", &(weir_pool_config){ .handler = put_on_shelf, .ctx = &s }, NULL,
                    &t->err));
    for (int i = 0; i < 20; i++) {
        weir_job *job;
        OK(weir_wait(t->q, rt_add_type(t, "slow"), PATIENCE_MS, &job, &t->err));
        assert_string_equal(job->result, "\"early\"");
        weir_job_free(job);
    }
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
}

/* The pool is gone, even the queue is: the job is valid until it is answered. */
RT_TEST(later_answered_after_the_stop)
{
    shelf s = { .lock = PTHREAD_MUTEX_INITIALIZER, .came = GATE_INIT };
    uint64_t id = rt_add(t, &(weir_spec){ .type = "slow", .attempts = 2 });
    OK(weir_process(t->q, "slow", &(weir_pool_config){ .handler = put_on_shelf, .ctx = &s }, NULL,
                    &t->err));
    gate_wait(&s.came, 1);
    weir_job *job = from_shelf(&s);
    assert_false(weir_job_cancelled(job));
    assert_int_equal(weir_stop(t->q, "slow", 0, &t->err), WEIR_ETIMEOUT);
    assert_true(weir_job_cancelled(job));
    assert_int_equal(weir_job_log(job, "still here"), WEIR_ESTALE);
    assert_int_equal(weir_job_done(job, "1", 0, NULL), WEIR_ESTALE);
    weir_job *now = rt_get(t, id);
    assert_int_equal(now->state, WEIR_STATE_INACTIVE);        /* one attempt is left */
    assert_string_equal(now->error, "Shutdown");
    assert_int_equal(now->attempts, 1);
    weir_job_free(now);
}

/* ---- prefetch ---- */

typedef struct tally {
    atomic_int seen[512];
    atomic_int total;
} tally;

static weir_code count_me(weir_job *job, void *ctx)
{
    tally *y = ctx;
    atomic_fetch_add(&y->seen[job->id % 512], 1);
    atomic_fetch_add(&y->total, 1);
    return WEIR_OK;
}

RT_TEST(prefetch_does_all_exactly_once)
{
    tally *y = calloc(1, sizeof *y);
    OK(weir_process(
        t->q, "p",
        &(weir_pool_config){ .handler = count_me, .ctx = y, .threads = 3, .prefetch = 8 }, NULL,
        &t->err));
    OK(weir_process(t->q, "p", &(weir_pool_config){ .handler = count_me, .ctx = y, .threads = 2 },
                    NULL, &t->err));
    for (int i = 0; i < 500; i++)
        rt_add_type(t, "p");
    rt_until_count(t, WEIR_STATE_COMPLETE, 500);
    OK(weir_stop(t->q, "p", PATIENCE_MS, &t->err));
    assert_int_equal(y->total, 500);
    for (int i = 1; i <= 500; i++)
        assert_int_equal(y->seen[i], 1);
    free(y);
}

RT_TEST(what_is_not_begun_is_handed_back)
{
    crowd c = { .came = GATE_INIT, .go = GATE_INIT };
    for (int i = 0; i < 10; i++)
        rt_add_type(t, "many");
    OK(weir_process(t->q, "many",
                    &(weir_pool_config){ .handler = in_crowd, .ctx = &c, .prefetch = 9 }, NULL,
                    &t->err));
    gate_wait(&c.came, 1);
    rt_until_count(t, WEIR_STATE_ACTIVE, 10);
    assert_int_equal(weir_stop(t->q, "many", 0, &t->err), WEIR_ETIMEOUT);
    assert_int_equal(rt_count(t, WEIR_STATE_INACTIVE), 9);
    assert_int_equal(rt_count(t, WEIR_STATE_FAILED), 1);
    weir_page *page;
    OK(weir_list(t->q, &(weir_query){ .state = WEIR_STATE_INACTIVE }, &page, &t->err));
    for (size_t i = 0; i < page->n; i++) {
        assert_int_equal(page->job[i]->attempts, 0);
        assert_int_equal(page->job[i]->lost, 0);
    }
    weir_page_free(page);
    gate_up(&c.go);
    UNTIL(c.total == 1);
}

static weir_code block_first(weir_job *job, void *ctx)
{
    crowd *c = ctx;
    atomic_fetch_add(&c->total, 1);
    gate_up(&c->came);
    if (job->priority < 0)
        gate_wait(&c->go, 1);
    return WEIR_OK;
}

RT_TEST(cancelled_while_taken_ahead_never_begins)
{
    crowd c = { .came = GATE_INIT, .go = GATE_INIT };
    rt_add(t, &(weir_spec){ .type = "x", .priority = WEIR_PRIORITY_HIGH });
    uint64_t id = rt_add_type(t, "x");
    OK(weir_process(t->q, "x",
                    &(weir_pool_config){ .handler = block_first, .ctx = &c, .prefetch = 4 }, NULL,
                    &t->err));
    gate_wait(&c.came, 1);
    rt_until(t, id, WEIR_STATE_ACTIVE);
    record *cancelled = record_start(t, &(weir_filter){ .id = id });
    OK(weir_cancel(t->q, id, &t->err));
    record_until(cancelled, WEIR_EVENT_CANCELLED, 1);   /* some stores send it later */
    record_stop(cancelled);
    uint64_t last = rt_add_type(t, "x");
    gate_up(&c.go);
    rt_until(t, last, WEIR_STATE_COMPLETE);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
    assert_int_equal(c.total, 2);
}

/* A lot that arrives while every thread is in a handler keeps its leases all the same. */
RT_TEST(taken_ahead_keeps_its_lease)
{
    crowd c = { .came = GATE_INIT, .go = GATE_INIT };
    rt_add(t, &(weir_spec){ .type = "x", .priority = WEIR_PRIORITY_HIGH });
    OK(weir_process(
        t->q, "x",
        &(weir_pool_config){
            .handler = block_first, .ctx = &c, .prefetch = 4, .lease_ms = WEIR_MIN_LEASE_MS * 5 },
        NULL, &t->err));
    gate_wait(&c.came, 1);
    uint64_t id[3];
    for (int i = 0; i < 3; i++)
        id[i] = rt_add_type(t, "x");
    record *r = record_start(t, &(weir_filter){ .events = WEIR_BIT(WEIR_EVENT_STALLED) });
    int64_t end = rt_ms() + 3 * WEIR_MIN_LEASE_MS * 5;
    UNTIL(rt_ms() > end);
    gate_up(&c.go);
    for (int i = 0; i < 3; i++) {
        rt_until(t, id[i], WEIR_STATE_COMPLETE);
        weir_job *job = rt_get(t, id[i]);
        assert_int_equal(job->delivery, 1);
        weir_job_free(job);
    }
    assert_int_equal(record_count(r, WEIR_EVENT_STALLED), 0);
    record_stop(r);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
}

/* ---- idle pools wake ---- */

static weir_code wake_handler(weir_job *job, void *ctx)
{
    gate_up(ctx);
    return job->attempts == 0 && strcmp(job->data, "{}") != 0 ? WEIR_EJOB : WEIR_OK;
}

static void idle_pool_wakes(rt *t, int prefetch)
{
    gate     ran = GATE_INIT;
    uint64_t id;
    OK(weir_process(t->q, "w",
                    &(weir_pool_config){
                        .handler = wake_handler, .ctx = &ran, .threads = 3, .prefetch = prefetch },
                    NULL, &t->err));
    rt_until(t, rt_add_type(t, "w"), WEIR_STATE_COMPLETE);                     /* added */
    gate_wait(&ran, 1);
    rt_until(t, rt_add(t, &(weir_spec){ .type = "w", .delay_ms = 15 }), WEIR_STATE_COMPLETE);
    gate_wait(&ran, 2);                                                  /* its time came */
    id = rt_add(t, &(weir_spec){ .type = "w", .delay_ms = 100000000 });
    OK(weir_promote(t->q, id, &t->err));
    rt_until(t, id, WEIR_STATE_COMPLETE);
    gate_wait(&ran, 3);                                                  /* promoted by hand */
    OK(weir_retry(t->q, id, &t->err));
    gate_wait(&ran, 4);                                                  /* run again */
    id = rt_add(t, &(weir_spec){ .type = "w", .data = "1", .attempts = 2,
                                 .backoff = { WEIR_BACKOFF_FIXED, .delay_ms = 10 } });
    rt_until(t, id, WEIR_STATE_COMPLETE);
    gate_wait(&ran, 6);                                                  /* tried again */

    OK(weir_pause(t->q, "w", &t->err));
    id = rt_add_type(t, "w");
    assert_false(gate_wait_ms(&ran, 7, 20));
    assert_int_equal(rt_state(t, id), WEIR_STATE_INACTIVE);
    OK(weir_resume(t->q, "w", &t->err));
    rt_until(t, id, WEIR_STATE_COMPLETE);
    OK(weir_pause(t->q, "*", &t->err));
    id = rt_add_type(t, "w");
    assert_int_equal(rt_state(t, id), WEIR_STATE_INACTIVE);
    OK(weir_resume(t->q, "*", &t->err));
    rt_until(t, id, WEIR_STATE_COMPLETE);
    assert_int_equal(gate_now(&ran), 8);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
}

RT_TEST(an_idle_pool_wakes) { idle_pool_wakes(t, 0); }
RT_TEST(an_idle_pool_wakes_with_prefetch) { idle_pool_wakes(t, 2); }

/* Many short waits between adds: a lost wake-up would leave one waiting for ever. */
RT_TEST(no_wake_up_is_lost)
{
    tally *y = calloc(1, sizeof *y);
    OK(weir_process(t->q, "a", &(weir_pool_config){ .handler = count_me, .ctx = y, .threads = 4 },
                    NULL, &t->err));
    OK(weir_process(
        t->q, "b",
        &(weir_pool_config){ .handler = count_me, .ctx = y, .threads = 2, .prefetch = 1 }, NULL,
        &t->err));
    for (int i = 1; i <= 300; i++) {
        rt_add_type(t, i % 3 ? "a" : "b");
        if (i % 7 == 0)
            UNTIL(y->total == i);
    }
    UNTIL(y->total == 300);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
    assert_int_equal(rt_count(t, WEIR_STATE_COMPLETE), 300);
    free(y);
}

/* ---- stopping ---- */

typedef struct stuck {
    gate        came, go, left;
    atomic_bool saw_cancelled;
    atomic_int  done_rc, log_rc, progress_rc;
} stuck;

static weir_code get_stuck(weir_job *job, void *ctx)
{
    stuck *s = ctx;
    gate_up(&s->came);
    gate_wait(&s->go, 1);
    s->saw_cancelled = weir_job_cancelled(job);
    s->log_rc = weir_job_log(job, "late");
    s->progress_rc = weir_job_progress(job, 1, 2, NULL, 0, NULL);
    weir_code rc = weir_job_done(job, "\"late\"", 0, NULL);
    s->done_rc = rc;
    gate_up(&s->left);
    return rc;
}

RT_TEST(stop_waits_for_handlers)
{
    stuck s = { .came = GATE_INIT, .go = GATE_INIT, .left = GATE_INIT };
    uint64_t id = rt_add_type(t, "s");
    OK(weir_process(t->q, "s", &(weir_pool_config){ .handler = get_stuck, .ctx = &s }, NULL,
                    &t->err));
    gate_wait(&s.came, 1);
    gate_up(&s.go);
    OK(weir_stop(t->q, "s", PATIENCE_MS, &t->err));
    assert_int_equal(rt_state(t, id), WEIR_STATE_COMPLETE);
    assert_false(s.saw_cancelled);
    uint64_t after = rt_add_type(t, "s");
    assert_int_equal(rt_state(t, after), WEIR_STATE_INACTIVE);
    OK(weir_stop(t->q, "s", PATIENCE_MS, &t->err));          /* there is none any more */
}

RT_TEST(stop_by_type_leaves_the_others)
{
    gate ran = GATE_INIT;
    weir_pool_config pool = { .handler = wake_handler, .ctx = &ran };
    OK(weir_process(t->q, "a", &pool, NULL, &t->err));
    OK(weir_process(t->q, "b", &pool, NULL, &t->err));
    OK(weir_stop(t->q, "a", PATIENCE_MS, &t->err));
    uint64_t a = rt_add_type(t, "a"), b = rt_add_type(t, "b");
    rt_until(t, b, WEIR_STATE_COMPLETE);
    assert_int_equal(rt_state(t, a), WEIR_STATE_INACTIVE);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
}

static void time_is_up(rt *t, int32_t attempts, weir_state state)
{
    stuck s = { .came = GATE_INIT, .go = GATE_INIT, .left = GATE_INIT };
    uint64_t id = rt_add(t, &(weir_spec){ .type = "s", .attempts = attempts });
    OK(weir_process(t->q, "s", &(weir_pool_config){ .handler = get_stuck, .ctx = &s }, NULL,
                    &t->err));
    gate_wait(&s.came, 1);
    assert_int_equal(weir_stop(t->q, NULL, 20, &t->err), WEIR_ETIMEOUT);
    weir_job *job = rt_get(t, id);
    assert_int_equal(job->state, state);
    assert_string_equal(job->error, "Shutdown");
    weir_job_free(job);
    gate_up(&s.go);
    gate_wait(&s.left, 1);
    assert_true(s.saw_cancelled);
    assert_int_equal(s.done_rc, WEIR_ESTALE);
    assert_int_equal(s.log_rc, WEIR_ESTALE);
    assert_int_equal(rt_state(t, id), state);
    OK(weir_remove(t->q, id, &t->err));
}

RT_TEST(stop_fails_what_goes_on)
{
    time_is_up(t, 1, WEIR_STATE_FAILED);
    time_is_up(t, 2, WEIR_STATE_INACTIVE);
}

static void closed_with_a_handler(const char *url)
{
    rt box, *t = &box;
    stuck s = { .came = GATE_INIT, .go = GATE_INIT, .left = GATE_INIT };
    rt_open(t, url, false);
    rt_add_type(t, "s");
    OK(weir_process(t->q, "s", &(weir_pool_config){ .handler = get_stuck, .ctx = &s }, NULL,
                    &t->err));
    gate_wait(&s.came, 1);
    rt_close(t);
    gate_up(&s.go);
    gate_wait(&s.left, 1);
    assert_true(s.saw_cancelled);
    assert_int_equal(s.log_rc, WEIR_ECLOSED);
    assert_int_equal(s.progress_rc, WEIR_ECLOSED);
    assert_int_equal(s.done_rc, WEIR_ECLOSED);
}

static void closed_under_a_running_handler(void **state)
{
    (void)state;
    closed_with_a_handler(RT_MEM);
    closed_with_a_handler(RT_SQLITE);
}

static weir_code nothing(weir_job *job, void *ctx)
{
    (void)job;
    atomic_fetch_add((atomic_int *)ctx, 1);
    return WEIR_OK;
}

/* Whatever was taken in the moment of the stop was done or is as it was, never failed. */
RT_TEST(stop_between_jobs_fails_none)
{
    for (int round = 0; round < 25; round++) {
        atomic_int ran = 0;
        for (int i = 0; i < 12; i++)
            rt_add_type(t, "n");
        OK(weir_process(t->q, "n",
                        &(weir_pool_config){
                            .handler = nothing, .ctx = &ran, .threads = 2, .prefetch = round % 3 },
                        NULL, &t->err));
        UNTIL(ran >= round % 12);
        weir_stop(t->q, NULL, PATIENCE_MS, &t->err);
        assert_int_equal(rt_count(t, WEIR_STATE_FAILED), 0);
        assert_int_equal(rt_count(t, WEIR_STATE_ACTIVE), 0);
        weir_page *page;
        OK(weir_list(t->q, &(weir_query){ .state = WEIR_STATE_INACTIVE }, &page, &t->err));
        for (size_t i = 0; i < page->n; i++) {
            assert_int_equal(page->job[i]->attempts, 0);
            OK(weir_remove(t->q, page->job[i]->id, &t->err));
        }
        weir_page_free(page);
    }
}

/* ---- losing a job under way ---- */

static weir_code until_cancelled(weir_job *job, void *ctx)
{
    stuck *s = ctx;
    gate_up(&s->came);
    int64_t end = rt_ms() + PATIENCE_MS;
    while (!weir_job_cancelled(job) && rt_ms() < end)
        rt_breathe();
    s->saw_cancelled = weir_job_cancelled(job);
    s->done_rc = weir_job_done(job, NULL, 0, NULL);
    gate_up(&s->left);
    return WEIR_OK;
}

RT_TEST(a_handler_is_told)
{
    stuck s = { .came = GATE_INIT, .go = GATE_INIT, .left = GATE_INIT };
    OK(weir_process(t->q, "c", &(weir_pool_config){ .handler = until_cancelled, .ctx = &s }, NULL,
                    &t->err));
    uint64_t id = rt_add_type(t, "c");
    gate_wait(&s.came, 1);
    OK(weir_cancel(t->q, id, &t->err));
    gate_wait(&s.left, 1);
    assert_true(s.saw_cancelled);
    assert_int_equal(s.done_rc, WEIR_ESTALE);
    assert_int_equal(rt_state(t, id), WEIR_STATE_CANCELLED);

    id = rt_add_type(t, "c");
    gate_wait(&s.came, 2);
    OK(weir_remove(t->q, id, &t->err));
    gate_wait(&s.left, 2);
    assert_true(s.saw_cancelled);
    assert_int_equal(rt_state(t, id), WEIR_STATE_ANY);

    id = rt_add(t, &(weir_spec){ .type = "c", .ttl_ms = 20 });
    gate_wait(&s.left, 3);
    assert_true(s.saw_cancelled);
    weir_job *job = rt_get(t, id);
    assert_int_equal(job->state, WEIR_STATE_FAILED);
    assert_string_equal(job->error, "TTL exceeded");
    weir_job_free(job);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
}

static void cancel_at_start(const weir_event *ev, void *ctx)
{
    weir_cancel(((rt *)ctx)->q, ev->id, NULL);
}

/* Cancelled in the moment in which it is given to its handler, many times. */
RT_TEST(cancelled_at_its_start)
{
    stuck s = { .came = GATE_INIT, .go = GATE_INIT, .left = GATE_INIT };
    weir_listener *l;
    OK(weir_listen(t->q, &(weir_filter){ .events = WEIR_BIT(WEIR_EVENT_START) }, cancel_at_start, t,
                   &l, &t->err));
    OK(weir_process(
        t->q, "c",
        &(weir_pool_config){
            .handler = until_cancelled, .ctx = &s, .threads = 2, .lease_ms = PATIENCE_MS * 10 },
        NULL, &t->err));
    for (int i = 0; i < 60; i++)
        rt_add_type(t, "c");
    rt_until_count(t, WEIR_STATE_CANCELLED, 60);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
    weir_unlisten(l);
    assert_true(gate_now(&s.left) > 0);
}

RT_TEST(a_slow_handler_holds_up_no_other_type)
{
    stuck s = { .came = GATE_INIT, .go = GATE_INIT, .left = GATE_INIT };
    gate  ran = GATE_INIT;
    OK(weir_process(t->q, "slow", &(weir_pool_config){ .handler = get_stuck, .ctx = &s }, NULL,
                    &t->err));
    OK(weir_process(t->q, "quick", &(weir_pool_config){ .handler = wake_handler, .ctx = &ran },
                    NULL, &t->err));
    rt_add_type(t, "slow");
    gate_wait(&s.came, 1);
    for (int i = 0; i < 20; i++)
        rt_add_type(t, "quick");
    rt_until_count(t, WEIR_STATE_COMPLETE, 20);
    assert_int_equal(rt_count(t, WEIR_STATE_ACTIVE), 1);
    gate_up(&s.go);
    rt_until_count(t, WEIR_STATE_COMPLETE, 21);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
}

/* Each word of ctx lets the handler do one thing. */
typedef struct pupil {
    gate       came, step, did;
    atomic_int rc;
} pupil;

static weir_code extend(weir_job *job, void *ctx)
{
    pupil *p = ctx;
    gate_up(&p->came);
    gate_wait(&p->step, 1);
    p->rc = weir_job_progress(job, 1, 3, "{\"page\":1}", 0, NULL);
    gate_up(&p->did);
    gate_wait(&p->step, 2);
    p->rc = weir_job_log(job, "line %d", 1);
    gate_up(&p->did);
    gate_wait(&p->step, 3);
    return WEIR_OK;
}

RT_CLOCK_TEST(progress_and_log_extend_the_ttl)
{
    pupil p = { .came = GATE_INIT, .step = GATE_INIT, .did = GATE_INIT };
    record *r = record_start(t, NULL);
    uint64_t id = rt_add(t, &(weir_spec){ .type = "t", .ttl_ms = 1000 });
    OK(weir_process(t->q, "t", &(weir_pool_config){ .handler = extend, .ctx = &p }, NULL, &t->err));
    gate_wait(&p.came, 1);
    for (int i = 1; i <= 2; i++) {
        rt_later(t, 900);
        gate_up(&p.step);
        gate_wait(&p.did, i);
        assert_int_equal(p.rc, WEIR_OK);
    }
    rt_later(t, 900);
    weir_job *job = rt_get(t, id);
    assert_int_equal(job->state, WEIR_STATE_ACTIVE);
    assert_int_equal(job->progress, 33);
    assert_string_equal(job->progress_data, "{\"page\":1}");
    weir_job_free(job);
    weir_lines *lines;
    OK(weir_logs(t->q, id, 0, 0, &lines, &t->err));
    assert_int_equal(lines->n, 1);
    assert_string_equal(lines->line[0].text, "line 1");
    weir_lines_free(lines);
    rt_later(t, 100);                                   /* now it is over */
    rt_until(t, id, WEIR_STATE_FAILED);
    record_until(r, WEIR_EVENT_TTL_EXCEEDED, 1);
    gate_up(&p.step);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
    assert_int_equal(rt_state(t, id), WEIR_STATE_FAILED);
    record_stop(r);
}

RT_TEST(a_short_lease_is_renewed)
{
    stuck s = { .came = GATE_INIT, .go = GATE_INIT, .left = GATE_INIT };
    record *r = record_start(t, NULL);
    uint64_t id = rt_add_type(t, "s");
    OK(weir_process(
        t->q, "s",
        &(weir_pool_config){ .handler = get_stuck, .ctx = &s, .lease_ms = 5 * WEIR_MIN_LEASE_MS },
        NULL, &t->err));
    gate_wait(&s.came, 1);
    int64_t end = rt_ms() + 15 * WEIR_MIN_LEASE_MS;
    UNTIL(rt_ms() > end);
    gate_up(&s.go);
    rt_until(t, id, WEIR_STATE_COMPLETE);
    assert_int_equal(record_count(r, WEIR_EVENT_STALLED), 0);
    weir_job *job = rt_get(t, id);
    assert_int_equal(job->delivery, 1);
    weir_job_free(job);
    record_stop(r);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
}

/* ---- by hand ---- */

static const char *const hand[] = { "hand", NULL };

static weir_job *take(rt *t, int64_t lease_ms)
{
    weir_job *job = NULL;
    size_t    n = 7;
    OK(weir_take(t->q, &(weir_taking){ .types = hand, .n = 1, .lease_ms = lease_ms }, &job, &n,
                 &t->err));
    assert_true(n <= 1);
    return n ? job : NULL;
}

RT_CLOCK_TEST(by_hand)
{
    uint64_t id = rt_add_type(t, "hand");
    weir_job *job = take(t, 1000);
    assert_int_equal(job->id, id);
    assert_null(take(t, 1000));
    rt_later(t, 900);
    assert_int_equal(weir_job_renew(job, 1000, NULL), WEIR_OK);
    rt_later(t, 900);
    assert_int_equal(weir_job_log(job, "one"), WEIR_OK);
    assert_int_equal(weir_job_done(job, "{", 0, NULL), WEIR_EINVAL);
    assert_int_equal(weir_job_progress(job, 1, 0, NULL, 0, NULL), WEIR_EINVAL);
    assert_int_equal(weir_job_progress(job, -1, 5, NULL, 0, NULL), WEIR_EINVAL);
    assert_int_equal(weir_job_progress(job, 5, 2, NULL, 0, NULL), WEIR_OK);
    weir_job *now = rt_get(t, id);
    assert_int_equal(now->progress, 100);
    weir_job_free(now);
    assert_false(weir_job_cancelled(job));
    assert_int_equal(weir_job_done(job, "2", 0, NULL), WEIR_OK);
    assert_int_equal(weir_job_done(job, "3", 0, NULL), WEIR_ESTALE);
    assert_int_equal(weir_job_fail(job, "x"), WEIR_ESTALE);
    weir_job_free(job);
    assert_int_equal(rt_state(t, id), WEIR_STATE_COMPLETE);
    job = rt_get(t, id);
    assert_string_equal(job->result, "2");
    assert_int_equal(weir_job_done(job, NULL, 0, NULL), WEIR_EINVAL);      /* read, not taken */
    assert_int_equal(weir_job_renew(job, 0, NULL), WEIR_EINVAL);
    weir_job_free(job);
}

RT_CLOCK_TEST(by_hand_too_late)
{
    uint64_t id = rt_add_type(t, "hand");
    weir_job *first = take(t, 1000);
    rt_later(t, 1000);
    rt_until(t, id, WEIR_STATE_INACTIVE);
    weir_job *second = take(t, 1000);
    assert_int_equal(second->id, id);
    assert_int_equal(second->delivery, 2);
    assert_true(weir_job_cancelled(first));
    assert_false(weir_job_cancelled(second));
    assert_int_equal(weir_job_renew(first, 1000, NULL), WEIR_ESTALE);
    assert_int_equal(weir_job_progress(first, 1, 2, NULL, 0, NULL), WEIR_ESTALE);
    assert_int_equal(weir_job_done(first, "1", 0, NULL), WEIR_ESTALE);
    OK(weir_cancel(t->q, id, &t->err));
    assert_true(weir_job_cancelled(second));
    assert_int_equal(weir_job_fail(second, "x"), WEIR_ESTALE);
    weir_job_free(first);
    weir_job_free(second);
    assert_int_equal(rt_state(t, id), WEIR_STATE_CANCELLED);
}

/* ---- until a signal comes ---- */

/* Tells the parent that it has begun, and ends only when the signal has been sent. */
static weir_code across_the_signal(weir_job *job, void *ctx)
{
    (void)job;
    const int *fd = ctx;
    char byte = 'b';
    if (write(fd[0], &byte, 1) != 1 || read(fd[1], &byte, 1) != 1)
        return WEIR_EIO;
    return WEIR_OK;
}

/* A program as one would write it. Returns its exit status. */
static int program(const char *url, int *fd)
{
    weir_error  err;
    weir_queue *q;
    sigset_t    stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);      /* it may come before weir_run() is reached */
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    if (weir_open(&q, url, NULL, &err) || weir_add(q, &(weir_spec){ .type = "s" }, NULL, &err) ||
        weir_process(q, "s", &(weir_pool_config){ .handler = across_the_signal, .ctx = fd }, NULL,
                     &err))
        return weir_complain(&err);
    int status = weir_run(q, &err);
    weir_close(q);
    return status;
}

static void run_until_sigterm(void **state)
{
    (void)state;
    rt box, *t = &box;
    rt_open(t, RT_SQLITE, false);
    weir_close(t->q);               /* the file, and no threads while forking */
    int to_parent[2], to_child[2], status = -1;
    assert_int_equal(pipe(to_parent), 0);
    assert_int_equal(pipe(to_child), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(program(t->url, (int[]){ to_parent[1], to_child[0] }));
    char byte;
    close(to_parent[1]);            /* so that a child that dies does not leave us waiting */
    assert_int_equal(read(to_parent[0], &byte, 1), 1);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(write(to_child[1], &byte, 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close(to_parent[0]);
    close(to_child[0]);
    close(to_child[1]);
    OK(weir_open(&t->q, t->url, NULL, &t->err));
    assert_int_equal(rt_count(t, WEIR_STATE_COMPLETE), 1);
    rt_check_and_close(t);
}

/* ---- what is refused ---- */

RT_TEST(pools_that_cannot_be)
{
    atomic_int ran = 0;
    static const char *const none[] = { NULL };
    static const char *const star[] = { "a", "*", NULL };
    struct { const char *type; weir_pool_config pool; const char *says; } bad[] = {
        { "a", { 0 }, "handler" },
        { NULL, { .handler = nothing }, "type" },
        { NULL, { .handler = nothing, .types = none }, "type" },
        { NULL, { .handler = nothing, .types = star }, "*" },
        { "*", { .handler = nothing }, "*" },
        { "", { .handler = nothing }, "type" },
        { "a", { .handler = nothing, .threads = -1 }, "threads" },
        { "a", { .handler = nothing, .threads = WEIR_MAX_THREADS + 1 }, "WEIR_MAX_THREADS" },
        { "a", { .handler = nothing, .running = WEIR_MAX_RUNNING + 1 }, "WEIR_MAX_RUNNING" },
        { "a", { .handler = nothing, .prefetch = -2 }, "prefetch" },
        { "a", { .handler = nothing, .lease_ms = WEIR_MIN_LEASE_MS - 1 }, "lease" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bad[i].pool.ctx = &ran;
        weir_code rc = weir_process(t->q, bad[i].type, &bad[i].pool, NULL, &t->err);
        if (rc != WEIR_EINVAL || !strstr(t->err.msg, bad[i].says))
            fail_msg("pool %zu: %s: %s", i, weir_code_name(rc), t->err.msg);
    }
    rt_add_type(t, "a");
    assert_int_equal(rt_count(t, WEIR_STATE_INACTIVE), 1);
    assert_int_equal(ran, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_more_than_n_handlers),
        cmocka_unit_test(never_more_than_n_handlers_with_prefetch),
        cmocka_unit_test(strict_priority_with_one_thread),
        cmocka_unit_test(a_handler_may_give_its_job_back),
        cmocka_unit_test(exactly_attempts_executions),
        cmocka_unit_test(answers_of_handlers),
        cmocka_unit_test(answers_of_handlers_with_prefetch),
        cmocka_unit_test(later_from_another_thread),
        cmocka_unit_test(later_with_prefetch_keeps_to_running),
        cmocka_unit_test(later_but_done_before_the_return),
        cmocka_unit_test(later_answered_after_the_stop),
        cmocka_unit_test(prefetch_does_all_exactly_once),
        cmocka_unit_test(what_is_not_begun_is_handed_back),
        cmocka_unit_test(cancelled_while_taken_ahead_never_begins),
        cmocka_unit_test(taken_ahead_keeps_its_lease),
        cmocka_unit_test(an_idle_pool_wakes),
        cmocka_unit_test(an_idle_pool_wakes_with_prefetch),
        cmocka_unit_test(no_wake_up_is_lost),
        cmocka_unit_test(stop_waits_for_handlers),
        cmocka_unit_test(stop_by_type_leaves_the_others),
        cmocka_unit_test(stop_fails_what_goes_on),
        cmocka_unit_test(closed_under_a_running_handler),
        cmocka_unit_test(stop_between_jobs_fails_none),
        cmocka_unit_test(a_handler_is_told),
        cmocka_unit_test(cancelled_at_its_start),
        cmocka_unit_test(a_slow_handler_holds_up_no_other_type),
        cmocka_unit_test(progress_and_log_extend_the_ttl),
        cmocka_unit_test(a_short_lease_is_renewed),
        cmocka_unit_test(by_hand),
        cmocka_unit_test(by_hand_too_late),
        cmocka_unit_test(run_until_sigterm),
        cmocka_unit_test(pools_that_cannot_be),
    };
    return cmocka_run_group_tests_name("runtime_pool", tests, NULL, NULL);
}
