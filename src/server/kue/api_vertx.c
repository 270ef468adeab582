/* api_vertx.c - the API of Vert.x Kue (kue-http) at the root, for what talks to it today.
 *
 * Its routes, shapes and statuses, without its defects (docs/kue.md, "The HTTP API"). Routes that
 * Kue has at the same place are served with --api vertx; all others always. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "core/job.h"
#include "server/access/audit.h"
#include "server/kue/kue.h"

static const srv_kue_api vertx;         /* with the routes, below */

static srv_kue *begin(srv_request *r)
{
    return srv_kue_begin(r, &vertx);
}

/* A number of the path; Java's are plain digits with a sign. False: it was answered. */
static bool read_number(srv_request *r, const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (end != text && !*end && !errno && *text != ' ')
        return true;
    srv_kue_error(r, 400, "\"%s\" is not a number", text);
    return false;
}

static bool read_state(srv_request *r, const char *text, weir_state *out)
{
    if (weir_state_parse(text, out))
        return true;
    srv_kue_error(r, 400, "unknown state \"%s\": must be INACTIVE, DELAYED, ACTIVE, COMPLETE, "
                          "FAILED or CANCELLED", text);
    return false;
}

/* The job of the path, whose id is a number. */
static void with_job(srv_request *r, srv_then *then)
{
    int64_t id;
    if (begin(r) && read_number(r, r->arg[0], &id))
        srv_kue_get(r, id > 0 ? (uint64_t)id : 0, then);
}

/* ---- looking ---- */

static void get_search(srv_request *r)
{
    if (begin(r))
        srv_kue_message(r, 501, "not_implemented");
}

static void stats_json(weir_buf *out, const weir_type_stats *s)
{
    weir__buf_printf(out, "{\"workTime\":%" PRId64 ",\"inactiveCount\":%" PRIu64
                     ",\"completeCount\":%" PRIu64 ",\"activeCount\":%" PRIu64
                     ",\"failedCount\":%" PRIu64 ",\"delayedCount\":%" PRIu64 "}",
                     s->work_ms, s->count[WEIR_STATE_INACTIVE], s->count[WEIR_STATE_COMPLETE],
                     s->count[WEIR_STATE_ACTIVE], s->count[WEIR_STATE_FAILED],
                     s->count[WEIR_STATE_DELAYED]);
}

static void get_stats(srv_request *r)
{
    srv_kue_get_stats(r, &vertx);
}

static void get_types(srv_request *r)
{
    srv_kue_get_types(r, &vertx);
}

static void get_count(srv_request *r)
{
    weir_state state;
    if (begin(r) && read_state(r, r->arg[1], &state))
        srv_kue_count(r, state, r->arg[0]);
}

static void got_job(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue *k = r->state;
    if (code == WEIR_ENOENT) {
        srv_kue_empty(r, 404);
    } else if (code) {
        srv_kue_failed(r, err);
    } else {
        srv_vertx_job(&k->out, k->job);
        srv_kue_reply(r, 200);
    }
}

static void get_job(srv_request *r)
{
    with_job(r, got_job);
}

static void get_log(srv_request *r)
{
    int64_t id;
    if (begin(r) && read_number(r, r->arg[0], &id))
        srv_kue_log(r, id > 0 ? (uint64_t)id : 0);
}

/* ---- ranges ---- */

/* The ranks, and the order if the path has one (else it is ascending), are the last arguments. */
static void range(srv_request *r, weir_state state, const char *type, const char *const *arg)
{
    const char *order = strstr(r->route->path, "{order}") ? arg[2] : "asc";
    bool        desc = !strcmp(order, "desc");
    int64_t     from, to;
    if (!read_number(r, arg[0], &from) || !read_number(r, arg[1], &to))
        return;
    if (!desc && strcmp(order, "asc") != 0)
        srv_kue_error(r, 400, "order: \"%s\" is neither asc nor desc", order);
    else if (to < from)
        srv_kue_error(r, 503, "to can not be greater than from");       /* its words, and status */
    else
        srv_kue_range(r, state, type, from, to, desc);
}

static void get_range(srv_request *r)
{
    srv_kue_get_range(r, &vertx);
}

/* ---- changing ---- */

static void failed(srv_request *r, const weir_error *err)
{
    if (err->code == WEIR_ENOENT)
        srv_kue_message(r, 404, "job_not_found");
    else
        srv_kue_failed(r, err);
}

static void put_state(srv_request *r)
{
    with_job(r, srv_kue_put_state);
}

/* If the job is missing, the removal has succeeded. */
static void removed(srv_request *r, weir_code code, const weir_error *err)
{
    if (code && code != WEIR_ENOENT) {
        srv_kue_failed(r, err);
        return;
    }
    if (code)
        srv_audit_failed(r, weir_code_http(code));
    srv_kue_empty(r, 204);
}

static void delete_job(srv_request *r)
{
    with_job(r, srv_kue_remove);
}

static void restarted(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue *k = r->state;
    if (code == WEIR_ENOENT)
        srv_kue_empty(r, 404);
    else if (code)
        srv_kue_failed(r, err);
    else
        srv_kue_message(r, 200, "job %" PRIu64 " restart", k->job->id);
}

static void post_inactive(srv_request *r)
{
    with_job(r, srv_kue_restart);
}

/* ---- PUT /job ---- */

static void saved(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue *k = r->state;
    if (code) {
        failed(r, err);
        return;
    }
    weir__buf_printf(&k->out, "{\"message\":\"job created\",\"id\":%" PRIu64 "}", k->added.id);
    srv_kue_reply(r, 201);
}

static bool same_json(const char *a, size_t a_len, const char *b, size_t b_len)
{
    weir_buf x = { 0 }, y = { 0 };
    srv_json_compact(&x, a, a_len);
    srv_json_compact(&y, b, b_len);
    bool same = x.len == y.len && !x.failed && !y.failed && !memcmp(x.data, y.data, x.len);
    weir__buf_fini(&x);
    weir__buf_fini(&y);
    return same;
}

static bool same_backoff(const weir_backoff *a, const weir_backoff *b)
{
    return a->kind == b->kind && a->delay_ms == b->delay_ms && a->max_ms == b->max_ms;
}

/* The name of a member that the body would change but that is fixed, or NULL. A body that was read
 * from GET /job/ID and sent back unchanged changes nothing. */
static const char *fixed(const srv_vertx_body *b, const weir_job *j)
{
    const weir_spec *s = &b->spec;
    return s->type && strcmp(s->type, j->type) != 0                ? "type"
           : b->attempts && s->attempts != j->max_attempts         ? "max_attempts"
           : b->ttl && s->ttl_ms != j->ttl_ms                      ? "ttl"
           : b->remove && s->remove_on_complete != j->remove_on_complete ? "removeOnComplete"
           : b->backoff && !same_backoff(&s->backoff, &j->backoff) ? "backoff" : NULL;
}

/* A value address_id, in memory of the request; NULL: out of memory. */
static const char *address_values(srv_request *r, const char *address)
{
    weir_buf b = { 0 };
    srv_vertx_values(&b, address);
    char *kept = b.failed ? NULL : srv_alloc(r, b.len + 1);
    if (kept)
        memcpy(kept, b.data, b.len + 1);
    weir__buf_fini(&b);
    return kept;
}

/* The values that the body changes: its address, if it has another one. */
static bool new_address(srv_request *r, const srv_vertx_body *b, const weir_job *j,
                        const char **values)
{
    size_t      len = 0;
    const char *now = srv_vertx_address(j, &len);
    weir_buf    text = { 0 };
    *values = NULL;
    if (!b->address)
        return true;
    weir__json_string(&text, b->address, strlen(b->address));
    bool same = now && !text.failed && text.len == len && !memcmp(text.data, now, len);
    bool ok = !text.failed && (same || (*values = address_values(r, b->address)));
    weir__buf_fini(&text);
    return ok;
}

/* The changes of the job by the body. */
static weir_code change_of(const srv_vertx_body *b, const weir_job *j, weir_change *out,
                           weir_error *err)
{
    const weir_spec *s = &b->spec;
    const char      *name = fixed(b, j);
    if (name)
        return weir_fail(err, WEIR_ESTATE, "%s: cannot be changed after the add", name);
    /* One without a name was shown with the nearest. */
    out->set_priority = b->priority && strcmp(srv_vertx_priority(s->priority),
                                              srv_vertx_priority(j->priority)) != 0;
    out->priority = s->priority;
    out->set_delay = b->delay && s->delay_ms != j->delay_ms;
    out->delay_ms = s->delay_ms;
    if (b->data && !same_json(s->data, s->data_len, j->data, j->data_len)) {
        out->data = s->data;
        out->data_len = s->data_len;
    }
    if (b->state)
        srv_kue_move(j, b->state, out);
    return WEIR_OK;
}

static void change_it(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue    *k = r->state;
    weir_change change = { 0 };
    if (code) {
        failed(r, err);
        return;
    }
    k->added.id = k->job->id;
    if (!new_address(r, k->own, k->job, &change.values))
        srv_kue_error(r, 503, "out of memory");
    else if (change_of(k->own, k->job, &change, &k->err))
        srv_kue_failed(r, &k->err);
    else
        srv_kue_change(r, &change, saved);
}

/* A caller who may add jobs may not change them. */
static void change_job(srv_request *r, srv_vertx_body *b)
{
    srv_kue *k = r->state;
    k->own = b;
    if (r->who.roles & WEIR_ROLE_ADMIN)
        srv_kue_get(r, (uint64_t)b->id, change_it);
    else
        srv_kue_error(r, 403, "id: this token may add jobs, but not change job %" PRId64, b->id);
}

static void added(srv_request *r, weir_code code, const weir_error *err)
{
    if (code)
        srv_kue_failed(r, err);
    else
        saved(r, code, err);
}

static void add_job(srv_request *r, srv_vertx_body *b)
{
    srv_kue     *k = r->state;
    weir_spec   *spec = &b->spec;
    weir_future *f = NULL;
    char         address[SRV_UUID];
    if (!srv_may(r, WEIR_ROLE_PRODUCE, spec->type)) {
        char types[150];
        srv_kue_error(r, 403, "type: this token is for jobs of type %s",
                      srv_caller_types_text(&r->who, types, sizeof types));
        return;
    }
    if (b->address || srv_make_uuid(address))
        spec->values = address_values(r, b->address ? b->address : address);
    if (!spec->values) {
        srv_kue_error(r, 503, "out of memory");
        return;
    }
    weir_code rc = weir_add_async(srv_queue(r), spec, &k->added, &f, &k->err);
    srv_await(r, rc, &k->err, f, added);
}

static void put_job(srv_request *r)
{
    weir_reader     in = srv_kue_reader(r);
    weir_json_piece body = { r->body, r->body_len };
    if (!begin(r))
        return;
    srv_vertx_body *b = srv_alloc(r, sizeof *b);
    if (!b)
        srv_kue_error(r, 503, "out of memory");
    else if (weir__read_check(&in, body.text, body.len, SRV_MAX_DEPTH) ||
             srv_vertx_spec(&in, body, b))
        srv_kue_failed(r, &in.err);
    else if (b->id > 0)
        change_job(r, b);
    else
        add_job(r, b);
}

/* ---- the routes ---- */

static const srv_kue_api vertx = {
    .vertx = true, .stats = stats_json, .range = range, .failed = failed,
    .state_set = "job_state_updated", .read_state = read_state, .removed = removed,
    .restarted = restarted
};

enum {
    PLAIN = SRV_ANY_QUERY | SRV_PLAIN,
    OURS  = PLAIN | SRV_VERTX               /* Kue has one of its own at the same place */
};

#define GET(route, how, flag, what) \
    { "GET", route, WEIR_ROLE_READ, how, 0, NULL, flag, what, NULL, NULL, 200 }
const srv_route srv_vertx_routes[] = {
    GET("/job/search/{q}", get_search, PLAIN, "Vert.x Kue: not implemented there"),
    GET("/stats", get_stats, OURS, "Vert.x Kue: how many jobs there are in each state"),
    GET("/jobs/{type}/{state}/stats", get_count, OURS, "Vert.x Kue: how many there are"),
    GET("/job/types", get_types, OURS, "Vert.x Kue: types of jobs"),
    GET("/jobs/{from}/to/{to}", get_range, PLAIN, "Vert.x Kue: jobs by rank"),
    GET("/jobs/{from}/to/{to}/{order}", get_range, PLAIN, "Vert.x Kue: jobs by rank"),
    GET("/jobs/{type}/{state}/{from}/to/{to}", get_range, PLAIN, "Vert.x Kue: jobs by rank"),
    GET("/jobs/{type}/{state}/{from}/to/{to}/{order}", get_range, PLAIN,
        "Vert.x Kue: jobs by rank"),
    GET("/jobs/{state}/{from}/to/{to}", get_range, PLAIN, "Vert.x Kue: jobs by rank"),
    GET("/jobs/{state}/{from}/to/{to}/{order}", get_range, PLAIN,
        "Vert.x Kue: jobs by rank"),
    { "PUT", "/job", WEIR_ROLE_PRODUCE, put_job, SRV_MAX_SMALL_BODY, NULL, PLAIN | SRV_ANY_TYPE,
      "Vert.x Kue: add a job, or change the one with this id", NULL, NULL, 201 },
    { "PUT", "/job/{id}/state/{state}", WEIR_ROLE_ADMIN, put_state, SRV_MAX_SMALL_BODY, NULL,
      OURS | SRV_ANY_TYPE, "Vert.x Kue: set its state", NULL, NULL, 200 },
    GET("/job/{id}", get_job, OURS, "Vert.x Kue: a job"),
    GET("/job/{id}/log", get_log, OURS, "Vert.x Kue: the lines of its log"),
    { "DELETE", "/job/{id}", WEIR_ROLE_ADMIN, delete_job, SRV_MAX_SMALL_BODY, NULL,
      OURS | SRV_ANY_TYPE, "Vert.x Kue: forget it", NULL, NULL, 204 },
    { "POST", "/inactive/{id}", WEIR_ROLE_ADMIN, post_inactive, SRV_MAX_SMALL_BODY, NULL,
      PLAIN | SRV_ANY_TYPE, "Vert.x Kue: run it again", NULL, NULL, 200 },
    { 0 }
};
