/* test_runtime_suspect.c - jobs whose worker died run alone in this process, whoever takes them. */
#include "support/runtime_fixture.h"

#include <string.h>

enum { JOBS = 60, EVERY = 6 };

/* The next job of the type is taken by a worker elsewhere, which dies. */
static uint64_t lose_one(rt *t, const char *type)
{
    const char *const types[] = { type, NULL };
    weir_taking       what = { .remote = true, .types = types, .n = 1, .worker = "elsewhere" };
    weir_job         *job = NULL;
    size_t            n = 0;
    OK(weir_take(t->q, &what, &job, &n, &t->err));
    assert_int_equal(n, 1);
    uint64_t    id = job->id;
    weir_ending end = { .id = id, .delivery = job->delivery, .outcome = WEIR_OUTCOME_LOST };
    weir_ended  ended;
    OK(weir_finish(t->q, &end, 1, &ended, &t->err));
    assert_int_equal(ended.err.code, WEIR_OK);
    assert_int_equal(ended.state, WEIR_STATE_INACTIVE);
    weir_job_free(job);
    return id;
}

/* Every sixth job has a better priority, and becomes a suspect. */
static void add_some(rt *t, const char *type)
{
    for (int i = 0; i < JOBS / EVERY; i++) {
        rt_add(t, &(weir_spec){ .type = type, .priority = -20 });
        uint64_t id = lose_one(t, type);
        OK(weir_update(t->q, id, &(weir_change){ .set_priority = true, .priority = i % 3 - 1 },
                       NULL, &t->err));
        for (int k = 1; k < EVERY; k++)
            rt_add(t, &(weir_spec){ .type = type, .priority = k % 3 - 1 });
    }
}

/* What runs now. */
typedef struct watch {
    atomic_int running, suspects, most, wrong, done;
    bool       later;
} watch;

static weir_code look_around(weir_job *job, void *ctx)
{
    watch *w = ctx;
    int    n = atomic_fetch_add(&w->running, 1) + 1, most = atomic_load(&w->most);
    bool   suspect = job->lost > 0;
    if (suspect)
        atomic_fetch_add(&w->suspects, 1);
    while (n > most && !atomic_compare_exchange_weak(&w->most, &most, n))
        ;
    for (int i = 0; i < 5; i++) {
        rt_breathe();
        if (atomic_load(&w->suspects) && atomic_load(&w->running) > 1)
            atomic_fetch_add(&w->wrong, 1);
    }
    if (suspect)
        atomic_fetch_sub(&w->suspects, 1);
    atomic_fetch_sub(&w->running, 1);
    atomic_fetch_add(&w->done, 1);
    return w->later ? (weir_job_done(job, NULL, 0, NULL), WEIR_LATER) : WEIR_OK;
}

static void check_histories(rt *t)
{
    weir_page *page = NULL;
    OK(weir_list(t->q, &(weir_query){ .limit = WEIR_MAX_PAGE }, &page, &t->err));
    for (size_t i = 0; i < page->n; i++) {
        assert_int_equal(page->job[i]->state, WEIR_STATE_COMPLETE);
        if (page->job[i]->history)
            assert_null(strstr(page->job[i]->history, "returned"));
    }
    weir_page_free(page);
}

static void alone(rt *t, weir_pool_config pool)
{
    watch w = { .later = pool.running > 0 };
    add_some(t, "a");
    pool.handler = look_around;
    pool.ctx = &w;
    OK(weir_process(t->q, "a", &pool, NULL, &t->err));
    rt_until_count(t, WEIR_STATE_COMPLETE, JOBS);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
    assert_int_equal(w.wrong, 0);
    assert_int_equal(w.done, JOBS);
    assert_true(w.most > 1);
    if (pool.prefetch != 0)             /* else the pool may give back what it took ahead */
        check_histories(t);
}

RT_TEST(alone_in_a_pool) { alone(t, (weir_pool_config){ .threads = 4 }); }

RT_TEST(alone_without_prefetch)
{
    alone(t, (weir_pool_config){ .threads = 4, .prefetch = WEIR_PREFETCH_NONE });
}

RT_TEST(alone_with_prefetch) { alone(t, (weir_pool_config){ .threads = 4, .prefetch = 3 }); }

RT_TEST(alone_with_handlers_that_answer_later)
{
    alone(t, (weir_pool_config){ .threads = 2, .running = 8, .prefetch = WEIR_PREFETCH_NONE });
}

RT_TEST(alone_beside_other_pools)
{
    watch w = { 0 };
    add_some(t, "a");
    add_some(t, "b");
    weir_pool_config pool = { .handler = look_around, .ctx = &w, .threads = 3 };
    OK(weir_process(t->q, "a", &pool, NULL, &t->err));
    OK(weir_process(t->q, "b", &pool, NULL, &t->err));
    pool.prefetch = 2;
    OK(weir_process(t->q, "b", &pool, NULL, &t->err));
    rt_until_count(t, WEIR_STATE_COMPLETE, 2 * JOBS);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
    assert_int_equal(w.wrong, 0);
    assert_int_equal(w.done, 2 * JOBS);
}

RT_TEST(one_that_comes_while_others_run)
{
    watch w = { 0 };
    OK(weir_process(
        t->q, "a",
        &(weir_pool_config){ .handler = look_around, .ctx = &w, .threads = 4, .types = NULL }, NULL,
        &t->err));
    OK(weir_pause(t->q, "a", &t->err));
    add_some(t, "b");
    OK(weir_resume(t->q, "a", &t->err));
    for (int i = 0; i < JOBS; i++)
        rt_add_type(t, "a");
    OK(weir_process(t->q, "b",
                    &(weir_pool_config){ .handler = look_around, .ctx = &w, .threads = 2 }, NULL,
                    &t->err));
    rt_until_count(t, WEIR_STATE_COMPLETE, 2 * JOBS);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
    assert_int_equal(w.wrong, 0);
}

/* A pool that knows of a suspect and stops must not stand in the way of the others. */
RT_TEST(a_pool_that_stops_leaves_the_way_free)
{
    watch w = { 0 };
    rt_add_type(t, "a");
    lose_one(t, "a");
    OK(weir_process(t->q, "a",
                    &(weir_pool_config){ .handler = look_around, .ctx = &w, .threads = 2 }, NULL,
                    &t->err));
    OK(weir_stop(t->q, "a", PATIENCE_MS, &t->err));
    for (int i = 0; i < JOBS; i++)
        rt_add_type(t, "b");
    OK(weir_process(t->q, "b",
                    &(weir_pool_config){ .handler = look_around, .ctx = &w, .threads = 2 }, NULL,
                    &t->err));
    UNTIL(rt_count(t, WEIR_STATE_COMPLETE) >= JOBS);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
}

static size_t take_by_hand(rt *t, const char *type, size_t n, weir_job **out)
{
    const char *const types[] = { type, NULL };
    size_t            got = 99;
    OK(weir_take(t->q, &(weir_taking){ .types = types, .n = n }, out, &got, &t->err));
    return got;
}

RT_TEST(by_hand)
{
    weir_job *job[4];
    rt_add_type(t, "a");
    uint64_t id = lose_one(t, "a");
    rt_add_type(t, "a");
    assert_int_equal(take_by_hand(t, "a", 4, job), 1);
    assert_int_equal(job[0]->id, id);
    assert_int_equal(take_by_hand(t, "a", 1, job + 1), 0);        /* not beside it */
    assert_int_equal(weir_job_done(job[0], NULL, 0, NULL), WEIR_OK);
    assert_int_equal(take_by_hand(t, "a", 1, job + 1), 1);
    weir_job_free(job[0]);
    rt_add_type(t, "b");
    uint64_t other = lose_one(t, "b");
    rt_add_type(t, "b");
    assert_int_equal(take_by_hand(t, "b", 4, job + 2), 1);        /* job[1] is held */
    assert_true(job[2]->id != other);
    assert_int_equal(weir_job_done(job[1], NULL, 0, NULL), WEIR_OK);
    assert_int_equal(weir_job_done(job[2], NULL, 0, NULL), WEIR_OK);
    weir_job_free(job[1]);
    weir_job_free(job[2]);
    assert_int_equal(take_by_hand(t, "b", 4, job), 1);
    assert_int_equal(job[0]->id, other);
    weir_future *f;
    size_t       n = 99;
    OK(weir_take_async(t->q, &(weir_taking){ .types = (const char *[]){ "b", NULL }, .n = 1 },
                       job + 1, &n, &f, &t->err));
    OK(weir_future_wait(f, PATIENCE_MS, &t->err));
    weir_future_free(f);
    assert_int_equal(n, 0);
    assert_int_equal(weir_job_done(job[0], NULL, 0, NULL), WEIR_OK);
    weir_job_free(job[0]);
}

RT_TEST(it_is_explained)
{
    weir_explanation *why;
    rt_add_type(t, "a");
    uint64_t id = lose_one(t, "a");
    OK(weir_explain(t->q, id, &why, &t->err));
    assert_non_null(strstr(why->why, "A worker died with it 1 time (at most 3), so that it runs "
                                     "alone, in a worker that has no other job."));
    weir_explanation_free(why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_in_a_pool),
        cmocka_unit_test(alone_without_prefetch),
        cmocka_unit_test(alone_with_prefetch),
        cmocka_unit_test(alone_with_handlers_that_answer_later),
        cmocka_unit_test(alone_beside_other_pools),
        cmocka_unit_test(one_that_comes_while_others_run),
        cmocka_unit_test(a_pool_that_stops_leaves_the_way_free),
        cmocka_unit_test(by_hand),
        cmocka_unit_test(it_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
