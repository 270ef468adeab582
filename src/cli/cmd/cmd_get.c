/* cmd_get.c - weir get and weir explain: one job, for people. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cmd/explain_type.h"
#include "cli/say.h"
#include "cli/store.h"
#include "cli/types.h"

static void line(const char *name, term_color color, const char *text)
{
    char clean[4096];
    printf("%s%-12s%s %s%s%s\n", term_on(stdout, COLOR_DIM), name, term_off(stdout),
           color ? term_on(stdout, color) : "", term_clean(clean, sizeof clean, text, 0),
           color ? term_off(stdout) : "");
}

static void wrapped(const char *name, term_color color, const char *text)
{
    if (!text)
        return;
    printf("%s%-12s%s %s", term_on(stdout, COLOR_DIM), name, term_off(stdout),
           color ? term_on(stdout, color) : "");
    term_wrap(stdout, text, 13, term_width(stdout), true);
    if (color)
        fputs(term_off(stdout), stdout);
}

/* JSON is shown as it is, cut to a few lines. */
static void json_line(const char *name, const char *json)
{
    char clean[8192];
    if (!json)
        return;
    int room = term_width(stdout) - 13;
    term_clean(clean, sizeof clean, json, room * 8);
    printf("%s%-12s%s ", term_on(stdout, COLOR_DIM), name, term_off(stdout));
    char part[2048];
    for (const char *p = clean; *p;) {
        /* as many characters as fit, no ellipsis in between */
        size_t n = 0;
        int    used = 0;
        while (p[n]) {
            size_t step = 1;
            while (((unsigned char)p[n + step] & 0xc0) == 0x80)
                step++;
            snprintf(part, sizeof part, "%.*s", (int)step, p + n);
            int w = term_text_width(part);
            if (used + w > room)
                break;
            used += w;
            n += step;
        }
        printf("%s%.*s\n", p == clean ? "" : "             ", (int)n, p);
        p += n;
    }
}

static void moment(const char *name, int64_t at, int64_t now)
{
    char a[40], b[40], text[100];
    if (at == 0)
        return;
    snprintf(text, sizeof text, "%s  (%s)", term_moment(a, sizeof a, at),
             term_relative(b, sizeof b, at, now));
    line(name, COLOR_NONE, text);
}

static void length(const char *name, int64_t ms)
{
    char text[40];
    if (ms > 0)
        line(name, COLOR_NONE, term_duration(text, sizeof text, ms));
}

static void backoff(const weir_backoff *b)
{
    char text[160], d[32], m[32];
    if (b->kind == WEIR_BACKOFF_NONE)
        return;
    int n = snprintf(text, sizeof text, "%s, %s",
                     weir_backoff_name(b->kind),
                     term_duration(d, sizeof d, b->delay_ms));
    if (b->max_ms)
        n += snprintf(text + n, sizeof text - (size_t)n, ", at most %s",
                      term_duration(m, sizeof m, b->max_ms));
    if (b->jitter_pct)
        snprintf(text + n, sizeof text - (size_t)n, ", jitter %d%%", (int)b->jitter_pct);
    line("backoff", COLOR_NONE, text);
}

static void sheet(const weir_job *j, int64_t now)
{
    char        text[200], bar[120];
    const char *name = weir_priority_name(j->priority);
    printf("%sjob %llu%s\n", term_on(stdout, COLOR_BOLD), (unsigned long long)j->id,
           term_off(stdout));
    line("type", COLOR_NONE, j->type);
    line("state", term_state_color(j->state), weir_state_name(j->state));
    snprintf(text, sizeof text, "%d%s%s%s", (int)j->priority, name ? " (" : "", name ? name : "",
             name ? ")" : "");
    line("priority", COLOR_NONE, text);
    json_line("data", j->data);
    json_line("values", j->values);
    int n = snprintf(text, sizeof text, "%d of %d", (int)j->attempts, (int)j->max_attempts);
    if ((int64_t)j->delivery != j->attempts)
        n += snprintf(text + n, sizeof text - (size_t)n, ", given out %u times",
                      (unsigned)j->delivery);
    if (j->lost)
        snprintf(text + n, sizeof text - (size_t)n, ", lost by %d worker%s (at most %d)%s",
                 (int)j->lost, j->lost == 1 ? "" : "s", (int)j->max_lost,
                 j->finished_at ? "" : ": runs alone");
    line("attempts", COLOR_NONE, text);
    if (j->state == WEIR_STATE_ACTIVE || j->progress) {
        snprintf(text, sizeof text, "%s %d%%", term_bar(bar, sizeof bar, j->progress, 100, 30),
                 (int)j->progress);
        line("progress", COLOR_NONE, text);
    }
    json_line("at", j->progress_data);
    json_line("result", j->result);
    wrapped("error", COLOR_RED, j->error);
    if (j->unique)
        line("unique", COLOR_NONE, j->unique);
    if (j->worker)
        line("worker", COLOR_NONE, j->worker);
    backoff(&j->backoff);
    length("delay", j->delay_ms);
    length("ttl", j->ttl_ms);
    moment("deadline", j->deadline_at, now);
    moment("created", j->created_at, now);
    if (j->state == WEIR_STATE_DELAYED)
        moment("runs", j->promote_at, now);
    moment("started", j->started_at, now);
    moment("lease until", j->lease_until, now);
    moment("failed", j->failed_at, now);
    moment("finished", j->finished_at, now);
    length("took", j->duration_ms);
    if (j->remove_on_complete)
        line("afterwards", COLOR_NONE, "removed on complete");
}

static void timeline(const weir_moment *moment, size_t n, int64_t now)
{
    int  width = term_width(stdout);
    char at[40], rel[40];
    if (n)
        printf("\n%sTimeline%s\n", term_on(stdout, COLOR_BOLD), term_off(stdout));
    for (size_t i = 0; i < n; i++) {
        term_relative(rel, sizeof rel, moment[i].at, now);
        printf("  %s%s  %-10s%s  ", term_on(stdout, COLOR_DIM),
               term_moment(at, sizeof at, moment[i].at), rel, term_off(stdout));
        term_wrap(stdout, moment[i].what, 39, width, true);
    }
}

static weir_code show(const weir_job *j, int64_t now, weir_error *err)
{
    weir_story *story;
    weir_code   rc = weir_job_story(j, &story, err);
    if (rc)
        return rc;
    sheet(j, now);
    timeline(story->moment, story->n, now);
    weir_story_free(story);
    return WEIR_OK;
}

static weir_code get_one(cli *c, weir_queue *q, uint64_t id)
{
    weir_job *job = NULL;
    weir_code rc = weir_get(q, id, &job, &c->err);
    if (!rc && c->json)
        rc = jw_job(stdout, job, &c->err);
    else if (!rc)
        rc = show(job, weir_now(q), &c->err);
    weir_job_free(job);
    return rc;
}

/* An argument of digits is an id; others are names, for commands that accept names. */
static bool is_id(const char *arg)
{
    return isdigit((unsigned char)*arg) && !arg[strspn(arg, "0123456789")];
}

/* Each argument on its own, then each of `names`; the first failure gives the status. `named`: NULL
 * when all must be ids. */
static int each_arg(cli *c, weir_code (*one)(cli *c, weir_queue *q, uint64_t id),
                    weir_code (*named)(cli *c, weir_queue *q, const char *name),
                    const opt_texts *names)
{
    weir_queue *q;
    uint64_t    id;
    int         status = 0, n = c->n_args + (int)names->n;
    for (int i = 0; i < c->n_args; i++)
        if ((!named || is_id(c->args[i])) && opt_id(c->args[i], &id, &c->err))
            return cli_usage(c, "%s", c->err.msg);
    if (cli_open(c, CLI_ASK, &q))
        return cli_fail(c);
    for (int i = 0; i < n; i++) {
        if (i && !c->json)
            putchar('\n');
        const char *arg = i < c->n_args ? c->args[i] : names->text[i - c->n_args];
        bool        is_name = i >= c->n_args || (named && !is_id(arg));
        if (!is_name)
            opt_id(arg, &id, NULL);
        if (!(is_name ? named(c, q, arg) : one(c, q, id)))
            continue;
        fflush(stdout);
        int s = cli_fail(c);
        status = status ? status : s;
    }
    weir_close(q);
    return status;
}

static int run_get(cli *c, const void *values)
{
    (void)values;
    return each_arg(c, get_one, NULL, &(opt_texts){ 0 });
}

const command cmd_get = {
    .name = "get", .group = GROUP_LOOK, .args = "ID...", .min_args = 1, .max_args = -1,
    .summary = "show jobs and what happened to them",
    .help = "Shows the members of a job, then its history: when it was added, each delivery with "
            "its worker and its outcome, each wait, each change by hand.",
    .examples = "weir get 12\nweir get 12 13 --json\n",
    .run = run_get,
};

/* ---- explain ---- */

/* The advice, by weir_remedy; TYPE and ID are the job's. */
static const char *const remedies[WEIR_REMEDY_COUNT] = {
    [WEIR_REMEDY_NONE] = "",
    [WEIR_REMEDY_RESUME] = "weir resume 'TYPE'",
    [WEIR_REMEDY_RESUME_ALL] = "weir resume '*'",
    [WEIR_REMEDY_START_WORKER] = "weir work TYPE --exec COMMAND",
    [WEIR_REMEDY_ADD_WORKERS] = "More workers (weir work TYPE -j ...), or a better priority "
                                "(weir update ID --priority high)",
    [WEIR_REMEDY_PROMOTE] = "weir promote ID (to start it now)",
    [WEIR_REMEDY_FINISH_MIGRATION] = "weir migrate --from URL --to URL (again, to go on)",
    [WEIR_REMEDY_CANCEL] = "weir cancel ID (if it should not go on)",
    [WEIR_REMEDY_STOP_WORKER] = "If it should not go on, stop its worker (SIGTERM); when the job "
                                "does not end in time, it fails with \"Shutdown\" by the rule of "
                                "attempts",
    [WEIR_REMEDY_RETRY] = "weir log ID, mend the cause, then weir retry ID",
    [WEIR_REMEDY_RETRY_LONGER] = "weir log ID, mend the cause, then weir retry ID. If it needs "
                                 "more time, add it with a longer --ttl, or report progress, which "
                                 "extends it",
};

/* The sentence for this job. The caller frees it; NULL: out of memory. */
static char *remedy_text(const weir_explanation *e)
{
    char        id[24];
    const char *text = (unsigned)e->remedy < WEIR_REMEDY_COUNT ? remedies[e->remedy] : "";
    if (e->remedy == WEIR_REMEDY_RETRY && e->job->state == WEIR_STATE_CANCELLED)
        text = "weir retry ID (to run it after all)";
    snprintf(id, sizeof id, "%llu", (unsigned long long)e->job->id);
    char  *out = NULL;
    size_t len;
    FILE  *f = open_memstream(&out, &len);
    while (f && *text) {
        size_t plain = strcspn(text, "TI");
        fwrite(text, 1, plain, f);
        text += plain;
        if (strncmp(text, "TYPE", 4) == 0)
            fputs(e->job->type, f), text += 4;
        else if (strncmp(text, "ID", 2) == 0)
            fputs(id, f), text += 2;
        else if (*text)
            fputc(*text++, f);
    }
    if (f)
        fclose(f);
    return out;
}

static void explain_json(const weir_explanation *e)
{
    jw     w = { .out = stdout };
    size_t len = 0;
    char  *job = weir_job_json(e->job, &len), *help = remedy_text(e);
    jw_object(&w, NULL);
    jw_raw(&w, "job", job, len);
    jw_text(&w, "why", e->why);
    jw_text(&w, "remedy", weir_remedy_name(e->remedy));
    jw_text(&w, "help", help ? help : "");
    jw_array(&w, "timeline");
    for (size_t i = 0; i < e->n; i++) {
        jw_object(&w, NULL);
        jw_int(&w, "at", e->moment[i].at);
        jw_text(&w, "what", e->moment[i].what);
        jw_end(&w, '}');
    }
    jw_end(&w, ']');
    jw_end(&w, '}');
    free(help);
    free(job);
}

static void explain_text(const weir_explanation *e, int64_t now)
{
    int  width = term_width(stdout);
    char type[WEIR_MAX_TYPE + 8];
    printf("%sjob %llu%s, %s: %s%s%s\n\n", term_on(stdout, COLOR_BOLD),
           (unsigned long long)e->job->id, term_off(stdout),
           term_clean(type, sizeof type, e->job->type, 0),
           term_on(stdout, term_state_color(e->job->state)), weir_state_name(e->job->state),
           term_off(stdout));
    term_wrap(stdout, e->why, 2, width, false);
    char *help = remedy_text(e);
    if (help && *help) {
        printf("\n%sWhat would help%s\n", term_on(stdout, COLOR_BOLD), term_off(stdout));
        term_wrap(stdout, help, 2, width, false);
    }
    free(help);
    timeline(e->moment, e->n, now);
}

static weir_code explain_one(cli *c, weir_queue *q, uint64_t id)
{
    weir_explanation *e = NULL;
    weir_code         rc = weir_explain(q, id, &e, &c->err);
    if (!rc && c->json)
        explain_json(e);
    else if (!rc)
        explain_text(e, weir_now(q));
    weir_explanation_free(e);
    return rc;
}

typedef struct explain_opts {
    opt_texts types;
} explain_opts;
CLI_VALUES_FIT(explain_opts);

static const option_entry explain_options[] = {
    TYPE_OPTION(offsetof(explain_opts, types), "this type; may be given several times"),
    { 0 }
};

static int run_explain(cli *c, const void *values)
{
    const explain_opts *o = values;
    if (c->n_args == 0 && o->types.n == 0)
        return cli_usage(c, "ID|TYPE is missing");
    return each_arg(c, explain_one, explain_type, &o->types);
}

const command cmd_explain = {
    .name = "explain", .group = GROUP_LOOK, .args = "ID|TYPE...", .max_args = -1,
    .words = "<type>",
    .summary = "why a job, or the jobs of a type, are not running",
    .help = "Says why, what would help, and all that happened when, as `weir get` does. Of a job "
            "that runs: which worker has it, for how long, and when its lease ends. Of a type: "
            "what keeps its jobs from running. An argument of digits is an id; "
            "--type names types alone.",
    .examples = "weir explain 12\nweir explain mail\n",
    .options = explain_options, .run = run_explain,
};
