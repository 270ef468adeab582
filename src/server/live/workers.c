/* workers.c - the workers this server has seen: see workers.h. All are in one list, who was
 * seen last at the end, so that whom to forget is at its head. */
#include "server/live/workers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/named.h"
#include "core/job.h"
#include "server/http/inner.h"

/* A job that a remote worker has, as this server has seen. */
typedef struct holding {
    uint64_t        id;
    uint32_t        delivery;
    bool            suspect;
    int64_t         until;              /* monotonic: the end of its lease */
    struct entry   *worker;
    weir_link       link;               /* in the worker's list */
} holding;

typedef struct entry {
    weir_named    named;                /* first: it is found by it */
    srv_worker    seen;
    weir_gate     gate;
    bool          knows;                /* of a suspect: see core/gate.h */
    weir_dlist    holdings;
    weir_dlist    refused;              /* polls that wait for the gate, by their link_refused */
    weir_link     link;                 /* in the list of all */
    char          name[];
} entry;

struct srv_workers {
    weir_listener  *listener;
    pthread_mutex_t lock;               /* guards what follows */
    weir_names      by_name;            /* of entry */
    weir_dlist      all;                /* of entry; who was seen last is at the end */
    size_t          n;
    weir_map        held;               /* id -> holding */
};

/* ---- what a worker has ---- */

static void drop(srv_workers *ws, holding *h)
{
    weir__gate_left(&h->worker->gate, 1, h->suspect);
    weir__map_remove(&ws->held, h->id);
    weir__list_remove(&h->worker->holdings, &h->link);
    free(h);
}

/* Jobs that ended without a request of the worker: it died, or uses another server. */
static void drop_late(srv_workers *ws, entry *e, int64_t now)
{
    WEIR_EACH(holding, h, &e->holdings, link)
        if (h->until <= now)
            drop(ws, h);
}

static void hold(srv_workers *ws, entry *e, const weir_job *job, int64_t until)
{
    holding *old = weir__map_get(&ws->held, job->id);
    if (old)                            /* an older delivery */
        drop(ws, old);
    holding *h = malloc(sizeof *h);
    if (!h || !weir__map_put(&ws->held, job->id, h)) {
        free(h);
        weir__gate_left(&e->gate, 1, weir__job_is_suspect(job));
        return;
    }
    *h = (holding){ .id = job->id, .delivery = job->delivery, .until = until, .worker = e,
                    .suspect = weir__job_is_suspect(job) };
    weir__list_insert(&e->holdings, NULL, &h->link);
}

static holding *holding_of(const srv_workers *ws, uint64_t id, uint32_t delivery)
{
    holding *h = weir__map_get(&ws->held, id);
    return h && h->delivery == delivery ? h : NULL;
}

static void forget(srv_workers *ws, entry *e)
{
    WEIR_EACH(holding, h, &e->holdings, link)
        drop(ws, h);
    weir__names_remove(&ws->by_name, &e->named);
    weir__list_remove(&ws->all, &e->link);
    ws->n--;
    free((void *)(uintptr_t)e->seen.types);
    free(e);
}

/* Those who wait are at the end or will be: they stay, whatever their age. */
static void forget_old(srv_workers *ws, int64_t now)
{
    WEIR_EACH(entry, e, &ws->all, link) {
        bool old = now - e->seen.last_seen_at > SRV_WORKER_FORGET_MS;
        if (!old && ws->n <= SRV_MAX_WORKERS)
            break;
        if (!e->seen.waiting && !e->gate.flying && !e->refused.first)
            forget(ws, e);
    }
}

/* The worker, seen now, at the end of the list. NULL: out of memory. */
static entry *meet(srv_workers *ws, const char *name, int64_t now)
{
    entry *e = weir__names_get(&ws->by_name, name);
    if (e) {
        weir__list_remove(&ws->all, &e->link);
    } else {
        e = WEIR__NAMES_ADD(&ws->by_name, entry, name);
        if (!e)
            return NULL;
        e->seen.name = e->name;
        e->seen.first_seen_at = now;
        ws->n++;
    }
    e->seen.last_seen_at = now;
    forget_old(ws, now);                /* before it is in the list: others may all be waiting */
    weir__list_append(&ws->all, &e->link);
    return e;
}

/* ---- types ---- */

static bool same_types(const char *const *a, const char *const *b)
{
    while (*a && *b && strcmp(*a, *b) == 0)
        a++, b++;
    return !*a && !*b;
}

/* A copy in one block. NULL: out of memory. */
static const char *const *copy_types(const char *const *types)
{
    size_t n = 0, bytes = 0;
    for (; types[n]; n++)
        bytes += strlen(types[n]) + 1;
    const char **copy = malloc((n + 1) * sizeof *copy + bytes);
    char        *at = (char *)(copy + n + 1);
    for (size_t i = 0; copy && i < n; i++) {
        copy[i] = at;
        at = stpcpy(at, types[i]) + 1;
    }
    if (copy)
        copy[n] = NULL;
    return copy;
}

/* ---- what others call ---- */

void srv_workers_seen(srv_workers *ws, const char *name, const char *const *types, int64_t now)
{
    pthread_mutex_lock(&ws->lock);
    entry *e = meet(ws, name, now);
    if (e && types && !(e->seen.types && same_types(e->seen.types, types))) {
        free((void *)(uintptr_t)e->seen.types);
        e->seen.types = copy_types(types);
    }
    pthread_mutex_unlock(&ws->lock);
}

void srv_workers_wait(srv_workers *ws, const char *name, int by, int64_t now)
{
    pthread_mutex_lock(&ws->lock);
    entry *e = meet(ws, name, now);
    if (e && e->seen.waiting + by >= 0)     /* it may have been forgotten for want of memory */
        e->seen.waiting += by;
    pthread_mutex_unlock(&ws->lock);
}

void srv_workers_each(srv_workers *ws, int64_t now, void (*fn)(const srv_worker *w, void *ctx),
                      void *ctx)
{
    static const char *const none[] = { NULL };
    pthread_mutex_lock(&ws->lock);
    forget_old(ws, now);
    WEIR_EACH(entry, e, &ws->all, link) {
        srv_worker w = e->seen;
        if (!w.types)
            w.types = none;
        fn(&w, ctx);
    }
    pthread_mutex_unlock(&ws->lock);
}

/* ---- gates ---- */

/* Have those look that were refused, if the gate has opened. */
static void open_gate(entry *e, int64_t now)
{
    if (!weir__gate_opened(&e->gate, now))
        return;
    WEIR_EACH(srv_longpoll, p, &e->refused, link_refused)
        srv_longpoll_wake(p);
}

static void refuse(entry *e, srv_longpoll *poll)
{
    if (!poll || poll->refused_by)
        return;
    poll->refused_by = &e->refused;
    weir__list_insert(&e->refused, NULL, &poll->link_refused);
}

weir_pass srv_workers_enter(srv_workers *ws, const char *name, bool only_alone, srv_longpoll *poll)
{
    int64_t   now = weir__monotonic_ms();
    weir_pass pass = only_alone ? WEIR__PASS_NONE : WEIR__PASS_BUSY;
    pthread_mutex_lock(&ws->lock);
    entry *e = weir__names_get(&ws->by_name, name);
    if (e) {
        drop_late(ws, e, now);
        pass = weir__gate_enter(&e->gate, e->knows, only_alone, now);
        if (!pass)
            refuse(e, poll);
    }
    pthread_mutex_unlock(&ws->lock);
    return pass;
}

void srv_workers_unwait(srv_workers *ws, srv_longpoll *poll)
{
    pthread_mutex_lock(&ws->lock);
    if (poll->refused_by)
        weir__list_remove(poll->refused_by, &poll->link_refused);
    poll->refused_by = NULL;
    pthread_mutex_unlock(&ws->lock);
}

bool srv_workers_closed(srv_workers *ws, const char *name)
{
    pthread_mutex_lock(&ws->lock);
    entry *e = weir__names_get(&ws->by_name, name);
    bool   closed = e && (e->gate.alone || weir__gate_closed(&e->gate, weir__monotonic_ms()));
    pthread_mutex_unlock(&ws->lock);
    return closed;
}

void srv_workers_took(srv_workers *ws, const char *name, const srv_taken *t)
{
    int64_t now = weir__monotonic_ms();
    pthread_mutex_lock(&ws->lock);
    entry *e = weir__names_get(&ws->by_name, name);
    if (e && e->gate.flying) {          /* else it was not there when it asked */
        weir_gate_answer a = { .n = t->n, .waits = t->waits, .failed = t->failed,
                               .suspect = t->n && weir__job_is_suspect(t->jobs[0]) };
        weir__gate_answered(&e->gate, t->pass, a, &e->knows, now);
        for (size_t i = 0; i < t->n; i++)
            hold(ws, e, t->jobs[i], now + t->lease_ms);
        open_gate(e, now);
    }
    pthread_mutex_unlock(&ws->lock);
}

void srv_workers_ended(srv_workers *ws, uint64_t id, uint32_t delivery)
{
    pthread_mutex_lock(&ws->lock);
    holding *h = holding_of(ws, id, delivery);
    if (h) {
        entry *e = h->worker;
        drop(ws, h);
        open_gate(e, weir__monotonic_ms());
    }
    pthread_mutex_unlock(&ws->lock);
}

void srv_workers_renewed(srv_workers *ws, uint64_t id, uint32_t delivery, int64_t lease_ms)
{
    pthread_mutex_lock(&ws->lock);
    holding *h = holding_of(ws, id, delivery);
    if (h)
        h->until = weir__monotonic_ms() + lease_ms;
    pthread_mutex_unlock(&ws->lock);
}

/* ---- events ---- */

/* It takes this type, too. */
static void learn_type(entry *e, const char *type)
{
    const char *types[SRV_WORKER_TYPES + 1] = { 0 };
    size_t      n = 0;
    for (; e->seen.types && e->seen.types[n]; n++) {
        if (n == SRV_WORKER_TYPES - 1 || strcmp(e->seen.types[n], type) == 0)
            return;
        types[n] = e->seen.types[n];
    }
    types[n] = type;
    const char *const *copy = copy_types(types);
    if (copy) {
        free((void *)(uintptr_t)e->seen.types);
        e->seen.types = copy;
    }
}

static void on_event(const weir_event *event, void *ctx)
{
    srv_workers *ws = ctx;
    if (event->kind != WEIR_EVENT_START) {
        srv_workers_ended(ws, event->id, event->delivery);
        return;
    }
    if (!event->text || !event->type)
        return;
    pthread_mutex_lock(&ws->lock);
    entry *e = weir__names_get(&ws->by_name, event->text);
    if (!e || e->seen.last_seen_at < event->at)     /* else it has called meanwhile */
        e = meet(ws, event->text, event->at);
    if (e)
        learn_type(e, event->type);
    pthread_mutex_unlock(&ws->lock);
}

/* ---- making one ---- */

weir_code srv_workers_create(srv_workers **out, weir_queue *q, weir_error *err)
{
    static const weir_filter filter = {
        .events = WEIR_BIT(WEIR_EVENT_START) | WEIR_BIT(WEIR_EVENT_STALLED) |
                  WEIR_BIT(WEIR_EVENT_TTL_EXCEEDED) | WEIR_BIT(WEIR_EVENT_CANCELLED)
    };
    *out = NULL;
    srv_workers *ws = calloc(1, sizeof *ws);
    if (!ws)
        return weir_fail(err, WEIR_ENOMEM, "workers: out of memory");
    pthread_mutex_init(&ws->lock, NULL);
    weir_code rc = weir_listen(q, &filter, on_event, ws, &ws->listener, err);
    if (rc) {
        srv_workers_destroy(ws);
        return rc;
    }
    *out = ws;
    return WEIR_OK;
}

void srv_workers_destroy(srv_workers *ws)
{
    if (!ws)
        return;
    weir_unlisten(ws->listener);
    WEIR_EACH(entry, e, &ws->all, link)
        forget(ws, e);
    weir__names_fini(&ws->by_name);
    weir__map_fini(&ws->held);
    pthread_mutex_destroy(&ws->lock);
    free(ws);
}

const char *srv_worker_name(srv_request *r)
{
    char        name[sizeof r->who.name + sizeof r->conn->peer + 1];
    const char *peer = r->conn ? r->conn->peer : "?";
    const char *port = strrchr(peer, ':');
    int n = snprintf(name, sizeof name, "%s%s%.*s", r->who.name, *r->who.name ? "@" : "",
                     port ? (int)(port - peer) : (int)strlen(peer), peer);
    return srv_strndup(r, name, (size_t)n);
}
