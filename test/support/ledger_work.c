/* ledger_work.c - the child's side of the ledger: producers and workers. See ledger.h. */
#include "support/ledger.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PRODUCERS = 4, WORKERS = 4, PREFETCHING_WORKERS = 2, BATCH = 5, PATIENCE_MS = 120000 };

typedef struct child {
    const ledger_work *work;
    weir_queue        *q;
    _Atomic uint64_t   next_key;
} child;

static int ledger_fd;

static void give_up(const char *what, const char *why)
{
    printf("Bail out! %s: %s\n", what, why);
    fflush(stdout);
    _exit(1);
}

/* A record is a line, written with one write(2), so that no kill tears it. */
__attribute__((format(printf, 1, 2))) static void record(const char *fmt, ...)
{
    char line[160];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (write(ledger_fd, line, (size_t)n) != n)
        give_up("ledger", "short write");
}

static int64_t monotonic_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void rest(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

/* Should a call that ended like this be repeated? Gives up where that is not part of the plan. */
static void repeat_or_give_up(const child *c, int64_t since, const char *what,
                              const weir_error *err)
{
    bool passing = weir_code_may_retry(err->code) || err->code == WEIR_EUNKNOWN;
    if (!c->work->patient || !passing || monotonic_ms() - since > PATIENCE_MS)
        give_up(what, err->msg);
    rest();
}

/* ---- producers ---- */

static weir_spec spec_of(const ledger_work *work, uint64_t key, char data[64])
{
    snprintf(data, 64, "{\"k\":%" PRIu64 "}", key);
    return (weir_spec){ .type = key % 3 ? "odd" : "even", .data = data, .attempts = 3,
                        .priority = (int32_t)(key % 5),
                        .max_lost = work->poison == LEDGER_NO_POISON ? 1000000 : 0,
                        .delay_ms = key % 11 == 0 ? 5 : 0, .remove_on_complete = key % 7 == 0,
                        .backoff = { key % 2 ? WEIR_BACKOFF_FIXED : WEIR_BACKOFF_NONE,
                                     .delay_ms = 2 } };
}

static void add(child *c, const weir_token *token, const weir_spec *specs, size_t n,
                weir_added *added)
{
    weir_error err;
    int64_t    since = monotonic_ms();
    while (weir_add_many(c->q, specs, n, token, added, &err))
        repeat_or_give_up(c, since, "add", &err);
}

/* One batch in five goes as one call, the others one by one. Only a patient child needs tokens. */
static void *produce(void *arg)
{
    static _Atomic unsigned numbers;
    child     *c = arg;
    char       name[64];
    weir_token token = { .key = name };
    snprintf(name, sizeof name, "ledger-%d-%u-%" PRIu64, (int)getpid(),
             atomic_fetch_add(&numbers, 1), c->work->from);
    for (;;) {
        uint64_t key = atomic_fetch_add(&c->next_key, BATCH);
        if (key >= c->work->to)
            return NULL;
        weir_spec  spec[BATCH];
        weir_added added[BATCH];
        char       data[BATCH][64];
        size_t     n = 0;
        for (; n < BATCH && key + n < c->work->to; n++) {
            spec[n] = spec_of(c->work, key + n, data[n]);
            record("want %" PRIu64 "\n", key + n);
        }
        for (size_t i = 0; i < n;) {
            size_t many = key / BATCH % 5 ? 1 : n;
            token.number++;
            add(c, c->work->patient ? &token : NULL, &spec[i], many, &added[i]);
            for (size_t end = i + many; i < end; i++)
                record("added %" PRIu64 " %" PRIu64 "\n", key + i, added[i].id);
        }
    }
}

/* ---- workers ---- */

static weir_code handle(weir_job *job, void *ctx)
{
    const child *c = ctx;
    uint64_t     key = strtoull(job->data + strlen("{\"k\":"), NULL, 10);
    record("begin %" PRIu64 " %" PRIu32 " %" PRIu64 "\n", job->id, job->delivery, key);
    if (key == c->work->poison)
        kill(getpid(), SIGKILL);
    if (job->attempts < (int32_t)(key % 13 == 0 ? 2 : key % 5 == 0))
        return weir_job_fail(job, "not yet");
    return weir_job_done(job, "{\"ok\":true}", 0, NULL);
}

static void on_complete(const weir_event *ev, void *ctx)
{
    (void)ctx;
    record("done %" PRIu64 " %d\n", ev->id, (int)getpid());
}

static void check_store(weir_queue *q)
{
    weir_error   err;
    weir_report *report;
    if (weir_check(q, false, &report, &err))
        give_up("check", err.msg);
    if (report->n)
        give_up("check", report->line[0]);
    weir_report_free(report);
}

static bool anything_left(const child *c)
{
    weir_error  err;
    weir_stats *stats;
    int64_t     since = monotonic_ms();
    while (weir_get_stats(c->q, &stats, &err))
        repeat_or_give_up(c, since, "stats", &err);
    const uint64_t *count = stats->all.count;
    bool            left = count[WEIR_STATE_INACTIVE] + count[WEIR_STATE_DELAYED] +
                           count[WEIR_STATE_ACTIVE] > 0;
    weir_stats_free(stats);
    return left;
}

static void start_workers(child *c)
{
    static const char *const types[] = { "even", "odd", NULL };
    weir_error     err;
    weir_listener *listener;
    weir_filter    ends = { .events = WEIR_BIT(WEIR_EVENT_COMPLETE) };
    weir_pool_config plain = { .handler = handle, .ctx = c, .threads = WORKERS, .types = types,
                               .lease_ms = c->work->lease_ms };
    weir_pool_config ahead = plain;
    ahead.threads = PREFETCHING_WORKERS;
    ahead.prefetch = 8;
    if (weir_listen(c->q, &ends, on_complete, NULL, &listener, &err))
        give_up("listen", err.msg);
    if (weir_process(c->q, NULL, &plain, NULL, &err) ||
        weir_process(c->q, NULL, &ahead, NULL, &err))
        give_up("process", err.msg);
}

int ledger_work_off(const ledger_work *work)
{
    child      c = { .work = work, .next_key = work->from };
    weir_error err;
    pthread_t  producer[PRODUCERS];
    int64_t    since = monotonic_ms();
    ledger_fd = open(work->path, O_WRONLY | O_APPEND | O_CREAT, 0600);
    while (weir_open(&c.q, work->url, NULL, &err))
        repeat_or_give_up(&c, since, "open", &err);
    if (!work->patient)
        check_store(c.q);
    if (!work->adds_only)
        start_workers(&c);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_create(&producer[i], NULL, produce, &c);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(producer[i], NULL);
    while (!work->adds_only && anything_left(&c))
        rest();
    if (weir_stop(c.q, NULL, WEIR_FOREVER, &err))
        give_up("stop", err.msg);
    if (!work->patient)
        check_store(c.q);
    weir_close(c.q);
    return 0;
}
