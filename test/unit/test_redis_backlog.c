/* test_redis_backlog.c - what a process knows of where jobs wait, and where its takes begin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "store/redis/engine/engine.h"

enum { PARTS = 5 };

static int64_t clock_ms;

static int64_t now(void *ctx)
{
    (void)ctx;
    return clock_ms;
}

typedef struct place {
    redis_store store;
    redis_lane  lane;
    redis_draft draft[PARTS];
} place;

static void set_up(place *p)
{
    *p = (place){ .store = { .n_parts = PARTS, .env = { .now = now } } };
    pthread_mutex_init(&p->store.backlog.lock, NULL);
    assert_true(weir__backlog_open(&p->store));
    p->lane = (redis_lane){ .top = &p->store, .n_parts = PARTS, .draft = p->draft };
    clock_ms = 1000;
}

static const char *const a[] = { "a" }, *const b[] = { "b" }, *const both[] = { "a", "b" };

/* Where jobs of these types may wait: "0 2 4". */
static const char *may(place *p, const char *const *types, size_t n)
{
    static char  text[64];
    weir_op_take take = { .types = types, .n_types = n, .n = 1 };
    redis_parts  parts = weir__backlog_candidates(&p->lane, &take);
    size_t       at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < PARTS; i++) {
        if (weir__parts_have(&parts, i))
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%u", at ? " " : "", i);
    }
    return text;
}

static void find_dry(place *p, uint32_t part, const char *const *types, size_t n)
{
    weir__backlog_mark(&p->lane, part);
    weir__backlog_set_empty(&p->lane, part, types, n);
}

/* Where a take of type a begins; -1: nowhere. */
static int begins(place *p)
{
    weir_op_take take = { .types = a, .n_types = 1, .n = 1 };
    uint32_t     part;
    return weir__backlog_first(&p->lane, &take, &part) ? (int)part : -1;
}

static void nothing_is_known_at_first(void **state)
{
    (void)state;
    place p;
    set_up(&p);
    assert_string_equal(may(&p, a, 1), "0 1 2 3 4");
    weir__backlog_close(&p.store);
}

static void empty_until_an_event(void **state)
{
    (void)state;
    place p;
    set_up(&p);
    find_dry(&p, 1, a, 1);
    find_dry(&p, 3, a, 1);
    assert_string_equal(may(&p, a, 1), "0 2 4");
    assert_string_equal(may(&p, b, 1), "0 1 2 3 4");
    weir__backlog_grew(&p.store, 3, "b", 1);
    assert_string_equal(may(&p, a, 1), "0 2 4");
    weir__backlog_grew(&p.store, 3, "a", 1);
    assert_string_equal(may(&p, a, 1), "0 2 3 4");
    weir__backlog_forget(&p.store, 1);
    assert_string_equal(may(&p, a, 1), "0 1 2 3 4");
    weir__backlog_close(&p.store);
}

static void several_types(void **state)
{
    (void)state;
    place p;
    set_up(&p);
    find_dry(&p, 1, a, 1);
    assert_string_equal(may(&p, both, 2), "0 1 2 3 4");
    find_dry(&p, 1, b, 1);
    find_dry(&p, 2, both, 2);
    assert_string_equal(may(&p, both, 2), "0 3 4");
    weir__backlog_grew(&p.store, 2, "b", 1);
    assert_string_equal(may(&p, both, 2), "0 2 3 4");
    assert_string_equal(may(&p, a, 1), "0 3 4");
    weir__backlog_close(&p.store);
}

/* An event comes between the call and its answer: the job may be newer than the answer. */
static void an_event_meanwhile(void **state)
{
    (void)state;
    place p;
    set_up(&p);
    weir__backlog_mark(&p.lane, 2);
    weir__backlog_grew(&p.store, 2, "a", 1);
    weir__backlog_set_empty(&p.lane, 2, a, 1);
    assert_string_equal(may(&p, a, 1), "0 1 2 3 4");
    find_dry(&p, 2, a, 1);
    assert_string_equal(may(&p, a, 1), "0 1 3 4");
    weir__backlog_close(&p.store);
}

static void resumed(void **state)
{
    (void)state;
    place p;
    set_up(&p);
    for (uint32_t i = 0; i < PARTS; i++)
        find_dry(&p, i, both, 2);
    assert_string_equal(may(&p, both, 2), "");
    weir__backlog_forget_all(&p.store);
    assert_string_equal(may(&p, a, 1), "0 1 2 3 4");
    assert_string_equal(may(&p, b, 1), "0 1 2 3 4");
    weir__backlog_close(&p.store);
}

/* Jobs of events that were taken are counted off; of older jobs nothing is known. */
static void counted_down(void **state)
{
    (void)state;
    place     p;
    weir_job  one = { .type = "a" }, two = { .type = "b" };
    weir_job *jobs[] = { &one, &one, &two };
    set_up(&p);
    find_dry(&p, 1, both, 2);
    find_dry(&p, 2, a, 1);
    weir__backlog_grew(&p.store, 1, "a", 3);
    weir__backlog_shrank(&p.lane, 1, jobs, 3);
    assert_string_equal(may(&p, a, 1), "0 1 3 4");
    weir__backlog_shrank(&p.lane, 1, jobs, 1);
    assert_string_equal(may(&p, a, 1), "0 3 4");
    assert_string_equal(may(&p, both, 2), "0 2 3 4");
    weir__backlog_shrank(&p.lane, 3, jobs, 3);
    assert_string_equal(may(&p, a, 1), "0 3 4");
    weir__backlog_grew(&p.store, 1, "b", 1);
    assert_string_equal(may(&p, both, 2), "0 1 2 3 4");
    weir__backlog_close(&p.store);
}

/* More types than are kept in mind: of those forgotten nothing is known. */
static void many_types(void **state)
{
    (void)state;
    place p;
    set_up(&p);
    for (uint32_t i = 0; i < PARTS; i++)
        find_dry(&p, i, a, 1);
    for (int i = 0; i < REDIS_MAX_BACKLOG; i++) {
        char        name[16];
        const char *type[] = { name };
        snprintf(name, sizeof name, "t%d", i);
        find_dry(&p, 0, type, 1);
    }
    assert_string_equal(may(&p, a, 1), "0 1 2 3 4");
    assert_string_equal(may(&p, (const char *const[]){ "t63" }, 1), "1 2 3 4");
    weir__backlog_close(&p.store);
}

static void a_take_stays_a_while(void **state)
{
    (void)state;
    place p;
    set_up(&p);
    int first = begins(&p), changes = 0, last = first;
    assert_in_range(first, 0, PARTS - 1);
    assert_int_equal(begins(&p), first);
    for (int i = 0; i < 1000; i++, clock_ms++) {
        int next = begins(&p);
        if (next != last)
            assert_int_equal(next, (last + 1) % PARTS);
        changes += next != last;
        last = next;
    }
    assert_in_range(changes, PARTS, 1000 / 10);
    clock_ms -= 5000;                            /* a clock that is set back holds nobody */
    assert_int_equal(begins(&p), (last + 1) % PARTS);
    weir__backlog_close(&p.store);
}

static void a_take_goes_where_something_is(void **state)
{
    (void)state;
    place p;
    set_up(&p);
    for (uint32_t i = 0; i < PARTS; i++)
        find_dry(&p, i, a, 1);
    assert_int_equal(begins(&p), -1);
    weir__backlog_grew(&p.store, 3, "a", 1);
    assert_int_equal(begins(&p), 3);
    clock_ms += 1000;
    assert_int_equal(begins(&p), 3);             /* nobody else has any */
    weir__backlog_grew(&p.store, 1, "a", 1);
    assert_int_equal(begins(&p), 3);
    find_dry(&p, 3, a, 1);
    assert_int_equal(begins(&p), 1);
    weir__backlog_close(&p.store);
}

/* A queue of one partition is always asked. */
static void one_partition(void **state)
{
    (void)state;
    place p;
    set_up(&p);
    p.store.n_parts = p.lane.n_parts = 1;
    find_dry(&p, 0, a, 1);
    assert_int_equal(begins(&p), 0);
    weir__backlog_close(&p.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_at_first),
        cmocka_unit_test(empty_until_an_event),
        cmocka_unit_test(several_types),
        cmocka_unit_test(an_event_meanwhile),
        cmocka_unit_test(resumed),
        cmocka_unit_test(counted_down),
        cmocka_unit_test(many_types),
        cmocka_unit_test(a_take_stays_a_while),
        cmocka_unit_test(a_take_goes_where_something_is),
        cmocka_unit_test(one_partition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
