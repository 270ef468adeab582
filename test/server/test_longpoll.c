/* test_longpoll.c - who is woken when jobs come: by hand, on a loop that stands still while things
 * happen, so that every order can be had. */
#include <stdlib.h>

#include "server/live/longpoll.h"
#include "support/runtime_fixture.h"

enum { MAX_POLLS = 3 };

typedef struct poller {
    srv_longpoll poll;            /* first: it is found by it */
    atomic_int looked;          /* times it was told to look */
    size_t     leaves;          /* when it is, it leaves with so many; STAYS: it does not */
} poller;

#define STAYS (SIZE_MAX - 1)

typedef struct rig {
    rt           t;
    srv_loop    *loop;
    srv_longpolls *polls;
    srv_counters counters;
    record      *events;        /* called after the polls */
    size_t       n_events;
    poller       p[MAX_POLLS];
} rig;

static void look(srv_longpoll *poll)
{
    poller *p = (poller *)poll;
    p->looked++;
    if (p->leaves != STAYS)
        srv_longpoll_leave(poll, p->leaves);
}

static rig *start(void)
{
    rig *r = calloc(1, sizeof *r);
    assert_non_null(r);
    rt *t = &r->t;
    rt_open(t, RT_MEM, true);
    OK(srv_loop_create(&r->loop, "test", &t->err));
    OK(srv_longpolls_create(&r->polls, t->q, &r->counters, &t->err));
    r->events = record_start(t, NULL);
    return r;
}

static void stop(rig *r)
{
    assert_int_equal(r->counters.takes_waiting, 0);
    srv_loop_destroy(r->loop);
    srv_longpolls_destroy(r->polls);
    record_stop(r->events);
    rt_check_and_close(&r->t);
    free(r);
}

/* Have it run on the loop, and wait. */
static void on_loop(rig *r, void (*fn)(void *ctx))
{
    srv_loop_call(r->loop, fn, r);
}

/* n jobs, and the polls have heard of them. */
static void add(rig *r, const char *type, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rt_add_type(&r->t, type);
    r->n_events += n;
    record_until(r->events, WEIR_EVENT_ENQUEUE, r->n_events);
}

static const char *const mail[] = { "mail", NULL }, *const both[] = { "sms", "mail", NULL };

static poller *enter(rig *r, int i, const char *const *types, size_t n, size_t leaves)
{
    r->p[i] = (poller){ .poll = { .loop = r->loop, .types = types, .n = n, .look = look },
                        .leaves = leaves };
    assert_true(srv_longpoll_enter(r->polls, &r->p[i].poll));
    return &r->p[i];
}

/* Come, look, find nothing, rest. */
static void rest(rig *r, int i, const char *const *types, size_t n, size_t leaves)
{
    assert_true(srv_longpoll_rest(&enter(r, i, types, n, leaves)->poll));
}

static void nothing(void *ctx)
{
    (void)ctx;
}

/* How often each was told to look. */
static void looked(rig *r, int a, int b, int c)
{
    on_loop(r, nothing);        /* what was posted before has run ... */
    on_loop(r, nothing);        /* ... and what that has posted */
    assert_int_equal(r->p[0].looked, a);
    assert_int_equal(r->p[1].looked, b);
    assert_int_equal(r->p[2].looked, c);
}

static void two_picky_ones_and_one(void *ctx)
{
    rig *r = ctx;
    for (int i = 0; i < MAX_POLLS; i++) {
        enter(r, i, mail, 1, i < 2 ? STAYS : 1)->poll.picky = i < 2;
        assert_true(srv_longpoll_rest(&r->p[i].poll));
    }
}

static void leave_rest(void *ctx)
{
    rig *r = ctx;
    for (int i = 0; i < MAX_POLLS; i++)
        if (r->p[i].poll.place)
            srv_longpoll_leave(&r->p[i].poll, 0);
}

/* ---- a job that comes while one looks ---- */

static void comes_while_looking(void *ctx)
{
    rig    *r = ctx;
    poller *p = enter(r, 0, both, 1, 1);
    add(r, "other", 1);
    assert_true(srv_longpoll_rest(&p->poll));
    srv_longpoll_leave(&p->poll, 0);
    p = enter(r, 0, both, 1, 1);
    add(r, "mail", 1);
    assert_false(srv_longpoll_rest(&p->poll));  /* look again */
    assert_true(srv_longpoll_rest(&p->poll));
    add(r, "sms", 1);
}

static void a_job_that_comes_meanwhile_is_not_missed(void **state)
{
    (void)state;
    rig *r = start();
    on_loop(r, comes_while_looking);
    looked(r, 1, 0, 0);
    stop(r);
}

/* ---- how many are woken ---- */

static void three_rest(void *ctx)
{
    rig *r = ctx;
    rest(r, 0, mail, 3, 3);
    rest(r, 1, both, 1, 1);
    rest(r, 2, mail, 1, 1);
    add(r, "mail", 3);
}

static void four_come(void *ctx)
{
    rig *r = ctx;
    rest(r, 0, mail, 3, 3);
    add(r, "mail", 3);
    add(r, "sms", 1);
}

static void one_is_counted_on_for_all_it_wants(void **state)
{
    (void)state;
    rig *r = start();
    on_loop(r, three_rest);
    looked(r, 1, 0, 0);
    on_loop(r, four_come);          /* the second has waited longest now, then the third */
    looked(r, 1, 1, 1);
    on_loop(r, leave_rest);
    stop(r);
}

/* ---- who has waited longest ---- */

static void first_looks_in_vain(void *ctx)
{
    rig *r = ctx;
    rest(r, 0, mail, 1, STAYS);
    rest(r, 1, mail, 1, 1);
    rest(r, 2, mail, 1, 1);
    add(r, "mail", 1);
}

static void first_rests_again(void *ctx)
{
    rig *r = ctx;
    assert_true(srv_longpoll_rest(&r->p[0].poll));
    r->p[0].leaves = 1;
    add(r, "mail", 1);
}

static void who_looked_in_vain_keeps_its_place(void **state)
{
    (void)state;
    rig *r = start();
    on_loop(r, first_looks_in_vain);
    looked(r, 1, 0, 0);
    on_loop(r, first_rests_again);
    looked(r, 2, 0, 0);
    on_loop(r, leave_rest);
    stop(r);
}

/* ---- a wake that is not used ---- */

static void woken_one_goes(void *ctx)
{
    rig *r = ctx;
    rest(r, 0, mail, 1, 1);
    rest(r, 1, both, 1, SRV_LONGPOLL_FAILED);
    rest(r, 2, mail, 1, 1);
    add(r, "mail", 1);
    assert_int_equal(r->p[0].poll.state, SRV_LONGPOLL_WOKEN);
    srv_longpoll_leave(&r->p[0].poll, 0);   /* its time was up */
}

static void a_wake_that_is_not_used_is_passed_on(void **state)
{
    (void)state;
    rig *r = start();
    on_loop(r, woken_one_goes);
    looked(r, 0, 1, 1);                     /* the second could not look */
    stop(r);
}

/* ---- nobody knows how many ---- */

static void resume(void *ctx)
{
    rig *r = ctx;
    rt  *t = &r->t;
    rest(r, 0, mail, 2, 2);
    rest(r, 1, mail, 2, 1);
    rest(r, 2, mail, 2, 0);
    OK(weir_pause(t->q, "mail", &t->err));
    OK(weir_resume(t->q, "mail", &t->err));
    record_until(r->events, WEIR_EVENT_RESUME, 1);
}

static void one_wakes_the_next_as_long_as_there_are_jobs(void **state)
{
    (void)state;
    rig *r = start();
    on_loop(r, resume);
    looked(r, 1, 1, 0);                     /* the second got less than it wanted: that was all */
    on_loop(r, leave_rest);
    stop(r);
}

/* Those with a condition may leave the job: who stands behind them is woken, too. */
static void a_picky_one_is_not_counted_on(void **state)
{
    (void)state;
    rig *r = start();
    on_loop(r, two_picky_ones_and_one);
    add(r, "mail", 1);
    looked(r, 1, 1, 1);
    on_loop(r, leave_rest);
    stop(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_that_comes_meanwhile_is_not_missed),
        cmocka_unit_test(one_is_counted_on_for_all_it_wants),
        cmocka_unit_test(who_looked_in_vain_keeps_its_place),
        cmocka_unit_test(a_wake_that_is_not_used_is_passed_on),
        cmocka_unit_test(one_wakes_the_next_as_long_as_there_are_jobs),
        cmocka_unit_test(a_picky_one_is_not_counted_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
