/* main.c - `make bench`: one line a measure (name, value, target, ok or short), and the same as
 * JSON. Ratios compare two things measured in turns in this run, since machines differ and are
 * noisy: each pair is measured several times and the middle ratio counts. */
#include "bench.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char   dir[400];        /* where stores are made */
static double scale = 1.0;     /* --quick makes everything smaller */
int           rounds = 5;

/* ---- output ---- */

static FILE *json;
static int   lines;

void report(const char *name, double value, const char *unit, bool at_least, double target)
{
    bool ok = at_least ? value >= target : value <= target;
    printf("%-58s %9.2f %-5s %s %6.2f  %s\n", name, value, unit, at_least ? ">=" : "<=", target,
           ok ? "ok" : "short");
    fflush(stdout);
    fprintf(json, "%s\n  {\"name\":\"%s\",\"value\":%.4f,\"unit\":\"%s\",\"target\":%.4f,"
            "\"at_least\":%s,\"ok\":%s}", lines++ ? "," : "", name, value, unit, target,
            at_least ? "true" : "false", ok ? "true" : "false");
}

void report_alone(const char *name, double value, const char *unit)
{
    printf("%-58s %9.2f %-5s\n", name, value, unit);
    fflush(stdout);
    fprintf(json, "%s\n  {\"name\":\"%s\",\"value\":%.4f,\"unit\":\"%s\"}", lines++ ? "," : "",
            name, value, unit);
}

void report_skipped(const char *name, const char *why)
{
    printf("%-58s skipped (%s)\n", name, why);
    fflush(stdout);
    fprintf(json, "%s\n  {\"name\":\"%s\",\"skipped\":\"%s\"}", lines++ ? "," : "", name, why);
}

void note(const char *what, double a, double b)
{
    printf("  %-56s %9.0f over %.0f a second\n", what, a, b);
}

/* ---- stores ---- */

static char path[500], url[600];

const char *fresh_store(const char *durability)
{
    snprintf(path, sizeof path, "%s/bench.db", dir);
    remove_store(path);
    snprintf(url, sizeof url, "sqlite:%s?durability=%s", path, durability);
    return url;
}

static double floor_of(size_t n, size_t per_commit, bool disk)
{
    fresh_store(disk ? "disk" : "os");
    double v = run_floor(path, n, per_commit, disk);
    remove_store(path);
    return v;
}

size_t scaled(size_t n)
{
    size_t v = (size_t)((double)n * scale) / 100 * 100;
    return v ? v : 100;
}

/* ---- measures ---- */

/* The middle one of some ratios, each from two runs next to each other. */
double middle(double *ratio, int n)
{
    sort_samples(ratio, (size_t)n);
    return ratio[n / 2];
}

static void over_floor(const char *name, lives l, size_t per_commit, bool disk, double target)
{
    double ratio[MAX_ROUNDS], us = 0, floor = 0;
    for (int i = 0; i < rounds; i++) {
        floor = floor_of(l.n, per_commit, disk);
        l.url = fresh_store(disk ? "disk" : "os");
        us = run_lives(&l);
        ratio[i] = us / floor;
    }
    note(name, us, floor);
    report(name, middle(ratio, rounds), "x", true, target);
}

static void sqlite_os(void)
{
    over_floor("sqlite os, plain calls, over floor of 16",
               (lives){ .n = scaled(60000), .producers = 8, .workers = 8, .bulk = 1 }, 16, false,
               0.7);
    over_floor("sqlite os, bulks of 100 and prefetch, over floor of 256",
               (lives){ .n = scaled(100000), .producers = 8, .workers = 8, .bulk = 100,
                        .prefetch = 32 }, 256, false, 0.7);
}

static void sqlite_disk(void)
{
    over_floor("sqlite disk, plain calls, over floor of 16",
               (lives){ .n = scaled(20000), .producers = 8, .workers = 8, .bulk = 1 }, 16, true,
               0.7);
    over_floor("sqlite disk, bulks of 100 and prefetch, over floor of 256",
               (lives){ .n = scaled(100000), .producers = 8, .workers = 8, .bulk = 100,
                        .prefetch = 32 }, 256, true, 0.7);
}

static void sqlite_alone(void)
{
    over_floor("sqlite os, one thread, plain calls, over floor of 1",
               (lives){ .n = scaled(20000), .bulk = 1 }, 1, false, 0.8);
}

static const lives plain = { .producers = 8, .workers = 8, .bulk = 1 };

static void million_waiting(void)
{
    double ratio[MAX_ROUNDS], full = 0, empty = 0;
    lives l = plain;
    l.n = scaled(40000);
    int n = rounds > 3 ? 3 : rounds;
    for (int i = 0; i < n; i++) {
        l.url = fresh_store("os");
        empty = run_lives(&l);
        fill(fresh_store("os"), scaled(1000000));
        l.url = url;
        full = run_lives(&l);
        ratio[i] = full / empty;
    }
    note("lives with 1,000,000 jobs waiting over an empty queue", full, empty);
    report("lives with 1,000,000 jobs waiting over an empty queue", middle(ratio, n), "x",
           true, 0.9);
    report("resident memory with 1,000,000 jobs waiting", resident_mib(url), "MiB", false, 64);
    remove_store(path);
}

static void mem_over_sqlite(void)
{
    double ratio[MAX_ROUNDS], mem = 0, sqlite = 0;
    lives l = plain;
    for (int i = 0; i < rounds; i++) {
        l.n = scaled(60000);
        l.url = fresh_store("os");
        sqlite = run_lives(&l);
        l.n = scaled(200000);
        l.url = "mem:";
        mem = run_lives(&l);
        ratio[i] = mem / sqlite;
    }
    remove_store(path);
    note("mem over sqlite os, plain calls", mem, sqlite);
    report("mem over sqlite os, plain calls", middle(ratio, rounds), "x", true, 5);
}

static void observe_over_pool(void)
{
    double ratio[MAX_ROUNDS], stream = 0, pool = 0;
    lives l = plain;
    l.n = scaled(60000);
    for (int i = 0; i < rounds; i++) {
        l.observe = false;
        l.url = fresh_store("os");
        pool = run_lives(&l);
        l.observe = true;
        l.url = fresh_store("os");
        stream = run_lives(&l);
        ratio[i] = stream / pool;
    }
    remove_store(path);
    note("observe: items over a plain pool with the same handler", stream, pool);
    report("observe: items over a plain pool with the same handler", middle(ratio, rounds), "x",
           true, 0.8);
}

static void starts(void)
{
    double p50, p99;
    add_to_start(fresh_store("os"), scaled(1000), &p50, &p99);
    report("add to handler start, idle pool, sqlite os, p50", p50, "ms", false, 1);
    report("add to handler start, idle pool, sqlite os, p99", p99, "ms", false, 5);
    p99 = delayed_start_p99(fresh_store("os"), scaled(1000));
    report("delayed job: start after its due time, p99", p99, "ms", false, 5);
    remove_store(path);
}

static void invoke(void)
{
    double p50, p99;
    invoke_round_trip(fresh_store("os"), scaled(1000), &p50, &p99);
    report("invoke a task, round trip, idle, sqlite os, p50", p50, "ms", false, 0.5);
    report("invoke a task, round trip, idle, sqlite os, p99", p99, "ms", false, 3);
    remove_store(path);
}

static const struct {
    const char *name;
    void      (*run)(void);
} measures[] = {
    { "sqlite-os", sqlite_os },     { "sqlite-disk", sqlite_disk }, { "alone", sqlite_alone },
    { "cron", cron_next },        { "schedules", schedules_fire }, { "due", due_at_once },
    { "million", million_waiting }, { "mem", mem_over_sqlite },     { "starts", starts },
    { "invoke", invoke },
    { "observe", observe_over_pool },
    { "redis-bulk", redis_bulk },   { "redis-plain", redis_plain },
    { "redis-bullmq", redis_bullmq }, { "redis-kue", redis_kue },
    { "redis-memory", redis_memory_per_job }, { "redis-million", redis_million },
    { "redis-starts", redis_starts }, { "redis-cluster", redis_cluster },
    { "share-lives", share_lives }, { "share-nats", share_nats },
    { "share-starts", share_starts }, { "share-kills", share_kills },
    { "share-command", share_command },
    { "http-bulk", http_bulk },     { "http-single", http_single },
    { "http-beanstalkd", http_beanstalkd }, { "http-starts", http_starts },
    { "http-listeners", http_listeners },   { "http-million", http_million },
    { "bus-request", bus_request_reply },   { "bus-bridge", bus_bridge },
    { "bus-load", bus_load },       { "bus-persistent", bus_persistent },
    { "bus-publish", bus_publish }, { "bus-idle", bus_idle },
};

static int usage(void)
{
    fprintf(stderr, "usage: bench [--quick] [--rounds N] [--json FILE] [--dir DIR] [MEASURE...]\n"
            "measures:");
    for (size_t i = 0; i < sizeof measures / sizeof *measures; i++)
        fprintf(stderr, " %s", measures[i].name);
    fprintf(stderr, "\n");
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = { { "quick", no_argument, NULL, 'q' },
                                             { "rounds", required_argument, NULL, 'r' },
                                             { "json", required_argument, NULL, 'j' },
                                             { "dir", required_argument, NULL, 'd' }, { 0 } };
    const char *json_path = "bench.json", *where = ".";
    int opt;
    while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (opt) {
        case 'q': scale = 0.05; rounds = 1; break;
        case 'r': rounds = atoi(optarg); break;
        case 'j': json_path = optarg; break;
        case 'd': where = optarg; break;
        default:  return usage();
        }
    }
    if (rounds < 1 || rounds > MAX_ROUNDS)
        return usage();
    snprintf(dir, sizeof dir, "%s/bench-XXXXXX", where);
    json = fopen(json_path, "w");
    if (!json || !mkdtemp(dir)) {
        perror(json ? dir : json_path);
        return 1;
    }
    fprintf(json, "[");
    for (size_t i = 0; i < sizeof measures / sizeof *measures; i++) {
        bool wanted = optind == argc;
        for (int k = optind; k < argc; k++)
            wanted |= strcmp(argv[k], measures[i].name) == 0;
        if (wanted)
            measures[i].run();
    }
    fprintf(json, "\n]\n");
    fclose(json);
    fresh_store("os");
    rmdir(dir);
    return 0;
}
