/* cmd_workqueue.c - weir workqueue: the work queues of the server that has the store open. The
 * server is asked over the bus, so that all stores reach it alike. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/action.h"
#include "cli/bus_call.h"
#include "cli/say.h"

typedef struct workqueue_opts {
    opt_num     timeout;
    bool        persist, timed_out_first;
    const char *collection;
} workqueue_opts;
CLI_VALUES_FIT(workqueue_opts);

#define AT(member) offsetof(workqueue_opts, member)
static const option_entry workqueue_options[] = {
    { .name = "process-timeout", .kind = OPT_DURATION, .at = AT(timeout), .arg = "TIME", .min = 1,
      .max = 7 * 24 * 3600 * 1000,
      .help = "add: a processor that has not answered by then loses the work (5m)" },
    { .name = "persist", .kind = OPT_FLAG, .at = AT(persist),
      .help = "add: work is jobs of the store, and survives a restart" },
    { .name = "collection", .kind = OPT_TEXT, .at = AT(collection), .arg = "TYPE",
      .help = "add: with --persist, the type of these jobs; else the address" },
    { .name = "timed-out-first", .kind = OPT_FLAG, .at = AT(timed_out_first),
      .help = "add: work whose processor is late goes to the head of the queue" },
    { 0 }
};
#undef AT

/* ---- showing them ---- */

static long long number(const json_t *q, const char *name)
{
    return (long long)json_integer_value(json_object_get(q, name));
}

static bool flag(const json_t *q, const char *name)
{
    return json_is_true(json_object_get(q, name));
}

static const char *text(const json_t *q, const char *name)
{
    const char *t = json_string_value(json_object_get(q, name));
    return t ? t : "";
}

static void print_json(const json_t *q)
{
    char *line = json_dumps(q, JSON_COMPACT | JSON_REAL_PRECISION(6));
    if (line)
        jw_json(stdout, line, strlen(line));
    putchar('\n');
    free(line);
}

static void print_table(const json_t *list)
{
    static const table_column columns[] = {
        { "ADDRESS", false, true }, { "WAITING", true, false }, { "RUNNING", true, false },
        { "IDLE", true, false },    { "BUSY", true, false },    { "DONE", true, false },
        { "DONE/S", true, false },  { "KEPT", false, false },
    };
    static const char *const numbers[] = { "waiting", "running", "idle", "busy", "done" };
    table   out;
    size_t  i;
    json_t *q;
    table_init(&out, columns, 8);
    json_array_foreach(list, i, q) {
        table_row(&out);
        table_cell(&out, 0, COLOR_BOLD, "%s", text(q, "address"));
        for (int k = 0; k < 5; k++)
            table_cell(&out, k + 1, COLOR_NONE, "%lld", number(q, numbers[k]));
        table_cell(&out, 6, COLOR_NONE, "%.1f",
                   json_number_value(json_object_get(q, "done_per_second")));
        table_cell(&out, 7, COLOR_NONE, "%s", flag(q, "persist") ? "in the store" : "in memory");
    }
    table_print(&out, stdout, 0);
    table_fini(&out);
}

static void print_one(const json_t *q)
{
    char clean[4 * WEIR_MAX_BUS_ADDRESS];
    printf("%s%s%s\n", term_on(stdout, COLOR_BOLD),
           term_clean(clean, sizeof clean, text(q, "address"), 0), term_off(stdout));
    if (flag(q, "persist"))
        printf("  kept        in the store, as jobs of the type %s\n",
               term_clean(clean, sizeof clean, *text(q, "collection") ? text(q, "collection")
                                                                      : text(q, "address"), 0));
    else
        printf("  kept        in memory\n");
    printf("  timeout     %lld ms, then %s of the queue\n", number(q, "process_timeout"),
           flag(q, "timed_out_first") ? "at the head" : "at the end");
    printf("  made        %s\n", flag(q, "configured") ? "by the settings of the server"
                                                       : "while the server ran");
    printf("  served      by %s server, runs on %lld\n", flag(q, "standby") ? "another" : "this",
           number(q, "servers"));
    printf("  work        %lld waiting, %lld running, %lld done (%.1f/s), %lld timed out\n",
           number(q, "waiting"), number(q, "running"), number(q, "done"),
           json_number_value(json_object_get(q, "done_per_second")), number(q, "timed_out"));
    printf("  processors  %lld idle, %lld busy\n", number(q, "idle"), number(q, "busy"));
}

/* ---- actions ---- */

static int list(cli *c, const workqueue_opts *o)
{
    size_t  i;
    json_t *reply, *q, *all;
    (void)o;
    int status = cli_bus_call(c, "workQueues", NULL, &reply);
    if (status)
        return status;
    all = json_object_get(reply, "work_queues");
    if (!c->json && json_array_size(all))
        print_table(all);
    else if (c->json)
        json_array_foreach(all, i, q)
            print_json(q);
    json_decref(reply);
    return 0;
}

static int get(cli *c, const workqueue_opts *o)
{
    json_t *q;
    (void)o;
    int status = cli_bus_call(c, "getWorkQueue", json_pack("{s:s}", "address", c->args[1]), &q);
    if (status)
        return status;
    (c->json ? print_json : print_one)(q);
    json_decref(q);
    return 0;
}

static int add(cli *c, const workqueue_opts *o)
{
    json_t *q, *args = json_pack("{s:s, s:b, s:b}", "address", c->args[1], "persist", o->persist,
                                 "timed_out_first", o->timed_out_first);
    if (o->collection)
        json_object_set_new(args, "collection", json_string(o->collection));
    if (o->timeout.set)
        json_object_set_new(args, "process_timeout", json_integer(o->timeout.n));
    int status = cli_bus_call(c, "putWorkQueue", args, &q);
    if (status)
        return status;
    if (c->json)
        print_json(q);
    cli_done(c, "the work queue %s runs", c->args[1]);
    json_decref(q);
    return 0;
}

static int rm(cli *c, const workqueue_opts *o)
{
    json_t *nothing;
    (void)o;
    int status = cli_bus_call(c, "removeWorkQueue", json_pack("{s:s}", "address", c->args[1]),
                              &nothing);
    if (status)
        return status;
    json_decref(nothing);
    cli_done(c, "removed the work queue %s", c->args[1]);
    return 0;
}

static const struct {
    cli_action action;
    int      (*run)(cli *c, const workqueue_opts *o);
} verbs[] = {
    { { "add", 2, 2, "ADDRESS" }, add }, { { "list", 1, 1, "nothing" }, list },
    { { "get", 2, 2, "ADDRESS" }, get }, { { "rm", 2, 2, "ADDRESS" }, rm },
};

static int run_workqueue(cli *c, const void *values)
{
    int status, i = CLI_FIND_ACTION(c, verbs, &status);
    return i < 0 ? status : verbs[i].run(c, values);
}

const command cmd_workqueue = {
    .name = "workqueue", .group = GROUP_MORE,
    .args = "ACTION [ADDRESS]", .min_args = 1, .max_args = -1,
    .words = "add list get rm",
    .summary = "work queues on the event bus of a server",
    .help = "`add ADDRESS` starts a work queue at this address of the event bus; it starts again "
            "with the server. `list` shows all with their numbers, `get ADDRESS` one. `rm ADDRESS` "
            "stops one: requests whose work was in memory fail, work in the store stays there.\n"
            "\n"
            "A server must have the store open. Over HTTP (--store http://...) the token must be "
            "an admin's.",
    .examples = "weir workqueue add resize --process-timeout 1m\n"
                "weir workqueue add mail --persist --collection mails\n"
                "weir workqueue list\n",
    .options = workqueue_options, .run = run_workqueue,
};
