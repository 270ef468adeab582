/* test_runtime_compose.c - several futures as one: all, any, a chain. */
#include <string.h>

#include "support/runtime_fixture.h"

/* A future that ends when the test says so: of a job that is waited for. */
static weir_future *waiting_for(rt *t, uint64_t id)
{
    weir_future *f;
    OK(weir_wait_async(t->q, id, NULL, &f, &t->err));
    return f;
}

static void end_job(rt *t, uint64_t id)
{
    OK(weir_cancel(t->q, id, &t->err));
}

RT_TEST(all_are_waited_for)
{
    enum { N = 3 };
    uint64_t     id[N];
    weir_future *f[N], *all;
    for (int i = 0; i < N; i++) {
        id[i] = rt_add_type(t, "mail");
        f[i] = waiting_for(t, id[i]);
    }
    OK(weir_future_all(f, N, &all, &t->err));
    end_job(t, id[2]);
    end_job(t, id[0]);
    OK(weir_future_wait(f[2], PATIENCE_MS, &t->err));
    OK(weir_future_wait(f[0], PATIENCE_MS, &t->err));
    assert_false(weir_future_done(all));
    end_job(t, id[1]);
    OK(weir_future_wait(all, PATIENCE_MS, &t->err));
    for (int i = 0; i < N; i++) {
        assert_true(weir_future_done(f[i]));
        weir_future_free(f[i]);
    }
    weir_future_free(all);
}

RT_TEST(the_first_error_in_order)
{
    weir_future *f[3], *all;
    OK(weir_remove_async(t->q, 1001, &f[0], &t->err));
    OK(weir_get_stats_async(t->q, NULL, &f[1], &t->err));
    OK(weir_cancel_async(t->q, 1002, &f[2], &t->err));
    OK(weir_future_all(f, 3, &all, &t->err));
    for (int i = 0; i < 3; i++)
        weir_future_free(f[i]);                      /* the combination keeps what it needs */
    assert_int_equal(weir_future_wait(all, PATIENCE_MS, &t->err), WEIR_ENOENT);
    assert_non_null(strstr(t->err.msg, "1001"));
    weir_future_free(all);
}

RT_TEST(one_is_enough)
{
    uint64_t     a = rt_add_type(t, "mail"), b = rt_add_type(t, "mail");
    weir_future *f[2] = { waiting_for(t, a), waiting_for(t, b) }, *any;
    size_t       which = 99;
    OK(weir_future_any(f, 2, &which, &any, &t->err));
    assert_false(weir_future_done(any));
    end_job(t, b);
    OK(weir_future_wait(any, PATIENCE_MS, &t->err));
    assert_int_equal(which, 1);
    assert_false(weir_future_done(f[0]));
    weir_future_free(any);
    end_job(t, a);                                      /* the other one ends when nobody cares */
    OK(weir_future_wait(f[0], PATIENCE_MS, &t->err));
    weir_future_free(f[0]);
    weir_future_free(f[1]);
}

RT_TEST(one_that_fails_is_enough_too)
{
    uint64_t     a = rt_add_type(t, "mail");
    weir_future *f[2] = { waiting_for(t, a), NULL }, *any;
    size_t       which = 99;
    OK(weir_remove_async(t->q, 1001, &f[1], &t->err));
    OK(weir_future_any(f, 2, &which, &any, &t->err));
    assert_int_equal(weir_future_wait(any, PATIENCE_MS, &t->err), WEIR_ENOENT);
    assert_int_equal(which, 1);
    weir_future_free(any);
    end_job(t, a);
    weir_future_free(f[0]);
    weir_future_free(f[1]);
}

/* ---- chains ---- */

typedef struct step {
    rt          *t;
    weir_added   added;
    weir_job    *job;
    _Atomic int  called;
    bool         refuse, stop;
} step;

static weir_code get_it(weir_future **next, void *ctx, weir_error *err)
{
    step *s = ctx;
    s->called++;
    if (s->refuse)
        return weir_fail(err, WEIR_EINVAL, "not this one");
    if (s->stop)
        return WEIR_OK;
    return weir_get_async(s->t->q, s->added.id, &s->job, next, err);
}

static weir_code cancel_it(weir_future **next, void *ctx, weir_error *err)
{
    step *s = ctx;
    s->called++;
    return weir_cancel_async(s->t->q, s->job->id, next, err);
}

RT_TEST(one_call_after_the_other)
{
    step         s = { .t = t };
    weir_future *add, *get, *cancel;
    OK(weir_add_async(t->q, &(weir_spec){ .type = "mail" }, &s.added, &add, &t->err));
    OK(weir_future_chain(add, get_it, &s, &get, &t->err));
    OK(weir_future_chain(get, cancel_it, &s, &cancel, &t->err));
    weir_future_free(get);                           /* its chain goes on */
    OK(weir_future_wait(cancel, PATIENCE_MS, &t->err));
    assert_int_equal(s.called, 2);
    assert_int_equal(s.job->id, s.added.id);
    assert_int_equal(rt_state(t, s.job->id), WEIR_STATE_CANCELLED);
    weir_job_free(s.job);
    weir_future_free(add);
    weir_future_free(cancel);
}

RT_TEST(a_chain_that_breaks)
{
    step         s = { .t = t };
    weir_future *f, *after;
    OK(weir_remove_async(t->q, 1001, &f, &t->err));
    OK(weir_future_chain(f, get_it, &s, &after, &t->err));
    assert_int_equal(weir_future_wait(after, PATIENCE_MS, &t->err), WEIR_ENOENT);
    assert_int_equal(s.called, 0);
    weir_future_free(after);
    weir_future_free(f);

    s.refuse = true;
    OK(weir_add_async(t->q, &(weir_spec){ .type = "mail" }, &s.added, &f, &t->err));
    OK(weir_future_chain(f, get_it, &s, &after, &t->err));
    assert_int_equal(weir_future_wait(after, PATIENCE_MS, &t->err), WEIR_EINVAL);
    assert_string_equal(t->err.msg, "not this one");
    weir_future_free(after);

    s.refuse = false;
    s.stop = true;                                      /* f is done: the chain starts at once */
    OK(weir_future_chain(f, get_it, &s, &after, &t->err));
    OK(weir_future_wait(after, PATIENCE_MS, &t->err));
    assert_int_equal(s.called, 2);
    weir_future_free(after);
    weir_future_free(f);
}

RT_TEST(many_threads_end_one_combination)
{
    enum { N = 200 };
    weir_future *f[N], *all, *any, *both;
    for (int i = 0; i < N; i++)
        OK(weir_add_async(t->q, &(weir_spec){ .type = "mail" }, NULL, &f[i], &t->err));
    OK(weir_future_all(f, N, &all, &t->err));
    OK(weir_future_any(f, N, NULL, &any, &t->err));
    OK(weir_future_all((weir_future *[]){ all, any }, 2, &both, &t->err));
    for (int i = 0; i < N; i++)
        weir_future_free(f[i]);
    weir_future_free(all);
    weir_future_free(any);
    OK(weir_future_wait(both, PATIENCE_MS, &t->err));
    assert_int_equal(rt_count(t, WEIR_STATE_INACTIVE), N);
    weir_future_free(both);
}

RT_TEST(none_is_refused)
{
    weir_future *f = (weir_future *)t;
    assert_int_equal(weir_future_all(NULL, 0, &f, &t->err), WEIR_EINVAL);
    assert_null(f);
    assert_int_equal(weir_future_any(NULL, 0, NULL, &f, &t->err), WEIR_EINVAL);
    assert_string_equal(t->err.msg, "any: no futures given");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_waited_for),
        cmocka_unit_test(the_first_error_in_order),
        cmocka_unit_test(one_is_enough),
        cmocka_unit_test(one_that_fails_is_enough_too),
        cmocka_unit_test(one_call_after_the_other),
        cmocka_unit_test(a_chain_that_breaks),
        cmocka_unit_test(many_threads_end_one_combination),
        cmocka_unit_test(none_is_refused),
    };
    return cmocka_run_group_tests_name("runtime_compose", tests, NULL, NULL);
}
