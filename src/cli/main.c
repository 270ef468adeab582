/* main.c - the program `weir`: the way from argv to a command. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/args.h"
#include "cli/help.h"
#include "cli/say.h"

/* Cut off "-- PROGRAM ARGUMENTS". */
static void take_rest(cli *c, int *argc, char **argv)
{
    for (int i = 1; c->command->rest && i < *argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            c->rest = argv + i + 1;
            *argc = i;
        }
    }
}

static void take_common(cli *c, const opt_common *common)
{
    c->store = common->store;
    c->store_from = STORE_OPTION;
    c->json = common->json;
    c->quiet = common->quiet;
    c->durability = !common->durability                      ? WEIR_DURABILITY_DEFAULT
                    : strcmp(common->durability, "os") == 0 ? WEIR_DURABILITY_OS
                                                             : WEIR_DURABILITY_DISK;
}

/* argv[0] is the command's name. */
static int run_command(cli *c, opt_common *common, int argc, char **argv)
{
    const command *cmd = c->command;
    int            first;
    _Alignas(max_align_t) char values[CLI_VALUES] = { 0 };
    take_rest(c, &argc, argv);
    if (opt_parse(argc, argv, cmd->options, values, common, false, &first, &c->err))
        return cli_usage(c, "%s", c->err.msg);
    if (common->help) {
        help_one(stdout, cmd);
        return 0;
    }
    take_common(c, common);
    c->n_args = argc - first;
    c->args = argv + first;
    if (c->n_args < cmd->min_args)
        return cli_usage(c, "%.*s is missing", (int)strcspn(cmd->args, " ."), cmd->args);
    if (c->n_args && opt_check_action(cmd->options, common, cmd->words, c->args[0], &c->err))
        return cli_usage(c, "%s", c->err.msg);
    if (cmd->max_args >= 0 && c->n_args > cmd->max_args)
        return cli_usage(c, "'%s' is one argument too many", c->args[cmd->max_args]);
    return cmd->run(c, values);
}

/* The trace that this command belongs to, and the collector of its spans: docs/tracing.md. A
 * context that is wrong counts as none, says W3C. False: the collector's address is wrong. */
static bool start_trace(cli *c)
{
    weir_trace_set(getenv("TRACEPARENT"), NULL);
    return !weir_trace_start(NULL, &c->err);
}

static void stop_trace(const cli *c)
{
    enum { TRACE_MS = 3000 };
    weir_error err;
    if (weir_trace_stop(TRACE_MS, &err))
        cli_warn(c, "%s", err.msg);
}

/* The output may not have been written: a full disk is an error, too. */
static int flush(int status)
{
    bool bad = ferror(stdout);
    if ((fflush(stdout) || bad) && status == 0) {
        weir_error err;
        weir_fail(&err, WEIR_EIO, "cannot write to standard output");
        return weir_complain(&err);
    }
    return status;
}

/* Somebody may have started us without the standard descriptors; then what we open next would be
 * taken for them. */
static void have_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            _exit(weir_code_exit(WEIR_EIO));
}

int main(int argc, char **argv)
{
    cli        c = { .program = argc > 0 ? argv[0] : "weir" };
    opt_common common = { 0 };
    int        first;
    have_standard_descriptors();
    term_init();
    if (argc > 1 && strcmp(argv[1], "--version") == 0)
        argv[1] = "version";
    argv = args_private(argc, argv);
    if (!argv)
        return cli_fail(&(cli){ .err = { .code = WEIR_ENOMEM, .msg = "out of memory" } });
    if (opt_parse(argc, argv, NULL, NULL, &common, true, &first, &c.err))
        return cli_usage(&c, "%s", c.err.msg);
    if (first == argc || common.help) {
        help_all(first == argc && !common.help ? stderr : stdout);
        return flush(common.help ? 0 : weir_code_exit(WEIR_EINVAL));
    }
    c.command = cli_find(argv[first]);
    if (!c.command)
        return help_unknown(&c, argv[first]);
    if (!start_trace(&c))
        return cli_fail(&c);
    int status = flush(run_command(&c, &common, argc - first, argv + first));
    stop_trace(&c);
    return status;
}
