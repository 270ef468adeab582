/* cmd_stats.c - weir stats: how many jobs of each type are in each state. */
#include "cli/say.h"
#include "cli/store.h"
#include "cli/types.h"

typedef struct stats_opts {
    opt_texts types;
} stats_opts;
CLI_VALUES_FIT(stats_opts);

static const option_entry stats_options[] = {
    TYPE_OPTION(offsetof(stats_opts, types), "only this type; may be given several times"),
    { 0 }
};

static const table_column stats_columns[] = {
    { "TYPE", false, true }, { "INACTIVE", true, false }, { "DELAYED", true, false },
    { "ACTIVE", true, false }, { "COMPLETE", true, false }, { "FAILED", true, false },
    { "CANCELLED", true, false }, { "WORK", true, false }
};

static void stats_row(table *t, const weir_type_stats *s, const char *name)
{
    static const int column[WEIR_STATE_COUNT] = {
        [WEIR_STATE_INACTIVE] = 1, [WEIR_STATE_DELAYED] = 2, [WEIR_STATE_ACTIVE] = 3,
        [WEIR_STATE_COMPLETE] = 4, [WEIR_STATE_FAILED] = 5,  [WEIR_STATE_CANCELLED] = 6
    };
    char text[40];
    table_row(t);
    table_cell(t, 0, s->paused ? COLOR_YELLOW : COLOR_NONE, "%s%s", name,
               s->paused ? " (paused)" : "");
    for (int i = WEIR_STATE_INACTIVE; i < WEIR_STATE_COUNT; i++)
        table_cell(t, column[i], s->count[i] ? term_state_color((weir_state)i) : COLOR_DIM, "%s",
                   term_number(text, sizeof text, s->count[i]));
    table_cell(t, 7, COLOR_NONE, "%s", term_duration(text, sizeof text, s->work_ms));
}

static void stats_table(const weir_stats *s, const cli_types *only)
{
    table t;
    table_init(&t, stats_columns, 8);
    for (size_t i = 0; i < s->n; i++)
        if (!only->n || cli_types_have(only, s->type[i].type))
            stats_row(&t, &s->type[i], s->type[i].type);
    if (!only->n)
        stats_row(&t, &s->all, "all");
    table_print(&t, stdout, 0);
    table_fini(&t);
}

static weir_code stats_json(cli *c, const weir_stats *s, const cli_types *only)
{
    weir_code rc = only->n ? WEIR_OK : jw_stats(stdout, s, &c->err);
    for (size_t i = 0; !rc && i < s->n; i++)
        if (cli_types_have(only, s->type[i].type))
            rc = jw_type(stdout, &s->type[i], &c->err);
    return rc;
}

static int run_stats(cli *c, const void *values)
{
    const stats_opts *o = values;
    weir_queue       *q = NULL;
    weir_stats       *s = NULL;
    cli_types         types;
    if (cli_types_take(c, &o->types, &types))
        return cli_usage(c, "%s", c->err.msg);
    weir_code rc = cli_open(c, CLI_LOOK, &q);
    if (!rc)
        rc = cli_types_check(c, q, &types);
    if (!rc)
        rc = weir_get_stats(q, &s, &c->err);
    weir_close(q);
    if (!rc && c->json)
        rc = stats_json(c, s, &types);
    else if (!rc)
        stats_table(s, &types);
    weir_stats_free(s);
    return rc ? cli_fail(c) : 0;
}

const command cmd_stats = {
    .name = "stats", .group = GROUP_LOOK, .args = "[TYPE...]", .max_args = -1, .words = "<type>",
    .summary = "counts by type and state, and work time",
    .help = "With --json it is what GET /v1/stats of a server answers; with a TYPE, one line for "
            "each, as GET /v1/types/TYPE.",
    .examples = "weir stats\nweir stats mail --json\n",
    .options = stats_options, .run = run_stats,
};
