/* cmd_act.c - weir rm, retry, promote and cancel: the same step for some jobs, or for all that are
 * chosen. */
#include <ctype.h>
#include <string.h>
#include <unistd.h>
#include "cli/say.h"
#include "cli/select.h"
#include "cli/store.h"

typedef struct act_opts {
    select_opts select;
    bool        all, yes;
} act_opts;
CLI_VALUES_FIT(act_opts);

static const option_entry act_options[] = {
    SELECT_OPTIONS(act_opts),
    { .name = "all", .letter = 'a', .kind = OPT_FLAG, .at = offsetof(act_opts, all),
      .help = "all jobs: needed when nothing else says which" },
    { .name = "yes", .letter = 'y', .kind = OPT_FLAG, .at = offsetof(act_opts, yes),
      .help = "do not ask before many are changed" },
    { 0 }
};

enum { ASK_ABOVE = 20, BULK = 500 };

typedef struct action {
    const char *name, *done;
    weir_code (*one)(weir_queue *q, uint64_t id, weir_error *err);
    weir_code (*async)(weir_queue *q, uint64_t id, weir_future **f, weir_error *err);
    uint32_t    states;         /* that are meant if --state does not say; 0: all */
} action;

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

static void say_done(const cli *c, const action *a, uint64_t n)
{
    char number[32];
    cli_done(c, "%s %s %s", term_number(number, sizeof number, n), n == 1 ? "job" : "jobs",
             a->done);
}

/* Each id on its own; the first failure gives the status. */
static int act_ids(cli *c, const action *a)
{
    weir_queue *q;
    uint64_t    id, done = 0;
    int         status = 0;
    for (int i = 0; i < c->n_args; i++)
        if (opt_id(c->args[i], &id, &c->err))
            return cli_usage(c, "%s", c->err.msg);
    if (cli_open(c, CLI_CHANGE, &q))
        return cli_fail(c);
    for (int i = 0; i < c->n_args; i++) {
        opt_id(c->args[i], &id, NULL);
        weir_code rc = a->one(q, id, &c->err);
        done += !rc;
        if (rc) {
            int s = cli_fail(c);
            status = status ? status : s;
        }
        if (c->json)
            one_json(id, a, rc, &c->err);
    }
    weir_close(q);
    if (done)
        say_done(c, a, done);
    return status;
}

/* ---- all that are chosen ---- */

/* Many of them at once. Jobs that have moved on meanwhile are no error. */
static weir_code act_bulk(cli *c, weir_queue *q, const action *a, const uint64_t *id, size_t n,
                         uint64_t *done)
{
    static weir_future *future[BULK];
    weir_code           rc = WEIR_OK;
    size_t              begun = 0;
    while (begun < n && !(rc = a->async(q, id[begun], &future[begun], &c->err)))
        begun++;
    for (size_t i = 0; i < begun; i++) {
        weir_error err;
        weir_code  one = weir_future_wait(future[i], WEIR_FOREVER, &err);
        *done += one == WEIR_OK;
        if (one && one != WEIR_ENOENT && one != WEIR_ESTATE && !rc) {
            rc = one;
            c->err = err;
        }
        weir_future_free(future[i]);
    }
    return rc;
}

static weir_code act_selection(cli *c, weir_queue *q, const action *a, selection *s, uint64_t total,
                               uint64_t *done)
{
    static uint64_t id[BULK];
    term_progress   bar = { .what = a->name, .total = total };
    weir_code       rc = WEIR_OK;
    for (weir_job *job = (weir_job *)-1; job && !rc;) {
        size_t n = 0;
        while (n < BULK && !(rc = selection_next(s, BULK - n, &job)) && job) {
            id[n++] = job->id;
            weir_job_free(job);
        }
        if (!rc)
            rc = act_bulk(c, q, a, id, n, done);
        term_progress_show(&bar, *done);
    }
    term_progress_end(&bar);
    return rc;
}

static bool confirmed(const action *a, const act_opts *o, uint64_t total)
{
    char answer[16], number[32];
    if (o->yes || total <= ASK_ABOVE || !isatty(STDIN_FILENO))
        return true;
    fprintf(stderr, "%s %s jobs? [y/N] ", a->name, term_number(number, sizeof number, total));
    return fgets(answer, sizeof answer, stdin) && (*answer == 'y' || *answer == 'Y');
}

static weir_code act_all(cli *c, weir_queue *q, const action *a, const act_opts *o,
                         const cli_types *types, uint64_t *done)
{
    selection *s;
    uint64_t   total = 0;
    weir_code  rc = selection_create(&s, c, q, &o->select, types, a->states, SELECT_ANY);
    if (rc)
        return rc;
    selection_ids_only(s);
    rc = selection_count(s, &total);
    selection_destroy(s);
    if (!rc && !confirmed(a, o, total))
        return weir_fail(&c->err, WEIR_EINVAL, "nothing was changed");
    if (!rc)
        rc = selection_create(&s, c, q, &o->select, types, a->states, SELECT_ANY);
    if (rc)
        return rc;
    selection_ids_only(s);
    rc = act_selection(c, q, a, s, total, done);
    selection_destroy(s);
    return rc;
}

/* ---- the commands ---- */

/* Digits are an id. A type with such a name is named with --type. */
static bool is_id(const char *arg)
{
    return isdigit((unsigned char)*arg) && strspn(arg, "0123456789") == strlen(arg);
}

static int act(cli *c, const act_opts *o, const action *a)
{
    weir_queue *q = NULL;
    uint64_t    done = 0;
    cli_types   types;
    bool        ids = c->n_args && is_id(c->args[0]);
    for (int i = 1; i < c->n_args; i++)
        if (is_id(c->args[i]) != ids)
            return cli_usage(c, "either ids or types: '%s' and '%s'", c->args[0], c->args[i]);
    if (ids && (o->all || select_is_narrow(&o->select, &(cli_types){ .n = o->select.types.n })))
        return cli_usage(c, "either ids, or TYPE, --state and others that choose jobs");
    if (ids)
        return act_ids(c, a);
    if (cli_types_take(c, &o->select.types, &types))
        return cli_usage(c, "%s", c->err.msg);
    if (!o->all && !select_is_narrow(&o->select, &types))
        return cli_usage(c, "which jobs? Name ids, types or states, or --all for all of them");
    weir_code rc = cli_open(c, CLI_CHANGE, &q);
    if (!rc)
        rc = cli_types_check(c, q, &types);
    if (!rc)
        rc = act_all(c, q, a, o, &types, &done);
    weir_close(q);
    if (c->json && (!rc || done)) {
        jw w = { .out = stdout };
        jw_object(&w, NULL);
        jw_text(&w, "action", a->name);
        jw_int(&w, "count", (int64_t)done);
        jw_end(&w, '}');
    } else if (!rc || done) {
        say_done(c, a, done);
    }
    return rc ? cli_fail(c) : 0;
}

static int run_rm(cli *c, const void *values)
{
    static const action a = { "rm", "removed", weir_remove, weir_remove_async, 0 };
    return act(c, values, &a);
}

static int run_retry(cli *c, const void *values)
{
    static const action a = { "retry", "queued again", weir_retry, weir_retry_async,
                              WEIR_BIT(WEIR_STATE_FAILED) };
    return act(c, values, &a);
}

static int run_promote(cli *c, const void *values)
{
    static const action a = { "promote", "promoted", weir_promote, weir_promote_async,
                              WEIR_BIT(WEIR_STATE_DELAYED) };
    return act(c, values, &a);
}

static int run_cancel(cli *c, const void *values)
{
    static const action a = { "cancel", "cancelled", weir_cancel, weir_cancel_async,
                              WEIR_BIT(WEIR_STATE_INACTIVE) | WEIR_BIT(WEIR_STATE_DELAYED) |
                                  WEIR_BIT(WEIR_STATE_ACTIVE) };
    return act(c, values, &a);
}

#define ACT(command, about, more, shown)                                                          \
    {                                                                                             \
        .name = #command, .group = GROUP_CHANGE, .args = "[ID...|TYPE...]", .max_args = -1,       \
        .words = "<type>", .summary = about, .examples = shown, .options = act_options,           \
        .run = run_##command,                                                                     \
        .help = more " Jobs are named by their ids, or chosen by type, state and the other "      \
                "options; --all is needed when nothing chooses. On a terminal it asks before "    \
                "it changes more than 20."                                                        \
    }

const command cmd_rm = ACT(rm, "remove jobs, in any state",
    "Removes jobs with their logs.",
    "weir rm 12 13\nweir rm mail --state complete,cancelled --until 7d\n");
const command cmd_retry = ACT(retry, "run jobs that have ended again, with all their attempts",
    "Without --state, those that failed.",
    "weir retry 12\nweir retry mail --since 1h\nweir retry --all\n");
const command cmd_promote = ACT(promote, "let delayed jobs run now",
    "Delayed jobs no longer wait for their time.",
    "weir promote 12\nweir promote mail\n");
const command cmd_cancel = ACT(cancel, "cancel jobs that wait or run",
    "Without --state, those that wait or run. The program that runs one is ended.",
    "weir cancel 12\nweir cancel mail --state delayed\n");
