/* server.c - start, stop, and taking connections in. Connections are accepted on the first loop and
 * given to all loops in turn. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/audit.h"
#include "server/hub.h"
#include "server/inner.h"
#include "server/poll.h"
#include "server/replay.h"
#include "server/push.h"
#include "server/workers.h"

enum { BACKLOG = 1024, DEFAULT_LANES = 4, ACCEPT_PAUSE_MS = 100, DRAIN_LOOK_MS = 10,
       SWEEP_MS = 1000, SPARE_FILES = 128 };
static const char default_listen[] = "127.0.0.1:7340";

/* ---- taking connections in ---- */

typedef struct newcomer {
    srv_task  task;
    srv_lane *lane;
    int       fd;
    char      peer[64];
    srv_quota *quota;
} newcomer;

static void take_in(srv_task *task)
{
    newcomer *n = (newcomer *)task;
    srv_conn_open(n->lane, n->fd, n->peer, n->quota);
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

/* Too many already: an answer, so that the client can say why, and the end. */
static void turn_away(int fd, int status, const char *why)
{
    char    text[WEIR_ERROR_MAX + 200];
    int     len = snprintf(text, sizeof text, "HTTP/1.1 %d %s\r\nRetry-After: 1\r\n"
                           "Connection: close\r\nContent-Type: application/json\r\n\r\n"
                           "{\"error\":{\"code\":\"http\",\"message\":\"%s\"}}\n", status,
                           srv_status_text(status), why);
    ssize_t n = send(fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)n;
    close(fd);
}

/* Count a new connection. False: there are too many, in all or of that address. */
static bool count_in(srv_server *s, newcomer *n)
{
    char why[WEIR_ERROR_MAX];
    if (atomic_fetch_add(&s->n_conns, 1) >= s->opt.limits.connections) {
        turn_away(n->fd, 503, "too many connections (SRV_MAX_CONNECTIONS); try again later");
        atomic_fetch_sub(&s->n_conns, 1);
        return false;
    }
    n->quota = srv_quota_of_address(s->quotas, n->peer);
    if (srv_quota_take(n->quota, SRV_SHARE_CONNECTIONS, 1))
        return true;
    turn_away(n->fd, 429, srv_quota_text(n->quota, SRV_SHARE_CONNECTIONS, why, sizeof why));
    atomic_fetch_add(&s->counters.over_share[SRV_SHARE_CONNECTIONS], 1);
    atomic_fetch_sub(&s->n_conns, 1);
    srv_quota_unref(n->quota);
    return false;
}

static void accept_again(void *ctx)
{
    event_add(((srv_server *)ctx)->accepting, NULL);
}

static void on_accept(evutil_socket_t listener, short what, void *ctx)
{
    (void)what;
    srv_server             *s = ctx;
    struct sockaddr_storage from;
    for (;;) {
        socklen_t len = sizeof from;
        int       fd = accept4(listener, (struct sockaddr *)&from, &len,
                               SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
            event_del(s->accepting);        /* or the loop would spin on it */
            srv_timer_set(&s->accept_pause, s->lane[0]->loop, ACCEPT_PAUSE_MS, accept_again, s);
        }
        if (fd < 0)
            return;
        newcomer *n = malloc(sizeof *n);
        if (!n) {
            close(fd);
            continue;
        }
        *n = (newcomer){ .task.run = take_in, .fd = fd };
        peer_name(n->peer, sizeof n->peer, (struct sockaddr *)&from, len);
        if (!count_in(s, n)) {
            free(n);
            continue;
        }
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        n->lane = s->lane[s->next_lane++ % s->n_lanes];
        srv_loop_post(n->lane->loop, &n->task);
    }
}

/* ---- the address ---- */

/* "host:port" or "[v6]:port" into two strings. */
static weir_code cut_address(const char *text, char *host, size_t size, char *port,
                             size_t port_size, weir_error *err)
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
                         "listen: \"%.100s\" is not ADDRESS:PORT, such as 127.0.0.1:7340, [::1]:0",
                         v6 ? text - 1 : text);
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

static weir_code listen_at(srv_server *s, const struct addrinfo *at, weir_error *err)
{
    int one = 1;
    s->loopback = is_loopback(at->ai_addr);
    s->fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->fd >= 0)
        setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (s->fd < 0 || bind(s->fd, at->ai_addr, at->ai_addrlen) < 0 || listen(s->fd, BACKLOG) < 0)
        return weir_fail(err, errno == EADDRINUSE ? WEIR_EBUSY : WEIR_EIO, "listen: %s: %s%s",
                         s->opt.listen, strerror(errno),
                         errno == EADDRINUSE ? " (another server? --listen 127.0.0.1:0 takes any "
                                               "free port)" : "");
    struct sockaddr_storage own;
    socklen_t               len = sizeof own;
    getsockname(s->fd, (struct sockaddr *)&own, &len);
    char name[64];
    peer_name(name, sizeof name, (struct sockaddr *)&own, len);
    snprintf(s->address, sizeof s->address, "%s://%s", s->opt.tls_cert ? "https" : "http", name);
    return WEIR_OK;
}

static weir_code open_listener(srv_server *s, weir_error *err)
{
    char             host[256], port[8];
    struct addrinfo  want = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *at = NULL;
    weir_code        rc = cut_address(s->opt.listen, host, sizeof host, port, sizeof port, err);
    if (rc)
        return rc;
    int why = getaddrinfo(host, port, &want, &at);
    if (why)
        return weir_fail(err, WEIR_EINVAL, "listen: %s: %s", host, gai_strerror(why));
    rc = listen_at(s, at, err);
    freeaddrinfo(at);
    return rc;
}

/* ---- start ---- */

/* As many connections as the system allows, but some files are for the store, tokens and push. */
static void raise_file_limit(srv_limits *limits)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) < 0)
        return;
    if (l.rlim_cur < l.rlim_max) {
        rlim_t before = l.rlim_cur;
        l.rlim_cur = l.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &l) < 0)
            l.rlim_cur = before;
    }
    int64_t most = l.rlim_cur < 2 * SPARE_FILES       ? SPARE_FILES / 2
                   : l.rlim_cur < SRV_MAX_CONNECTIONS ? (int64_t)l.rlim_cur - SPARE_FILES
                                                      : SRV_MAX_CONNECTIONS;
    if (limits->connections > most)
        limits->connections = most;
}

static weir_code start_lanes(srv_server *s, weir_error *err)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int  n = s->opt.threads ? s->opt.threads : cores < DEFAULT_LANES ? (int)cores : DEFAULT_LANES;
    n = n < 1 ? 1 : n > SRV_MAX_LOOPS ? SRV_MAX_LOOPS : n;
    for (int i = 0; i < n; i++) {
        srv_lane *lane = calloc(1, sizeof *lane);
        if (!lane)
            return weir_fail(err, WEIR_ENOMEM, "server: out of memory");
        s->lane[s->n_lanes++] = lane;
        lane->server = s;
        char name[16];
        snprintf(name, sizeof name, "weir-loop-%d", i);
        weir_code rc = srv_loop_create(&lane->loop, name, err);
        if (rc)
            return rc;
    }
    return WEIR_OK;
}

static void start_accepting(void *ctx)
{
    srv_server *s = ctx;
    s->accepting = event_new(srv_loop_base(s->lane[0]->loop), s->fd, EV_READ | EV_PERSIST,
                             on_accept, s);
    if (s->accepting)
        event_add(s->accepting, NULL);
}

/* Tokens are changed in their file, by whoever may write to it. */
static void token_changed(void *ctx, const char *action, const char *name)
{
    srv_server *s = ctx;
    srv_audit_record(s->audit, &(srv_audit_item){ .at = weir_now(s->q), .action = action,
                                                  .detail = name, .status = 200 });
}

static weir_code start(srv_server *s, weir_error *err)
{
    weir_code rc = srv_quotas_create(&s->quotas, s->opt.limits.caller, err);
    if (!rc)
        rc = srv_polls_create(&s->polls, s->q, &s->counters, err);
    if (!rc)
        rc = srv_workers_create(&s->workers, s->q, err);
    if (!rc)
        rc = srv_hub_create(&s->hub, s->q, s->opt.limits.event_keep_ms, err);
    if (!rc)
        rc = srv_replays_create(&s->replays, err);
    if (!rc)
        rc = open_listener(s, err);
    if (!rc)
        rc = srv_guard_create(&s->guard, &s->opt, s->opt.listen, s->loopback, err);
    if (!rc && s->opt.tls_cert)
        rc = srv_tls_create(&s->tls, s->opt.tls_cert, s->opt.tls_key, err);
    if (!rc && s->opt.access_log)
        rc = srv_access_log_create(&s->log, s->opt.access_log, err);
    if (!rc && s->opt.audit != SRV_AUDIT_OFF)
        rc = srv_audit_create(&s->audit, s->opt.data_dir, 0, err);
    if (!rc && s->audit)
        srv_guard_on_change(s->guard, token_changed, s);
    if (!rc)
        rc = srv_metrics_create(&s->metrics, s->q, err);
    if (!rc)
        rc = srv_openapi_create(&s->openapi, s->opt.api, err);
    if (!rc)
        rc = start_lanes(s, err);
    if (!rc)
        rc = srv_push_start(&s->push, s->q, s->workers, &s->opt, err);
    if (rc)
        return rc;
    srv_loop_call(s->lane[0]->loop, start_accepting, s);
    return s->accepting ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "server: out of memory");
}

/* Strings of the options, in memory of the server's own. */
static bool own_options(srv_server *s)
{
    const char **texts[] = {
        &s->opt.listen, &s->opt.store_url, &s->opt.data_dir, &s->opt.tokens_file,
        &s->opt.tls_cert, &s->opt.tls_key, &s->opt.title, &s->opt.access_log,
    };
    const char *const *origins = s->opt.origins;
    s->opt.origins = s->origins;
    for (size_t i = 0; origins && origins[i] && i < SRV_MAX_ORIGINS; i++)
        if (!(s->origins[i] = strdup(origins[i])))
            return false;
    if (!s->opt.listen)
        s->opt.listen = default_listen;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (*texts[i] && !(*texts[i] = s->texts[i] = strdup(*texts[i])))
            return false;
    return true;
}

/* 0 is the default, and the most. */
#define AT_MOST(limit, most) ((limit) = (limit) > 0 && (limit) < (most) ? (limit) : (most))
static void set_limits(srv_server *s)
{
    static const int64_t caller[SRV_SHARES] = {
        [SRV_SHARE_RATE] = SRV_CALLER_RATE, [SRV_SHARE_CONNECTIONS] = SRV_CALLER_CONNECTIONS,
        [SRV_SHARE_LISTENERS] = SRV_CALLER_LISTENERS, [SRV_SHARE_WAITS] = SRV_CALLER_WAITS,
        [SRV_SHARE_BODIES] = SRV_CALLER_BODIES, [SRV_SHARE_ANSWERS] = SRV_CALLER_ANSWERS,
    };
    srv_limits *l = &s->opt.limits;
    int64_t     least = AT_MOST(l->head_ms, SRV_HEAD_MS);
    AT_MOST(l->body_ms, SRV_BODY_MS);
    AT_MOST(l->idle_ms, SRV_IDLE_MS);
    AT_MOST(l->write_ms, SRV_WRITE_MS);
    AT_MOST(l->connections, SRV_MAX_CONNECTIONS);
    AT_MOST(l->listeners, SRV_MAX_LISTENERS);
    AT_MOST(l->event_keep_ms, SRV_EVENT_KEEP_MS);
    AT_MOST(l->bodies, SRV_MAX_BODIES);
    AT_MOST(l->answers, SRV_MAX_ANSWERS);
    AT_MOST(l->answer_ms, SRV_ANSWER_MS);
    for (int i = 0; i < SRV_SHARES; i++)
        l->caller[i] = l->caller[i] ? l->caller[i] : caller[i];
    least = l->idle_ms < least ? l->idle_ms : least;
    least = l->write_ms < least ? l->write_ms : least;
    least = l->answer_ms < least ? l->answer_ms : least;
    s->sweep_ms = least < SWEEP_MS ? least : SWEEP_MS;
}

weir_code srv_start(srv_server **out, weir_queue *q, const srv_options *opt, weir_error *err)
{
    *out = NULL;
    srv_server *s = calloc(1, sizeof *s);
    if (!s)
        return weir_fail(err, WEIR_ENOMEM, "server: out of memory");
    s->q = q;
    s->fd = -1;
    s->started_at = weir_now(q);
    s->opt = *opt;
    set_limits(s);
    raise_file_limit(&s->opt.limits);
    weir_code rc = srv_set_search(q, opt->search, err);
    if (!rc)
        rc = own_options(s) ? start(s, err)
                            : weir_fail(err, WEIR_ENOMEM, "server: out of memory");
    if (rc) {
        srv_stop(s);
        srv_destroy(s);
        return rc;
    }
    *out = s;
    return WEIR_OK;
}

const char *srv_address(const srv_server *s)
{
    return s->address;
}

const char *srv_warning(srv_server *s)
{
    srv_token_counts n;
    srv_guard_count_tokens(s->guard, &n);
    *s->warning = 0;
    if (!s->loopback && !s->tls)
        snprintf(s->warning, sizeof s->warning, "without TLS everybody on the way can read jobs "
                 "and tokens; see --tls-cert, or have a proxy do it%s", n.soon ? ". Also: " : "");
    size_t at = strlen(s->warning);
    if (n.soon)
        snprintf(s->warning + at, sizeof s->warning - at, "%zu token(s) expire within 7 days, '%s' "
                 "first; see `weir token list`, and `weir token rotate`", n.soon, n.next);
    return *s->warning ? s->warning : NULL;
}

weir_code srv_reload(srv_server *s, weir_error *err)
{
    weir_error mine[3] = { 0 };
    srv_guard_reload(s->guard, &mine[0]);
    if (s->tls && srv_tls_reload(s->tls, &mine[1]))
        atomic_fetch_add(&s->counters.reloads_failed, 1);
    if (s->log && srv_access_log_reopen(s->log, &mine[2]))
        atomic_fetch_add(&s->counters.reloads_failed, 1);
    for (size_t i = 0; i < s->n_lanes; i++)
        srv_loop_call(s->lane[i]->loop, srv_lane_check_callers, s->lane[i]);
    for (size_t i = 0; i < 3; i++)
        if (mine[i].code)
            return weir_fail(err, mine[i].code, "%s", mine[i].msg);
    return WEIR_OK;
}

/* ---- stop ---- */

/* Wait until there are none, or until the time is up (0: however long). */
static void wait_for_none(_Atomic int64_t *count, int64_t until_ms)
{
    while (atomic_load(count) > 0 && (!until_ms || srv_loop_ms() < until_ms))
        usleep(DRAIN_LOOK_MS * 1000);
}

static void stop_accepting(void *ctx)
{
    srv_server *s = ctx;
    srv_timer_unset(&s->accept_pause);
    if (s->accepting)
        event_free(s->accepting);
    s->accepting = NULL;
}

static void drain_lane(void *ctx)
{
    srv_lane_drain(ctx);
}

static void close_lane(void *ctx)
{
    srv_lane_close(ctx);
}

void srv_stop(srv_server *s)
{
    if (atomic_exchange(&s->stopping, true))
        return;
    srv_push_drain(s->push);
    if (s->n_lanes && s->lane[0]->loop)
        srv_loop_call(s->lane[0]->loop, stop_accepting, s);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    for (size_t i = 0; i < s->n_lanes; i++)
        if (s->lane[i]->loop)
            srv_loop_call(s->lane[i]->loop, drain_lane, s->lane[i]);
    wait_for_none(&s->n_conns, srv_loop_ms() + SRV_DRAIN_MS);
    for (size_t i = 0; i < s->n_lanes; i++)
        if (s->lane[i]->loop)
            srv_loop_call(s->lane[i]->loop, close_lane, s->lane[i]);
    /* what the library still works on will come back to these loops */
    wait_for_none(&s->n_exchanges, 0);
    srv_push_stop(s->push);
}

void srv_destroy(srv_server *s)
{
    if (!s)
        return;
    srv_push_destroy(s->push);
    for (size_t i = 0; i < s->n_lanes; i++) {
        srv_loop_destroy(s->lane[i]->loop);
        srv_sse_free(s->lane[i]);
        free(s->lane[i]);
    }
    srv_guard_destroy(s->guard);
    srv_tls_destroy(s->tls);
    srv_access_log_destroy(s->log);
    srv_audit_destroy(s->audit);
    srv_metrics_destroy(s->metrics);
    free(s->openapi);
    for (size_t i = 0; s->origins[i]; i++)
        free((char *)s->origins[i]);
    srv_hub_destroy(s->hub);
    srv_replays_destroy(s->replays);
    srv_workers_destroy(s->workers);
    srv_polls_destroy(s->polls);
    srv_quotas_destroy(s->quotas);
    for (size_t i = 0; i < sizeof s->texts / sizeof *s->texts; i++)
        free(s->texts[i]);
    free(s);
}
