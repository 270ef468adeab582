/* test_feed.c - the thread of a feed: its connections, its pauses, those who wait for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/clock.h"
#include "store/feed.h"

/* A source whose connections the test makes, feeds and breaks. */
typedef struct script {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    int             tries;                  /* how often receive() was called */
    weir_code       refuse;                 /* connections fail with this */
    bool            connected, cut, stopped;
    uint64_t        number;                 /* delivered by the connection */
} script;

static void receive(void *ctx, weir_feed *f, weir_error *why)
{
    script *s = ctx;
    pthread_mutex_lock(&s->lock);
    s->tries++;
    weir_code refuse = s->refuse;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (refuse) {
        weir_fail(why, refuse, "refused");
        return;
    }
    weir__feed_live(f);
    pthread_mutex_lock(&s->lock);
    s->connected = true;
    while (!s->cut && !weir__feed_stopping(f)) {
        weir_place place = { "run", s->number };
        if (s->number > weir__feed_place(f)->number)
            weir__feed_reached(f, &place);
        pthread_cond_wait(&s->changed, &s->lock);
    }
    s->connected = s->cut = false;
    pthread_mutex_unlock(&s->lock);
    weir_fail(why, WEIR_EUNAVAIL, "cut");
}

static void wake(void *ctx)
{
    script *s = ctx;
    pthread_mutex_lock(&s->lock);
    s->stopped = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static const weir_feed_source source = { .thread = "feed", .receive = receive, .wake = wake };

static void begin(script *s)
{
    *s = (script){ 0 };
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
}

static void set(script *s, uint64_t number, bool cut)
{
    pthread_mutex_lock(&s->lock);
    s->number = number;
    s->cut = cut;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void wait_tries(script *s, int tries)
{
    pthread_mutex_lock(&s->lock);
    while (s->tries < tries)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void it_connects_again_and_keeps_its_place(void **state)
{
    (void)state;
    script     s;
    weir_feed *f;
    weir_error err;
    begin(&s);
    assert_int_equal(weir__feed_open(&f, &source, &s, 5000, &err), WEIR_OK);
    set(&s, 7, false);
    weir__feed_until(f, &(weir_place){ "run", 7 });
    set(&s, 7, true);
    wait_tries(&s, 2);
    set(&s, 9, false);
    int64_t begun = weir__monotonic_ms();
    weir__feed_until(f, &(weir_place){ "run", 0 });         /* nothing to wait for */
    assert_true(weir__monotonic_ms() - begun < 1000);
    weir__feed_close(f);
    assert_true(s.stopped);
}

static void a_refusal_that_lasts_ends_the_wait(void **state)
{
    (void)state;
    script     s;
    weir_feed *f = (weir_feed *)&s;
    weir_error err;
    begin(&s);
    s.refuse = WEIR_EREADONLY;
    int64_t begun = weir__monotonic_ms();
    assert_int_equal(weir__feed_open(&f, &source, &s, 60000, &err), WEIR_EREADONLY);
    assert_string_equal(err.msg, "refused");
    assert_null(f);
    assert_true(weir__monotonic_ms() - begun < 30000);
}

static void it_tries_on_while_nobody_is_there(void **state)
{
    (void)state;
    script     s;
    weir_feed *f;
    weir_error err;
    begin(&s);
    s.refuse = WEIR_EUNAVAIL;
    assert_int_equal(weir__feed_open(&f, &source, &s, 1, &err), WEIR_EUNAVAIL);
    assert_int_equal(weir__feed_open(&f, &source, &s, 0, &err), WEIR_OK);
    pthread_mutex_lock(&s.lock);
    int before = s.tries;
    pthread_mutex_unlock(&s.lock);
    wait_tries(&s, before + 2);
    weir__feed_until(f, &(weir_place){ "run", 5 });         /* not live: does not wait */
    weir__feed_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_connects_again_and_keeps_its_place),
        cmocka_unit_test(a_refusal_that_lasts_ends_the_wait),
        cmocka_unit_test(it_tries_on_while_nobody_is_there),
    };
    return cmocka_run_group_tests_name("feed", tests, NULL, NULL);
}
