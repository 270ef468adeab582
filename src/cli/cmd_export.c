/* cmd_export.c - weir export: jobs with their logs, one JSON object a line.
 *
 * The first line has what is said of types:
 *   {"weir":"export","version":1,"types":[{"type":"mail","paused":true,"keep_complete":{...}}]}
 * and each line behind it a job as weir_job_json() writes it, with the member "log" at its end. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/cli.h"
#include "cli/mover.h"
#include "cli/pages.h"

typedef struct export_opts {
    opt_num     state, priority;
    const char *type;
} export_opts;
CLI_VALUES_FIT(export_opts);

#define AT(member) offsetof(export_opts, member)
const option_entry export_options[] = {
    { "state", 's', OPT_STATE, AT(state), "STATE", "only those in this state", 0, 0,
      "inactive delayed active complete failed cancelled" },
    { "type", 't', OPT_TEXT, AT(type), "TYPE", "only those of this type", 0, 0, "<type>" },
    { "priority", 'p', OPT_PRIORITY, AT(priority), "PRIORITY", "only those of just this priority",
      0, 0, "low normal medium high critical" },
    { 0 }
};
#undef AT

enum { PAGE = 200 };

/* ---- the first line ---- */

static void keep_json(jw *w, const char *name, const weir_keep *k)
{
    jw_object(w, name);
    jw_int(w, "age", k->age_ms);
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

static weir_code write_types(cli *c, weir_queue *q, const export_opts *o, FILE *out)
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
    if (!o->type)
        type_json(&w, &s->all, &s->all.settings);
    for (size_t i = 0; i < s->n; i++)
        if (!o->type || strcmp(o->type, s->type[i].type) == 0)
            type_json(&w, &s->type[i], &s->all.settings);
    jw_end(&w, ']');
    jw_end(&w, '}');
    weir_stats_release(s);
    return WEIR_OK;
}

/* ---- the others ---- */

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

static weir_code write_page(cli *c, weir_queue *q, FILE *out, const weir_page *page, uint64_t *n)
{
    move_log *logs = calloc(PAGE, sizeof *logs);
    if (!logs)
        return weir_fail(&c->err, WEIR_ENOMEM, "out of memory");
    weir_code rc = move_read_logs(q, page->job, page->n, logs, &c->err);
    for (size_t i = 0; !rc && i < page->n; i++) {
        if (logs[i].gone)
            continue;
        rc = write_job(c, out, page->job[i], &logs[i]);
        ++*n;
    }
    for (size_t i = 0; i < page->n; i++)
        move_log_fini(&logs[i]);
    free(logs);
    if (!rc && ferror(out))
        rc = weir_fail(&c->err, WEIR_EIO, "cannot write: %s", strerror(errno));
    return rc;
}

static weir_code write_all(cli *c, weir_queue *q, const export_opts *o, FILE *out, uint64_t *n)
{
    weir_query    query = { .state = (weir_state)o->state.n, .type = o->type,
                            .by_priority = o->priority.set, .priority = (int32_t)o->priority.n,
                            .limit = PAGE };
    term_progress bar = { .what = "exporting" };
    weir_code     rc = cli_count(q, &query, &bar.total, &c->err);
    if (!rc)
        rc = write_types(c, q, o, out);
    for (bool more = true; !rc && more;) {
        weir_page *page;
        rc = weir_list(q, &query, &page, &c->err);
        if (rc)
            break;
        rc = write_page(c, q, out, page, n);
        more = page->more;
        query.after = page->next;
        weir_page_release(page);
        if (out != stdout || !term_is_tty(stdout))
            term_progress_show(&bar, *n);
    }
    term_progress_end(&bar);
    return rc;
}

/* ---- the file ---- */

/* What jobs say is nobody else's business. Whether it was there before is told, since a file that
 * we made goes again if this fails. */
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

static void tell(const cli *c, uint64_t n, const char *path)
{
    char number[32];
    if (c->json) {
        jw w = { .out = stdout };
        jw_object(&w, NULL);
        jw_int(&w, "jobs", (int64_t)n);
        jw_text(&w, "file", path);
        jw_end(&w, '}');
    } else {
        printf("%s %s exported\n", term_number(number, sizeof number, n), n == 1 ? "job" : "jobs");
    }
}

int cmd_export(cli *c, const void *values)
{
    const export_opts *o = values;
    const char        *path = c->n_args && strcmp(c->args[0], "-") != 0 ? c->args[0] : NULL;
    weir_queue        *q;
    uint64_t           n = 0;
    bool               made = false;
    if (cli_open(c, CLI_LOOK, &q))
        return cli_fail(c);
    FILE     *out = path ? open_file(c, path, &made) : stdout;
    weir_code rc = out ? write_all(c, q, o, out, &n) : c->err.code;
    weir_close(q);
    if (out && path) {
        rc = close_file(c, out, path, rc);
        if (rc && made)
            unlink(path);
        if (!rc)
            tell(c, n, path);
    }
    return rc ? cli_fail(c) : 0;
}
