/* test_emptied.c - Redis is emptied (FLUSHALL) under programs that go on. The jobs are gone; what
 * is added afterwards runs, and its events arrive, without any program being started again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/redis_rig.h"
#include "support/runtime_fixture.h"

enum { URL_MAX = 600, JOBS = 100 };
#define NATIVE "redis+unix"

typedef struct scene {
    rig *redis;
    rt   works, other;              /* a queue with a pool, and one without, open all the time */
    gate done;
} scene;

static weir_code do_it(weir_job *job, void *ctx)
{
    (void)job;
    gate_up(&((scene *)ctx)->done);
    return WEIR_OK;
}

static void open_scene(scene *s, const char *scheme, const char *query, weir_pool_config pool)
{
    char url[URL_MAX];
    *s = (scene){ .done = GATE_INIT };
    s->redis = rig_start(NULL);
    assert_non_null(s->redis);
    rig_url(s->redis, scheme, query, url, sizeof url);
    rt_open(&s->works, url, false);
    rt_open(&s->other, url, false);
    rt *t = &s->works;
    pool.ctx = s;
    OK(weir_process(t->q, "a", &pool, NULL, &t->err));
}

static void close_scene(scene *s)
{
    rt_close(&s->other);
    rt_check_and_close(&s->works);
    rig_free(s->redis);
}

/* Add jobs, and wait until so many in all were done. */
static void add_and_do(scene *s, rt *t, int n, int in_all)
{
    for (int i = 0; i < n; i++)
        rt_add_type(t, "a");
    gate_wait(&s->done, in_all);
}

static void goes_on_with(const char *scheme, const char *query, int prefetch)
{
    scene  s_, *s = &s_;
    int    all = 0;
    open_scene(s, scheme, query, (weir_pool_config){ .handler = do_it, .threads = 2,
                                             .prefetch = prefetch });
    record *events = record_start(&s->other, &(weir_filter){ .type = "a" });
    add_and_do(s, &s->other, JOBS, all += JOBS);
    for (int round = 0; round < 3; round++) {
        rt_until_count(&s->other, WEIR_STATE_COMPLETE, (uint64_t)(round ? 2 * JOBS + 1 : JOBS));
        assert_true(rig_do(s->redis, "FLUSHALL"));
        add_and_do(s, &s->other, JOBS, all += JOBS);
        add_and_do(s, &s->works, JOBS, all += JOBS);
        rt *t = &s->other;
        OK(weir_wait(t->q, rt_add_type(t, "a"), PATIENCE_MS, NULL, &t->err));
        gate_wait(&s->done, all += 1);
        record_until(events, WEIR_EVENT_COMPLETE, (size_t)all);
        assert_int_equal(record_count(events, WEIR_EVENT_ENQUEUE), all);
    }
    record_stop(events);
    close_scene(s);
}

static void a_pool_goes_on(void **state)
{
    (void)state;
    goes_on_with(NATIVE, NULL, 0);
}

static void a_pool_that_prefetches_goes_on(void **state)
{
    (void)state;
    goes_on_with(NATIVE, NULL, 8);
}

static void a_pool_on_partitions_goes_on(void **state)
{
    (void)state;
    goes_on_with(NATIVE, "partitions=4", 0);
}

static void a_pool_on_kue_goes_on(void **state)
{
    (void)state;
    goes_on_with("redis+kue+unix", NULL, 0);
}

/* A pool that has received no event since it was opened, and a program that comes after. */
static void an_idle_pool_goes_on(void **state)
{
    (void)state;
    scene s_, *s = &s_;
    open_scene(s, NATIVE, "partitions=2", (weir_pool_config){ .handler = do_it });
    add_and_do(s, &s->other, JOBS, JOBS);
    rt_until_count(&s->other, WEIR_STATE_COMPLETE, JOBS);
    rt idle, *t = &idle;
    rt_open(t, s->works.url, false);
    OK(weir_process(t->q, "b", &(weir_pool_config){ .handler = do_it, .ctx = s }, NULL, &t->err));
    assert_true(rig_do(s->redis, "FLUSHALL"));
    rt_reopen(&s->other);
    for (int i = 0; i < JOBS; i++)
        rt_add_type(&s->other, "b");
    gate_wait(&s->done, 2 * JOBS);
    rt_close(t);
    close_scene(s);
}

/* ---- what was under way ---- */

typedef struct slow {
    gate begun, may_end;
} slow;

static weir_code wait_and_fail(weir_job *job, void *ctx)
{
    slow *w = ctx;
    gate_up(&w->begun);
    gate_wait(&w->may_end, 1);
    return weir_job_give_up(job, "of the queue that is gone");
}

/* A worker ends a job that is gone. No job that was added later has its id. */
static void an_old_job_is_not_taken_for_a_new_one(void **state)
{
    (void)state;
    scene s_, *s = &s_;
    slow  w = { GATE_INIT, GATE_INIT };
    open_scene(s, NATIVE, NULL, (weir_pool_config){ .handler = do_it });
    rt *t = &s->works;
    OK(weir_process(t->q, "slow", &(weir_pool_config){ .handler = wait_and_fail, .ctx = &w }, NULL,
                    &t->err));
    uint64_t old = rt_add_type(&s->other, "slow");
    gate_wait(&w.begun, 1);
    assert_true(rig_do(s->redis, "FLUSHALL"));
    uint64_t first = rt_add_type(&s->other, "b");
    assert_true(first > old);
    weir_job   *job;
    size_t      n;
    weir_taking b = { .types = (const char *[]){ "b", NULL }, .n = 1 };
    OK(weir_take(t->q, &b, &job, &n, &t->err));
    assert_int_equal(n, 1);
    gate_up(&w.may_end);
    add_and_do(s, &s->other, JOBS, JOBS);
    weir_job_free(job);
    rt_until_count(&s->other, WEIR_STATE_COMPLETE, JOBS);
    assert_int_equal(rt_state(&s->other, first), WEIR_STATE_ACTIVE);
    assert_int_equal(rt_count(&s->other, WEIR_STATE_FAILED), 0);
    close_scene(s);
}

/* Who waits for a job that is gone is told so. */
static void waiting_ends(void **state)
{
    (void)state;
    scene s_, *s = &s_;
    open_scene(s, NATIVE, NULL, (weir_pool_config){ .handler = do_it });
    rt          *t = &s->works;
    record      *trouble = record_start(t, &(weir_filter){ .events = WEIR_BIT(WEIR_EVENT_ERROR) });
    weir_future *f;
    OK(weir_wait_async(t->q, rt_add_type(t, "nobody does it"), NULL, &f, &t->err));
    add_and_do(s, &s->other, JOBS, JOBS);
    assert_true(rig_do(s->redis, "FLUSHALL"));
    add_and_do(s, &s->other, 1, JOBS + 1);
    assert_int_equal(weir_future_wait(f, PATIENCE_MS, &t->err), WEIR_ENOENT);
    weir_future_free(f);
    record_until(trouble, WEIR_EVENT_ERROR, 1);
    assert_non_null(strstr(trouble->text[0], "emptied"));
    record_stop(trouble);
    close_scene(s);
}

static bool is_made(const rig *r)
{
    redisReply *made = rig_command(r, "HEXISTS {weir:0}:meta version");
    bool        is = made && made->integer;
    freeReplyObject(made);
    return is;
}

/* The queue is made anew with as many partitions as the programs that go on think it has. */
static void partitions_stay(void **state)
{
    (void)state;
    scene s_, *s = &s_;
    char  url[URL_MAX];
    rt    later;
    open_scene(s, NATIVE, "partitions=4", (weir_pool_config){ .handler = do_it });
    add_and_do(s, &s->other, JOBS, JOBS);
    assert_true(rig_do(s->redis, "FLUSHALL"));
    add_and_do(s, &s->other, JOBS, 2 * JOBS);
    UNTIL(is_made(s->redis));
    rt_open(&later, rig_url(s->redis, NATIVE, NULL, url, sizeof url), false);
    rt_until_count(&later, WEIR_STATE_COMPLETE, JOBS);
    rt_close(&later);
    close_scene(s);
}

int main(int argc, char **argv)
{
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_goes_on),
        cmocka_unit_test(a_pool_that_prefetches_goes_on),
        cmocka_unit_test(a_pool_on_partitions_goes_on),
        cmocka_unit_test(a_pool_on_kue_goes_on),
        cmocka_unit_test(an_idle_pool_goes_on),
        cmocka_unit_test(an_old_job_is_not_taken_for_a_new_one),
        cmocka_unit_test(waiting_ends),
        cmocka_unit_test(partitions_stay),
    };
    return cmocka_run_group_tests_name("emptied", tests, NULL, NULL);
}
