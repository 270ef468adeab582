/* demo_flow.c - see demo_flow.h. */
#include "cli/cmd/demo_flow.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/clock.h"

enum { MAX_WAITING = 200, KEEP_JOBS = 500, KEEP_MS = 3600 * 1000, STOP_MS = 2000 };

/* For each type: the interval of its jobs, their data, and their course. */
typedef struct flow_type {
    const char  *type;
    int          every_ms;
    int          threads;
    int32_t      priority, attempts;
    int64_t      delay_ms;
    int          work_ms, steps;
    int          fails_pct;         /* of executions */
    const char  *data;              /* %u: a number */
    const char  *const *errors;     /* one of these; %u: a number */
    const char  *const *says;       /* lines of its log, one a step while there are any */
} flow_type;

static const char *const mail_says[] = { "connecting to mx.example.org", "sent", NULL };
static const char *const video_says[] = { "reading the container", "first pass", "second pass",
                                          "writing the index", NULL };
static const char *const payment_says[] = { "asking the bank", NULL };
static const char *const import_says[] = { "fetched 41 kB, 612 lines", "columns: name, mail, born",
                                           "writing", NULL };

static const char *const mail_errors[] = {
    "smtp: 451 4.7.1 <ann%u@example.org>: greylisted, try again later",
    "smtp: 550 5.1.1 <ann%u@example.org>: no such user", "dns: mx%u.example.org: no address", NULL
};
static const char *const video_errors[] = {
    "ffmpeg: moov atom not found", "ffmpeg: frame %u: invalid NAL unit size", NULL
};
static const char *const payment_errors[] = {
    "bank: connection reset by peer", "bank: 503, request 7f3a%u: too many requests",
    "order %u: the card was declined: \"limit exceeded\"", NULL
};
static const char *const thumbnail_errors[] = { "jpeg: premature end of file", NULL };
static const char *const report_errors[] = { "no figures for branch %u", NULL };
static const char *const import_errors[] = {
    "line %u: not a number: \"abc\"\n  in column 3 (born)",
    "sftp: customers-%u.csv: permission denied", "line %u: 2 columns, expected 3", NULL
};

static const flow_type types[] = {
    { "mail", 400, 2, WEIR_PRIORITY_HIGH, 3, 0, 250, 2, 4,
      "{\"title\":\"Your order %u has been shipped\",\"to\":\"ann%u@example.org\"}",
      mail_errors, mail_says },
    { "video", 3500, 2, WEIR_PRIORITY_NORMAL, 2, 0, 6000, 40, 8,
      "{\"title\":\"holiday-%u.mp4\",\"codec\":\"av1\",\"bytes\":918273645546372819}",
      video_errors, video_says },
    { "payment", 900, 2, WEIR_PRIORITY_CRITICAL, 4, 0, 350, 3, 25,
      "{\"title\":\"Order %u\",\"user\":%u,\"amount\":\"49.90\",\"currency\":\"EUR\"}",
      payment_errors, payment_says },
    { "thumbnail", 150, 1, WEIR_PRIORITY_LOW, 1, 0, 90, 1, 1,
      "{\"title\":\"photo-%u.jpg\",\"sizes\":[64,256,1024]}", thumbnail_errors, NULL },
    { "report", 5000, 1, WEIR_PRIORITY_MEDIUM, 1, 15000, 1500, 10, 5,
      "{\"title\":\"Sales of branch %u\",\"format\":\"pdf\"}", report_errors, NULL },
    { "import", 9000, 1, WEIR_PRIORITY_LOW, 2, 0, 800, 4, 60,
      "{\"title\":\"customers-%u.csv\",\"user\":%u,\"account\":9007199254740993,"
      "\"from\":\"sftp://files.example.org/in\"}",
      import_errors, import_says },
};
enum { TYPES = sizeof types / sizeof *types };

/* They are removed when the demo ends, since its store may be somebody's. */
static const weir_schedule schedules[] = {
    { .name = "demo-branches", .when = "every 1m", .overlap = WEIR_OVERLAP_SKIP,
      .job = { .type = "report", .data = "{\"title\":\"All branches\",\"format\":\"csv\"}" } },
    { .name = "demo-customers", .when = "*/5 * * * *", .missed = WEIR_MISSED_SKIP,
      .job = { .type = "import", .data = "{\"title\":\"customers.csv\"}", .attempts = 2 } },
    { .name = "demo-weekly", .when = "30 6 * * 1", .zone = "Europe/Berlin",
      .job = { .type = "report", .data = "{\"title\":\"The week\",\"format\":\"pdf\"}" } },
    { .name = "demo-invoices", .when = "0 9 LW * ?", .zone = "America/New_York",
      .job = { .type = "payment", .data = "{\"title\":\"Invoices of the month\"}",
               .priority = WEIR_PRIORITY_HIGH, .attempts = 3 } },
    { .name = "demo-newsletter", .when = "0 10 1 * *", .zone = "Asia/Tokyo", .paused = true,
      .job = { .type = "mail", .data = "{\"title\":\"Newsletter\"}" } },
};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

struct demo_flow {
    weir_queue     *q;
    pthread_t       thread;
    bool            started;
    pthread_mutex_t lock;           /* guards what follows */
    pthread_cond_t  changed;
    bool            stop;
};

/* ---- doing them ---- */

static void doze(int64_t ms)
{
    struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    nanosleep(&ts, NULL);
}

/* The same job goes the same way at every delivery, so its id and attempt are all the chance. */
static uint32_t chance(uint64_t id, uint64_t salt)
{
    uint64_t x = (id + 1) * UINT64_C(0x9e3779b97f4a7c15) + salt * UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 31;
    return (uint32_t)((x * UINT64_C(0x94d049bb133111eb)) >> 40);
}

/* Why this one fails: the first cause most often. */
static weir_code fail(weir_job *job, const flow_type *t, uint32_t n)
{
    char   error[200];
    size_t count = 0, cause;
    while (t->errors[count])
        count++;
    cause = n / 100 % (count + 2);
    snprintf(error, sizeof error, t->errors[cause < count ? cause : 0], n % 900 + 100);
    return weir_job_fail(job, "%s", error);
}

static weir_code do_job(weir_job *job, void *ctx)
{
    const flow_type *t = ctx;
    uint32_t         n = chance(job->id, (uint64_t)job->attempts);
    bool             unlucky = (int)(n % 100) < t->fails_pct;
    const char *const *says = t->says;
    for (int i = 1; i <= t->steps; i++) {
        doze(t->work_ms * (50 + n % 100) / 100 / t->steps + 1);
        if (weir_job_cancelled(job))
            return weir_job_fail(job, "cancelled");
        if (says && *says && i * 4 >= t->steps)
            weir_job_log(job, "%s", *says++);
        if (t->steps > 1)
            weir_job_progress(job, i, t->steps, NULL, 0, NULL);
        if (unlucky && i * 2 >= t->steps)
            return fail(job, t, n);
    }
    return weir_job_done(job, "{\"ok\":true}", 0, NULL);
}

/* ---- adding them ---- */

static void add_one(demo_flow *f, const flow_type *t, unsigned n)
{
    char     data[200];
    uint64_t waiting = 0;
    weir_count(f->q, WEIR_STATE_INACTIVE, t->type, &waiting, NULL);
    if (waiting >= MAX_WAITING)
        return;
    snprintf(data, sizeof data, t->data, n, n % 1000);
    weir_add(f->q, &(weir_spec){ .type = t->type, .data = data, .priority = t->priority,
                                 .attempts = t->attempts, .delay_ms = t->delay_ms, .search = true,
                                 .backoff = { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 4000,
                                              .max_ms = 30000, .jitter_pct = 20 } }, NULL, NULL);
}

static void *flow_main(void *arg)
{
    demo_flow *f = arg;
    int64_t    due[TYPES];
    unsigned   n[TYPES] = { 0 };
    for (int i = 0; i < TYPES; i++)
        due[i] = cli_clock_ms();
    pthread_mutex_lock(&f->lock);
    while (!f->stop) {
        int next = 0;
        for (int i = 1; i < TYPES; i++)
            next = due[i] < due[next] ? i : next;
        struct timespec at = { due[next] / 1000, due[next] % 1000 * 1000000 };
        if (cli_clock_ms() < due[next]) {
            pthread_cond_timedwait(&f->changed, &f->lock, &at);
            continue;
        }
        pthread_mutex_unlock(&f->lock);
        add_one(f, &types[next], ++n[next]);
        due[next] += types[next].every_ms * (60 + chance(n[next], (uint64_t)next) % 80) / 100;
        pthread_mutex_lock(&f->lock);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* ---- start and stop ---- */

static weir_code start(demo_flow *f, weir_error *err)
{
    weir_settings keep = { .keep_complete = { KEEP_MS, KEEP_JOBS },
                           .keep_failed = { KEEP_MS, KEEP_JOBS } };
    weir_code     rc = WEIR_OK;
    for (int i = 0; i < TYPES && !rc; i++) {
        weir_pool_config pool = { .threads = types[i].threads, .handler = do_job,
                                  .ctx = (void *)&types[i] };
        rc = weir_configure(f->q, types[i].type, &keep, err);
        if (!rc)
            rc = weir_process(f->q, types[i].type, &pool, NULL, err);
    }
    for (int i = 0; i < SCHEDULES && !rc; i++)
        rc = weir_schedule_put(f->q, &schedules[i], err);
    if (!rc && pthread_create(&f->thread, NULL, flow_main, f))
        rc = weir_fail(err, WEIR_ENOMEM, "demo: no thread");
    f->started = !rc;
    return rc;
}

weir_code demo_flow_start(demo_flow **out, weir_queue *q, weir_error *err)
{
    pthread_condattr_t attr;
    *out = NULL;
    demo_flow *f = calloc(1, sizeof *f);
    if (!f)
        return weir_fail(err, WEIR_ENOMEM, "demo: out of memory");
    f->q = q;
    pthread_mutex_init(&f->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&f->changed, &attr);
    pthread_condattr_destroy(&attr);
    weir_code rc = start(f, err);
    if (rc)
        demo_flow_stop(f);
    else
        *out = f;
    return rc;
}

void demo_flow_stop(demo_flow *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->stop = true;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    if (f->started)
        pthread_join(f->thread, NULL);
    for (int i = 0; i < SCHEDULES; i++)
        weir_schedule_remove(f->q, schedules[i].name, NULL);
    weir_stop(f->q, NULL, STOP_MS, NULL);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
}
