/* test_runtime_storm.c - everything at once, for the sanitizers: threads that call at random, pools
 * and listeners that come and go; then all must add up. */
#include "support/runtime_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, CALLS = 1000, TYPES = 4, LATER_MAX = 4096 };

static const char *const types[] = { "a", "b", "c", "d", NULL };

typedef struct storm {
    rt             *t;
    atomic_uint     next_seed;
    _Atomic uint64_t added;             /* jobs */
    _Atomic uint64_t removed;
    _Atomic uint64_t heard;             /* events */
    atomic_int      inside;             /* handlers */
    pthread_mutex_t lock;
    weir_job       *later[LATER_MAX];   /* to be answered by the thread for that */
    size_t          n_later;
    bool            over;
    pthread_cond_t  moved;
} storm;

static unsigned dice(unsigned *seed, unsigned sides)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 16) % sides;
}

/* ---- handlers ---- */

static weir_code in_storm(weir_job *job, void *ctx)
{
    storm *s = ctx;
    atomic_fetch_add(&s->inside, 1);
    unsigned seed = (unsigned)job->id * 31 + job->delivery;
    weir_code rc = WEIR_OK;
    switch (dice(&seed, 8)) {
    case 0:
        rc = weir_job_fail(job, "dice");
        break;
    case 1:
        weir_job_progress(job, 1, 3, NULL, 0, NULL);
        rc = weir_job_done(job, "[1]", 0, NULL);
        break;
    case 2:
        weir_job_log(job, "hello from %u", job->delivery);
        break;
    case 3:
        rc = WEIR_EIO;
        break;
    default:
        break;
    }
    atomic_fetch_sub(&s->inside, 1);
    return rc;
}

static weir_code in_storm_later(weir_job *job, void *ctx)
{
    storm *s = ctx;
    if (job->id % 5 == 0)
        return in_storm(job, ctx);
    pthread_mutex_lock(&s->lock);
    bool room = s->n_later < LATER_MAX && !s->over;
    if (room) {
        s->later[s->n_later++] = job;
        pthread_cond_signal(&s->moved);
    }
    pthread_mutex_unlock(&s->lock);
    return room ? WEIR_LATER : WEIR_OK;
}

static void *answer_later(void *ctx)
{
    storm *s = ctx;
    pthread_mutex_lock(&s->lock);
    while (!s->over || s->n_later) {
        if (!s->n_later) {
            pthread_cond_wait(&s->moved, &s->lock);
            continue;
        }
        weir_job *job = s->later[--s->n_later];
        pthread_mutex_unlock(&s->lock);
        weir_job_cancelled(job);
        if (job->id % 3)
            weir_job_done(job, "true", 0, NULL);
        else
            weir_job_fail(job, "later");
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- callers ---- */

static void count_event(const weir_event *ev, void *ctx)
{
    (void)ev;
    atomic_fetch_add(&((storm *)ctx)->heard, 1);
}

static void count_removed(const weir_event *ev, void *ctx)
{
    (void)ev;
    atomic_fetch_add(&((storm *)ctx)->removed, 1);
}

static void no_trouble(weir_code rc)
{
    switch (rc) {
    case WEIR_OK:
    case WEIR_ENOENT:
    case WEIR_ESTATE:
    case WEIR_ESTALE:
    case WEIR_ETIMEOUT:
        return;
    default:
        fprintf(stderr, "storm: %s\n", weir_code_name(rc));
        abort();
    }
}

static void call_add(storm *s, unsigned *seed)
{
    weir_spec spec = { .type = types[dice(seed, TYPES)], .priority = (int32_t)dice(seed, 5),
                       .attempts = 1 + (int32_t)dice(seed, 3), .delay_ms = dice(seed, 3) * 3,
                       .remove_on_complete = dice(seed, 8) == 0 };
    weir_added added = { 0 };
    weir_future *f;
    if (dice(seed, 2)) {
        no_trouble(weir_add(s->t->q, &spec, &added, NULL));
    } else {
        no_trouble(weir_add_async(s->t->q, &spec, &added, &f, NULL));
        no_trouble(weir_future_wait(f, WEIR_FOREVER, NULL));
        weir_future_free(f);
    }
    if (!added.id)
        abort();
    atomic_fetch_add(&s->added, 1);
}

static void call_read(storm *s, unsigned *seed)
{
    uint64_t id = 1 + dice(seed, 500);
    weir_queue *q = s->t->q;
    weir_job *job = NULL;
    weir_page *page = NULL;
    weir_stats *stats = NULL;
    weir_explanation *e = NULL;
    weir_future *f;
    switch (dice(seed, 5)) {
    case 0:
        no_trouble(weir_get_async(q, id, &job, &f, NULL));
        if (dice(seed, 2))
            no_trouble(weir_future_wait(f, WEIR_FOREVER, NULL));
        weir_future_free(f);
        break;
    case 1:
        no_trouble(weir_list_async(q, &(weir_query){ .type = types[dice(seed, TYPES)] }, &page, &f,
                                   NULL));
        weir_future_free(f);
        break;
    case 2:
        no_trouble(weir_get_stats(q, &stats, NULL));
        break;
    case 3:
        no_trouble(weir_explain(q, id, &e, NULL));
        break;
    default:
        no_trouble(weir_wait(q, id, dice(seed, 3), &job, NULL));
    }
    weir_job_free(job);
    weir_page_free(page);
    weir_stats_free(stats);
    weir_explanation_free(e);
}

static void call_change(storm *s, unsigned *seed)
{
    uint64_t id = 1 + dice(seed, 500);
    weir_queue *q = s->t->q;
    switch (dice(seed, 6)) {
    case 0:
        no_trouble(weir_cancel(q, id, NULL));
        break;
    case 1:
        no_trouble(weir_retry_async(q, id, NULL, NULL));
        break;
    case 2:
        no_trouble(weir_remove(q, id, NULL));
        break;
    case 3:
        no_trouble(weir_promote(q, id, NULL));
        break;
    case 4:
        no_trouble(weir_log_async(q, id, 0, "from the storm", 0, NULL, NULL));
        break;
    default:
        no_trouble(dice(seed, 2) ? weir_pause(q, types[dice(seed, TYPES)], NULL)
                                 : weir_resume(q, types[dice(seed, TYPES)], NULL));
    }
}

static void call_work(storm *s, unsigned *seed)
{
    weir_queue *q = s->t->q;
    weir_listener *l;
    weir_job *job[3];
    size_t n;
    switch (dice(seed, 4)) {
    case 0:
        no_trouble(weir_listen(q, &(weir_filter){ .type = types[dice(seed, TYPES)] }, count_event,
                               s, &l, NULL));
        no_trouble(weir_log(q, 1 + dice(seed, 100), 0, "x", 0, NULL));
        weir_unlisten(l);
        break;
    case 1:
        no_trouble(
            weir_take(q, &(weir_taking){ .types = types, .n = 1 + dice(seed, 3), .lease_ms = 1000 },
                      job, &n, NULL));
        for (size_t i = 0; i < n; i++) {
            no_trouble(weir_job_renew(job[i], 2000, NULL));
            no_trouble(weir_job_done(job[i], "0", 0, NULL));
            weir_job_free(job[i]);
        }
        break;
    case 2: {
        weir_pool_config pool = { .handler = dice(seed, 2) ? in_storm : in_storm_later, .ctx = s,
                                  .threads = 1 + (int32_t)dice(seed, 3), .running = 8,
                                  .prefetch = (int32_t)dice(seed, 3) * 2 };
        no_trouble(weir_process(q, types[dice(seed, TYPES)], &pool, NULL, NULL));
        break;
    }
    default:
        no_trouble(weir_stop(q, types[dice(seed, TYPES)], dice(seed, 2) ? 1000 : 0, NULL));
    }
}

static void *caller(void *ctx)
{
    storm *s = ctx;
    unsigned seed = atomic_fetch_add(&s->next_seed, 7919);
    for (int i = 0; i < CALLS; i++) {
        unsigned what = dice(&seed, 10);
        if (what < 4)
            call_add(s, &seed);
        else if (what < 6)
            call_read(s, &seed);
        else if (what < 9)
            call_change(s, &seed);
        else
            call_work(s, &seed);
    }
    return NULL;
}

/* ---- the storm ---- */

static weir_code tidy(weir_job *job, void *ctx)
{
    (void)job;
    (void)ctx;
    return WEIR_OK;
}

/* Jobs that are not at their end, counted at one moment. With a call for each state, a job that
 * becomes due between two calls is counted in neither. */
static uint64_t unfinished(rt *t)
{
    weir_stats *stats;
    OK(weir_get_stats(t->q, &stats, &t->err));
    const uint64_t *n = stats->all.count;
    uint64_t        sum = n[WEIR_STATE_INACTIVE] + n[WEIR_STATE_DELAYED] + n[WEIR_STATE_ACTIVE];
    weir_stats_free(stats);
    return sum;
}

/* All that was added is there in some state, or was removed, or completed and went by itself. */
static void adds_up(storm *s)
{
    rt *t = s->t;
    weir_stats *stats;
    OK(weir_get_stats(t->q, &stats, &t->err));
    uint64_t sum = 0;
    for (int i = 1; i < WEIR_STATE_COUNT; i++)
        sum += stats->all.count[i];
    assert_int_equal(sum, stats->all.count[WEIR_STATE_ANY]);
    assert_int_equal(stats->last_id, s->added);
    assert_int_equal(stats->all.count[WEIR_STATE_ACTIVE], 0);
    assert_int_equal(stats->all.count[WEIR_STATE_INACTIVE], 0);
    assert_int_equal(stats->all.count[WEIR_STATE_DELAYED], 0);
    assert_true(sum + s->removed <= s->added);
    weir_stats_free(stats);
    weir_page *page;
    OK(weir_list(t->q, &(weir_query){ .state = WEIR_STATE_ACTIVE }, &page, &t->err));
    assert_int_equal(page->n, 0);
    weir_page_free(page);
}

RT_TEST(a_storm)
{
    storm *s = calloc(1, sizeof *s);
    s->t = t;
    s->next_seed = 42;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->moved, NULL);
    weir_listener *l;
    OK(weir_listen(t->q, &(weir_filter){ .events = WEIR_BIT(WEIR_EVENT_REMOVE) }, count_removed, s,
                   &l, &t->err));
    weir_pool_config pool = { .handler = in_storm, .ctx = s, .threads = 2 };
    OK(weir_process(t->q, "a", &pool, NULL, &t->err));
    pool.prefetch = 4;
    OK(weir_process(t->q, "b", &pool, NULL, &t->err));
    pool = (weir_pool_config){ .handler = in_storm_later, .ctx = s, .running = 16, .types = types };
    OK(weir_process(t->q, NULL, &pool, NULL, &t->err));
    pthread_t thread[THREADS], later;
    pthread_create(&later, NULL, answer_later, s);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, caller, s);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);

    /* The sky clears: everything that waits is done. */
    weir_stop(t->q, NULL, PATIENCE_MS, &t->err);
    for (int i = 0; i < TYPES; i++)
        OK(weir_resume(t->q, types[i], &t->err));
    OK(weir_process(t->q, NULL,
                    &(weir_pool_config){ .handler = tidy, .threads = 2, .types = types }, NULL,
                    &t->err));
    UNTIL(unfinished(t) == 0);
    OK(weir_stop(t->q, NULL, PATIENCE_MS, &t->err));
    pthread_mutex_lock(&s->lock);
    s->over = true;
    pthread_cond_signal(&s->moved);
    pthread_mutex_unlock(&s->lock);
    pthread_join(later, NULL);
    weir_unlisten(l);
    assert_int_equal(s->inside, 0);
    adds_up(s);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->moved);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_storm) };
    return cmocka_run_group_tests_name("runtime_storm", tests, NULL, NULL);
}
