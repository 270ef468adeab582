/* cmd_demo.c - weir demo: a small day of a job queue in some seconds. Jobs of several types with
 * priorities, delays, failures and retries, done by one pool in this process, shown as it goes. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
#include "cli/say.h"
#include "cli/scratch.h"
#include "cli/signals.h"
#include "cli/store.h"

typedef struct demo_opts {
    bool fast;
} demo_opts;
CLI_VALUES_FIT(demo_opts);

static const option_entry demo_options[] = {
    { .name = "fast", .kind = OPT_FLAG, .at = offsetof(demo_opts, fast),
      .help = "twenty times as fast" },
    { 0 }
};

/* The jobs to add of each type. The data of a job says how long it takes and how often it fails, so
 * that the demo always ends the same way. */
typedef struct plan {
    const char *type;
    const char *what;          /* said on the screen */
    int         count;
    int32_t     priority, attempts;
    int         delay_ms;      /* of the first ... */
    int         every_ms;      /* ... and the further delay of each next one */
    int         work_ms, steps;
    int         fails;         /* attempts that fail, for every third job; all of them: -1 */
    const char *error;
} plan;

static const plan plans[] = {
    { "mail", "high priority, jumps the queue", 12, WEIR_PRIORITY_HIGH, 1, 0, 0, 250, 1, 0, NULL },
    { "video", "long, reports its progress", 6, WEIR_PRIORITY_NORMAL, 1, 0, 0, 2600, 40, 0, NULL },
    { "payment", "flaky, tried again with backoff", 9, WEIR_PRIORITY_MEDIUM, 4, 0, 0, 300, 3, 2,
      "bank: connection reset" },
    { "report", "delayed, runs at its time", 6, WEIR_PRIORITY_NORMAL, 1, 2500, 900, 500, 5, 0,
      NULL },
    { "import", "one of them cannot work", 3, WEIR_PRIORITY_LOW, 2, 0, 0, 400, 4, -1,
      "line 17: not a number: \"abc\"" },
    { "thumbnail", "many and short, low priority", 60, WEIR_PRIORITY_LOW, 1, 0, 0, 90, 1, 0, NULL },
};
enum { PLANS = sizeof plans / sizeof *plans, THREADS = 4, RECENT = 4, MAX_RUNNING = 64 };

/* A job that runs now, or something that just happened, as the screen shows it. */
typedef struct running {
    uint64_t id;
    int      plan;
    int      progress;
    int32_t  attempt;
} running;

typedef struct recent {
    term_color color;
    char       text[160];
} recent;

typedef struct demo {
    cli            *c;
    weir_queue     *q;
    int             scale;          /* times are divided by this */
    bool            live;           /* redraw in place */
    bool            scratch;        /* its file is removed at the end */
    int             moved;          /* eventfd */
    int64_t         began;
    int             lines;          /* drawn, to go up by */
    pthread_mutex_t lock;           /* guards what follows: written by the callback thread */
    running         run[MAX_RUNNING];
    int             n_run;
    recent          recent[RECENT];
    int             done[PLANS], failed[PLANS], retried[PLANS], started[PLANS];
    int             total;          /* ended for good */
    uint64_t        first_id, failed_id;
} demo;

static int demo_jobs(void)
{
    int n = 0;
    for (int i = 0; i < PLANS; i++)
        n += plans[i].count;
    return n;
}

static int find_plan(const char *type)
{
    for (int i = 0; i < PLANS; i++)
        if (type && strcmp(plans[i].type, type) == 0)
            return i;
    return -1;
}

/* ---- the work ---- */

static void doze(int64_t ms)
{
    struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    nanosleep(&ts, NULL);
}

static weir_code do_job(weir_job *job, void *ctx)
{
    demo       *d = ctx;
    const plan *p = &plans[find_plan(job->type)];
    long        n = 0;
    sscanf(job->data, "{\"n\":%ld", &n);
    bool unlucky = p->fails && n % 3 == 0 && (p->fails < 0 || job->attempts < p->fails);
    for (int i = 1; i <= p->steps; i++) {
        doze((p->work_ms + n * 37 % 200) / p->steps / d->scale + 1);
        if (weir_job_cancelled(job))
            return weir_job_fail(job, "cancelled");
        if (p->steps > 1)
            weir_job_progress(job, i, p->steps, NULL, 0, NULL);
        if (unlucky && i * 2 >= p->steps)
            return weir_job_fail(job, "%s", p->error);
    }
    return weir_job_done(job, "{\"ok\":true}", 0, NULL);
}

static weir_code add_jobs(demo *d, weir_error *err)
{
    enum { MOST = 200 };
    weir_spec  specs[MOST];
    weir_added added[MOST];
    char       data[MOST][40];
    size_t     n = 0;
    for (int i = PLANS - 1; i >= 0; i--) {          /* the urgent ones last: they still run first */
        const plan *p = &plans[i];
        for (int k = 0; k < p->count; k++, n++) {
            snprintf(data[n], sizeof data[n], "{\"n\":%d}", k);
            specs[n] = (weir_spec){
                .type = p->type, .data = data[n], .priority = p->priority, .attempts = p->attempts,
                .delay_ms = (p->delay_ms + k * p->every_ms) / d->scale,
                .backoff = { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 1600 / d->scale }
            };
        }
    }
    weir_code rc = weir_add_many(d->q, specs, n, NULL, added, err);
    d->first_id = rc ? 0 : added[0].id;
    return rc;
}

/* ---- what happens ---- */

static void remember(demo *d, term_color color, const weir_event *e, const char *what)
{
    char    text[160], at[24];
    int64_t ms = cli_clock_ms() - d->began;
    snprintf(at, sizeof at, "%lld.%02llds", (long long)ms / 1000, (long long)ms % 1000 / 10);
    snprintf(text, sizeof text, "%7s  %-10s #%-4llu %.100s", at, e->type, (unsigned long long)e->id,
             what);
    if (!d->live) {
        if (!d->c->json)
            printf("%s\n", text);
        return;
    }
    memmove(d->recent, d->recent + 1, sizeof d->recent - sizeof d->recent[0]);
    d->recent[RECENT - 1].color = color;
    snprintf(d->recent[RECENT - 1].text, sizeof d->recent[0].text, "%s", text);
}

static running *find_running(demo *d, uint64_t id)
{
    for (int i = 0; i < d->n_run; i++)
        if (d->run[i].id == id)
            return &d->run[i];
    return NULL;
}

static void ended(demo *d, uint64_t id)
{
    running *r = find_running(d, id);
    if (!r)
        return;
    memmove(r, r + 1, (size_t)(d->run + d->n_run - r - 1) * sizeof *r);
    d->n_run--;
}

/* The lock is held. */
static void take_note(demo *d, const weir_event *e, int i)
{
    char     what[160];
    running *r;
    switch (e->kind) {
    case WEIR_EVENT_START:
        d->started[i]++;
        if (d->n_run < MAX_RUNNING)
            d->run[d->n_run++] = (running){ e->id, i, 0, e->attempts + 1 };
        break;
    case WEIR_EVENT_PROGRESS:
        r = find_running(d, e->id);
        if (r)
            r->progress = e->progress;
        break;
    case WEIR_EVENT_PROMOTION:
        remember(d, COLOR_BLUE, e, "its time has come");
        break;
    case WEIR_EVENT_COMPLETE:
        ended(d, e->id);
        d->done[i]++;
        d->total++;
        snprintf(what, sizeof what, "complete%s", e->attempts > 1 ? ", at last" : "");
        remember(d, COLOR_GREEN, e, what);
        break;
    case WEIR_EVENT_FAILED_ATTEMPT:
        ended(d, e->id);
        d->retried[i]++;
        snprintf(what, sizeof what, "attempt %d of %d failed: %.80s", (int)e->attempts,
                 (int)plans[i].attempts, e->text ? e->text : "");
        remember(d, COLOR_YELLOW, e, what);
        break;
    case WEIR_EVENT_FAILED:
        ended(d, e->id);
        d->failed[i]++;
        d->failed_id = e->id;
        d->total++;
        snprintf(what, sizeof what, "failed for good: %.80s", e->text ? e->text : "");
        remember(d, COLOR_RED, e, what);
        break;
    default:
        break;
    }
}

static void on_event(const weir_event *e, void *ctx)
{
    demo *d = ctx;
    int   i = find_plan(e->type);
    if (i < 0 || e->id < d->first_id)
        return;
    pthread_mutex_lock(&d->lock);
    take_note(d, e, i);
    pthread_mutex_unlock(&d->lock);
    eventfd_write(d->moved, 1);
}

/* ---- the screen ---- */

static void put_line(demo *d, const char *line)
{
    printf("%s\033[K\n", line);
    d->lines++;
}

static void draw_plan(demo *d, int i)
{
    char        bar[160], text[400];
    const plan *p = &plans[i];
    int         ended_jobs = d->done[i] + d->failed[i];
    snprintf(text, sizeof text, "  %-10s %s%s%s %s%3d/%-2d%s  %s%s%s", p->type,
             term_on(stdout, d->failed[i] ? COLOR_YELLOW : COLOR_GREEN),
             term_bar(bar, sizeof bar, ended_jobs, p->count, 24), term_off(stdout),
             ended_jobs == p->count ? term_on(stdout, COLOR_BOLD) : "", ended_jobs, p->count,
             term_off(stdout), term_on(stdout, COLOR_DIM), p->what, term_off(stdout));
    put_line(d, text);
}

static void draw_running(demo *d, int row)
{
    char bar[160], text[300], again[24] = "";
    if (row >= d->n_run) {
        put_line(d, "");
        return;
    }
    const running *r = &d->run[row];
    if (r->attempt > 1)
        snprintf(again, sizeof again, "attempt %d", (int)r->attempt);
    snprintf(text, sizeof text, "  %-10s %s%s%s %3d%%  #%llu %s", plans[r->plan].type,
             term_on(stdout, COLOR_CYAN), term_bar(bar, sizeof bar, r->progress, 100, 24),
             term_off(stdout), r->progress, (unsigned long long)r->id, again);
    put_line(d, text);
}

static void draw(demo *d)
{
    char text[300], clean[300];
    pthread_mutex_lock(&d->lock);
    if (d->lines)
        printf("\033[%dA", d->lines);
    d->lines = 0;
    for (int i = 0; i < PLANS; i++)
        draw_plan(d, i);
    put_line(d, "");
    snprintf(text, sizeof text, "%srunning now%s (%d threads)", term_on(stdout, COLOR_BOLD),
             term_off(stdout), THREADS);
    put_line(d, text);
    for (int i = 0; i < THREADS; i++)
        draw_running(d, i);
    put_line(d, "");
    for (int i = 0; i < RECENT; i++) {
        snprintf(text, sizeof text, "%s%s%s", term_on(stdout, d->recent[i].color),
                 term_clean(clean, sizeof clean, d->recent[i].text, term_width(stdout) - 1),
                 term_off(stdout));
        put_line(d, text);
    }
    fflush(stdout);
    pthread_mutex_unlock(&d->lock);
}

/* ---- the end ---- */

static const table_column columns[] = {
    { "TYPE", false, true }, { "ADDED", true, false }, { "COMPLETE", true, false },
    { "FAILED", true, false }, { "RUNS", true, false }, { "TRIED AGAIN", true, false },
    { "WORK TIME", true, false }
};

static void summary_row(table *t, const char *name, int added, int done, int failed, int runs,
                        int retried, int64_t work_ms)
{
    char text[32];
    table_row(t);
    table_cell(t, 0, COLOR_NONE, "%s", name);
    table_cell(t, 1, COLOR_NONE, "%d", added);
    table_cell(t, 2, COLOR_GREEN, "%d", done);
    table_cell(t, 3, failed ? COLOR_RED : COLOR_DIM, "%d", failed);
    table_cell(t, 4, COLOR_NONE, "%d", runs);
    table_cell(t, 5, retried ? COLOR_YELLOW : COLOR_DIM, "%d", retried);
    table_cell(t, 6, COLOR_NONE, "%s", term_duration(text, sizeof text, work_ms));
}

static int64_t work_time(const weir_stats *s, const char *type)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->type[i].type, type) == 0)
            return s->type[i].work_ms;
    return 0;
}

/* The output of `weir explain` about the failed job. Afterwards a scratch file is gone. */
static void explain_failure(demo *d)
{
    weir_explanation *e;
    char              how[400] = "", url[300];
    if (!d->failed_id || weir_explain(d->q, d->failed_id, &e, NULL))
        return;
    if (!d->scratch && !cli_store_is_private(d->c))
        snprintf(how, sizeof how, " (`weir explain %llu --store %s`)",
                 (unsigned long long)d->failed_id, cli_show_url(url, sizeof url, d->c->store));
    printf("\n  %sWhy did #%llu fail?%s%s\n", term_on(stdout, COLOR_BOLD),
           (unsigned long long)d->failed_id, term_off(stdout), how);
    term_wrap(stdout, e->why, 4, term_width(stdout), false);
    if (d->scratch)
        printf("\n  The scratch file and its jobs are removed now. To keep them:\n"
               "  weir demo --store sqlite:demo.db\n");
    weir_explanation_free(e);
}

static weir_code summary(demo *d, weir_error *err)
{
    weir_stats *s;
    weir_code   rc = weir_get_stats(d->q, &s, err);
    if (rc)
        return rc;
    int   sum[4] = { 0 };
    jw    w = { .out = stdout };
    table t;
    table_init(&t, columns, 7);
    for (int i = 0; i < PLANS; i++) {
        sum[0] += d->done[i];
        sum[1] += d->failed[i];
        sum[2] += d->started[i];
        sum[3] += d->retried[i];
        if (d->c->json) {
            jw_object(&w, NULL);
            jw_text(&w, "type", plans[i].type);
            jw_int(&w, "added", plans[i].count);
            jw_int(&w, "complete", d->done[i]);
            jw_int(&w, "failed", d->failed[i]);
            jw_int(&w, "runs", d->started[i]);
            jw_int(&w, "work_time", work_time(s, plans[i].type));
            jw_end(&w, '}');
        }
        summary_row(&t, plans[i].type, plans[i].count, d->done[i], d->failed[i], d->started[i],
                    d->retried[i], work_time(s, plans[i].type));
    }
    summary_row(&t, "all", demo_jobs(), sum[0], sum[1], sum[2], sum[3], s->all.work_ms);
    if (!d->c->json) {
        char took[32];
        putchar('\n');
        table_print(&t, stdout, 2);
        printf("\n  %d jobs in %s.\n", d->total,
               term_duration(took, sizeof took, cli_clock_ms() - d->began));
        explain_failure(d);
        const char *weir = d->c->program;
        printf("\n  Your turn:\n\n"
               "    %s add hello '{\"name\":\"you\"}'\n"
               "    %s work hello --exec cat --drain\n"
               "    %s list\n", weir, weir, weir);
    }
    table_fini(&t);
    weir_stats_free(s);
    return WEIR_OK;
}

static bool all_ended(demo *d)
{
    pthread_mutex_lock(&d->lock);
    bool all = d->total >= demo_jobs();
    pthread_mutex_unlock(&d->lock);
    return all;
}

static bool interrupted(int signals)
{
    struct signalfd_siginfo info;
    return read(signals, &info, sizeof info) == sizeof info;
}

static weir_code play(demo *d, int signals, weir_error *err)
{
    weir_listener *listener;
    const char    *types[PLANS + 1] = { NULL };
    weir_pool_config pool = { .handler = do_job, .ctx = d, .threads = THREADS, .types = types };
    for (int i = 0; i < PLANS; i++)
        types[i] = plans[i].type;
    weir_code rc = add_jobs(d, err);
    if (!rc)
        rc = weir_listen(d->q, NULL, on_event, d, &listener, err);
    d->began = cli_clock_ms();
    if (!rc)
        rc = weir_process(d->q, NULL, &pool, NULL, err);
    bool stopped = false;
    while (!rc && !all_ended(d) && !stopped) {
        eventfd_t     n;
        struct pollfd p[] = { { .fd = signals, .events = POLLIN },
                              { .fd = d->moved, .events = POLLIN } };
        if (d->live)
            draw(d);
        poll(p, 2, 1000);
        if (d->live)
            poll(p, 1, 40);           /* no more than some frames a second */
        eventfd_read(d->moved, &n);
        stopped = interrupted(signals);
    }
    if (d->live && !rc)
        draw(d);
    if (stopped)
        return weir_fail(err, WEIR_ECLOSED, "interrupted");
    return rc ? rc : summary(d, err);
}

static int run_demo(cli *c, const void *values)
{
    const demo_opts *o = values;
    char             dir[4000] = "", url[4096];
    demo             d = { .c = c, .scale = o->fast ? 20 : 1, .lock = PTHREAD_MUTEX_INITIALIZER,
                           .live = term_is_tty(stdout) && !c->json };
    int signals = cli_signals(SIGINT, SIGTERM, SIGHUP, 0);
    d.moved = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    weir_code rc = WEIR_OK;
    if (!c->store) {
        rc = cli_scratch_make(dir, sizeof dir, url, sizeof url, &c->err);
        c->store = url;
        d.scratch = true;
    }
    if (!rc)
        rc = cli_open(c, CLI_CHANGE, &d.q);
    if (!rc && !c->json)
        printf("%sweir demo%s: %d jobs of %d types, %d threads, kept in %s\n\n",
               term_on(stdout, COLOR_BOLD), term_off(stdout), demo_jobs(), PLANS, THREADS,
               *dir ? "a scratch file" : c->store);
    if (d.live)
        fputs("\033[?25l", stdout);
    if (!rc)
        rc = play(&d, signals, &c->err);
    if (d.live)
        fputs("\033[?25h", stdout);
    fflush(stdout);
    if (d.q)
        weir_stop(d.q, NULL, 3000, NULL);
    weir_close(d.q);
    if (*dir)
        cli_scratch_remove(dir);
    close(d.moved);
    close(signals);
    return rc ? cli_fail(c) : 0;
}

const command cmd_demo = {
    .name = "demo", .group = GROUP_START,
    .summary = "see it work: some jobs, a pool, live progress",
    .help = "About a quarter of a minute. Works on a scratch file unless --store says where.",
    .options = demo_options, .run = run_demo,
};
