/* api_health.c - is the server there, and can it work? */
#include "server/http/request.h"

enum { READY_MS = 2000 };       /* the store must answer within this time */

static void get_health(srv_request *r)
{
    weir_buf body = { 0 };
    weir__buf_str(&body, "{\"ok\":true}");
    srv_reply_json(r, 200, &body);
}

typedef struct look {
    bool too_late;
} look;

static void store_answered(srv_request *r, weir_code code, const weir_error *err)
{
    const look *l = r->state;
    weir_buf    body = { 0 };
    if (l->too_late) {
        srv_reply_fail(r, WEIR_EUNAVAIL, NULL, "the store has not answered within %d ms", READY_MS);
        return;
    }
    if (code && !r->who.roles) {        /* the reason may name the store: not for strangers */
        srv_reply_status(r, 503, weir_code_name(code), "the store is not ready (a token shows "
                         "why)");
        return;
    }
    if (code) {
        srv_reply_status(r, 503, weir_code_name(code), "%s", err->msg);
        return;
    }
    weir__buf_str(&body, "{\"ok\":true}");
    srv_reply_json(r, 200, &body);
}

static void time_is_up(srv_request *r)
{
    ((look *)r->state)->too_late = true;
    srv_give_up(r);             /* store_answered() runs soon */
}

static void get_ready(srv_request *r)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    look        *l = r->state = srv_alloc(r, sizeof *l);
    if (!l) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    weir_code rc = weir_ready_async(srv_queue(r), &f, &err);
    if (!rc)
        srv_after(r, READY_MS, time_is_up);
    srv_await(r, rc, &err, f, store_answered);
}

const srv_route srv_health_routes[] = {
    { "GET", "/healthz", 0, get_health, 0, NULL, SRV_OPEN,
      "The process is alive and answers", NULL, "Health", 200 },
    { "GET", "/readyz", 0, get_ready, 0, NULL, SRV_OPEN,
      "The store answers and can keep jobs; 503 when not, and why for callers with a token", NULL,
      "Health", 200 },
    { 0 }
};
