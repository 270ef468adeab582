/* select.c - see select.h. A store lists one state and one type, or all; the selection merges as
 * many such lists as it needs. */
#include "cli/select.h"

#include <stdlib.h>
#include <string.h>

enum {
    LIST_LIMIT = 500,       /* jobs that are read at once */
    MAX_LISTS  = WEIR_STATE_COUNT * WEIR_MAX_TAKE_TYPES
};

#define ENDED                                                                                     \
    (WEIR_BIT(WEIR_STATE_COMPLETE) | WEIR_BIT(WEIR_STATE_FAILED) | WEIR_BIT(WEIR_STATE_CANCELLED))

/* One list of the store. */
typedef struct list {
    weir_query query;
    weir_page *page;
    size_t     at;              /* in the page */
    bool       last;            /* there is no other page */
} list;

struct selection {
    cli               *c;
    weir_queue        *q;
    const select_opts *o;
    select_order       order;
    uint32_t           states;      /* jobs of other states are passed over; 0: none */
    bool               by_id;       /* all lists are in the order of ids */
    bool               descending;
    list              *list;
    size_t             n;
};

bool select_is_narrow(const select_opts *o, const cli_types *types)
{
    return types->n || o->states.set || o->priority.set || o->search || o->error ||
           o->since.set || o->until.set;
}

int64_t select_moment(const weir_job *job)
{
    switch (job->state) {
    case WEIR_STATE_DELAYED:   return job->promote_at;
    case WEIR_STATE_ACTIVE:    return job->started_at;
    case WEIR_STATE_COMPLETE:
    case WEIR_STATE_FAILED:
    case WEIR_STATE_CANCELLED: return job->finished_at;
    default:             return job->created_at;
    }
}

/* ---- which lists ---- */

static bool is_one(uint32_t bits)
{
    return bits && !(bits & (bits - 1));
}

static void add_list(selection *s, weir_state state, const char *type)
{
    s->list[s->n++].query = (weir_query){
        .state = state, .type = type, .search = s->o->search, .by_priority = s->o->priority.set,
        .priority = (int32_t)s->o->priority.n, .descending = s->descending };
}

static void add_lists(selection *s, const char *type)
{
    if (s->by_id && s->order != SELECT_ANY && !is_one(s->states)) {
        add_list(s, WEIR_STATE_ANY, type);
        return;
    }
    for (int state = WEIR_STATE_INACTIVE; state < WEIR_STATE_COUNT; state++)
        if (s->states & WEIR_BIT(state))
            add_list(s, (weir_state)state, type);
    if (!s->states)
        add_list(s, WEIR_STATE_ANY, type);
}

weir_code selection_create(selection **out, cli *c, weir_queue *q, const select_opts *o,
                           const cli_types *types, uint32_t states, select_order order)
{
    *out = NULL;
    selection *s = calloc(1, sizeof *s);
    list      *lists = calloc(MAX_LISTS, sizeof *lists);
    if (!s || !lists) {
        free(s);
        free(lists);
        return weir_fail(&c->err, WEIR_ENOMEM, "out of memory");
    }
    *s = (selection){ .c = c, .q = q, .o = o, .order = order, .list = lists,
                      .states = o->states.set ? (uint32_t)o->states.n : states };
    bool ended = s->states && !(s->states & ~ENDED);
    s->by_id = o->search || (!ended && !is_one(s->states));
    s->descending = order != SELECT_ANY && (s->by_id || ended) != (order == SELECT_REVERSE);
    for (size_t i = 0; i < types->n; i++)
        add_lists(s, types->name[i]);
    if (types->n == 0)
        add_lists(s, NULL);
    *out = s;
    return WEIR_OK;
}

void selection_destroy(selection *s)
{
    for (size_t i = 0; s && i < s->n; i++)
        weir_page_free(s->list[i].page);
    if (s)
        free(s->list);
    free(s);
}

/* Does it take a look at a job to decide whether it is wanted? */
static bool is_sifted(const selection *s)
{
    return s->o->since.set || s->o->until.set || s->o->error;
}

void selection_ids_only(selection *s)
{
    bool merged = s->n > 1 && s->order != SELECT_ANY;
    for (size_t i = 0; i < s->n; i++)
        s->list[i].query.ids_only = !is_sifted(s) && !merged &&
                                    (!s->states || s->list[i].query.state != WEIR_STATE_ANY);
}

/* ---- going through them ---- */

static bool is_wanted(const selection *s, const list *l, const weir_job *job)
{
    if (l->query.ids_only)
        return true;
    int64_t at = select_moment(job);
    char    error[WEIR_MAX_ERROR_MASK + 1];
    if (s->o->error) {
        weir_mask_error(job->error, error);
        if (strcmp(error, s->o->error) != 0)
            return false;
    }
    return (!s->states || s->states & WEIR_BIT(job->state)) &&
           (!s->o->since.set || at >= s->o->since.n) && (!s->o->until.set || at < s->o->until.n);
}

/* In a list by time nothing behind this job is wanted. */
static bool is_beyond(const selection *s, const list *l, const weir_job *job)
{
    if (s->by_id || l->query.state == WEIR_STATE_ANY || l->query.state == WEIR_STATE_INACTIVE)
        return false;
    int64_t at = select_moment(job);
    return s->descending ? s->o->since.set && at < s->o->since.n
                         : s->o->until.set && at >= s->o->until.n;
}

static weir_code read_page(selection *s, list *l, size_t want)
{
    bool plain = s->n == 1 && !is_sifted(s);
    l->query.limit = plain && want < LIST_LIMIT ? want : LIST_LIMIT;
    weir_page_free(l->page);
    l->page = NULL;
    l->at = 0;
    weir_code rc = weir_list(s->q, &l->query, &l->page, &s->c->err);
    if (rc)
        return rc;
    l->last = !l->page->more;
    l->query.after = l->page->next;
    return WEIR_OK;
}

/* Stand at the next job that is wanted, or at the end: *out is NULL. */
static weir_code head_of(selection *s, list *l, size_t want, const weir_job **out)
{
    *out = NULL;
    for (;;) {
        while (!l->page || l->at == l->page->n) {
            if (l->last)
                return WEIR_OK;
            weir_code rc = read_page(s, l, want);
            if (rc)
                return rc;
        }
        const weir_job *job = l->page->job[l->at];
        if (is_wanted(s, l, job)) {
            *out = job;
            return WEIR_OK;
        }
        if (is_beyond(s, l, job)) {
            l->at = l->page->n;
            l->last = true;
            return WEIR_OK;
        }
        l->at++;
    }
}

/* Does `a` come before `b`? */
static bool is_before(const selection *s, const weir_job *a, const weir_job *b)
{
    int64_t x = 0, y = 0;
    if (!s->by_id) {
        x = a->state == WEIR_STATE_INACTIVE ? a->priority : select_moment(a);
        y = b->state == WEIR_STATE_INACTIVE ? b->priority : select_moment(b);
    }
    bool less = x != y ? x < y : a->id < b->id;
    return less != s->descending;
}

weir_code selection_next(selection *s, size_t want, weir_job **job)
{
    list           *best = NULL;
    const weir_job *first = NULL, *head;
    *job = NULL;
    for (size_t i = 0; i < s->n; i++) {
        weir_code rc = head_of(s, &s->list[i], want, &head);
        if (rc)
            return rc;
        if (!head || (first && !is_before(s, head, first)))
            continue;
        first = head;
        best = &s->list[i];
        if (s->order == SELECT_ANY)
            break;
    }
    if (best) {
        *job = best->page->job[best->at];
        best->page->job[best->at++] = NULL;
    }
    return WEIR_OK;
}

bool selection_cursor(const selection *s, weir_cursor *out)
{
    const list *l = &s->list[0];
    if (s->n != 1 || is_sifted(s) || l->last || !l->page || l->at != l->page->n)
        return false;
    *out = l->page->next;
    return true;
}

bool selection_go_on(selection *s, const weir_cursor *after)
{
    if (s->n != 1 || is_sifted(s))
        return false;
    s->list[0].query.after = *after;
    return true;
}

/* ---- counting ---- */

weir_code selection_count(selection *s, uint64_t *n)
{
    weir_code rc = WEIR_OK;
    bool      look = is_sifted(s) || s->o->search || s->o->priority.set;
    *n = 0;
    for (size_t i = 0; !rc && !look && i < s->n; i++) {
        uint64_t part = 0;
        rc = weir_count(s->q, s->list[i].query.state, s->list[i].query.type, &part, &s->c->err);
        *n += part;
    }
    for (weir_job *job = NULL; !rc && look;) {
        rc = selection_next(s, LIST_LIMIT, &job);
        if (!job)
            break;
        ++*n;
        weir_job_free(job);
    }
    return rc;
}
