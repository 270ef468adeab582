/* job_events.c - the events of jobs on the bus: see job_events.h.
 *
 * The store's events have an id and a type, but no job. A thread reads the jobs, as many at once as
 * have gathered, and publishes the events in their order. Jobs that were read are remembered: when
 * an event says that a job was removed, the store does not have it any more. For the same reason
 * the thread reads the active jobs before the first event: they started before anybody listened.
 *
 * Events that were lost, since too many waited here or in the store's own backlog, are counted, and
 * reported as an error of the workers. */
#include "server/bus/job_events.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/map.h"
#include "base/named.h"
#include "base/thread.h"
#include "bus/leader.h"
#include "bus/process.h"
#include "bus/watch.h"
#include "server/bus/job_notice.h"

enum { AT_ONCE = 64 };              /* jobs read together, arrivals handled in a row */

static const char prefix[] = SRV_JOB_EVENTS;

/* An event that waits to be published. */
typedef struct item {
    weir_link   link;
    weir_event  event;              /* type and text are in `room` */
    weir_job   *job;                /* as it is now; NULL: it is gone */
    weir_future *future;
    char        room[];
} item;

/* A job that is remembered. */
typedef struct kept {
    weir_link link;
    weir_job *job;
    size_t    size;
} kept;

/* An address that has consumers in other processes. */
typedef struct remote {
    weir_named named;
    char       name[];
} remote;

/* Addresses with consumers: how many, and by event. ERROR: a failure of a job. */
typedef struct listener_counts {
    _Atomic uint32_t all;
    _Atomic uint32_t by_kind[WEIR_EVENT_COUNT];
} listener_counts;

struct srv_job_events {
    weir_bus_watch   watch;         /* first */
    weir_bus        *bus;
    weir_queue      *q;
    weir_leader     *leader;
    weir_mailbox    *mb;            /* of the leader; the thread runs it */
    pthread_t        thread;
    bool             threaded;
    weir_names       remotes;       /* guarded by the bus's lock */
    listener_counts  here, elsewhere;
    atomic_bool      leads;
    _Atomic uint64_t lost_total, too_long;
    pthread_mutex_t  lock;          /* guards what follows, up to `jobs` */
    pthread_cond_t   changed;
    weir_listener   *listener;      /* NULL until the first consumer */
    weir_dlist       waiting;
    size_t           n_waiting;
    uint64_t         lost;          /* and not reported so far */
    bool             wanted;        /* somebody listens */
    bool             look;          /* the active jobs are to be read */
    bool             called;        /* the mailbox is to be run */
    bool             closing;
    weir_map         jobs;          /* id to kept; the thread's own, as what follows */
    weir_dlist       oldest;
    size_t           n_kept, kept_bytes;
};

/* ---- what is wanted ---- */

/* The event that an address is for. False: it is none of ours, perhaps an event of a program's own
 * that travels between clients. */
static bool kind_of(const char *address, weir_event_kind *out)
{
    const char *name = address + strlen(prefix);
    char        text[32];
    if (strncmp(name, "job.", 4) == 0)
        name += 4;
    else if (strncmp(name, "workers.", 8) == 0)
        name += strncmp(name + 8, "job_", 4) == 0 ? 12 : 8;
    else
        return false;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(name, "."), name);
    return weir_event_parse(text, out);
}

static bool somebody_listens(srv_job_events *e)
{
    return atomic_load(&e->here.all) || (atomic_load(&e->leads) && atomic_load(&e->elsewhere.all));
}

static bool is_listened_to(srv_job_events *e, weir_event_kind kind)
{
    return atomic_load(&e->here.by_kind[kind]) ||
           (atomic_load(&e->leads) && atomic_load(&e->elsewhere.by_kind[kind]));
}

static void on_event(const weir_event *event, void *ctx);

/* The addresses with listeners have changed, or the process that publishes. The bus may be locked,
 * so that no event of a job that is added afterwards is missed. */
static void follow_listeners(srv_job_events *e)
{
    bool wanted = somebody_listens(e);
    pthread_mutex_lock(&e->lock);
    if (wanted && !e->listener)
        weir_listen(e->q, &(weir_filter){ 0 }, on_event, e, &e->listener, NULL);
    if (wanted && !e->wanted) {
        e->look = true;
        pthread_cond_signal(&e->changed);
    }
    e->wanted = wanted;
    pthread_mutex_unlock(&e->lock);
}

static void count_listener(srv_job_events *e, listener_counts *counts, const char *address, bool on)
{
    weir_event_kind kind;
    if (!kind_of(address, &kind))
        return;
    atomic_fetch_add(&counts->by_kind[kind], on ? 1 : (uint32_t)-1);
    atomic_fetch_add(&counts->all, on ? 1 : (uint32_t)-1);
    follow_listeners(e);
}

/* These two with the bus locked. */
static void consumer_changed(weir_bus_watch *w, const char *address, bool on)
{
    srv_job_events *e = (srv_job_events *)w;
    count_listener(e, &e->here, address, on);
}

static void remote_changed(weir_bus_watch *w, const char *address, bool on)
{
    srv_job_events *e = (srv_job_events *)w;
    remote         *r = weir__names_get(&e->remotes, address);
    if (on == (r != NULL))
        return;
    if (on) {
        if (!WEIR__NAMES_ADD(&e->remotes, remote, address))
            return;
    } else {
        weir__names_remove(&e->remotes, &r->named);
        free(r);
    }
    count_listener(e, &e->elsewhere, address, on);
}

/* Jobs are read when they come and when they start: afterwards they may be gone at any time. */
static bool is_wanted(srv_job_events *e, const weir_event *event)
{
    return event->id && somebody_listens(e) &&
           (is_listened_to(e, event->kind) || event->kind == WEIR_EVENT_ENQUEUE ||
            event->kind == WEIR_EVENT_START ||
            (job_notice_fails(event) && is_listened_to(e, WEIR_EVENT_ERROR)) ||
            (job_notice_removes(event) && is_listened_to(e, WEIR_EVENT_REMOVE)));
}

/* NULL: out of memory. */
static item *make_item(const weir_event *event)
{
    size_t type = strlen(event->type) + 1;
    item  *i = calloc(1, sizeof *i + type + event->text_len + 1);
    if (!i)
        return NULL;
    i->event = *event;
    i->event.type = memcpy(i->room, event->type, type);
    if (event->text)
        i->event.text = memcpy(i->room + type, event->text, event->text_len);
    return i;
}

/* On the callback thread of the queue. */
static void on_event(const weir_event *event, void *ctx)
{
    srv_job_events *e = ctx;
    bool            wanted = is_wanted(e, event);
    if (!wanted && !(event->missed && somebody_listens(e)))
        return;
    item *i = wanted ? make_item(event) : NULL;
    pthread_mutex_lock(&e->lock);
    bool     room = i && e->n_waiting < JOB_EVENTS_WAITING;
    uint64_t lost = event->missed + (wanted && !room);
    e->lost += lost;
    e->look |= lost;                        /* perhaps a job has started */
    if (room) {
        weir__list_append(&e->waiting, &i->link);
        e->n_waiting++;
    }
    pthread_cond_signal(&e->changed);
    pthread_mutex_unlock(&e->lock);
    atomic_fetch_add(&e->lost_total, lost);
    if (!room)
        free(i);
}

/* ---- jobs that are remembered ---- */

static void forget(srv_job_events *e, kept *k)
{
    weir__map_remove(&e->jobs, k->job->id);
    weir__list_remove(&e->oldest, &k->link);
    e->n_kept--;
    e->kept_bytes -= k->size;
    weir_job_free(k->job);
    free(k);
}

/* Takes the job over. */
static void remember(srv_job_events *e, weir_job *job)
{
    kept *old = weir__map_get(&e->jobs, job->id), *k = calloc(1, sizeof *k);
    if (old)
        forget(e, old);
    if (!k || !weir__map_put(&e->jobs, job->id, k)) {
        free(k);
        weir_job_free(job);
        return;
    }
    k->job = job;
    k->size = sizeof *job + job->data_len + job->result_len + job->progress_data_len;
    weir__list_append(&e->oldest, &k->link);
    e->n_kept++;
    e->kept_bytes += k->size;
    while (e->n_kept > 1 && (e->n_kept > JOB_EVENTS_KEPT || e->kept_bytes > JOB_EVENTS_KEPT_BYTES))
        forget(e, WEIR_OF(e->oldest.first, kept, link));
}

/* ---- publishing ---- */

/* Each process has an event once: a server publishes it to its own, and one of the servers to the
 * processes that have none. */
static void publish(void *ctx, const char *address, const char *body, size_t len)
{
    srv_job_events *e = ctx;
    weir_content    c = { .body = body, .body_len = len, .local = true };
    if (atomic_load(&e->here.all))
        weir_bus_publish(e->bus, address, &c, NULL);
    if (atomic_load(&e->leads) && atomic_load(&e->elsewhere.all))
        weir__bus_publish_elsewhere(e->bus, address, &c, LEADER_GROUP SRV_JOB_EVENTS, NULL);
}

static void handle(srv_job_events *e, item *i)
{
    weir_event *event = &i->event;
    if (i->job)
        remember(e, i->job);
    kept *k = weir__map_get(&e->jobs, event->id);
    if (is_listened_to(e, event->kind) || job_notice_fails(event) || job_notice_removes(event))
        atomic_fetch_add(&e->too_long,
                         job_notice_publish(event, k ? k->job : NULL, publish, e));
    if (k && (event->kind == WEIR_EVENT_REMOVE || job_notice_removes(event)))
        forget(e, k);
}

static void publish_lost(srv_job_events *e, uint64_t lost)
{
    char body[200];
    int  len = snprintf(body, sizeof body, "{\"extra\":{\"message\":\"%" PRIu64 " events of jobs "
                        "were lost: more than %d waited to be published (JOB_EVENTS_WAITING)\","
                        "\"lost\":%" PRIu64 "}}", lost, JOB_EVENTS_WAITING, lost);
    publish(e, SRV_JOB_EVENTS "workers.error", body, (size_t)len);
}

/* ---- the thread ---- */

/* Jobs that started before anybody listened: the event of their end may not find them. */
static void read_active(srv_job_events *e)
{
    weir_query what = { .state = WEIR_STATE_ACTIVE, .descending = true, .limit = WEIR_MAX_PAGE };
    size_t     left = JOB_EVENTS_KEPT;
    bool       more = true;
    while (more && left) {
        weir_page *page;
        if (weir_list(e->q, &what, &page, NULL))
            return;
        for (size_t i = 0; i < page->n && left; i++, left--) {
            if (!weir__map_get(&e->jobs, page->job[i]->id))
                remember(e, page->job[i]);
            else
                weir_job_free(page->job[i]);
            page->job[i] = NULL;
        }
        more = page->more;
        what.after = page->next;
        weir_page_free(page);
    }
}

/* Read the jobs of up to AT_ONCE events. */
static void handle_some(srv_job_events *e, weir_dlist *some)
{
    WEIR_EACH(item, i, some, link)
        weir_get_async(e->q, i->event.id, &i->job, &i->future, NULL);
    WEIR_EACH(item, i, some, link) {
        if (i->future && weir_future_wait(i->future, -1, NULL) != WEIR_OK)
            i->job = NULL;
        weir_future_free(i->future);
        handle(e, i);
        weir__list_remove(some, &i->link);
        free(i);
    }
}

/* The work to do, taken out of `e` under its lock. */
typedef struct todo {
    bool       look, called;
    uint64_t   lost;
    weir_dlist some;
} todo;

static bool take_todo(srv_job_events *e, todo *t)
{
    *t = (todo){ .look = e->look, .called = e->called, .lost = e->lost };
    e->look = e->called = false;
    e->lost = 0;
    for (size_t n = 0; n < AT_ONCE && e->waiting.first; n++) {
        weir_link *first = e->waiting.first;
        weir__list_remove(&e->waiting, first);
        weir__list_append(&t->some, first);
        e->n_waiting--;
    }
    return t->look || t->called || t->lost || t->some.first;
}

static void *run(void *ctx)
{
    srv_job_events *e = ctx;
    todo            t;
    pthread_mutex_lock(&e->lock);
    while (!e->closing) {
        if (!take_todo(e, &t)) {
            pthread_cond_wait(&e->changed, &e->lock);
            continue;
        }
        pthread_mutex_unlock(&e->lock);
        while (t.called && weir_mailbox_run(e->mb, AT_ONCE, 0) == AT_ONCE)
            ;
        if (t.lost)
            publish_lost(e, t.lost);
        if (t.look)
            read_active(e);
        handle_some(e, &t.some);
        pthread_mutex_lock(&e->lock);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

/* ---- one of the servers ---- */

static void wake(void *ctx)
{
    srv_job_events *e = ctx;
    pthread_mutex_lock(&e->lock);
    e->called = true;
    pthread_cond_signal(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

static weir_code take_turn(void *ctx, leader_turn turn, weir_error *err)
{
    srv_job_events *e = ctx;
    (void)err;
    atomic_store(&e->leads, turn != LEADER_YIELDS);
    follow_listeners(e);
    return WEIR_OK;
}

/* The servers have nothing to say to each other. */
static void ignore(weir_message *m, void *ctx)
{
    (void)m;
    (void)ctx;
}

static weir_code join_servers(srv_job_events *e, weir_error *err)
{
    weir_code rc = weir_mailbox_create(&e->mb, e->bus,
                                       &(weir_mailbox_config){ .wake = wake, .ctx = e }, err);
    if (!rc)
        rc = weir__leader_join(&e->leader, e->bus, &(leader_config){
            .name = SRV_JOB_EVENTS, .mailbox = e->mb, .turn = take_turn, .group = ignore,
            .ctx = e }, err);
    if (!rc)
        rc = weir__thread_start(&e->thread, run, e, "weir-job-events", err);
    e->threaded = !rc;
    if (!rc)
        weir__leader_wait(e->leader);
    return rc;
}

/* ---- the beginning and the end ---- */

weir_code srv_job_events_create(srv_job_events **out, weir_bus *bus, weir_queue *q,
                                weir_error *err)
{
    srv_job_events *e = *out = calloc(1, sizeof *e);
    if (!e)
        return weir_fail(err, WEIR_ENOMEM, "job events: out of memory");
    e->bus = bus;
    e->q = q;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    e->watch = (weir_bus_watch){ .prefix = prefix, .changed = consumer_changed,
                                 .elsewhere = remote_changed };
    weir__bus_watch(bus, &e->watch);
    return join_servers(e, err);            /* what was made is for srv_job_events_destroy() */
}

void srv_job_events_get(srv_job_events *e, srv_job_events_stats *out)
{
    out->lost = atomic_load(&e->lost_total);
    out->too_long = atomic_load(&e->too_long);
}

static void stop_thread(srv_job_events *e)
{
    pthread_mutex_lock(&e->lock);
    e->closing = true;
    pthread_cond_signal(&e->changed);
    pthread_mutex_unlock(&e->lock);
    if (e->threaded)
        pthread_join(e->thread, NULL);
}

void srv_job_events_stop(srv_job_events *e)
{
    if (!e)
        return;
    weir__leader_stop(e->leader);
    stop_thread(e);
    weir_mailbox_destroy(e->mb);
    weir__leader_free(e->leader);
    e->mb = NULL;
    e->leader = NULL;
}

void srv_job_events_destroy(srv_job_events *e)
{
    size_t pos = 0;
    if (!e)
        return;
    weir_unlisten(e->listener);
    WEIR_EACH(item, i, &e->waiting, link)
        free(i);
    while (e->oldest.first)
        forget(e, WEIR_OF(e->oldest.first, kept, link));
    for (remote *r; (r = weir__names_next(&e->remotes, &pos, NULL)); pos = 0) {
        weir__names_remove(&e->remotes, &r->named);
        free(r);
    }
    weir__names_fini(&e->remotes);
    weir__map_fini(&e->jobs);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    free(e);
}
