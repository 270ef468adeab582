/* api_schedules.c - schedules: list, put, remove, pause and resume, fire by hand, and the firings
 * of an expression that is not kept. A token that is bound to types has the schedules that add jobs
 * of these types. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "op/schedule.h"
#include "server/api/api.h"
#include "server/http/body.h"
#include "server/http/parts.h"
#include "weir/schedule.h"

enum {
    SHOWN_FIRINGS = 5,                  /* coming firings in an answer, unless asked for more */
    FIRST = 2, AT_ONCE = 100            /* schedules that are read at once */
};

/* ---- as JSON ---- */

static void moments_json(weir_buf *out, const int64_t *at, size_t n)
{
    weir__buf_str(out, ",\"next\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            weir__buf_char(out, ',');
        weir__buf_int(out, at[i]);
    }
    weir__buf_str(out, "]}");
}

static void put_words(weir_buf *out, const char *name, char *words)
{
    weir__buf_str(out, name);
    weir__json_string(out, words ? words : "", words ? strlen(words) : 0);
    free(words);
}

static void schedule_json(weir_buf *out, const weir_schedule *s, int64_t now)
{
    int64_t at[SHOWN_FIRINGS];
    size_t  n = 0;
    char   *words = NULL, *explained = NULL;
    weir_schedule_words(s, &words, NULL);
    weir_schedule_explain(s, now, &explained, NULL);
    if (!s->paused && s->next_at && s->next_at < WEIR_PARKED_AT)
        weir_schedule_next(s, s->next_at - 1, at, SHOWN_FIRINGS, &n, NULL);
    weir__schedule_json(out, s);
    put_words(out, ",\"words\":", words);
    put_words(out, ",\"explanation\":", explained);
    moments_json(out, at, n);
}

/* ---- one schedule, which the caller must be allowed to see ---- */

typedef struct asked {
    weir_schedules *list;
    weir_schedule   given;
    srv_handler    *then;
    uint64_t        id;
    size_t          n;
} asked;

static void reply_missing(srv_request *r)
{
    srv_reply_fail(r, WEIR_ENOENT, NULL, "there is no schedule %.*s", WEIR_MAX_SCHEDULE_NAME,
                   r->arg[0]);
}

static void got_one(srv_request *r, weir_code code, const weir_error *err)
{
    asked *a = r->state;
    if (srv_failed(r, code, err))
        return;
    if (!srv_caller_lacks(&r->who, a->list->schedule[0].job.type)) {
        a->then(r);
        return;
    }
    weir_schedules_free(a->list);
    reply_missing(r);
}

static void get_one(srv_request *r, srv_then *then)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    asked       *a = r->state;
    weir_code    rc = weir_schedule_get_async(srv_queue(r), r->arg[0], &a->list, &f, &err);
    srv_await(r, rc, &err, f, then);
}

/* then(r) has the schedule in asked.list, and releases it. */
static void on_schedule(srv_request *r, unsigned role, srv_handler *then)
{
    asked *a;
    if (!srv_allow_own(r, role) || !SRV_STATE(r, a))
        return;
    a->then = then;
    get_one(r, got_one);
}

static void reply_one(srv_request *r)
{
    asked   *a = r->state;
    weir_buf body = { 0 };
    schedule_json(&body, &a->list->schedule[0], weir_now(srv_queue(r)));
    weir_schedules_free(a->list);
    srv_reply_json(r, 200, &body);
}

static void show(srv_request *r)
{
    on_schedule(r, WEIR_ROLE_READ, reply_one);
}

/* It was changed: answer with what it is now. */
static void changed(srv_request *r, weir_code code, const weir_error *err)
{
    if (srv_failed(r, code, err))
        return;
    ((asked *)r->state)->then = reply_one;
    get_one(r, got_one);
}

/* ---- GET /v1/schedules ---- */

/* The jobs of schedules may be large: a page is read and sent in parts, and ends early at
 * SRV_MAX_PAGE. */
typedef struct listing {
    srv_parts       parts;
    weir_schedules *list;
    size_t          n, left;            /* schedules that were read, and are wanted yet */
    size_t          shown, bytes;       /* of the page so far */
    const char     *after;
    char            last[WEIR_MAX_SCHEDULE_NAME + 1];
} listing;

static void end_page(srv_request *r, listing *l, bool more)
{
    weir_buf *out = &l->parts.body;
    weir__buf_str(out, "],\"next\":");
    if (more)
        weir__json_string(out, l->last, strlen(l->last));
    else
        weir__buf_str(out, "null");
    weir__buf_char(out, '}');
    srv_parts_end(r);
}

static void part_listed(srv_request *r, weir_code code, const weir_error *err)
{
    listing  *l = r->state;
    weir_buf *out = &l->parts.body;
    size_t    before = out->len;
    if (srv_part_failed(r, code, err))
        return;
    weir_schedules *list = l->list;
    for (size_t i = 0; i < list->n; i++) {
        if (list->schedule[i].own || srv_caller_lacks(&r->who, list->schedule[i].job.type))
            continue;
        if (l->shown++)
            weir__buf_char(out, ',');
        schedule_json(out, &list->schedule[i], weir_now(srv_queue(r)));
    }
    bool more = list->more && list->n;
    if (list->n)
        snprintf(l->last, sizeof l->last, "%s", list->schedule[list->n - 1].name);
    l->n += list->n;
    l->left -= list->n;
    l->bytes += out->len - before;
    weir_schedules_free(list);
    if (!more || !l->left || l->bytes >= SRV_MAX_PAGE)
        end_page(r, l, more);
    else
        srv_parts_go_on(r);
}

static void list_part(srv_request *r)
{
    listing     *l = r->state;
    weir_error   err = { 0 };
    weir_future *f = NULL;
    size_t       fit = l->n ? srv_parts_items(l->n, l->bytes) : FIRST;
    fit = fit < AT_ONCE ? fit : AT_ONCE;
    fit = fit < l->left ? fit : l->left;
    weir_code rc = weir_schedules_list_async(srv_queue(r), l->n ? l->last : l->after, fit,
                                             &l->list, &f, &err);
    srv_await(r, rc, &err, f, part_listed);
}

static void show_list(srv_request *r)
{
    int64_t  limit = 100;
    listing *l;
    if (!srv_allow_own(r, WEIR_ROLE_READ) ||
        !srv_query_int(r, "limit", 1, WEIR_MAX_PAGE, &limit) || !SRV_STATE(r, l) ||
        !srv_parts_begin(r, &l->parts, SRV_JSON, list_part))
        return;
    l->after = srv_query(r, "after");
    l->left = (size_t)limit;
    weir__buf_str(&l->parts.body, "{\"schedules\":[");
    list_part(r);
}

/* ---- GET /v1/firings ---- */

static void show_next(srv_request *r)
{
    weir_schedule s = { .when = srv_query(r, "when"), .zone = srv_query(r, "zone"),
                        .except = srv_query(r, "except") };
    int64_t       from = weir_now(srv_queue(r)), n = SHOWN_FIRINGS, at[WEIR_MAX_FIRINGS];
    size_t        found;
    weir_error    err;
    char         *words = NULL;
    weir_buf      body = { 0 };
    if (!srv_allow_own(r, WEIR_ROLE_READ) ||
        !srv_query_int(r, "from", 0, INT64_MAX, &from) ||
        !srv_query_int(r, "start", 0, INT64_MAX, &s.start_at) ||
        !srv_query_int(r, "end", 0, INT64_MAX, &s.end_at) ||
        !srv_query_int(r, "n", 1, WEIR_MAX_FIRINGS, &n) ||
        !srv_query_bool(r, "day_or_weekday", &s.day_or_weekday))
        return;
    if (!s.when) {
        srv_reply_fail(r, WEIR_EINVAL, "when", "when: missing; expected an expression such as "
                       "\"30 6 * * 1\"");
        return;
    }
    if (weir_schedule_next(&s, from, at, (size_t)n, &found, &err) ||
        weir_schedule_words(&s, &words, &err)) {
        srv_reply_error(r, &err);
        return;
    }
    weir__buf_str(&body, "{\"words\":");
    weir__json_string(&body, words, strlen(words));
    moments_json(&body, at, found);
    free(words);
    srv_reply_json(r, 200, &body);
}

/* ---- PUT /v1/schedules/{name} ---- */

static void put_given(srv_request *r)
{
    asked       *a = r->state;
    weir_error   err = { 0 };
    weir_future *f = NULL;
    weir_code    rc = weir_schedule_put_async(srv_queue(r), &a->given, &f, &err);
    srv_await(r, rc, &err, f, changed);
}

/* A schedule that adds jobs of other types must not be overwritten. */
static void old_got(srv_request *r, weir_code code, const weir_error *err)
{
    asked *a = r->state;
    if (code && code != WEIR_ENOENT) {
        srv_failed(r, code, err);
        return;
    }
    bool others = !code && srv_caller_lacks(&r->who, a->list->schedule[0].job.type);
    weir_schedules_free(a->list);
    a->list = NULL;
    if (others)
        srv_reply_status(r, 403, "forbidden", "the schedule of this name adds jobs of another "
                         "type, for which the token is not valid");
    else
        put_given(r);
}

static void put(srv_request *r)
{
    weir_reader     in;
    weir_json_piece all;
    asked          *a;
    if (!srv_body_open(r, &in, &all) || !SRV_STATE(r, a))
        return;
    if (weir__schedule_read_given(&in, all, &a->given)) {
        srv_body_refuse(r, &in);
        return;
    }
    if (a->given.name && strcmp(a->given.name, r->arg[0]) != 0) {
        srv_reply_fail(r, WEIR_EINVAL, "name", "name: it is not the name in the path; leave it "
                       "out, or write the same");
        return;
    }
    a->given.name = r->arg[0];
    if (!srv_allow(r, WEIR_ROLE_ADMIN, a->given.job.type))
        return;
    if (*r->who.types)
        get_one(r, old_got);
    else
        put_given(r);
}

/* ---- DELETE, pause, resume, fire, backfill ---- */

static void fired(srv_request *r, weir_code code, const weir_error *err)
{
    weir_buf body = { 0 };
    if (srv_failed(r, code, err))
        return;
    weir__buf_str(&body, "{\"id\":");
    weir__buf_uint(&body, ((asked *)r->state)->id);
    weir__buf_char(&body, '}');
    srv_reply_json(r, 201, &body);
}

static void filled(srv_request *r, weir_code code, const weir_error *err)
{
    weir_buf body = { 0 };
    if (srv_failed(r, code, err))
        return;
    weir__buf_str(&body, "{\"added\":");
    weir__buf_uint(&body, ((asked *)r->state)->n);
    weir__buf_char(&body, '}');
    srv_reply_json(r, 201, &body);
}

typedef struct span {
    int64_t from_at, to_at;
} span;

static const weir_field span_fields[] = {
    WEIR_FIELD("from", weir__as_moment, offsetof(span, from_at), .needed = true),
    WEIR_FIELD("to", weir__as_moment, offsetof(span, to_at)),
    { 0 }
};

/* The last word of the path says what to do. */
static void act(srv_request *r)
{
    asked       *a = r->state;
    weir_queue  *q = srv_queue(r);
    const char  *name = r->arg[0], *verb = strrchr(r->route->path, '/') + 1;
    weir_error   err = { 0 };
    weir_future *f = NULL;
    weir_code    rc;
    srv_then    *then = changed;
    weir_schedules_free(a->list);
    a->list = NULL;
    if (strcmp(verb, "fire") == 0) {
        rc = weir_schedule_fire_async(q, name, &a->id, &f, &err);
        then = fired;
    } else if (strcmp(verb, "backfill") == 0) {
        span s = { .to_at = weir_now(q) };
        if (!srv_body(r, span_fields, &s))
            return;
        rc = weir_schedule_backfill_async(q, name, s.from_at, s.to_at, &a->n, &f, &err);
        then = filled;
    } else if (strcmp(r->route->method, "DELETE") == 0) {
        rc = weir_schedule_remove_async(q, name, &f, &err);
        then = srv_reply_done;
    } else {
        rc = weir_schedule_pause_async(q, name, strcmp(verb, "pause") == 0, &f, &err);
    }
    srv_await(r, rc, &err, f, then);
}

static void act_on(srv_request *r)
{
    on_schedule(r, WEIR_ROLE_ADMIN, act);
}

/* ---- routes ---- */

static const srv_param list_query[] = {
    { "limit", SRV_P_INT, "Schedules in a page (100)" },
    { "after", SRV_P_TEXT, "\"next\" of the page before" },
    { 0 }
};

static const srv_param next_query[] = {
    { "when", SRV_P_TEXT, "The expression" },
    { "zone", SRV_P_TEXT, "An IANA name (UTC)" },
    { "n", SRV_P_INT, "Firings (5)" },
    { "from", SRV_P_INT, "Firings after this moment (now)" },
    { "start", SRV_P_INT, "No firing before; an interval counts from here" },
    { "end", SRV_P_INT, "No firing after" },
    { "except", SRV_P_TEXT, "Dates on which it does not fire: 2026-12-25,2026-12-26" },
    { "day_or_weekday", SRV_P_BOOL, "If day and weekday are both restricted, one is enough" },
    { 0 }
};

const srv_route srv_schedules_routes[] = {
    { "GET", "/v1/schedules", WEIR_ROLE_READ, show_list, 0, list_query, 0,
      "Schedules, in the order of names", NULL, "SchedulePage", 200 },
    { "GET", "/v1/schedules/{name}", WEIR_ROLE_READ, show, 0, NULL, 0,
      "One schedule, with its last and next firings", NULL, "Schedule", 200 },
    { "PUT", "/v1/schedules/{name}", WEIR_ROLE_ADMIN, put, SRV_MAX_SMALL_BODY, NULL, 0,
      "Add a schedule, or change it", "SchedulePut", "Schedule", 200 },
    { "DELETE", "/v1/schedules/{name}", WEIR_ROLE_ADMIN, act_on, 0, NULL, 0,
      "Remove a schedule; its jobs stay", NULL, NULL, 204 },
    { "POST", "/v1/schedules/{name}/pause", WEIR_ROLE_ADMIN, act_on, 0, NULL, 0,
      "Have a schedule not fire", NULL, "Schedule", 200 },
    { "POST", "/v1/schedules/{name}/resume", WEIR_ROLE_ADMIN, act_on, 0, NULL, 0,
      "Go on with the next firing", NULL, "Schedule", 200 },
    { "POST", "/v1/schedules/{name}/fire", WEIR_ROLE_ADMIN, act_on, 0, NULL, 0,
      "Add the job of a schedule now", NULL, "ScheduleFired", 201 },
    { "POST", "/v1/schedules/{name}/backfill", WEIR_ROLE_ADMIN, act_on, SRV_MAX_SMALL_BODY, NULL,
      0, "Add a job for each firing of a past span", "ScheduleSpan", "ScheduleFilled", 201 },
    { "GET", "/v1/firings", WEIR_ROLE_READ, show_next, 0, next_query, 0,
      "When an expression fires next; nothing is kept", NULL, "ScheduleNext", 200 },
    { 0 }
};
