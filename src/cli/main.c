/* main.c - the program `weir`: the table of its commands, and the way from argv to one of them. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "cli/args.h"
#include "cli/cli.h"

const command cli_commands[] = {
    { "add", "TYPE [JSON|-]", "add a job; prints its id",
      "The data is JSON: an argument, or '-' to read it from standard input; {} when\n"
      "left out. With --wait the command ends when the job has ended, and prints its\n"
      "result: exit status 1 and the error when it failed, 12 when the time is up (the\n"
      "job stays).\n"
      "\n"
      "  weir add mail '{\"to\":\"ann@example.org\"}' --priority high --attempts 3\n"
      "  weir add report --at 09:00 --unique daily-report\n"
      "  generate-jobs | weir add resize --lines\n",
      add_options, 1, 2, cmd_add },
    { "get", "ID", "show a job and what happened to it",
      "  weir get 12\n  weir get 12 --json\n", NULL, 1, 1, cmd_get },
    { "list", "[TYPE]", "list jobs, a page at a time",
      "With --state, in the order that matters there: inactive jobs as they will run,\n"
      "delayed ones by their time, finished ones by their end. Without, by id.\n"
      "\n"
      "  weir list mail --state failed --desc\n"
      "  weir list --state delayed --priority high\n"
      "  weir list --search 'ann smtp*' --json\n",
      list_options, 0, 1, cmd_list },
    { "count", "[TYPE]", "count jobs",
      "  weir count\n  weir count mail --state failed\n",
      count_options, 0, 1, cmd_count },
    { "stats", "", "counts by type and state, and work time", "", NULL, 0, 0, cmd_stats },
    { "types", "[TYPE]", "list the types, or change the settings of one",
      "The settings of the type '*' hold for every type that has none of its own. What\n"
      "is over what is to be kept goes at once. KEEP is an age, a number of jobs or\n"
      "both: 7d, 1000, 7d,1000; 'all' keeps everything.\n"
      "\n"
      "  weir types\n  weir types mail --keep-complete 7d,1000 --keep-failed 30d\n",
      types_options, 0, 1, cmd_types },
    { "log", "ID [TEXT]", "show a job's log, or add a line to it",
      "  weir log 12 --follow\n  weir log 12 'looked into it: the disk was full'\n",
      log_options, 1, 2, cmd_log },
    { "rm", "[ID...]", "forget jobs, in any state",
      "  weir rm 12 13\n  weir rm --state complete --type mail --all\n",
      act_options, 0, -1, cmd_act },
    { "retry", "[ID...]", "run finished jobs again, with all their attempts",
      "With --all and no --state: those that failed.\n"
      "\n"
      "  weir retry 12\n  weir retry --type mail --all\n",
      act_options, 0, -1, cmd_act },
    { "promote", "[ID...]", "let delayed jobs run now",
      "  weir promote 12\n  weir promote --type mail --all\n",
      act_options, 0, -1, cmd_act },
    { "cancel", "[ID...]", "cancel jobs that wait or run",
      "  weir cancel 12\n  weir cancel --type mail --state delayed --all\n",
      act_options, 0, -1, cmd_act },
    { "update", "ID", "change a job's priority, delay, data or state",
      "All of it happens, or nothing.\n"
      "\n"
      "  weir update 12 --priority high --delay 0\n"
      "  weir update 12 --data '{\"to\":\"bob@example.org\"}'\n",
      update_options, 1, 1, cmd_update },
    { "set", "ID NAME=VALUE...", "set values of a job, in any state",
      "Values are small things of your own beside the data: any JSON, or a text. null\n"
      "removes one. A handler that runs sees them when it reads the job again.\n"
      "\n"
      "  weir set 12 reviewed=true reviewer=ann\n  weir set 12 reviewer=null\n",
      NULL, 2, 1 + WEIR_MAX_VALUES, cmd_set },
    { "pause", "[TYPE...]", "let no worker take jobs of these types",
      "Without a type: of any type. Running jobs go on.\n"
      "\n  weir pause mail\n  weir pause\n", NULL, 0, -1, cmd_pause },
    { "resume", "[TYPE...]", "undo pause",
      "  weir resume mail\n  weir resume\n", NULL, 0, -1, cmd_pause },
    { "watch", "", "show what happens, as it happens",
      "  weir watch\n  weir watch --type mail --event failed,failed_attempt --json\n",
      watch_options, 0, 0, cmd_watch },
    { "work", "TYPE... --exec CMD", "do jobs with a program of yours",
      "CMD runs with /bin/sh -c, once for each job, with the job's data on standard\n"
      "input. Its standard output is the result (JSON as it is, other text as a\n"
      "string), its exit status the outcome; 0 is success. On file descriptor 3 it may\n"
      "write lines `progress 40/100` and `log TEXT`. The last line of its standard\n"
      "error becomes part of the error. It finds WEIR_JOB_ID, WEIR_JOB_TYPE,\n"
      "WEIR_JOB_ATTEMPT, WEIR_JOB_MAX_ATTEMPTS and WEIR_JOB_DELIVERY in its\n"
      "environment. A job that was cancelled or is out of time gets SIGTERM, then\n"
      "SIGKILL. SIGTERM or SIGINT to weir lets the running jobs finish; a second one\n"
      "does not. When weir itself is killed, its programs are killed too.\n"
      "\n"
      "  weir work mail --exec ./send-mail -n 4\n"
      "  weir work resize crop --exec './convert-image' --drain\n",
      work_options, 1, WEIR_MAX_TAKE_TYPES, cmd_work },
    { "serve", "", "serve the queue over HTTP",
      "Prints one line when it is ready, and stays in the foreground. Without tokens it\n"
      "listens on this machine alone, and whoever is on it may call. SIGTERM and SIGINT\n"
      "let what is under way finish; a second one does not. SIGHUP reads tokens and\n"
      "certificates again and opens the access log anew. A store that is a server and\n"
      "not up yet is waited for.\n"
      "\n"
      "  weir serve\n"
      "  weir serve --store redis://localhost --listen 127.0.0.1:0\n"
      "  weir serve --listen 0.0.0.0:7340 --tls-cert cert.pem --tls-key key.pem\n",
      serve_options, 0, 0, cmd_serve },
    { "token", "add|list|rotate|rm [NAME]", "who may call the server",
      "`add` prints the token, this once; callers send it as a header, `Authorization:\n"
      "Bearer TOKEN`. A server that runs sees a change within a second. Roles: read\n"
      "looks; produce adds jobs; work takes and ends them; admin may do everything. All\n"
      "of them look. `rotate` makes a new token with the rights of the old one, which\n"
      "stays valid for a day; `rm` removes all of that name at once.\n"
      "\n"
      "  weir token add ci --role produce --type mail --type sms --expires 90d\n"
      "  weir token add ann --role admin\n"
      "  weir token rotate ci --expires 90d\n"
      "  weir token rm ci\n",
      token_options, 1, 2, cmd_token },
    { "top", "", "a live screen: counts, rates, active jobs, failures",
      "q quits.\n", top_options, 0, 0, cmd_top },
    { "check", "", "compare all that is derived with the jobs themselves",
      "Exit status 10 when something is wrong and was not mended.\n"
      "\n  weir check\n  weir check --mend\n",
      check_options, 0, 0, cmd_check },
    { "export", "[FILE|-]", "write jobs with their logs as JSON lines",
      "One job a line, with the names of `weir get --json` and its log; before them a\n"
      "line with the settings of types. Without FILE, or with '-', to standard output.\n"
      "\n"
      "  weir export jobs.jsonl\n"
      "  weir export --state failed --type mail | gzip >failed.gz\n",
      export_options, 0, 1, cmd_export },
    { "import", "[FILE|-]", "put jobs in that `weir export` wrote",
      "Jobs come in as they were, with their ids; one that was active comes in as\n"
      "inactive. A job that is there already is left as it is, so the command can be\n"
      "repeated. A line that is no job is named and ends the command; the jobs before\n"
      "it are in. Exit status 4 when an id or a unique key is another job's here.\n"
      "\n"
      "  weir import jobs.jsonl\n"
      "  weir --store mem: import jobs.jsonl      (dry run)\n",
      import_options, 0, 1, cmd_import },
    { "migrate", "--from URL --to URL", "move all jobs to another store, which may be in use",
      "Settings and pauses of types first, then jobs with their ids and logs. Producers\n"
      "and workers of both stores may go on: each job moves once, and one side runs it.\n"
      "Jobs that workers of the source have are left to them; with --follow it goes on\n"
      "until interrupted and moves those, and new ones, too. It can be stopped, or\n"
      "killed, at any time: the next run goes on. Exit status 4 when jobs stay.\n"
      "\n"
      "  weir migrate --from sqlite:jobs.db --to redis://localhost\n"
      "  weir migrate --from redis+kue://localhost --to redis://localhost --follow\n",
      migrate_options, 0, 0, cmd_migrate },
    { "explain", "ID", "why a job is not running, or what became of it",
      "  weir explain 12\n", NULL, 1, 1, cmd_explain },
    { "bench", "", "measure job lives (add, take, finish) per second",
      "Works on a scratch file unless --store says where; it leaves nothing behind.\n"
      "\n  weir bench -n 50000 --producers 8 --workers 8\n",
      bench_options, 0, 0, cmd_bench },
    { "demo", "", "see it work: some jobs, a pool, live progress",
      "Works on a scratch file unless --store says where.\n",
      demo_options, 0, 0, cmd_demo },
    { "completion", "SHELL", "print the completion script for a shell",
      "SHELL is bash.\n\n"
      "  weir completion bash > ~/.local/share/bash-completion/completions/weir\n",
      NULL, 1, 1, cmd_completion },
    { "version", "", "print the version", "", NULL, 0, 0, cmd_version },
    { "help", "[COMMAND]", "show help for a command", "", NULL, 0, 1, cmd_help },
    { 0 }
};

const command *cli_find(const char *name)
{
    for (const command *cmd = cli_commands; cmd->name; cmd++)
        if (strcmp(cmd->name, name) == 0)
            return cmd;
    return NULL;
}

/* The command that starts like this one or differs by a letter or two: "did you mean". */
static const char *nearest(const char *name)
{
    const char *best = NULL;
    size_t      least = 3;
    for (const command *cmd = cli_commands; cmd->name; cmd++) {
        size_t n = strlen(name), m = strlen(cmd->name), row[32];
        if (n >= 30 || m >= 30)
            continue;
        for (size_t j = 0; j <= m; j++)
            row[j] = j;
        for (size_t i = 1; i <= n; i++) {
            size_t diagonal = row[0];
            row[0] = i;
            for (size_t j = 1; j <= m; j++) {
                size_t d = diagonal + (name[i - 1] != cmd->name[j - 1]);
                diagonal = row[j];
                d = row[j] + 1 < d ? row[j] + 1 : d;
                row[j] = row[j - 1] + 1 < d ? row[j - 1] + 1 : d;
            }
        }
        if (row[m] < least) {
            least = row[m];
            best = cmd->name;
        }
    }
    return best;
}

int cli_unknown(cli *c, const char *name)
{
    const char *guess = nearest(name);
    c->command = NULL;
    return cli_usage(c, "there is no command '%s'%s%s%s", name, guess ? "; did you mean '" : "",
                     guess ? guess : "", guess ? "'?" : "");
}

/* argv[0] is the command's name. */
static int run_command(cli *c, opt_common *common, int argc, char **argv)
{
    const command *cmd = c->command;
    int            first;
    int            status;
    _Alignas(max_align_t) char values[CLI_VALUES] = { 0 };
    if (opt_parse(argc, argv, cmd->options, values, common, false, &first, &c->err)) {
        status = cli_usage(c, "%s", c->err.msg);
    } else if (common->durability && strcmp(common->durability, "os") != 0 &&
               strcmp(common->durability, "disk") != 0) {
        status = cli_usage(c, "--durability: '%s' is not disk or os", common->durability);
    } else if (common->help) {
        cli_help_one(stdout, cmd);
        status = 0;
    } else {
        c->store = common->store;
        c->store_chosen = common->store != NULL;
        c->json = common->json;
        c->durability = common->durability && strcmp(common->durability, "os") == 0
                            ? WEIR_DURABLE_OS
                        : common->durability ? WEIR_DURABLE_DISK : WEIR_DURABLE_DEFAULT;
        c->n_args = argc - first;
        c->args = argv + first;
        if (c->n_args < cmd->min_args)
            status = cli_usage(c, "%.*s is missing", (int)strcspn(cmd->args, " ."), cmd->args);
        else if (cmd->max_args >= 0 && c->n_args > cmd->max_args)
            status = cli_usage(c, "'%s' is one argument too many", c->args[cmd->max_args]);
        else
            status = cmd->run(c, values);
    }
    return status;
}

/* What was printed may not have got to where it should: a full disk is an error too. */
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
        cli_help_all(first == argc && !common.help ? stderr : stdout);
        return flush(common.help ? 0 : weir_code_exit(WEIR_EINVAL));
    }
    c.command = cli_find(argv[first]);
    if (!c.command)
        return cli_unknown(&c, argv[first]);
    return flush(run_command(&c, &common, argc - first, argv + first));
}
