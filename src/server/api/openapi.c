/* openapi.c - GET /v1/openapi.json: what the routes are, as an OpenAPI 3.1 document. It is made
 * from the tables that serve; only the shapes of bodies and answers, which no table has, are
 * written beside them (schemas.json). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "schemas.json.h"
#include "server/http/inner.h"

static void text(weir_buf *b, const char *before, const char *value)
{
    weir__buf_str(b, before);
    weir__json_string(b, value, strlen(value));
}

static void ref(weir_buf *b, const char *schema)
{
    weir__buf_printf(b, "{\"$ref\":\"#/components/schemas/%s\"}", schema);
}

static bool documented(const srv_route *r, srv_api api)
{
    return !(r->flags & SRV_PLAIN) && srv_route_serves(r, api);
}

/* "get_v1_jobs_id_log" */
static void operation_id(weir_buf *b, const srv_route *r)
{
    weir__buf_str(b, "\"operationId\":\"");
    for (const char *p = r->method; *p; p++)
        weir__buf_char(b, (char)tolower((unsigned char)*p));
    bool gap = true;
    for (const char *p = r->path; *p; p++) {
        if (!isalnum((unsigned char)*p)) {
            gap = true;
            continue;
        }
        if (gap)
            weir__buf_char(b, '_');
        weir__buf_char(b, *p);
        gap = false;
    }
    weir__buf_char(b, '"');
}

static void list_of(weir_buf *b, const char *schema)
{
    weir__buf_str(b, "{\"type\":\"array\",\"items\":");
    ref(b, schema);
    weir__buf_char(b, '}');
}

static void query_schema(weir_buf *b, srv_param_kind kind)
{
    static const char *const types[] = {
        [SRV_P_TEXT] = "{\"type\":\"string\"}", [SRV_P_INT] = "{\"type\":\"integer\"}",
        [SRV_P_BOOL] = "{\"type\":\"boolean\"}",
        [SRV_P_LIST] = "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"
    };
    if (kind == SRV_P_MS)
        ref(b, "Duration");
    else if (kind == SRV_P_STATES)
        list_of(b, "State");
    else if (kind == SRV_P_PRIORITY)
        ref(b, "Priority");
    else
        weir__buf_str(b, types[kind]);
}

static void parameters(weir_buf *b, const srv_route *r)
{
    const char *comma = "";
    weir__buf_str(b, ",\"parameters\":[");
    for (const char *p = r->path; (p = strchr(p, '{')); comma = ",") {
        size_t len = strcspn(++p, "}");
        bool   id = len == 2 && memcmp(p, "id", 2) == 0;
        weir__buf_printf(b, "%s{\"in\":\"path\",\"name\":\"%.*s\",\"required\":true,\"schema\":",
                         comma, (int)len, p);
        if (id)
            ref(b, "Id");
        else
            query_schema(b, SRV_P_TEXT);
        weir__buf_char(b, '}');
    }
    for (const srv_param *q = r->query; q && q->name; q++, comma = ",") {
        weir__buf_printf(b, "%s{\"in\":\"query\",\"name\":\"%s\",\"schema\":", comma, q->name);
        query_schema(b, q->kind);
        if (q->kind == SRV_P_STATES || q->kind == SRV_P_LIST)
            weir__buf_str(b, ",\"explode\":false");           /* with commas between */
        text(b, ",\"description\":", q->about);
        weir__buf_char(b, '}');
    }
    weir__buf_char(b, ']');
}

static const char *media_type(const char *schema)
{
    static const struct { const char *schema, *type; } others[] = {
        { "Events", "text/event-stream" }, { "Items", "text/event-stream" },
        { "Metrics", "text/plain" }
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(schema, others[i].schema) == 0)
            return others[i].type;
    return "application/json";
}

static void content(weir_buf *b, const char *schema)
{
    weir__buf_printf(b, ",\"content\":{\"%s\":{\"schema\":", media_type(schema));
    ref(b, schema);
    weir__buf_str(b, "}}");
}

static void operation(weir_buf *b, const srv_route *r)
{
    char roles[64];
    for (const char *p = r->method; *p; p++)
        weir__buf_printf(b, "%s%c", p == r->method ? "\"" : "", tolower((unsigned char)*p));
    weir__buf_str(b, "\":{");
    operation_id(b, r);
    text(b, ",\"summary\":", r->about);
    if (r->flags & SRV_OPEN)
        weir__buf_str(b, ",\"security\":[]");
    else
        weir__buf_printf(b, ",\"description\":\"Role: %s\"",
                         srv_roles_text(r->roles, roles, sizeof roles));
    parameters(b, r);
    if (r->body) {
        weir__buf_str(b, ",\"requestBody\":{\"required\":true");
        content(b, r->body);
        weir__buf_char(b, '}');
    }
    weir__buf_printf(b, ",\"responses\":{\"%d\":{\"description\":\"%s\"", r->status,
                     srv_status_text(r->status));
    if (r->answer)
        content(b, r->answer);
    weir__buf_str(b, "},\"4XX\":{\"$ref\":\"#/components/responses/Refused\"},"
                     "\"5XX\":{\"$ref\":\"#/components/responses/Failed\"}}}");
}

/* The first route that is documented with this path. */
static const srv_route *first_of(const char *path, srv_api api)
{
    for (const srv_route *const *t = srv_routes; *t; t++)
        for (const srv_route *r = *t; r->method; r++)
            if (documented(r, api) && strcmp(r->path, path) == 0)
                return r;
    return NULL;
}

/* All methods of a path. */
static void path_item(weir_buf *b, const char *path, srv_api api)
{
    const char *comma = "";
    text(b, "", path);
    weir__buf_str(b, ":{");
    for (const srv_route *const *t = srv_routes; *t; t++)
        for (const srv_route *r = *t; r->method; r++)
            if (documented(r, api) && strcmp(r->path, path) == 0) {
                weir__buf_str(b, comma);
                operation(b, r);
                comma = ",";
            }
    weir__buf_char(b, '}');
}

weir_code srv_openapi_create(char **out, srv_api api, weir_error *err)
{
    weir_buf    b = { 0 };
    const char *comma = "";
    weir__buf_printf(&b, "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"weir\",\"version\":\"%s\","
                     "\"description\":\"A job queue. Members and parameters that are not listed "
                     "are refused by name. While a server on loopback has no token, none is "
                     "asked for.\"},\"security\":[{\"token\":[]}],\"paths\":{", weir_version());
    for (const srv_route *const *t = srv_routes; *t; t++)
        for (const srv_route *r = *t; r->method; r++)
            if (r == first_of(r->path, api)) {
                weir__buf_str(&b, comma);
                path_item(&b, r->path, api);
                comma = ",";
            }
    weir__buf_str(&b, "},\"components\":{\"securitySchemes\":{\"token\":{\"type\":\"http\","
                      "\"scheme\":\"bearer\"}},\"responses\":{\"Refused\":{\"description\":"
                      "\"It was not done\"");
    content(&b, "Error");
    weir__buf_str(&b, "},\"Failed\":{\"description\":\"Not now; with 503, Retry-After says when "
                      "to retry\"");
    content(&b, "Error");
    weir__buf_str(&b, "}},\"schemas\":" SCHEMAS_JSON "}}\n");
    *out = weir__buf_steal(&b, NULL);
    return *out ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "openapi.json: out of memory");
}

static void get_openapi(srv_request *r)
{
    weir_buf body = { 0 };
    weir__buf_str(&body, r->server->openapi);
    srv_reply_json(r, 200, &body);
}

const srv_route srv_openapi_routes[] = {
    { "GET", "/v1/openapi.json", 0, get_openapi, 0, NULL, SRV_OPEN,
      "This document", NULL, "OpenApi", 200 },
    { 0 }
};
