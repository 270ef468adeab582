/* ui.c - serves the page. Every address that the page can show is answered with the page itself,
 * which then reads the address; its parts have names with a hash and never change. No token is
 * needed for any of it: there are no jobs in it. */
#include "server/api/ui.h"

#include <string.h>

#include "server/http/request.h"

static const char page_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static const srv_asset *find(const char *path)
{
    const srv_asset *a = srv_assets;
    while (a->path && strcmp(a->path, path) != 0)
        a++;
    return a->path ? a : NULL;
}

static void reply_asset(srv_request *r, int status, const srv_asset *a, const char *keep)
{
    const char *accepts = srv_header(r, "Accept-Encoding");
    bool        gzip = accepts && strstr(accepts, "gzip");
    weir_buf    body = { 0 };
    weir__buf_add(&body, gzip ? a->gzip : a->bytes, gzip ? a->gzip_len : a->len);
    srv_reply_header(r, "Cache-Control", keep);
    srv_reply_header(r, "Vary", "Accept-Encoding");
    srv_reply_header(r, "Content-Security-Policy", page_policy);
    if (gzip)
        srv_reply_header(r, "Content-Encoding", "gzip");
    srv_reply(r, status, a->type, &body);
}

static void get_page(srv_request *r)
{
    reply_asset(r, 200, find("/"), "no-cache");
}

/* An address without a route, for a browser: the page says so, and how to go on. */
static void get_missing(srv_request *r)
{
    reply_asset(r, 404, find("/"), "no-cache");
}

static void get_asset(srv_request *r)
{
    const srv_asset *a = find(r->path);
    if (a)
        reply_asset(r, 200, a, "public, max-age=31536000, immutable");
    else
        srv_reply_status(r, 404, "http", "there is no %.100s", r->path);
}

#define PAGE(path) { "GET", path, 0, get_page, 0, NULL, SRV_OPEN | SRV_PLAIN | SRV_ANY_QUERY, \
                     "The page", NULL, NULL, 200 }

const srv_route srv_ui_routes[] = {
    PAGE("/"),
    PAGE("/inactive"),
    PAGE("/active"),
    PAGE("/delayed"),
    PAGE("/failed"),
    PAGE("/complete"),
    PAGE("/cancelled"),
    PAGE("/jobs"),
    PAGE("/jobs/{id}"),
    PAGE("/workers"),
    PAGE("/schedules"),
    PAGE("/tasks"),
    PAGE("/tasks/{id}"),
    PAGE("/bus"),
    PAGE("/errors"),
    PAGE("/types"),
    PAGE("/types/{type}"),
    PAGE("/audit"),
    PAGE("/settings"),
    { "GET", "/assets/{name}", 0, get_asset, 0, NULL, SRV_OPEN | SRV_PLAIN, "A part of the page",
      NULL, NULL, 200 },
    { 0 }
};

const srv_route srv_missing_page = {
    "GET", "/{address}", 0, get_missing, 0, NULL, SRV_OPEN | SRV_PLAIN | SRV_ANY_QUERY,
    "The page for unknown addresses", NULL, NULL, 404
};
