/* cmd_count.c - weir count: how many jobs. */
#include "cli/say.h"
#include "cli/select.h"
#include "cli/store.h"

typedef struct count_opts {
    select_opts select;
} count_opts;
CLI_VALUES_FIT(count_opts);

static const option_entry count_options[] = { SELECT_OPTIONS(count_opts), { 0 } };

static int run_count(cli *c, const void *values)
{
    const count_opts *o = values;
    weir_queue       *q = NULL;
    cli_types         types;
    selection        *s = NULL;
    uint64_t          n = 0;
    if (cli_types_take(c, &o->select.types, &types))
        return cli_usage(c, "%s", c->err.msg);
    weir_code rc = cli_open(c, CLI_LOOK, &q);
    if (!rc)
        rc = cli_types_check(c, q, &types);
    if (!rc)
        rc = selection_create(&s, c, q, &o->select, &types, 0, SELECT_ANY);
    if (!rc) {
        selection_ids_only(s);
        rc = selection_count(s, &n);
    }
    selection_destroy(s);
    weir_close(q);
    if (rc)
        return cli_fail(c);
    if (!c->json) {
        printf("%llu\n", (unsigned long long)n);
        return 0;
    }
    jw w = { .out = stdout };
    jw_object(&w, NULL);
    jw_int(&w, "count", (int64_t)n);
    jw_end(&w, '}');
    return 0;
}

const command cmd_count = {
    .name = "count", .group = GROUP_LOOK, .args = "[TYPE...]", .max_args = -1, .words = "<type>",
    .summary = "count jobs",
    .help = "Types and states are counted without looking at jobs. Jobs of a priority, a time or "
            "with words are looked for, which takes longer.",
    .examples = "weir count\n"
                "weir count mail --state failed\n"
                "weir count --state failed,cancelled --since 1h\n",
    .options = count_options, .run = run_count,
};
