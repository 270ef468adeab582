/* receive.c - a request from its head to the end of its body: its route, its caller, and its share
 * of the server's memory. A request that is refused is refused here, before its body is taken. */
#include <stdio.h>
#include <string.h>

#include "server/http/inner.h"

int srv_refuse(srv_conn *c, int status, const char *why)
{
    if (!c->refused) {
        c->refused = status;
        snprintf(c->why, sizeof c->why, "%s", why);
    }
    return -1;
}

/* ---- the head ---- */

/* A header that a request may have at most once. */
static int check_once(srv_conn *c, const char *name)
{
    size_t count;
    char   why[120];
    srv_field_value(c->now, name, &count);
    if (count < 2)
        return 0;
    snprintf(why, sizeof why, "the header %s was sent %zu times; at most one is allowed", name,
             count);
    return srv_refuse(c, 400, why);
}

static int check_head(srv_conn *c)
{
    static const char *const once[] = { "Authorization", "Content-Type", "Origin",
                                        "Idempotency-Key", "Last-Event-ID" };
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        if (check_once(c, once[i]))
            return -1;
    return 0;
}

/* A method that no route has gets another status than a method that this route lacks. */
static int check_method(srv_conn *c)
{
    static const char *const methods[] = { "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE",
                                           "OPTIONS" };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (!strcmp(c->now->r.method, methods[i]))
            return 0;
    c->now->keep_alive = false;
    return srv_refuse(c, 501, "the method is not supported");
}

static int find_route(srv_conn *c)
{
    srv_exchange *x = c->now;
    char         *segments[SRV_MAX_SEGMENTS], allowed[80], why[WEIR_ERROR_MAX];
    size_t        n;
    const char   *bad;
    int           status = srv_url_read(x, segments, &n, &bad);
    if (status == 400 && srv_route_missing(x))
        return 0;
    if (status) {
        x->keep_alive = false;
        return srv_refuse(c, status, bad);
    }
    status = srv_route_find(x, segments, n, allowed, sizeof allowed);
    if (status == 405 && srv_preflight(x, allowed))
        return 0;
    if (status == 405) {
        srv_reply_header(&x->r, "Allow", allowed);
        snprintf(why, sizeof why, "%s is not possible here; possible: %s", x->r.method, allowed);
        return srv_refuse(c, 405, why);
    }
    if (status) {
        snprintf(why, sizeof why,
                 "unknown path %.100s; /v1/openapi.json lists the paths", x->r.path);
        return srv_refuse(c, status, why);
    }
    x->wrong = srv_query_unknown(&x->r, why, sizeof why);
    return x->wrong ? srv_refuse(c, 400, why) : 0;
}

/* ---- the body ---- */

static int reserve(srv_conn *c, size_t more)
{
    srv_exchange *x = c->now;
    if (x->body.len + more > x->r.route->max_body) {
        char why[120];
        snprintf(why, sizeof why, "the body is larger than the %zu bytes that are allowed here",
                 x->r.route->max_body);
        return srv_refuse(c, 413, why);
    }
    x->reserved += more;
    int over = srv_share_body(c, more);
    /* a few large and slow requests do not keep out small ones */
    if (atomic_fetch_add(&c->server->bodies, more) + more > c->server->opt.limits.bodies &&
        x->reserved > SRV_FREE_BODY)
        return srv_refuse(c, 503, "too many large requests at once (SRV_MAX_BODIES); try again "
                                  "later");
    return over;
}

/* "application/json", with or without parameters behind it; names have no case. */
static bool is_json(const char *type)
{
    static const char json[] = "application/json";
    if (!type || strncasecmp(type, json, sizeof json - 1) != 0)
        return false;
    type += sizeof json - 1;
    type += strspn(type, " \t");
    return !*type || *type == ';';
}

static int check_body(srv_conn *c, bool has_body)
{
    srv_exchange *x = c->now;
    if (!has_body || !x->r.route)
        return 0;
    if (!x->r.route->max_body)
        return srv_refuse(c, 413, "a body is not allowed here");
    if (!(x->r.route->flags & SRV_ANY_TYPE) && !is_json(srv_header(&x->r, "Content-Type")))
        return srv_refuse(c, 415, "the body must be JSON, and be said to be: "
                                  "Content-Type: application/json (with curl: --json)");
    return reserve(c, (size_t)x->head.length);
}

/* HTTP/1.0 has no 100, and a client that speaks it is not answered with one. */
static int check_expect(srv_conn *c)
{
    const char *expect = srv_header(&c->now->r, "Expect");
    if (!expect || !c->now->head.minor)
        return 0;
    if (strcasecmp(expect, "100-continue") != 0)
        return srv_refuse(c, 417, "only 100-continue can be expected");
    evbuffer_add(c->out, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    srv_conn_flush(c);
    return 0;
}

int srv_receive_head(srv_conn *c)
{
    srv_exchange *x = c->now;
    bool          has_body = x->head.chunked || x->head.length;
    x->keep_alive = x->head.keep_alive && !c->thread->draining;
    x->r.method = x->head.text.data;
    x->head_only = !strcmp(x->r.method, "HEAD");
    if (!check_head(c) && !check_method(c) && !find_route(c) &&
        srv_auth(x, c->why, sizeof c->why, &c->refused))
        srv_share_admit(c);
    check_body(c, has_body);
    if (c->refused)
        return has_body ? -1 : 0;       /* without a body to come, the connection goes on */
    if (has_body && check_expect(c))
        return -1;
    if (x->reserved && !weir__buf_reserve(&x->body, x->reserved))
        return srv_refuse(c, 503, "out of memory");
    c->deadline_ms = srv_loop_ms() +
                     c->server->opt.limits.body_ms * (1 + (int64_t)(x->reserved >> 20));
    return 0;
}

int srv_receive_body(srv_conn *c, const char *bytes, size_t n)
{
    srv_exchange *x = c->now;
    if (x->body.len + n > x->reserved && reserve(c, x->body.len + n - x->reserved))
        return -1;
    weir__buf_add(&x->body, bytes, n);
    return x->body.failed ? srv_refuse(c, 503, "out of memory") : 0;
}
