/* redis.c - the measures on Redis: over the bare floor, over other queues, memory, latency, and a
 * cluster over one node. Each starts servers of its own. */
#include "redis.h"

#include <stdio.h>

static const lives plain = { .producers = 8, .workers = 8, .bulk = 1 };
static const lives bulks = { .producers = 8, .workers = 8, .bulk = 100, .prefetch = 32 };

static char url[600];

static lives with(lives l, size_t n, const char *where)
{
    l.n = n;
    l.url = where;
    return l;
}

/* What Redis itself used, which other load on the machine does not change much. */
static void note_cpu(double us, double them)
{
    printf("  Redis CPU a life %.1f us over %.1f us\n", us, them);
}

/* Lives per second; *cpu_us is what Redis used for each. */
static double run_counted(const rig *r, const lives *l, double *cpu_us)
{
    double before = redis_cpu_us(r), rate = run_lives(l);
    *cpu_us = (redis_cpu_us(r) - before) / (double)l->n;
    return rate;
}

/* ---- over the floor ---- */

static void over_floor(const char *name, lives l, size_t deep, double target)
{
    double ratio[MAX_ROUNDS], us = 0, floor = 0, us_cpu = 0, floor_cpu = 0;
    rig *r = start_redis(false);
    l.url = rig_url(r, "redis+unix", NULL, url, sizeof url);
    for (int i = 0; i < rounds; i++) {
        empty_redis(r);
        floor_cpu = -redis_cpu_us(r);
        floor = run_redis_floor(r, l.n, deep);
        floor_cpu = (floor_cpu + redis_cpu_us(r)) / (double)l.n;
        empty_redis(r);
        us = run_counted(r, &l, &us_cpu);
        ratio[i] = us / floor;
    }
    rig_free(r);
    note(name, us, floor);
    note_cpu(us_cpu, floor_cpu);
    report(name, middle(ratio, rounds), "x", true, target);
}

void redis_bulk(void)
{
    over_floor("redis, bulks of 100 and prefetch, over floor 64 deep",
               with(bulks, scaled(200000), NULL), 64, 0.6);
}

void redis_plain(void)
{
    over_floor("redis, plain calls, over floor 16 deep", with(plain, scaled(60000), NULL), 16,
               0.4);
}

/* ---- over other queues: two processes on each side, over TCP ---- */

typedef struct peer {
    const char *file, *variant; /* its driver, and what of it */
    const char *scheme;         /* weir's side */
    size_t      n, peer_n;      /* jobs */
    const char *name;           /* of the line with the ratio of lives */
    double      target;
    const char *cpu_name;       /* and of Redis's processor time a life; NULL: no such line */
    double      cpu_target;
} peer;

static void over_peer(const peer *p)
{
    double      ratio[MAX_ROUNDS], cpu[MAX_ROUNDS];
    pair_answer us = { 0 }, them = { 0 };
    if (!have_peers()) {
        report_skipped(p->name, "set WEIR_PEERS");
        if (p->cpu_name)
            report_skipped(p->cpu_name, "set WEIR_PEERS");
        return;
    }
    rig  *r = start_redis(true);
    int   n = rounds > 3 ? 3 : rounds;
    lives l = { .n = p->n, .url = rig_url(r, p->scheme, NULL, url, sizeof url), .producers = 1,
                .workers = 8, .bulk = 100, .prefetch = 32 };
    for (int i = 0; i < n; i++) {
        them = run_peer(r, p->file, p->variant, p->peer_n);
        empty_redis(r);
        us = run_pair(r, &l);
        ratio[i] = us.lives_s / them.lives_s;
        cpu[i] = us.cpu_us / them.cpu_us;
    }
    rig_free(r);
    note(p->name, us.lives_s, them.lives_s);
    report(p->name, middle(ratio, n), "x", true, p->target);
    note_cpu(us.cpu_us, them.cpu_us);
    if (p->cpu_name)
        report(p->cpu_name, middle(cpu, n), "x", false, p->cpu_target);
}

void redis_bullmq(void)
{
    over_peer(&(peer){ .file = "bullmq.js", .variant = "addBulk 100", .scheme = "redis",
                       .n = scaled(100000), .peer_n = scaled(20000),
                       .name = "redis, bulks of 100, over BullMQ addBulk of 100", .target = 8,
                       .cpu_name = "redis, Redis CPU a life over BullMQ's", .cpu_target = 0.25 });
}

void redis_kue(void)
{
    over_peer(&(peer){ .file = "kue.js", .variant = "save c50", .scheme = "redis+kue",
                       .n = scaled(40000), .peer_n = scaled(10000),
                       .name = "redis+kue, bulks of 100, over npm kue", .target = 4 });
}

/* ---- a full queue ---- */

void redis_memory_per_job(void)
{
    size_t n = scaled(100000);
    rig *r = start_redis(false);
    rig_url(r, "redis+unix", NULL, url, sizeof url);
    fill(url, 1);                       /* scripts, and what a queue needs once */
    double before = redis_memory(r);
    fill(url, n);
    double bytes = (redis_memory(r) - before) / (double)n;
    rig_free(r);
    report("redis, memory per waiting job with 200 bytes of data", bytes, "bytes", false, 700);
}

static void over_empty(const char *name, lives l)
{
    double ratio[MAX_ROUNDS], full = 0, empty = 0, full_cpu = 0, empty_cpu = 0;
    rig *r = start_redis(false);
    int n = rounds > 3 ? 3 : rounds;
    l.url = rig_url(r, "redis+unix", NULL, url, sizeof url);
    for (int i = 0; i < n; i++) {
        empty_redis(r);
        empty = run_counted(r, &l, &empty_cpu);
        empty_redis(r);
        fill(url, scaled(1000000));
        full = run_counted(r, &l, &full_cpu);
        ratio[i] = full / empty;
    }
    rig_free(r);
    note(name, full, empty);
    note_cpu(full_cpu, empty_cpu);
    report(name, middle(ratio, n), "x", true, 0.8);
}

void redis_million(void)
{
    over_empty("redis, plain calls, 1,000,000 waiting over empty queue",
               with(plain, scaled(40000), NULL));
    over_empty("redis, bulks of 100, 1,000,000 waiting over empty queue",
               with(bulks, scaled(100000), NULL));
}

/* ---- latency ---- */

void redis_starts(void)
{
    double p50, p99;
    rig *r = start_redis(false);
    pair_starts(rig_url(r, "redis+unix", NULL, url, sizeof url), scaled(2000), 200, &p50, &p99);
    rig_free(r);
    report("redis, add to handler start in another process, p50", p50, "ms", false, 1);
    report("redis, add to handler start in another process, p99", p99, "ms", false, 5);
}

/* ---- a cluster ---- */

void redis_cluster(void)
{
    const char *name = "redis, cluster of 3 with 16 partitions over one node";
    double ratio[MAX_ROUNDS], cpu[MAX_ROUNDS], many = 0, one = 0, many_cpu = 0, one_cpu = 0;
    char many_url[600];
    rig *r = start_redis(true);
    rig_nodes *c = start_redis_cluster();
    size_t lived = scaled(300000);
    lives of_one = with(bulks, lived, rig_url(r, "redis", NULL, url, sizeof url));
    lives of_many = with(bulks, lived, rig_cluster_url(c, "redis", "partitions=16", many_url,
                                                      sizeof many_url));
    for (int i = 0; i < rounds; i++) {
        empty_redis(r);
        one = run_counted(r, &of_one, &one_cpu);
        for (size_t k = 0; k < c->n; k++)
            empty_redis(c->node[k]);
        many_cpu = -cluster_cpu_us(c);
        many = run_lives(&of_many);
        many_cpu = (many_cpu + cluster_cpu_us(c)) / (double)lived;
        ratio[i] = many / one;
        cpu[i] = many_cpu / one_cpu;
    }
    rig_nodes_free(c);
    rig_free(r);
    note(name, many, one);
    note_cpu(many_cpu, one_cpu);
    report_alone(name, middle(ratio, rounds), "x");
    report("redis, CPU of all nodes a life over one node's", middle(cpu, rounds), "x", false, 1.10);
}
