/* cmd_act.c - weir rm, retry, promote and cancel: the same step for some jobs or for all of a
 * kind. */
#include <string.h>
#include <unistd.h>
#include "cli/cli.h"
#include "cli/pages.h"

typedef struct act_opts {
    opt_num     state, priority;
    const char *type;
    bool        all, yes;
} act_opts;
CLI_VALUES_FIT(act_opts);

#define AT(member) offsetof(act_opts, member)
const option_entry act_options[] = {
    { "state", 's', OPT_STATE, AT(state), "STATE", "with --all: those in this state", 0, 0,
      "inactive delayed active complete failed cancelled" },
    { "type", 't', OPT_TEXT, AT(type), "TYPE", "with --all: those of this type", 0, 0, "<type>" },
    { "priority", 'p', OPT_PRIORITY, AT(priority), "PRIORITY",
      "with --all: those of just this priority", 0, 0, "low normal medium high critical" },
    { "all", 'a', OPT_FLAG, AT(all), NULL, "all jobs of --state, --type and --priority", 0, 0,
      NULL },
    { "yes", 'y', OPT_FLAG, AT(yes), NULL, "do not ask before many are changed", 0, 0, NULL },
    { 0 }
};
#undef AT

typedef struct action {
    const char *name, *done;
    weir_code (*one)(weir_queue *q, uint64_t id, weir_error *err);
    weir_code (*async)(weir_queue *q, uint64_t id, weir_future **f, weir_error *err);
    weir_state  states[4];      /* which ones --all means when --state does not say */
} action;

static const action actions[] = {
    { "rm", "removed", weir_remove, weir_remove_async, { WEIR_ANY } },
    { "retry", "queued again", weir_retry, weir_retry_async, { WEIR_FAILED } },
    { "promote", "promoted", weir_promote, weir_promote_async, { WEIR_DELAYED } },
    { "cancel", "cancelled", weir_cancel, weir_cancel_async,
      { WEIR_INACTIVE, WEIR_DELAYED, WEIR_ACTIVE } },
};

static const action *find_action(const char *name)
{
    const action *a = actions;
    while (strcmp(a->name, name) != 0)
        a++;
    return a;
}

/* ---- by id ---- */

static void one_json(uint64_t id, const action *a, weir_code rc, const weir_error *err)
{
    jw w = { .out = stdout };
    jw_object(&w, NULL);
    jw_int(&w, "id", (int64_t)id);
    jw_text(&w, "action", a->name);
    jw_bool(&w, "ok", !rc);
    if (rc) {
        jw_text(&w, "code", weir_code_name(rc));
        jw_text(&w, "error", err->msg);
    }
    jw_end(&w, '}');
}

/* Each id on its own; the status is that of the first that did not work. */
static int act_ids(cli *c, const action *a)
{
    weir_queue *q;
    uint64_t    id;
    int         status = 0;
    for (int i = 0; i < c->n_args; i++)
        if (opt_id(c->args[i], &id, &c->err))
            return cli_usage(c, "%s", c->err.msg);
    if (cli_open(c, CLI_CHANGE, &q))
        return cli_fail(c);
    for (int i = 0; i < c->n_args; i++) {
        opt_id(c->args[i], &id, NULL);
        weir_code rc = a->one(q, id, &c->err);
        if (rc) {
            int s = cli_fail(c);
            status = status ? status : s;
        }
        if (c->json)
            one_json(id, a, rc, &c->err);
    }
    weir_close(q);
    return status;
}

/* ---- all of a kind ---- */

/* A page of them at once. Those that have moved on meanwhile are no error. */
static weir_code act_page(cli *c, weir_queue *q, const action *a, const weir_page *page,
                          uint64_t *done)
{
    static weir_future *future[WEIR_MAX_PAGE];
    weir_code           rc = WEIR_OK;
    size_t              n = 0;
    for (; n < page->n && !rc; n++) {
        rc = a->async(q, page->job[n]->id, &future[n], &c->err);
        if (rc)
            break;
    }
    for (size_t i = 0; i < n; i++) {
        weir_error err;
        weir_code  one = weir_future_wait(future[i], WEIR_FOREVER, &err);
        *done += one == WEIR_OK;
        if (one && one != WEIR_ENOENT && one != WEIR_ESTATE && !rc) {
            rc = one;
            c->err = err;
        }
        weir_future_release(future[i]);
    }
    return rc;
}

static weir_code act_state(cli *c, weir_queue *q, const action *a, weir_query query,
                           term_progress *bar, uint64_t *done)
{
    for (;;) {
        weir_page *page;
        weir_code  rc = weir_list(q, &query, &page, &c->err);
        if (rc)
            return rc;
        rc = act_page(c, q, a, page, done);
        bool more = page->more;
        query.after = page->next;
        weir_page_release(page);
        term_progress_show(bar, *done);
        if (rc || !more)
            return rc;
    }
}

static bool confirmed(const action *a, const act_opts *o, uint64_t total)
{
    char answer[16], number[32];
    if (o->yes || total <= WEIR_MAX_PAGE || !isatty(STDIN_FILENO))
        return true;
    fprintf(stderr, "%s %s jobs? [y/N] ", a->name, term_number(number, sizeof number, total));
    return fgets(answer, sizeof answer, stdin) && (*answer == 'y' || *answer == 'Y');
}

static weir_code act_all(cli *c, weir_queue *q, const action *a, const act_opts *o, uint64_t *done)
{
    weir_state    only[] = { (weir_state)o->state.n, WEIR_ANY };
    const weir_state *states = o->state.set ? only : a->states;
    weir_query    query = { .type = o->type, .by_priority = o->priority.set, .ids_only = true,
                            .priority = (int32_t)o->priority.n, .limit = WEIR_MAX_PAGE };
    uint64_t      total = 0, n;
    weir_code     rc = WEIR_OK;
    for (int i = 0; !rc && (i == 0 || states[i] != WEIR_ANY); i++) {
        query.state = states[i];
        rc = cli_count(q, &query, &n, &c->err);
        total += rc ? 0 : n;
    }
    if (rc)
        return rc;
    if (!confirmed(a, o, total))
        return weir_fail(&c->err, WEIR_EINVAL, "nothing was changed");
    term_progress bar = { .what = a->name, .total = total };
    for (int i = 0; !rc && (i == 0 || states[i] != WEIR_ANY); i++) {
        query.state = states[i];
        rc = act_state(c, q, a, query, &bar, done);
    }
    term_progress_end(&bar);
    return rc;
}

int cmd_act(cli *c, const void *values)
{
    const act_opts *o = values;
    const action   *a = find_action(c->command->name);
    weir_queue     *q;
    uint64_t        done = 0;
    char            number[32];
    bool            narrow = o->state.set || o->type || o->priority.set;
    if (c->n_args && (o->all || narrow))
        return cli_usage(c, "either ids, or --all with --state, --type or --priority");
    if (c->n_args)
        return act_ids(c, a);
    if (!o->all || !narrow)
        return cli_usage(c, "which jobs? Give ids, or --all with --state, --type or --priority");
    if (cli_open(c, CLI_CHANGE, &q))
        return cli_fail(c);
    weir_code rc = act_all(c, q, a, o, &done);
    weir_close(q);
    if (c->json) {
        jw w = { .out = stdout };
        jw_object(&w, NULL);
        jw_text(&w, "action", a->name);
        jw_int(&w, "count", (int64_t)done);
        jw_end(&w, '}');
    } else if (!rc || done) {
        printf("%s %s\n", term_number(number, sizeof number, done), a->done);
    }
    return rc ? cli_fail(c) : 0;
}
