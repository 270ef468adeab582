/* due.c - many delayed jobs that are due at the same moment: how fast all of them start, beside the
 * same number that waits without a delay. The clock is the bench's own and jumps to that moment. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"

enum { AT_ONCE = 1000, DELAY_MS = 24 * 3600 * 1000, THREADS = 4 };

typedef struct due_run {
    _Atomic int64_t ahead_ms;
    atomic_size_t   started;
    size_t          n;
    pthread_mutex_t lock;
    pthread_cond_t  all;
} due_run;

static int64_t now(void *ctx)
{
    due_run        *r = ctx;
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + r->ahead_ms;
}

static weir_code handle(weir_job *job, void *ctx)
{
    due_run *r = ctx;
    (void)job;
    if (atomic_fetch_add(&r->started, 1) + 1 == r->n) {
        pthread_mutex_lock(&r->lock);
        pthread_cond_signal(&r->all);
        pthread_mutex_unlock(&r->lock);
    }
    return WEIR_OK;
}

static void add_all(weir_queue *q, size_t n, int64_t delay_ms)
{
    static weir_spec specs[AT_ONCE];
    weir_error       err;
    for (size_t i = 0; i < AT_ONCE; i++)
        specs[i] = (weir_spec){ .type = "bench", .data = BENCH_DATA, .delay_ms = delay_ms,
                                .remove_on_complete = true };
    for (size_t i = 0; i < n; i += AT_ONCE)
        if (weir_add_many(q, specs, AT_ONCE, NULL, NULL, &err))
            die("add", &err);
}

/* Starts per second, from the moment on at which all could start. */
static double starts_per_second(const char *url, size_t n, int64_t delay_ms)
{
    due_run          r = { .n = n, .lock = PTHREAD_MUTEX_INITIALIZER,
                           .all = PTHREAD_COND_INITIALIZER };
    weir_pool_config pool = { .handler = handle, .ctx = &r, .threads = THREADS };
    weir_error       err;
    weir_queue      *q;
    if (weir_open(&q, url, &(weir_options){ .now = now, .now_ctx = &r }, &err))
        die("open", &err);
    add_all(q, n, delay_ms);
    double start = seconds();
    if (weir_process(q, "bench", &pool, NULL, &err))
        die("process", &err);
    r.ahead_ms += delay_ms;
    weir_wake(q);
    pthread_mutex_lock(&r.lock);
    while (atomic_load(&r.started) < n)
        pthread_cond_wait(&r.all, &r.lock);
    pthread_mutex_unlock(&r.lock);
    double took = seconds() - start;
    weir_stop(q, NULL, WEIR_FOREVER, NULL);
    weir_close(q);
    return (double)n / took;
}

static void compare(bool in_file, const char *what)
{
    size_t n = scaled(1000000) / AT_ONCE * AT_ONCE;
    double ratio[MAX_ROUNDS], due = 0, waiting = 0;
    for (int i = 0; i < rounds; i++) {
        waiting = starts_per_second(in_file ? fresh_store("os") : "mem:", n, 0);
        due = starts_per_second(in_file ? fresh_store("os") : "mem:", n, DELAY_MS);
        ratio[i] = due / waiting;
    }
    note(what, due, waiting);
    report(what, middle(ratio, rounds), "x", true, 0.6);
}

void due_at_once(void)
{
    compare(true, "1,000,000 delayed jobs due at once over as many that wait, sqlite os");
    compare(false, "1,000,000 delayed jobs due at once over as many that wait, mem");
}
