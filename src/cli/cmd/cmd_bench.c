/* cmd_bench.c - weir bench: how many job lives (add, take, finish) a second, on this machine. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "cli/say.h"
#include "cli/scratch.h"
#include "cli/signals.h"
#include "cli/store.h"

typedef struct bench_opts {
    opt_num count, producers, workers, bulk, prefetch, bytes;
} bench_opts;
CLI_VALUES_FIT(bench_opts);

#define AT(member) offsetof(bench_opts, member)
static const option_entry bench_options[] = {
    { .name = "count", .kind = OPT_INT, .at = AT(count), .arg = "N", .min = 1,
      .max = 100000000, .help = "lives to measure (20000)" },
    { .name = "producers", .kind = OPT_INT, .at = AT(producers), .arg = "N", .min = 1, .max = 256,
      .help = "threads that add (8)" },
    { .name = "workers", .kind = OPT_INT, .at = AT(workers), .arg = "N", .min = 1, .max = 256,
      .help = "threads that work (8)" },
    { .name = "bulk", .kind = OPT_INT, .at = AT(bulk), .arg = "N", .min = 1, .max = WEIR_MAX_ADD,
      .help = "jobs added in one call (1)" },
    { .name = "prefetch", .kind = OPT_INT, .at = AT(prefetch), .arg = "N",
      .min = WEIR_PREFETCH_NONE, .max = WEIR_MAX_PAGE,
      .help = "jobs taken ahead for each worker (0: the pool decides; -1: none)" },
    { .name = "bytes", .kind = OPT_INT, .at = AT(bytes), .arg = "N", .min = 10, .max = 100000,
      .help = "bytes of data (200)" },
    { 0 }
};
#undef AT

static const char bench_type[] = "weir-bench";

typedef struct bench {
    weir_queue      *q;
    int64_t          jobs, bulk;
    char            *data;
    size_t           len;
    bool             leave_nothing;
    atomic_int_least64_t to_add;
    atomic_int_least64_t done;
    int              changed;     /* eventfd: all are done, or something went wrong */
    pthread_mutex_t  lock;        /* guards `err` */
    weir_error       err;
} bench;

static void trouble(bench *b, const weir_error *err)
{
    pthread_mutex_lock(&b->lock);
    if (!b->err.code)
        b->err = *err;
    pthread_mutex_unlock(&b->lock);
    eventfd_write(b->changed, 1);
}

static void *produce(void *arg)
{
    bench     *b = arg;
    weir_error err;
    weir_spec *specs = calloc((size_t)b->bulk, sizeof *specs);
    for (int64_t i = 0; specs && i < b->bulk; i++)
        specs[i] = (weir_spec){ .type = bench_type, .data = b->data, .data_len = b->len,
                                .remove_on_complete = b->leave_nothing };
    while (specs) {
        int64_t left = atomic_fetch_sub(&b->to_add, b->bulk);
        if (left <= 0)
            break;
        size_t    n = (size_t)(left < b->bulk ? left : b->bulk);
        weir_code rc = n == 1 ? weir_add(b->q, specs, NULL, &err)
                              : weir_add_many(b->q, specs, n, NULL, NULL, &err);
        if (rc) {
            trouble(b, &err);
            break;
        }
    }
    free(specs);
    return NULL;
}

static weir_code handle(weir_job *job, void *ctx)
{
    (void)ctx;
    return weir_job_done(job, "{\"ok\":1,\"n\":12345}", 0, NULL);
}

static void on_complete(const weir_event *e, void *ctx)
{
    bench *b = ctx;
    int64_t n = 1 + (int64_t)e->missed;
    if (atomic_fetch_add(&b->done, n) + n >= b->jobs)
        eventfd_write(b->changed, 1);
}

static weir_code measure(bench *b, const bench_opts *o, int producers, int workers, int signals,
                         double *seconds, weir_error *err)
{
    pthread_t      thread[256];
    weir_listener *listener;
    int            n = 0;
    weir_filter    filter = { .type = bench_type, .events = WEIR_BIT(WEIR_EVENT_COMPLETE) };
    weir_pool_config pool = { .handler = handle, .threads = workers,
                              .prefetch = (int32_t)o->prefetch.n };
    weir_code      rc = weir_listen(b->q, &filter, on_complete, b, &listener, err);
    int64_t        began = cli_clock_ms();
    if (!rc)
        rc = weir_process(b->q, bench_type, &pool, NULL, err);
    for (; !rc && n < producers; n++)
        if (pthread_create(&thread[n], NULL, produce, b)) {
            rc = weir_fail(err, WEIR_ENOMEM, "cannot start a thread");
            break;
        }
    struct pollfd p[] = { { .fd = signals, .events = POLLIN },
                          { .fd = b->changed, .events = POLLIN } };
    if (!rc)
        cli_poll(p, 2, -1);
    *seconds = (double)(cli_clock_ms() - began) / 1000;
    atomic_store(&b->to_add, 0);
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    weir_stop(b->q, NULL, 1000, NULL);
    if (!rc && b->err.code) {
        *err = b->err;
        rc = err->code;
    } else if (!rc && !p[1].revents) {
        rc = weir_fail(err, WEIR_ECLOSED, "interrupted");
    }
    return rc;
}

static void print_result(const cli *c, const bench *b, int producers, int workers, double seconds)
{
    double rate = (double)b->jobs / (seconds > 0 ? seconds : 0.001);
    char   number[32];
    if (c->json) {
        jw w = { .out = stdout };
        jw_object(&w, NULL);
        jw_text(&w, "store", c->store);
        jw_int(&w, "jobs", b->jobs);
        jw_int(&w, "producers", producers);
        jw_int(&w, "workers", workers);
        jw_int(&w, "bulk", b->bulk);
        jw_real(&w, "seconds", seconds);
        jw_real(&w, "lives_per_second", rate);
        jw_end(&w, '}');
        return;
    }
    static const table_column columns[] = {
        { "JOBS", true, false }, { "PRODUCERS", true, false }, { "WORKERS", true, false },
        { "BULK", true, false }, { "SECONDS", true, false }, { "LIVES/S", true, false }
    };
    table t;
    table_init(&t, columns, 6);
    table_row(&t);
    table_cell(&t, 0, COLOR_NONE, "%s", term_number(number, sizeof number, (uint64_t)b->jobs));
    table_cell(&t, 1, COLOR_NONE, "%d", producers);
    table_cell(&t, 2, COLOR_NONE, "%d", workers);
    table_cell(&t, 3, COLOR_NONE, "%lld", (long long)b->bulk);
    table_cell(&t, 4, COLOR_NONE, "%.2f", seconds);
    table_cell(&t, 5, COLOR_GREEN, "%s", term_number(number, sizeof number, (uint64_t)rate));
    table_print(&t, stdout, 0);
    table_fini(&t);
}

/* {"x":"aaaa..."} of exactly `len` bytes */
static char *make_data(size_t len)
{
    char *data = malloc(len + 1);
    if (!data)
        return NULL;
    memset(data, 'a', len);
    memcpy(data, "{\"x\":\"", 6);
    memcpy(data + len - 2, "\"}", 3);
    return data;
}

static int run_bench(cli *c, const void *values)
{
    const bench_opts *o = values;
    char              dir[4000] = "", url[4096];
    double            seconds = 0;
    int    producers = o->producers.set ? (int)o->producers.n : 8;
    int    workers = o->workers.set ? (int)o->workers.n : 8;
    bench  b = { .jobs = o->count.set ? o->count.n : 20000, .bulk = o->bulk.set ? o->bulk.n : 1,
                 .len = o->bytes.set ? (size_t)o->bytes.n : 200, .leave_nothing = c->store,
                 .lock = PTHREAD_MUTEX_INITIALIZER, .changed = eventfd(0, EFD_CLOEXEC) };
    int signals = cli_signals(SIGINT, SIGTERM, SIGHUP, 0);
    atomic_init(&b.to_add, b.jobs);
    b.data = make_data(b.len);
    if (!b.data)
        return weir_code_exit(WEIR_ENOMEM);
    weir_code rc = WEIR_OK;
    if (!c->store) {
        rc = cli_scratch_make(dir, sizeof dir, url, sizeof url, &c->err);
        c->store = url;
    }
    if (!rc)
        rc = cli_open(c, CLI_CHANGE, &b.q);
    if (!rc)
        rc = measure(&b, o, producers, workers, signals, &seconds, &c->err);
    weir_close(b.q);
    if (*dir)
        cli_scratch_remove(dir);
    if (!rc)
        print_result(c, &b, producers, workers, seconds);
    free(b.data);
    close(b.changed);
    close(signals);
    return rc ? cli_fail(c) : 0;
}

const command cmd_bench = {
    .name = "bench", .group = GROUP_STORE,
    .summary = "measure job lives (add, take, finish) per second",
    .help = "Works on a scratch file unless --store says where; it leaves nothing behind.",
    .examples = "weir bench --count 50000 --producers 8 --workers 8\n",
    .options = bench_options, .run = run_bench,
};
