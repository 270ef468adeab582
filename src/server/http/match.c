/* match.c - from method and path to the route that serves them. */
#include <stdio.h>
#include <string.h>

#include "server/http/inner.h"

/* Does a segment match a part of a pattern: "jobs", "{id}", "{from}..{to}"? Arguments go to *arg.
 * A segment that is cut in two for that goes to *cut. */
static bool match_segment(const char *pattern, size_t len, char *segment, const char ***arg,
                          char **cut)
{
    if (*pattern != '{')
        return strlen(segment) == len && !memcmp(pattern, segment, len);
    if (!*segment)
        return false;
    *(*arg)++ = segment;
    if (!memmem(pattern, len, "}..{", 4))
        return true;
    *cut = strstr(segment, "..");
    if (!*cut || *cut == segment || !(*cut)[2])
        return false;
    *(*arg)++ = *cut + 2;
    return true;
}

static bool match_path(const char *pattern, char **segments, size_t n, const char **args,
                       char **cut)
{
    size_t parts = 0;
    *cut = NULL;
    for (const char *c = pattern; *c; c++)
        parts += *c == '/';
    if (parts != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        const char *part = pattern + 1;
        size_t      len = strcspn(part, "/");
        if (!match_segment(part, len, segments[i], &args, cut))
            return false;
        pattern = part + len;
    }
    return true;
}

/* The routes of the other API are not there. */
bool srv_route_serves(const srv_route *route, srv_api api)
{
    unsigned only = route->flags & (SRV_KUE | SRV_VERTX);
    return !only || only & (api == SRV_API_KUE ? SRV_KUE : SRV_VERTX);
}

static bool same_method(const srv_route *route, const srv_exchange *x)
{
    return !strcmp(route->method, x->r.method) || (x->head_only && !strcmp(route->method, "GET"));
}

static void allow(char *allowed, size_t size, const char *method)
{
    size_t used = strlen(allowed);
    if (!strstr(allowed, method))
        snprintf(allowed + used, size - used, "%s%s", used ? ", " : "", method);
}

/* A browser, which shows a page rather than JSON. Programs get JSON. */
static bool wants_page(const srv_exchange *x)
{
    const char *accepts = srv_header(&x->r, "Accept");
    return (x->head_only || !strcmp(x->r.method, "GET")) && accepts &&
           strstr(accepts, "text/html") && strncmp(x->r.path, "/v1/", 4) != 0 &&
           strncmp(x->r.path, "/assets/", 8) != 0;
}

bool srv_route_missing(srv_exchange *x)
{
    if (!x->r.path || !wants_page(x))
        return false;
    x->r.route = &srv_missing_page;
    return true;
}

int srv_route_find(srv_exchange *x, char **segments, size_t n, char *allowed, size_t size)
{
    char *cut;
    *allowed = '\0';
    for (size_t t = 0; n <= SRV_MAX_SEGMENTS && srv_routes[t]; t++)
        for (const srv_route *route = srv_routes[t]; route->method; route++) {
            if (!srv_route_serves(route, x->r.server->opt.api) ||
                !match_path(route->path, segments, n, x->r.arg, &cut))
                continue;
            if (same_method(route, x)) {
                x->r.route = route;
                if (cut)
                    *cut = '\0';
                return 0;
            }
            allow(allowed, size, route->method);
        }
    if (*allowed)
        return 405;
    return srv_route_missing(x) ? 0 : 404;
}

/* unknown parameter "wiat"; this route accepts: wait */
static void say_unknown(const srv_request *r, const char *name, char *why, size_t size)
{
    const srv_param *p = r->route->query;
    size_t n = (size_t)snprintf(why, size, "unknown parameter \"%.60s\"; this route accepts%s",
                                name, p ? ": " : " none");
    for (; p && p->name && n < size; p++)
        n += (size_t)snprintf(why + n, size - n, "%s%s", p->name, p[1].name ? ", " : "");
}

const char *srv_query_unknown(const srv_request *r, char *why, size_t size)
{
    if (r->route->flags & SRV_ANY_QUERY)
        return NULL;
    for (size_t i = 0; i < r->n_query; i++) {
        const srv_param *p = r->route->query;
        while (p && p->name && strcmp(p->name, r->query[i].name) != 0)
            p++;
        if (!p || !p->name) {
            say_unknown(r, r->query[i].name, why, size);
            return r->query[i].name;
        }
    }
    return NULL;
}
