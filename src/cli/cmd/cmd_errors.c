/* cmd_errors.c - weir errors: failed jobs in groups of the same error. */
#include "cli/say.h"
#include "cli/store.h"
#include "cli/types.h"

typedef struct errors_opts {
    opt_texts types;
} errors_opts;
CLI_VALUES_FIT(errors_opts);

static const option_entry errors_options[] = {
    TYPE_OPTION(offsetof(errors_opts, types), "only of this type; may be given several times"),
    { 0 }
};

static const table_column errors_columns[] = {
    { "COUNT", true, false }, { "TYPE", false, true }, { "FIRST", true, false },
    { "LAST", true, false },  { "JOB", true, false },  { "ERROR", false, true },
};

static void add_rows(table *t, const weir_error_groups *g, int64_t now)
{
    char text[40];
    for (size_t i = 0; i < g->n; i++) {
        const weir_error_group *one = &g->group[i];
        table_row(t);
        table_cell(t, 0, COLOR_RED, "%s", term_number(text, sizeof text, one->count));
        table_cell(t, 1, COLOR_NONE, "%s", one->type);
        table_cell(t, 2, COLOR_NONE, "%s", term_relative(text, sizeof text, one->first_at, now));
        table_cell(t, 3, COLOR_NONE, "%s", term_relative(text, sizeof text, one->last_at, now));
        table_cell(t, 4, COLOR_NONE, "%llu", (unsigned long long)one->example);
        table_cell(t, 5, COLOR_NONE, "%s", one->error);
    }
}

/* The groups that are not in the table. */
static void note_limits(const cli *c, const weir_error_groups *g)
{
    char number[32];
    if (g->more)
        cli_note(c, "the last %s failed jobs were looked at; there are older ones",
                 term_number(number, sizeof number, g->looked));
    if (g->others)
        cli_note(c, "%s more failed jobs are in none of these groups",
                 term_number(number, sizeof number, g->others));
}

static weir_code show(cli *c, weir_queue *q, const char *type, table *t)
{
    weir_error_groups *g;
    weir_code          rc = weir_get_errors(q, type, &g, &c->err);
    if (rc)
        return rc;
    if (c->json) {
        rc = jw_errors(stdout, g, &c->err);
    } else {
        add_rows(t, g, weir_now(q));
        note_limits(c, g);
    }
    weir_error_groups_free(g);
    return rc;
}

static int run_errors(cli *c, const void *values)
{
    const errors_opts *o = values;
    weir_queue        *q = NULL;
    cli_types          types;
    table              t;
    if (cli_types_take(c, &o->types, &types))
        return cli_usage(c, "%s", c->err.msg);
    table_init(&t, errors_columns, 6);
    weir_code rc = cli_open(c, CLI_LOOK, &q);
    if (!rc)
        rc = cli_types_check(c, q, &types);
    for (size_t i = 0; !rc && i < types.n; i++)
        rc = show(c, q, types.name[i], &t);
    if (!rc && !types.n)
        rc = show(c, q, NULL, &t);
    weir_close(q);
    if (t.n_rows)
        table_print(&t, stdout, 0);
    else if (!rc && !c->json)
        cli_note(c, "no job has failed");
    table_fini(&t);
    return rc ? cli_fail(c) : 0;
}

const command cmd_errors = {
    .name = "errors", .group = GROUP_LOOK, .args = "[TYPE...]", .max_args = -1, .words = "<type>",
    .summary = "failed jobs in groups of the same error",
    .help = "Errors are the same when they differ only in numbers, ids, quoted strings and "
            "addresses, for which * stands. JOB is the one that failed last. The last 10,000 "
            "failed jobs are looked at. `--error` of list, retry, rm and others chooses the jobs "
            "of a group. With --json it is what GET /v1/errors of a server answers; with a TYPE, "
            "one line for each.",
    .examples = "weir errors\nweir errors mail --json\n"
                "weir retry mail --error 'smtp: no user \"*\"'\n",
    .options = errors_options, .run = run_errors,
};
