/* cmd_list.c - weir list. */
#include <stdlib.h>
#include <string.h>
#include "cli/columns.h"
#include "cli/say.h"
#include "cli/select.h"
#include "cli/store.h"

typedef struct list_opts {
    select_opts select;
    opt_num     limit;
    const char *sort, *columns, *after;
    bool        reverse, all, ids;
} list_opts;
CLI_VALUES_FIT(list_opts);

#define AT(member) offsetof(list_opts, member)
static const option_entry list_options[] = {
    SELECT_OPTIONS(list_opts),
    { .name = "sort", .kind = OPT_CHOICE, .at = AT(sort), .arg = "KEY",
      .words = "id created started ended took attempts priority",
      .help = "by id, created, started, ended, took or attempts, the highest first, or by "
              "priority, the most urgent first; at most 100000 jobs are sorted" },
    { .name = "reverse", .letter = 'r', .kind = OPT_FLAG, .at = AT(reverse),
      .help = "the other way round" },
    { .name = "columns", .letter = 'c', .kind = OPT_TEXT, .at = AT(columns), .arg = "NAMES",
      .words = COLUMN_WORDS, .many = true,
      .help = "what to show, with commas between: id, type, state, priority, attempts, when, "
              "created, started, ended, took, progress, worker, unique, data, error, result" },
    { .name = "limit", .letter = 'n', .kind = OPT_INT, .at = AT(limit), .arg = "N", .min = 1,
      .help = "show at most N jobs (20)" },
    { .name = "all", .letter = 'a', .kind = OPT_FLAG, .at = AT(all), .help = "all of them" },
    { .name = "after", .kind = OPT_TEXT, .at = AT(after), .arg = "CURSOR",
      .help = "go on where a list ended, as it said" },
    { .name = "ids", .kind = OPT_FLAG, .at = AT(ids), .help = "only the ids, one a line" },
    { 0 }
};
#undef AT

enum { LIMIT = 20, SCREEN = 500 };      /* a table is printed when it has this many rows */

typedef struct lister {
    cli             *c;
    const list_opts *o;
    weir_queue      *q;
    selection       *s;
    cli_columns      columns;
    table            t;
    uint64_t         n;                 /* shown */
} lister;

/* ---- showing jobs ---- */

static void end_table(lister *l)
{
    if (l->t.n_rows)
        table_print(&l->t, stdout, 0);
    table_fini(&l->t);
    table_init(&l->t, l->columns.look, l->columns.n);
}

static weir_code show(lister *l, const weir_job *job)
{
    l->n++;
    if (l->o->ids) {
        printf("%llu\n", (unsigned long long)job->id);
        return WEIR_OK;
    }
    if (l->c->json)
        return jw_job(stdout, job, &l->c->err);
    columns_row(&l->columns, &l->t, job, weir_now(l->q));
    if (l->t.n_rows == SCREEN)
        end_table(l);
    return WEIR_OK;
}

static weir_code list_some(lister *l, uint64_t limit)
{
    weir_job   *job = NULL;
    weir_cursor at;
    weir_code   rc;
    do {
        uint64_t left = limit - l->n;
        rc = selection_next(l->s, left > SCREEN ? SCREEN : (size_t)left, &job);
        if (!rc && job)
            rc = show(l, job);
        weir_job_free(job);
    } while (!rc && job && l->n < limit);
    end_table(l);
    if (!rc && job && selection_cursor(l->s, &at)) {
        fflush(stdout);
        fprintf(stderr, "there are more: --after %lld.%llu, --limit N or --all\n",
                (long long)at.rank, (unsigned long long)at.id);
    }
    return rc;
}

/* ---- the command ---- */

/* Somebody looks for a type with --search. */
static void hint_type(lister *l, const cli_types *types)
{
    cli_types word = { .name = { l->o->select.search }, .n = 1 };
    if (l->o->select.search && !types->n && !cli_types_check(l->c, l->q, &word))
        cli_note(l->c, "'%s' is a type: `weir list %s` shows its jobs", word.name[0], word.name[0]);
    l->c->err = (weir_error){ 0 };
}

static weir_code list_jobs(lister *l, const cli_types *types, const weir_cursor *after)
{
    const list_opts *o = l->o;
    uint64_t         limit = o->limit.set ? (uint64_t)o->limit.n : o->all ? UINT64_MAX : LIMIT;
    weir_code        rc = selection_create(&l->s, l->c, l->q, &o->select, types, 0,
                                           o->reverse ? SELECT_REVERSE : SELECT_USUAL);
    weir_sort        sort;
    if (rc)
        return rc;
    if (weir_sort_parse(o->sort, &sort))
        selection_sort(l->s, sort, o->reverse);
    if (after)
        selection_go_on(l->s, after);
    if (o->ids)
        selection_ids_only(l->s);
    rc = list_some(l, limit);
    if (!rc && !l->n && !l->c->json && !o->ids)
        fputs("no jobs\n", stderr);
    if (!rc)
        hint_type(l, types);
    return rc;
}

static int run_list(cli *c, const void *values)
{
    const list_opts *o = values;
    lister           l = { .c = c, .o = o };
    cli_types        types;
    weir_cursor      after;
    if (cli_types_take(c, &o->select.types, &types) ||
        columns_parse(&l.columns, o->columns, &c->err))
        return cli_usage(c, "%s", c->err.msg);
    if (o->after && !opt_cursor(o->after, &after))
        return cli_usage(c, "--after: '%s' is not what a list ended with", o->after);
    if (o->all && o->limit.set)
        return cli_usage(c, "--all and --limit exclude each other");
    table_init(&l.t, l.columns.look, l.columns.n);
    weir_code rc = cli_open(c, CLI_LOOK, &l.q);
    if (!rc)
        rc = cli_types_check(c, l.q, &types);
    if (!rc)
        rc = list_jobs(&l, &types, o->after ? &after : NULL);
    selection_destroy(l.s);
    table_fini(&l.t);
    weir_close(l.q);
    return rc ? cli_fail(c) : 0;
}

const command cmd_list = {
    .name = "list", .group = GROUP_LOOK, .args = "[TYPE...]", .max_args = -1, .words = "<type>",
    .summary = "list jobs",
    .help = "Finished jobs, and jobs of all states together, come with the newest first; inactive "
            "jobs come in the order in which they will run, delayed and active ones by their time. "
            "WHEN is the time that --since and --until compare.",
    .examples = "weir list\n"
                "weir list mail --state failed,cancelled --since 1h\n"
                "weir list --state complete --sort took --columns id,type,took,result\n"
                "weir list --search 'ann smtp*' --json\n",
    .options = list_options, .run = run_list,
};
