/* cmd_check.c - weir check: is the store sound? */
#include "cli/say.h"
#include "cli/store.h"

typedef struct check_opts {
    bool mend;
} check_opts;
CLI_VALUES_FIT(check_opts);

static const option_entry check_options[] = {
    { .name = "mend", .kind = OPT_FLAG, .at = offsetof(check_opts, mend),
      .help = "make anew from the jobs what differs" },
    { 0 }
};

static void report_json(const weir_report *r)
{
    jw w = { .out = stdout };
    jw_object(&w, NULL);
    jw_int(&w, "jobs", (int64_t)r->jobs);
    jw_array(&w, "problems");
    for (size_t i = 0; i < r->n; i++)
        jw_text(&w, NULL, r->line[i]);
    jw_end(&w, ']');
    jw_int(&w, "mended", (int64_t)r->mended);
    jw_end(&w, '}');
}

static void report_text(const weir_report *r)
{
    char        number[32], clean[1000];
    const char *jobs = r->jobs == 1 ? "job" : "jobs";
    const char *problems = r->n == 1 ? "problem" : "problems";
    for (size_t i = 0; i < r->n; i++)
        printf("%s\n", term_clean(clean, sizeof clean, r->line[i], 0));
    term_number(number, sizeof number, r->jobs);
    if (r->n == 0)
        printf("%s %s: %sall is well%s\n", number, jobs, term_on(stdout, COLOR_GREEN),
               term_off(stdout));
    else if (r->mended >= r->n)
        printf("%s %s: %zu %s, all mended\n", number, jobs, r->n, problems);
    else
        printf("%s %s: %s%zu %s%s, %zu mended%s\n", number, jobs, term_on(stdout, COLOR_RED), r->n,
               problems, term_off(stdout), r->mended,
               r->mended ? "" : "; see `weir check --mend`");
}

static int run_check(cli *c, const void *values)
{
    const check_opts *o = values;
    weir_queue       *q;
    weir_report      *r = NULL;
    if (cli_open(c, o->mend ? CLI_MEND : CLI_LOOK, &q))
        return cli_fail(c);
    weir_code rc = weir_check(q, o->mend, &r, &c->err);
    weir_close(q);
    if (rc)
        return cli_fail(c);
    if (c->json)
        report_json(r);
    else
        report_text(r);
    bool sound = r->mended >= r->n;
    weir_report_free(r);
    return sound ? 0 : weir_code_exit(WEIR_ECORRUPT);
}

const command cmd_check = {
    .name = "check", .group = GROUP_STORE,
    .summary = "compare all that is derived with the jobs themselves",
    .help = "SQLite checks its file; then counts, order, search and unique keys are compared with "
            "the jobs. Exit status 10 when something is wrong and was not mended.\n\n"
            "A SQLite file that was copied without its log (PATH-wal) is refused by all commands, "
            "since the newest jobs are missing. If the log is lost, --mend makes the file usable "
            "as it is.",
    .examples = "weir check\nweir check --mend\n",
    .options = check_options, .run = run_check,
};
