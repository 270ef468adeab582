/* bench.h - what the measures share: running job lives, the bare floor below them, samples, and
 * how results are printed. */
#ifndef WEIR_BENCH_H
#define WEIR_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "weir/weir.h"

#define BENCH_DATA   /* 200 bytes of JSON */                                              \
    "{\"to\":\"ann@example.org\",\"subject\":\"Your order has been shipped\",\"body\":\"" \
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor "     \
    "incididunt ut labore et dolore magna aliqua. Ut\"}"
#define BENCH_RESULT "{\"sent\":true,\"n\":12}"                    /* 20 bytes */

/* How lives are led: one life = add, take, finish. */
typedef struct lives {
    const char *url;
    size_t      n;             /* lives */
    int         producers;     /* threads; 0: one thread does everything, call by call */
    int         workers;       /* threads */
    size_t      bulk;           /* jobs per weir_add_many(); 1: weir_add() */
    int         prefetch;
    bool        observe;       /* the workers are a stream */
} lives;

/* Lives per second. Ends the program when anything fails. */
double run_lives(const lives *l);
/* One half of lives that two processes lead: add all of them, or work until all are done and
 * stored. `ready` is called when the store is open and, for the work, the pool runs. They answer
 * the moment when they were through, by seconds(). */
double lead_adds(const lives *l, void (*ready)(void *ctx), void *ctx);
double lead_work(const lives *l, void (*ready)(void *ctx), void *ctx);

/* The same rows and indexes by one thread with bare SQLite, `per_commit` statements in each
 * transaction: INSERT, UPDATE to active, UPDATE to complete. Lives per second. */
double run_floor(const char *path, size_t n, size_t per_commit, bool disk);

/* Fill a store with n waiting jobs. */
void fill(const char *url, size_t n);

double   seconds(void);                 /* monotonic */
void     die(const char *what, const weir_error *err);
void     sort_samples(double *v, size_t n);
double   percentile(const double *sorted, size_t n, double p);
void     remove_store(const char *path);

/* Milliseconds from weir_add() to the start of the handler, with an idle pool. */
void add_to_start(const char *url, size_t n, double *p50, double *p99);
/* Milliseconds of weir_task_invoke(), with an idle loop and a handler that returns at once. */
void invoke_round_trip(const char *url, size_t n, double *p50, double *p99);
/* Milliseconds from when a delayed job is due to the start of its handler. */
double delayed_start_p99(const char *url, size_t n);
/* Resident MiB of a process that has opened the store, counted and done some lives. */
double resident_mib(const char *url);

/* ---- results: main.c ---- */

enum { MAX_ROUNDS = 16 };
extern int rounds;                      /* how often a pair is measured */

size_t scaled(size_t n);                /* fewer when it must be quick */
double middle(double *ratio, int n);    /* sorts them */

/* A line with a target, one without, and one that could not be measured. */
void report(const char *name, double value, const char *unit, bool at_least, double target);
void report_alone(const char *name, double value, const char *unit);
void report_skipped(const char *name, const char *why);
/* The rates behind a ratio, as they were the last time. */
void note(const char *what, double a, double b);

/* The URL of a sqlite store that is not there yet; the last one is gone. */
const char *fresh_store(const char *durability);

/* ---- the measures of schedules: schedule.c ---- */

void cron_next(void);
void schedules_fire(void);
void due_at_once(void);                 /* due.c */

/* ---- the measures of one file and many processes: share.c ---- */

void share_lives(void);
void share_nats(void);
void share_starts(void);
void share_kills(void);
void share_command(void);

/* ---- the measures of the server: http.c ---- */

void http_bulk(void);
void http_single(void);
void http_beanstalkd(void);
void http_starts(void);
void http_listeners(void);
void http_million(void);

/* ---- the measures on Redis: redis.c ---- */

void redis_bulk(void);
void redis_plain(void);
void redis_bullmq(void);
void redis_kue(void);
void redis_memory_per_job(void);
void redis_million(void);
void redis_starts(void);
void redis_cluster(void);

/* ---- the measures of the event bus: bus.c, bus_bridge.c, bus_load.c ---- */

void bus_request_reply(void);
void bus_bridge(void);
void bus_load(void);
void bus_persistent(void);
void bus_publish(void);
void bus_idle(void);

#endif
