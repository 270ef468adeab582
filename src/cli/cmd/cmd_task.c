/* cmd_task.c - weir task: jobs with ids of the caller's own. */
#include <stdlib.h>
#include <string.h>

#include "cli/action.h"
#include "cli/near.h"
#include "cli/say.h"
#include "cli/store.h"

typedef struct task_opts {
    const char *id, *classifier, *name, *attachment, *var1, *var2, *var3, *result_store, *schedule,
               *zone, *reason, *state, *table, *properties;
    bool        or_find;
    opt_num     at, timeout, version, limit, wait;
    opt_texts   relative;
} task_opts;
CLI_VALUES_FIT(task_opts);

enum { DEFAULT_WAIT_MS = 30000 };
/* As words of completion; "timed out" is one too, as `get` prints it. */
#define STATE_WORDS "ready running completed failed cancelled timed_out"

#define AT(member) offsetof(task_opts, member)
#define MADE "submit adjust invoke"
static const option_entry task_options[] = {
    { .name = "id", .kind = OPT_TEXT, .at = AT(id), .arg = "ID", .actions = "submit invoke",
      .help = "the task's id, unique in the queue (a new one)" },
    { .name = "or-find", .kind = OPT_FLAG, .at = AT(or_find), .actions = "submit",
      .help = "if there is a task with this id, leave it as it is" },
    { .name = "classifier", .kind = OPT_TEXT, .at = AT(classifier), .arg = "NAME",
      .actions = MADE " list cancel initialize",
      .help = "the sort of task (default); list, initialize: of any" },
    { .name = "relative", .kind = OPT_TEXTS, .at = AT(relative), .arg = "ID",
      .actions = MADE " list cancel",
      .help = "what the task is about; list, cancel: tasks with this relative id; can be "
              "repeated there" },
    { .name = "name", .kind = OPT_TEXT, .at = AT(name), .arg = "TEXT", .actions = MADE,
      .help = "a name for people (the service)" },
    { .name = "attachment", .kind = OPT_TEXT, .at = AT(attachment), .arg = "JSON",
      .actions = MADE, .help = "data for the handler" },
    { .name = "var1", .kind = OPT_TEXT, .at = AT(var1), .arg = "TEXT", .actions = MADE,
      .help = "a text for the handler" },
    { .name = "var2", .kind = OPT_TEXT, .at = AT(var2), .arg = "TEXT", .actions = MADE,
      .help = "another" },
    { .name = "var3", .kind = OPT_TEXT, .at = AT(var3), .arg = "TEXT", .actions = MADE,
      .help = "another" },
    { .name = "at", .kind = OPT_WHEN, .at = AT(at), .arg = "TIME", .actions = MADE,
      .help = "when it runs, a time or how long from now (now)" },
    { .name = "timeout", .kind = OPT_DURATION, .at = AT(timeout), .arg = "TIME", .min = 1,
      .actions = MADE,
      .help = "a run that takes longer times out; adjust: of a task that it submits" },
    { .name = "version", .kind = OPT_INT, .at = AT(version), .arg = "N", .min = 1,
      .max = INT32_MAX, .actions = MADE,
      .help = "only programs of this version or later do it; adjust: as --timeout" },
    { .name = "schedule", .kind = OPT_TEXT, .at = AT(schedule), .arg = "EXPR", .actions = MADE,
      .help = "run again at each firing of this expression" },
    { .name = "tz", .kind = OPT_TEXT, .at = AT(zone), .arg = "ZONE", .actions = MADE,
      .help = "of the schedule (UTC)" },
    { .name = "result-store", .kind = OPT_TEXT, .at = AT(result_store), .arg = "NAME",
      .actions = MADE, .help = "with another name than direct a table of record has no result" },
    { .name = "reason", .kind = OPT_TEXT, .at = AT(reason), .arg = "TEXT", .actions = "cancel",
      .help = "why; kept with the task" },
    { .name = "state", .letter = 's', .kind = OPT_TEXT, .at = AT(state), .arg = "STATE",
      .words = STATE_WORDS, .actions = "list",
      .help = "tasks in this state" },
    { .name = "limit", .letter = 'n', .kind = OPT_INT, .at = AT(limit), .arg = "N", .min = 1,
      .max = INT32_MAX, .actions = "list", .help = "at most N (100)" },
    { .name = "task-table", .kind = OPT_TEXT, .at = AT(table), .arg = "URL",
      .actions = MADE " list get fire cancel initialize",
      .help = "the table of record: mysql://USER:PASSWORD@HOST/DATABASE, or sqlite:FILE" },
    { .name = "properties", .kind = OPT_TEXT, .at = AT(properties), .arg = "FILE",
      .words = "<file>", .help = "delayqueue.properties: the queue's prefix on Redis, and the name "
      "of the table and the view" },
    { .name = "wait", .letter = 'w', .kind = OPT_DURATION, .at = AT(wait), .arg = "TIME",
      .actions = "invoke", .help = "at most this long (30s)" },
    { 0 }
};
#undef MADE
#undef AT

static weir_task_spec spec_of(const task_opts *o, const char *service, const char *id)
{
    return (weir_task_spec){
        .service = service, .id = id, .classifier = o->classifier, .name = o->name,
        .relative_id = o->relative.n ? o->relative.text[0] : NULL, .attachment = o->attachment,
        .var1 = o->var1, .var2 = o->var2, .var3 = o->var3, .result_store = o->result_store,
        .version = o->version.n, .timeout_ms = o->timeout.n, .run_at = o->at.n,
        .schedule = o->schedule, .zone = o->zone
    };
}

/* ---- what is printed ---- */

static weir_code print_json(cli *c, const weir_task *task)
{
    char *json = weir_task_json(task, NULL);
    if (!json)
        return weir_fail(&c->err, WEIR_ENOMEM, "out of memory");
    puts(json);
    free(json);
    return WEIR_OK;
}

static void print_line(const char *label, const char *text)
{
    char clean[WEIR_MAX_TASK_TEXT * 4];
    if (text)
        printf("  %-12s %s\n", label, term_clean(clean, sizeof clean, text, 0));
}

static void print_moment(const char *label, int64_t at)
{
    char text[40];
    if (at)
        print_line(label, term_moment(text, sizeof text, at));
}

static void print_numbers(const weir_task_spec *s)
{
    char text[40];
    if (s->timeout_ms)
        print_line("timeout", term_duration(text, sizeof text, s->timeout_ms));
    if (s->version) {
        snprintf(text, sizeof text, "%lld", (long long)s->version);
        print_line("version", text);
    }
}

static weir_code print_task(cli *c, const weir_task *task)
{
    const weir_task_spec *s = &task->spec;
    char                  clean[WEIR_MAX_TASK_ID * 4];
    if (c->json)
        return print_json(c, task);
    printf("%s%s%s  %s\n", term_on(stdout, COLOR_BOLD), term_clean(clean, sizeof clean, s->id, 0),
           term_off(stdout), weir_task_state_name(task->state));
    print_line("service", s->service);
    print_line("name", strcmp(s->name, s->service) ? s->name : NULL);
    print_line("classifier", s->classifier);
    print_line("relative id", s->relative_id);
    print_moment("run at", s->run_at);
    print_line("schedule", s->schedule);
    print_line("zone", s->zone);
    print_numbers(s);
    print_line("attachment", s->attachment);
    print_line("var1", s->var1);
    print_line("var2", s->var2);
    print_line("var3", s->var3);
    print_line("said", task->result_state);
    print_line("result", task->result);
    print_line("host", task->host);
    print_line("ip", task->ip);
    print_moment("created", task->created_at);
    print_moment("started", task->started_at);
    print_moment("ended", task->ended_at);
    printf("  %-12s %llu\n", "job", (unsigned long long)task->job);
    return WEIR_OK;
}

/* ---- actions ---- */

typedef weir_code action(cli *c, weir_tasks *t, const task_opts *o);

static weir_code submit(cli *c, weir_tasks *t, const task_opts *o)
{
    weir_task_spec      spec = spec_of(o, c->args[1], o->id);
    weir_task_submitted added = { 0 };
    bool                existed = false;
    if (c->n_args > 2)
        spec.attachment = c->args[2];
    weir_code rc = o->or_find ? weir_task_find_or_submit(t, &spec, NULL, &existed, &c->err)
                              : weir_task_submit(t, &spec, 1, &added, &c->err);
    if (rc)
        return rc;
    const char *id = o->or_find ? spec.id : added.id;
    jw          w = { .out = stdout };
    if (!c->json) {
        puts(id);
        return rc;
    }
    jw_object(&w, NULL);
    jw_text(&w, "id", id);
    jw_bool(&w, "existed", existed);
    jw_end(&w, '}');
    return rc;
}

static weir_code get(cli *c, weir_tasks *t, const task_opts *o)
{
    weir_task *task;
    (void)o;
    weir_code rc = weir_task_find(t, c->args[1], &task, &c->err);
    if (!rc)
        rc = print_task(c, task);
    weir_task_free(task);
    return rc;
}

static void print_row(table *out, const weir_task *task)
{
    table_row(out);
    table_cell(out, 0, COLOR_BOLD, "%s", task->spec.id);
    table_cell(out, 1, COLOR_NONE, "%s", weir_task_state_name(task->state));
    table_cell(out, 2, COLOR_NONE, "%s", task->spec.service);
    table_cell(out, 3, COLOR_NONE, "%s", task->spec.classifier);
    table_cell(out, 4, COLOR_NONE, "%s", task->spec.relative_id ? task->spec.relative_id : "");
    table_cell(out, 5, COLOR_NONE, "%s", task->result_state ? task->result_state : "");
}

static weir_code print_page(cli *c, const weir_task_page *page, table *out, size_t *left)
{
    weir_code rc = WEIR_OK;
    for (size_t i = 0; i < page->n && *left && !rc; i++, --*left) {
        if (c->json)
            rc = print_json(c, page->task[i]);
        else
            print_row(out, page->task[i]);
    }
    return rc;
}

static weir_code list(cli *c, weir_tasks *t, const task_opts *o)
{
    static const table_column columns[] = {
        { "ID", false, true }, { "STATE", false, false }, { "SERVICE", false, true },
        { "CLASSIFIER", false, true }, { "RELATIVE", false, true }, { "MESSAGE", false, true }
    };
    const char *relative[OPT_MAX_TEXTS + 1] = { NULL };
    for (size_t i = 0; i < o->relative.n; i++)
        relative[i] = o->relative.text[i];
    size_t          left = o->limit.set ? (size_t)o->limit.n : 100;
    weir_task_query query = { .classifier = o->classifier, .limit = WEIR_MAX_TASKS,
                              .relative_ids = o->relative.n ? relative : NULL };
    table           out;
    bool            more = true;
    weir_code       rc = WEIR_OK;
    if (o->state)
        weir_task_state_parse(o->state, &query.state);
    table_init(&out, columns, sizeof columns / sizeof *columns);
    while (!rc && more && left) {
        weir_task_page *page;
        if ((rc = weir_task_list(t, &query, &page, &c->err)))
            break;
        rc = print_page(c, page, &out, &left);
        more = page->more && !query.relative_ids;
        query.after = page->next;
        weir_task_page_free(page);
    }
    if (!rc && out.n_rows)
        table_print(&out, stdout, 0);
    else if (!rc && !c->json)
        fputs("no tasks\n", stderr);
    table_fini(&out);
    return rc;
}

static weir_code print_count(cli *c, weir_code rc, const char *name, size_t n)
{
    if (!rc && c->json)
        printf("{\"%s\":%zu}\n", name, n);
    else if (!rc)
        printf("%zu\n", n);
    return rc;
}

static weir_code cancel(cli *c, weir_tasks *t, const task_opts *o)
{
    size_t    n = 0;
    weir_code rc = o->relative.n
        ? weir_task_cancel_relative(t, o->classifier, o->relative.text, o->relative.n, o->reason,
                                    &n, &c->err)
        : weir_task_cancel(t, (const char *const *)c->args + 1, (size_t)c->n_args - 1, o->reason,
                           &n, &c->err);
    return print_count(c, rc, "cancelled", n);
}

static weir_code fire(cli *c, weir_tasks *t, const task_opts *o)
{
    (void)o;
    weir_code rc = weir_task_promote(t, c->args[1], &c->err);
    if (!rc)
        cli_done(c, "the task %s is due", c->args[1]);
    return rc;
}

static weir_code adjust(cli *c, weir_tasks *t, const task_opts *o)
{
    weir_task_spec spec = spec_of(o, c->n_args > 2 ? c->args[2] : NULL, c->args[1]);
    bool           submitted = false;
    weir_code      rc = weir_task_adjust(t, &spec, &submitted, &c->err);
    if (!rc)
        cli_done(c, "%s the task %s", submitted ? "submitted" : "changed", spec.id);
    return rc;
}

static weir_code initialize(cli *c, weir_tasks *t, const task_opts *o)
{
    size_t    n = 0;
    weir_code rc = weir_task_initialize(t, o->classifier, &n, &c->err);
    return print_count(c, rc, "armed", n);
}

static weir_code invoke(cli *c, weir_tasks *t, const task_opts *o)
{
    weir_task_spec spec = spec_of(o, c->args[1], o->id);
    weir_task     *task;
    if (c->n_args > 2)
        spec.attachment = c->args[2];
    int64_t   wait_ms = o->wait.set ? o->wait.n : DEFAULT_WAIT_MS;
    weir_code rc = weir_task_invoke(t, &spec, wait_ms, &task, &c->err);
    if (rc)
        return rc;
    rc = print_task(c, task);
    if (!rc && task->unfinished)
        rc = weir_fail(&c->err, WEIR_ETIMEOUT, "the task %s has not ended; `weir task get` shows "
                       "it", task->spec.id);
    else if (!rc && task->state != WEIR_TASK_COMPLETED)
        rc = weir_fail(&c->err, WEIR_EJOB, "the task %s is %s", task->spec.id,
                       weir_task_state_name(task->state));
    weir_task_free(task);
    return rc;
}

/* Needs no store. */
static int view(cli *c, const task_opts *o)
{
    char                *sql;
    weir_task_properties p = { 0 };
    if (o->properties && weir_task_properties_read(o->properties, &p, &c->err))
        return cli_fail(c);
    const char *name = c->n_args > 1 ? c->args[1] : *p.table ? p.table : NULL;
    if (weir_task_view(name, &sql, &c->err))
        return cli_fail(c);
    fputs(sql, stdout);
    free(sql);
    return 0;
}

static const struct {
    cli_action action;
    cli_mode   mode;
    action    *run;
} verbs[] = {
    { { "submit", 2, 3, "SERVICE [JSON]" }, CLI_CHANGE, submit },
    { { "list", 1, 1, "nothing" }, CLI_LOOK, list },
    { { "get", 2, 2, "ID" }, CLI_LOOK, get },
    { { "fire", 2, 2, "ID" }, CLI_CHANGE, fire },
    { { "cancel", 1, OPT_MAX_TEXTS, "IDs, or --relative ID" }, CLI_CHANGE, cancel },
    { { "adjust", 2, 3, "ID [SERVICE]" }, CLI_CHANGE, adjust },
    { { "initialize", 1, 1, "nothing" }, CLI_CHANGE, initialize },
    { { "invoke", 2, 3, "SERVICE [JSON]" }, CLI_CHANGE, invoke },
    { { "view", 1, 2, "[NAME]" }, CLI_LOOK, NULL },
};

/* The store with the prefix that the file names. *url: for free(), when the store is closed. */
static weir_code choose_store(cli *c, const task_opts *o, char **url)
{
    weir_task_properties p;
    weir_code            rc = weir_task_properties_read(o->properties, &p, &c->err);
    if (!rc && p.daily_keys)
        cli_warn(c, "DailyQueueKey has no effect: the queue has one set of keys for all days");
    if (!rc)
        rc = cli_choose_store(c);
    if (!rc)
        rc = weir_task_properties_queue(&p, c->store, url, &c->err);
    c->store = rc ? c->store : *url;
    return rc;
}

static int act(cli *c, const task_opts *o, size_t verb)
{
    weir_queue *q = NULL;
    weir_tasks *t = NULL;
    char       *url = NULL;
    weir_code   rc = o->properties ? choose_store(c, o, &url) : WEIR_OK;
    if (!rc)
        rc = cli_open(c, verbs[verb].mode, &q);
    weir_tasks_config config = { .table = o->table, .properties = o->properties };
    if (!rc)
        rc = weir_tasks_open(&t, q, &config, &c->err);
    if (!rc)
        rc = verbs[verb].run(c, t, o);
    weir_tasks_close(t);
    weir_close(q);
    int status = rc ? cli_fail(c) : 0;
    free(url);
    return status;
}

static int run_task(cli *c, const void *values)
{
    const task_opts *o = values;
    int              status, i = CLI_FIND_ACTION(c, verbs, &status);
    if (i < 0)
        return status;
    weir_task_state state;
    char            hint[80];
    if (o->state && !weir_task_state_parse(o->state, &state))
        return cli_usage(c, "--state: '%s' is not one of: %s%s", o->state, STATE_WORDS,
                         near_words(hint, sizeof hint, o->state, STATE_WORDS));
    if (verbs[i].run == cancel && (c->n_args == 1) == !o->relative.n)
        return cli_usage(c, "cancel: expected IDs, or --relative ID");
    if (verbs[i].run == submit && o->or_find && !o->id)
        return cli_usage(c, "submit: --or-find needs --id");
    if (o->relative.n > 1 && verbs[i].run != list && verbs[i].run != cancel)
        return cli_usage(c, "%s: a task has one --relative", c->args[0]);
    return verbs[i].run ? act(c, o, (size_t)i) : view(c, o);
}

const command cmd_task = {
    .name = "task", .group = GROUP_MORE,
    .args = "ACTION [ARGUMENTS]", .min_args = 1, .max_args = -1,
    .words = "submit list get fire cancel adjust initialize invoke view",
    .summary = "jobs with ids of the caller's own",
    .help = "`submit SERVICE [JSON]` submits a task and prints its id; JSON is the attachment; "
            "`list`; `get ID` shows it with its result; `fire ID` makes it due now; `cancel ID...` "
            "or `cancel --relative ID` cancels tasks that are ready and prints how many; `adjust "
            "ID` changes one, or with a SERVICE submits it if it is unknown; `initialize` arms "
            "scheduled tasks that ended without, and with a table of record submits again what the "
            "queue has lost; `view [NAME]` prints the SQL that shows the tasks of a SQLite store "
            "as a table; `invoke SERVICE [JSON]` submits a task, waits for "
            "its end and shows it.\n"
            "\n"
            "A task is a job of the type SERVICE: `weir work SERVICE` does tasks, too.",
    .examples = "weir task submit thank --id thank-4711 --relative 4711 --at 1h\n"
                "weir task cancel --relative 4711 --reason 'order withdrawn'\n",
    .options = task_options, .run = run_task,
};
