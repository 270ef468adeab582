/* cmd_export.c - weir export: schedules, and jobs with their logs, one JSON object a line.
 *
 * The first line has what is said of types:
 *   {"weir":"export","version":1,"types":[{"type":"mail","paused":true,"keep_complete":{...}}]}
 * then there is a line for each schedule, as weir_schedule_json() writes it:
 *   {"weir":"schedule","schedule":{...}}
 * and each line behind them is a job as weir_job_json() writes it, with the member "log" at its
 * end. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/migrate/import_types.h"
#include "cli/migrate/mover.h"
#include "cli/say.h"
#include "cli/select.h"
#include "cli/store.h"

typedef struct export_opts {
    select_opts select;
    const char *output;
} export_opts;
CLI_VALUES_FIT(export_opts);

static const option_entry export_options[] = {
    SELECT_OPTIONS(export_opts),
    { .name = "output", .letter = 'o', .kind = OPT_TEXT, .at = offsetof(export_opts, output),
      .arg = "FILE", .words = "<file>", .help = "write to this file instead of standard output" },
    { 0 }
};

enum { BULK = 200 };

/* ---- the first line ---- */

static void keep_json(jw *w, const char *name, const weir_keep *k)
{
    jw_object(w, name);
    jw_int(w, "age", k->age_ms == WEIR_FOREVER ? 0 : k->age_ms);
    jw_int(w, "count", k->count);
    jw_end(w, '}');
}

static void type_json(jw *w, const weir_type_stats *t, const weir_settings *all)
{
    bool set = move_has_settings(t, all);
    if (!set && !t->paused)
        return;
    jw_object(w, NULL);
    jw_text(w, "type", t->type);
    if (t->paused)
        jw_bool(w, "paused", true);
    if (set) {
        keep_json(w, "keep_complete", &t->settings.keep_complete);
        keep_json(w, "keep_failed", &t->settings.keep_failed);
        jw_bool(w, "search", t->settings.search);
    }
    jw_end(w, '}');
}

static weir_code write_types(cli *c, weir_queue *q, const cli_types *types, FILE *out)
{
    weir_stats *s;
    weir_code   rc = weir_get_stats(q, &s, &c->err);
    if (rc)
        return rc;
    jw w = { .out = out };
    jw_object(&w, NULL);
    jw_text(&w, "weir", "export");
    jw_int(&w, "version", 1);
    jw_array(&w, "types");
    if (!types->n)
        type_json(&w, &s->all, &s->all.settings);
    for (size_t i = 0; i < s->n; i++)
        if (!types->n || cli_types_have(types, s->type[i].type))
            type_json(&w, &s->type[i], &s->all.settings);
    jw_end(&w, ']');
    jw_end(&w, '}');
    weir_stats_free(s);
    return WEIR_OK;
}

/* ---- schedules ---- */

static weir_code write_page(cli *c, const weir_schedules *page, const cli_types *types, FILE *out,
                            size_t *n)
{
    for (size_t i = 0; i < page->n; i++) {
        size_t len;
        if (types->n && !cli_types_have(types, page->schedule[i].job.type))
            continue;
        char *text = weir_schedule_json(&page->schedule[i], &len);
        if (!text)
            return weir_fail(&c->err, WEIR_ENOMEM, "schedule: out of memory");
        fputs(IMPORT_SCHEDULE, out);
        jw_json(out, text, len);
        fputs("}\n", out);
        free(text);
        ++*n;
    }
    return WEIR_OK;
}

/* All, or those whose jobs are of these types. None, if jobs are chosen by anything else. */
static weir_code write_schedules(cli *c, weir_queue *q, const select_opts *o,
                                 const cli_types *types, FILE *out, size_t *n)
{
    char      after[WEIR_MAX_SCHEDULE_NAME + 1] = "";
    weir_code rc = WEIR_OK;
    bool      more = !o->states.set && !o->priority.set && !o->since.set && !o->until.set &&
                !o->search;
    while (!rc && more) {
        weir_schedules *page = NULL;
        rc = weir_schedules_list(q, *after ? after : NULL, 0, &page, &c->err);
        more = !rc && page->more;
        if (!rc && page->n)
            snprintf(after, sizeof after, "%s", page->schedule[page->n - 1].name);
        if (!rc)
            rc = write_page(c, page, types, out, n);
        weir_schedules_free(page);
    }
    return rc;
}

/* ---- jobs ---- */

static weir_code write_job(cli *c, FILE *out, const weir_job *job, const move_log *log)
{
    size_t len;
    char  *text = weir_job_json(job, &len);
    if (!text)
        return weir_fail(&c->err, WEIR_ENOMEM, "job %llu: out of memory",
                         (unsigned long long)job->id);
    jw_json(out, text, len - 1);              /* its last bracket comes behind the log */
    free(text);
    for (size_t i = 0; i < log->n; i++) {
        const weir_line *l = &log->line[i];
        fprintf(out, "%s{\"n\":%llu,\"at\":%lld,\"text\":", i ? "," : ",\"log\":[",
                (unsigned long long)l->n, (long long)l->at);
        jw_string(out, l->text, strlen(l->text));
        fputc('}', out);
    }
    fputs(log->n ? "]}\n" : "}\n", out);
    return WEIR_OK;
}

/* A bulk of jobs, so that their logs are read together. */
static weir_code write_bulk(cli *c, weir_queue *q, FILE *out, weir_job **job, size_t n,
                           uint64_t *done)
{
    static move_log logs[BULK];
    memset(logs, 0, sizeof logs);
    weir_code rc = move_read_logs(q, job, n, logs, &c->err);
    for (size_t i = 0; i < n; i++) {
        if (!rc && !logs[i].gone) {
            rc = write_job(c, out, job[i], &logs[i]);
            ++*done;
        }
        move_log_fini(&logs[i]);
    }
    if (!rc && ferror(out))
        rc = weir_fail(&c->err, WEIR_EIO, "cannot write: %s", strerror(errno));
    return rc;
}

static weir_code write_selection(cli *c, weir_queue *q, selection *s, FILE *out, term_progress *bar,
                                 uint64_t *done)
{
    static weir_job *job[BULK];
    weir_code        rc = WEIR_OK;
    for (size_t n = BULK; n == BULK && !rc;) {
        for (n = 0; n < BULK && !(rc = selection_next(s, BULK - n, &job[n])) && job[n]; n++)
            continue;
        if (!rc)
            rc = write_bulk(c, q, out, job, n, done);
        for (size_t i = 0; i < n; i++)
            weir_job_free(job[i]);
        if (out != stdout || !term_is_tty(stdout))
            term_progress_show(bar, *done);
    }
    return rc;
}

static weir_code count_jobs(cli *c, weir_queue *q, const export_opts *o, const cli_types *types,
                            uint64_t *n)
{
    selection *s;
    weir_code  rc = selection_create(&s, c, q, &o->select, types, 0, SELECT_ANY);
    if (!rc)
        rc = selection_count(s, n);
    selection_destroy(s);
    return rc;
}

static weir_code write_all(cli *c, weir_queue *q, const export_opts *o, const cli_types *types,
                           FILE *out, uint64_t *n, size_t *schedules)
{
    term_progress bar = { .what = "exporting" };
    selection    *s = NULL;
    weir_code     rc = count_jobs(c, q, o, types, &bar.total);
    if (!rc)
        rc = write_types(c, q, types, out);
    if (!rc)
        rc = write_schedules(c, q, &o->select, types, out, schedules);
    if (!rc)
        rc = selection_create(&s, c, q, &o->select, types, 0, SELECT_ANY);
    if (!rc)
        rc = write_selection(c, q, s, out, &bar, n);
    selection_destroy(s);
    term_progress_end(&bar);
    return rc;
}

/* ---- the file ---- */

/* Jobs may hold secrets. Returns whether the file was there before, since a file that we made is
 * removed if this fails. */
static FILE *open_file(cli *c, const char *path, bool *made)
{
    struct stat st;
    *made = stat(path, &st) != 0;
    int   fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f)
        weir_fail(&c->err, errno == ENOENT || errno == ENOTDIR ? WEIR_ENOENT : WEIR_EIO, "%s: %s",
                  path, strerror(errno));
    if (!f && fd >= 0)
        close(fd);
    return f;
}

static weir_code close_file(cli *c, FILE *f, const char *path, weir_code rc)
{
    bool bad = fflush(f) || (fsync(fileno(f)) && errno != EINVAL && errno != EROFS);
    int  why = errno;
    if (fclose(f) && !bad) {
        bad = true;
        why = errno;
    }
    if (bad && !rc)
        rc = weir_fail(&c->err, why == ENOSPC ? WEIR_EFULL : WEIR_EIO, "%s: %s", path,
                       strerror(why));
    return rc;
}

static void print_outcome(const cli *c, uint64_t n, size_t schedules, const char *path)
{
    char number[32];
    if (c->json) {
        jw w = { .out = stdout };
        jw_object(&w, NULL);
        jw_int(&w, "jobs", (int64_t)n);
        jw_int(&w, "schedules", (int64_t)schedules);
        jw_text(&w, "file", path);
        jw_end(&w, '}');
    } else if (!c->quiet) {
        printf("%s %s", term_number(number, sizeof number, n), n == 1 ? "job" : "jobs");
        if (schedules)
            printf(" and %zu %s", schedules, schedules == 1 ? "schedule" : "schedules");
        puts(" exported");
    }
}

static int run_export(cli *c, const void *values)
{
    const export_opts *o = values;
    const char        *path = o->output && strcmp(o->output, "-") != 0 ? o->output : NULL;
    weir_queue        *q;
    uint64_t           n = 0;
    size_t             schedules = 0;
    bool               made = false;
    FILE              *out = NULL;
    cli_types          types;
    if (cli_types_take(c, &o->select.types, &types))
        return cli_usage(c, "%s", c->err.msg);
    if (cli_open(c, CLI_LOOK, &q))
        return cli_fail(c);
    weir_code rc = cli_types_check(c, q, &types);
    if (!rc)
        out = path ? open_file(c, path, &made) : stdout;
    if (!rc)
        rc = out ? write_all(c, q, o, &types, out, &n, &schedules) : c->err.code;
    weir_close(q);
    if (out && path) {
        rc = close_file(c, out, path, rc);
        if (rc && made)
            unlink(path);
        if (!rc)
            print_outcome(c, n, schedules, path);
    }
    return rc ? cli_fail(c) : 0;
}

const command cmd_export = {
    .name = "export", .group = GROUP_STORE, .args = "[TYPE...]", .max_args = -1, .words = "<type>",
    .summary = "write jobs with their logs, and schedules, as JSON lines",
    .help = "One job a line, with the names of `weir get --json` and its log; before them a line "
            "with the settings of types, and one for each schedule, unless jobs are chosen by "
            "more than their types.",
    .examples = "weir export --output jobs.jsonl\n"
                "weir export mail --state failed | gzip >failed.gz\n",
    .options = export_options, .run = run_export,
};
