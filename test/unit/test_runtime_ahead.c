/* test_runtime_ahead.c - pools that take ahead by themselves: when they do, and that no job has to
 * wait behind a handler that is stuck. In memory they never do. */
#include "support/runtime_fixture.h"

#include <stdio.h>
#include <string.h>

enum { QUICK = 400, BEHIND = 20, LONG_MS = 5 };

/* Quick jobs, then one that is stuck until it is let go, then some behind it: once the one is
 * stuck, the state of the first of them tells whether it was taken ahead. */
typedef struct scene {
    gate        came, go, left;
    int         rounds;
    bool        later;              /* answer WEIR_LATER */
    uint64_t    stuck, behind[BEHIND];
    pthread_mutex_t lock;
    uint64_t    ran[BEHIND];        /* the last jobs that were not stuck, in order */
    size_t      n_ran;
} scene;

#define SCENE { .came = GATE_INIT, .go = GATE_INIT, .left = GATE_INIT,           \
                .lock = PTHREAD_MUTEX_INITIALIZER }

static weir_code play(weir_job *job, void *ctx)
{
    scene *s = ctx;
    if (strcmp(job->data, "\"stuck\"") == 0) {
        gate_up(&s->came);
        gate_wait(&s->go, job->priority);
        gate_up(&s->left);
        return WEIR_OK;
    }
    pthread_mutex_lock(&s->lock);
    s->ran[s->n_ran++ % BEHIND] = job->id;
    pthread_mutex_unlock(&s->lock);
    if (!s->later)
        return WEIR_OK;
    weir_code rc = weir_job_done(job, NULL, 0, NULL);
    return rc ? rc : WEIR_LATER;
}

/* Add them. All jobs of a round have its number as priority, which keeps rounds apart. */
static void add_round(rt *t, scene *s, int quick, int64_t ttl_ms)
{
    weir_spec  spec[QUICK + 1 + BEHIND];
    weir_added added[QUICK + 1 + BEHIND];
    size_t     n = (size_t)quick + 1 + BEHIND;
    s->rounds++;
    for (size_t i = 0; i < n; i++)
        spec[i] = (weir_spec){ .type = "a", .data = i == (size_t)quick ? "\"stuck\"" : "{}",
                               .priority = s->rounds, .attempts = 2,
                               .ttl_ms = i > (size_t)quick ? ttl_ms : 0 };
    OK(weir_add_many(t->q, spec, n, NULL, added, &t->err));
    s->stuck = added[quick].id;
    for (size_t i = 0; i < BEHIND; i++)
        s->behind[i] = added[(size_t)quick + 1 + i].id;
    gate_wait(&s->came, s->rounds);
}

static void let_go(rt *t, scene *s)
{
    gate_up(&s->go);
    rt_until(t, s->behind[BEHIND - 1], WEIR_STATE_COMPLETE);
    rt_until(t, s->stuck, WEIR_STATE_COMPLETE);
}

static void start(rt *t, scene *s, int prefetch)
{
    OK(weir_process(t->q, "a",
                    &(weir_pool_config){ .handler = play, .ctx = s, .prefetch = prefetch }, NULL,
                    &t->err));
}

static bool is_ahead(rt *t, scene *s)
{
    return rt_state(t, s->behind[0]) == WEIR_STATE_ACTIVE;
}

/* Until a job is stuck with others behind it. A machine in trouble can make any handler slow: so
 * there may be several rounds. */
static void get_ahead(rt *t, scene *s, int64_t ttl_ms)
{
    int64_t end = rt_ms() + PATIENCE_MS;
    for (;;) {
        add_round(t, s, QUICK, ttl_ms);
        if (is_ahead(t, s))
            return;
        if (rt_ms() > end)
            fail_msg("never took ahead in %d rounds", s->rounds);
        let_go(t, s);
    }
}

/* Turn the clock, but by no more than `most_ms`, until all that are behind wait in the store. It
 * takes several turns: another lot may be on its way, whose time begins when it comes. */
static void until_back(rt *t, int64_t most_ms)
{
    int64_t end = rt_ms() + PATIENCE_MS;
    for (int64_t turned = 0; rt_count(t, WEIR_STATE_INACTIVE) != BEHIND; rt_breathe()) {
        if (turned++ < most_ms)
            rt_later(t, 1);
        if (rt_ms() > end)
            fail_msg("it never went back");
    }
}

/* They are as if they had never been taken. */
static void check_untouched(rt *t, scene *s)
{
    weir_page *page;
    OK(weir_list(t->q, &(weir_query){ .state = WEIR_STATE_INACTIVE }, &page, &t->err));
    assert_int_equal(page->n, BEHIND);
    for (size_t i = 0; i < BEHIND; i++) {
        assert_int_equal(page->job[i]->id, s->behind[i]);
        assert_int_equal(page->job[i]->attempts, 0);
        assert_int_equal(page->job[i]->lost, 0);
    }
    weir_page_free(page);
}

/* A test of what only pools do whose jobs are not in memory. */
#define AHEAD_TEST(fn)                                                           \
    static void fn##_off_memory(rt *t);                                          \
    RT_CLOCK_TEST(fn)                                                            \
    {                                                                            \
        if (!in_memory(t))                                                       \
            fn##_off_memory(t);                                                  \
    }                                                                            \
    static void fn##_off_memory(rt *t)

static bool in_memory(rt *t)
{
    return strcmp(t->url, RT_MEM) == 0;
}

/* ---- when ---- */

RT_CLOCK_TEST(nothing_while_handlers_are_not_known)
{
    scene s = SCENE;
    start(t, &s, 0);
    add_round(t, &s, 0, 0);
    assert_false(is_ahead(t, &s));
    let_go(t, &s);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
}

AHEAD_TEST(no_longer_when_one_was_slow)
{
    scene s = SCENE;
    start(t, &s, 0);
    get_ahead(t, &s, 0);
    int64_t end = rt_ms() + LONG_MS;
    UNTIL(rt_ms() > end);
    let_go(t, &s);
    add_round(t, &s, 0, 0);
    assert_false(is_ahead(t, &s));
    let_go(t, &s);
    get_ahead(t, &s, 0);                    /* but again when they are quick again */
    let_go(t, &s);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
}

static void never_ahead(rt *t, scene *s, int prefetch)
{
    start(t, s, prefetch);
    for (int i = 0; i < 2; i++) {
        add_round(t, s, QUICK, 0);
        assert_false(is_ahead(t, s));
        let_go(t, s);
    }
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
}

RT_CLOCK_TEST(never_if_forbidden)
{
    scene s = SCENE;
    never_ahead(t, &s, WEIR_PREFETCH_NONE);
}

RT_CLOCK_TEST(never_in_memory)
{
    scene s = SCENE;
    if (in_memory(t))
        never_ahead(t, &s, 0);
}

RT_CLOCK_TEST(never_with_later)
{
    scene s = SCENE;
    s.later = true;
    never_ahead(t, &s, 0);
}

/* ---- going back ---- */

AHEAD_TEST(what_waits_too_long_goes_back)
{
    scene s = SCENE, other = SCENE;
    start(t, &s, 0);
    get_ahead(t, &s, 0);
    until_back(t, 10 * WEIR_AHEAD_MS);
    check_untouched(t, &s);
    start(t, &other, WEIR_PREFETCH_NONE);   /* somebody else does them, in their order */
    rt_until(t, s.behind[BEHIND - 1], WEIR_STATE_COMPLETE);
    assert_int_equal(rt_state(t, s.stuck), WEIR_STATE_ACTIVE);
    assert_int_equal(other.n_ran, BEHIND);
    for (size_t i = 0; i < BEHIND; i++)
        assert_int_equal(other.ran[i], s.behind[i]);
    let_go(t, &s);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
}

/* Their ttl runs from when they were taken: they go back with most of it left. */
AHEAD_TEST(with_little_time_it_goes_back_sooner)
{
    enum { TTL_MS = WEIR_AHEAD_MS - 10 };
    scene s = SCENE;
    start(t, &s, 0);
    get_ahead(t, &s, TTL_MS);
    until_back(t, TTL_MS - 1);
    check_untouched(t, &s);
    let_go(t, &s);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
}

/* The same by the real clock, and another process does them where there can be one. */
RT_TEST(others_do_what_is_stuck)
{
    scene s = SCENE, other = SCENE;
    bool  shared = strncmp(t->url, "redis", 5) == 0 || strncmp(t->url, "http", 4) == 0;
    int64_t end = rt_ms() + PATIENCE_MS;
    if (in_memory(t))
        return;
    start(t, &s, 0);
    for (uint32_t delivery = 0; delivery < 2;) {      /* until some went back */
        rt theirs = *t;
        add_round(t, &s, QUICK, 0);
        if (shared)
            OK(weir_open(&theirs.q, t->url, NULL, &t->err));
        start(&theirs, &other, WEIR_PREFETCH_NONE);
        for (size_t i = 0; i < BEHIND; i++) {
            rt_until(t, s.behind[i], WEIR_STATE_COMPLETE);
            weir_job *job = rt_get(t, s.behind[i]);
            assert_int_equal(job->lost, 0);
            assert_int_equal(job->attempts, 1);
            delivery = job->delivery > delivery ? job->delivery : delivery;
            weir_job_free(job);
        }
        assert_int_equal(rt_state(t, s.stuck), WEIR_STATE_ACTIVE);
        if (shared)
            weir_close(theirs.q);
        let_go(t, &s);
        OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
        start(t, &s, 0);
        if (rt_ms() > end)
            fail_msg("nothing went back in %d rounds", s.rounds);
    }
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
}

AHEAD_TEST(a_stop_hands_it_back)
{
    scene s = SCENE;
    start(t, &s, 0);
    get_ahead(t, &s, 0);
    assert_int_equal(weir_stop(t->q, NULL, 0, &t->err), WEIR_ETIMEOUT);
    OK(weir_remove(t->q, s.stuck, &t->err));          /* it has failed once */
    check_untouched(t, &s);
    gate_up(&s.go);
    gate_wait(&s.left, s.rounds);
}

int main(int argc, char **argv)
{
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_while_handlers_are_not_known),
        cmocka_unit_test(no_longer_when_one_was_slow),
        cmocka_unit_test(never_if_forbidden),
        cmocka_unit_test(never_in_memory),
        cmocka_unit_test(never_with_later),
        cmocka_unit_test(what_waits_too_long_goes_back),
        cmocka_unit_test(with_little_time_it_goes_back_sooner),
        cmocka_unit_test(others_do_what_is_stuck),
        cmocka_unit_test(a_stop_hands_it_back),
    };
    return cmocka_run_group_tests_name("runtime_ahead", tests, NULL, NULL);
}
