/* cmd_help.c - weir help, version and completion: texts that are made from the tables. */
#include <string.h>
#include "cli/help.h"
#include "cli/near.h"
#include "cli/say.h"

typedef struct help_opts {
    bool man;
} help_opts;
CLI_VALUES_FIT(help_opts);

static const option_entry help_options[] = {
    { .name = "man", .kind = OPT_FLAG, .at = offsetof(help_opts, man),
      .help = "as a manual page: `weir help --man list | man -l -`" },
    { 0 }
};

static int run_help(cli *c, const void *values)
{
    const help_opts *o = values;
    const command   *cmd = c->n_args ? cli_find(c->args[0]) : NULL;
    if (c->n_args && !cmd)
        return help_unknown(c, c->args[0]);
    if (o->man)
        man_page(stdout, cmd);
    else if (cmd)
        help_one(stdout, cmd);
    else
        help_all(stdout);
    return 0;
}

const command cmd_help = {
    .name = "help", .group = GROUP_MORE, .args = "[COMMAND]", .max_args = 1, .words = "<topic>",
    .summary = "show help for a command",
    .options = help_options, .run = run_help,
};

/* ---- version ---- */

static int run_version(cli *c, const void *values)
{
    (void)values;
    const char *const parts[] = { "redis", "http", "server" };
    const bool        there[] = { WEIR_WITH_REDIS, WEIR_WITH_HTTP, WEIR_WITH_SERVER };
    if (!c->json) {
        printf("weir %s\n", weir_version());
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            if (!there[i])
                printf("built without %s\n", parts[i]);
        return 0;
    }
    jw w = { .out = stdout };
    jw_object(&w, NULL);
    jw_text(&w, "version", weir_version());
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        jw_bool(&w, parts[i], there[i]);
    jw_end(&w, '}');
    return 0;
}

const command cmd_version = {
    .name = "version", .group = GROUP_MORE, .summary = "print the version", .run = run_version,
};

/* ---- completion ---- */

static const struct {
    const char *name;
    void      (*print)(FILE *out);
} shells[] = { { "bash", complete_bash }, { "zsh", complete_zsh }, { "fish", complete_fish } };

static int run_completion(cli *c, const void *values)
{
    (void)values;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(c->args[0], shells[i].name) == 0) {
            shells[i].print(stdout);
            return 0;
        }
    }
    char hint[80];
    return cli_usage(c, "unknown shell '%s'; expected bash, zsh or fish%s", c->args[0],
                     near_words(hint, sizeof hint, c->args[0], c->command->words));
}

const command cmd_completion = {
    .name = "completion", .group = GROUP_MORE, .args = "SHELL", .min_args = 1, .max_args = 1,
    .words = "bash zsh fish",
    .summary = "print the completion script for a shell",
    .help = "SHELL is bash, zsh or fish. An installation brings all three; this is for a program "
            "that was built by hand.",
    .examples =
        "weir completion bash >~/.local/share/bash-completion/completions/weir\n"
        "weir completion zsh >~/.zfunc/_weir\n"
        "weir completion fish >~/.config/fish/completions/weir.fish\n",
    .run = run_completion,
};
