/* cmd_import.c - weir import: put jobs and schedules in that weir export wrote. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/input.h"
#include "cli/migrate/import_types.h"
#include "cli/migrate/mover.h"
#include "cli/say.h"
#include "cli/store.h"

typedef struct import_opts {
    bool new_ids;
} import_opts;
CLI_VALUES_FIT(import_opts);

static const option_entry import_options[] = {
    { .name = "new-ids", .kind = OPT_FLAG, .at = offsetof(import_opts, new_ids),
      .help = "give each job the next id here; then a second run puts them in again" },
    { 0 }
};

enum { BULK = 500, BULK_BYTES = 8 * 1024 * 1024, MAX_REFUSED_SHOWN = 20 };
#define MAX_LINE ((size_t)1 << 30)      /* a job with the longest log is shorter */

typedef struct importer {
    cli               *c;
    weir_queue        *q;
    const import_opts *o;
    size_t             line;                /* number of the one read last */
    weir_incoming      in[BULK];
    weir_job          *job[BULK];
    weir_lines        *log[BULK];
    size_t             line_of[BULK];
    size_t             n, bytes;
    uint64_t           imported, existed, refused;
    size_t             schedules, schedules_existed;
    term_progress      bar;
} importer;

static void clear_bulk(importer *m)
{
    for (size_t i = 0; i < m->n; i++) {
        weir_job_free(m->job[i]);
        weir_lines_free(m->log[i]);
    }
    m->n = m->bytes = 0;
}

static void refuse(importer *m, size_t line, const weir_error *why)
{
    char clean[WEIR_ERROR_MAX];
    if (m->refused++ == MAX_REFUSED_SHOWN)
        fputs("weir: ... and more\n", stderr);
    if (m->refused <= MAX_REFUSED_SHOWN)
        fprintf(stderr, "weir: line %zu: %s\n", line, term_clean(clean, sizeof clean, why->msg, 0));
}

static weir_code import_bulk(importer *m)
{
    static weir_imported out[BULK];
    weir_code            rc = m->n ? weir_import(m->q, m->in, m->n, out, &m->c->err) : WEIR_OK;
    for (size_t i = 0; !rc && i < m->n; i++) {
        if (out[i].err.code && out[i].err.code != WEIR_ESTATE)
            rc = weir_fail(&m->c->err, out[i].err.code, "line %zu: %s", m->line_of[i],
                           out[i].err.msg);
        else if (out[i].err.code)
            refuse(m, m->line_of[i], &out[i].err);
        else if (out[i].existed)
            m->existed++;
        else
            m->imported++;
    }
    clear_bulk(m);
    m->bar.total = m->imported + m->existed + m->refused;
    term_progress_show(&m->bar, m->bar.total);
    return rc;
}

static weir_code set_types(importer *m, const char *line, size_t len)
{
    import_type *types;
    size_t       n;
    weir_error  *err = &m->c->err;
    weir_code    rc = import_types(line, len, &types, &n, err);
    for (size_t i = 0; !rc && i < n; i++) {
        if (types[i].set)
            rc = weir_configure(m->q, types[i].type, &types[i].settings, err);
        if (!rc && types[i].paused)
            rc = weir_pause(m->q, types[i].type, err);
    }
    free(types);
    return rc;
}

static weir_code read_job(importer *m, const char *line, size_t len)
{
    size_t    i = m->n;
    weir_code rc = weir_job_parse(line, len, &m->job[i], &m->log[i], &m->c->err);
    if (rc)
        return rc;
    m->in[i] = (weir_incoming){ .job = m->job[i], .lines = m->log[i]->line,
                                .n_lines = m->log[i]->n, .new_id = m->o->new_ids };
    m->line_of[i] = m->line;
    m->n++;
    m->bytes += len;
    return WEIR_OK;
}

static bool is_schedule(const char *line, size_t len)
{
    static const char start[] = IMPORT_SCHEDULE;
    return len > sizeof start && memcmp(line, start, sizeof start - 1) == 0 &&
           line[len - 1] == '}';
}

static weir_code put_schedule(importer *m, const char *line, size_t len)
{
    const size_t    start = strlen(IMPORT_SCHEDULE);
    weir_schedules *list;
    bool            existed = false;
    weir_code       rc = weir_schedule_parse(line + start, len - start - 1, &list, &m->c->err);
    if (!rc && m->o->new_ids)
        move_forget_ids(&list->schedule[0]);
    if (!rc)
        rc = weir_schedule_import(m->q, &list->schedule[0], &existed, &m->c->err);
    weir_schedules_free(list);
    m->schedules += !rc && !existed;
    m->schedules_existed += existed;
    return rc;
}

static weir_code read_one(importer *m, const char *line, size_t len)
{
    weir_error why;
    weir_code  rc = len > MAX_LINE ? weir_fail(&m->c->err, WEIR_ELIMIT, "longer than 1 GiB")
                    : is_schedule(line, len)     ? put_schedule(m, line, len)
                    : import_is_types(line, len) ? set_types(m, line, len)
                                                 : read_job(m, line, len);
    if (rc) {
        why = m->c->err;
        weir_fail(&m->c->err, rc, "line %zu: %s", m->line, why.msg);
    }
    return rc;
}

/* The jobs before a wrong line are put in all the same: they are valid. */
static weir_code import_all(importer *m, FILE *in)
{
    weir_code rc = WEIR_OK;
    for (bool more = true; more && !rc;) {
        char  *line;
        size_t len;
        more = cli_read_line(in, MAX_LINE, &line, &len);
        m->line += more;
        if (!line)
            rc = weir_fail(&m->c->err, WEIR_ENOMEM, "line %zu: out of memory", m->line);
        else if (len > 0)
            rc = read_one(m, line, len);
        free(line);
        if (!rc && (m->n == BULK || m->bytes > BULK_BYTES))
            rc = import_bulk(m);
    }
    if (!rc && ferror(in))
        rc = weir_fail(&m->c->err, WEIR_EIO, "cannot read: %s", strerror(errno));
    weir_error why = m->c->err;
    weir_code  last = import_bulk(m);
    if (rc)
        m->c->err = why;
    return rc ? rc : last;
}

static const char *jobs(uint64_t n)
{
    return n == 1 ? "job" : "jobs";
}

static void print_outcome(const importer *m)
{
    char number[32];
    if (m->c->json) {
        jw w = { .out = stdout };
        jw_object(&w, NULL);
        jw_int(&w, "imported", (int64_t)m->imported);
        jw_int(&w, "existed", (int64_t)m->existed);
        jw_int(&w, "refused", (int64_t)m->refused);
        jw_int(&w, "schedules", (int64_t)m->schedules);
        jw_end(&w, '}');
        return;
    }
    if (m->c->quiet)
        return;
    printf("%s %s imported", term_number(number, sizeof number, m->imported), jobs(m->imported));
    if (m->existed)
        printf(", %s there already", term_number(number, sizeof number, m->existed));
    if (m->refused)
        printf(", %s refused", term_number(number, sizeof number, m->refused));
    if (m->schedules || m->schedules_existed)
        printf("; %zu %s imported, %zu there already", m->schedules,
               m->schedules == 1 ? "schedule" : "schedules", m->schedules_existed);
    putchar('\n');
}

static int run_import(cli *c, const void *values)
{
    const char *path = c->n_args && strcmp(c->args[0], "-") != 0 ? c->args[0] : NULL;
    FILE       *in = path ? fopen(path, "re") : stdin;
    importer   *m = calloc(1, sizeof *m);
    weir_code   rc = WEIR_OK;
    if (!in)
        rc = weir_fail(&c->err, errno == ENOENT ? WEIR_ENOENT : WEIR_EIO, "%s: %s", path,
                       strerror(errno));
    else if (!m)
        rc = weir_fail(&c->err, WEIR_ENOMEM, "out of memory");
    if (!rc) {
        *m = (importer){ .c = c, .o = values, .bar = { .what = "importing" } };
        rc = cli_open(c, CLI_CHANGE, &m->q);
    }
    if (!rc) {
        rc = import_all(m, in);
        term_progress_end(&m->bar);
        print_outcome(m);
        weir_close(m->q);
    }
    int status = rc ? cli_fail(c) : m->refused ? weir_code_exit(WEIR_ESTATE) : 0;
    if (path && in)
        fclose(in);
    free(m);
    return status;
}

const command cmd_import = {
    .name = "import", .group = GROUP_STORE, .args = "[FILE|-]", .max_args = 1, .words = "<file>",
    .summary = "put jobs and schedules in that `weir export` wrote",
    .help = "Jobs keep their ids and states; an active job is imported as inactive. "
            "A job or schedule that is there already is left as it is, so the command can be "
            "repeated. A line that is no job is named and ends the command; the jobs before it "
            "are in. Exit status 4 when an id or a unique key is another job's here.",
    .examples = "weir import jobs.jsonl\nweir --store mem: import jobs.jsonl      (dry run)\n",
    .options = import_options, .run = run_import,
};
