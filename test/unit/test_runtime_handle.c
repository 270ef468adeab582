/* test_runtime_handle.c - the handle of a pool: stop one pool alone, start another in its place,
 * read the figures, free the handle. */
#include "support/runtime_fixture.h"

#include <sched.h>
#include <string.h>

typedef struct script {
    gate came, go;
} script;

/* What a job's data asks for: "done", "fail", "return" or, at its gate, "wait". */
static weir_code play(weir_job *job, void *ctx)
{
    script     *s = ctx;
    const char *act = weir_data_text(job, "", "done");
    if (strcmp(act, "fail") == 0)
        return weir_job_fail(job, "as asked");
    if (strcmp(act, "return") == 0)
        return weir_job_return(job, 3600 * 1000, NULL);
    if (strcmp(act, "wait") == 0) {
        gate_up(&s->came);
        gate_wait(&s->go, 1);
    }
    return WEIR_OK;
}

static uint64_t add_act(rt *t, const char *type, const char *data)
{
    return rt_add(t, &(weir_spec){ .type = type, .data = data });
}

static weir_pool *start(rt *t, const char *type, script *s)
{
    weir_pool *pool;
    OK(weir_process(t->q, type, &(weir_pool_config){ .handler = play, .ctx = s, .threads = 2,
                                                     .prefetch = WEIR_PREFETCH_NONE },
                    &pool, &t->err));
    return pool;
}

static weir_pool_stats stats_of(weir_pool *pool)
{
    weir_pool_stats stats;
    weir_pool_get_stats(pool, &stats);
    return stats;
}

typedef struct opener {
    weir_pool *pool;
    gate      *go;
} opener;

/* Opens the gate once the pool is known to be stopping: it starts no job that was added since. */
static void *open_gate(void *arg)
{
    opener *o = arg;
    while (stats_of(o->pool).threads == 2)     /* the idle thread ends first */
        sched_yield();
    gate_up(o->go);
    return NULL;
}

RT_TEST(stop_waits_for_the_jobs_of_this_pool)
{
    script     s = { GATE_INIT, GATE_INIT };
    uint64_t   id = add_act(t, "a", "\"wait\"");
    weir_pool *pool = start(t, "a", &s);
    pthread_t  thread;
    gate_wait(&s.came, 1);
    assert_int_equal(stats_of(pool).running, 1);
    assert_int_equal(stats_of(pool).busy, 1);
    assert_int_equal(stats_of(pool).threads, 2);
    opener o = { pool, &s.go };
    pthread_create(&thread, NULL, open_gate, &o);
    OK(weir_pool_stop(pool, PATIENCE_MS, &t->err));
    pthread_join(thread, NULL);
    assert_int_equal(rt_state(t, id), WEIR_STATE_COMPLETE);
    weir_pool_stats end = stats_of(pool);
    assert_int_equal(end.completed, 1);
    assert_int_equal(end.running + end.busy + end.threads, 0);
    OK(weir_pool_stop(pool, PATIENCE_MS, &t->err));          /* it has stopped before */
    weir_pool_free(pool);
}

RT_TEST(stop_fails_jobs_that_run_too_long)
{
    script     s = { GATE_INIT, GATE_INIT };
    uint64_t   id = add_act(t, "a", "\"wait\"");
    weir_pool *pool = start(t, "a", &s);
    gate_wait(&s.came, 1);
    assert_int_equal(weir_pool_stop(pool, 10, &t->err), WEIR_ETIMEOUT);
    assert_int_equal(rt_state(t, id), WEIR_STATE_FAILED);
    gate_up(&s.go);
    UNTIL(stats_of(pool).threads == 0);
    weir_pool_free(pool);
}

RT_TEST(stop_leaves_another_pool_of_the_type)
{
    script     s = { GATE_INIT, GATE_INIT };
    weir_pool *one = start(t, "a", &s), *two = start(t, "a", &s);
    OK(weir_pool_stop(one, PATIENCE_MS, &t->err));
    rt_until(t, add_act(t, "a", "\"done\""), WEIR_STATE_COMPLETE);
    assert_int_equal(stats_of(one).started, 0);
    UNTIL(stats_of(two).completed == 1);
    weir_pool_free(one);
    weir_pool_free(two);
}

RT_TEST(stop_and_start_again)
{
    script s = { GATE_INIT, GATE_INIT };
    for (int i = 0; i < 5; i++) {
        weir_pool *pool = start(t, "a", &s);
        rt_until(t, add_act(t, "a", "\"done\""), WEIR_STATE_COMPLETE);
        OK(weir_pool_stop(pool, PATIENCE_MS, &t->err));
        uint64_t between = add_act(t, "a", "\"done\"");
        assert_int_equal(rt_state(t, between), WEIR_STATE_INACTIVE);
        weir_pool *next = start(t, "a", &s);
        rt_until(t, between, WEIR_STATE_COMPLETE);
        OK(weir_pool_stop(next, PATIENCE_MS, &t->err));
        assert_int_equal(stats_of(pool).completed, 1);
        assert_int_equal(stats_of(next).completed, 1);
        weir_pool_free(pool);
        weir_pool_free(next);
    }
}

RT_TEST(figures_count_every_outcome)
{
    static const char *const acts[] = { "\"done\"", "\"fail\"", "\"return\"", "\"done\"",
                                        "\"fail\"", "\"done\"" };
    script     s = { GATE_INIT, GATE_INIT };
    weir_pool *pool = start(t, "a", &s);
    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++)
        add_act(t, "a", acts[i]);
    rt_until_count(t, WEIR_STATE_COMPLETE, 3);
    rt_until_count(t, WEIR_STATE_FAILED, 2);
    rt_until_count(t, WEIR_STATE_DELAYED, 1);
    weir_pool_stats stats = stats_of(pool);
    assert_int_equal(stats.started, 6);
    assert_int_equal(stats.completed, 3);
    assert_int_equal(stats.failed, 2);
    assert_int_equal(stats.returned, 1);
    assert_int_equal(stats.threads, 2);
    OK(weir_pool_stop(pool, PATIENCE_MS, &t->err));
    weir_pool_free(pool);
}

RT_TEST(a_pool_works_without_its_handle)
{
    script s = { GATE_INIT, GATE_INIT };
    weir_pool_free(start(t, "a", &s));
    weir_pool_free(NULL);
    rt_until(t, add_act(t, "a", "\"done\""), WEIR_STATE_COMPLETE);
    OK(weir_stop(t->q, "a", PATIENCE_MS, &t->err));
}

RT_TEST(weir_stop_stops_pools_with_handles)
{
    script     s = { GATE_INIT, GATE_INIT };
    weir_pool *pool = start(t, "a", &s);
    OK(weir_stop(t->q, "a", PATIENCE_MS, &t->err));
    assert_int_equal(stats_of(pool).threads, 0);
    OK(weir_pool_stop(pool, PATIENCE_MS, &t->err));
    weir_pool_free(pool);
}

static void the_handle_outlives_the_queue(void **state)
{
    (void)state;
    script      s = { GATE_INIT, GATE_INIT };
    rt          room = { 0 }, *t = &room;
    rt_open(t, "mem:", false);
    weir_pool  *pool = start(t, "a", &s);
    rt_until(t, add_act(t, "a", "\"done\""), WEIR_STATE_COMPLETE);
    rt_close(t);
    OK(weir_pool_stop(pool, PATIENCE_MS, &t->err));
    assert_int_equal(stats_of(pool).completed, 1);
    weir_pool_free(pool);
}

RT_TEST(no_handle_of_a_pool_that_does_not_start)
{
    weir_pool *pool = (weir_pool *)t;
    assert_int_equal(weir_process(t->q, "a", &(weir_pool_config){ 0 }, &pool, &t->err),
                     WEIR_EINVAL);
    assert_null(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stop_waits_for_the_jobs_of_this_pool),
        cmocka_unit_test(stop_fails_jobs_that_run_too_long),
        cmocka_unit_test(stop_leaves_another_pool_of_the_type),
        cmocka_unit_test(stop_and_start_again),
        cmocka_unit_test(figures_count_every_outcome),
        cmocka_unit_test(a_pool_works_without_its_handle),
        cmocka_unit_test(weir_stop_stops_pools_with_handles),
        cmocka_unit_test(the_handle_outlives_the_queue),
        cmocka_unit_test(no_handle_of_a_pool_that_does_not_start),
    };
    return cmocka_run_group_tests_name("runtime_handle", tests, NULL, NULL);
}
