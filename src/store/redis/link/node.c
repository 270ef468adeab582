/* node.c - one connection: see net.h. Sockets do not block; getaddrinfo() may, for a host that is
 * not a number. */
#include "store/redis/link/net.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/keepalive.h"

enum {
    CHUNK          = 16384,     /* read at once */
    KEEP           = 1 << 20    /* memory that is kept when all is written, and all is read */
};

const char *weir__place_text(const redis_place *p, char text[REDIS_PLACE_TEXT])
{
    const char *format = !p->port ? "%s" : strchr(p->host, ':') ? "[%s]:%d" : "%s:%d";
    snprintf(text, REDIS_PLACE_TEXT, format, p->host, p->port);
    return text;
}

void weir__node_init(redis_node *n, redis_net *net, const redis_place *place)
{
    *n = (redis_node){ .net = net, .place = *place, .fd = -1,
                       .durability = WEIR_DURABILITY_NONE };
}

void weir__node_fini(redis_node *n)
{
    weir__node_close(n);
    weir__buf_fini(&n->out);
}

/* ---- the end of it ---- */

void weir__node_close(redis_node *n)
{
    SSL_free(n->ssl);
    n->ssl = NULL;
    n->tls_writes = false;
    if (n->fd >= 0)
        close(n->fd);
    n->fd = -1;
    if (n->addresses)
        freeaddrinfo(n->addresses);
    n->addresses = n->address = NULL;
    if (n->reader)
        redisReaderFree(n->reader);
    n->reader = NULL;
    if (n->out.cap > KEEP)
        weir__buf_fini(&n->out);
    weir__buf_clear(&n->out);
    n->out_at = 0;
    n->timeout_ms = 0;
    n->draining = false;
    n->wanted = false;
    n->state = NODE_CLOSED;
    if (n->id)
        n->old_id = n->id;
    n->id = 0;
}

void weir__node_disconnect(redis_node *n, weir_code code, const char *fmt, ...)
{
    char msg[WEIR_ERROR_MAX], place[REDIS_PLACE_TEXT];
    WEIR__FORMAT(msg, fmt);
    weir_fail(&n->why, code, "redis%s %s: %s",
              n->probe && n->net->url.way == REDIS_SENTINEL ? " sentinel" : "",
              weir__place_text(&n->place, place), msg);

    bool was_ready = n->state == NODE_READY;
    weir__node_close(n);
    n->net->disconnected = true;
    n->try_ms = weir__monotonic_ms() + n->pause_ms;
    n->pause_ms = weir__pause_after(n->pause_ms);
    if (n->probe) {
        weir__probe_failed(n->net);
        return;
    }
    if (was_ready)
        n->net->ops->lost(n->net->ctx, n);
    weir__net_rediscover(n->net);
}

/* ---- the beginning ---- */

static void set_tcp_options(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    weir__keepalive_set_default(fd);
}

/* 0: connected or on the way; else errno. */
static int start_connect(redis_node *n, int family, const struct sockaddr *address, socklen_t len)
{
    n->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (n->fd < 0)
        return errno;
    if (family != AF_UNIX)
        set_tcp_options(n->fd);
    /* EAGAIN: a socket of the file system whose queue is full; poll() does not wait for it. */
    if (!connect(n->fd, address, len) || errno == EINPROGRESS || errno == EINTR)
        return 0;
    int error = errno;
    close(n->fd);
    n->fd = -1;
    return error;
}

static void connect_socket(redis_node *n)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t             len = strlen(n->place.host);
    if (len >= sizeof address.sun_path)
        len = sizeof address.sun_path - 1;
    memcpy(address.sun_path, n->place.host, len);
    int error = start_connect(n, AF_UNIX, (struct sockaddr *)&address, sizeof address);
    if (error)
        weir__node_disconnect(n, WEIR_EUNAVAIL, "%s", strerror(error));
}

/* The next address of the host; when none is left, the node is lost with the last error. */
static void connect_next(redis_node *n, int error)
{
    while (n->address) {
        struct addrinfo *a = n->address;
        n->address = a->ai_next;
        error = start_connect(n, a->ai_family, a->ai_addr, a->ai_addrlen);
        if (!error)
            return;
    }
    weir__node_disconnect(n, WEIR_EUNAVAIL, "%s", strerror(error));
}

static void connect_host(redis_node *n)
{
    char            port[12];
    struct addrinfo hint = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV };
    snprintf(port, sizeof port, "%d", n->place.port);
    int rc = getaddrinfo(n->place.host, port, &hint, &n->addresses);
    if (rc) {
        n->addresses = NULL;
        weir__node_disconnect(n, WEIR_EUNAVAIL, "%s", rc == EAI_SYSTEM ? strerror(errno)
                                                                 : gai_strerror(rc));
        return;
    }
    n->address = n->addresses;
    connect_next(n, ECONNREFUSED);
}

void weir__node_await(redis_node *n, int64_t timeout_ms)
{
    n->asked_ms = weir__monotonic_ms();
    n->timeout_ms = timeout_ms;
}

int64_t weir__node_due(const redis_node *n)
{
    if (!n->timeout_ms)
        return INT64_MAX;
    return (n->read_ms > n->asked_ms ? n->read_ms : n->asked_ms) + n->timeout_ms;
}

/* If the memory of the old reader has grown large, a new one takes its place. The reader's own
 * limit (maxbuf) acts too often, and ends the program when there is no memory. */
static bool renew_reader(redis_node *n)
{
    redisReader *r = redisReaderCreate();
    if (!r)
        return false;
    r->maxbuf = 0;
    if (n->reader)
        redisReaderFree(n->reader);
    n->reader = r;
    n->fed = 0;
    return true;
}

void weir__node_connect(redis_node *n)
{
    n->state = NODE_CONNECTING;
    if (!renew_reader(n)) {
        weir__node_disconnect(n, WEIR_ENOMEM, "no memory for the connection");
        return;
    }
    n->connection = ++n->net->n_connections;
    n->queued = n->written = 0;
    n->read_ms = weir__monotonic_ms();
    weir__node_await(n, n->net->url.timeout_ms / (n->probe ? 4 : 2));
    if (n->place.port)
        connect_host(n);
    else
        connect_socket(n);
}

static void go_on_securing(redis_node *n)
{
    if (weir__tls_handshake(n)) {
        n->state = NODE_HANDSHAKE;
        weir__handshake_begin(n);
    } else if (n->tls_error.code) {
        weir__node_disconnect(n, n->tls_error.code, "%s", n->tls_error.msg);
    }
}

static void secure(redis_node *n)
{
    n->state = NODE_SECURING;
    if (weir__tls_begin(n))
        go_on_securing(n);
    else
        weir__node_disconnect(n, WEIR_ENOMEM, "no memory for TLS");
}

static void connected(redis_node *n)
{
    int       error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(n->fd, SOL_SOCKET, SO_ERROR, &error, &len))
        error = errno;
    if (!error && n->net->tls) {
        secure(n);
        return;
    }
    if (!error) {
        n->state = NODE_HANDSHAKE;
        weir__handshake_begin(n);
        return;
    }
    close(n->fd);
    n->fd = -1;
    connect_next(n, error);
}

/* ---- reading ---- */

static void take_reply(redis_node *n, redisReply *r)
{
    if (n->state == NODE_READY) {
        n->net->ops->reply(n->net->ctx, n, r);
        return;
    }
    weir__handshake_reply(n, r);
    freeReplyObject(r);
}

/* Every whole reply that has come. Each may end the connection. */
static void take_replies(redis_node *n)
{
    while (n->reader) {
        void *r = NULL;
        if (redisReaderGetReply(n->reader, &r) != REDIS_OK) {
            weir__node_disconnect(
                n, WEIR_EUNAVAIL, "it does not speak Redis's protocol: %s%s", n->reader->errstr,
                strstr(n->reader->errstr, "\"\\x15\"") ? "; is it a TLS port? Then "
                                                         "rediss://"
                                                       : "");
            return;
        }
        if (!r)
            return;
        take_reply(n, r);
    }
}

static ssize_t receive(redis_node *n, void *to, size_t len)
{
    return n->ssl ? weir__tls_read(n, to, len, false) : recv(n->fd, to, len, MSG_DONTWAIT);
}

/* The reason of a failure: errno, or the error of TLS. */
static void disconnect_broken(redis_node *n, int error)
{
    if (n->ssl && error == EPROTO)
        weir__node_disconnect(n, n->tls_error.code, "%s", n->tls_error.msg);
    else
        weir__node_disconnect(n, WEIR_EUNAVAIL, "connection lost: %s", error ? strerror(error)
                                                                       : "closed by the server");
}

static void read_some(redis_node *n)
{
    char    chunk[CHUNK];
    ssize_t got;
    do {
        got = receive(n, chunk, sizeof chunk);
        if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (got <= 0) {
            disconnect_broken(n, got ? errno : 0);
            return;
        }
        n->read_ms = weir__monotonic_ms();
        n->fed += (size_t)got;
        if (redisReaderFeed(n->reader, chunk, (size_t)got) != REDIS_OK) {
            weir__node_disconnect(n, WEIR_ENOMEM, "no memory for its answer");
            return;
        }
        take_replies(n);
        if (n->reader && n->reader->pos == n->reader->len) {
            if (n->fed > KEEP)
                renew_reader(n);        /* or goes on with the old one */
            n->fed = 0;
        }
    } while (n->reader && ((size_t)got == sizeof chunk || (n->ssl && SSL_pending(n->ssl) > 0)));
}

/* ---- writing ---- */

bool weir__node_room(redis_node *n, size_t len)
{
    if (weir__buf_reserve(&n->out, len))
        return true;
    n->out.failed = false;
    return false;
}

void weir__node_flush(redis_node *n)
{
    while (n->out_at < n->out.len) {
        const char *from = n->out.data + n->out_at;
        size_t      len = n->out.len - n->out_at;
        ssize_t     wrote = n->ssl ? weir__tls_write(n, from, len)
                                   : send(n->fd, from, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (wrote < 0) {
            int error = errno;
            read_some(n);       /* what it said before it went; this mostly finds the end, too */
            if (n->reader)
                disconnect_broken(n, error);
            return;
        }
        n->out_at += (size_t)wrote;
        n->written += (uint64_t)wrote;
    }
    n->out_at = 0;
    if (n->out.cap > KEEP)
        weir__buf_fini(&n->out);
    else
        weir__buf_clear(&n->out);
}

bool weir__node_alive(redis_node *n)
{
    char    byte;
    ssize_t got = n->ssl ? weir__tls_read(n, &byte, 1, true)
                         : recv(n->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)))
        return true;
    disconnect_broken(n, got ? errno : 0);
    return false;
}

void weir__node_io(redis_node *n, short events)
{
    if (n->state == NODE_CONNECTING) {
        connected(n);
        return;
    }
    if (n->state == NODE_SECURING) {
        go_on_securing(n);
        return;
    }
    if (events & ~POLLOUT)
        read_some(n);
    if (n->reader && (events & POLLOUT))
        weir__node_flush(n);
}
