/* cmd_workers.c - weir workers: who works on what. */
#include <stdlib.h>
#include <string.h>
#include "cli/say.h"
#include "cli/select.h"
#include "cli/store.h"

typedef struct workers_opts {
    opt_texts types;
} workers_opts;
CLI_VALUES_FIT(workers_opts);

static const option_entry workers_options[] = {
    TYPE_OPTION(offsetof(workers_opts, types), "only at jobs of this type; may be given several "
                                               "times"),
    { 0 }
};

/* The active jobs, by worker. */
typedef struct held {
    weir_job **job;
    size_t     n, cap;
} held;

static void held_fini(held *h)
{
    for (size_t i = 0; i < h->n; i++)
        weir_job_free(h->job[i]);
    free(h->job);
}

static const char *worker_of(const weir_job *job)
{
    return job->worker ? job->worker : "?";
}

static int by_worker(const void *a, const void *b)
{
    const weir_job *x = *(weir_job *const *)a, *y = *(weir_job *const *)b;
    int             order = strcmp(worker_of(x), worker_of(y));
    return order ? order : x->id < y->id ? -1 : x->id > y->id;
}

static weir_code read_held(held *h, cli *c, weir_queue *q, const cli_types *types)
{
    static const select_opts all = { 0 };
    selection *s;
    weir_job  *job;
    weir_code  rc = selection_create(&s, c, q, &all, types, WEIR_BIT(WEIR_STATE_ACTIVE),
                                     SELECT_ANY);
    while (!rc && !(rc = selection_next(s, WEIR_MAX_PAGE, &job)) && job) {
        if (h->n == h->cap) {
            size_t     cap = h->cap ? 2 * h->cap : 64;
            weir_job **more = realloc(h->job, cap * sizeof *more);
            if (!more) {
                weir_job_free(job);
                rc = weir_fail(&c->err, WEIR_ENOMEM, "out of memory");
                break;
            }
            h->job = more;
            h->cap = cap;
        }
        h->job[h->n++] = job;
    }
    selection_destroy(s);
    if (h->n)
        qsort(h->job, h->n, sizeof *h->job, by_worker);
    return rc;
}

/* ---- showing them ---- */

static void print_held(const held *h, int64_t now)
{
    static const table_column columns[] = {
        { "WORKER", false, true }, { "TYPE", false, true }, { "ID", true, false },
        { "STARTED", true, false }, { "LEASE", true, false }, { "PROGRESS", true, false },
    };
    table t;
    char  text[40];
    table_init(&t, columns, 6);
    for (size_t i = 0; i < h->n; i++) {
        const weir_job *job = h->job[i];
        bool            again = i && strcmp(worker_of(job), worker_of(h->job[i - 1])) == 0;
        table_row(&t);
        table_cell(&t, 0, COLOR_NONE, "%s", again ? "" : worker_of(job));
        table_cell(&t, 1, COLOR_NONE, "%s", job->type);
        table_cell(&t, 2, COLOR_NONE, "%llu", (unsigned long long)job->id);
        table_cell(&t, 3, COLOR_NONE, "%s", term_relative(text, sizeof text, job->started_at, now));
        table_cell(&t, 4, job->lease_until && job->lease_until < now ? COLOR_RED : COLOR_NONE, "%s",
                   term_relative(text, sizeof text, job->lease_until, now));
        table_cell(&t, 5, COLOR_NONE, "%d%%", (int)job->progress);
    }
    table_print(&t, stdout, 0);
    table_fini(&t);
}

/* The jobs from `at` on that have the same worker; the first behind them. */
static size_t json_worker(const held *h, size_t at)
{
    const char *name = worker_of(h->job[at]);
    jw          w = { .out = stdout };
    jw_object(&w, NULL);
    jw_text(&w, "name", name);
    jw_array(&w, "jobs");
    for (; at < h->n && strcmp(worker_of(h->job[at]), name) == 0; at++) {
        const weir_job *job = h->job[at];
        jw_object(&w, NULL);
        jw_int(&w, "id", (int64_t)job->id);
        jw_text(&w, "type", job->type);
        jw_int(&w, "started_at", job->started_at);
        if (job->lease_until)
            jw_int(&w, "lease_until", job->lease_until);
        jw_end(&w, '}');
    }
    jw_end(&w, ']');
    jw_end(&w, '}');
    return at;
}

/* Nobody has a job. Workers that wait for jobs are unknown; on a file, the processes that could are
 * known. */
static void say_none(const cli *c, const cli_types *types, const weir_info *info)
{
    const char *of = types->n ? " of this type" : "";
    if (strcmp(info->store, "sqlite") != 0)
        cli_note(c, "no worker has a job%s now", of);
    else if (!info->owner_pid)
        cli_note(c, "no workers: no process has the file open for changes");
    else if (info->owner_pid < 0)
        cli_note(c, "no worker has a job%s now; %s has the file open", of, info->owner);
    else
        cli_note(c, "no worker has a job%s now; %s (process %lld) has the file open", of,
                 *info->owner ? info->owner : "an unknown program", (long long)info->owner_pid);
}

static int run_workers(cli *c, const void *values)
{
    const workers_opts *o = values;
    weir_queue         *q = NULL;
    held                h = { 0 };
    cli_types           types;
    int64_t             now = 0;
    weir_info           info;
    if (cli_types_take(c, &o->types, &types))
        return cli_usage(c, "%s", c->err.msg);
    weir_code rc = cli_open(c, CLI_ASK, &q);
    if (!rc)
        rc = cli_types_check(c, q, &types);
    if (!rc)
        rc = read_held(&h, c, q, &types);
    if (!rc)
        rc = weir_get_info(q, &info, &c->err);
    if (!rc)
        now = weir_now(q);
    weir_close(q);
    for (size_t i = 0; !rc && c->json && i < h.n;)
        i = json_worker(&h, i);
    if (!rc && !c->json && h.n)
        print_held(&h, now);
    else if (!rc && !c->json)
        say_none(c, &types, &info);
    held_fini(&h);
    return rc ? cli_fail(c) : 0;
}

const command cmd_workers = {
    .name = "workers", .group = GROUP_LOOK, .args = "[TYPE...]", .max_args = -1, .words = "<type>",
    .summary = "who works on what",
    .help = "Shows each worker that has jobs now: its name (host:process:thread), each job with "
            "its type and id, when it was started, when its lease ends unless the worker renews "
            "it, and how far it is. A worker that waits for jobs has none and is not shown; the "
            "page of a server shows those, too. When nobody has a job, a remark on standard error "
            "says so, and who has the file open.",
    .examples = "weir workers\nweir workers mail --json\n",
    .options = workers_options, .run = run_workers,
};
