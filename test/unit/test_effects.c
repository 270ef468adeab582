/* test_effects.c - what follows a transition, and the order in which a TICK does what is due. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/tick.h"

enum { T0 = 1000000 };

/* ---- effects ---- */

static void write_events(char *out, size_t size, const weir_effects *e, const weir_job *j)
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < e->n_events; i++) {
        weir_event event;
        weir__effects_event(e, i, j, T0, &event);
        assert_int_equal(event.state, e->to);
        assert_int_equal(event.id, j->id);
        len += (size_t)snprintf(out + len, size - len, "%s%s", i ? " " : "",
                                weir_event_name(event.kind));
        if (event.text)
            len += (size_t)snprintf(out + len, size - len, "=%.*s", (int)event.text_len,
                                    event.text);
    }
}

static void check(weir_effects *e, const weir_job *j, weir_state from, weir_state to,
                  const char *events, const char *log)
{
    char text[300];
    assert_true(weir__effects_ok(e));
    assert_int_equal(e->from, from);
    assert_int_equal(e->to, to);
    write_events(text, sizeof text, e, j);
    assert_string_equal(text, events);
    if (log)
        assert_string_equal(e->log.data, log);
    else
        assert_int_equal(e->log.len, 0);
    weir__effects_fini(e);
}

static weir_job fresh(weir_spec spec)
{
    weir_job j;
    spec.type = "mail";
    weir__job_init(&j, &spec, 7, T0);
    return j;
}

static weir_job taken(weir_spec spec)
{
    weir_job     j = fresh(spec);
    weir_effects e;
    weir__job_take(&j, "w", 30, T0, &e);
    return j;
}

static void a_job_that_comes_goes_and_is_taken(void **state)
{
    (void)state;
    weir_effects e;
    weir_job     j = fresh((weir_spec){ .unique = "k" });
    weir__job_added(&j, &e);
    assert_true(e.takes_key && !e.frees_key);
    check(&e, &j, WEIR_STATE_ANY, WEIR_STATE_INACTIVE, "enqueue", NULL);
    weir__job_take(&j, "w", 30, T0, &e);
    assert_true(!e.takes_key && !e.frees_key && weir__effects_start(&e));
    assert_int_equal(e.texts, WEIR__NEW(worker) | WEIR__NEW(progress_data));
    check(&e, &j, WEIR_STATE_INACTIVE, WEIR_STATE_ACTIVE, "start=w", NULL);
    weir__job_progress(&j, 5, "[1]", 3, T0, &e);
    check(&e, &j, WEIR_STATE_ACTIVE, WEIR_STATE_ACTIVE, "progress=[1]", NULL);
    weir__job_remove(&j, &e);
    assert_true(e.frees_key && weir__effects_end(&e));
    check(&e, &j, WEIR_STATE_ACTIVE, WEIR_STATE_ANY, "remove", NULL);
    j = fresh((weir_spec){ .delay_ms = 9 });
    weir__job_added(&j, &e);
    check(&e, &j, WEIR_STATE_ANY, WEIR_STATE_DELAYED, "", NULL);
    weir__job_promote(&j, T0 + 9, &e);
    check(&e, &j, WEIR_STATE_DELAYED, WEIR_STATE_INACTIVE, "promotion enqueue", NULL);
}

static void a_delivery_that_ends(void **state)
{
    (void)state;
    weir_effects e;
    weir_job     j = taken((weir_spec){ .unique = "k" });
    weir__job_finish(&j, WEIR_OUTCOME_DONE, "[2]", 3, 0, T0 + 40, &e);
    assert_true(e.frees_key && e.completed == 1 && e.failed == 0 && e.work_ms == 40);
    check(&e, &j, WEIR_STATE_ACTIVE, WEIR_STATE_COMPLETE, "complete=[2]", NULL);
    j = taken((weir_spec){ .remove_on_complete = true });
    weir__job_finish(&j, WEIR_OUTCOME_DONE, NULL, 0, 0, T0, &e);
    check(&e, &j, WEIR_STATE_ACTIVE, WEIR_STATE_ANY, "complete", NULL);
    j = taken((weir_spec){ .attempts = 2 });
    weir__job_finish(&j, WEIR_OUTCOME_FAIL, "no!", 2, 0, T0, &e);
    assert_true(e.failed == 1 && e.texts == (WEIR__NEW(error) | WEIR__NEW(history)));
    check(&e, &j, WEIR_STATE_ACTIVE, WEIR_STATE_INACTIVE, "failed_attempt=no enqueue",
          "error | no");
    j = taken((weir_spec){ .attempts = 2, .backoff = { WEIR_BACKOFF_FIXED, .delay_ms = 5 } });
    weir__job_finish(&j, WEIR_OUTCOME_FAIL, "no", 2, 0, T0, &e);
    check(&e, &j, WEIR_STATE_ACTIVE, WEIR_STATE_DELAYED, "failed_attempt=no", "error | no");
    j = taken((weir_spec){ 0 });
    weir__job_finish(&j, WEIR_OUTCOME_FAIL, "no", 2, 0, T0, &e);
    check(&e, &j, WEIR_STATE_ACTIVE, WEIR_STATE_FAILED, "failed=no", "error | no");
    j = taken((weir_spec){ 0 });
    weir__job_finish(&j, WEIR_OUTCOME_RETURN, NULL, 0, 0, T0, &e);
    assert_int_equal(e.failed, 0);
    check(&e, &j, WEIR_STATE_ACTIVE, WEIR_STATE_INACTIVE, "enqueue", NULL);
    j = taken((weir_spec){ 0 });
    weir__job_finish(&j, WEIR_OUTCOME_RETURN, NULL, 0, 500, T0, &e);
    check(&e, &j, WEIR_STATE_ACTIVE, WEIR_STATE_DELAYED, "", NULL);
    j = taken((weir_spec){ .max_lost = 1 });
    j.lost = 1;
    weir__job_finish(&j, WEIR_OUTCOME_LOST, NULL, 0, 0, T0, &e);
    assert_int_equal(e.failed, 0);
#define LOST "stalled | worker w was lost, and 1 before it: not tried again"
    check(&e, &j, WEIR_STATE_ACTIVE, WEIR_STATE_FAILED, "stalled failed=" LOST, LOST);
}

static void what_time_does(void **state)
{
    (void)state;
    weir_effects e;
    weir_job     j = taken((weir_spec){ 0 });
    weir__job_come_due(&j, WEIR_DUE_LEASE, T0, &e);
    check(&e, &j, WEIR_STATE_ACTIVE, WEIR_STATE_INACTIVE, "stalled enqueue",
          "stalled | worker w was lost (1 of 3)");
    j = taken((weir_spec){ .attempts = 2 });
    weir__job_come_due(&j, WEIR_DUE_TTL, T0, &e);
    assert_int_equal(e.failed, 1);
    check(&e, &j, WEIR_STATE_ACTIVE, WEIR_STATE_INACTIVE,
          "ttl_exceeded failed_attempt=TTL exceeded enqueue", "error | TTL exceeded");
    j = fresh((weir_spec){ .delay_ms = 5, .deadline_at = T0 + 3 });
    weir__job_come_due(&j, WEIR_DUE_WAITING, T0 + 3, &e);
    assert_int_equal(e.failed, 0);
    check(&e, &j, WEIR_STATE_DELAYED, WEIR_STATE_FAILED, "failed=Deadline exceeded",
          "error | Deadline exceeded");
}

static void what_people_do(void **state)
{
    (void)state;
    static const struct {
        weir_change change;
        weir_state  to;
        const char *events, *log;
        uint32_t    texts;
    } cases[] = {
        { { .state = WEIR_STATE_INACTIVE }, WEIR_STATE_INACTIVE, "promotion enqueue", NULL, 0 },
        { { .state = WEIR_STATE_CANCELLED }, WEIR_STATE_CANCELLED, "cancelled", NULL, 0 },
        { { .state = WEIR_STATE_COMPLETE }, WEIR_STATE_COMPLETE, "complete", NULL,
          WEIR__NEW(error) },
        { { .state = WEIR_STATE_FAILED }, WEIR_STATE_FAILED, "failed=Failed by hand",
          "error | Failed by hand", WEIR__NEW(error) | WEIR__NEW(result) },
        { { .state = WEIR_STATE_ACTIVE, .worker = "me", .lease_ms = 9 }, WEIR_STATE_ACTIVE,
          "start=me", NULL, WEIR__NEW(worker) | WEIR__NEW(progress_data) },
        { { .data = "[]" }, WEIR_STATE_DELAYED, "", NULL, WEIR__NEW(data) },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weir_effects e;
        weir_job     j = fresh((weir_spec){ .delay_ms = 5 });
        assert_int_equal(weir__job_update(&j, &cases[i].change, 0, T0, &e, NULL), WEIR_OK);
        assert_int_equal(e.texts, cases[i].texts | WEIR__NEW(history));
        check(&e, &j, WEIR_STATE_DELAYED, cases[i].to, cases[i].events, cases[i].log);
    }
}

/* ---- a TICK ---- */

typedef struct fake {
    char      said[400];
    uint64_t  n_finished;
    weir_keep keep;
    size_t    fail_at;              /* the change that fails; 0: none */
    size_t    changes;
} fake;

static void say(fake *f, const char *what, unsigned long long n)
{
    size_t len = strlen(f->said);
    snprintf(f->said + len, sizeof f->said - len, "%s%s %llu", len ? ", " : "", what, n);
}

static weir_code find(void *store, weir_due sort, int64_t now, size_t limit, weir_due_list *list)
{
    (void)store;
    (void)now;
    static const uint64_t ids[] = { 9, 4, 6 };
    for (size_t i = 0; i < 3 && (sort != WEIR_DUE_WAITING || i < limit); i++)
        assert_true(weir__due_add(list, 10 * (uint64_t)sort + ids[i]));
    return WEIR_OK;
}

static weir_code change(void *store, weir_due sort, uint64_t id, int64_t now)
{
    fake *f = store;
    assert_int_equal(id / 10, sort);
    assert_int_equal(now, T0);
    if (++f->changes == f->fail_at)
        return WEIR_EFULL;
    say(f, "change", id);
    return WEIR_OK;
}

static int64_t earliest(void *store, weir_due sort)
{
    say(store, "earliest", sort);
    return sort == WEIR_DUE_TOKENS ? INT64_MAX : T0 + 10 * sort;
}

static bool kept(void *store, size_t i, weir_state state, weir_kept *out)
{
    fake *f = store;
    *out = (weir_kept){ &f->keep, state == WEIR_STATE_FAILED ? f->n_finished : 0 };
    return i == 0;
}

static uint64_t oldest(void *store, size_t i, weir_state state, int64_t *finished_at)
{
    (void)store;
    assert_int_equal(i, 0);
    assert_int_equal(state, WEIR_STATE_FAILED);
    *finished_at = T0 - 5;
    return 77;
}

static weir_code remove_one(void *store, uint64_t id, int64_t now)
{
    fake *f = store;
    (void)now;
    f->n_finished--;
    say(f, "remove", id);
    return WEIR_OK;
}

static weir_code forget_tokens(void *store, int64_t until, size_t limit, size_t *n)
{
    assert_int_equal(until, T0 - WEIR_TOKEN_MS);
    say(store, "tokens", limit);
    *n = 0;
    return WEIR_OK;
}

static const weir_tick_ops ops = {
    .find = find,       .change = change,   .earliest = earliest, .kept = kept,
    .oldest = oldest,   .remove = remove_one, .forget_tokens = forget_tokens,
};

static void a_tick_does_all_in_order(void **state)
{
    (void)state;
    weir_agenda a;
    fake        f = { .n_finished = 3, .keep = { .count = 1 } };
    size_t      changed;
    int64_t     next_at;
    bool        due;
    weir__agenda_init(&a);
    weir__agenda_doubt(&a);
    assert_int_equal(weir__tick_run(&a, &ops, &f, T0, 2, &changed, &next_at, &due), WEIR_OK);
    assert_string_equal(f.said, "change 14, change 16, earliest 1, change 24, change 26,"
                                " earliest 2, change 39, change 34, earliest 3, remove 77,"
                                " remove 77, tokens 2, earliest 5, earliest 6");
    assert_int_equal(changed, 8);
    assert_int_equal(next_at, T0 + 10);
    f.said[0] = '\0';
    assert_int_equal(weir__tick_run(&a, &ops, &f, T0, 2, &changed, &next_at, &due), WEIR_OK);
    assert_string_equal(f.said, "");            /* nothing is due */
    assert_int_equal(next_at, T0 + 10);
}

static void a_tick_that_fails_leaves_the_rest_due(void **state)
{
    (void)state;
    weir_agenda a;
    fake        f = { .fail_at = 3 };
    size_t      changed;
    int64_t     next_at;
    bool        due;
    weir__agenda_init(&a);
    weir__agenda_doubt(&a);
    assert_int_equal(weir__tick_run(&a, &ops, &f, T0, 2, &changed, &next_at, &due), WEIR_EFULL);
    assert_string_equal(f.said, "change 14, change 16, earliest 1");
    assert_int_equal(changed, 2);
    assert_true(next_at <= T0);
}

static void a_tick_is_announced_once(void **state)
{
    (void)state;
    weir_agenda a;
    int64_t     at;
    weir_keep   keep = { .age_ms = 50 };
    weir_job    j = fresh((weir_spec){ .delay_ms = 9 });
    weir__agenda_init(&a);
    assert_false(weir__agenda_announce(&a, &at));
    weir__agenda_follow(&a, &j, INT64_MAX, (weir_kept){ 0 });
    assert_true(weir__agenda_announce(&a, &at));
    assert_int_equal(at, T0 + 9);
    assert_false(weir__agenda_announce(&a, &at));
    weir__agenda_want(&a, WEIR_DUE_TOKENS, T0 + 10);
    assert_false(weir__agenda_announce(&a, &at));           /* later */
    j = taken((weir_spec){ 0 });
    weir__agenda_follow(&a, &j, T0 + 8, (weir_kept){ 0 });
    assert_true(weir__agenda_announce(&a, &at));
    assert_int_equal(at, T0 + 8);
    j.state = WEIR_STATE_COMPLETE;
    j.finished_at = T0;
    weir__agenda_follow(&a, &j, INT64_MAX, (weir_kept){ &keep, 5 });
    assert_int_equal(a.at[WEIR_DUE_FINISHED], T0 + 50);
    keep.count = 4;
    weir__agenda_follow(&a, &j, INT64_MAX, (weir_kept){ &keep, 5 });
    assert_true(weir__agenda_announce(&a, &at));
    assert_true(at == INT64_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_that_comes_goes_and_is_taken),
        cmocka_unit_test(a_delivery_that_ends),
        cmocka_unit_test(what_time_does),
        cmocka_unit_test(what_people_do),
        cmocka_unit_test(a_tick_does_all_in_order),
        cmocka_unit_test(a_tick_that_fails_leaves_the_rest_due),
        cmocka_unit_test(a_tick_is_announced_once),
    };
    return cmocka_run_group_tests_name("effects", tests, NULL, NULL);
}
