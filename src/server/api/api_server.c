/* api_server.c - the server itself, and the health of what it serves. */
#include <string.h>

#include "server/api/api.h"
#include "server/http/body.h"
#include "server/http/inner.h"

static void text(weir_buf *out, const char *name, const char *value)
{
    weir__buf_str(out, name);
    if (value)
        weir__json_string(out, value, strlen(value));
    else
        weir__buf_str(out, "null");
}

/* ---- GET /v1/server ---- */

static void roles_json(weir_buf *out, unsigned bits)
{
    const char *between = "";
    weir__buf_str(out, ",\"roles\":[");
    for (const srv_role *role = srv_role_table; role->name; role++) {
        if (!(bits & role->bit))
            continue;
        weir__buf_str(out, between);
        text(out, "", role->name);
        between = ",";
    }
    weir__buf_char(out, ']');
}

/* null: all types. */
static void types_json(weir_buf *out, const srv_caller *who)
{
    weir__buf_str(out, *who->types ? ",\"types\":[" : ",\"types\":null");
    for (const char *t = who->types; *t; t = srv_next_type(t))
        text(out, t == who->types ? "" : ",", t);
    weir__buf_str(out, *who->types ? "]" : "");
}

static void show_server(srv_request *r)
{
    const srv_options *opt = srv_settings(r);
    weir_buf           body = { 0 };
    if (!srv_allow_own(r, WEIR_ROLE_READ))
        return;
    text(&body, "{\"version\":", weir_version());
    text(&body, ",\"title\":", opt->title ? opt->title : "weir");
    if (opt->demo)
        text(&body, ",\"demo\":", opt->demo);
    text(&body, ",\"store\":", opt->store_url);
    text(&body, ",\"api\":", opt->api == SRV_API_KUE ? "kue" : "vertx");
    weir__buf_str(&body, ",\"started_at\":");
    weir__buf_int(&body, r->server->started_at);
    weir__buf_str(&body, ",\"now\":");
    weir__buf_int(&body, weir_now(srv_queue(r)));
    text(&body, ",\"you\":{\"name\":", *r->who.name ? r->who.name : NULL);
    roles_json(&body, r->who.roles);
    types_json(&body, &r->who);
    if (r->who.expires_at) {
        weir__buf_str(&body, ",\"expires_at\":");
        weir__buf_int(&body, r->who.expires_at);
    }
    weir__buf_str(&body, "}}");
    srv_reply_json(r, 200, &body);
}

/* ---- POST /v1/check ---- */

typedef struct checking {
    bool         mend;
    weir_report *report;
} checking;

static const weir_field check_fields[] = {
    WEIR_FIELD("mend", weir__as_bool, offsetof(checking, mend)),
    { 0 }
};

static void checked(srv_request *r, weir_code code, const weir_error *err)
{
    weir_report *report = ((checking *)r->state)->report;
    weir_buf     body = { 0 };
    if (srv_failed(r, code, err))
        return;
    weir__buf_str(&body, "{\"lines\":[");
    for (size_t i = 0; i < report->n; i++)
        text(&body, i ? "," : "", report->line[i]);
    weir__buf_str(&body, "],\"mended\":");
    weir__buf_uint(&body, report->mended);
    weir__buf_str(&body, ",\"jobs\":");
    weir__buf_uint(&body, report->jobs);
    weir__buf_char(&body, '}');
    weir_report_free(report);
    srv_reply_json(r, 200, &body);
}

static void check_store(srv_request *r)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    checking    *c;
    if (!srv_allow(r, WEIR_ROLE_ADMIN, NULL) || !SRV_STATE(r, c) || !srv_body(r, check_fields, c))
        return;
    weir_code rc = weir_check_async(srv_queue(r), c->mend, &c->report, &f, &err);
    srv_await(r, rc, &err, f, checked);
}

const srv_route srv_server_routes[] = {
    { "GET", "/v1/server", WEIR_ROLE_READ, show_server, 0, NULL, 0,
      "What serves, and who you are", NULL,
      "Server", 200 },
    { "POST", "/v1/check", WEIR_ROLE_ADMIN, check_store, SRV_MAX_SMALL_BODY, NULL, 0,
      "Compare all that is derived with the jobs themselves; other calls wait meanwhile", "Check",
      "Report", 200 },
    { 0 }
};
