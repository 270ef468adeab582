/* server.c - start and stop. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/access/audit.h"
#include "server/bus/bus.h"
#include "server/live/holds.h"
#include "server/live/hub.h"
#include "server/http/inner.h"
#include "server/live/longpoll.h"
#include "server/live/replay.h"
#include "server/push/push.h"
#include "server/live/workers.h"
#include "server/tasks.h"

enum { DEFAULT_LANES = 4, DRAIN_LOOK_MS = 10, SWEEP_MS = 1000, SPARE_FILES = 128 };
static const char default_listen[] = "127.0.0.1:7340";

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
        srv_thread *thread = calloc(1, sizeof *thread);
        if (!thread)
            return weir_fail(err, WEIR_ENOMEM, "server: out of memory");
        s->thread[s->n_threads++] = thread;
        thread->server = s;
        char name[24];
        snprintf(name, sizeof name, "weir-loop-%d", i);
        weir_code rc = srv_loop_create(&thread->loop, name, err);
        if (rc)
            return rc;
    }
    return WEIR_OK;
}

static void start_accepting(void *ctx)
{
    srv_server *s = ctx;
    srv_listener_start(&s->listener);
    srv_listener_start(&s->bus->listener);
}

static void open_conn(srv_thread *thread, int fd, const char *peer, srv_quota *quota)
{
    srv_conn_open(thread, fd, peer, quota);
}

/* An answer, so that the client can say why, and the end. */
static void turn_away(int fd, int status, const char *why)
{
    char    text[WEIR_ERROR_MAX + 200];
    int     len = snprintf(text, sizeof text, "HTTP/1.1 %d %s\r\nRetry-After: 1\r\n"
                           "Connection: close\r\nContent-Type: application/json\r\n\r\n"
                           "{\"error\":{\"code\":\"http\",\"message\":\"%s\"}}\n", status,
                           srv_status_text(status), why);
    ssize_t n = send(fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)n;
}

static weir_code open_listener(srv_server *s, weir_error *err)
{
    s->listener = (srv_listener){ .server = s, .fd = -1, .setting = "listen",
                                  .take_in = open_conn, .turn_away = turn_away };
    weir_code rc = srv_listener_open(&s->listener, s->opt.listen, err);
    s->loopback = s->listener.loopback;
    snprintf(s->address, sizeof s->address, "%s://%s", s->opt.tls_cert ? "https" : "http",
             s->listener.address);
    return rc;
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
        rc = srv_longpolls_create(&s->polls, s->q, &s->counters, err);
    if (!rc)
        rc = srv_workers_create(&s->workers, s->q, err);
    if (!rc)
        rc = srv_holds_create(&s->holds, s->q, err);
    if (!rc)
        rc = srv_hub_create(&s->hub, s->q, s->opt.limits.event_keep_ms, err);
    if (!rc)
        rc = srv_replays_create(&s->replays, err);
    if (!rc)
        rc = open_listener(s, err);
    if (!rc)
        rc = srv_guard_create(&s->guard, &s->opt, s->opt.listen, s->loopback, err);
    if (!rc)
        rc = srv_bus_create(&s->bus, s, err);
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
        rc = srv_tasks_create(&s->tasks, s->q, s->opt.task_table, err);
    if (!rc)
        rc = srv_push_start(&s->push, s->q, s->workers, &s->opt, err);
    if (rc)
        return rc;
    srv_loop_call(s->thread[0]->loop, start_accepting, s);
    return s->listener.accepting ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "server: out of memory");
}

/* Copies of the texts of the options, in memory of the server. */
static bool copy_options(srv_server *s)
{
    const char **texts[] = {
        &s->opt.listen, &s->opt.store_url, &s->opt.data_dir, &s->opt.tokens_file,
        &s->opt.tls_cert, &s->opt.tls_key, &s->opt.title, &s->opt.access_log,
        &s->opt.bus.listen, &s->opt.task_table,
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
    AT_MOST(l->ping_ms, SRV_PING_MS);
    AT_MOST(l->heartbeat_ms, SRV_HEARTBEAT_MS);
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
    least = l->ping_ms < least ? l->ping_ms : least;
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
    s->listener.fd = -1;
    s->started_at = weir_now(q);
    s->opt = *opt;
    set_limits(s);
    raise_file_limit(&s->opt.limits);
    weir_code rc = srv_set_search(q, opt->search, err);
    if (!rc)
        rc = copy_options(s) ? start(s, err)
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

const char *srv_bus_address(const srv_server *s)
{
    return *s->bus->listener.address ? s->bus->listener.address : NULL;
}

static bool has_permits(const srv_bus_options *bus)
{
    return (bus->inbound && *bus->inbound) || (bus->outbound && *bus->outbound);
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
    at = strlen(s->warning);
    if (has_permits(&s->opt.bus) && !n.valid)
        snprintf(s->warning + at, sizeof s->warning - at, "%sthe lists inbound and outbound of the "
                 "bus are for callers with a token, and there is none: everybody on this machine "
                 "may use all addresses; see `weir token add`", at ? ". Also: " : "");
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
    for (size_t i = 0; i < s->n_threads; i++)
        srv_loop_call(s->thread[i]->loop, srv_thread_check_callers, s->thread[i]);
    for (size_t i = 0; i < 3; i++)
        if (mine[i].code)
            return weir_fail(err, mine[i].code, "%s", mine[i].msg);
    return WEIR_OK;
}

/* ---- stop ---- */

/* Wait until none are left, or until the time is up (0: no limit). */
static void wait_for_none(_Atomic int64_t *count, int64_t until_ms)
{
    while (atomic_load(count) > 0 && (!until_ms || srv_loop_ms() < until_ms))
        usleep(DRAIN_LOOK_MS * 1000);
}

static void stop_accepting(void *ctx)
{
    srv_server *s = ctx;
    srv_listener_stop(&s->listener);
    if (s->bus)
        srv_listener_stop(&s->bus->listener);
}

static void drain_thread(void *ctx)
{
    srv_thread_drain(ctx);
}

static void close_thread(void *ctx)
{
    srv_thread_close(ctx);
}

void srv_stop(srv_server *s)
{
    if (atomic_exchange(&s->stopping, true))
        return;
    srv_push_drain(s->push);
    if (s->n_threads && s->thread[0]->loop)
        srv_loop_call(s->thread[0]->loop, stop_accepting, s);
    srv_listener_close(&s->listener);
    if (s->bus)
        srv_listener_close(&s->bus->listener);
    for (size_t i = 0; i < s->n_threads; i++)
        if (s->thread[i]->loop)
            srv_loop_call(s->thread[i]->loop, drain_thread, s->thread[i]);
    wait_for_none(&s->n_conns, srv_loop_ms() + SRV_DRAIN_MS);
    for (size_t i = 0; i < s->n_threads; i++)
        if (s->thread[i]->loop)
            srv_loop_call(s->thread[i]->loop, close_thread, s->thread[i]);
    /* what the library still works on will come back to these loops */
    wait_for_none(&s->n_exchanges, 0);
    srv_push_stop(s->push);
}

void srv_destroy(srv_server *s)
{
    if (!s)
        return;
    srv_push_destroy(s->push);
    srv_tasks_destroy(s->tasks);
    for (size_t i = 0; i < s->n_threads; i++) {
        srv_loop_destroy(s->thread[i]->loop);
        srv_sse_free(s->thread[i]);
        free(s->thread[i]);
    }
    srv_bus_destroy(s->bus);
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
    srv_holds_destroy(s->holds);
    srv_workers_destroy(s->workers);
    srv_longpolls_destroy(s->polls);
    srv_quotas_destroy(s->quotas);
    for (size_t i = 0; i < sizeof s->texts / sizeof *s->texts; i++)
        free(s->texts[i]);
    free(s);
}
