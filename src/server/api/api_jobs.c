/* api_jobs.c - jobs: lists of them, and one of them: look, change, forget; retry, promote, cancel;
 * wait for its end, explain it. */
#include <string.h>

#include "op/op.h"
#include "server/api/api.h"
#include "server/http/body.h"
#include "server/http/parts.h"
#include "server/live/workers.h"

enum { PAGE = 100, FIRST = 2, AT_ONCE = 100, MAX_READS = 100, WAIT_MS = 30 * 1000 };

/* ---- GET /v1/jobs ---- */

/* Jobs may be large: a page is read and sent in parts, and ends early at SRV_MAX_PAGE. It also ends
 * early after MAX_READS, and when the store has looked at enough jobs of other priorities. */
typedef struct listing {
    srv_parts  parts;
    weir_query query;
    size_t     n, left;             /* jobs so far, and jobs still to read */
    size_t     bytes;               /* of the page so far */
    size_t     reads;
    const char *own[SRV_MAX_TOKEN_TYPES + 1];   /* types of a token that has several */
    weir_page *page;
} listing;

static void end_page(srv_request *r, listing *l, bool more)
{
    weir_buf *out = &l->parts.body;
    weir__buf_str(out, "],\"next\":");
    if (more) {
        srv_cursor_write(out, &l->query.after);
        weir__buf_char(out, '}');
    } else {
        weir__buf_str(out, "null}");
    }
    srv_parts_end(r);
}

static void part_listed(srv_request *r, weir_code code, const weir_error *err)
{
    listing  *l = r->state;
    weir_buf *out = &l->parts.body;
    size_t    before = out->len;
    if (srv_part_failed(r, code, err))
        return;
    for (size_t i = 0; i < l->page->n; i++) {
        if (l->n++)
            weir__buf_char(out, ',');
        if (l->query.ids_only)
            weir__buf_uint(out, l->page->job[i]->id);
        else
            weir__job_json(out, l->page->job[i]);
        l->left--;
    }
    bool more = l->page->more, whole = l->page->n == l->query.limit;
    l->query.after = l->page->next;
    weir_page_free(l->page);
    l->bytes += out->len - before;
    if (!more || !whole || !l->left || l->bytes >= SRV_MAX_PAGE || ++l->reads == MAX_READS)
        end_page(r, l, more);
    else
        srv_parts_go_on(r);
}

/* The first jobs are few, since nothing is known of their size. */
static size_t jobs_to_read(const listing *l)
{
    if (l->query.ids_only || weir__listing_gathers(&l->query))
        return l->left;
    size_t fit = l->n ? srv_parts_items(l->n, l->bytes) : l->reads ? AT_ONCE : FIRST;
    size_t n = fit < AT_ONCE ? fit : AT_ONCE;
    return n < l->left ? n : l->left;
}

static void list_part(srv_request *r)
{
    listing     *l = r->state;
    weir_error   err = { 0 };
    weir_future *f = NULL;
    l->query.limit = jobs_to_read(l);
    weir_code rc = weir_list_async(srv_queue(r), &l->query, &l->page, &f, &err);
    srv_await(r, rc, &err, f, part_listed);
}

/* False: it was answered. */
static bool read_type(srv_request *r, listing *l)
{
    weir_query *q = &l->query;
    size_t      n = 0;
    q->type = srv_query(r, "type");
    if (!q->type)
        q->type = srv_caller_only_type(&r->who);
    if (q->type || !*r->who.types)
        return srv_allow(r, WEIR_ROLE_READ, q->type);
    for (const char *t = r->who.types; *t; t = srv_next_type(t))
        l->own[n++] = t;
    q->types = l->own;
    return srv_allow_own(r, WEIR_ROLE_READ);
}

/* False: it was answered. */
static bool read_order(srv_request *r, weir_query *q)
{
    const char *order = srv_query(r, "order"), *sort = srv_query(r, "sort");
    q->descending = order && !strcmp(order, "desc");
    if (order && !q->descending && strcmp(order, "asc") != 0) {
        srv_reply_fail(r, WEIR_EINVAL, "order", "order: \"%.60s\" is neither asc nor desc", order);
        return false;
    }
    if (sort && !weir_sort_parse(sort, &q->sort)) {
        srv_reply_fail(r, WEIR_EINVAL, "sort", "sort: \"%.60s\" is not id, created, started, "
                       "ended, took, attempts or priority", sort);
        return false;
    }
    return true;
}

/* False: it was answered. */
static bool read_query(srv_request *r, listing *l)
{
    weir_query *q = &l->query;
    const char *after = srv_query(r, "after");
    int64_t     limit = PAGE;
    q->search = srv_query(r, "search");
    q->error = srv_query(r, "error");
    if (!read_type(r, l) || !srv_query_states(r, "state", &q->states) ||
        !srv_query_priority(r, "priority", &q->by_priority, &q->priority) ||
        !srv_query_past(r, "since", &q->since) || !srv_query_past(r, "until", &q->until) ||
        !srv_query_int(r, "limit", 1, WEIR_MAX_PAGE, &limit) ||
        !srv_query_bool(r, "ids", &q->ids_only) || !read_order(r, q))
        return false;
    l->left = (size_t)limit;
    if (after && !srv_cursor_read(after, &q->after)) {
        srv_reply_fail(r, WEIR_EINVAL, "after",
                       "after: \"%.60s\" is not the \"next\" of a page before", after);
        return false;
    }
    return true;
}

static void list_jobs(srv_request *r)
{
    listing *l;
    if (!SRV_STATE(r, l) || !read_query(r, l))
        return;
    if (!srv_parts_begin(r, &l->parts, SRV_JSON, list_part))
        return;
    weir__buf_str(&l->parts.body, "{\"jobs\":[");
    list_part(r);
}

/* ---- GET, PATCH and DELETE /v1/jobs/{id} ---- */

static void reply_job_now(srv_request *r, uint64_t id)
{
    srv_reply_job_now(r, 200, id);
}

SRV_ON_JOB(get_job, WEIR_ROLE_READ, reply_job_now)

typedef struct patch {
    uint64_t    id;
    weir_change change;
} patch;

#define AT(member) offsetof(patch, change.member)
static const weir_field patch_fields[] = {
    WEIR_FIELD("priority", weir__as_priority, AT(priority), .given = AT(set_priority)),
    WEIR_FIELD("delay", weir__as_ms, AT(delay_ms), .given = AT(set_delay)),
    WEIR_FIELD("run_at", weir__as_moment, AT(run_at), .min = 1, .max = WEIR__MAX_AT),
    WEIR_FIELD("data", weir__as_raw, AT(data)),
    WEIR_FIELD("values", weir__as_raw, AT(values)),
    WEIR_FIELD("state", weir__as_state, AT(state)),
    WEIR_FIELD("from", weir__as_states, AT(from)),
    WEIR_FIELD("worker", weir__as_text, AT(worker)),
    WEIR_FIELD("lease", weir__as_ms, AT(lease_ms)),
    { 0 }
};
#undef AT
_Static_assert(offsetof(weir_change, data_len) == offsetof(weir_change, data) + sizeof(char *) &&
                   offsetof(weir_change, values_len) ==
                       offsetof(weir_change, values) + sizeof(char *),
               "weir__as_raw() sets both");

static void patched(srv_request *r, weir_code code, const weir_error *err)
{
    const patch *p = r->state;
    if (!srv_failed(r, code, err))
        srv_reply_job_now(r, 200, p->id);
}

static void patch_it(srv_request *r, uint64_t id)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    patch       *p;
    if (!SRV_STATE(r, p) || !srv_body(r, patch_fields, p))
        return;
    if (p->change.set_delay && p->change.run_at) {
        srv_reply_fail(r, WEIR_EINVAL, "run_at", "run_at: there is a delay, too; only one of them "
                                                 "can be given");
        return;
    }
    p->id = id;
    if (p->change.state == WEIR_STATE_ACTIVE && !p->change.worker)
        p->change.worker = srv_worker_name(r);
    weir_code rc = weir_update_async(srv_queue(r), id, &p->change, NULL, &f, &err);
    srv_await(r, rc, &err, f, patched);
}

SRV_ON_JOB(patch_job, WEIR_ROLE_ADMIN, patch_it)

static void remove_it(srv_request *r, uint64_t id)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    weir_code    rc = weir_remove_async(srv_queue(r), id, &f, &err);
    srv_await(r, rc, &err, f, srv_reply_done);
}

SRV_ON_JOB(delete_job, WEIR_ROLE_ADMIN, remove_it)

/* ---- POST /v1/jobs/{id}/retry, /promote, /cancel ---- */

typedef struct act {
    weir_code (*start)(weir_queue *q, uint64_t id, weir_future **f, weir_error *err);
    weir_state  to;
} act;

static const act retry = { weir_retry_async, WEIR_STATE_INACTIVE };
static const act promote = { weir_promote_async, WEIR_STATE_INACTIVE };
static const act cancel = { weir_cancel_async, WEIR_STATE_CANCELLED };

typedef struct acting {
    uint64_t   id;
    const act *act;
} acting;

static void acted(srv_request *r, weir_code code, const weir_error *err)
{
    const acting *a = r->state;
    weir_buf      body = { 0 };
    if (srv_failed(r, code, err))
        return;
    srv_id_state_json(&body, a->id, a->act->to);
    weir__buf_char(&body, '}');
    srv_reply_json(r, 200, &body);
}

static void do_act(srv_request *r, uint64_t id, const act *what)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    acting      *a;
    if (!SRV_STATE(r, a))
        return;
    *a = (acting){ id, what };
    weir_code rc = what->start(srv_queue(r), id, &f, &err);
    srv_await(r, rc, &err, f, acted);
}

static void retry_it(srv_request *r, uint64_t id)
{
    do_act(r, id, &retry);
}

static void promote_it(srv_request *r, uint64_t id)
{
    do_act(r, id, &promote);
}

static void cancel_it(srv_request *r, uint64_t id)
{
    do_act(r, id, &cancel);
}

SRV_ON_JOB(retry_job, WEIR_ROLE_ADMIN, retry_it)
SRV_ON_JOB(promote_job, WEIR_ROLE_ADMIN, promote_it)
SRV_ON_JOB(cancel_job, WEIR_ROLE_ADMIN, cancel_it)

/* ---- GET /v1/jobs/{id}/wait, /explain ---- */

static void wait_for_it(srv_request *r, uint64_t id)
{
    int64_t ms = WAIT_MS;
    if (srv_query_ms(r, "timeout", SRV_MAX_WAIT_MS, &ms))
        srv_reply_ended(r, id, ms, NULL);
}

SRV_ON_JOB(wait_for_job, WEIR_ROLE_READ, wait_for_it)

typedef struct explaining {
    weir_explanation *e;
} explaining;

static void explained(srv_request *r, weir_code code, const weir_error *err)
{
    weir_explanation *e = ((explaining *)r->state)->e;
    weir_buf          body = { 0 };
    if (srv_failed(r, code, err))
        return;
    weir__buf_str(&body, "{\"job\":");
    weir__job_json(&body, e->job);
    weir__buf_str(&body, ",\"why\":");
    weir__json_string(&body, e->why, strlen(e->why));
    weir__buf_printf(&body, ",\"remedy\":\"%s\",\"moments\":[", weir_remedy_name(e->remedy));
    for (size_t i = 0; i < e->n; i++) {
        weir__buf_str(&body, i ? ",{\"at\":" : "{\"at\":");
        weir__buf_int(&body, e->moment[i].at);
        weir__buf_str(&body, ",\"what\":");
        weir__json_string(&body, e->moment[i].what, strlen(e->moment[i].what));
        weir__buf_char(&body, '}');
    }
    weir__buf_str(&body, "]}");
    weir_explanation_free(e);
    srv_reply_json(r, 200, &body);
}

static void explain_it(srv_request *r, uint64_t id)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    explaining  *e;
    if (!SRV_STATE(r, e))
        return;
    weir_code rc = weir_explain_async(srv_queue(r), id, &e->e, &f, &err);
    srv_await(r, rc, &err, f, explained);
}

SRV_ON_JOB(explain_job, WEIR_ROLE_READ, explain_it)

/* ---- routes ---- */

static const srv_param list_query[] = {
    { "state", SRV_P_STATES, "jobs in this state alone, in the order that matters in it; or in "
                             "these, with commas between" },
    { "type", SRV_P_TEXT, "jobs of this type alone" },
    { "since", SRV_P_TEXT, "jobs whose time is not before this, in milliseconds since 1970, or not "
                           "longer ago (2h)" },
    { "until", SRV_P_TEXT, "jobs whose time is before this, or longer ago" },
    { "priority", SRV_P_PRIORITY, "jobs of just this priority; without state inactive a page may "
                                  "then have few jobs or none, and yet a \"next\"" },
    { "search", SRV_P_TEXT, "jobs with all these words in data, error or log; word* is a start" },
    { "error", SRV_P_TEXT, "jobs with this error, as GET /v1/errors names it; a page may then have "
                           "few jobs or none, and yet a \"next\"" },
    { "sort", SRV_P_TEXT, "id, created, started, ended, took, attempts or priority" },
    { "order", SRV_P_TEXT, "asc (first) or desc" },
    { "limit", SRV_P_INT, "jobs in the page, 1 to 1000 (100)" },
    { "after", SRV_P_TEXT, "\"next\" of the page before" },
    { "ids", SRV_P_BOOL, "ids instead of jobs" },
    { 0 }
};

static const srv_param wait_query[] = {
    { "timeout", SRV_P_MS, "how long to wait, at most 60s (30s)" },
    { 0 }
};

const srv_route srv_jobs_routes[] = {
    { "GET", "/v1/jobs", WEIR_ROLE_READ, list_jobs, 0, list_query, 0, "List jobs, a page at a time",
      NULL, "JobPage", 200 },
    { "GET", "/v1/jobs/{id}", WEIR_ROLE_READ, get_job, 0, NULL, 0, "One job", NULL, "Job", 200 },
    { "PATCH", "/v1/jobs/{id}", WEIR_ROLE_ADMIN, patch_job, SRV_MAX_SMALL_BODY, NULL, 0,
      "Change a job, all of it or nothing", "JobPatch", "Job", 200 },
    { "DELETE", "/v1/jobs/{id}", WEIR_ROLE_ADMIN, delete_job, 0, NULL, 0,
      "Forget a job and its log, in any state", NULL, NULL, 204 },
    { "POST", "/v1/jobs/{id}/retry", WEIR_ROLE_ADMIN, retry_job, 0, NULL, 0,
      "Run a finished job again, with all its attempts", NULL, "JobState", 200 },
    { "POST", "/v1/jobs/{id}/promote", WEIR_ROLE_ADMIN, promote_job, 0, NULL, 0,
      "Start a delayed job now", NULL, "JobState", 200 },
    { "POST", "/v1/jobs/{id}/cancel", WEIR_ROLE_ADMIN, cancel_job, 0, NULL, 0,
      "Cancel a job that waits or runs", NULL, "JobState", 200 },
    { "GET", "/v1/jobs/{id}/wait", WEIR_ROLE_READ, wait_for_job, 0, wait_query, 0,
      "Wait until a job has ended: 200, or 202 when it has not", NULL, "Job", 200 },
    { "GET", "/v1/jobs/{id}/explain", WEIR_ROLE_READ, explain_job, 0, NULL, 0,
      "Why a job is not running, or what became of it", NULL, "Explanation", 200 },
    { 0 }
};
