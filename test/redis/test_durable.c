/* test_durable.c - what is said of how safe a job is must be true: what Redis does before it
 * answers is reported, what is asked for is waited for, what is not reached is never claimed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/load.h"
#include "support/redis_fake.h"
#include "support/redis_rig.h"
#include "support/store_fixture.h"

enum { URL_MAX = 600 };

static rig *start(const rig_options *opt, const char *query, char url[URL_MAX])
{
    rig *r = rig_start(opt);
    assert_non_null(r);
    rig_url(r, "redis+unix", query, url, URL_MAX);
    return r;
}

/* ---- what is reported ---- */

static weir_durability reported(const char *url)
{
    rt         box, *t = &box;
    weir_added added;
    rt_open(t, url, false);
    OK(weir_add(t->q, &(weir_spec){ .type = "a" }, &added, &t->err));
    rt_close(t);
    return added.durability;
}

static void what_the_server_does_is_reported(void **state)
{
    (void)state;
    static const struct {
        const char     *config;
        weir_durability durability;
    } cases[] = {
        { "appendonly yes\nappendfsync always\n", WEIR_DURABILITY_DISK },
        { "appendonly yes\nappendfsync always\nno-appendfsync-on-rewrite yes\n",
          WEIR_DURABILITY_OS },
        { "appendonly yes\nappendfsync no\n", WEIR_DURABILITY_OS },
        { "appendonly yes\nappendfsync everysec\n", WEIR_DURABILITY_NONE },
        { "appendonly no\nsave 1 1\n", WEIR_DURABILITY_NONE },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char url[URL_MAX];
        rig *r = start(&(rig_options){ .config = cases[i].config }, NULL, url);
        assert_int_equal(reported(url), cases[i].durability);
        rig_free(r);
    }
}

/* A server that was told to sync less is known as such from the next connection on. */
static void a_change_is_noticed(void **state)
{
    (void)state;
    char       url[URL_MAX];
    rig       *r = start(&(rig_options){ .aof = true }, NULL, url);
    rt         box, *t = &box;
    weir_added added;
    rt_open(t, url, false);
    OK(weir_add(t->q, &(weir_spec){ .type = "a" }, &added, &t->err));
    assert_int_equal(added.durability, WEIR_DURABILITY_DISK);
    assert_true(rig_do(r, "CONFIG SET appendfsync everysec"));
    assert_true(rig_do(r, "CLIENT KILL TYPE normal"));
    OK(weir_add(t->q, &(weir_spec){ .type = "a" }, &added, &t->err));
    assert_int_equal(added.durability, WEIR_DURABILITY_NONE);
    rt_check_and_close(t);
    rig_free(r);
}

/* ---- what is asked for ---- */

static void refused(const char *url, const char *words)
{
    weir_queue *q;
    weir_error  err;
    weir_code   rc = weir_open(&q, url, NULL, &err);
    if (rc != WEIR_EINVAL || !strstr(err.msg, words) || q)
        fail_msg("%s: %s (%s)", url, weir_code_name(rc), err.msg);
}

/* Debian's Redis 7.0 has no WAITAOF. */
static void what_is_not_reached_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *config, *query, *words;     /* NULL: it is reached */
    } cases[] = {
        { "", "durability=disk", "set appendonly yes and appendfsync always" },
        { "", "durability=os", "set appendonly yes and appendfsync always" },
        { "appendonly yes\nappendfsync everysec\n", "durability=disk", "appendfsync is everysec" },
        { "appendonly yes\nappendfsync everysec\n", "durability=os", "set appendfsync always" },
        { "appendonly yes\nappendfsync no\n", "durability=disk", "appendfsync is no: set" },
        { "appendonly yes\nappendfsync no\n", "durability=os", NULL },
        { "appendonly yes\nappendfsync always\n", "durability=os", NULL },
        { "appendonly yes\nappendfsync always\n", "durability=disk", NULL },
        { "appendonly yes\nappendfsync always\nno-appendfsync-on-rewrite yes\n", "durability=disk",
          "set no-appendfsync-on-rewrite no" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char url[URL_MAX];
        rig *r = start(&(rig_options){ .config = cases[i].config }, cases[i].query, url);
        if (cases[i].words)
            refused(url, cases[i].words);
        else
            assert_true(reported(url) <= WEIR_DURABILITY_OS);
        rig_free(r);
    }
}

static void what_is_not_shown_is_refused(void **state)
{
    (void)state;
    char url[URL_MAX];
    rig *r = start(&(rig_options){ .aof = true }, NULL, url);
    assert_true(rig_do(r, "ACL SETUSER ann on >s3cret ~* &* +@all -config"));
    snprintf(url, sizeof url, "redis+unix://ann:s3cret@%s", r->socket);
    assert_int_equal(reported(url), WEIR_DURABILITY_NONE);
    strcat(url, "?durability=disk");
    refused(url, "+config|get");
    assert_true(rig_do(r, "ACL SETUSER ann +config -wait"));
    snprintf(url, sizeof url, "redis+unix://ann:s3cret@%s?replicas=1", r->socket);
    refused(url, "+wait");
    rig_free(r);
}

/* The server is held to it all the time: one that syncs less by now is of no use any more. */
static void a_change_is_refused(void **state)
{
    (void)state;
    char url[URL_MAX];
    rig *r = start(&(rig_options){ .aof = true }, "durability=disk&timeout=1s", url);
    rt   box, *t = &box;
    rt_open(t, url, false);
    rt_add_type(t, "a");
    assert_true(rig_do(r, "CONFIG SET appendfsync everysec"));
    assert_true(rig_do(r, "CLIENT KILL TYPE normal"));
    assert_int_equal(weir_add(t->q, &(weir_spec){ .type = "a" }, NULL, &t->err), WEIR_EUNAVAIL);
    assert_non_null(strstr(t->err.msg, "set appendfsync always"));
    assert_true(rig_do(r, "CONFIG SET appendfsync always"));
    UNTIL(weir_add(t->q, &(weir_spec){ .type = "a" }, NULL, &t->err) == WEIR_OK);
    rt_check_and_close(t);
    rig_free(r);
}

static void a_killed_redis_keeps_what_is_on_disk(void **state)
{
    (void)state;
    enum { ROUNDS = 3 };
    char  url[URL_MAX];
    rig  *r = start(&(rig_options){ .aof = true }, "durability=disk", url);
    load *l = load_start(url, &(load_options){ .lease_ms = 3000 });
    for (int i = 0; i < ROUNDS; i++) {
        load_until_acked(l, 50);
        rig_kill9(r);
        assert_true(rig_begin(r) && rig_ready(r));
    }
    load_until_acked(l, 50);
    load_drain(l);
    load_verify(l, 0, 0);
    load_free(l);
    rig_free(r);
}

/* ---- WAITAOF, which the Redis here does not have ---- */

#define HELLO_72 "*8\r\n+version\r\n+7.2.4\r\n+id\r\n:7\r\n+mode\r\n+standalone\r\n"             \
                 "+role\r\n+master\r\n"
#define SUBSCRIBED "*3\r\n+ssubscribe\r\n+{weir:0}:events\r\n:1\r\n"
#define ADDED      "*3\r\n+1700000000000\r\n$0\r\n\r\n*1\r\n+1\r\n"

/* The version of the layout that this weir writes. */
static char *layout_version(char out[16])
{
    char url[URL_MAX];
    rig *r = start(NULL, NULL, url);
    reported(url);
    redisReply *reply = rig_command(r, "HGET {weir:0}:meta version");
    snprintf(out, 16, "=%s", reply->str);
    freeReplyObject(reply);
    rig_free(r);
    return out;
}

/* One add, of which the server says these things: of the add itself, of WAITAOF. */
static weir_code add_to_fake(fake *f, const char *version, const char *durability,
                             const char *added, const char *waited, weir_added *out,
                             weir_error *err)
{
    char url[128];
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?timeout=500ms&durability=%s", fake_port(f),
             durability);
    FAKE_ANSWERS(f, version, version, "=1", SUBSCRIBED, "=1", "=0", added, waited);
    fixture *x = fixture_open(url);
    assert_non_null(x);
    weir_code rc = try_add(x, &(weir_spec){ .type = "a" }, out);
    *err = x->err;
    fixture_close(x);
    return rc;
}

static void a_disk_is_waited_for(void **state)
{
    (void)state;
    static const struct {
        const char *durability, *waited;
        weir_code   code;
        const char *words;
    } cases[] = {
        { "disk", "*2\r\n:1\r\n:0\r\n", WEIR_OK, "" },
        { "os", "*2\r\n:1\r\n:0\r\n", WEIR_OK, "" },
        { "disk", "*2\r\n:0\r\n:0\r\n", WEIR_EUNKNOWN, "not synced to its disk after 250 ms" },
        { "disk", "!cut", WEIR_EUNKNOWN, "connection lost" },
        { "disk", "!silent", WEIR_EUNKNOWN, "no answer" },
        { "disk", "-ERR WAITAOF cannot be used now\r\n", WEIR_EUNKNOWN, "cannot be used now" },
    };
    char version[16], heard[4096];
    layout_version(version);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake      *f = fake_start();
        weir_added added;
        weir_error err;
        fake_say(f, "HELLO", HELLO_72);
        weir_code rc = add_to_fake(f, version, cases[i].durability, ADDED, cases[i].waited, &added,
                                   &err);
        assert_int_equal(rc, cases[i].code);
        if (rc)
            assert_non_null(strstr(err.msg, cases[i].words));
        else
            assert_int_equal(added.durability, WEIR_DURABILITY_DISK);
        assert_non_null(strstr(fake_heard(f, heard, sizeof heard), "WAITAOF 1 0 250;"));
        fake_stop(f);
    }
}

/* ---- replicas ---- */

typedef struct pair {
    rig *primary, *replica;
    char url[URL_MAX];
} pair;

/* That are up to date. */
static int64_t replicas_of(const rig *primary)
{
    redisReply *r = rig_command(primary, "WAIT 1 100");
    int64_t     n = r && r->type == REDIS_REPLY_INTEGER ? r->integer : 0;
    freeReplyObject(r);
    return n;
}

static void begin_pair(pair *p, const char *query)
{
    char config[128];
    p->primary = rig_start(&(rig_options){ .tcp = true });
    assert_non_null(p->primary);
    snprintf(config, sizeof config, "replicaof 127.0.0.1 %d\n", p->primary->port);
    p->replica = rig_start(&(rig_options){ .config = config });
    assert_non_null(p->replica);
    UNTIL(replicas_of(p->primary) == 1);
    rig_url(p->primary, "redis+unix", query, p->url, sizeof p->url);
}

static void end_pair(pair *p)
{
    rig_free(p->replica);
    rig_free(p->primary);
}

static weir_code nothing(weir_job *job, void *ctx)
{
    (void)job;
    gate_up(ctx);
    return WEIR_OK;
}

static void a_stopped_replica_has_nothing(void **state)
{
    (void)state;
    pair       p;
    rt         box, *t = &box;
    gate       done = GATE_INIT;
    weir_added added;
    weir_token token = { .key = "a-call", .number = 1 };
    begin_pair(&p, "replicas=1&timeout=4s");
    rt_open(t, p.url, false);
    rt_add_type(t, "a");
    UNTIL(rig_info(p.replica, "keyspace", "db0:keys") > 0);
    rig_pause(p.replica);
    weir_spec spec = { .type = "a" };
    assert_int_equal(weir_add_many(t->q, &spec, 1, &token, &added, &t->err), WEIR_EUNKNOWN);
    assert_non_null(strstr(t->err.msg, "only 0 of 1 replicas have it after 2000 ms"));
    /* Asked again, it must not be claimed because nothing new is written. */
    assert_int_equal(weir_add_many(t->q, &spec, 1, &token, &added, &t->err), WEIR_EUNKNOWN);
    /* Workers go on. */
    OK(weir_process(t->q, "a", &(weir_pool_config){ .handler = nothing, .ctx = &done }, NULL,
                    &t->err));
    gate_wait(&done, 2);
    rig_resume(p.replica);
    UNTIL(weir_add_many(t->q, &spec, 1, &token, &added, &t->err) == WEIR_OK);
    rt_until_count(t, WEIR_STATE_COMPLETE, 2);
    assert_int_equal(rt_count(t, WEIR_STATE_ANY), 2);
    rt_check_and_close(t);
    end_pair(&p);
}

/* One that is missing is counted, too. */
static void fewer_than_asked_for(void **state)
{
    (void)state;
    pair p;
    rt   box, *t = &box;
    begin_pair(&p, "replicas=2&timeout=6s");
    rt_open(t, p.url, false);
    assert_int_equal(weir_add(t->q, &(weir_spec){ .type = "a" }, NULL, &t->err), WEIR_EUNKNOWN);
    assert_non_null(strstr(t->err.msg, "only 1 of 2 replicas"));
    assert_int_equal(weir_pause(t->q, "a", &t->err), WEIR_EUNKNOWN);
    assert_int_equal(rt_count(t, WEIR_STATE_INACTIVE), 1);
    rt_check_and_close(t);
    end_pair(&p);
}

/* Calls that are repeated over new connections are waited for over those. */
static void clients_are_killed(void **state)
{
    (void)state;
    enum { ROUNDS = 20 };
    pair p;
    begin_pair(&p, "replicas=1");
    load *l = load_start(p.url, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        load_until_acked(l, 20);
        assert_true(rig_do(p.primary, "CLIENT KILL TYPE normal"));
    }
    load_until_begun(l, 50);
    load_drain(l);
    load_verify(l, 0, 0);
    load_free(l);
    end_pair(&p);
}

/* The primary dies; all that was acknowledged is on the replica. */
static void the_replica_has_all(void **state)
{
    (void)state;
    enum { JOBS = 200 };
    pair p;
    rt   box, *t = &box;
    begin_pair(&p, "replicas=1");
    rt_open(t, p.url, false);
    for (int i = 0; i < JOBS; i++)
        rt_add_type(t, "a");
    rig_kill9(p.primary);
    rt_close(t);
    assert_true(rig_do(p.replica, "REPLICAOF NO ONE"));
    char url[URL_MAX];
    rt_open(t, rig_url(p.replica, "redis+unix", NULL, url, sizeof url), false);
    assert_int_equal(rt_count(t, WEIR_STATE_INACTIVE), JOBS);
    rt_check_and_close(t);
    end_pair(&p);
}

/* Each node of a cluster answers for itself. */
static void a_cluster_with_replicas(void **state)
{
    (void)state;
    enum { PARTITIONS = 16 };
    char       url[1024];
    rt         box, *t = &box;
    rig_nodes *c = rig_cluster(3, 1);
    assert_non_null(c);
    rig_cluster_url(c, "redis", "partitions=16&replicas=1&timeout=4s", url, sizeof url);
    rt_open(t, url, false);
    for (int i = 0; i < PARTITIONS; i++)
        rt_add_type(t, "a");
    rig_pause(c->node[3]);                      /* a replica: there is no failover */
    int safe = 0, unsafe = 0;
    for (int i = 0; i < PARTITIONS; i++) {
        weir_code rc = weir_add(t->q, &(weir_spec){ .type = "a" }, NULL, &t->err);
        if (rc == WEIR_EUNKNOWN)
            assert_non_null(strstr(t->err.msg, "only 0 of 1 replicas"));
        else
            assert_int_equal(rc, WEIR_OK);
        *(rc ? &unsafe : &safe) += 1;
    }
    assert_true(safe > 0);
    assert_true(unsafe > 0);
    rig_resume(c->node[3]);
    assert_int_equal(rt_count(t, WEIR_STATE_INACTIVE), 2 * PARTITIONS);
    rt_check_and_close(t);
    rig_nodes_free(c);
}

/* The sentinels choose another primary: all that was acknowledged is on it. */
static void a_failover_keeps_all(void **state)
{
    (void)state;
    enum { JOBS = 100 };
    char       url[URL_MAX];
    rt         box, *t = &box;
    uint64_t   n;
    rig_nodes *c = rig_sentinels(3, 2);
    assert_non_null(c);
    rig_sentinel_url(c, "redis+sentinel", "replicas=1&timeout=10s", url, sizeof url);
    rt_open(t, url, false);
    for (int i = 0; i < JOBS; i++)
        rt_add_type(t, "a");
    rig *old = rig_sentinel_primary(c);
    rig_kill9(old);
    assert_non_null(rig_sentinel_failed_over(c, old));
    UNTIL(weir_count(t->q, WEIR_STATE_INACTIVE, NULL, &n, &t->err) == WEIR_OK);
    assert_int_equal(n, JOBS);
    rt_check_and_close(t);
    rig_nodes_free(c);
}

int main(int argc, char **argv)
{
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_server_does_is_reported),
        cmocka_unit_test(a_change_is_noticed),
        cmocka_unit_test(what_is_not_reached_is_refused),
        cmocka_unit_test(what_is_not_shown_is_refused),
        cmocka_unit_test(a_change_is_refused),
        cmocka_unit_test(a_killed_redis_keeps_what_is_on_disk),
        cmocka_unit_test(a_disk_is_waited_for),
        cmocka_unit_test(a_stopped_replica_has_nothing),
        cmocka_unit_test(fewer_than_asked_for),
        cmocka_unit_test(clients_are_killed),
        cmocka_unit_test(the_replica_has_all),
        cmocka_unit_test(a_cluster_with_replicas),
        cmocka_unit_test(a_failover_keeps_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
