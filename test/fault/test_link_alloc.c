/* test_link_alloc.c - a link and an ear when memory runs out: the Nth allocation of ours fails, for
 * every N until a run gets through without a failure. Whatever fails says so, nothing leaks, and
 * the link works afterwards. The server is a fake, so that every run is the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "store/redis/link/link.h"
#include "support/redis_fake.h"

/* ---- the allocator, with a fuse; the linker puts these in the place of the real ones ---- */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static atomic_long countdown;           /* allocations until one fails; 0: none will */
static atomic_bool failed;

static bool blown(void)
{
    long n = atomic_load(&countdown);
    while (n > 0 && !atomic_compare_exchange_weak(&countdown, &n, n - 1))
        ;
    if (n == 1)
        atomic_store(&failed, true);
    return n == 1;
}

void *__wrap_malloc(size_t n)
{
    return blown() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return blown() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return blown() ? NULL : __real_realloc(p, n);
}

/* ---- one run ---- */

static const char source[] = "return 1";

static void make_call(redis_call *c, const redis_library *s)
{
    c->library = s;
    weir__resp_array(&c->command, 2);
    weir__resp_text(&c->command, "CALL");
    weir__resp_text(&c->command, "with more text than what a buffer has room for at first, so that "
                                 "it has to grow");
}

static void check_call(const redis_call *c)
{
    if (c->err.code && c->err.code != WEIR_ENOMEM)
        fail_msg("%s: %s", weir_code_name(c->err.code), c->err.msg);
    assert_true(!c->reply == !!c->err.code);
}

/* Is it open, two calls and one more? */
static void run_link(const redis_url *url)
{
    redis_link  *l;
    weir_error   err = { 0 };
    redis_call   a = { 0 }, b = { 0 }, *calls[] = { &a, &b };
    redis_library s = { .label = "s", .source = source, .len = sizeof source - 1 };
    weir_code    rc = weir__link_open(&l, url, &err);
    weir__library_init(&s);
    assert_true(!l == !!rc);
    if (rc && rc != WEIR_ENOMEM)
        fail_msg("%s: %s", weir_code_name(rc), err.msg);
    if (rc)
        return;
    make_call(&a, &s);
    make_call(&b, &s);
    weir__link_run(l, calls, 2);
    check_call(&a);
    check_call(&b);
    weir__call_fini(&a);
    weir__call_fini(&b);

    atomic_store(&countdown, 0);
    a = (redis_call){ 0 };
    make_call(&a, &s);
    weir__link_run(l, calls, 1);
    assert_int_equal(a.err.code, WEIR_OK);
    weir__call_fini(&a);
    weir__link_close(l);
}

static void on_hear(void *ctx, size_t channel, const char *message, size_t len)
{
    (void)ctx;
    (void)channel;
    (void)message;
    (void)len;
}

static void on_lost(void *ctx, size_t channel)
{
    (void)ctx;
    (void)channel;
}

static void run_ear(const redis_url *url)
{
    redis_subscriber *e;
    weir_error    err = { 0 };
    redis_channel c = { "news", false };
    weir_code     rc = weir__subscriber_open(&e, url, &c, 1, on_hear, on_lost, NULL, &err);
    assert_true(!e == !!rc);
    if (rc && rc != WEIR_ENOMEM)
        fail_msg("%s: %s", weir_code_name(rc), err.msg);
    weir__subscriber_close(e);
}

/* ---- every N ---- */

static void every_allocation(redis_way way, void (*run)(const redis_url *), const char *const *say)
{
    fake     *f = fake_start();
    char      slots[200];
    redis_url url = { .way = way, .n_places = 1, .timeout_ms = 20000 };
    assert_non_null(f);
    strcpy(url.place[0].host, "127.0.0.1");
    url.place[0].port = fake_port(f);
    snprintf(slots, sizeof slots, "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n",
             url.place[0].port);
    if (way == REDIS_CLUSTER) {
        fake_say(f, "HELLO", "*4\r\n+version\r\n+7.0.15\r\n+mode\r\n+cluster\r\n");
        fake_say(f, "CLUSTER", slots);
    }
    long n = 0;
    do {
        assert_true(n < 1000);
        if (say)
            fake_answers(f, 1, say);
        atomic_store(&failed, false);
        atomic_store(&countdown, ++n);
        run(&url);
        atomic_store(&countdown, 0);
    } while (atomic_load(&failed));
    assert_true(n > 3);
    fake_stop(f);
}

static void a_link(void **state)
{
    (void)state;
    every_allocation(REDIS_ONE, run_link, NULL);
}

static void a_link_to_a_cluster(void **state)
{
    (void)state;
    every_allocation(REDIS_CLUSTER, run_link, NULL);
}

static void an_ear(void **state)
{
    (void)state;
    static const char *const say = "*3\r\n+subscribe\r\n+news\r\n:1\r\n";
    every_allocation(REDIS_ONE, run_ear, &say);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link),
        cmocka_unit_test(a_link_to_a_cluster),
        cmocka_unit_test(an_ear),
    };
    return cmocka_run_group_tests_name("link_alloc", tests, NULL, NULL);
}
