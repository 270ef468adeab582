/* lives.c - leads many job lives through the public API and counts them by the second. */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void die(const char *what, const weir_error *err)
{
    fprintf(stderr, "bench: %s: %s\n", what, err->msg);
    exit(weir_code_exit(err->code));
}

void remove_store(const char *path)
{
    static const char *const endings[] = { "", "-wal", "-shm", "-owner", "-socket" };
    char name[512];
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(name, sizeof name, "%s%s", path, endings[i]);
        unlink(name);
    }
}

typedef struct run {
    const lives   *l;
    weir_queue    *q;
    atomic_size_t  added, done;
    size_t         goal;
    pthread_mutex_t lock;
    pthread_cond_t  finished;
    pthread_t       producer[64];
} run;

static const weir_spec a_job = { .type = "bench", .data = BENCH_DATA };

static weir_code handle(weir_job *job, void *ctx)
{
    run *r = ctx;
    weir_code rc = weir_job_done(job, BENCH_RESULT, 0, NULL);
    if (atomic_fetch_add(&r->done, 1) + 1 == r->goal) {
        pthread_mutex_lock(&r->lock);
        pthread_cond_signal(&r->finished);
        pthread_mutex_unlock(&r->lock);
    }
    return rc;
}

static void *produce(void *arg)
{
    run *r = arg;
    size_t bulk = r->l->bulk;
    weir_error err;
    weir_spec *specs = calloc(bulk, sizeof *specs);
    for (size_t i = 0; i < bulk; i++)
        specs[i] = a_job;
    while (atomic_fetch_add(&r->added, bulk) + bulk <= r->l->n)
        if (bulk == 1 ? weir_add(r->q, specs, NULL, &err)
                     : weir_add_many(r->q, specs, bulk, NULL, NULL, &err))
            die("add", &err);
    free(specs);
    return NULL;
}

/* Everything on this thread, one call after the other. */
static void live_alone(run *r)
{
    static const char *const types[] = { "bench", NULL };
    weir_error err;
    for (size_t i = 0; i < r->l->n; i++) {
        weir_job *job = NULL;
        size_t n = 0;
        if (weir_add(r->q, &a_job, NULL, &err) ||
            weir_take(r->q, &(weir_taking){ .types = types, .n = 1 }, &job, &n, &err))
            die("add and take", &err);
        weir_fail(&err, WEIR_EJOB, "no job came, or it could not be ended");
        if (n != 1 || weir_job_done(job, BENCH_RESULT, 0, NULL))
            die("finish", &err);
        weir_job_free(job);
    }
}

static weir_code handle_item(weir_item *items, size_t n, void *ctx)
{
    (void)n;
    return handle(items->job, ctx);
}

static void start_stream(run *r)
{
    weir_error     err;
    weir_stream   *stream;
    weir_observing how = { .ctx = r, .threads = r->l->workers, .prefetch = r->l->prefetch };
    if (weir_observe(r->q, "bench", &how, handle_item, NULL, NULL, &stream, &err))
        die("observe", &err);
    weir_stream_free(stream);               /* it goes on until weir_stop() */
}

static void start_pool(run *r)
{
    if (r->l->observe) {
        start_stream(r);
        return;
    }
    weir_error err;
    weir_pool_config pool = { .handler = handle, .ctx = r, .threads = r->l->workers,
                              .prefetch = r->l->prefetch };
    if (weir_process(r->q, "bench", &pool, NULL, &err))
        die("process", &err);
}

static void start_producers(run *r)
{
    for (int i = 0; i < r->l->producers; i++)
        pthread_create(&r->producer[i], NULL, produce, r);
}

static void join_producers(run *r)
{
    for (int i = 0; i < r->l->producers; i++)
        pthread_join(r->producer[i], NULL);
}

static void wait_until_done(run *r)
{
    weir_error err;
    pthread_mutex_lock(&r->lock);
    while (atomic_load(&r->done) < r->goal)
        pthread_cond_wait(&r->finished, &r->lock);
    pthread_mutex_unlock(&r->lock);
    if (weir_stop(r->q, NULL, WEIR_FOREVER, &err))      /* until the last outcome is stored */
        die("stop", &err);
}

static void begin(run *r, const lives *l)
{
    weir_error err;
    *r = (run){ .l = l, .goal = l->n / l->bulk * l->bulk };
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->finished, NULL);
    if (weir_open(&r->q, l->url, NULL, &err))
        die("open", &err);
}

static void end(run *r)
{
    weir_close(r->q);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->finished);
}

double run_lives(const lives *l)
{
    run r;
    begin(&r, l);
    double start = seconds();
    if (l->producers) {
        start_pool(&r);
        start_producers(&r);
        wait_until_done(&r);        /* where jobs waited before, workers may be first: no more */
        join_producers(&r);
    } else {
        live_alone(&r);
    }
    double took = seconds() - start;
    end(&r);
    return (double)r.goal / took;
}

double lead_adds(const lives *l, void (*ready)(void *ctx), void *ctx)
{
    run r;
    begin(&r, l);
    ready(ctx);
    start_producers(&r);
    join_producers(&r);
    double now = seconds();
    end(&r);
    return now;
}

double lead_work(const lives *l, void (*ready)(void *ctx), void *ctx)
{
    run r;
    begin(&r, l);
    start_pool(&r);
    ready(ctx);
    wait_until_done(&r);
    double now = seconds();
    end(&r);
    return now;
}

void fill(const char *url, size_t n)
{
    enum { BULK = 10000 };
    weir_error err;
    weir_queue *q;
    if (weir_open(&q, url, NULL, &err))
        die("open", &err);
    weir_spec *specs = calloc(BULK, sizeof *specs);
    for (size_t i = 0; i < BULK; i++)
        specs[i] = a_job;
    for (size_t done = 0; done < n; done += BULK)
        if (weir_add_many(q, specs, n - done < BULK ? n - done : BULK, NULL, NULL, &err))
            die("fill", &err);
    free(specs);
    weir_close(q);
}
