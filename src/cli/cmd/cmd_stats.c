/* cmd_stats.c - weir stats: how many jobs of each type are in each state. */
#include "cli/say.h"
#include "cli/store.h"
#include "cli/type_json.h"

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

static void stats_table(const weir_stats *s)
{
    table t;
    table_init(&t, stats_columns, 8);
    for (size_t i = 0; i < s->n; i++)
        stats_row(&t, &s->type[i], s->type[i].type);
    stats_row(&t, &s->all, "all");
    table_print(&t, stdout, 0);
    table_fini(&t);
}

static int run_stats(cli *c, const void *values)
{
    (void)values;
    weir_queue *q;
    weir_stats *s;
    if (cli_open(c, CLI_LOOK, &q))
        return cli_fail(c);
    weir_code rc = weir_get_stats(q, &s, &c->err);
    weir_close(q);
    if (rc)
        return cli_fail(c);
    if (c->json) {
        jw w = { .out = stdout };
        jw_object(&w, NULL);
        jw_int(&w, "last_id", (int64_t)s->last_id);
        type_json(&w, "all", &s->all);
        jw_array(&w, "types");
        for (size_t i = 0; i < s->n; i++)
            type_json(&w, NULL, &s->type[i]);
        jw_end(&w, ']');
        jw_end(&w, '}');
    } else {
        stats_table(s);
    }
    weir_stats_free(s);
    return 0;
}

const command cmd_stats = {
    .name = "stats", .group = GROUP_LOOK,
    .summary = "counts by type and state, and work time",
    .run = run_stats,
};
