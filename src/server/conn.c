/* conn.c - a connection: reads requests one after the other, has each answered, writes.
 *
 * One request at a time: bytes of the next wait in `in` (and, beyond SRV_READ_SIZE of them, in the
 * kernel) until this one is answered, and until the client has taken most of the answers before.
 * Whatever ends a connection only marks it (conn_end()); it is
 * closed from on_readable(), when nothing else is on the stack. Times are checked by a sweep once a
 * second, so that a request sets no timer. */
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/inner.h"

enum { MAX_READS = 16 };        /* of a connection, before others have their turn */

/* ---- the end ---- */

static void conn_end(srv_conn *c)
{
    c->dead = true;
    event_active(c->readable, EV_READ, 0);
}

static void conn_close(srv_conn *c)
{
    srv_exchange *x = c->now;
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    if (c->readable)
        event_free(c->readable);
    if (c->writable)
        event_free(c->writable);
    if (c->ssl)
        SSL_free(c->ssl);
    if (c->out)
        evbuffer_free(c->out);
    close(c->fd);
    atomic_fetch_sub(&c->server->n_conns, 1);
    weir__buf_fini(&c->in);
    free(c);
    if (!x)
        return;
    x->r.conn = NULL;
    if (!x->handled)
        srv_exchange_free(x);
    else if (x->r.hurry)
        x->r.hurry(&x->r);
}

/* All is written, and the last answer was the last. A client whose request was not read to its end
 * may still be sending it: closing at once would take the answer from it. */
static void conn_finish(srv_conn *c)
{
    if (c->ssl && !c->lingering)
        SSL_shutdown(c->ssl);
    if (c->ended || !c->refused || c->lingering) {
        conn_end(c);
        return;
    }
    shutdown(c->fd, SHUT_WR);
    c->lingering = true;
    c->deadline_ms = srv_loop_ms() + SRV_LINGER_MS;
}

/* ---- bytes ---- */

/* As read(): bytes, 0 at the end, -1 with errno EAGAIN when there are none now. */
static ssize_t wire_read(srv_conn *c, char *bytes, size_t size)
{
    if (!c->ssl)
        return read(c->fd, bytes, size);
    ERR_clear_error();
    int n = SSL_read(c->ssl, bytes, (int)size);
    if (n > 0)
        return n;
    switch (SSL_get_error(c->ssl, n)) {
    case SSL_ERROR_WANT_WRITE:
        event_add(c->writable, NULL);   /* fall through */
    case SSL_ERROR_WANT_READ:
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        errno = ECONNRESET;
        return -1;
    }
}

static ssize_t wire_write(srv_conn *c)
{
    if (!c->ssl)
        return evbuffer_write(c->out, c->fd);
    struct evbuffer_iovec piece;
    if (evbuffer_peek(c->out, -1, NULL, &piece, 1) < 1)
        return 0;
    ERR_clear_error();
    int n = SSL_write(c->ssl, piece.iov_base, (int)(piece.iov_len < INT32_MAX ? piece.iov_len
                                                                             : INT32_MAX));
    if (n > 0) {
        evbuffer_drain(c->out, (size_t)n);
        return n;
    }
    int why = SSL_get_error(c->ssl, n);
    errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : ECONNRESET;
    return -1;
}

void srv_conn_flush(srv_conn *c)
{
    while (!c->dead && evbuffer_get_length(c->out)) {
        ssize_t n = wire_write(c);
        if (n > 0) {
            c->stuck_ms = 0;
        } else if (n < 0 && errno == EAGAIN) {
            if (!c->stuck_ms)
                c->stuck_ms = srv_loop_ms();
            event_add(c->writable, NULL);
            return;
        } else if (n == 0 || errno != EINTR) {
            conn_end(c);
            return;
        }
    }
    if (!c->now)
        c->deadline_ms = srv_loop_ms() + c->server->opt.limits.idle_ms;
    if (c->closing && !c->dead)
        conn_finish(c);
}

/* ---- requests ---- */

/* This request is not wanted. The answer is for the parser: stop. */
static int refuse(srv_conn *c, int status, const char *why)
{
    if (!c->refused) {
        c->refused = status;
        snprintf(c->why, sizeof c->why, "%s", why);
    }
    return -1;
}

static int on_begin(http_parser *p)
{
    srv_conn *c = p->data;
    c->now = srv_exchange_create(c);
    c->reading = READ_TARGET;
    c->deadline_ms = srv_loop_ms() + c->server->opt.limits.head_ms;
    return c->now ? 0 : refuse(c, 503, "out of memory");
}

static int add_to_head(srv_conn *c, const char *bytes, size_t n)
{
    weir_buf *head = &c->now->head;
    if (head->len + n > SRV_MAX_HEAD)
        return refuse(c, 431, "the headers are larger than 16384 bytes (SRV_MAX_HEAD)");
    weir__buf_add(head, bytes, n);
    return head->failed ? refuse(c, 503, "out of memory") : 0;
}
_Static_assert(SRV_MAX_HEAD == 16384 && SRV_MAX_TARGET == 8192 && SRV_MAX_HEADERS == 100,
               "texts say so");

static int on_url(http_parser *p, const char *bytes, size_t n)
{
    srv_conn *c = p->data;
    if (c->now->head.len + n > SRV_MAX_TARGET)
        return refuse(c, 414, "the target is longer than 8192 bytes (SRV_MAX_TARGET)");
    return add_to_head(c, bytes, n);
}

/* The parser lets blanks through: "Content-Length : 5" is one thing here and another to a proxy. */
static bool is_name(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] <= ' ' || bytes[i] >= 0x7f)
            return false;
    return true;
}

static int on_name(http_parser *p, const char *bytes, size_t n)
{
    srv_conn     *c = p->data;
    srv_exchange *x = c->now;
    if (!is_name(bytes, n))
        return refuse(c, 400, "the name of a header has a character in it that is not allowed");
    if (c->reading == READ_BODY)        /* a trailer */
        return 0;
    if (c->reading != READ_NAME) {
        if (x->n_fields == SRV_MAX_HEADERS)
            return refuse(c, 431, "there are more than 100 headers (SRV_MAX_HEADERS)");
        c->reading = READ_NAME;
        if (add_to_head(c, "", 1))
            return -1;
        x->field[x->n_fields++].name = (uint32_t)x->head.len;
    }
    return add_to_head(c, bytes, n);
}

static int on_value(http_parser *p, const char *bytes, size_t n)
{
    srv_conn     *c = p->data;
    srv_exchange *x = c->now;
    if (c->reading == READ_BODY)
        return 0;
    if (c->reading != READ_VALUE) {
        c->reading = READ_VALUE;
        if (add_to_head(c, "", 1))
            return -1;
        x->field[x->n_fields - 1].value = (uint32_t)x->head.len;
    }
    return add_to_head(c, bytes, n);
}

static int reserve(srv_conn *c, size_t more)
{
    srv_exchange *x = c->now;
    if (x->body.len + more > x->r.route->max_body) {
        char why[120];
        snprintf(why, sizeof why, "the body is larger than the %zu bytes that are allowed here",
                 x->r.route->max_body);
        return refuse(c, 413, why);
    }
    x->reserved += more;
    /* a few that are large and slow do not keep out those that are small */
    if (atomic_fetch_add(&c->server->bodies, more) + more > c->server->opt.limits.bodies &&
        x->reserved > SRV_FREE_BODY)
        return refuse(c, 503, "too many large requests at once (SRV_MAX_BODIES): come again");
    return 0;
}

/* A header that may be there once at most. */
static int check_once(srv_conn *c, const char *name)
{
    size_t count;
    char   why[80];
    srv_field_value(c->now, name, &count);
    if (count < 2)
        return 0;
    snprintf(why, sizeof why, "the header %s is there %zu times", name, count);
    return refuse(c, 400, why);
}

static int check_head(srv_conn *c)
{
    srv_exchange *x = c->now;
    static const char *const once[] = { "Host", "Authorization", "Content-Type", "Origin",
                                        "Idempotency-Key", "Last-Event-ID" };
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        if (check_once(c, once[i]))
            return -1;
    if (!srv_header(&x->r, "Host") && c->parser.http_minor >= 1)
        return refuse(c, 400, "the header Host is missing");
    return 0;
}

static int find_route(srv_conn *c)
{
    srv_exchange *x = c->now;
    char         *segments[SRV_MAX_SEGMENTS], allowed[80], why[WEIR_ERROR_MAX];
    size_t        n;
    const char   *bad = srv_target_read(x, x->head.data, segments, &n);
    if (bad)
        return refuse(c, 400, bad);
    int status = srv_route_find(x, segments, n, allowed, sizeof allowed);
    if (status == 405 && srv_preflight(x, allowed))
        return 0;
    if (status == 405) {
        srv_reply_header(&x->r, "Allow", allowed);
        snprintf(why, sizeof why, "%s is not possible here; possible: %s", x->r.method, allowed);
        return refuse(c, 405, why);
    }
    if (status) {
        snprintf(why, sizeof why,
                 "there is nothing at %.100s; /v1/openapi.json lists what there is", x->r.path);
        return refuse(c, status, why);
    }
    x->wrong = srv_query_unknown(&x->r, why, sizeof why);
    return x->wrong ? refuse(c, 400, why) : 0;
}

static int check_body(srv_conn *c, bool *has_body)
{
    srv_exchange *x = c->now;
    bool          known = c->parser.content_length != ULLONG_MAX;
    *has_body = c->parser.flags & F_CHUNKED || (known && c->parser.content_length);
    if (!*has_body || !x->r.route)
        return 0;
    if (!x->r.route->max_body)
        return refuse(c, 413, "a body is not allowed here");
    const char *type = srv_header(&x->r, "Content-Type");
    if (!(x->r.route->flags & SRV_ANY_TYPE) && (!type || strncasecmp(type, "application/json", 16)))
        return refuse(c, 415, "the body must be JSON, and be said to be: "
                              "Content-Type: application/json (with curl: --json)");
    return known ? reserve(c, (size_t)c->parser.content_length) : 0;
}

static int on_head(http_parser *p)
{
    srv_conn     *c = p->data;
    srv_exchange *x = c->now;
    bool          has_body = false;
    p->upgrade = 0;         /* we do not; the request is good without */
    c->reading = READ_BODY;
    if (add_to_head(c, "", 1))
        return -1;
    x->keep_alive = http_should_keep_alive(p) && !c->lane->draining;
    x->head_only = p->method == HTTP_HEAD;
    x->r.method = http_method_str(p->method);
    if (p->http_major != 1)
        return refuse(c, 505, "this server speaks HTTP/1.1");
    if (!check_head(c) && !find_route(c))
        srv_auth(x, c->why, sizeof c->why, &c->refused);
    check_body(c, &has_body);
    if (c->refused)
        return has_body ? -1 : 0;       /* without a body to come, the connection goes on */
    const char *expect = srv_header(&x->r, "Expect");
    if (expect && has_body) {
        if (strcasecmp(expect, "100-continue") != 0)
            return refuse(c, 417, "only 100-continue can be expected");
        evbuffer_add(c->out, "HTTP/1.1 100 Continue\r\n\r\n", 25);
        srv_conn_flush(c);
    }
    if (has_body && x->reserved && !weir__buf_reserve(&x->body, x->reserved))
        return refuse(c, 503, "out of memory");
    c->deadline_ms = srv_loop_ms() +
                     c->server->opt.limits.body_ms * (1 + (int64_t)(x->reserved >> 20));
    return 0;
}

static int on_body(http_parser *p, const char *bytes, size_t n)
{
    srv_conn     *c = p->data;
    srv_exchange *x = c->now;
    if (x->body.len + n > x->reserved && reserve(c, x->body.len + n - x->reserved))
        return -1;
    weir__buf_add(&x->body, bytes, n);
    return x->body.failed ? refuse(c, 503, "out of memory") : 0;
}

static int on_complete(http_parser *p)
{
    srv_conn *c = p->data;
    c->complete = true;
    http_parser_pause(p, 1);
    return 0;
}

static const http_parser_settings settings = {
    .on_message_begin = on_begin,
    .on_url = on_url,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_headers_complete = on_head,
    .on_body = on_body,
    .on_message_complete = on_complete,
};

/* ---- from bytes to answers ---- */

static void dispatch(srv_conn *c)
{
    srv_exchange *x = c->now;
    c->deadline_ms = 0;
    x->handled = true;
    if (c->refused) {
        int status = c->refused;
        c->refused = 0;
        srv_reply_refused(x, status, c->why);
        return;
    }
    if (x->body.len) {
        x->r.body = x->body.data;
        x->r.body_len = x->body.len;
    }
    x->r.route->handle(&x->r);
    if ((c->ended || c->lane->draining) && c->now && c->now->r.hurry)
        c->now->r.hurry(&c->now->r);
}

/* It is not HTTP, or not to be read to its end: say so, and hang up. */
static void give_up(srv_conn *c)
{
    if (!c->refused)
        refuse(c, 400, http_errno_description(HTTP_PARSER_ERRNO(&c->parser)));
    if (!c->now)
        c->now = srv_exchange_create(c);
    if (!c->now) {
        conn_end(c);
        return;
    }
    c->complete = true;
    c->deadline_ms = 0;
    c->now->keep_alive = false;
    srv_reply_refused(c->now, c->refused, c->why);
}

/* The next request is read only when the client has taken most of the answers before it: who asks
 * and does not listen would fill our memory otherwise. */
static bool may_go_on(const srv_conn *c)
{
    return !c->complete && !c->closing && !c->dead &&
           (c->now || evbuffer_get_length(c->out) <= SRV_MAX_BACKLOG);
}

static void keep(srv_conn *c, const char *bytes, size_t n)
{
    weir__buf_add(&c->in, bytes, n);
    if (c->in.failed)
        conn_end(c);
    else if (c->in.len > SRV_READ_SIZE)
        event_del(c->readable);     /* that is enough for now */
}

static void feed(srv_conn *c, const char *bytes, size_t n)
{
    c->feeding = true;
    while (n && may_go_on(c)) {
        size_t used = http_parser_execute(&c->parser, &settings, bytes, n);
        bytes += used;
        n -= used;
        if (HTTP_PARSER_ERRNO(&c->parser) == HPE_PAUSED)
            http_parser_pause(&c->parser, 0);
        else if (HTTP_PARSER_ERRNO(&c->parser) != HPE_OK)
            give_up(c);
        if (c->complete && !c->now->handled)
            dispatch(c);
    }
    if (n && !c->closing && !c->dead)
        keep(c, bytes, n);
    c->feeding = false;
}

/* The client has sent all it will: close, unless there is something left to answer. */
static void end_if_done(srv_conn *c)
{
    if (!c->ended || (c->in.len && !c->closing) || (c->now && c->complete))
        return;
    c->closing = true;
    srv_conn_flush(c);
}

/* Go on with what came early. */
static void go_on(srv_conn *c)
{
    if (c->feeding)
        return;                     /* who feeds will */
    while (c->in.len && may_go_on(c)) {
        weir_buf early = c->in;
        c->in = (weir_buf){ 0 };
        if (!c->ended)
            event_add(c->readable, NULL);
        feed(c, early.data, early.len);
        weir__buf_fini(&early);
    }
    end_if_done(c);
}

void srv_conn_answered(srv_conn *c, bool keep_alive)
{
    c->now = NULL;
    c->complete = false;
    c->deadline_ms = 0;             /* until all is written: see `stuck_ms` */
    if (!keep_alive || c->lane->draining)
        c->closing = true;
    srv_conn_flush(c);
    go_on(c);
}

/* What it asked for it may still want to hear, but nobody waits for long on its behalf. */
static void client_ended(srv_conn *c)
{
    c->ended = true;
    event_del(c->readable);
    if (c->now && c->complete && c->now->r.hurry)
        c->now->r.hurry(&c->now->r);
    end_if_done(c);
}

/* One that sends without end does not keep us from all others. */
static void on_readable(evutil_socket_t fd, short what, void *ctx)
{
    (void)fd;
    (void)what;
    srv_conn *c = ctx;
    char     *bytes = c->lane->bytes;
    ssize_t   n = 1;
    for (int i = 0; i < MAX_READS && n > 0 && !c->dead && !c->ended &&
                    c->in.len <= SRV_READ_SIZE; i++) {
        n = wire_read(c, bytes, SRV_READ_SIZE);
        if (n > 0 && !c->lingering)
            feed(c, bytes, (size_t)n);
        else if (n == 0)
            client_ended(c);
        else if (n < 0 && errno != EAGAIN && errno != EINTR)
            c->dead = true;
        if (n < SRV_READ_SIZE && !c->ssl)
            break;
    }
    if (c->dead)
        conn_close(c);
}

static void on_writable(evutil_socket_t fd, short what, void *ctx)
{
    srv_conn *c = ctx;
    srv_conn_flush(c);
    if (c->now && c->now->r.drained && !c->dead && !evbuffer_get_length(c->out))
        c->now->r.drained(&c->now->r);
    go_on(c);
    if (c->ssl && !c->dead)
        on_readable(fd, what, c);
}

/* ---- times ---- */

static void sweep(void *ctx);

static void set_sweep(srv_lane *lane)
{
    lane->sweeping = lane->conns &&
                     !srv_timer_set(&lane->sweep, lane->loop, lane->server->sweep_ms, sweep,
                                    lane);
}

static void sweep(void *ctx)
{
    srv_lane *lane = ctx;
    int64_t   now = srv_loop_ms();
    for (srv_conn *c = lane->conns, *next; c; c = next) {
        next = c->next;
        if (c->stuck_ms && now - c->stuck_ms > lane->server->opt.limits.write_ms) {
            conn_end(c);
        } else if (c->deadline_ms && now > c->deadline_ms && !c->dead) {
            if (c->now && !c->lingering) {
                refuse(c, 408, "the request took too long to arrive");
                give_up(c);
            } else {
                conn_end(c);
            }
        }
    }
    set_sweep(lane);
}

/* ---- the beginning ---- */

void srv_conn_open(srv_lane *lane, int fd, const char *peer)
{
    srv_conn *c = calloc(1, sizeof *c);
    if (!c) {
        close(fd);
        atomic_fetch_sub(&lane->server->n_conns, 1);
        return;
    }
    c->server = lane->server;
    c->lane = lane;
    c->fd = fd;
    snprintf(c->peer, sizeof c->peer, "%s", peer);
    c->next = lane->conns;
    c->link = &lane->conns;
    if (c->next)
        c->next->link = &c->next;
    lane->conns = c;
    http_parser_init(&c->parser, HTTP_REQUEST);
    c->parser.data = c;
    c->deadline_ms = srv_loop_ms() + c->server->opt.limits.idle_ms;
    struct event_base *base = srv_loop_base(lane->loop);
    c->out = evbuffer_new();
    c->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, c);
    c->writable = event_new(base, fd, EV_WRITE, on_writable, c);
    if (c->server->tls)
        c->ssl = srv_tls_accept(c->server->tls, fd);
    if (!c->out || !c->readable || !c->writable || (c->server->tls && !c->ssl) ||
        event_add(c->readable, NULL) < 0) {
        conn_close(c);
        return;
    }
    if (!lane->sweeping)
        set_sweep(lane);
}

void srv_lane_drain(srv_lane *lane)
{
    lane->draining = true;
    for (srv_conn *c = lane->conns, *next; c; c = next) {
        next = c->next;
        if (!c->now) {
            c->closing = true;
            srv_conn_flush(c);
        } else if (c->complete && c->now->r.hurry) {
            c->now->r.hurry(&c->now->r);
        }
    }
}

void srv_lane_close(srv_lane *lane)
{
    while (lane->conns)
        conn_close(lane->conns);
    srv_timer_unset(&lane->sweep);
    srv_sse_close(lane);
}
