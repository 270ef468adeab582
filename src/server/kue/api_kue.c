/* api_kue.c - Kue's JSON API (npm kue 0.11) at the root, for what talks to Kue today.
 *
 * Every route of Kue's, with its shapes, statuses and texts. The intended differences are in
 * docs/kue.md, "The HTTP API": a GET changes nothing, no text is evaluated, and unknown states are
 * refused. An order of routes matters: the first that fits serves. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/access/audit.h"
#include "server/kue/kue.h"

static const srv_kue_api kue;           /* with the routes, below */

static srv_kue *begin(srv_request *r)
{
    return srv_kue_begin(r, &kue);
}

/* An error of a step; for a missing job Kue answers with 200. */
static void failed(srv_request *r, const weir_error *err)
{
    if (err->code != WEIR_ENOENT) {
        srv_kue_failed(r, err);
        return;
    }
    srv_audit_failed(r, 404);
    srv_kue_error(r, 200, "job \"%s\" doesnt exist", r->arg[0]);
}

/* As JavaScript's parseInt(text, 10): white space, a sign, digits, and whatever behind them. False:
 * NaN. A number that is too large becomes the largest one. */
static bool parse_int(const char *text, int64_t *out)
{
    char *end;
    *out = strtoll(text, &end, 10);
    return end != text;
}

/* ---- looking ---- */

static void stats_json(weir_buf *out, const weir_type_stats *s)
{
    weir__buf_printf(out, "{\"inactiveCount\":%" PRIu64 ",\"completeCount\":%" PRIu64
                     ",\"activeCount\":%" PRIu64 ",\"failedCount\":%" PRIu64
                     ",\"delayedCount\":%" PRIu64 ",\"workTime\":",
                     s->count[WEIR_STATE_INACTIVE], s->count[WEIR_STATE_COMPLETE],
                     s->count[WEIR_STATE_ACTIVE], s->count[WEIR_STATE_FAILED],
                     s->count[WEIR_STATE_DELAYED]);
    if (s->completed || s->work_ms)
        weir__buf_printf(out, "%" PRId64 "}", s->work_ms);
    else
        weir__buf_str(out, "null}");            /* no job was ever done */
}

static void get_stats(srv_request *r)
{
    srv_kue_get_stats(r, &kue);
}

static void get_types(srv_request *r)
{
    srv_kue_get_types(r, &kue);
}

static void get_count(srv_request *r)
{
    weir_state state = WEIR_STATE_ANY;
    if (!begin(r))
        return;
    weir_state_parse(r->arg[1], &state);        /* an unknown state has no jobs */
    srv_kue_count(r, state, r->arg[0]);
}

static void got_job(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue *k = r->state;
    if (code) {
        failed(r, err);
        return;
    }
    srv_kue_job(&k->out, k->job, r->arg[0]);
    srv_kue_reply(r, 200);
}

static void get_job(srv_request *r)
{
    if (begin(r))
        srv_kue_get(r, srv_kue_id(r->arg[0]), got_job);
}

static void get_log(srv_request *r)
{
    if (begin(r))
        srv_kue_log(r, srv_kue_id(r->arg[0]));
}

/* ---- ranges ---- */

/* The ranks, and the order if the path has one, are the last arguments. */
static void range(srv_request *r, weir_state state, const char *type, const char *const *arg)
{
    int64_t from, to;
    bool    desc = strstr(r->route->path, "{order}") && !strcmp(arg[2], "desc");
    if (!parse_int(arg[0], &from) || !parse_int(arg[1], &to))
        srv_kue_error(r, 200, "ERR value is not an integer or out of range");
    else
        srv_kue_range(r, state, type, from, to, desc);
}

static void get_range(srv_request *r)
{
    srv_kue_get_range(r, &kue);
}

/* ---- search ---- */

static void next_found(srv_request *r);

static void got_found(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue *k = r->state;
    if (code) {
        failed(r, err);
        return;
    }
    for (size_t i = 0; i < k->page->n; i++)
        weir__buf_printf(&k->out, "%c\"%" PRIu64 "\"", k->out.len ? ',' : '[',
                         k->page->job[i]->id);
    k->count += k->page->n;
    bool more = k->page->more;
    k->query.after = k->page->next;
    weir_page_free(k->page);
    k->page = NULL;
    if (more && k->count >= SRV_KUE_MAX_RANGE) {
        srv_kue_error(r, 413, "q: more than %d jobs have these words (SRV_KUE_MAX_RANGE); ask for "
                              "more of them, or GET /v1/jobs?search=", SRV_KUE_MAX_RANGE);
        return;
    }
    if (more) {
        next_found(r);
        return;
    }
    weir__buf_str(&k->out, k->out.len ? "]" : "[]");
    srv_kue_reply(r, 200);
}

static void next_found(srv_request *r)
{
    srv_kue     *k = r->state;
    weir_future *f = NULL;
    weir_code    rc = weir_list_async(srv_queue(r), &k->query, &k->page, &f, &k->err);
    srv_await(r, rc, &k->err, f, got_found);
}

static void get_search(srv_request *r)
{
    srv_kue *k = begin(r);
    if (!k)
        return;                     /* and r may be gone */
    const char *q = srv_query(r, "q");
    if (!q || !*q) {
        weir__buf_str(&k->out, "[]");
        srv_kue_reply(r, 200);
        return;
    }
    k->query = (weir_query){ .search = q, .ids_only = true, .limit = WEIR_MAX_PAGE };
    if (srv_kue_unscoped(r, NULL))
        return;
    srv_kue_scope(r, NULL, &k->query.type);
    next_found(r);
}

/* ---- changing ---- */

static bool read_state(srv_request *r, const char *text, weir_state *out)
{
    if (weir_state_parse(text, out))
        return true;
    srv_kue_error(r, 400, "unknown state \"%s\": must be inactive, delayed, active, complete, "
                          "failed or cancelled", text);
    return false;
}

static void put_state(srv_request *r)
{
    if (begin(r))
        srv_kue_get(r, srv_kue_id(r->arg[0]), srv_kue_put_state);
}

static void priority_set(srv_request *r, weir_code code, const weir_error *err)
{
    if (code)
        failed(r, err);
    else
        srv_kue_message(r, 200, "updated priority");
}

static void set_priority_of(srv_request *r, weir_code code, const weir_error *err)
{
    int64_t priority;
    if (code) {
        failed(r, err);
        return;
    }
    parse_int(r->arg[1], &priority);
    weir_change change = { .set_priority = true, .priority = (int32_t)priority };
    srv_kue_change(r, &change, priority_set);
}

static void put_priority(srv_request *r)
{
    int64_t priority;
    if (!begin(r))
        return;
    if (parse_int(r->arg[1], &priority) && priority >= INT32_MIN && priority <= INT32_MAX)
        srv_kue_get(r, srv_kue_id(r->arg[0]), set_priority_of);
    else
        srv_kue_error(r, 200, "invalid priority");
}

static void removed(srv_request *r, weir_code code, const weir_error *err)
{
    if (code)
        failed(r, err);
    else
        srv_kue_message(r, 200, "job %s removed", r->arg[0]);
}

static void delete_job(srv_request *r)
{
    if (begin(r))
        srv_kue_get(r, srv_kue_id(r->arg[0]), srv_kue_remove);
}

static void restarted(srv_request *r, weir_code code, const weir_error *err)
{
    if (code)
        failed(r, err);
    else
        srv_kue_message(r, 200, "job %s inactive", r->arg[0]);
}

/* A GET that changes a job is what a link, a crawler or a page of somebody else's can send. */
static void get_inactive(srv_request *r)
{
    if (!begin(r))
        return;
    if (srv_settings(r)->kue_get) {
        srv_kue_get(r, srv_kue_id(r->arg[0]), srv_kue_restart);
        return;
    }
    srv_reply_header(r, "Allow", "POST");
    srv_kue_error(r, 405, "a GET changes nothing here: PUT /job/%s/state/inactive or "
                          "POST /inactive/%s, or start the server with --kue-get",
                  r->arg[0], r->arg[0]);
}

/* ---- adding ---- */

/* One element of the body. */
typedef struct element {
    weir_error err;
    int        status;          /* 0: it is specs[at] */
    size_t     at;
} element;

typedef struct creation {
    bool        many;           /* the body is an array */
    element    *element;
    size_t      n;
    weir_spec  *specs;          /* the valid ones */
    weir_added *added;
    size_t      n_specs;
} creation;

/* As Kue's middleware: a body that is not said to be JSON is not read. */
static bool said_json(const srv_request *r)
{
    const char *type = srv_header(r, "content-type");
    size_t      len = type ? strcspn(type, "; \t") : 0;
    return len == strlen("application/json") && !strncasecmp(type, "application/json", len);
}

static void element_json(weir_buf *out, const creation *c, const element *e)
{
    if (!e->status) {
        weir__buf_printf(out, "{\"message\":\"job created\",\"id\":%" PRIu64 "}",
                         c->added[e->at].id);
        return;
    }
    weir__buf_str(out, "{\"error\":");
    weir__json_string(out, e->err.msg, strlen(e->err.msg));
    weir__buf_char(out, '}');
}

/* The first element that was not added gives the status. */
static void created(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue  *k = r->state;
    creation *c = k->own;
    int       status = 0;
    if (c->many)
        weir__buf_char(&k->out, '[');
    for (size_t i = 0; i < c->n; i++) {
        element *e = &c->element[i];
        if (code && !e->status) {
            e->err = *err;
            e->status = weir_code_http(code);
        }
        if (!status)
            status = e->status;
        if (i)
            weir__buf_char(&k->out, ',');
        element_json(&k->out, c, e);
    }
    if (c->many)
        weir__buf_char(&k->out, ']');
    if (code && weir_code_may_retry(code))
        srv_reply_header(r, "Retry-After", "1");
    srv_kue_reply(r, status ? status : 200);
}

static void read_element(srv_request *r, weir_reader *in, weir_json_piece value, creation *c)
{
    element   *e = &c->element[c->n++];
    weir_spec *spec = &c->specs[c->n_specs];
    if (srv_kue_spec(in, value, spec)) {
        e->err = in->err;
        e->status = weir_code_http(e->err.code);
    } else if (!srv_may(r, WEIR_ROLE_PRODUCE, spec->type)) {
        char types[150];
        weir_fail(&e->err, WEIR_EINVAL, "type: this token is for jobs of type %s",
                  srv_caller_types_text(&r->who, types, sizeof types));
        e->status = 403;
    } else {
        e->at = c->n_specs++;
    }
}

/* Room for as many jobs as the body has. NULL: it has none, or is wrong, and was answered. */
static creation *open_body(srv_request *r, weir_reader *in, weir_json_piece body)
{
    weir_json_walk  w;
    weir_json_piece name, value;
    size_t          n = 0;
    if (weir__read_check(in, body.text, body.len, SRV_MAX_DEPTH)) {
        srv_kue_failed(r, &in->err);
        return NULL;
    }
    if (!weir__json_open(&w, body)) {
        srv_kue_error(r, 400, "the body must be an object or an array");
        return NULL;
    }
    while (weir__json_next(&w, &name, &value))
        n++;
    if (!n) {
        srv_kue_empty(r, 204);
        return NULL;
    }
    if (w.object)
        n = 1;
    if (n > WEIR_MAX_ADD) {
        srv_kue_error(r, 413, "%zu jobs, at most %d (WEIR_MAX_ADD)", n, WEIR_MAX_ADD);
        return NULL;
    }
    creation *c = srv_alloc(r, sizeof *c);
    if (c) {
        c->many = !w.object;
        c->element = srv_alloc(r, n * sizeof *c->element);
        c->specs = srv_alloc(r, n * sizeof *c->specs);
        c->added = srv_alloc(r, n * sizeof *c->added);
    }
    if (c && c->element && c->specs && c->added)
        return c;
    srv_kue_error(r, 503, "out of memory");
    return NULL;
}

static void create(srv_request *r, weir_reader *in, weir_json_piece body, creation *c)
{
    srv_kue        *k = r->state;
    weir_future    *f = NULL;
    weir_json_walk  w;
    weir_json_piece name, value;
    weir__json_open(&w, body);
    if (!c->many)
        read_element(r, in, body, c);
    else
        while (weir__json_next(&w, &name, &value))
            read_element(r, in, value, c);
    k->own = c;
    if (!c->n_specs) {
        created(r, WEIR_OK, NULL);
        return;
    }
    weir_code rc = weir_add_many_async(srv_queue(r), c->specs, c->n_specs, NULL, c->added, &f,
                                       &k->err);
    srv_await(r, rc, &k->err, f, created);
}

static void post_job(srv_request *r)
{
    weir_reader     in = srv_kue_reader(r);
    weir_json_piece body = { r->body, r->body_len };
    if (!begin(r))
        return;
    if (!r->body_len || !said_json(r)) {
        srv_kue_empty(r, 204);
        return;
    }
    creation *c = open_body(r, &in, body);
    if (c)
        create(r, &in, body, c);
}

/* ---- the routes ---- */

static const srv_kue_api kue = {
    .stats = stats_json, .range = range, .failed = failed, .state_set = "updated state",
    .read_state = read_state, .removed = removed, .restarted = restarted
};

enum {
    PLAIN = SRV_ANY_QUERY | SRV_PLAIN,
    OURS  = PLAIN | SRV_KUE                 /* Vert.x Kue has one of its own at the same place */
};

static const srv_param search_query[] = {
    { "q", SRV_P_TEXT, "words" },
    { 0 }
};

#define GET(route, how, flag, what) \
    { "GET", route, WEIR_ROLE_READ, how, 0, NULL, flag, what, NULL, NULL, 200 }
const srv_route srv_kue_routes[] = {
    GET("/stats", get_stats, OURS, "Kue: how many jobs there are in each state"),
    { "GET", "/job/search", WEIR_ROLE_READ, get_search, 0, search_query, PLAIN,
      "Kue: ids of the jobs with these words", NULL, NULL, 200 },
    GET("/jobs/{from}..{to}", get_range, PLAIN, "Kue: jobs by rank"),
    GET("/jobs/{from}..{to}/{order}", get_range, PLAIN, "Kue: jobs by rank"),
    GET("/jobs/{type}/{state}/{from}..{to}", get_range, PLAIN, "Kue: jobs by rank"),
    GET("/jobs/{type}/{state}/{from}..{to}/{order}", get_range, PLAIN, "Kue: jobs by rank"),
    GET("/jobs/{type}/{state}/stats", get_count, OURS, "Kue: how many there are"),
    GET("/jobs/{state}/{from}..{to}", get_range, PLAIN, "Kue: jobs by rank"),
    GET("/jobs/{state}/{from}..{to}/{order}", get_range, PLAIN, "Kue: jobs by rank"),
    GET("/job/types", get_types, OURS, "Kue: types of jobs"),
    GET("/job/{id}", get_job, OURS, "Kue: a job"),
    GET("/job/{id}/log", get_log, OURS, "Kue: the lines of its log"),
    { "PUT", "/job/{id}/state/{state}", WEIR_ROLE_ADMIN, put_state, SRV_MAX_SMALL_BODY, NULL,
      OURS | SRV_ANY_TYPE, "Kue: set its state", NULL, NULL, 200 },
    { "PUT", "/job/{id}/priority/{priority}", WEIR_ROLE_ADMIN, put_priority, SRV_MAX_SMALL_BODY,
      NULL,
      PLAIN | SRV_ANY_TYPE, "Kue: set its priority", NULL, NULL, 200 },
    { "DELETE", "/job/{id}", WEIR_ROLE_ADMIN, delete_job, SRV_MAX_SMALL_BODY, NULL,
      OURS | SRV_ANY_TYPE, "Kue: forget it", NULL, NULL, 200 },
    { "POST", "/job", WEIR_ROLE_PRODUCE, post_job, SRV_MAX_BODY, NULL, PLAIN | SRV_ANY_TYPE,
      "Kue: add a job, or an array of them", NULL, NULL, 200 },
    { "GET", "/inactive/{id}", WEIR_ROLE_ADMIN, get_inactive, 0, NULL, PLAIN,
      "Kue: run it again (with --kue-get)", NULL, NULL, 200 },
    { 0 }
};
