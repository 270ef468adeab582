/* api_types.c - what is said of types, not of single jobs: counts, settings, pause and resume. */
#include <string.h>

#include "core/stats_json.h"
#include "server/api/api.h"
#include "server/http/body.h"

/* ---- several types as JSON ---- */

/* Those the caller may see. */
static void types_json(weir_buf *out, const srv_request *r, const weir_stats *s)
{
    bool first = true;
    weir__buf_str(out, "\"types\":[");
    for (size_t i = 0; i < s->n; i++) {
        if (!srv_may(r, WEIR_ROLE_READ, s->type[i].type))
            continue;
        if (!first)
            weir__buf_char(out, ',');
        weir__type_json(out, &s->type[i]);
        first = false;
    }
    weir__buf_char(out, ']');
}

/* NULL: it was never seen. */
static const weir_type_stats *find(const weir_stats *s, const char *type)
{
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->type[i].type, type))
            return &s->type[i];
    return !strcmp(type, "*") ? &s->all : NULL;
}

/* ---- GET /v1/stats, /v1/types, /v1/types/{type} ---- */

typedef struct counting {
    weir_stats   *stats;
    weir_settings settings;             /* to be set */
} counting;

static void get_stats(srv_request *r, srv_then *then)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    counting    *c = r->state;
    weir_code    rc = weir_get_stats_async(srv_queue(r), &c->stats, &f, &err);
    srv_await(r, rc, &err, f, then);
}

static void start(srv_request *r, srv_then *then)
{
    counting *c;
    if (SRV_STATE(r, c))
        get_stats(r, then);
}

/* With a token for some types, those are all there is. */
static void stats_got(srv_request *r, weir_code code, const weir_error *err)
{
    weir_stats *s = ((counting *)r->state)->stats;
    weir_buf    body = { 0 };
    if (srv_failed(r, code, err))
        return;
    if (!srv_own_stats(r, &s)) {
        weir_stats_free(s);
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    const char            *only = srv_caller_only_type(&r->who);
    const weir_type_stats *own = only ? find(s, only) : &s->all;
    weir_type_stats        none = { .type = only };
    weir__type_json_open(&body, own ? own : &none);
    if (!*r->who.types) {
        weir__buf_str(&body, ",\"last_id\":");
        weir__buf_uint(&body, s->last_id);
    }
    weir__buf_char(&body, ',');
    types_json(&body, r, s);
    weir__buf_char(&body, '}');
    weir_stats_free(s);
    srv_reply_json(r, 200, &body);
}

static void show_stats(srv_request *r)
{
    if (srv_allow_own(r, WEIR_ROLE_READ))
        start(r, stats_got);
}

static void types_got(srv_request *r, weir_code code, const weir_error *err)
{
    weir_stats *s = ((counting *)r->state)->stats;
    weir_buf    body = { 0 };
    if (srv_failed(r, code, err))
        return;
    weir__buf_char(&body, '{');
    types_json(&body, r, s);
    weir__buf_char(&body, '}');
    weir_stats_free(s);
    srv_reply_json(r, 200, &body);
}

static void show_types(srv_request *r)
{
    if (srv_allow_own(r, WEIR_ROLE_READ))
        start(r, types_got);
}

static void no_type(srv_request *r)
{
    srv_reply_fail(r, WEIR_ENOENT, NULL, "there is no type \"%.128s\"", r->arg[0]);
}

static void type_got(srv_request *r, weir_code code, const weir_error *err)
{
    weir_stats *s = ((counting *)r->state)->stats;
    weir_buf    body = { 0 };
    if (srv_failed(r, code, err))
        return;
    const weir_type_stats *t = find(s, r->arg[0]);
    if (t)
        weir__type_json(&body, t);
    weir_stats_free(s);
    if (t)
        srv_reply_json(r, 200, &body);
    else
        no_type(r);
}

/* Types that the token may not see are left out. */
static void show_type(srv_request *r)
{
    if (!srv_allow_own(r, WEIR_ROLE_READ))
        return;
    if (srv_caller_lacks(&r->who, r->arg[0]))
        no_type(r);
    else
        start(r, type_got);
}

/* ---- PATCH /v1/types/{type} ---- */

static const weir_field keep_fields[] = {
    WEIR_FIELD("age", weir__as_ms, offsetof(weir_keep, age_ms)),
    WEIR_FIELD("count", weir__as_int, offsetof(weir_keep, count), .min = 0, .max = INT64_MAX),
    { 0 }
};
static const weir_field settings_fields[] = {
    WEIR_FIELD("keep_complete", weir__as_object, offsetof(weir_settings, keep_complete),
               .fields = keep_fields),
    WEIR_FIELD("keep_failed", weir__as_object, offsetof(weir_settings, keep_failed),
               .fields = keep_fields),
    WEIR_FIELD("search", weir__as_bool, offsetof(weir_settings, search)),
    { 0 }
};

static void configured(srv_request *r, weir_code code, const weir_error *err)
{
    if (!srv_failed(r, code, err))
        get_stats(r, type_got);
}

/* In JSON, a limit of 0 is none; without any it is for ever. */
static void read_limits(weir_keep *k)
{
    if (!k->age_ms && !k->count)
        k->age_ms = WEIR_FOREVER;
}

/* The body is read over the settings that are there, so that only what is given changes. */
static void settings_got(srv_request *r, weir_code code, const weir_error *err)
{
    counting    *c = r->state;
    weir_error   why = { 0 };
    weir_future *f = NULL;
    if (srv_failed(r, code, err))
        return;
    const weir_type_stats *t = find(c->stats, r->arg[0]);
    c->settings = t ? t->settings : c->stats->all.settings;
    weir_stats_free(c->stats);
    if (!srv_body(r, settings_fields, &c->settings))
        return;
    read_limits(&c->settings.keep_complete);
    read_limits(&c->settings.keep_failed);
    weir_code rc = weir_configure_async(srv_queue(r), r->arg[0], &c->settings, &f, &why);
    srv_await(r, rc, &why, f, configured);
}

static void patch_type(srv_request *r)
{
    weir_settings first = { 0 };
    if (srv_allow(r, WEIR_ROLE_ADMIN, r->arg[0]) && srv_body(r, settings_fields, &first))
        start(r, settings_got);
}

/* ---- POST /v1/types/{type}/pause, /resume ---- */

static void reply_paused(srv_request *r, bool paused)
{
    weir_buf body = { 0 };
    weir__buf_str(&body, "{\"type\":");
    weir__json_string(&body, r->arg[0], strlen(r->arg[0]));
    weir__buf_str(&body, paused ? ",\"paused\":true}" : ",\"paused\":false}");
    srv_reply_json(r, 200, &body);
}

static void paused(srv_request *r, weir_code code, const weir_error *err)
{
    if (!srv_failed(r, code, err))
        reply_paused(r, true);
}

static void resumed(srv_request *r, weir_code code, const weir_error *err)
{
    if (!srv_failed(r, code, err))
        reply_paused(r, false);
}

static void pause_type(srv_request *r)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    if (!srv_allow(r, WEIR_ROLE_ADMIN, r->arg[0]))
        return;
    weir_code rc = weir_pause_async(srv_queue(r), r->arg[0], &f, &err);
    srv_await(r, rc, &err, f, paused);
}

static void resume_type(srv_request *r)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    if (!srv_allow(r, WEIR_ROLE_ADMIN, r->arg[0]))
        return;
    weir_code rc = weir_resume_async(srv_queue(r), r->arg[0], &f, &err);
    srv_await(r, rc, &err, f, resumed);
}

/* ---- routes ---- */

const srv_route srv_types_routes[] = {
    { "GET", "/v1/stats", WEIR_ROLE_READ, show_stats, 0, NULL, 0,
      "How many jobs there are, of all types and of each", NULL, "Stats", 200 },
    { "GET", "/v1/types", WEIR_ROLE_READ, show_types, 0, NULL, 0, "All types", NULL, "Types", 200 },
    { "GET", "/v1/types/{type}", WEIR_ROLE_READ, show_type, 0, NULL, 0,
      "One type; * is what holds for all", NULL, "Type", 200 },
    { "PATCH", "/v1/types/{type}", WEIR_ROLE_ADMIN, patch_type, SRV_MAX_SMALL_BODY, NULL, 0,
      "Change settings of a type: how long finished jobs are kept, and search", "TypeSettings",
      "Type", 200 },
    { "POST", "/v1/types/{type}/pause", WEIR_ROLE_ADMIN, pause_type, 0, NULL, 0,
      "Let no worker take jobs of a type", NULL, "TypePaused", 200 },
    { "POST", "/v1/types/{type}/resume", WEIR_ROLE_ADMIN, resume_type, 0, NULL, 0,
      "Let workers take jobs of a type again", NULL, "TypePaused", 200 },
    { 0 }
};
