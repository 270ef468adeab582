/* test_batcher.c - before a store that is far: whom a batch waits for; and before one that waits
 * for another process: who leads. The stores here are stand-ins; the first batch of the one that
 * is far takes long. */
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/batcher.h"
#include "support/runtime_fixture.h"

enum { SLOW_MS = 1000, MANY = 8 };

static atomic_size_t batches, size_of[16], answered;
static atomic_bool away;            /* the store does not answer */

static weir_code run(weir_store *s, weir_op **ops, size_t n, weir_error *err)
{
    (void)s, (void)ops;
    size_t  k = atomic_load(&batches);
    int64_t until = rt_ms() + SLOW_MS;
    while (k == 0 && rt_ms() < until)
        rt_breathe();
    atomic_store(&size_of[k], n);
    atomic_store(&batches, k + 1);
    return atomic_load(&away) ? weir_fail(err, WEIR_EUNAVAIL, "no connection") : WEIR_OK;
}

static const weir_store_ops far_ops = { .name = "far", .run = run, .remote = true };

static void a_time(void *ctx, int64_t *now_ms, int64_t *steady_ms)
{
    (void)ctx;
    *now_ms = *steady_ms = 1000;
}

static void count_answer(weir_ticket *t)
{
    (void)t;
    atomic_fetch_add(&answered, 1);
}

typedef struct bench {
    weir_store   store;
    weir_events  events;
    weir_batcher b;
    weir_ticket  ticket[2 * MANY];
    size_t       n;
} bench;

static bench *set_up(void)
{
    bench *x = calloc(1, sizeof *x);
    assert_non_null(x);
    atomic_store(&batches, 0);
    atomic_store(&answered, 0);
    atomic_store(&away, false);
    x->store.ops = &far_ops;
    weir__events_init(&x->events);
    weir__batcher_init(&x->b, &x->store, &x->events, a_time, NULL);
    return x;
}

static void tear_down(bench *x)
{
    weir__batcher_close(&x->b);
    weir__events_close(&x->events);
    weir__batcher_fini(&x->b);
    free(x);
}

static void submit(bench *x, size_t n, bool detached)
{
    for (size_t end = x->n + n; x->n < end; x->n++) {
        weir_ticket *t = &x->ticket[x->n];
        *t = (weir_ticket){ .op = { .kind = WEIR_OP_STATS }, .done = count_answer,
                            .detached = detached };
        t->next = x->n + 1 < end ? t + 1 : NULL;
    }
    assert_int_equal(weir__batcher_submit_all(&x->b, &x->ticket[x->n - n]), WEIR_OK);
}

/* They are expected back, for as long as the last batch took. */
static void callers_are_waited_for(void **state)
{
    (void)state;
    bench *x = set_up();
    submit(x, MANY, false);
    UNTIL(atomic_load(&answered) == MANY);
    submit(x, 1, false);
    submit(x, MANY - 1, false);
    UNTIL(atomic_load(&answered) == 2 * MANY);
    assert_int_equal(atomic_load(&batches), 2);
    assert_int_equal(atomic_load(&size_of[1]), MANY);
    tear_down(x);
}

/* Who goes on without an answer keeps nobody waiting. */
static void others_are_not(void **state)
{
    (void)state;
    bench *x = set_up();
    submit(x, MANY, true);
    UNTIL(atomic_load(&answered) == MANY);
    int64_t start = rt_ms();
    submit(x, 1, true);
    UNTIL(atomic_load(&answered) == MANY + 1);
    assert_true(rt_ms() - start < SLOW_MS / 2);
    assert_int_equal(atomic_load(&batches), 2);
    tear_down(x);
}

/* A batch that ended with a timeout does not say how long callers need to be back. */
static void nobody_is_waited_for_when_the_store_is_away(void **state)
{
    (void)state;
    bench *x = set_up();
    bool   leading = true;
    atomic_store(&away, true);
    submit(x, MANY, false);
    UNTIL(atomic_load(&answered) == MANY);
    while (leading) {
        pthread_mutex_lock(&x->b.lock);
        leading = x->b.leading;
        pthread_mutex_unlock(&x->b.lock);
        rt_breathe();
    }
    assert_int_equal(x->b.callers, 0);
    tear_down(x);
}

/* ---- a store that waits for another process ---- */

enum { THREADS = 4, CALLS = 200 };

static weir_code run_near(weir_store *s, weir_op **ops, size_t n, weir_error *err)
{
    (void)s, (void)ops, (void)err;
    rt_breathe();                       /* so that the other callers gather */
    atomic_fetch_add(&batches, 1);
    atomic_fetch_add(&answered, n);
    return WEIR_OK;
}

static const weir_store_ops near_ops = { .name = "near", .run = run_near };

static void *call_often(void *arg)
{
    weir_batcher *b = arg;
    for (int i = 0; i < CALLS; i++) {
        weir_ticket t = { .op = { .kind = WEIR_OP_STATS } };
        assert_int_equal(weir__batcher_run(b, &t), WEIR_OK);
    }
    return NULL;
}

/* No thread of the batcher is needed: each caller hands over to the next. */
static void callers_lead_in_turn(void **state)
{
    (void)state;
    bench    *x = set_up();
    pthread_t thread[THREADS];
    x->store = (weir_store){ .ops = &near_ops, .waits = true };
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, call_often, &x->b), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(atomic_load(&answered), THREADS * CALLS);
    assert_false(x->b.started);
    tear_down(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_are_waited_for),
        cmocka_unit_test(others_are_not),
        cmocka_unit_test(nobody_is_waited_for_when_the_store_is_away),
        cmocka_unit_test(callers_lead_in_turn),
    };
    return cmocka_run_group_tests_name("batcher", tests, NULL, NULL);
}
