/* test_runtime_observe.c - streams: demand, outcomes, filter, map, take, merge, conditions,
 * buffers, polling, and how they end. */
#include "support/runtime_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/server.h"
#include "weir/condition.h"

/* ---- a consumer ---- */

enum { MOST = 64 };

typedef struct consumer {
    gate            came, ended, trouble;   /* items; on_end; on_error */
    gate            go;                     /* on_next() waits for it, if told to */
    bool            waits;
    atomic_int      inside, most_inside;
    pthread_mutex_t lock;
    weir_job       *job[MOST];              /* with WEIR_LATER: not ended yet */
    uint64_t        id[MOST];
    void           *value[MOST];
    size_t          group[MOST];            /* sizes of the groups */
    size_t          n, n_groups;
    weir_code       answer;
    weir_stream    *cancels;                /* in on_next() */
} consumer;

#define CONSUMER_INIT                                                                   \
    { .came = GATE_INIT, .ended = GATE_INIT, .trouble = GATE_INIT, .go = GATE_INIT,     \
      .lock = PTHREAD_MUTEX_INITIALIZER }

static weir_code on_next(weir_item *items, size_t n, void *ctx)
{
    consumer *c = ctx;
    int inside = atomic_fetch_add(&c->inside, 1) + 1, most = atomic_load(&c->most_inside);
    while (inside > most && !atomic_compare_exchange_weak(&c->most_inside, &most, inside))
        ;
    pthread_mutex_lock(&c->lock);
    c->group[c->n_groups++ % MOST] = n;
    for (size_t i = 0; i < n; i++, c->n++) {
        c->job[c->n % MOST] = items[i].job;
        c->id[c->n % MOST] = items[i].job->id;
        c->value[c->n % MOST] = items[i].value;
    }
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < n; i++)
        gate_up(&c->came);
    if (c->waits)
        gate_wait(&c->go, 1);
    if (c->cancels)
        weir_stream_cancel(c->cancels);
    atomic_fetch_sub(&c->inside, 1);
    return c->answer;
}

static void on_error(const weir_error *why, void *ctx)
{
    consumer *c = ctx;
    assert_int_not_equal(why->code, WEIR_OK);
    gate_up(&c->trouble);
}

static void on_end(void *ctx)
{
    consumer *c = ctx;
    assert_int_equal(atomic_load(&c->inside), 0);
    gate_up(&c->ended);
}

static weir_stream *observe(rt *t, const char *type, weir_observing how, consumer *c)
{
    weir_stream *s;
    how.ctx = c;
    OK(weir_observe(t->q, type, &how, on_next, on_error, on_end, &s, &t->err));
    return s;
}

static void stop(rt *t, weir_stream *s, consumer *c)
{
    OK(weir_stream_stop(s, PATIENCE_MS, &t->err));
    assert_int_equal(gate_now(&c->ended), 1);
    weir_stream_free(s);
}

/* ---- demand ---- */

RT_TEST(no_more_than_was_asked_for)
{
    consumer c = CONSUMER_INIT;
    for (int i = 0; i < 40; i++)
        rt_add_type(t, "a");
    weir_stream *s = observe(t, "a", (weir_observing){ .demand = WEIR_NO_DEMAND }, &c);
    assert_false(gate_wait_ms(&c.came, 1, 20));
    weir_stream_request(s, 3);
    gate_wait(&c.came, 3);
    rt_until_count(t, WEIR_STATE_COMPLETE, 3);
    assert_false(gate_wait_ms(&c.came, 4, 20));
    assert_int_equal(rt_count(t, WEIR_STATE_INACTIVE), 37);     /* not even taken */
    weir_stream_request(s, 30);
    weir_stream_request(s, 2);
    gate_wait(&c.came, 35);
    rt_until_count(t, WEIR_STATE_COMPLETE, 35);
    rt_add_type(t, "a");
    assert_false(gate_wait_ms(&c.came, 36, 20));
    assert_int_equal(rt_count(t, WEIR_STATE_INACTIVE), 6);
    stop(t, s, &c);
}

RT_TEST(without_a_limit_all_of_them)
{
    consumer     c = CONSUMER_INIT;
    weir_stream *s = observe(t, "a", (weir_observing){ 0 }, &c);
    for (int i = 0; i < 200; i++)
        rt_add_type(t, "a");
    rt_until_count(t, WEIR_STATE_COMPLETE, 200);
    stop(t, s, &c);
    assert_int_equal(c.n, 200);
    assert_int_equal(c.most_inside, 1);         /* one thread */
}

RT_TEST(as_many_callbacks_at_once_as_threads)
{
    consumer c = CONSUMER_INIT;
    c.waits = true;
    for (int i = 0; i < 20; i++)
        rt_add_type(t, "a");
    weir_stream *s = observe(t, "a", (weir_observing){ .threads = 4, .demand = 20 }, &c);
    gate_wait(&c.came, 4);
    assert_false(gate_wait_ms(&c.came, 5, 20));
    gate_up(&c.go);
    rt_until_count(t, WEIR_STATE_COMPLETE, 20);
    stop(t, s, &c);
    assert_int_equal(c.most_inside, 4);
}

/* ---- outcomes ---- */

RT_TEST(items_are_kept_until_they_have_an_outcome)
{
    consumer c = CONSUMER_INIT;
    c.answer = WEIR_LATER;
    uint64_t id[4];
    for (int i = 0; i < 4; i++)
        id[i] = rt_add(t, &(weir_spec){ .type = "a", .attempts = 3 });
    weir_stream *s = observe(t, "a", (weir_observing){ .held = 4, .demand = 4,
                                                       .lease_ms = WEIR_MIN_LEASE_MS * 5 }, &c);
    gate_wait(&c.came, 4);
    int64_t until = rt_ms() + WEIR_MIN_LEASE_MS * 10;
    while (rt_ms() < until)                     /* longer than the lease, which is renewed */
        rt_breathe();
    assert_int_equal(rt_count(t, WEIR_STATE_ACTIVE), 4);
    assert_int_equal(weir_job_done(c.job[0], "1", 0, NULL), WEIR_OK);
    assert_int_equal(weir_job_fail(c.job[1], "no"), WEIR_EJOB);
    assert_int_equal(weir_job_return(c.job[2], 1000000, NULL), WEIR_OK);
    assert_int_equal(weir_job_give_up(c.job[3], "never"), WEIR_EJOB);
    rt_until(t, id[0], WEIR_STATE_COMPLETE);
    rt_until(t, id[1], WEIR_STATE_INACTIVE);
    rt_until(t, id[2], WEIR_STATE_DELAYED);
    rt_until(t, id[3], WEIR_STATE_FAILED);
    weir_job *job = rt_get(t, id[3]);
    assert_int_equal(job->attempts, 1);
    assert_string_equal(job->error, "never");
    weir_job_free(job);
    stop(t, s, &c);
}

RT_TEST(an_error_code_fails_the_item)
{
    consumer c = CONSUMER_INIT;
    c.answer = WEIR_ENOENT;
    uint64_t     id = rt_add_type(t, "a");
    weir_stream *s = observe(t, "a", (weir_observing){ 0 }, &c);
    rt_until(t, id, WEIR_STATE_FAILED);
    stop(t, s, &c);
}

RT_TEST(what_is_left_fails_when_time_is_up)
{
    consumer c = CONSUMER_INIT;
    c.answer = WEIR_LATER;
    uint64_t     id = rt_add_type(t, "a");
    weir_stream *s = observe(t, "a", (weir_observing){ 0 }, &c);
    gate_wait(&c.came, 1);
    assert_int_equal(weir_stream_stop(s, 1, &t->err), WEIR_ETIMEOUT);
    assert_int_equal(gate_now(&c.ended), 1);
    rt_until(t, id, WEIR_STATE_FAILED);
    assert_true(weir_job_cancelled(c.job[0]));
    weir_job_done(c.job[0], NULL, 0, NULL);
    weir_stream_free(s);
}

/* ---- filter, map, take, merge ---- */

static bool odd(weir_job *job, void *ctx)
{
    (void)ctx;
    return atoi(job->data) % 2;
}

static bool others_to_others(weir_job *job, void *ctx)
{
    if (odd(job, ctx))
        return true;
    weir_job_return(job, 1000000, NULL);
    return false;
}

static void *number_of(weir_job *job, void *ctx, weir_error *err)
{
    (void)ctx;
    intptr_t n = atoi(job->data);
    if (n == 7)
        weir_fail(err, WEIR_EINVAL, "7 is no good");
    return (void *)n;
}

static void add_numbers(rt *t, int n)
{
    for (int i = 0; i < n; i++) {
        char data[16];
        snprintf(data, sizeof data, "%d", i);
        rt_add(t, &(weir_spec){ .type = "a", .data = data });
    }
}

RT_TEST(filter_and_map_do_not_use_demand)
{
    consumer c = CONSUMER_INIT;
    add_numbers(t, 12);
    weir_stream *s = observe(t, "a", (weir_observing){ .demand = 4, .filter = odd,
                                                       .map = number_of }, &c);
    gate_wait(&c.came, 4);
    rt_until_count(t, WEIR_STATE_COMPLETE, 9);      /* 0 to 9 without 7 */
    rt_until_count(t, WEIR_STATE_FAILED, 1);
    assert_int_equal(rt_count(t, WEIR_STATE_INACTIVE), 2);
    stop(t, s, &c);
    assert_int_equal(c.n, 4);
    static const intptr_t odd_ones[] = { 1, 3, 5, 9 };
    for (int i = 0; i < 4; i++)
        assert_int_equal((intptr_t)c.value[i], odd_ones[i]);
}

RT_TEST(a_filter_may_leave_jobs_to_others)
{
    consumer c = CONSUMER_INIT;
    add_numbers(t, 4);
    weir_stream *s = observe(t, "a", (weir_observing){ .filter = others_to_others }, &c);
    rt_until_count(t, WEIR_STATE_COMPLETE, 2);
    rt_until_count(t, WEIR_STATE_DELAYED, 2);
    stop(t, s, &c);
}

RT_TEST(take_ends_the_stream)
{
    consumer c = CONSUMER_INIT;
    add_numbers(t, 12);
    weir_stream *s = observe(t, "a", (weir_observing){ .take = 3, .filter = odd, .threads = 2 },
                             &c);
    gate_wait(&c.ended, 1);
    assert_int_equal(c.n, 3);
    weir_stream_request(s, 100);                    /* it has ended */
    assert_false(gate_wait_ms(&c.came, 4, 20));
    rt_until_count(t, WEIR_STATE_ACTIVE, 0);
    stop(t, s, &c);
    assert_true(rt_count(t, WEIR_STATE_INACTIVE) >= 5);
}

RT_TEST(several_types_in_one_stream)
{
    static const char *const types[] = { "a", "b", NULL };
    consumer c = CONSUMER_INIT;
    uint64_t low = rt_add(t, &(weir_spec){ .type = "a", .priority = 5 });
    uint64_t high = rt_add(t, &(weir_spec){ .type = "b", .priority = -5 });
    rt_add_type(t, "c");
    weir_stream *s = observe(t, NULL, (weir_observing){ .types = types }, &c);
    rt_until_count(t, WEIR_STATE_COMPLETE, 2);
    stop(t, s, &c);
    assert_int_equal(c.n, 2);
    assert_int_equal(c.id[0], high);
    assert_int_equal(c.id[1], low);
}

/* ---- conditions ---- */

/* It is 22:13. A job that may not run does not block the others, stays as it is, and runs when it
 * may. */
RT_CLOCK_TEST(what_may_not_run_waits_until_it_may)
{
    consumer c = CONSUMER_INIT;
    char     when[] = "data > 0 or now.hour < 6";      /* the caller's for the call alone */
    add_numbers(t, 3);
    weir_stream *s = observe(t, "a", (weir_observing){ .when = when }, &c);
    memset(when, 'x', sizeof when - 1);
    rt_until_count(t, WEIR_STATE_COMPLETE, 2);
    weir_job *refused = rt_get(t, 1);
    assert_int_equal(refused->state, WEIR_STATE_INACTIVE);
    assert_int_equal(refused->delivery, 0);
    weir_job_free(refused);
    rt_later(t, 3600000);
    assert_false(gate_wait_ms(&c.came, 3, 20));
    rt_later(t, 3600000);
    rt_until_count(t, WEIR_STATE_COMPLETE, 3);
    stop(t, s, &c);
}

/* A consumer takes from the middle of the queue what another one refuses, at once. */
RT_CLOCK_TEST(what_one_refuses_another_takes)
{
    consumer odd = CONSUMER_INIT, rest = CONSUMER_INIT;
    add_numbers(t, 4);
    weir_stream *s = observe(t, "a", (weir_observing){ .when = "data = 3 or data = 1" }, &odd);
    rt_until_count(t, WEIR_STATE_COMPLETE, 2);
    weir_stream *all = observe(t, "a", (weir_observing){ .take = 2 }, &rest);
    rt_until_count(t, WEIR_STATE_COMPLETE, 4);
    stop(t, s, &odd);
    stop(t, all, &rest);
    assert_int_equal(odd.n, 2);
    assert_int_equal(rest.n, 2);
}

RT_TEST(a_wrong_condition_is_refused)
{
    weir_stream *s;
    assert_int_equal(weir_observe(t->q, "a", &(weir_observing){ .when = "data >" }, on_next, NULL,
                                  NULL, &s, &t->err), WEIR_EINVAL);
    assert_string_equal(t->err.field, "when");
    assert_null(s);
}

/* ---- buffers ---- */

RT_TEST(a_buffer_by_count)
{
    consumer c = CONSUMER_INIT;
    add_numbers(t, 10);
    weir_stream *s = observe(t, "a", (weir_observing){ .buffer_count = 4, .demand = 10 }, &c);
    rt_until_count(t, WEIR_STATE_COMPLETE, 10);     /* the last two: no demand is left */
    stop(t, s, &c);
    assert_int_equal(c.n_groups, 3);
    assert_int_equal(c.group[0], 4);
    assert_int_equal(c.group[1], 4);
    assert_int_equal(c.group[2], 2);
}

RT_CLOCK_TEST(a_buffer_by_time)
{
    consumer     c = CONSUMER_INIT;
    weir_stream *s = observe(t, "a", (weir_observing){ .buffer_count = 100, .buffer_ms = 5000 },
                             &c);
    add_numbers(t, 3);
    rt_until_count(t, WEIR_STATE_ACTIVE, 3);
    assert_false(gate_wait_ms(&c.came, 1, 20));
    rt_later(t, 5000);
    gate_wait(&c.came, 3);
    rt_until_count(t, WEIR_STATE_COMPLETE, 3);
    assert_int_equal(c.n_groups, 1);
    stop(t, s, &c);
}

RT_TEST(what_is_in_the_buffer_goes_back)
{
    consumer     c = CONSUMER_INIT;
    weir_stream *s = observe(t, "a", (weir_observing){ .buffer_count = 100 }, &c);
    add_numbers(t, 5);
    rt_until_count(t, WEIR_STATE_ACTIVE, 5);
    stop(t, s, &c);
    assert_int_equal(c.n, 0);
    rt_until_count(t, WEIR_STATE_INACTIVE, 5);
}

/* ---- polling ---- */

RT_CLOCK_TEST(polled_at_its_interval)
{
    consumer     c = CONSUMER_INIT;
    add_numbers(t, 1);
    weir_stream *s = observe(t, "a", (weir_observing){ .poll_ms = 10000 }, &c);
    rt_until_count(t, WEIR_STATE_COMPLETE, 1);      /* it asks when it starts */
    for (int i = 0; i < 2; i++) {
        add_numbers(t, 3);
        assert_false(gate_wait_ms(&c.came, 3 * i + 2, 20));
        rt_later(t, 10000);
        rt_until_count(t, WEIR_STATE_COMPLETE, 3 * (uint64_t)i + 4);
    }
    stop(t, s, &c);
}

/* Somebody sets the clock back by an hour and leaves it so: polls, groups, and the wait before the
 * next attempt take as long as they would have. */
static void waits_go_on(const char *url)
{
    enum { HOUR_MS = 3600000 };
    rt       opened, *t = &opened;
    consumer polls = CONSUMER_INIT, gathers = CONSUMER_INIT, fails = CONSUMER_INIT;
    fails.answer = WEIR_EJOB;
    rt_open(t, url, true);
    weir_stream *a = observe(t, "a", (weir_observing){ .poll_ms = 10000 }, &polls);
    weir_stream *b = observe(t, "b", (weir_observing){ .buffer_count = 9, .buffer_ms = 9000 },
                             &gathers);
    weir_stream *c = observe(t, "c", (weir_observing){ 0 }, &fails);
    rt_add_type(t, "b");
    uint64_t id = rt_add(t, &(weir_spec){ .type = "c", .attempts = 2,
                                          .backoff = { WEIR_BACKOFF_FIXED, .delay_ms = 8000 } });
    rt_until(t, id, WEIR_STATE_DELAYED);
    rt_until_count(t, WEIR_STATE_ACTIVE, 1);        /* b, in its group */
    rt_set_back(t, HOUR_MS);
    rt_add_type(t, "a");
    assert_false(gate_wait_ms(&polls.came, 1, 20));
    assert_int_equal(gate_now(&gathers.came), 0);
    assert_int_equal(gate_now(&fails.came), 1);
    rt_later(t, 10000);
    gate_wait(&polls.came, 1);
    gate_wait(&gathers.came, 1);
    gate_wait(&fails.came, 2);
    stop(t, a, &polls);
    stop(t, b, &gathers);
    stop(t, c, &fails);
    rt_check_and_close(t);
}

static void waits_go_on_when_the_clock_stays_set_back(void **state)
{
    (void)state;
    waits_go_on(RT_MEM);
    waits_go_on(RT_SQLITE);
}

/* ---- the end ---- */

RT_TEST(cancelled_by_its_consumer)
{
    consumer     c = CONSUMER_INIT;
    weir_stream *s = observe(t, "a", (weir_observing){ .demand = WEIR_NO_DEMAND,
                                                       .prefetch = 4 }, &c);
    c.cancels = s;
    add_numbers(t, 20);
    weir_stream_request(s, 20);
    gate_wait(&c.ended, 1);
    assert_int_equal(c.n, 1);
    rt_until_count(t, WEIR_STATE_INACTIVE, 19);     /* also those that were taken ahead */
    stop(t, s, &c);
}

RT_TEST(ended_with_its_queue)
{
    consumer     c = CONSUMER_INIT;
    weir_stream *s = observe(t, "a", (weir_observing){ 0 }, &c);
    rt_add_type(t, "a");
    gate_wait(&c.came, 1);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
    assert_int_equal(gate_now(&c.ended), 1);
    OK(weir_stream_stop(s, 0, &t->err));            /* nothing is left to do */
    weir_stream *other = observe(t, "a", (weir_observing){ .demand = WEIR_NO_DEMAND }, &c);
    weir_close(t->q);
    assert_int_equal(gate_now(&c.ended), 2);
    weir_stream_free(s);
    weir_stream_free(other);
    t->q = NULL;
    rt_reopen(t);
}

static void errors_reach_the_consumer(void **state)
{
    (void)state;
    rt       opened, *t = &opened;
    consumer c = CONSUMER_INIT;
    rt_open(t, RT_SERVED, false);
    weir_stream *s = observe(t, "a", (weir_observing){ .poll_ms = 10 }, &c);
    srv_stop(t->server);
    gate_wait(&c.trouble, 1);
    weir_stream_stop(s, 0, NULL);
    assert_int_equal(gate_now(&c.ended), 1);
    weir_stream_free(s);
    rt_close(t);
}

static void streams_that_cannot_be(void **state)
{
    (void)state;
    static const char *const of_b[] = { "b", NULL };
    static const struct { weir_observing how; const char *field; } wrong[] = {
        { { .demand = -2 }, "demand" },
        { { .take = -1 }, "take" },
        { { .poll_ms = -1 }, "poll_ms" },
        { { .buffer_count = WEIR_MAX_BUFFER + 1 }, "buffer_count" },
        { { .buffer_ms = -1 }, "buffer_ms" },
        { { .buffer_ms = 10 }, "buffer_ms" },
        { { .types = of_b }, "types" },
        { { .held = 3, .buffer_count = 4 }, "held" },
        { { .threads = WEIR_MAX_THREADS + 1 }, "threads" },
        { { .lease_ms = 1 }, "lease_ms" },
    };
    rt           opened, *t = &opened;
    weir_stream *s;
    rt_open(t, RT_MEM, false);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(weir_observe(t->q, "a", &wrong[i].how, on_next, on_error, on_end, &s,
                                      &t->err), WEIR_EINVAL);
        assert_null(s);
        assert_string_equal(t->err.field, wrong[i].field);
    }
    assert_int_equal(weir_observe(t->q, "a", NULL, NULL, NULL, NULL, &s, &t->err), WEIR_EINVAL);
    assert_int_equal(weir_observe(t->q, NULL, NULL, on_next, NULL, NULL, &s, &t->err),
                     WEIR_EINVAL);
    weir_stream_free(NULL);
    rt_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_than_was_asked_for),
        cmocka_unit_test(without_a_limit_all_of_them),
        cmocka_unit_test(as_many_callbacks_at_once_as_threads),
        cmocka_unit_test(items_are_kept_until_they_have_an_outcome),
        cmocka_unit_test(an_error_code_fails_the_item),
        cmocka_unit_test(what_is_left_fails_when_time_is_up),
        cmocka_unit_test(filter_and_map_do_not_use_demand),
        cmocka_unit_test(a_filter_may_leave_jobs_to_others),
        cmocka_unit_test(take_ends_the_stream),
        cmocka_unit_test(several_types_in_one_stream),
        cmocka_unit_test(what_may_not_run_waits_until_it_may),
        cmocka_unit_test(what_one_refuses_another_takes),
        cmocka_unit_test(a_wrong_condition_is_refused),
        cmocka_unit_test(a_buffer_by_count),
        cmocka_unit_test(a_buffer_by_time),
        cmocka_unit_test(what_is_in_the_buffer_goes_back),
        cmocka_unit_test(polled_at_its_interval),
        cmocka_unit_test(waits_go_on_when_the_clock_stays_set_back),
        cmocka_unit_test(cancelled_by_its_consumer),
        cmocka_unit_test(ended_with_its_queue),
        cmocka_unit_test(errors_reach_the_consumer),
        cmocka_unit_test(streams_that_cannot_be),
    };
    return cmocka_run_group_tests_name("runtime_observe", tests, NULL, NULL);
}
