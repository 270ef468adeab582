/* test_link_one.c - the link and the subscriber with one real server, and its troubles. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "redis/probe.h"
#include "store/redis/link/net.h"
#include "support/quiet_subscriber.h"
#include "support/redis_rig.h"

static redis_url url_of(const rig *r, const char *scheme, const char *query)
{
    char text[600];
    return probe_url(rig_url(r, scheme, query, text, sizeof text));
}

static rig *start(const rig_options *opt)
{
    rig *r = rig_start(opt);
    assert_non_null(r);
    return r;
}

static weir_code try_open(const redis_url *url, weir_error *err)
{
    redis_link *l;
    weir_code   rc = weir__link_open(&l, url, err);
    weir__link_close(l);
    return rc;
}

static redisReply *ask(redis_link *l, weir_error *err, const char *a, const char *b, const char *c)
{
    const char *const argv[] = { a, b, c };
    return weir__link_ask(l, 0, err, c ? 3 : 2, argv, NULL);
}

/* ---- in peace ---- */

static void over_a_port_and_over_a_socket(void **state)
{
    (void)state;
    rig *r = start(&(rig_options){ .tcp = true });
    static const char *const schemes[] = { "redis", "redis+unix" };
    for (int i = 0; i < 2; i++) {
        redis_url url = url_of(r, schemes[i], NULL);
        probe     p;
        probe_open(&p, &url, 4);
        for (size_t k = 0; k < p.n; k++)
            p.key[k].number = 200 * i;
        probe_steps(&p, 100);
        assert_int_equal(p.key[3].number, 200 * (i + 1));
        assert_int_equal(p.unavailable + p.unknown + p.lost, 0);
        probe_close(&p);
    }
    rig_free(r);
}

static void big_calls_and_answers(void **state)
{
    (void)state;
    enum { SIZE = 24 << 20 };
    rig       *r = start(NULL);
    redis_url  url = url_of(r, "redis+unix", "timeout=60s");
    redis_call set = { 0 }, get = { 0 }, *calls[] = { &set, &get };
    probe      p;
    probe_open(&p, &url, 1);
    char *big = malloc(SIZE);
    assert_non_null(big);
    memset(big, 'x', SIZE);
    weir__resp_array(&set.command, 3);
    weir__resp_text(&set.command, "SET");
    weir__resp_text(&set.command, "big");
    weir__resp_bytes(&set.command, big, SIZE);
    weir__resp_array(&get.command, 2);
    weir__resp_text(&get.command, "GET");
    weir__resp_text(&get.command, "big");
    weir__link_run(p.link, calls, 2);
    assert_int_equal(set.err.code, WEIR_OK);
    assert_int_equal(get.err.code, WEIR_OK);
    assert_int_equal(get.reply->len, SIZE);
    assert_memory_equal(get.reply->str, big, SIZE);
    free(big);
    weir__call_fini(&set);
    weir__call_fini(&get);
    probe_steps(&p, 1);
    probe_close(&p);
    rig_free(r);
}

static void durability_is_what_the_server_does(void **state)
{
    (void)state;
    static const struct {
        rig_options     opt;
        weir_durability durability;
    } cases[] = {
        { { .aof = true }, WEIR_DURABILITY_DISK },
        { { .config = "appendonly yes\nappendfsync everysec\n" }, WEIR_DURABILITY_NONE },
        { { .config = "appendonly yes\nappendfsync no\n" }, WEIR_DURABILITY_OS },
        { { .config = NULL }, WEIR_DURABILITY_NONE },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig      *r = start(&cases[i].opt);
        redis_url url = url_of(r, "redis+unix", NULL);
        probe     p;
        probe_open(&p, &url, 1);
        probe_steps(&p, 1);
        assert_int_equal(p.key[0].call[0].durability, cases[i].durability);
        probe_close(&p);
        rig_free(r);
    }
}

/* ---- opening ---- */

static void passwords_and_users(void **state)
{
    (void)state;
    rig       *r = start(&(rig_options){ .password = "secret" });
    redis_url  url = url_of(r, "redis+unix", NULL);
    weir_error err = { 0 };
    assert_int_equal(try_open(&url, &err), WEIR_OK);
    strcpy(url.password, "guess");
    assert_int_equal(try_open(&url, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, ": WRONGPASS "));
    assert_null(strstr(err.msg, "guess"));
    url.password[0] = '\0';
    assert_int_equal(try_open(&url, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, ": it requires a password: redis://USER:PASSWORD@HOST"));

    /* a user that may read, but not write */
    assert_true(rig_do(r, "ACL SETUSER ann on >pw ~* &* +@read +@connection +info +eval +evalsha "
                          "+script"));
    strcpy(url.user, "ann");
    strcpy(url.password, "pw");
    redis_link *l;
    assert_int_equal(weir__link_open(&l, &url, &err), WEIR_OK);
    redisReply *reply = ask(l, &err, "GET", "a", NULL);
    assert_non_null(reply);
    freeReplyObject(reply);
    assert_null(ask(l, &err, "SET", "a", "b"));
    assert_int_equal(err.code, WEIR_EREADONLY);
    assert_non_null(strstr(err.msg, ": NOPERM "));
    const char *const eval[] = { "EVAL", "return redis.call('SET', KEYS[1], 1)", "1", "a" };
    assert_null(weir__link_ask(l, 0, &err, 4, eval, NULL));
    assert_int_equal(err.code, WEIR_EREADONLY);
    weir__link_close(l);
    rig_free(r);
}

static void databases(void **state)
{
    (void)state;
    rig       *r = start(&(rig_options){ .tcp = true });
    redis_url  url = url_of(r, "redis", NULL);
    weir_error err = { 0 };
    url.db = 3;
    probe p;
    probe_open(&p, &url, 1);
    probe_steps(&p, 5);
    assert_true(rig_do(r, "CLIENT KILL TYPE normal"));
    probe_steps(&p, 5);         /* the new connection is in it, too */
    assert_int_equal(p.key[0].number, 20);
    assert_int_equal(rig_info(r, "keyspace", "db3:keys"), 1);
    assert_int_equal(rig_info(r, "keyspace", "db0:keys"), 0);
    probe_close(&p);
    url.db = 1000;
    assert_int_equal(try_open(&url, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, ": database 1000: ERR DB index is out of range"));
    rig_free(r);
}

static void servers_that_will_not_do(void **state)
{
    (void)state;
    rig       *primary = start(&(rig_options){ .tcp = true });
    weir_error err = { 0 };
    char       config[100], msg[200];
    snprintf(config, sizeof config, "replicaof 127.0.0.1 %d\n", primary->port);
    rig      *r = start(&(rig_options){ .config = config });
    redis_url url = url_of(r, "redis+unix", NULL);
    assert_int_equal(try_open(&url, &err), WEIR_EINVAL);
    snprintf(msg, sizeof msg, ": it is a replica: name its primary, 127.0.0.1:%d,", primary->port);
    assert_non_null(strstr(err.msg, msg));
    rig_free(r);

    url = url_of(primary, "redis", NULL);
    assert_true(rig_do(primary, "CONFIG SET maxmemory-policy volatile-ttl"));
    assert_int_equal(try_open(&url, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, ": its maxmemory-policy volatile-ttl throws jobs away: "));
    url.allow_eviction = true;
    assert_int_equal(try_open(&url, &err), WEIR_OK);
    url.way = REDIS_CLUSTER;
    assert_int_equal(try_open(&url, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, ": it is not in cluster mode"));
    rig_free(primary);

    r = start(&(rig_options){ .tcp = true, .cluster = true });
    url = url_of(r, "redis", NULL);
    assert_int_equal(try_open(&url, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, ": it is in cluster mode: add ?cluster=1 to the URL"));
    url.way = REDIS_CLUSTER;
    assert_int_equal(try_open(&url, &err), WEIR_EUNAVAIL);
    assert_non_null(strstr(err.msg, ": no slots are assigned; create the cluster first"));
    rig_free(r);
}

/* ---- trouble ---- */

static void connections_and_functions_come_and_go(void **state)
{
    (void)state;
    rig      *r = start(NULL);
    redis_url url = url_of(r, "redis+unix", NULL);
    probe     p;
    probe_open(&p, &url, 4);
    for (int i = 0; i < 50; i++) {
        assert_true(rig_do(r, i % 2 ? "CLIENT KILL TYPE normal" : "FUNCTION FLUSH"));
        probe_step(&p);
    }
    assert_int_equal(p.key[0].number, 100);
    assert_int_equal(p.unavailable + p.unknown + p.lost, 0);
    probe_close(&p);
    rig_free(r);
}

/* Killed in the middle of things, by somebody else. */
static void *kill_often(void *arg)
{
    const rig      *r = arg;
    struct timespec nap = { 0, 3000000 };
    for (int i = 0; i < 100; i++) {
        rig_do(r, "CLIENT KILL TYPE normal");
        nanosleep(&nap, NULL);
    }
    return NULL;
}

static void killed_under_load(void **state)
{
    (void)state;
    rig      *r = start(&(rig_options){ .tcp = true });
    redis_url url = url_of(r, "redis", NULL);
    probe     p;
    pthread_t killer;
    probe_open(&p, &url, 4);
    assert_int_equal(pthread_create(&killer, NULL, kill_often, r), 0);
    do
        probe_steps(&p, 10);
    while (pthread_tryjoin_np(killer, NULL) != 0);
    assert_int_equal(p.unavailable + p.unknown + p.lost, 0);
    probe_close(&p);
    rig_free(r);
}

static void restarted(void **state)
{
    (void)state;
    rig      *r = start(&(rig_options){ .aof = true });
    redis_url url = url_of(r, "redis+unix", "timeout=30s");
    probe     p;
    probe_open(&p, &url, 4);
    for (int i = 0; i < 3; i++) {
        probe_steps(&p, 20);
        rig_kill9(r);
        assert_true(rig_begin(r));
        probe_steps(&p, 20);    /* while it starts */
    }
    assert_int_equal(p.unavailable + p.unknown + p.lost, 0);
    assert_int_equal(p.key[0].call[0].durability, WEIR_DURABILITY_DISK);
    probe_close(&p);
    rig_free(r);
}

static void gone_for_long(void **state)
{
    (void)state;
    rig      *r = start(&(rig_options){ .aof = true });
    redis_url url = url_of(r, "redis+unix", "timeout=300ms");
    probe     p;
    probe_open(&p, &url, 2);
    probe_steps(&p, 2);
    rig_kill9(r);
    struct rusage before, after;
    getrusage(RUSAGE_THREAD, &before);
    probe_step(&p);
    getrusage(RUSAGE_THREAD, &after);
    assert_int_equal(p.unavailable, 2);
    assert_in_range(after.ru_nvcsw - before.ru_nvcsw, 3, 60);   /* nobody spins */
    assert_true(rig_begin(r) && rig_ready(r));
    p.unavailable = 0;
    probe_steps(&p, 2);
    assert_int_equal(p.unavailable + p.unknown + p.lost, 0);
    probe_close(&p);
    rig_free(r);
}

/* Stopped with calls in its sockets, which it must not carry out after their repetition. */
static void stopped_and_continued(void **state)
{
    (void)state;
    rig      *r = start(NULL);
    redis_url url = url_of(r, "redis+unix", "timeout=200ms");
    probe     p;
    probe_open(&p, &url, 4);
    probe_steps(&p, 2);
    for (int i = 0; i < 5; i++) {
        rig_pause(r);
        p.unknown = p.unavailable = 0;
        probe_step(&p);
        assert_int_equal(p.unknown, 4);
        probe_step(&p);         /* now not even a connection is made */
        assert_int_equal(p.unavailable, 4);
        rig_resume(r);
        int64_t number = p.key[0].number;
        int64_t end = weir__monotonic_ms() + RIG_PATIENCE_MS;
        while (p.key[0].number < number + 20 && weir__monotonic_ms() < end)
            probe_step(&p);
        assert_true(p.key[0].number >= number + 20);
    }
    assert_int_equal(p.lost, 0);
    probe_close(&p);
    rig_free(r);
}

static void full(void **state)
{
    (void)state;
    rig       *r = start(NULL);
    redis_url  url = url_of(r, "redis+unix", NULL);
    weir_error err = { 0 };
    probe      p;
    probe_open(&p, &url, 1);
    assert_true(rig_do(r, "CONFIG SET maxmemory 1"));
    assert_null(ask(p.link, &err, "SET", "a", "b"));
    assert_int_equal(err.code, WEIR_EFULL);
    assert_non_null(strstr(err.msg, ": OOM "));
    assert_true(rig_do(r, "CONFIG SET maxmemory 0"));
    probe_steps(&p, 1);
    assert_int_equal(p.key[0].number, 2);

    assert_true(rig_do(r, "SET {probe:0} x"));
    redis_call c = { .library = &p.library };
    weir__resp_array(&c.command, 5);
    weir__resp_text(&c.command, "FCALL");
    weir__resp_text(&c.command, p.library.name);
    weir__resp_text(&c.command, "1");
    weir__resp_text(&c.command, "{probe:0}");
    weir__resp_text(&c.command, "1");
    weir__link_run(p.link, (redis_call *[]){ &c }, 1);
    assert_int_equal(c.err.code, WEIR_ECORRUPT);
    assert_non_null(strstr(c.err.msg, ": WRONGTYPE "));
    weir__call_fini(&c);
    probe_close(&p);
    rig_free(r);
}

static void too_many_clients(void **state)
{
    (void)state;
    rig       *r = start(&(rig_options){ .config = "maxclients 1\n" });
    redis_url  url = url_of(r, "redis+unix", NULL);
    weir_error err = { 0 };
    probe      p;
    probe_open(&p, &url, 1);
    assert_int_equal(try_open(&url, &err), WEIR_EUNAVAIL);
    assert_non_null(strstr(err.msg, ": ERR max number of clients reached"));
    probe_steps(&p, 1);
    probe_close(&p);
    rig_free(r);
}

/* ---- listening ---- */

static const redis_channel two_channels[] = { { "plain", false }, { "shard", true } };

static void hears_again_after_trouble(void **state)
{
    (void)state;
    rig      *r = start(NULL);
    redis_url url = url_of(r, "redis+unix", NULL);
    probe     p;
    probe_subscriber e;
    probe_open(&p, &url, 1);
    probe_subscribe(&e, &url, 2, two_channels);
    probe_tell(&e, &p, 0, "one");
    probe_tell(&e, &p, 1, "two");
    assert_int_equal(e.messages[0] + e.messages[1], 2);    /* each once: it was listening */

    assert_true(rig_do(r, "CLIENT KILL TYPE pubsub"));
    probe_wait_lost(&e, 0, 2);
    probe_wait_lost(&e, 1, 2);
    probe_tell(&e, &p, 0, "three");
    probe_tell(&e, &p, 1, "four");
    assert_int_equal(e.messages[0] + e.messages[1], 4);

    assert_true(rig_restart(r));
    probe_wait_lost(&e, 0, 3);
    probe_wait_lost(&e, 1, 3);
    probe_tell(&e, &p, 0, "five");
    probe_tell(&e, &p, 1, "six");
    probe_unsubscribe(&e);
    probe_close(&p);
    rig_free(r);
}

static void a_subscriber_that_may_not_subscribe(void **state)
{
    (void)state;
    rig       *r = start(NULL);
    redis_url  url = url_of(r, "redis+unix", "timeout=500ms");
    weir_error err = { 0 };
    redis_subscriber *e = (redis_subscriber *)&err;
    assert_true(rig_do(r, "ACL SETUSER ann on >pw ~* resetchannels +@all"));
    strcpy(url.user, "ann");
    strcpy(url.password, "pw");
    assert_int_equal(WEIR_EREADONLY, weir__subscriber_open(&e, &url, two_channels, 2,
                                                           ignore_message, not_lost, NULL, &err));
    assert_null(e);
    assert_non_null(strstr(err.msg, ": NOPERM "));
    strcpy(url.password, "wrong");
    assert_int_equal(WEIR_EINVAL, weir__subscriber_open(&e, &url, two_channels, 2, ignore_message,
                                                            not_lost, NULL, &err));
    rig_stop(r);
    assert_int_equal(WEIR_EUNAVAIL, weir__subscriber_open(&e, &url, two_channels, 2, ignore_message,
                                                            not_lost, NULL, &err));
    assert_non_null(strstr(err.msg, "/s: "));
    weir__subscriber_close(NULL);
    rig_free(r);
}

/* Also when the server says nothing: to close it takes no time. */
static void a_subscriber_is_closed_at_once(void **state)
{
    (void)state;
    rig      *r = start(NULL);
    redis_url url = url_of(r, "redis+unix", "timeout=60s");
    probe_subscriber e;
    probe_subscribe(&e, &url, 2, two_channels);
    rig_pause(r);
    int64_t begun = weir__monotonic_ms();
    probe_unsubscribe(&e);
    assert_true(weir__monotonic_ms() - begun < 10000);
    rig_free(r);
}

static void silence_is_noticed(void **state)
{
    (void)state;
    rig      *r = start(NULL);
    redis_url url = url_of(r, "redis+unix", "timeout=500ms");
    probe     p;
    probe_subscriber e;
    probe_open(&p, &url, 1);
    probe_subscribe(&e, &url, 2, two_channels);
    int64_t begun = weir__monotonic_ms();
    rig_pause(r);
    struct timespec nap = { 11, 0 };    /* 10 s of silence, then PING, then the timeout */
    nanosleep(&nap, NULL);
    rig_resume(r);
    probe_wait_lost(&e, 0, 2);
    probe_wait_lost(&e, 1, 2);
    assert_true(weir__monotonic_ms() - begun < 25000);
    probe_tell(&e, &p, 0, "here");
    probe_tell(&e, &p, 1, "there");
    probe_unsubscribe(&e);
    probe_close(&p);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_a_port_and_over_a_socket),
        cmocka_unit_test(big_calls_and_answers),
        cmocka_unit_test(durability_is_what_the_server_does),
        cmocka_unit_test(passwords_and_users),
        cmocka_unit_test(databases),
        cmocka_unit_test(servers_that_will_not_do),
        cmocka_unit_test(connections_and_functions_come_and_go),
        cmocka_unit_test(killed_under_load),
        cmocka_unit_test(restarted),
        cmocka_unit_test(gone_for_long),
        cmocka_unit_test(stopped_and_continued),
        cmocka_unit_test(full),
        cmocka_unit_test(too_many_clients),
        cmocka_unit_test(hears_again_after_trouble),
        cmocka_unit_test(a_subscriber_that_may_not_subscribe),
        cmocka_unit_test(a_subscriber_is_closed_at_once),
        cmocka_unit_test(silence_is_noticed),
    };
    return cmocka_run_group_tests_name("link_one", tests, NULL, NULL);
}
