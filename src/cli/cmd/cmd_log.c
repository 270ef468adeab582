/* cmd_log.c - weir log: show a job's log, follow it, or add a line. */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "cli/say.h"
#include "cli/signals.h"
#include "cli/store.h"

typedef struct log_opts {
    bool follow;
} log_opts;
CLI_VALUES_FIT(log_opts);

static const option_entry log_options[] = {
    { .name = "follow", .letter = 'f', .kind = OPT_FLAG, .at = offsetof(log_opts, follow),
      .help = "go on with new lines until the job has ended" },
    { 0 }
};

/* A log line has no event, so following it means looking again. */
enum { FOLLOW_MS = 250 };

static void print_line(const cli *c, const weir_line *l)
{
    if (c->json) {
        jw w = { .out = stdout };
        jw_object(&w, NULL);
        jw_int(&w, "n", (int64_t)l->n);
        jw_int(&w, "at", l->at);
        jw_text(&w, "text", l->text);
        jw_end(&w, '}');
        return;
    }
    static char clean[WEIR_MAX_TEXT + 16];
    char        at[40];
    printf("%s%s%s  %s\n", term_on(stdout, COLOR_DIM), term_moment(at, sizeof at, l->at),
           term_off(stdout), term_clean(clean, sizeof clean, l->text, 0));
}

static weir_code print_after(cli *c, weir_queue *q, uint64_t id, uint64_t *last)
{
    for (;;) {
        weir_lines *lines;
        weir_code   rc = weir_logs(q, id, *last, 0, &lines, &c->err);
        if (rc)
            return rc;
        for (size_t i = 0; i < lines->n; i++) {
            print_line(c, &lines->line[i]);
            *last = lines->line[i].n;
        }
        size_t n = lines->n;
        weir_lines_free(lines);
        fflush(stdout);
        if (n == 0)
            return WEIR_OK;
    }
}

static weir_code is_finished(cli *c, weir_queue *q, uint64_t id, bool *out)
{
    weir_job *job;
    weir_code rc = weir_get(q, id, &job, &c->err);
    if (rc)
        return rc;
    *out = job->state == WEIR_STATE_COMPLETE || job->state == WEIR_STATE_FAILED ||
           job->state == WEIR_STATE_CANCELLED;
    weir_job_free(job);
    return WEIR_OK;
}

static weir_code follow(cli *c, weir_queue *q, uint64_t id, int signals)
{
    uint64_t last = 0;
    for (;;) {
        bool          finished = false;
        struct pollfd p = { .fd = signals, .events = POLLIN };
        weir_code     rc = is_finished(c, q, id, &finished);      /* first: no line is missed */
        if (!rc)
            rc = print_after(c, q, id, &last);
        if (rc == WEIR_ENOENT && last > 0)
            return WEIR_OK;                                       /* it was removed meanwhile */
        if (rc || finished || cli_poll(&p, 1, FOLLOW_MS) > 0)
            return rc;
    }
}

static int run_log(cli *c, const void *values)
{
    const log_opts *o = values;
    uint64_t        id, last = 0;
    weir_queue     *q;
    bool            append = c->n_args > 1;
    if (opt_id(c->args[0], &id, &c->err))
        return cli_usage(c, "%s", c->err.msg);
    if (append && o->follow)
        return cli_usage(c, "--follow shows the log; it does not go with a line to add");
    int signals = o->follow ? cli_signals(SIGINT, SIGTERM, 0) : -1;
    if (cli_open(c, append ? CLI_CHANGE : CLI_LOOK, &q))
        return cli_fail(c);
    weir_code rc = append      ? weir_log(q, id, 0, c->args[1], 0, &c->err)
                   : o->follow ? follow(c, q, id, signals)
                               : print_after(c, q, id, &last);
    weir_close(q);
    if (signals >= 0)
        close(signals);
    if (!rc && append)
        cli_done(c, "added a line to the log of job %llu", (unsigned long long)id);
    return rc ? cli_fail(c) : 0;
}

const command cmd_log = {
    .name = "log", .group = GROUP_LOOK, .args = "ID [TEXT]", .min_args = 1, .max_args = 2,
    .summary = "show a job's log, or add a line to it",
    .examples = "weir log 12 --follow\nweir log 12 'looked into it: the disk was full'\n",
    .options = log_options, .run = run_log,
};
