/* conn.c - a connection: reads requests one after the other, has each answered, writes.
 *
 * One request at a time: bytes of the next wait in `in`, and beyond SRV_READ_SIZE of them in the
 * kernel. They wait until this request is answered, and until the client has read most of the
 * earlier answers. The end of a connection only marks it (conn_end()); it is closed from
 * on_readable(), when nothing else is on the stack. Times are checked by a sweep once a second, so
 * that a request sets no timer. */
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http/inner.h"
#include "weir/trace.h"

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
    srv_upgrade  *u = c->upgrade;
    weir__list_remove(&c->thread->conns, &c->link);
    if (u)
        u->ops->closed(u);          /* it may still look at the connection */
    if (c->readable)
        event_free(c->readable);
    if (c->writable)
        event_free(c->writable);
    if (c->ssl)
        SSL_free(c->ssl);
    if (c->out) {
        evbuffer_drain(c->out, evbuffer_get_length(c->out));
        srv_share_unsent(c);
        evbuffer_free(c->out);
    }
    srv_share_leave(c, 0);
    srv_share_leave(c, 1);
    close(c->fd);
    atomic_fetch_sub(&c->server->n_conns, 1);
    weir__buf_fini(&c->in);
    free(c);
    if (!x)
        return;
    x->r.conn = NULL;
    if (!x->handled)
        srv_exchange_free(x);
    else if (x->r.cancel)
        x->r.cancel(&x->r);
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

/* Somebody speaks plain HTTP to a port with TLS: an answer that can be read, and no more. */
static void refuse_plain(srv_conn *c)
{
    static const char text[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"
                               "Content-Type: application/json\r\n\r\n"
                               "{\"error\":{\"code\":\"http\",\"message\":\"this port speaks "
                               "HTTPS; use https:// in the address\"}}\n";
    char    rest[1024];
    ssize_t n = send(c->fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)n;
    shutdown(c->fd, SHUT_WR);
    /* Closing with bytes unread would reset the connection, and the answer with it. */
    while (recv(c->fd, rest, sizeof rest, MSG_DONTWAIT) > 0)
        ;
}

/* As read(): bytes, 0 at the end, -1 with errno EAGAIN when none have arrived. */
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
        if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST)
            refuse_plain(c);
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

/* Write what can be written. False: some is left, or the connection is at its end. */
static bool write_out(srv_conn *c)
{
    while (!c->dead && evbuffer_get_length(c->out)) {
        ssize_t n = wire_write(c);
        if (n > 0) {
            c->stuck_ms = 0;
        } else if (n < 0 && errno == EAGAIN) {
            if (!c->stuck_ms)
                c->stuck_ms = srv_loop_ms();
            event_add(c->writable, NULL);
            return false;
        } else if (n == 0 || errno != EINTR) {
            conn_end(c);
            return false;
        }
    }
    return true;
}

/* Since when does the client owe us that it takes what it asked for? */
static void note_owed(srv_conn *c)
{
    srv_share_unsent(c);
    if (!c->unsent) {
        c->owed_ms = 0;
    } else if (!c->owed_ms) {
        c->owed_ms = srv_loop_ms();
        c->owed = c->unsent;
    }
}

void srv_conn_flush(srv_conn *c)
{
    bool all = write_out(c);
    note_owed(c);
    if (!all)
        return;
    if (!c->now && !c->upgrade)
        c->deadline_ms = srv_loop_ms() + c->server->opt.limits.idle_ms;
    if (c->closing && !c->dead)
        conn_finish(c);
}

/* ---- requests ---- */

static int begin(srv_conn *c)
{
    c->now = srv_exchange_create(c);
    c->deadline_ms = srv_loop_ms() + c->server->opt.limits.head_ms;
    if (!c->now)
        return srv_refuse(c, 503, "out of memory");
    c->http.head = &c->now->head;
    return 0;
}

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
    /* Jobs that the handler adds belong to the caller's trace. A malformed context is ignored, as
     * W3C says. */
    weir_trace_set(srv_header(&x->r, WEIR_TRACEPARENT), NULL);
    x->r.route->handle(&x->r);
    weir_trace_set(NULL, NULL);
    if ((c->ended || c->thread->draining) && c->now && c->now->r.cancel)
        c->now->r.cancel(&c->now->r);
}

/* It is not HTTP, or not to be read to its end: say so, and hang up. */
static void give_up(srv_conn *c)
{
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

/* Read on to the next thing that happens. False: for that, more bytes must come. */
static bool receive(srv_conn *c, const char **at, const char *end)
{
    int failed = 0;
    switch (srv_http1_read(&c->http, at, end)) {
    case SRV_HTTP1_MORE:
        return false;
    case SRV_HTTP1_BEGIN:
        failed = begin(c);
        break;
    case SRV_HTTP1_HEAD:
        failed = srv_receive_head(c);
        break;
    case SRV_HTTP1_DATA:
        failed = srv_receive_body(c, c->http.data, c->http.data_len);
        break;
    case SRV_HTTP1_END:
        c->complete = true;
        break;
    case SRV_HTTP1_BAD:
        failed = srv_refuse(c, c->http.status, c->http.why);
        break;
    }
    if (failed)
        give_up(c);
    return true;
}

/* Bytes that are not HTTP. A client that sends and does not read is not read from. */
static void feed_upgrade(srv_conn *c, const char *bytes, size_t n)
{
    c->upgrade->ops->receive(c->upgrade, bytes, n);
    srv_conn_flush(c);
    if (srv_conn_is_behind(c))
        event_del(c->readable);
}

static void feed(srv_conn *c, const char *bytes, size_t n)
{
    const char *end = bytes + n;
    c->feeding = true;
    while ((bytes < end || c->now) && may_go_on(c) && !c->upgrade) {
        if (!receive(c, &bytes, end))
            break;
        if (c->complete && !c->now->handled)
            dispatch(c);
    }
    if (c->upgrade && bytes < end && !c->closing && !c->dead)
        feed_upgrade(c, bytes, (size_t)(end - bytes));
    else if (bytes < end && !c->closing && !c->dead)
        keep(c, bytes, (size_t)(end - bytes));
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
    if (!keep_alive || c->thread->draining)
        c->closing = true;
    srv_conn_flush(c);
    go_on(c);
}

/* The client may still read its answer, but no call waits for long on its behalf. */
static void client_ended(srv_conn *c)
{
    c->ended = true;
    event_del(c->readable);
    if (c->now && c->complete && c->now->r.cancel)
        c->now->r.cancel(&c->now->r);
    end_if_done(c);
}

/* A client that sends without end does not block all others. */
static void on_readable(evutil_socket_t fd, short what, void *ctx)
{
    (void)fd;
    (void)what;
    srv_conn *c = ctx;
    char     *bytes = c->thread->bytes;
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
    bool empty = !c->dead && !evbuffer_get_length(c->out);
    if (c->now && c->now->r.drained && empty)
        c->now->r.drained(&c->now->r);
    if (c->upgrade && empty && !c->ended) {
        event_add(c->readable, NULL);
        c->upgrade->ops->drained(c->upgrade);
    }
    go_on(c);
    if (c->ssl && !c->dead)
        on_readable(fd, what, c);
}

/* ---- callers ---- */

/* A client that does not read the last words is closed in SRV_LINGER_MS. */
static void end_upgrade(srv_conn *c, srv_end why)
{
    if (!c->upgrade->ops->stop || c->closing) {
        conn_end(c);
        return;
    }
    c->deadline_ms = srv_loop_ms() + SRV_LINGER_MS;
    c->upgrade->ops->stop(c->upgrade, why);
}

/* End what waits or streams for callers who would not be let in any more. */
void srv_thread_check_callers(void *ctx)
{
    srv_thread *thread = ctx;
    thread->tokens_seen = srv_guard_watch(thread->server->guard, srv_loop_ms());
    WEIR_EACH(srv_conn, c, &thread->conns, link) {
        srv_exchange *x = c->now;
        if (x && x->handled && x->r.cancel && !srv_auth_again(&x->r))
            x->r.cancel(&x->r);
        if (c->upgrade && !c->upgrade->ops->check(c->upgrade))
            end_upgrade(c, SRV_END_DENIED);
    }
}

/* ---- times ---- */

static void sweep(void *ctx);

static void set_sweep(srv_thread *thread)
{
    thread->sweeping = thread->conns.first &&
                     !srv_timer_set(&thread->sweep, thread->loop, thread->server->sweep_ms, sweep,
                                    thread);
}

/* A client that takes nothing, or so little that its answer would be in our memory for long. */
static bool takes_too_long(const srv_conn *c, int64_t now)
{
    const srv_limits *l = &c->server->opt.limits;
    int64_t answer_ms = l->answer_ms * (1 + (int64_t)(c->owed >> 20));
    bool    endless = c->upgrade || (c->now && c->now->r.endless);
    return (c->stuck_ms && now - c->stuck_ms > l->write_ms) ||
           (c->owed_ms && !endless && now - c->owed_ms > answer_ms);
}

static void sweep(void *ctx)
{
    srv_thread *thread = ctx;
    int64_t   now = srv_loop_ms();
    WEIR_EACH(srv_conn, c, &thread->conns, link) {
        if (takes_too_long(c, now)) {
            conn_end(c);
        } else if (c->deadline_ms && now > c->deadline_ms && !c->dead) {
            if (c->now && !c->lingering) {
                srv_refuse(c, 408, "the request took too long to arrive");
                give_up(c);
            } else if (c->upgrade) {
                end_upgrade(c, SRV_END_SILENT);
            } else {
                conn_end(c);
            }
        }
    }
    if (srv_guard_watch(thread->server->guard, now) != thread->tokens_seen)
        srv_thread_check_callers(thread);
    set_sweep(thread);
}

/* ---- the beginning ---- */

srv_conn *srv_conn_open(srv_thread *thread, int fd, const char *peer, srv_quota *quota)
{
    srv_conn *c = calloc(1, sizeof *c);
    if (!c) {
        close(fd);
        srv_quota_add(quota, SRV_SHARE_CONNECTIONS, -1);
        srv_quota_unref(quota);
        atomic_fetch_sub(&thread->server->n_conns, 1);
        return NULL;
    }
    c->server = thread->server;
    c->thread = thread;
    c->fd = fd;
    c->quota[0] = quota;
    snprintf(c->peer, sizeof c->peer, "%s", peer);
    weir__list_insert(&thread->conns, NULL, &c->link);
    c->deadline_ms = srv_loop_ms() + c->server->opt.limits.idle_ms;
    struct event_base *base = srv_loop_base(thread->loop);
    c->out = evbuffer_new();
    c->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, c);
    c->writable = event_new(base, fd, EV_WRITE, on_writable, c);
    if (c->server->tls)
        c->ssl = srv_tls_accept(c->server->tls, fd);
    if (!c->out || !c->readable || !c->writable || (c->server->tls && !c->ssl) ||
        event_add(c->readable, NULL) < 0) {
        conn_close(c);
        return NULL;
    }
    if (!thread->sweeping)
        set_sweep(thread);
    return c;
}

/* ---- other protocols ---- */

void srv_conn_upgrade(srv_conn *c, srv_upgrade *u)
{
    c->upgrade = u;
    c->deadline_ms = 0;
}

void srv_conn_write(srv_conn *c, const void *bytes, size_t len)
{
    if (evbuffer_add(c->out, bytes, len) < 0)
        conn_end(c);
}

bool srv_conn_is_behind(const srv_conn *c)
{
    return c->dead || c->closing || evbuffer_get_length(c->out) > SRV_MAX_BACKLOG;
}

void srv_conn_hang_up(srv_conn *c)
{
    conn_end(c);
}

void srv_conn_finish(srv_conn *c)
{
    c->closing = true;
    srv_conn_flush(c);
}

void srv_thread_drain(srv_thread *thread)
{
    thread->draining = true;
    WEIR_EACH(srv_conn, c, &thread->conns, link) {
        if (c->upgrade && c->upgrade->ops->stop)
            c->upgrade->ops->stop(c->upgrade, SRV_END_STOP);
        if (!c->now) {
            srv_conn_finish(c);
        } else if (c->complete && c->now->r.cancel) {
            c->now->r.cancel(&c->now->r);
        }
    }
}

void srv_thread_close(srv_thread *thread)
{
    while (thread->conns.first)
        conn_close(WEIR_OF(thread->conns.first, srv_conn, link));
    srv_timer_unset(&thread->sweep);
    srv_sse_close(thread);
}
