/* job_events.c - the events of jobs on the bus: see job_events.h.
 *
 * The store's events have an id and a type, but no job. A thread reads the jobs, as many at once as
 * have gathered, and publishes the events in their order. Jobs that were read are remembered: when
 * an event says that a job was removed, the store does not have it any more.
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
#include "base/thread.h"
#include "bus/watch.h"
#include "server/kue/kue.h"

enum { AT_ONCE = 64 };              /* jobs read together */

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

struct srv_job_events {
    weir_bus_watch   watch;         /* first */
    weir_bus        *bus;
    weir_queue      *q;
    weir_listener   *listener;      /* NULL until the first consumer, as the thread; guarded by */
    bool             threaded;      /* the bus's lock */
    pthread_t        thread;
    _Atomic uint32_t consumed;      /* addresses with consumers ... */
    _Atomic uint32_t by_kind[WEIR_EVENT_COUNT];     /* ... by event; ERROR: a failure of a job */
    pthread_mutex_t  lock;          /* guards the next five */
    pthread_cond_t   changed;
    weir_dlist       waiting;
    size_t           n_waiting;
    uint64_t         lost;          /* and not reported so far */
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

static void on_event(const weir_event *event, void *ctx);
static void *run(void *ctx);

/* The first consumer has come. With the bus locked, so that no event of a job that is added
 * afterwards is missed. */
static void start(srv_job_events *e)
{
    if (!e->threaded)
        e->threaded = !weir__thread_start(&e->thread, run, e, "weir-job-events", NULL);
    if (e->threaded && !e->listener)
        weir_listen(e->q, &(weir_filter){ 0 }, on_event, e, &e->listener, NULL);
}

/* With the bus locked. */
static void consumer_changed(weir_bus_watch *w, const char *address, bool on)
{
    srv_job_events *e = (srv_job_events *)w;
    weir_event_kind kind;
    if (!kind_of(address, &kind))
        return;
    atomic_fetch_add(&e->by_kind[kind], on ? 1 : (uint32_t)-1);
    atomic_fetch_add(&e->consumed, on ? 1 : (uint32_t)-1);
    if (on && !e->listener)
        start(e);
}

static bool is_failure(weir_event_kind kind)
{
    return kind == WEIR_EVENT_FAILED_ATTEMPT || kind == WEIR_EVENT_FAILED;
}

/* Removed because it is complete: the store has one event for both. */
static bool is_gone(const weir_event *event)
{
    return event->kind == WEIR_EVENT_COMPLETE && event->state == WEIR_STATE_ANY;
}

/* Jobs are read when they come and when they start: afterwards they may be gone at any time. */
static bool is_wanted(srv_job_events *e, const weir_event *event)
{
    return event->id && atomic_load(&e->consumed) &&
           (atomic_load(&e->by_kind[event->kind]) || event->kind == WEIR_EVENT_ENQUEUE ||
            event->kind == WEIR_EVENT_START ||
            (is_failure(event->kind) && atomic_load(&e->by_kind[WEIR_EVENT_ERROR])) ||
            (is_gone(event) && atomic_load(&e->by_kind[WEIR_EVENT_REMOVE])));
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
    if (!wanted && !(event->missed && atomic_load(&e->consumed)))
        return;
    item *i = wanted ? make_item(event) : NULL;
    pthread_mutex_lock(&e->lock);
    bool room = i && e->n_waiting < JOB_EVENTS_WAITING;
    e->lost += event->missed + (wanted && !room);
    if (room) {
        weir__list_append(&e->waiting, &i->link);
        e->n_waiting++;
    }
    pthread_cond_signal(&e->changed);
    pthread_mutex_unlock(&e->lock);
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

/* What is published about one event. */
typedef struct notice {
    srv_job_events   *e;
    const weir_event *event;
    weir_job          job;          /* as it was after the event; borrows all texts */
    bool              known;        /* false: only id and type of `job` are set */
    char              address[SRV_MAX_ADDRESS + 1];
    weir_buf          body;
} notice;

static void publish(notice *n, const char *event, bool for_all)
{
    char to[WEIR_MAX_BUS_ADDRESS + 1];
    int  len = for_all ? snprintf(to, sizeof to, "%sworkers.%s%s", prefix,
                                  strcmp(event, "error") == 0 ? "" : "job_", event)
                       : snprintf(to, sizeof to, "%sjob.%s.%s.%s", prefix, event, n->address,
                                  n->job.type);
    if (len < (int)sizeof to && !n->body.failed)
        weir_bus_publish(n->e->bus, to, &(weir_content){ .body = n->body.data,
                         .body_len = n->body.len, .local = true }, NULL);
}

static void begin(notice *n)
{
    weir__buf_clear(&n->body);
}

static void write_message(notice *n)
{
    weir__buf_str(&n->body, "\"message\":");
    weir__json_string(&n->body, n->event->text ? n->event->text : "", n->event->text_len);
    weir__buf_char(&n->body, '}');
}

/* {"id":7,"message":"..."} for each failure, before what becomes of the job. */
static void publish_error(notice *n)
{
    begin(n);
    weir__buf_printf(&n->body, "{\"id\":%" PRIu64 ",", n->job.id);
    write_message(n);
    publish(n, "error", false);
    publish(n, "error", true);
}

/* Of a job that was gone before it was read the event says all that is known. */
static void write_job(notice *n)
{
    if (n->known) {
        srv_vertx_job(&n->body, &n->job);
        return;
    }
    weir__buf_printf(&n->body, "{\"id\":%" PRIu64 ",\"type\":", n->job.id);
    weir__json_string(&n->body, n->job.type, strlen(n->job.type));
    weir__buf_char(&n->body, '}');
}

/* {"extra":...,"job":{...}}; of a failure `extra` has its message. */
static void write_job_and_extra(notice *n)
{
    begin(n);
    weir__buf_str(&n->body, "{\"extra\":");
    if (is_failure(n->event->kind)) {
        weir__buf_char(&n->body, '{');
        write_message(n);
    } else {
        weir__buf_str(&n->body, "null");
    }
    weir__buf_str(&n->body, ",\"job\":");
    write_job(n);
    weir__buf_char(&n->body, '}');
}

static void publish_progress(notice *n)
{
    begin(n);
    weir__buf_int(&n->body, n->event->progress);
    publish(n, "progress", false);
}

static void publish_remove(notice *n)
{
    begin(n);
    weir__buf_printf(&n->body, "{\"id\":%" PRIu64 "}", n->job.id);
    publish(n, "remove", false);
}

static void publish_job(notice *n)
{
    weir_event_kind kind = n->event->kind;
    const char     *name = weir_event_name(kind);
    write_job_and_extra(n);
    publish(n, name, true);
    if (!is_failure(kind)) {
        begin(n);
        write_job(n);
    }
    publish(n, name, false);
}

static void publish_all(notice *n)
{
    weir_event_kind kind = n->event->kind;
    if (is_failure(kind))
        publish_error(n);
    if (kind == WEIR_EVENT_REMOVE || is_gone(n->event))
        publish_remove(n);
    if (kind == WEIR_EVENT_PROGRESS)
        publish_progress(n);
    else if (kind != WEIR_EVENT_REMOVE)
        publish_job(n);
}

static void find_address(notice *n)
{
    size_t      len = 0;
    const char *value = n->known ? srv_vertx_address(&n->job, &len) : NULL;
    char        text[6 * SRV_MAX_ADDRESS + 3];
    if (value && *value == '"' && len < sizeof text &&
        weir__json_text((weir_json_piece){ value, len }, text, &len) && len <= SRV_MAX_ADDRESS)
        strcpy(n->address, text);
    else
        snprintf(n->address, sizeof n->address, "%" PRIu64, n->job.id);
}

/* The job was read a moment later: show it as the event left it. */
static void as_it_was(notice *n)
{
    const weir_event *event = n->event;
    weir_job         *j = &n->job;
    bool              done = event->kind == WEIR_EVENT_COMPLETE;
    if (event->state != WEIR_STATE_ANY)
        j->state = event->state;
    else if (done)
        j->state = WEIR_STATE_COMPLETE;
    j->attempts = event->attempts;
    j->progress = event->progress;
    j->result = done ? event->text : NULL;
    j->result_len = done ? event->text_len : 0;
}

static void handle(srv_job_events *e, item *i)
{
    weir_event *event = &i->event;
    if (i->job)
        remember(e, i->job);
    kept  *k = weir__map_get(&e->jobs, event->id);
    notice n = { .e = e, .event = event, .known = k };
    if (k)
        n.job = *k->job;
    n.job.id = event->id;
    n.job.type = event->type;
    as_it_was(&n);
    find_address(&n);
    if (atomic_load(&e->by_kind[event->kind]) || is_failure(event->kind) || is_gone(event))
        publish_all(&n);
    weir__buf_fini(&n.body);
    if (k && (event->kind == WEIR_EVENT_REMOVE || is_gone(event)))
        forget(e, k);
}

/* ---- events that are lost ---- */

static void publish_lost(srv_job_events *e, uint64_t lost)
{
    char body[200];
    snprintf(body, sizeof body, "{\"extra\":{\"message\":\"%" PRIu64 " events of jobs were lost: "
             "more than %d waited to be published (JOB_EVENTS_WAITING)\",\"lost\":%" PRIu64 "}}",
             lost, JOB_EVENTS_WAITING, lost);
    weir_bus_publish(e->bus, SRV_JOB_EVENTS "workers.error",
                     &(weir_content){ .body = body, .local = true }, NULL);
}

/* ---- the thread ---- */

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

static void *run(void *ctx)
{
    srv_job_events *e = ctx;
    pthread_mutex_lock(&e->lock);
    for (;;) {
        while (!e->waiting.first && !e->lost && !e->closing)
            pthread_cond_wait(&e->changed, &e->lock);
        if (e->closing)
            break;
        weir_dlist some = { 0 };
        uint64_t   lost = e->lost;
        e->lost = 0;
        for (size_t n = 0; n < AT_ONCE && e->waiting.first; n++) {
            weir_link *first = e->waiting.first;
            weir__list_remove(&e->waiting, first);
            weir__list_append(&some, first);
            e->n_waiting--;
        }
        pthread_mutex_unlock(&e->lock);
        if (lost)
            publish_lost(e, lost);
        handle_some(e, &some);
        pthread_mutex_lock(&e->lock);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
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
    e->watch.prefix = prefix;
    e->watch.changed = consumer_changed;
    weir__bus_watch(bus, &e->watch);
    return WEIR_OK;
}

void srv_job_events_destroy(srv_job_events *e)
{
    if (!e)
        return;
    weir_unlisten(e->listener);
    pthread_mutex_lock(&e->lock);
    e->closing = true;
    pthread_cond_signal(&e->changed);
    pthread_mutex_unlock(&e->lock);
    if (e->threaded)
        pthread_join(e->thread, NULL);
    WEIR_EACH(item, i, &e->waiting, link)
        free(i);
    while (e->oldest.first)
        forget(e, WEIR_OF(e->oldest.first, kept, link));
    weir__map_fini(&e->jobs);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    free(e);
}
