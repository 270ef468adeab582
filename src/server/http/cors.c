/* cors.c - what browsers ask before a page of another origin may call (CORS). Only origins that
 * were configured get the answer they need. */
#include <string.h>

#include "server/http/inner.h"

static void answer_preflight(srv_request *r)
{
    if (!srv_guard_shares(r->server->guard, srv_header(r, "Origin"))) {
        srv_reply_status(r, 403, "forbidden", "a page of another site may not call this server; "
                         "weir serve --origin ORIGIN permits the pages of a site");
        return;
    }
    srv_reply_header(r, "Access-Control-Allow-Headers",
                     "Authorization, Content-Type, Idempotency-Key, Last-Event-ID");
    srv_reply_header(r, "Access-Control-Max-Age", "600");
    srv_reply_empty(r, 204);
}

static const srv_route preflight_route = {
    .method = "OPTIONS", .handle = answer_preflight, .flags = SRV_OPEN, .status = 204
};

bool srv_preflight(srv_exchange *x, const char *allowed)
{
    srv_request *r = &x->r;
    if (strcmp(r->method, "OPTIONS") != 0 || !srv_header(r, "Origin") ||
        !srv_header(r, "Access-Control-Request-Method"))
        return false;
    r->route = &preflight_route;
    srv_reply_header(r, "Access-Control-Allow-Methods", allowed);
    return true;
}

void srv_share_with_page(srv_exchange *x)
{
    const char *origin = srv_header(&x->r, "Origin");
    if (!srv_guard_shares(x->r.server->guard, origin))
        return;
    srv_reply_header(&x->r, "Access-Control-Allow-Origin", origin);
    srv_reply_header(&x->r, "Vary", "Origin");
}
