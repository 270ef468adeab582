/* redis_pair.c - two processes on one queue: one adds, the other works. Their clock is one:
 * CLOCK_MONOTONIC is the machine's. */
#include "redis.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* In memory that the bench and both sides see. */
typedef struct sides {
    atomic_int    ready;        /* how many have the store open */
    atomic_bool   go;           /* the producer may start */
    double        began, ended[2];
    double        p50, p99;

    const lives  *l;            /* what they do: lives, or starts at a rate */
    const char   *url;
    size_t        n;
    double        rate;
} sides;

enum { WORKER, PRODUCER };

static void rest(double ms)
{
    int64_t ns = (int64_t)(ms * 1e6);
    nanosleep(&(struct timespec){ ns / 1000000000, ns % 1000000000 }, NULL);
}

static void be_ready(void *ctx)
{
    atomic_fetch_add(&((sides *)ctx)->ready, 1);
}

static void be_ready_to_add(void *ctx)
{
    sides *s = ctx;
    be_ready(s);
    while (!atomic_load(&s->go))
        rest(0.1);
    s->began = seconds();
}

/* ---- the two sides ---- */

static sides *make_sides(void)
{
    sides *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED) {
        perror("bench: mmap");
        exit(1);
    }
    return s;
}

static pid_t start_side(sides *s, void (*run)(sides *))
{
    pid_t parent = getpid();
    fflush(NULL);                       /* or the child would write it again */
    pid_t pid = fork();
    if (pid < 0) {
        perror("bench: fork");
        exit(1);
    }
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    run(s);
    _exit(0);
}

/* Has it ended? When it failed, it has said why, and the bench ends too. */
static bool ended(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, WNOHANG) != pid)
        return false;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        exit(1);
    return true;
}

/* Let both get ready, then let them run. What Redis used meanwhile, if `r` says which. */
static void run_sides(sides *s, void (*work)(sides *), void (*add)(sides *), const rig *r,
                      double *cpu_us)
{
    pid_t side[] = { start_side(s, work), start_side(s, add) };
    while (atomic_load(&s->ready) < 2) {
        if (ended(side[WORKER]) || ended(side[PRODUCER]))
            exit(1);
        rest(1);
    }
    rest(300);                          /* the worker waits for jobs by now */
    double cpu = r ? redis_cpu_us(r) : 0;
    atomic_store(&s->go, true);
    for (int left = 3; left; rest(2))
        for (int i = 0; i < 2; i++)
            if (left & 1 << i && ended(side[i]))
                left &= ~(1 << i);
    *cpu_us = r ? redis_cpu_us(r) - cpu : 0;
}

/* ---- lives ---- */

static void lives_work(sides *s)
{
    s->ended[WORKER] = lead_work(s->l, be_ready, s);
}

static void lives_add(sides *s)
{
    s->ended[PRODUCER] = lead_adds(s->l, be_ready_to_add, s);
}

pair_answer run_pair(const rig *r, const lives *l)
{
    pair_answer a;
    sides *s = make_sides();
    s->l = l;
    run_sides(s, lives_work, lives_add, r, &a.cpu_us);
    a.cpu_us /= (double)l->n;
    double last = s->ended[WORKER] > s->ended[PRODUCER] ? s->ended[WORKER] : s->ended[PRODUCER];
    a.lives_s = (double)l->n / (last - s->began);
    munmap(s, sizeof *s);
    return a;
}

/* ---- starts ---- */

typedef struct starts {
    double       *late_ms;
    atomic_size_t n;
} starts;

static weir_code note_start(weir_job *job, void *ctx)
{
    starts *s = ctx;
    double now = seconds();
    double then = strtod(job->data + strlen("{\"t\":"), NULL);
    s->late_ms[atomic_fetch_add(&s->n, 1)] = (now - then) * 1e3;
    return WEIR_OK;
}

static void starts_work(sides *s)
{
    weir_error  err;
    weir_queue *q;
    starts      seen = { .late_ms = calloc(s->n, sizeof(double)) };
    weir_pool_config pool = { .handler = note_start, .ctx = &seen, .threads = 8 };
    if (weir_open(&q, s->url, NULL, &err) || weir_process(q, "bench", &pool, NULL, &err))
        die("open", &err);
    be_ready(s);
    while (atomic_load(&seen.n) < s->n)
        rest(5);
    if (weir_stop(q, NULL, WEIR_FOREVER, &err))
        die("stop", &err);
    weir_close(q);
    sort_samples(seen.late_ms, s->n);
    s->p50 = percentile(seen.late_ms, s->n, 50);
    s->p99 = percentile(seen.late_ms, s->n, 99);
    free(seen.late_ms);
}

static void starts_add(sides *s)
{
    weir_error  err;
    weir_queue *q;
    char        data[300];
    if (weir_open(&q, s->url, NULL, &err))
        die("open", &err);
    be_ready_to_add(s);
    for (size_t i = 0; i < s->n; i++) {
        double due = s->began + (double)i / s->rate, now = seconds();
        if (due > now)
            rest((due - now) * 1e3);
        snprintf(data, sizeof data, "{\"t\":%.9f,\"filler\":\"%0160d\"}", seconds(), 0);
        if (weir_add(q, &(weir_spec){ .type = "bench", .data = data }, NULL, &err))
            die("add", &err);
    }
    weir_close(q);
}

void pair_starts(const char *url, size_t n, double rate, double *p50, double *p99)
{
    double cpu;
    sides *s = make_sides();
    s->url = url;
    s->n = n;
    s->rate = rate;
    run_sides(s, starts_work, starts_add, NULL, &cpu);
    *p50 = s->p50;
    *p99 = s->p99;
    munmap(s, sizeof *s);
}
