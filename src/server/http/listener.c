/* listener.c - taking connections in. They are accepted on the first loop and given to all loops in
 * turn. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/keepalive.h"
#include "server/http/inner.h"

enum { BACKLOG = 1024, ACCEPT_PAUSE_MS = 100 };

typedef struct newcomer {
    weir_inbox_task task;
    srv_listener *listener;
    srv_thread   *thread;
    int           fd;
    char          peer[64];
    srv_quota    *quota;
} newcomer;

static void take_in(weir_inbox_task *task)
{
    newcomer *n = (newcomer *)task;
    n->listener->take_in(n->thread, n->fd, n->peer, n->quota);
    free(n);
}

static void peer_name(char *out, size_t size, const struct sockaddr *sa, socklen_t len)
{
    char host[INET6_ADDRSTRLEN + 8], port[8];
    if (getnameinfo(sa, len, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
        snprintf(out, size, "?");
    else
        snprintf(out, size, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

/* Too many already. */
static void refuse(const newcomer *n, int status, const char *why)
{
    if (n->listener->turn_away)
        n->listener->turn_away(n->fd, status, why);
    close(n->fd);
}

/* Count a new connection. False: there are too many, in all or of that address. */
static bool count_in(newcomer *n)
{
    char        why[WEIR_ERROR_MAX];
    srv_server *s = n->listener->server;
    if (atomic_fetch_add(&s->n_conns, 1) >= s->opt.limits.connections) {
        refuse(n, 503, "too many connections (SRV_MAX_CONNECTIONS); try again later");
        atomic_fetch_sub(&s->n_conns, 1);
        return false;
    }
    n->quota = srv_quota_of_address(s->quotas, n->peer);
    if (srv_quota_take(n->quota, SRV_SHARE_CONNECTIONS, 1))
        return true;
    refuse(n, 429, srv_quota_text(n->quota, SRV_SHARE_CONNECTIONS, why, sizeof why));
    atomic_fetch_add(&s->counters.over_share[SRV_SHARE_CONNECTIONS], 1);
    atomic_fetch_sub(&s->n_conns, 1);
    srv_quota_unref(n->quota);
    return false;
}

static void accept_again(void *ctx)
{
    event_add(((srv_listener *)ctx)->accepting, NULL);
}

static void on_accept(evutil_socket_t listener, short what, void *ctx)
{
    (void)what;
    srv_listener           *l = ctx;
    srv_server             *s = l->server;
    struct sockaddr_storage from;
    for (;;) {
        socklen_t len = sizeof from;
        int       fd = accept4(listener, (struct sockaddr *)&from, &len,
                               SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
            event_del(l->accepting);        /* or the loop would spin on it */
            srv_timer_set(&l->pause, s->thread[0]->loop, ACCEPT_PAUSE_MS, accept_again, l);
        }
        if (fd < 0)
            return;
        newcomer *n = malloc(sizeof *n);
        if (!n) {
            close(fd);
            continue;
        }
        *n = (newcomer){ .task.run = take_in, .listener = l, .fd = fd };
        peer_name(n->peer, sizeof n->peer, (struct sockaddr *)&from, len);
        if (!count_in(n)) {
            free(n);
            continue;
        }
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        weir__keepalive_set_default(fd);
        n->thread = s->thread[s->next_thread++ % s->n_threads];
        srv_loop_post(n->thread->loop, &n->task);
    }
}

/* ---- the address ---- */

/* "host:port" or "[v6]:port" into two strings. */
static weir_code cut_address(const srv_listener *l, const char *text, char *host, size_t size,
                             char *port, size_t port_size, weir_error *err)
{
    const char *colon = strrchr(text, ':');
    size_t      len = colon ? (size_t)(colon - text) : 0;
    bool        v6 = len > 2 && *text == '[' && text[len - 1] == ']';
    if (v6) {
        text++;
        len -= 2;
    }
    char *end = NULL;
    long  n = colon ? strtol(colon + 1, &end, 10) : -1;
    if (!colon || !len || len >= size || !colon[1] || *end || n < 0 || n > 65535 ||
        (!v6 && memchr(text, ':', len)))
        return weir_fail(err, WEIR_EINVAL,
                         "%s: \"%.100s\" is not ADDRESS:PORT, such as 127.0.0.1:7340, [::1]:0",
                         l->setting, v6 ? text - 1 : text);
    memcpy(host, text, len);
    host[len] = '\0';
    snprintf(port, port_size, "%ld", n);
    return WEIR_OK;
}

static bool is_loopback(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)sa)->sin_addr.s_addr) >> 24 == 127;
    const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(a);
}

static weir_code listen_at(srv_listener *l, const struct addrinfo *at, const char *text,
                           weir_error *err)
{
    int one = 1;
    l->loopback = is_loopback(at->ai_addr);
    l->fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (l->fd >= 0)
        setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (l->fd < 0 || bind(l->fd, at->ai_addr, at->ai_addrlen) < 0 || listen(l->fd, BACKLOG) < 0)
        return weir_fail(err, errno == EADDRINUSE ? WEIR_EBUSY : WEIR_EIO, "%s: %s: %s%s%s%s",
                         l->setting, text, strerror(errno),
                         errno == EADDRINUSE ? " (another server? --" : "",
                         errno == EADDRINUSE ? l->setting : "",
                         errno == EADDRINUSE ? " 127.0.0.1:0 takes any free port)" : "");
    struct sockaddr_storage own;
    socklen_t               len = sizeof own;
    getsockname(l->fd, (struct sockaddr *)&own, &len);
    peer_name(l->address, sizeof l->address, (struct sockaddr *)&own, len);
    return WEIR_OK;
}

weir_code srv_listener_open(srv_listener *l, const char *text, weir_error *err)
{
    char             host[256], port[8];
    struct addrinfo  want = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *at = NULL;
    weir_code        rc = cut_address(l, text, host, sizeof host, port, sizeof port, err);
    if (rc)
        return rc;
    int why = getaddrinfo(host, port, &want, &at);
    if (why)
        return weir_fail(err, WEIR_EINVAL, "%s: %s: %s", l->setting, host, gai_strerror(why));
    rc = listen_at(l, at, text, err);
    freeaddrinfo(at);
    return rc;
}

/* ---- start and stop ---- */

void srv_listener_start(srv_listener *l)
{
    if (l->fd < 0)
        return;
    l->accepting = event_new(srv_loop_base(l->server->thread[0]->loop), l->fd, EV_READ | EV_PERSIST,
                             on_accept, l);
    if (l->accepting)
        event_add(l->accepting, NULL);
}

void srv_listener_stop(srv_listener *l)
{
    srv_timer_unset(&l->pause);
    if (l->accepting)
        event_free(l->accepting);
    l->accepting = NULL;
}

void srv_listener_close(srv_listener *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}
