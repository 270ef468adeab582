/* bench.h - what the measures share: running job lives, the bare floor below them, samples. */
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
    size_t      lot;           /* jobs per weir_add_many(); 1: weir_add() */
    int         prefetch;
} lives;

/* Lives per second. Ends the program when anything fails. */
double run_lives(const lives *l);

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
/* Milliseconds from when a delayed job is due to the start of its handler. */
double delayed_start_p99(const char *url, size_t n);
/* Resident MiB of a process that has opened the store, counted and done some lives. */
double resident_mib(const char *url);

#endif
