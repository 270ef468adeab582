/* test_redis_due.c - due times that arrive while a TICK is under way are announced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "store/redis/engine/engine.h"

static struct {
    int     n;
    int64_t last;
} announced;

static void on_due(void *ctx, int64_t at_ms)
{
    (void)ctx;
    announced.n++;
    announced.last = at_ms;
}

typedef struct fixture {
    redis_store store;
    redis_order order;
} fixture;

static void begin(fixture *f)
{
    memset(f, 0, sizeof *f);
    memset(&announced, 0, sizeof announced);
    f->order.unsynced = true;               /* messages are delivered as they come */
    f->store.n_parts = 1;
    f->store.events.order = &f->order;
    f->store.events.due_announced = INT64_MAX;
    f->store.env.due = on_due;
    pthread_mutex_init(&f->store.events.lock, NULL);
}

/* A message of partition 0 without events: [number, at, origin, due]. */
static void receive(fixture *f, uint8_t due_s)
{
    uint16_t   due = (uint16_t)(due_s * 1000);
    const char message[] = { (char)0x94, 1, 1, (char)0xa0, (char)0xcd, (char)(due >> 8),
                             (char)(due & 0xff) };
    weir__redis_events_of_call(&f->store, 0, message, sizeof message);
}

static void only_earlier_ones_are_announced(void **state)
{
    (void)state;
    fixture f;
    begin(&f);
    receive(&f, 5);
    assert_int_equal(announced.n, 1);
    assert_int_equal(announced.last, 5000);
    receive(&f, 7);
    assert_int_equal(announced.n, 1);
    receive(&f, 3);
    assert_int_equal(announced.n, 2);
    assert_int_equal(announced.last, 3000);
}

/* The TICK that 5 s asked for is under way and has looked already: its answer says "nothing". */
static void none_is_lost_while_a_tick_is_under_way(void **state)
{
    (void)state;
    fixture f;
    begin(&f);
    receive(&f, 5);
    weir__due_begin(&f.store);
    receive(&f, 7);
    assert_int_equal(announced.n, 2);
    assert_int_equal(announced.last, 7000);
    weir__due_end(&f.store, INT64_MAX);
    receive(&f, 8);
    assert_int_equal(announced.n, 2);
    receive(&f, 6);
    assert_int_equal(announced.n, 3);
}

static void the_answer_of_a_tick_counts(void **state)
{
    (void)state;
    fixture f;
    begin(&f);
    weir__due_begin(&f.store);
    weir__due_end(&f.store, 6000);
    receive(&f, 7);
    assert_int_equal(announced.n, 0);
    receive(&f, 4);
    assert_int_equal(announced.n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_earlier_ones_are_announced),
        cmocka_unit_test(none_is_lost_while_a_tick_is_under_way),
        cmocka_unit_test(the_answer_of_a_tick_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
