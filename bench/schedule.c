/* schedule.c - how fast the next firing of an expression is found, beside what libc's mktime()
 * alone needs for the same moments: a walk over local times calls it at least once. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"
#include "core/cron.h"

enum { EXPRESSIONS = 100 };

static const char *const zone_name = "Europe/Berlin";

/* A mixed set: often and rarely, plain fields and special days. */
static void make_expressions(weir_cron *out)
{
    static const char *const kinds[] = {
        "%d * * * *", "*/%d * * * *", "%d 6 * * *", "%d 6 * * 1-5", "0 %d 1 * *", "%d 0 L * *",
        "%d 12 15W * *", "%d 3 * * 5#2", "%d 2 * 3,10 0", "%d 9-17/2 * * MON,WED"
    };
    for (int i = 0; i < EXPRESSIONS; i++) {
        char       text[64];
        weir_error err;
        snprintf(text, sizeof text, kinds[i % 10], 1 + i * 7 % 22);
        if (weir__cron_parse(&out[i], text, zone_name, false, &err))
            die(text, &err);
    }
}

/* Firings per second. The sum keeps the compiler from leaving the work out. */
static double run_next(const weir_cron *set, const int64_t *at, size_t n, int64_t *sum)
{
    double start = seconds();
    for (size_t i = 0; i < n; i++)
        *sum += weir__cron_next(&set[i % EXPRESSIONS], 0, at[i]);
    return (double)n / (seconds() - start);
}

static double run_mktime(const struct tm *local, size_t n, int64_t *sum)
{
    double start = seconds();
    for (size_t i = 0; i < n; i++) {
        struct tm tm = local[i];
        *sum += (int64_t)mktime(&tm);
    }
    return (double)n / (seconds() - start);
}

void cron_next(void)
{
    size_t     n = scaled(1000000);
    weir_cron  set[EXPRESSIONS];
    int64_t   *at = malloc(n * sizeof *at), sum = 0;
    struct tm *local = malloc(n * sizeof *local);
    double     ratio[MAX_ROUNDS], ours[MAX_ROUNDS], next = 0, libc = 0;
    if (!at || !local)
        die("cron", &(weir_error){ .msg = "out of memory" });
    setenv("TZ", zone_name, 1);
    tzset();
    make_expressions(set);
    srandom(1);
    for (size_t i = 0; i < n; i++) {
        time_t t = 1700000000 + random() % 315360000;       /* ten years */
        at[i] = (int64_t)t * 1000;
        localtime_r(&t, &local[i]);
        local[i].tm_isdst = -1;
    }
    for (int i = 0; i < rounds; i++) {
        next = ours[i] = run_next(set, at, n, &sum);
        libc = run_mktime(local, n, &sum);
        ratio[i] = next / libc;
    }
    note("next firing of 100 expressions over mktime()", next, libc);
    report("next firing of 100 expressions over mktime()", middle(ratio, rounds), "x", true, 1);
    report("next firing of 100 expressions", middle(ours, rounds), "/s", true, 500000);
    if (sum == 42)
        puts("");
    free(at);
    free(local);
}
