/* cmd_pause.c - weir pause and resume: may workers take jobs of these types? */
#include "cli/say.h"
#include "cli/store.h"
#include "cli/types.h"

typedef struct pause_opts {
    opt_texts types;
    bool      all, new;
} pause_opts;
CLI_VALUES_FIT(pause_opts);

#define AT(member) offsetof(pause_opts, member)
static const option_entry pause_options[] = {
    TYPE_OPTION(AT(types), "this type; may be given several times"),
    { .name = "all", .letter = 'a', .kind = OPT_FLAG, .at = AT(all), .help = "every type" },
    { .name = "new", .kind = OPT_FLAG, .at = AT(new), .help = "the type may be one without jobs" },
    { 0 }
};
#undef AT

static void say_one(const cli *c, const char *type, bool paused)
{
    bool all = type[0] == '*' && !type[1];
    if (!c->json) {
        cli_done(c, "%s %s", paused ? "paused" : "resumed", all ? "all types" : type);
        return;
    }
    jw w = { .out = stdout };
    jw_object(&w, NULL);
    jw_text(&w, "type", type);
    jw_bool(&w, "paused", paused);
    jw_end(&w, '}');
}

static int set_pause(cli *c, const pause_opts *o, bool pause)
{
    weir_queue *q = NULL;
    cli_types   types;
    if (cli_types_take(c, &o->types, &types))
        return cli_usage(c, "%s", c->err.msg);
    if (o->all && types.n)
        return cli_usage(c, "TYPE and --all exclude each other");
    if (!o->all && !types.n)
        return cli_usage(c, "which types? Name some, or --all for every type");
    if (o->all)
        types = (cli_types){ .name = { "*" }, .n = 1 };
    weir_code rc = cli_open(c, CLI_CHANGE, &q);
    if (!rc && !o->new)
        rc = cli_types_check(c, q, &types);
    for (size_t i = 0; !rc && i < types.n; i++) {
        rc = pause ? weir_pause(q, types.name[i], &c->err) : weir_resume(q, types.name[i], &c->err);
        if (!rc)
            say_one(c, types.name[i], pause);
    }
    weir_close(q);
    return rc ? cli_fail(c) : 0;
}

static int run_pause(cli *c, const void *values)
{
    return set_pause(c, values, true);
}

static int run_resume(cli *c, const void *values)
{
    return set_pause(c, values, false);
}

const command cmd_pause = {
    .name = "pause", .group = GROUP_CHANGE, .args = "TYPE...", .max_args = -1, .words = "<type>",
    .summary = "let no worker take jobs of these types",
    .help = "Running jobs go on. --all pauses every type, also those that come later; resuming one "
            "type does not undo that.",
    .examples = "weir pause mail\nweir pause --all\n",
    .options = pause_options, .run = run_pause,
};

const command cmd_resume = {
    .name = "resume", .group = GROUP_CHANGE, .args = "TYPE...", .max_args = -1, .words = "<type>",
    .summary = "let workers take jobs of these types again",
    .examples = "weir resume mail\nweir resume --all\n",
    .options = pause_options, .run = run_resume,
};
