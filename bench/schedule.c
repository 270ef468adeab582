/* schedule.c - how fast the next firing of an expression is found, beside what libc's mktime()
 * alone needs for the same moments: a walk over local times calls it at least once; and how late
 * schedules fire when many do. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/cron.h"
#include "redis.h"

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

/* ---- how late schedules fire ---- */

enum { SCHEDULES = 100000, A_SECOND = 1000, MEASURED_S = 8 };

/* Schedules of which A_SECOND fire in each second; the others fire in January. */
static void put_schedules(weir_queue *q)
{
    enum { AT_ONCE = 500 };
    weir_error   err;
    weir_future *f[AT_ONCE];
    for (size_t i = 0; i < SCHEDULES; i++) {
        char name[32], when[48];
        snprintf(name, sizeof name, "schedule %zu", i);
        if (i < 60 * A_SECOND)
            snprintf(when, sizeof when, "%zu * * * * *", i % 60);
        else
            snprintf(when, sizeof when, "%zu %zu 1 1 *", i % 60, i / 60 % 24);
        if (weir_schedule_put_async(q, &(weir_schedule){ .name = name, .when = when,
                                                         .missed = WEIR_MISSED_SKIP,
                                                         .job = { .type = "bench" } },
                                    &f[i % AT_ONCE], &err))
            die("schedule", &err);
        for (size_t k = 0; i % AT_ONCE == AT_ONCE - 1 && k < AT_ONCE; k++) {
            if (weir_future_wait(f[k], WEIR_FOREVER, &err))
                die("schedule", &err);
            weir_future_free(f[k]);
        }
    }
}

/* How late the jobs are that were added since `from`: when a job was added, after when its schedule
 * says. Milliseconds. */
static double lateness_p99(weir_queue *q, int64_t from)
{
    weir_error err;
    weir_page *page = NULL;
    double    *late = malloc(2 * MEASURED_S * A_SECOND * sizeof *late);
    size_t     n = 0;
    weir_query query = { .state = WEIR_STATE_INACTIVE, .limit = WEIR_MAX_PAGE, .descending = true };
    for (bool more = late != NULL; more;) {
        if (weir_list(q, &query, &page, &err))
            die("list", &err);
        for (size_t i = 0; i < page->n && n < 2 * MEASURED_S * A_SECOND; i++)
            if (page->job[i]->created_at >= from)
                late[n++] = (double)(page->job[i]->created_at -
                                     weir_value_int(page->job[i], "scheduled_at", 0));
        query.after = page->next;
        more = page->more && page->job[page->n - 1]->created_at >= from;
        weir_page_free(page);
    }
    sort_samples(late, n);
    double p99 = n >= MEASURED_S / 2 * A_SECOND ? percentile(late, n, 99) : 1e9;
    free(late);
    return p99;
}

static void fire(const char *url, const char *what)
{
    weir_queue *q;
    weir_error  err;
    if (weir_open(&q, url, NULL, &err))
        die(url, &err);
    put_schedules(q);
    int64_t from = (weir_now(q) / 1000 + 2) * 1000;
    while (weir_now(q) < from + MEASURED_S * 1000)
        usleep(100000);
    double p99 = lateness_p99(q, from);
    weir_close(q);
    report(what, p99, "ms", false, 20);
}

void schedules_fire(void)
{
    char url[300];
    fire(fresh_store("os"), "100,000 schedules, 1,000 a second, lateness p99, sqlite os");
    rig *r = start_redis(false);
    fire(rig_url(r, "redis+unix", NULL, url, sizeof url),
         "100,000 schedules, 1,000 a second, lateness p99, redis");
    rig_free(r);
}
