/* api_bulk.c - POST /v1/jobs/bulk: the same thing done to many jobs.
 *
 * First the ids are gathered, page by page, then each job is acted upon, a few at a time. So a job
 * that returns meanwhile (retried, and failed again) is met once. The filter must still match a job
 * when it is its turn, else the job is skipped. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error_mask.h"
#include "server/api/api.h"
#include "server/access/audit.h"
#include "server/http/body.h"

enum { MAX_BULK = 10000, AT_ONCE = 250, LOOKS_AT_ONCE = 50 };

enum {
    ENDED = WEIR_BIT(WEIR_STATE_COMPLETE) | WEIR_BIT(WEIR_STATE_FAILED) |
            WEIR_BIT(WEIR_STATE_CANCELLED)
};

typedef struct action {
    const char *name;
    uint32_t    from;           /* states in which it can be done */
    weir_state  to;             /* WEIR_STATE_ANY: gone */
} action;

static const action actions[] = {
    { "retry", ENDED, WEIR_STATE_INACTIVE },
    { "promote", WEIR_BIT(WEIR_STATE_DELAYED), WEIR_STATE_INACTIVE },
    { "cancel", WEIR_BIT(WEIR_STATE_INACTIVE) | WEIR_BIT(WEIR_STATE_DELAYED) |
      WEIR_BIT(WEIR_STATE_ACTIVE), WEIR_STATE_CANCELLED },
    { "delete", ENDED | WEIR_BIT(WEIR_STATE_INACTIVE) | WEIR_BIT(WEIR_STATE_DELAYED) |
      WEIR_BIT(WEIR_STATE_ACTIVE), WEIR_STATE_ANY },
    { 0 }
};

typedef struct filter {
    uint32_t    states;         /* bits WEIR_BIT(state); 0: those in which it can be done */
    const char *type, *search;
    const char *error;          /* failed jobs with this masked error alone; NULL: any */
    bool        by_priority;
    int32_t     priority;
    int64_t     since, until;
    weir_ids    ids;
} filter;

typedef struct bulk {
    const action *action;
    filter        filter;
    bool          dry_run, all;
    int64_t       limit;
    const char   *go_on;        /* `after` of the request: where a look for an error goes on */
    /* gathering */
    weir_state    state;        /* the list being read */
    weir_cursor   after;
    weir_look     look;         /* for an error; see core/error_mask.h */
    bool          next;         /* `after` is an answer: where another call goes on */
    weir_page    *page;
    weir_stats   *stats;
    weir_job    **job;          /* LOOKS_AT_ONCE of them */
    size_t        asked, looked;    /* of the filter's ids */
    uint64_t     *id;           /* the matching jobs */
    size_t        n;
    bool          more;
    /* acting */
    size_t        at, done;     /* the first that is not begun; how many were done */
    weir_error   *err;          /* of the calls under way: AT_ONCE of them */
    size_t        n_err;
} bulk;
_Static_assert(LOOKS_AT_ONCE <= AT_ONCE, "they have room for their errors");

/* ---- what is asked for ---- */

static weir_code read_action(weir_reader *in, const weir_field *f, weir_json_piece value, void *to)
{
    (void)f;
    for (const action *a = actions; a->name; a++) {
        size_t len = strlen(a->name);
        if (value.len == len + 2 && !memcmp(value.text + 1, a->name, len)) {
            *(const action **)to = a;
            return WEIR_OK;
        }
    }
    return weir__not_a(in, value, "\"retry\", \"promote\", \"cancel\" or \"delete\"");
}

#define OF(member) offsetof(filter, member)
static const weir_field filter_fields[] = {
    WEIR_FIELD("state", weir__as_states, OF(states)),
    WEIR_FIELD("type", weir__as_type, OF(type)),
    WEIR_FIELD("priority", weir__as_priority, OF(priority), .given = OF(by_priority)),
    WEIR_FIELD("since", weir__as_moment, OF(since), .min = 1, .max = WEIR__MAX_AT),
    WEIR_FIELD("until", weir__as_moment, OF(until), .min = 1, .max = WEIR__MAX_AT),
    WEIR_FIELD("search", weir__as_text, OF(search)),
    WEIR_FIELD("error", weir__as_text, OF(error)),
    WEIR_FIELD("ids", weir__as_ids, OF(ids), .min = 1, .max = MAX_BULK),
    { 0 }
};
#undef OF
#define AT(member) offsetof(bulk, member)
static const weir_field bulk_fields[] = {
    WEIR_FIELD("action", read_action, AT(action), .needed = true),
    WEIR_FIELD("filter", weir__as_object, AT(filter), .fields = filter_fields),
    WEIR_FIELD("dry_run", weir__as_bool, AT(dry_run)),
    WEIR_FIELD("limit", weir__as_int, AT(limit), .min = 1, .max = MAX_BULK),
    WEIR_FIELD("after", weir__as_text, AT(go_on)),
    WEIR_FIELD("all", weir__as_bool, AT(all)),
    { 0 }
};
#undef AT

/* WEIR_STATE_ANY: none. */
static weir_state first_of(uint32_t states)
{
    weir_state s = WEIR_STATE_INACTIVE;
    while (s < WEIR_STATE_COUNT && !(states & WEIR_BIT(s)))
        s++;
    return s < WEIR_STATE_COUNT ? s : WEIR_STATE_ANY;
}

/* A group of errors is of failed jobs. False: it was answered. */
static bool check_error(srv_request *r, bulk *b)
{
    const filter *f = &b->filter;
    if (f->error && f->ids.n)
        srv_reply_fail(r, WEIR_EINVAL, "filter.error",
                       "filter.error: there are ids, too; only one of them can be given");
    else if (f->error && ((f->states & ~WEIR_BIT(WEIR_STATE_FAILED)) ||
                          !(b->action->from & WEIR_BIT(WEIR_STATE_FAILED))))
        srv_reply_fail(r, WEIR_EINVAL, "filter.error", "filter.error: only failed jobs are in "
                                                       "groups of errors");
    else if (b->go_on && !f->error)
        srv_reply_fail(r, WEIR_EINVAL, "after", "after: only with filter.error");
    else if (b->go_on && !srv_cursor_read(b->go_on, &b->after))
        srv_reply_fail(r, WEIR_EINVAL, "after",
                       "after: \"%.60s\" is not the \"next\" of a call before", b->go_on);
    else
        return true;
    return false;
}

/* False: it was answered. */
static bool check(srv_request *r, bulk *b)
{
    filter    *f = &b->filter;
    weir_state wrong = first_of(f->states & ~b->action->from);
    bool       narrow = f->states || f->type || f->by_priority || f->search || f->error ||
                        f->ids.n || f->since || f->until;
    if (!narrow && !b->all)
        srv_reply_fail(r, WEIR_EINVAL, "filter", "filter: empty, which is every job; say "
                                                 "\"all\":true if that is meant");
    else if (narrow && b->all)
        srv_reply_fail(r, WEIR_EINVAL, "all", "all: there is a filter, too; only one can be given");
    else if (f->search && f->ids.n)
        srv_reply_fail(r, WEIR_EINVAL, "filter.search",
                       "filter.search: there are ids, too; only one of them can be given");
    else if (wrong)
        srv_reply_fail(r, WEIR_EINVAL, "filter.state", "filter.state: %s cannot be done to jobs "
                       "that are %s", b->action->name, weir_state_name(wrong));
    else
        return check_error(r, b);
    return false;
}

/* States a job may be in to match. */
static uint32_t states(const bulk *b)
{
    return b->filter.states ? b->filter.states : b->action->from;
}

/* ", state failed,complete". */
static const char *states_text(uint32_t states, char *out, size_t size)
{
    size_t len = 0;
    *out = '\0';
    for (weir_state s = WEIR_STATE_INACTIVE; s < WEIR_STATE_COUNT; s++)
        if (states & WEIR_BIT(s))
            len += (size_t)snprintf(out + len, size - len, "%s%s", len ? "," : ", state ",
                                    weir_state_name(s));
    return out;
}

/* For the audit log: what was asked for, and to how many it was done. */
static void note_bulk(srv_request *r, const bulk *b)
{
    const filter *f = &b->filter;
    if (b->dry_run) {
        srv_audit_skip(r);
        return;
    }
    if (!srv_audited(r))
        return;
    char in[80];
    srv_audit_detail(r, "%s%s%s%.128s%s%.60s%s%.60s%s: %zu of %zu done", b->action->name,
                     states_text(f->states, in, sizeof in),
                     f->type ? ", type " : "", f->type ? f->type : "",
                     f->search ? ", search " : "", f->search ? f->search : "",
                     f->error ? ", error " : "", f->error ? f->error : "",
                     f->ids.n ? ", by id" : b->all ? ", all" : "", b->done, b->n);
    for (size_t i = 0; i < b->n; i++)
        srv_audit_id(r, b->id[i]);
}

/* Skipped is what was named and does not match, or did and has moved on meanwhile. */
static void reply(srv_request *r, const bulk *b, uint64_t matched)
{
    weir_buf body = { 0 };
    size_t   met = b->asked ? b->asked : b->n;
    note_bulk(r, b);
    weir__buf_str(&body, "{\"matched\":");
    weir__buf_uint(&body, matched);
    weir__buf_str(&body, ",\"done\":");
    weir__buf_uint(&body, b->done);
    weir__buf_str(&body, ",\"skipped\":");
    weir__buf_uint(&body, met - (b->dry_run ? b->n : b->done));
    weir__buf_str(&body, b->more ? ",\"more\":true" : ",\"more\":false");
    if (b->next) {
        weir__buf_str(&body, ",\"next\":");
        srv_cursor_write(&body, &b->after);
    }
    weir__buf_char(&body, '}');
    srv_reply_json(r, 200, &body);
}

/* ---- acting ---- */

static weir_code begin_one(srv_request *r, const bulk *b, uint64_t id, weir_future **f,
                           weir_error *err)
{
    if (!b->action->to)
        return weir_remove_async(srv_queue(r), id, f, err);
    weir_change change = { .state = b->action->to, .from = states(b) };
    return weir_update_async(srv_queue(r), id, &change, NULL, f, err);
}

static void act(srv_request *r);

static void acted(srv_request *r, weir_code code, const weir_error *err)
{
    bulk *b = r->state;
    (void)code, (void)err;
    for (size_t i = 0; i < b->n_err; i++) {
        const weir_error *e = &b->err[i];
        if (!e->code) {
            b->done++;
        } else if (e->code != WEIR_ENOENT && e->code != WEIR_ESTATE) {
            srv_reply_fail(r, e->code, NULL, "%.150s (%zu of %zu were done)", e->msg, b->done,
                           b->n);
            return;
        }
    }
    act(r);
}

static void act(srv_request *r)
{
    bulk *b = r->state;
    if (b->at == b->n || b->dry_run) {
        reply(r, b, b->n);
        return;
    }
    srv_gather(r, acted);
    for (b->n_err = 0; b->n_err < AT_ONCE && b->at < b->n; b->n_err++) {
        weir_future *f = NULL;
        weir_error  *err = &b->err[b->n_err];
        *err = (weir_error){ 0 };
        weir_code rc = begin_one(r, b, b->id[b->at++], &f, err);
        srv_join(r, rc, f, err);
    }
    srv_gathered(r);
}

/* ---- gathering: from the lists ---- */

static void read_page(srv_request *r);

/* The next state in which jobs can match; WEIR_STATE_COUNT: none. */
static weir_state next_state(const bulk *b, weir_state s)
{
    do
        s++;
    while (s < WEIR_STATE_COUNT && !(states(b) & WEIR_BIT(s)));
    return s;
}

static void page_read(srv_request *r, weir_code code, const weir_error *err)
{
    bulk *b = r->state;
    if (srv_failed(r, code, err))
        return;
    for (size_t i = 0; i < b->page->n; i++)
        b->id[b->n++] = b->page->job[i]->id;
    b->after = b->page->next;
    if (!b->page->more) {
        b->state = next_state(b, b->state);
        b->after = (weir_cursor){ 0 };
    }
    weir_page_free(b->page);
    read_page(r);
}

/* Ask for one more than the limit, to see whether there are more. */
static void read_page(srv_request *r)
{
    bulk        *b = r->state;
    size_t       left = (size_t)b->limit + 1 - b->n;
    weir_error   err = { 0 };
    weir_future *f = NULL;
    weir_query   q = { .state = b->state, .type = b->filter.type, .search = b->filter.search,
                       .by_priority = b->filter.by_priority, .priority = b->filter.priority,
                       .since = b->filter.since, .until = b->filter.until,
                       .ids_only = true, .after = b->after,
                       .limit = left < WEIR_MAX_PAGE ? left : WEIR_MAX_PAGE };
    b->more = !left;
    if (b->more)
        b->n--;
    if (b->more || b->state == WEIR_STATE_COUNT) {
        act(r);
        return;
    }
    weir_code rc = weir_list_async(srv_queue(r), &q, &b->page, &f, &err);
    srv_await(r, rc, &err, f, page_read);
}

/* ---- gathering: a group of errors ---- */

static void read_failed(srv_request *r);

/* When a page has more of the group than the limit, another call reads that page anew. Jobs that
 * were acted upon are not in it any more, and jobs that fail again come before it. */
static void failed_read(srv_request *r, weir_code code, const weir_error *err)
{
    bulk  *b = r->state;
    size_t i = 0, limit = (size_t)b->limit;
    if (srv_failed(r, code, err))
        return;
    for (; i < b->page->n && b->n < limit; i++) {
        weir__look_add(&b->look, b->page->job[i]);
        if (weir__error_is(b->page->job[i], b->filter.error))
            b->id[b->n++] = b->page->job[i]->id;
    }
    bool whole = i == b->page->n, more = !whole || b->page->more;
    if (whole)
        b->after = b->page->next;
    weir_page_free(b->page);
    b->more = b->next = more && (b->n == limit || !weir__look_next(&b->look));
    if (!more || b->more)
        act(r);
    else
        read_failed(r);
}

static void read_failed(srv_request *r)
{
    bulk        *b = r->state;
    weir_error   err = { 0 };
    weir_future *f = NULL;
    weir_query   q = { .state = WEIR_STATE_FAILED, .type = b->filter.type,
                       .since = b->filter.since, .until = b->filter.until,
                       .search = b->filter.search, .by_priority = b->filter.by_priority,
                       .priority = b->filter.priority, .descending = true, .after = b->after,
                       .limit = weir__look_next(&b->look) };
    weir_code    rc = weir_list_async(srv_queue(r), &q, &b->page, &f, &err);
    srv_await(r, rc, &err, f, failed_read);
}

/* ---- gathering: from ids ---- */

static void look(srv_request *r);

static bool matches(const srv_request *r, const bulk *b, const weir_job *job)
{
    int64_t at = weir_job_moment(job);
    return (!b->filter.since || at >= b->filter.since) &&
           (!b->filter.until || at < b->filter.until) &&
           states(b) & WEIR_BIT(job->state) && !srv_caller_lacks(&r->who, job->type) &&
           (!b->filter.by_priority || job->priority == b->filter.priority) &&
           (!b->filter.type || !strcmp(b->filter.type, job->type));
}

static void looked(srv_request *r, weir_code code, const weir_error *err)
{
    bulk             *b = r->state;
    const weir_error *failed = NULL;
    (void)code, (void)err;
    for (size_t i = 0; i < b->n_err; i++) {
        if (b->err[i].code && b->err[i].code != WEIR_ENOENT)
            failed = &b->err[i];
        if (!b->err[i].code && matches(r, b, b->job[i]))
            b->id[b->n++] = b->job[i]->id;
        weir_job_free(b->job[i]);
    }
    if (failed)
        srv_reply_error(r, failed);
    else
        look(r);
}

static void look(srv_request *r)
{
    bulk *b = r->state;
    if (b->looked == b->asked) {
        act(r);
        return;
    }
    srv_gather(r, looked);
    for (b->n_err = 0; b->n_err < LOOKS_AT_ONCE && b->looked < b->asked; b->n_err++) {
        weir_future *f = NULL;
        weir_error  *err = &b->err[b->n_err];
        *err = (weir_error){ 0 };
        b->job[b->n_err] = NULL;
        weir_code rc = weir_get_async(srv_queue(r), b->filter.ids.id[b->looked++],
                                      &b->job[b->n_err], &f, err);
        srv_join(r, rc, f, err);
    }
    srv_gathered(r);
}

/* ---- counting, which needs no list ---- */

static void counted(srv_request *r, weir_code code, const weir_error *err)
{
    bulk    *b = r->state;
    uint64_t n = 0;
    if (srv_failed(r, code, err))
        return;
    for (size_t i = 0; i < b->stats->n; i++) {
        const weir_type_stats *t = &b->stats->type[i];
        if (b->filter.type && strcmp(b->filter.type, t->type) != 0)
            continue;
        for (weir_state s = WEIR_STATE_INACTIVE; s < WEIR_STATE_COUNT; s++)
            n += states(b) & WEIR_BIT(s) ? t->count[s] : 0;
    }
    weir_stats_free(b->stats);
    b->more = n > (uint64_t)b->limit;
    reply(r, b, n);
}

static void count(srv_request *r)
{
    bulk        *b = r->state;
    weir_error   err = { 0 };
    weir_future *f = NULL;
    weir_code    rc = weir_get_stats_async(srv_queue(r), &b->stats, &f, &err);
    srv_await(r, rc, &err, f, counted);
}

/* ---- all of it ---- */

static bool make_room(srv_request *r, bulk *b)
{
    b->id = srv_alloc(r, ((size_t)b->limit + 1) * sizeof *b->id);
    b->err = srv_alloc(r, AT_ONCE * sizeof *b->err);
    b->job = srv_alloc(r, LOOKS_AT_ONCE * sizeof(weir_job *));
    if (b->id && b->err && b->job)
        return true;
    srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
    return false;
}

/* Jobs that a count of the states does not show. */
static bool is_looked_for(const filter *f)
{
    return f->search || f->by_priority || f->since || f->until;
}

static void bulk_jobs(srv_request *r)
{
    bulk *b;
    if (!srv_allow_own(r, WEIR_ROLE_ADMIN) || !SRV_STATE(r, b))
        return;
    b->limit = MAX_BULK;
    if (!srv_body(r, bulk_fields, b) || !check(r, b))
        return;
    bool by_ids = b->filter.ids.n && !b->filter.type;       /* each is looked at */
    if (!(by_ids ? srv_allow_own(r, WEIR_ROLE_ADMIN)
                 : srv_allow_scope(r, WEIR_ROLE_ADMIN, &b->filter.type)) || !make_room(r, b))
        return;
    size_t limit = (size_t)b->limit;
    if (b->filter.ids.n) {
        b->more = b->filter.ids.n > limit;
        b->asked = b->more ? limit : b->filter.ids.n;
        look(r);
    } else if (b->filter.error) {
        b->filter.states = WEIR_BIT(WEIR_STATE_FAILED);
        read_failed(r);
    } else if (b->dry_run && !is_looked_for(&b->filter)) {
        count(r);
    } else {
        b->state = next_state(b, WEIR_STATE_ANY);
        read_page(r);
    }
}

const srv_route srv_bulk_routes[] = {
    { "POST", "/v1/jobs/bulk", WEIR_ROLE_ADMIN, bulk_jobs, SRV_MAX_SMALL_BODY, NULL, 0,
      "Retry, promote, cancel or delete many jobs, or count how many that would be", "Bulk",
      "BulkDone", 200 },
    { 0 }
};
