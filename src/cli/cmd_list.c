/* cmd_list.c - weir list and weir count. */
#include "cli/cli.h"
#include "cli/pages.h"

typedef struct list_opts {
    opt_num     state, priority, limit;
    const char *search, *after;
    bool        desc, all, ids;
} list_opts;
CLI_VALUES_FIT(list_opts);

#define STATES     "inactive delayed active complete failed cancelled"
#define PRIORITIES "low normal medium high critical"
#define AT(member) offsetof(list_opts, member)
const option_entry list_options[] = {
    { "state", 's', OPT_STATE, AT(state), "STATE",
      "inactive, delayed, active, complete, failed or cancelled", 0, 0, STATES },
    { "priority", 'p', OPT_PRIORITY, AT(priority), "PRIORITY", "only those of just this priority",
      0, 0, PRIORITIES },
    { "search", 0, OPT_TEXT, AT(search), "WORDS",
      "every word is in data, error or log (word* for a beginning); only jobs that were added with "
      "--search, or whose type says so", 0, 0, NULL },
    { "desc", 0, OPT_FLAG, AT(desc), NULL, "the last first", 0, 0, NULL },
    { "limit", 'n', OPT_INT, AT(limit), "N", "jobs in a page (20)", 1, WEIR_MAX_PAGE, NULL },
    { "after", 0, OPT_TEXT, AT(after), "CURSOR", "the page after this one", 0, 0, NULL },
    { "all", 'a', OPT_FLAG, AT(all), NULL, "all pages", 0, 0, NULL },
    { "ids", 0, OPT_FLAG, AT(ids), NULL, "only the ids, one a line", 0, 0, NULL },
    { 0 }
};
#undef AT

enum { PAGE = 20, FULL_PAGE = 500 };

static const table_column columns[] = {
    { "ID", true, false }, { "TYPE", false, true }, { "STATE", false, false },
    { "PRIO", true, false }, { "TRIES", true, false }, { "WHEN", true, false },
    { "DATA", false, true }
};

/* The moment that matters in its state. */
static int64_t when(const weir_job *j)
{
    switch (j->state) {
    case WEIR_DELAYED:   return j->promote_at;
    case WEIR_ACTIVE:    return j->started_at;
    case WEIR_COMPLETE:
    case WEIR_FAILED:
    case WEIR_CANCELLED: return j->finished_at;
    default:             return j->created_at;
    }
}

static void add_row(table *t, const weir_job *j, int64_t now)
{
    char text[40];
    table_row(t);
    table_cell(t, 0, COLOR_NONE, "%llu", (unsigned long long)j->id);
    table_cell(t, 1, COLOR_NONE, "%s", j->type);
    if (j->state == WEIR_ACTIVE && j->progress)
        table_cell(t, 2, COLOR_CYAN, "active %d%%", (int)j->progress);
    else
        table_cell(t, 2, term_state_color(j->state), "%s", weir_state_name(j->state));
    table_cell(t, 3, COLOR_NONE, "%d", (int)j->priority);
    table_cell(t, 4, COLOR_NONE, "%d/%d", (int)j->attempts, (int)j->max_attempts);
    table_cell(t, 5, COLOR_NONE, "%s", term_relative(text, sizeof text, when(j), now));
    if (j->state == WEIR_FAILED && j->error)
        table_cell(t, 6, COLOR_RED, "%.1000s", j->error);
    else
        table_cell(t, 6, COLOR_NONE, "%.1000s", j->data);
}

static weir_code print_page(const cli *c, const list_opts *o, const cli_page *page, int64_t now,
                            weir_error *err)
{
    if (!o->ids && !c->json) {
        table t;
        table_init(&t, columns, 7);
        for (size_t i = 0; i < page->n; i++)
            add_row(&t, page->job[i], now);
        table_print(&t, stdout, 0);
        table_fini(&t);
        return WEIR_OK;
    }
    for (size_t i = 0; i < page->n; i++) {
        if (o->ids)
            printf("%llu\n", (unsigned long long)page->job[i]->id);
        else if (cli_print_job_json(stdout, page->job[i], err))
            return err->code;
    }
    return WEIR_OK;
}

static weir_code list_pages(cli *c, weir_queue *q, const list_opts *o, weir_query *query)
{
    for (bool first = true;; first = false) {
        cli_page  page;
        weir_code rc = cli_page_read(q, query, &page, &c->err);
        if (rc)
            return rc;
        if (page.n == 0 && first && !c->json && !o->ids)
            fputs("no jobs\n", stderr);
        else if (page.n)
            rc = print_page(c, o, &page, weir_now(q), &c->err);
        bool more = page.more;
        query->after = page.next;
        cli_page_release(&page);
        if (rc || !more)
            return rc;
        if (!o->all) {
            fflush(stdout);
            fprintf(stderr, "there are more: --after %lld.%llu, or --all\n",
                    (long long)query->after.rank, (unsigned long long)query->after.id);
            return WEIR_OK;
        }
    }
}

int cmd_list(cli *c, const void *values)
{
    const list_opts *o = values;
    weir_queue      *q;
    weir_query       query = {
        .state = (weir_state)o->state.n, .type = c->n_args ? c->args[0] : NULL,
        .search = o->search, .by_priority = o->priority.set,
        .priority = (int32_t)o->priority.n, .descending = o->desc, .ids_only = o->ids,
        .limit = o->limit.set ? (size_t)o->limit.n : o->all ? FULL_PAGE : PAGE
    };
    if (o->after && !opt_cursor(o->after, &query.after))
        return cli_usage(c, "--after: '%s' is not what a page ended with", o->after);
    if (cli_open(c, CLI_LOOK, &q))
        return cli_fail(c);
    weir_code rc = list_pages(c, q, o, &query);
    weir_close(q);
    return rc ? cli_fail(c) : 0;
}

/* ---- count ---- */

typedef struct count_opts {
    opt_num state, priority;
} count_opts;
CLI_VALUES_FIT(count_opts);

#define AT(member) offsetof(count_opts, member)
const option_entry count_options[] = {
    { "state", 's', OPT_STATE, AT(state), "STATE", "only those in this state", 0, 0, STATES },
    { "priority", 'p', OPT_PRIORITY, AT(priority), "PRIORITY",
      "only those of just this priority, which are looked for", 0, 0, PRIORITIES },
    { 0 }
};
#undef AT

int cmd_count(cli *c, const void *values)
{
    const count_opts *o = values;
    weir_queue       *q;
    uint64_t          n = 0;
    weir_query        query = { .state = (weir_state)o->state.n,
                                .type = c->n_args ? c->args[0] : NULL,
                                .by_priority = o->priority.set,
                                .priority = (int32_t)o->priority.n };
    if (cli_open(c, CLI_LOOK, &q))
        return cli_fail(c);
    weir_code rc = cli_count(q, &query, &n, &c->err);
    weir_close(q);
    if (rc)
        return cli_fail(c);
    if (c->json) {
        jw w = { .out = stdout };
        jw_object(&w, NULL);
        jw_int(&w, "count", (int64_t)n);
        jw_end(&w, '}');
    } else {
        printf("%llu\n", (unsigned long long)n);
    }
    return 0;
}
