/* test_cluster.c - a queue in 16 partitions on a cluster of 3 primaries and 3 replicas: it is one
 * queue to those who use it, also while a primary dies or slots move. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/load.h"
#include "support/redis_rig.h"

enum { URL_MAX = 600, PARTITIONS = 16, LAG_MS = 1000 };

static rig_nodes *cluster;

static int start_cluster(void **state)
{
    (void)state;
    cluster = rig_cluster(3, 1);
    return cluster ? 0 : -1;
}

static int stop_cluster(void **state)
{
    (void)state;
    rig_nodes_free(cluster);
    return 0;
}

/* A prefix of its own for each case: "c1", "c2" ... */
static char prefix[16];

static char *new_url(char url[URL_MAX])
{
    static int n;
    char       query[64];
    snprintf(prefix, sizeof prefix, "c%d", ++n);
    snprintf(query, sizeof query, "partitions=%d&prefix=%s", PARTITIONS, prefix);
    return rig_cluster_url(cluster, "redis", query, url, URL_MAX);
}

/* The slot of a partition of this case's queue. */
static uint32_t slot_of(int partition)
{
    char key[64];
    snprintf(key, sizeof key, "{%s:%d}", prefix, partition);
    for (size_t i = 0; i < cluster->n; i++) {
        redisReply *reply = cluster->node[i]->pid
                                ? rig_command(cluster->node[i], "CLUSTER KEYSLOT %s", key)
                                : NULL;
        uint32_t slot = reply ? (uint32_t)reply->integer : 0;
        freeReplyObject(reply);
        if (reply)
            return slot;
    }
    fail_msg("no node runs");
    return 0;
}

/* ---- one queue ---- */

typedef struct seen {
    size_t n;
    bool   id[100000];
} seen;

static void look(seen *s, const weir_page *page)
{
    for (size_t i = 0; i < page->n; i++) {
        assert_true(page->job[i]->id < 100000);
        assert_false(s->id[page->job[i]->id]);
        s->id[page->job[i]->id] = true;
        s->n++;
    }
}

/* All pages of a query; each job once, and by id if it says so. */
static size_t walk(rt *t, weir_query query, bool by_id)
{
    seen    *s = calloc(1, sizeof *s);
    uint64_t last = 0;
    for (bool more = true; more;) {
        weir_page *page;
        OK(weir_list(t->q, &query, &page, &t->err));
        look(s, page);
        for (size_t i = 0; by_id && i < page->n; i++) {
            assert_true(page->job[i]->id > last);
            last = page->job[i]->id;
        }
        more = page->more;
        query.after = page->next;
        weir_page_free(page);
    }
    size_t n = s->n;
    free(s);
    return n;
}

static void one_queue(void **state)
{
    (void)state;
    enum { JOBS = 480, TAKEN = 100 };
    static const char *const types[] = { "a", "b", NULL };
    char url[URL_MAX];
    rt   box, *t = &box, other;
    rt_open(t, new_url(url), false);
    rt_open(&other, url, false);
    record *r = record_start(&other, NULL);
    for (int i = 0; i < JOBS; i++) {
        char data[64];
        snprintf(data, sizeof data, "{\"word\":\"%s\",\"n\":%d}", i % 4 ? "herring" : "cod", i);
        rt_add(t, &(weir_spec){ .type = i % 3 ? "a" : "b", .data = data, .search = true,
                                .priority = i % 5, .delay_ms = i % 8 ? 0 : 3600000 });
    }
    assert_int_equal(rt_count(&other, WEIR_STATE_ANY), JOBS);
    assert_int_equal(rt_count(&other, WEIR_STATE_DELAYED), JOBS / 8);
    assert_int_equal(walk(&other, (weir_query){ .limit = 37 }, true), JOBS);
    assert_int_equal(walk(&other, (weir_query){ .state = WEIR_STATE_INACTIVE, .limit = 50 }, false),
                     JOBS - JOBS / 8);
    assert_int_equal(walk(&other, (weir_query){ .type = "b", .limit = 50 }, true), JOBS / 3);
    weir_query third = { .by_priority = true, .priority = 3, .limit = 7 };
    assert_int_equal(walk(&other, third, true), JOBS / 5);
    third.state = WEIR_STATE_INACTIVE;
    assert_int_equal(walk(&other, third, true), JOBS / 5 - JOBS / 40);
    third.state = WEIR_STATE_DELAYED;
    assert_int_equal(walk(&other, third, false), JOBS / 40);
    assert_int_equal(walk(&other, (weir_query){ .search = "cod", .limit = 10 }, true), JOBS / 4);
    assert_int_equal(walk(&other, (weir_query){ .search = "herr*", .limit = 99 }, true),
                     JOBS - JOBS / 4);
    record_until(r, WEIR_EVENT_ENQUEUE, JOBS - JOBS / 8);
    for (size_t i = 0; i < cluster->n; i++)             /* nobody has it all */
        assert_true(rig_info(cluster->node[i], "keyspace", "db0:keys") > 0);
    weir_job *job[TAKEN];
    size_t    n, got = 0;
    while (got < TAKEN) {
        OK(weir_take(other.q, &(weir_taking){ .types = types, .n = TAKEN - got }, &job[got], &n,
                     &t->err));
        assert_true(n > 0);
        got += n;
    }
    assert_int_equal(rt_count(t, WEIR_STATE_ACTIVE), TAKEN);
    for (size_t i = 0; i < TAKEN; i++) {
        assert_int_equal(weir_job_done(job[i], "1", 0, NULL), WEIR_OK);
        weir_job_free(job[i]);
    }
    record_until(r, WEIR_EVENT_COMPLETE, TAKEN);
    assert_int_equal(rt_count(t, WEIR_STATE_COMPLETE), TAKEN);
    assert_int_equal(walk(t, (weir_query){ .state = WEIR_STATE_COMPLETE, .limit = 7 }, false),
                     TAKEN);
    record_stop(r);
    rt_close(&other);
    rt_check_and_close(t);
}

static void the_number_of_partitions_stays(void **state)
{
    (void)state;
    char        url[URL_MAX], wrong[URL_MAX + 64];
    rt          box, *t = &box;
    weir_queue *q;
    rt_open(t, new_url(url), false);
    rt_add_type(t, "a");
    snprintf(wrong, sizeof wrong, "%s", url);
    char *at = strstr(wrong, "partitions=16");
    memcpy(at, "partitions=15", strlen("partitions=15"));
    assert_int_equal(weir_open(&q, wrong, NULL, &t->err), WEIR_EINVAL);
    assert_non_null(strstr(t->err.msg, "16"));
    char *rest = at + strlen("partitions=16&");         /* not said: as it has them */
    memmove(at, rest, strlen(rest) + 1);
    rt other;
    rt_open(&other, wrong, false);
    assert_int_equal(rt_count(&other, WEIR_STATE_INACTIVE), 1);
    rt_close(&other);
    rt_check_and_close(t);
}

/* ---- trouble ---- */

static void slots_move(void **state)
{
    (void)state;
    enum { MOVED = 6 };
    char  url[URL_MAX];
    load *l = load_start(new_url(url), &(load_options){ .pace_us = 2000 });
    load_until_acked(l, 200);
    for (int i = 0; i < MOVED; i++) {
        uint32_t slot = slot_of(i);
        rig     *from = rig_cluster_primary(cluster, slot);
        rig     *to = cluster->node[0] == from ? cluster->node[1] : cluster->node[0];
        assert_non_null(from);
        assert_true(rig_cluster_move(cluster, slot, to));
        load_until_acked(l, 30);
        if (i % 2)
            assert_true(rig_cluster_move(cluster, slot, from));
    }
    load_until_acked(l, 100);
    load_until_begun(l, 100);
    load_drain(l);
    load_verify(l, 0, 0);           /* moving loses nothing */
    load_free(l);
}

/* A replica takes over when it is asked to, in good order. */
static void handed_over(void **state)
{
    (void)state;
    char     url[URL_MAX];
    load    *l = load_start(new_url(url), &(load_options){ .pace_us = 2000 });
    uint32_t slot = slot_of(0);
    load_until_acked(l, 100);
    rig *old = rig_cluster_primary(cluster, slot), *next = NULL;
    for (size_t i = 0; i < cluster->n && !next; i++) {
        redisReply *role = rig_command(cluster->node[i], "ROLE");
        if (!strcmp(role->element[0]->str, "slave") && role->element[2]->integer == old->port)
            next = cluster->node[i];
        freeReplyObject(role);
    }
    assert_non_null(next);
    assert_true(rig_do(next, "CLUSTER FAILOVER"));
    assert_ptr_equal(rig_cluster_failed_over(cluster, slot, old), next);
    load_until_acked(l, 100);
    load_until_begun(l, 100);
    load_drain(l);
    load_verify(l, 0, 0);           /* nothing is lost so */
    load_free(l);
}

/* A lot with unique keys goes to several primaries. When one of them is gone, nobody may say that
 * none of it was added. */
static void a_lot_in_parts(void **state)
{
    (void)state;
    enum { LOT = 40 };
    char url[URL_MAX], unique[LOT][16];
    rt   box, *t = &box;
    rt_open(t, strcat(new_url(url), "&timeout=400ms"), false);
    rig *old = rig_cluster_primary(cluster, slot_of(0));
    assert_non_null(old);
    rig_kill9(old);
    weir_spec specs[LOT] = { 0 };
    for (int i = 0; i < LOT; i++) {
        snprintf(unique[i], sizeof unique[i], "u%d", i);
        specs[i] = (weir_spec){ .type = "a", .unique = unique[i] };
    }
    weir_code rc = weir_add_many(t->q, specs, LOT, NULL, NULL, &t->err);
    assert_non_null(rig_cluster_failed_over(cluster, slot_of(0), old));
    uint64_t there = 0;
    UNTIL(weir_count(t->q, WEIR_STATE_ANY, NULL, &there, &t->err) == WEIR_OK);
    print_message("# %s: %" PRIu64 " of %d\n", weir_code_name(rc), there, LOT);
    if (rc == WEIR_OK)
        assert_int_equal(there, LOT);
    else if (rc != WEIR_EUNKNOWN)
        assert_int_equal(there, 0);
    /* Adding them again adds what is missing. */
    weir_added added[LOT];
    OK(weir_add_many(t->q, specs, LOT, NULL, added, &t->err));
    assert_int_equal(rt_count(t, WEIR_STATE_ANY), LOT);
    assert_true(rig_begin(old) && rig_ready(old) && rig_cluster_ready(cluster));
    rt_check_and_close(t);
}

static void a_primary_dies(void **state)
{
    (void)state;
    char     url[URL_MAX];
    load    *l = load_start(new_url(url), &(load_options){ .lease_ms = 4000, .pace_us = 2000 });
    uint32_t slot = slot_of(3);
    load_until_acked(l, 200);
    rig *old = rig_cluster_primary(cluster, slot);
    assert_non_null(old);
    int64_t safe = load_replicated(old, 1), killed = rt_ms();
    rig_kill9(old);
    assert_non_null(rig_cluster_failed_over(cluster, slot, old));
    load_until_acked(l, 200);
    load_until_begun(l, 100);
    assert_true(rig_begin(old) && rig_ready(old) && rig_cluster_ready(cluster));
    load_until_acked(l, 50);
    load_drain(l);
    load_verify(l, safe, killed + LAG_MS);
    load_free(l);
}

int main(int argc, char **argv)
{
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);     /* "paused*" */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_queue),
        cmocka_unit_test(the_number_of_partitions_stays),
        cmocka_unit_test(slots_move),
        cmocka_unit_test(handed_over),
        cmocka_unit_test(a_lot_in_parts),
        cmocka_unit_test(a_primary_dies),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
