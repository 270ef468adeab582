/* latency.c - how soon a handler starts, and how much memory a full store takes. */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

void sort_samples(double *v, size_t n)
{
    qsort(v, n, sizeof *v, compare);
}

double percentile(const double *sorted, size_t n, double p)
{
    size_t at = (size_t)((double)n * p / 100.0);
    return sorted[at < n ? at : n - 1];
}

static double wall_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void rest(double ms)
{
    int64_t ns = (int64_t)(ms * 1e6);
    struct timespec ts = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
    nanosleep(&ts, NULL);
}

typedef struct starts {
    double       *sample;      /* by job id: when it should start, then how late it did */
    atomic_size_t n;
} starts;

static weir_code note_start(weir_job *job, void *ctx)
{
    starts *s = ctx;
    double now = wall_ms();
    double due = s->sample[job->id] > 0 ? s->sample[job->id] : (double)job->promote_at;
    s->sample[job->id] = now - due;
    atomic_fetch_add(&s->n, 1);
    return WEIR_OK;
}

static weir_queue *open_with_pool(const char *url, starts *s)
{
    weir_error err;
    weir_queue *q;
    weir_pool_config pool = { .handler = note_start, .ctx = s, .threads = 8 };
    if (weir_open(&q, url, NULL, &err) || weir_process(q, "bench", &pool, NULL, &err))
        die("open", &err);
    return q;
}

static void wait_all(starts *s, size_t n)
{
    while (atomic_load(&s->n) < n)
        rest(1);
}

void add_to_start(const char *url, size_t n, double *p50, double *p99)
{
    starts s = { .sample = calloc(n + 2, sizeof(double)) };
    weir_error err;
    weir_queue *q = open_with_pool(url, &s);
    for (size_t i = 0; i < n; i++) {
        rest(2.0 + (double)(i % 7));           /* the pool is idle again */
        s.sample[i + 1] = wall_ms();           /* ids count from 1 in a new store */
        if (weir_add(q, &(weir_spec){ .type = "bench", .data = BENCH_DATA }, NULL, &err))
            die("add", &err);
        wait_all(&s, i + 1);
    }
    weir_close(q);
    sort_samples(s.sample + 1, n);
    *p50 = percentile(s.sample + 1, n, 50);
    *p99 = percentile(s.sample + 1, n, 99);
    free(s.sample);
}

static weir_code say_done(weir_task_run *run, const weir_task *task, void *ctx)
{
    (void)task, (void)ctx;
    return weir_task_done(run, "done", BENCH_RESULT);
}

void invoke_round_trip(const char *url, size_t n, double *p50, double *p99)
{
    double           *sample = calloc(n, sizeof *sample);
    weir_error        err;
    weir_queue       *q;
    weir_tasks       *t;
    weir_task_service service = { .run = say_done };
    if (weir_open(&q, url, NULL, &err) || weir_tasks_open(&t, q, NULL, &err) ||
        weir_task_serve(t, "bench", &service, &err) || weir_tasks_run(t, 1, &err))
        die("open", &err);
    for (size_t i = 0; i < n; i++) {
        weir_task     *task;
        weir_task_spec spec = { .service = "bench", .attachment = BENCH_DATA };
        rest(2.0 + (double)(i % 7));
        double from = wall_ms();
        if (weir_task_invoke(t, &spec, 60000, &task, &err))
            die("invoke", &err);
        sample[i] = wall_ms() - from;
        weir_task_free(task);
    }
    weir_tasks_close(t);
    weir_close(q);
    sort_samples(sample, n);
    *p50 = percentile(sample, n, 50);
    *p99 = percentile(sample, n, 99);
    free(sample);
}

double delayed_start_p99(const char *url, size_t n)
{
    starts s = { .sample = calloc(n + 2, sizeof(double)) };
    weir_error err;
    weir_queue *q = open_with_pool(url, &s);
    for (size_t i = 0; i < n; i++)
        if (weir_add(q, &(weir_spec){ .type = "bench", .data = BENCH_DATA,
                                      .delay_ms = 500 + (int64_t)(i * 7919 % 4000) }, NULL, &err))
            die("add", &err);
    wait_all(&s, n);
    weir_close(q);
    sort_samples(s.sample + 1, n);
    double p99 = percentile(s.sample + 1, n, 99);
    free(s.sample);
    return p99;
}

static double own_resident_mib(void)
{
    long pages = 0, ignored;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld %ld", &ignored, &pages) != 2)
        pages = 0;
    if (f)
        fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1024.0 * 1024.0);
}

/* In a process of its own, so that nothing measured before counts. */
double resident_mib(const char *url)
{
    int fd[2];
    double mib = 0;
    if (pipe(fd))
        return 0;
    pid_t pid = fork();
    if (pid == 0) {
        weir_error err;
        weir_queue *q;
        uint64_t n;
        if (weir_open(&q, url, NULL, &err) || weir_count(q, WEIR_STATE_INACTIVE, NULL, &n, &err))
            die("open", &err);
        for (int i = 0; i < 20; i++) {
            static const char *const types[] = { "bench", NULL };
            weir_job *job[WEIR_MAX_PAGE];
            size_t taken;
            if (weir_take(q, &(weir_taking){ .types = types, .n = WEIR_MAX_PAGE }, job, &taken,
                          &err))
                die("take", &err);
            for (size_t k = 0; k < taken; k++) {
                weir_job_done(job[k], BENCH_RESULT, 0, NULL);
                weir_job_free(job[k]);
            }
        }
        mib = own_resident_mib();
        weir_close(q);
        _exit(write(fd[1], &mib, sizeof mib) == sizeof mib ? 0 : 1);
    }
    close(fd[1]);
    if (read(fd[0], &mib, sizeof mib) != sizeof mib)
        mib = 1e9;
    close(fd[0]);
    waitpid(pid, NULL, 0);
    return mib;
}
