/* test_link_sentinel.c - the link and the subscriber find the primary by asking real sentinels, and
 * follow when it is another. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "redis/probe.h"
#include "store/redis/link/net.h"
#include "support/redis_rig.h"

typedef struct fixture {
    rig_nodes  *nodes;
    redis_url   url;
    probe       probe;
    rig        *was;            /* the primary, before */
    atomic_bool done;
    rig        *now;
} fixture;

static void begin(fixture *f, const char *query)
{
    char text[600];
    *f = (fixture){ .nodes = rig_sentinels(3, 1) };
    assert_non_null(f->nodes);
    f->url = probe_url(rig_sentinel_url(f->nodes, "redis+sentinel", query, text, sizeof text));
    probe_open(&f->probe, &f->url, 2);
    f->was = rig_sentinel_primary(f->nodes);
    assert_non_null(f->was);
}

static void end(fixture *f)
{
    probe_close(&f->probe);
    rig_nodes_free(f->nodes);
}

static void *wait_for_failover(void *arg)
{
    fixture *f = arg;
    f->now = rig_sentinel_failed_over(f->nodes, f->was);
    atomic_store(&f->done, true);
    return NULL;
}

static bool is_done(void *ctx)
{
    return atomic_load(&((fixture *)ctx)->done);
}

static void go_on_until_failover(fixture *f)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_failover, f), 0);
    probe_until(&f->probe, is_done, f);
    pthread_join(thread, NULL);
    assert_non_null(f->now);
    probe_steps(&f->probe, 20);
}

static void the_primary_is_killed(void **state)
{
    (void)state;
    fixture   f;
    probe_subscriber e;
    begin(&f, "timeout=30s");
    probe_subscribe(&e, &f.url, 1, &(redis_channel){ "news", false });
    probe_steps(&f.probe, 20);
    probe_tell(&e, &f.probe, 0, "before");
    rig_kill9(f.was);
    go_on_until_failover(&f);
    assert_int_equal(f.probe.unavailable + f.probe.unknown, 0);
    probe_wait_lost(&e, 0, 2);
    probe_tell(&e, &f.probe, 0, "after");
    probe_unsubscribe(&e);
    end(&f);
}

/* When it goes on it is made a replica; until then it would take what nobody keeps. */
static void the_primary_is_stopped(void **state)
{
    (void)state;
    fixture f;
    begin(&f, "timeout=4s");
    probe_steps(&f.probe, 20);
    rig_pause(f.was);
    go_on_until_failover(&f);
    rig_resume(f.was);
    f.probe.lost = 0;
    probe_steps(&f.probe, 100);
    assert_int_equal(f.probe.lost, 0);
    end(&f);
}

static void not_all_sentinels_are_needed(void **state)
{
    (void)state;
    fixture f;
    begin(&f, "timeout=10s");
    probe_steps(&f.probe, 2);
    rig_kill9(f.nodes->sentinel[0]);
    assert_true(rig_do(f.was, "CLIENT KILL TYPE normal"));
    probe_steps(&f.probe, 2);
    probe     p;
    redis_url url = f.url;
    probe_open(&p, &url, 1);
    p.key[0].number = f.probe.key[0].number;
    probe_steps(&p, 2);
    probe_close(&p);
    assert_int_equal(f.probe.unavailable + f.probe.unknown + f.probe.lost + p.lost, 0);
    end(&f);
}

static void what_sentinels_do_not_know(void **state)
{
    (void)state;
    fixture     f;
    redis_link *l;
    weir_error  err = { 0 };
    begin(&f, "timeout=10s");
    redis_url url = f.url;
    strcpy(url.primary, "another");
    assert_int_equal(weir__link_open(&l, &url, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, ": unknown primary another"));
    assert_memory_equal(err.msg, "redis sentinel 127.0.0.1:", 25);

    /* a sentinel is not a server, and a server not a sentinel */
    url = f.url;
    url.way = REDIS_ONE;
    url.n_places = 1;
    assert_int_equal(weir__link_open(&l, &url, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, ": it is a sentinel: redis+sentinel://HOST:PORT/NAME"));
    url = f.url;
    url.n_places = 1;
    url.place[0].port = f.was->port;
    assert_int_equal(weir__link_open(&l, &url, &err), WEIR_EUNAVAIL);
    assert_non_null(strstr(err.msg, ": ERR unknown command 'SENTINEL'"));
    end(&f);
}

/* Sentinels that want a password are told that of the servers. */
static void with_a_password(void **state)
{
    (void)state;
    char        config[200];
    rig        *primary = rig_start(&(rig_options){ .tcp = true, .password = "secret" });
    redis_link *l;
    weir_error  err = { 0 };
    assert_non_null(primary);
    snprintf(config, sizeof config, "sentinel monitor mymaster 127.0.0.1 %d 1\n"
                                    "sentinel auth-pass mymaster secret\n", primary->port);
    rig *sentinel = rig_start(&(rig_options){ .tcp = true, .sentinel = true, .password = "secret",
                                              .config = config });
    assert_non_null(sentinel);
    redis_url url = { .way = REDIS_SENTINEL, .n_places = 1, .timeout_ms = 10000,
                      .primary = "mymaster", .password = "secret",
                      .place = { { "127.0.0.1", sentinel->port } } };
    if (weir__link_open(&l, &url, &err))
        fail_msg("%s", err.msg);
    weir__link_close(l);
    strcpy(url.password, "guess");
    assert_int_equal(weir__link_open(&l, &url, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, ": NOAUTH "));
    assert_null(strstr(err.msg, "guess"));
    rig_free(sentinel);
    rig_free(primary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_primary_is_killed),
        cmocka_unit_test(the_primary_is_stopped),
        cmocka_unit_test(not_all_sentinels_are_needed),
        cmocka_unit_test(what_sentinels_do_not_know),
        cmocka_unit_test(with_a_password),
    };
    return cmocka_run_group_tests_name("link_sentinel", tests, NULL, NULL);
}
