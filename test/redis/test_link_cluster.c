/* test_link_cluster.c - the link and the subscriber with a real cluster: primaries die, are
 * stopped, are replaced, and slots move, under load. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "redis/probe.h"
#include "store/redis/link/net.h"
#include "support/redis_rig.h"

enum { KEYS = 8 };

typedef struct fixture {
    rig_nodes *cluster;
    redis_url  url;
    probe      probe;
} fixture;

static void begin(fixture *f, size_t primaries, size_t replicas, const char *query)
{
    char text[600];
    f->cluster = rig_cluster(primaries, replicas);
    assert_non_null(f->cluster);
    f->url = probe_url(rig_cluster_url(f->cluster, "redis", query, text, sizeof text));
    probe_open(&f->probe, &f->url, KEYS);
}

static void end(fixture *f)
{
    probe_close(&f->probe);
    rig_nodes_free(f->cluster);
}

static void all_primaries_work(void **state)
{
    (void)state;
    fixture f;
    begin(&f, 3, 0, NULL);
    probe_steps(&f.probe, 50);
    assert_int_equal(f.probe.unavailable + f.probe.unknown + f.probe.lost, 0);
    for (size_t i = 0; i < 3; i++)
        assert_true(rig_info(f.cluster->node[i], "commandstats", "cmdstat_fcall:calls") >= 100);
    assert_int_equal(f.probe.key[0].call[0].durability,
                     WEIR_DURABILITY_NONE);

    /* one host of the URL is enough, and it need not be the first */
    redis_url  url = f.url;
    weir_error err = { 0 };
    url.n_places = 2;
    url.place[0].port = 1;
    redis_link *l;
    if (weir__link_open(&l, &url, &err))
        fail_msg("%s", err.msg);
    weir__link_close(l);
    url.n_places = 1;
    assert_int_equal(weir__link_open(&l, &url, &err), WEIR_EUNAVAIL);
    assert_string_equal(err.msg, "redis 127.0.0.1:1: Connection refused");
    end(&f);
}

/* ---- primaries ---- */

/* What a thread does while the probe goes on. */
typedef struct deed {
    fixture    *f;
    rig        *was;            /* primary of key 0 */
    int64_t     number;         /* of key 0 */
    atomic_bool done;
    bool        fine;
} deed;

static bool is_done(void *ctx)
{
    return atomic_load(&((deed *)ctx)->done);
}

static rig *find_primary(fixture *f)
{
    rig *r = rig_cluster_primary(f->cluster, f->probe.key[0].slot);
    assert_non_null(r);
    return r;
}

static void do_meanwhile(fixture *f, deed *d, void *(*what)(void *))
{
    pthread_t thread;
    d->f = f;
    assert_int_equal(pthread_create(&thread, NULL, what, d), 0);
    probe_until(&f->probe, is_done, d);
    pthread_join(thread, NULL);
    assert_true(d->fine);
    probe_steps(&f->probe, 20);
}

static void *wait_for_failover(void *arg)
{
    deed *d = arg;
    d->fine = rig_cluster_failed_over(d->f->cluster, d->f->probe.key[0].slot, d->was);
    atomic_store(&d->done, true);
    return NULL;
}

/* Nothing is lost that was said to be there, but for what the replica had not got. */
static void a_primary_is_killed(void **state)
{
    (void)state;
    fixture f;
    deed    d = { 0 };
    begin(&f, 3, 1, "timeout=30s");
    probe_steps(&f.probe, 20);
    d.was = find_primary(&f);
    rig_kill9(d.was);
    do_meanwhile(&f, &d, wait_for_failover);
    assert_int_equal(f.probe.unavailable + f.probe.unknown, 0);
    end(&f);
}

static bool has_gone_on(void *ctx)
{
    deed *d = ctx;
    return d->f->probe.key[0].number > d->number + 20;
}

static void a_primary_is_stopped(void **state)
{
    (void)state;
    fixture f;
    begin(&f, 3, 1, "timeout=4s");
    probe_steps(&f.probe, 20);
    deed d = { .f = &f, .was = find_primary(&f), .number = f.probe.key[0].number };
    rig_pause(d.was);
    probe_until(&f.probe, has_gone_on, &d);
    rig_resume(d.was);          /* it does not know yet that it is a primary no longer */
    f.probe.lost = 0;
    assert_true(rig_cluster_ready(f.cluster));
    probe_steps(&f.probe, 20);
    assert_int_equal(f.probe.lost, 0);
    assert_true(find_primary(&f) != d.was);
    end(&f);
}

static rig *find_replica(const rig_nodes *c, const rig *of)
{
    rig *found = NULL;
    char text[32];
    snprintf(text, sizeof text, "master_port:%d\r", of->port);
    for (size_t i = 0; i < c->n && !found; i++) {
        redisReply *r = rig_command(c->node[i], "INFO replication");
        if (r && r->str && strstr(r->str, text))
            found = c->node[i];
        freeReplyObject(r);
    }
    return found;
}

/* CLUSTER FAILOVER: the primary hands over, and nothing is lost. It gives up after 5 s, which a
 * busy machine may need. */
static void *hand_over(void *arg)
{
    deed            *d = arg;
    const rig_nodes *c = d->f->cluster;
    uint32_t         slot = d->f->probe.key[0].slot;
    rig             *replica = find_replica(c, d->was);
    int64_t          end = weir__monotonic_ms() + RIG_PATIENCE_MS, asked = 0;
    struct timespec  nap = { 0, 20000000 };
    while (replica && !d->fine && weir__monotonic_ms() < end) {
        if (weir__monotonic_ms() - asked > 6000) {
            rig_do(replica, "CLUSTER FAILOVER");
            asked = weir__monotonic_ms();
        }
        nanosleep(&nap, NULL);
        d->fine = rig_cluster_primary(c, slot) == replica;
    }
    atomic_store(&d->done, true);
    return NULL;
}

static void a_primary_hands_over(void **state)
{
    (void)state;
    fixture f;
    begin(&f, 3, 1, "timeout=20s");
    for (int i = 0; i < 2; i++) {
        deed d = { .was = find_primary(&f) };
        do_meanwhile(&f, &d, hand_over);
        assert_true(rig_cluster_ready(f.cluster));
    }
    assert_int_equal(f.probe.unavailable + f.probe.unknown + f.probe.lost, 0);
    end(&f);
}

/* Calls for a node that is down do not hold up those for the others. */
static void the_others_go_on(void **state)
{
    (void)state;
    fixture f;
    begin(&f, 3, 0, "timeout=2s");
    rig  *dead = rig_cluster_primary(f.cluster, f.probe.key[0].slot);
    size_t other = 1;
    while (rig_cluster_primary(f.cluster, f.probe.key[other].slot) == dead)
        other++;
    static const bool stopped[] = { true, false };
    for (int i = 0; i < 2; i++) {
        if (stopped[i])
            rig_pause(dead);
        else
            rig_kill9(dead);
        redis_call down = { .slot = f.probe.key[0].slot }, up = { .slot = f.probe.key[other].slot };
        redis_call *call[] = { &down, &up };
        for (int c = 0; c < 2; c++) {
            weir__resp_array(&call[c]->command, 2);
            weir__resp_text(&call[c]->command, "GET");
            weir__resp_text(&call[c]->command, f.probe.key[c ? other : 0].name);
        }
        int64_t begun = weir__monotonic_ms();
        weir__link_send(f.probe.link, &down);
        weir__link_send(f.probe.link, &up);
        weir__link_wait(f.probe.link, &up);
        assert_int_equal(up.err.code, WEIR_OK);
        assert_true(weir__monotonic_ms() - begun < 1500);
        struct rusage before, after;
        getrusage(RUSAGE_THREAD, &before);
        weir__link_wait(f.probe.link, &down);
        getrusage(RUSAGE_THREAD, &after);
        assert_int_equal(down.err.code, stopped[i] ? WEIR_EUNKNOWN : WEIR_EUNAVAIL);
        assert_in_range(after.ru_nvcsw - before.ru_nvcsw, 1, 300);      /* nobody spins */
        weir__call_fini(&down);
        weir__call_fini(&up);
        if (stopped[i])
            rig_resume(dead);
        assert_true(!stopped[i] || rig_cluster_ready(f.cluster));
    }
    end(&f);
}

/* ---- slots ---- */

/* Every key's slot goes once around all primaries. */
static void *move_slots(void *arg)
{
    deed    *d = arg;
    fixture *f = d->f;
    d->fine = true;
    for (size_t i = 0; i < 3 * KEYS && d->fine; i++) {
        uint32_t slot = f->probe.key[i % KEYS].slot;
        rig     *from = rig_cluster_primary(f->cluster, slot), *to = NULL;
        for (size_t n = 0; n < 3; n++) {
            if (f->cluster->node[n] == from)
                to = f->cluster->node[(n + 1) % 3];
        }
        d->fine = to && rig_cluster_move(f->cluster, slot, to);
    }
    atomic_store(&d->done, true);
    return NULL;
}

static void slots_move(void **state)
{
    (void)state;
    fixture f;
    deed    d = { 0 };
    begin(&f, 3, 0, "timeout=20s");
    do_meanwhile(&f, &d, move_slots);
    assert_int_equal(f.probe.unavailable + f.probe.unknown + f.probe.lost, 0);
    end(&f);
}

/* ---- listening ---- */

static void the_subscriber_follows(void **state)
{
    (void)state;
    fixture   f;
    probe_subscriber e;
    begin(&f, 3, 1, "timeout=10s");
    redis_channel channels[3];
    size_t        n = 0;
    for (size_t i = 0; i < 3; i++)
        channels[n++] = (redis_channel){ f.probe.key[i].name, true };
    probe_subscribe(&e, &f.url, n, channels);
    for (size_t i = 0; i < n; i++)
        probe_tell(&e, &f.probe, i, "at first");

    /* a slot moves */
    uint32_t slot = f.probe.key[0].slot;
    rig     *from = rig_cluster_primary(f.cluster, slot);
    rig     *to = f.cluster->node[from == f.cluster->node[0] ? 1 : 0];
    assert_true(rig_cluster_move(f.cluster, slot, to));
    probe_wait_lost(&e, 0, 2);
    for (size_t i = 0; i < n; i++)
        probe_tell(&e, &f.probe, i, "after the move");

    /* its new primary is killed */
    rig_kill9(to);
    assert_non_null(rig_cluster_failed_over(f.cluster, slot, to));
    probe_wait_lost(&e, 0, 3);
    for (size_t i = 0; i < n; i++)
        probe_tell(&e, &f.probe, i, "after the failover");

    /* the others are disturbed, but whoever has them stays */
    for (size_t i = 0; i < f.cluster->n; i++) {
        if (f.cluster->node[i] != to)
            assert_true(rig_do(f.cluster->node[i], "CLIENT KILL TYPE pubsub"));
    }
    for (size_t i = 0; i < n; i++)
        probe_tell(&e, &f.probe, i, "after the kill");
    probe_unsubscribe(&e);
    end(&f);
}

/* The old primary of a channel becomes a replica, and stays connected. */
static void the_subscriber_follows_a_failover(void **state)
{
    (void)state;
    fixture   f;
    probe_subscriber e;
    deed      d = { 0 };
    begin(&f, 3, 1, "timeout=20s");
    probe_subscribe(&e, &f.url, 1, &(redis_channel){ f.probe.key[0].name, true });
    d.was = find_primary(&f);
    do_meanwhile(&f, &d, hand_over);
    probe_tell(&e, &f.probe, 0, "after it");
    probe_unsubscribe(&e);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_primaries_work),
        cmocka_unit_test(a_primary_is_killed),
        cmocka_unit_test(a_primary_is_stopped),
        cmocka_unit_test(a_primary_hands_over),
        cmocka_unit_test(the_others_go_on),
        cmocka_unit_test(slots_move),
        cmocka_unit_test(the_subscriber_follows),
        cmocka_unit_test(the_subscriber_follows_a_failover),
    };
    return cmocka_run_group_tests_name("link_cluster", tests, NULL, NULL);
}
