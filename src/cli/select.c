/* select.c - see select.h. In an order, a selection is one list; in any order, it is one list after
 * the other, of each type and state. */
#include "cli/select.h"

#include <stdlib.h>

#define ENDED                                                                                     \
    (WEIR_BIT(WEIR_STATE_COMPLETE) | WEIR_BIT(WEIR_STATE_FAILED) | WEIR_BIT(WEIR_STATE_CANCELLED))

struct selection {
    cli        *c;
    weir_queue *q;
    weir_query *query;          /* of each list */
    size_t      n, now;         /* lists; the list being read */
    weir_page  *page;           /* of it; NULL: none yet */
    size_t      at;             /* in the page */
    bool        looked_for;     /* a count of states does not show these jobs */
};

bool select_is_narrow(const select_opts *o, const cli_types *types)
{
    return types->n || o->states.set || o->priority.set || o->search || o->error ||
           o->since.set || o->until.set;
}

/* ---- which lists ---- */

static weir_query query_of(const select_opts *o)
{
    return (weir_query){ .search = o->search, .error = o->error, .by_priority = o->priority.set,
                         .priority = (int32_t)o->priority.n,
                         .since = o->since.set ? o->since.n : 0,
                         .until = o->until.set ? o->until.n : 0 };
}

/* Jobs that have ended, and lists by id, come with the newest first. */
static bool is_newest_first(const weir_query *q)
{
    bool one = q->states && !(q->states & (q->states - 1));
    return q->search || !one || !(q->states & ~ENDED);
}

static void add_lists(selection *s, const weir_query *q, uint32_t states, const char *type)
{
    for (weir_state state = WEIR_STATE_INACTIVE; state < WEIR_STATE_COUNT; state++) {
        if (!(states & WEIR_BIT(state)))
            continue;
        s->query[s->n] = *q;
        s->query[s->n].state = state;
        s->query[s->n++].type = type;
    }
    if (states)
        return;
    s->query[s->n] = *q;
    s->query[s->n++].type = type;
}

weir_code selection_create(selection **out, cli *c, weir_queue *q, const select_opts *o,
                           const cli_types *types, uint32_t states, select_order order)
{
    *out = NULL;
    selection  *s = calloc(1, sizeof *s);
    weir_query *lists = calloc((types->n + 1) * WEIR_STATE_COUNT, sizeof *lists);
    if (!s || !lists) {
        free(s);
        free(lists);
        return weir_fail(&c->err, WEIR_ENOMEM, "out of memory");
    }
    weir_query query = query_of(o);
    uint32_t   in = o->states.set ? (uint32_t)o->states.n : states;
    *s = (selection){ .c = c, .q = q, .query = lists,
                      .looked_for = o->search || o->error || o->priority.set || query.since ||
                                    query.until };
    if (order != SELECT_ANY) {
        s->n = 1;
        query.states = in;
        query.types = types->n ? types->name : NULL;
        query.descending = is_newest_first(&query) != (order == SELECT_REVERSE);
        *lists = query;
    }
    for (size_t i = 0; order == SELECT_ANY && i < types->n; i++)
        add_lists(s, &query, in, types->name[i]);
    if (order == SELECT_ANY && types->n == 0)
        add_lists(s, &query, in, NULL);
    *out = s;
    return WEIR_OK;
}

void selection_destroy(selection *s)
{
    if (!s)
        return;
    weir_page_free(s->page);
    free(s->query);
    free(s);
}

void selection_ids_only(selection *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->query[i].ids_only = true;
}

/* The highest value comes first, and the most urgent job. */
void selection_sort(selection *s, weir_sort sort, bool reverse)
{
    s->query->sort = sort;
    s->query->descending = (sort == WEIR_SORT_PRIORITY) == reverse;
}

/* ---- going through them ---- */

static weir_code read_page(selection *s, size_t want)
{
    weir_query *q = &s->query[s->now];
    q->limit = want < WEIR_MAX_PAGE ? want : WEIR_MAX_PAGE;
    weir_page_free(s->page);
    s->page = NULL;
    s->at = 0;
    weir_code rc = weir_list(s->q, q, &s->page, &s->c->err);
    if (!rc)
        q->after = s->page->next;
    return rc;
}

weir_code selection_next(selection *s, size_t want, weir_job **job)
{
    *job = NULL;
    while (!s->page || s->at == s->page->n) {
        if (s->page && !s->page->more) {
            if (s->now + 1 == s->n)
                return WEIR_OK;
            s->now++;
        }
        weir_code rc = read_page(s, want);
        if (rc)
            return rc;
    }
    *job = s->page->job[s->at];
    s->page->job[s->at++] = NULL;
    return WEIR_OK;
}

bool selection_cursor(const selection *s, weir_cursor *out)
{
    if (!s->page || !s->page->more || s->at != s->page->n)
        return false;
    *out = s->page->next;
    return true;
}

void selection_go_on(selection *s, const weir_cursor *after)
{
    s->query->after = *after;
}

/* ---- counting ---- */

weir_code selection_count(selection *s, uint64_t *n)
{
    weir_code rc = WEIR_OK;
    *n = 0;
    for (size_t i = 0; !rc && !s->looked_for && i < s->n; i++) {
        uint64_t part = 0;
        rc = weir_count(s->q, s->query[i].state, s->query[i].type, &part, &s->c->err);
        *n += part;
    }
    for (weir_job *job = NULL; !rc && s->looked_for;) {
        rc = selection_next(s, WEIR_MAX_PAGE, &job);
        if (!job)
            break;
        ++*n;
        weir_job_free(job);
    }
    return rc;
}
