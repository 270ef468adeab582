/* test_gate.c - which jobs one worker process may have side by side. */
#include "support/runtime_fixture.h"

#include "core/gate.h"
#include "runtime/pool_inner.h"

enum { T0 = 1000 };

static void takes(weir_gate *g, bool *knows, weir_pass want, weir_gate_answer a)
{
    weir_pass pass = weir__gate_enter(g, *knows, false, T0);
    assert_int_equal(pass, want);
    if (pass)
        assert_true(weir__gate_answered(g, pass, a, knows, T0));
}

static void without_suspects_nobody_waits(void **state)
{
    (void)state;
    weir_gate g = { 0 };
    bool      a = false, b = false;
    takes(&g, &a, WEIR__PASS_BUSY, (weir_gate_answer){ .n = 8 });
    takes(&g, &b, WEIR__PASS_BUSY, (weir_gate_answer){ .n = 3 });
    assert_int_equal(g.held, 11);
    weir__gate_left(&g, 11, false);
    assert_false(weir__gate_opened(&g, T0));
    assert_false(a || b);
}

static void who_knows_of_a_suspect_takes_it_when_nothing_is_held(void **state)
{
    (void)state;
    weir_gate g = { 0 };
    bool      a = false, b = false;
    takes(&g, &a, WEIR__PASS_BUSY, (weir_gate_answer){ .n = 2, .waits = true });
    assert_true(a);
    takes(&g, &b, WEIR__PASS_NONE, (weir_gate_answer){ 0 });
    takes(&g, &a, WEIR__PASS_NONE, (weir_gate_answer){ 0 });
    weir__gate_left(&g, 1, false);
    assert_false(weir__gate_opened(&g, T0));
    weir__gate_left(&g, 1, false);
    assert_true(weir__gate_opened(&g, T0));
    assert_false(weir__gate_opened(&g, T0));            /* said once */
    takes(&g, &b, WEIR__PASS_NONE, (weir_gate_answer){ 0 });     /* it is the other's turn */
    assert_int_equal(weir__gate_enter(&g, a, false, T0), WEIR__PASS_ALONE);
    takes(&g, &b, WEIR__PASS_NONE, (weir_gate_answer){ 0 });     /* nor while that asks */
    assert_true(weir__gate_answered(&g, WEIR__PASS_ALONE,
                                    (weir_gate_answer){ .n = 1, .suspect = true }, &a, T0));
    assert_false(a);
    takes(&g, &b, WEIR__PASS_NONE, (weir_gate_answer){ 0 });     /* nor while it runs */
    takes(&g, &a, WEIR__PASS_NONE, (weir_gate_answer){ 0 });
    weir__gate_left(&g, 1, true);
    assert_true(weir__gate_opened(&g, T0));
    takes(&g, &b, WEIR__PASS_BUSY, (weir_gate_answer){ .n = 1 });
}

static void another_process_had_it_first(void **state)
{
    (void)state;
    weir_gate g = { 0 };
    bool      a = false;
    takes(&g, &a, WEIR__PASS_BUSY, (weir_gate_answer){ .waits = true });
    takes(&g, &a, WEIR__PASS_ALONE, (weir_gate_answer){ .n = 5 });
    assert_false(a || g.alone);
    takes(&g, &a, WEIR__PASS_BUSY, (weir_gate_answer){ .n = 1 });
}

static void a_store_in_trouble_is_asked_again(void **state)
{
    (void)state;
    weir_gate g = { 0 };
    bool      a = false;
    takes(&g, &a, WEIR__PASS_BUSY, (weir_gate_answer){ .waits = true });
    takes(&g, &a, WEIR__PASS_ALONE, (weir_gate_answer){ .failed = true });
    assert_true(a && !g.alone);
    takes(&g, &a, WEIR__PASS_ALONE, (weir_gate_answer){ .n = 1, .suspect = true });
}

static void closed_and_open_in_turns(void **state)
{
    (void)state;
    weir_gate g = { 0 };
    bool      a = false, b = false;
    int64_t   now = T0, phase = WEIR__GATE_FIRST_MS;
    takes(&g, &a, WEIR__PASS_BUSY, (weir_gate_answer){ .n = 1, .waits = true });
    for (int i = 0; i < 5; i++, phase *= 2) {
        assert_int_equal(weir__gate_enter(&g, b, false, now + phase - 1), WEIR__PASS_NONE);
        now += phase;
        assert_true(weir__gate_opened(&g, now));
        assert_int_equal(weir__gate_enter(&g, b, false, now), WEIR__PASS_BUSY);
        assert_true(weir__gate_answered(&g, WEIR__PASS_BUSY, (weir_gate_answer){ .waits = true },
                                        &b, now));
        assert_int_equal(weir__gate_enter(&g, a, true, now), WEIR__PASS_NONE);
        now += phase;
    }
    weir__gate_forget(&g, &a);
    weir__gate_forget(&g, &b);
    assert_int_equal(g.knowing, 0);
    assert_int_equal(weir__gate_enter(&g, a, false, now), WEIR__PASS_BUSY);
}

static void by_hand(void **state)
{
    (void)state;
    weir_gate g = { 0 };
    assert_int_equal(weir__gate_enter_by_hand(&g, T0), WEIR__PASS_BY_HAND);
    assert_int_equal(weir__gate_enter_by_hand(&g, T0), WEIR__PASS_BUSY);
    assert_true(weir__gate_answered(&g, WEIR__PASS_BUSY, (weir_gate_answer){ .n = 1 }, NULL, T0));
    assert_false(weir__gate_answered(&g, WEIR__PASS_BY_HAND,       /* not beside the other */
                                     (weir_gate_answer){ .n = 1, .suspect = true }, NULL, T0));
    assert_int_equal(g.held, 1);
    assert_int_equal(weir__gate_enter_by_hand(&g, T0), WEIR__PASS_NONE);
    weir__gate_left(&g, 1, false);
    assert_int_equal(weir__gate_enter_by_hand(&g, T0), WEIR__PASS_BY_HAND);
    assert_true(weir__gate_answered(&g, WEIR__PASS_BY_HAND,
                                    (weir_gate_answer){ .n = 1, .suspect = true }, NULL, T0));
    assert_int_equal(weir__gate_enter_by_hand(&g, T0), WEIR__PASS_NONE);
    weir__gate_left(&g, 1, true);
    assert_int_equal(weir__gate_enter_by_hand(&g, T0), WEIR__PASS_BY_HAND);
}

static void by_hand_one_may_never_come_again(void **state)
{
    (void)state;
    weir_gate g = { 0 };
    bool      a = false;
    takes(&g, &a, WEIR__PASS_BUSY, (weir_gate_answer){ .n = 1 });
    assert_int_equal(weir__gate_enter_by_hand(&g, T0), WEIR__PASS_BUSY);
    weir__gate_answered(&g, WEIR__PASS_BUSY, (weir_gate_answer){ .waits = true }, NULL, T0);
    takes(&g, &a, WEIR__PASS_NONE, (weir_gate_answer){ 0 });
    assert_int_equal(weir__gate_enter(&g, a, false, T0 + WEIR__GATE_FIRST_MS), WEIR__PASS_BUSY);
    assert_int_equal(g.knowing, 0);
}

/* Threads of a pool get their answers in one order and learn from them in another. However that is,
 * suspects that wait are asked for. */
static void answers_are_learned_late(void **state)
{
    (void)state;
    rt           box, *t = &box;
    weir_job     suspect = { .lost = 1 }, *jobs[] = { &suspect };
    weir_op_take waits = { .n = 1, .busy = true, .suspect_waits = true };
    weir_op_take gets = { .n = 1, .n_jobs = 1, .jobs = jobs }, gets_none = { .n = 1 };
    rt_open(t, RT_MEM, false);

    pool     p = { .q = t->q, .hint = 1 };
    question first = weir__pool_ask(&p);
    assert_int_equal(weir__pool_enter(&p), WEIR__PASS_BUSY);
    weir__queue_answered(t->q, WEIR__PASS_BUSY, &waits, &p.knows);
    assert_int_equal(weir__pool_enter(&p), WEIR__PASS_ALONE);
    weir__queue_answered(t->q, WEIR__PASS_ALONE, &gets, &p.knows);
    weir__pool_learn(&p, first, &gets, true);
    weir__pool_learn(&p, first, &waits, false);
    weir__queue_left(t->q, &suspect);
    assert_int_equal(weir__pool_enter(&p), WEIR__PASS_BUSY);
    weir__queue_answered(t->q, WEIR__PASS_BUSY, &waits, &p.knows);
    weir__pool_learn(&p, first, &waits, false);

    /* Another process was quicker; then there is one more. */
    assert_int_equal(weir__pool_enter(&p), WEIR__PASS_ALONE);
    weir__queue_answered(t->q, WEIR__PASS_ALONE, &gets_none, &p.knows);
    p.hint = 1;
    assert_int_equal(weir__pool_enter(&p), WEIR__PASS_BUSY);
    weir__queue_answered(t->q, WEIR__PASS_BUSY, &waits, &p.knows);
    weir__pool_learn(&p, first, &waits, false);
    weir__pool_learn(&p, first, &gets_none, false);
    assert_int_equal(weir__pool_enter(&p), WEIR__PASS_ALONE);
    weir__queue_answered(t->q, WEIR__PASS_ALONE, &gets_none, &p.knows);
    rt_check_and_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_suspects_nobody_waits),
        cmocka_unit_test(who_knows_of_a_suspect_takes_it_when_nothing_is_held),
        cmocka_unit_test(another_process_had_it_first),
        cmocka_unit_test(a_store_in_trouble_is_asked_again),
        cmocka_unit_test(closed_and_open_in_turns),
        cmocka_unit_test(by_hand),
        cmocka_unit_test(by_hand_one_may_never_come_again),
        cmocka_unit_test(answers_are_learned_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
