/* events.c - listeners and the callback thread: see events.h.
 *
 * If an event has a listener, it is copied once and goes to the end of one list. The thread takes
 * it from there and calls every listener it is for. So all listeners see one order, and a slow one
 * holds up the others: what it cannot follow is dropped at the head and counted. Posts and events
 * share the list, to run in the order in which they came; a weir_inbox (base/inbox.h) has no way to
 * drop one of them. */
#include "runtime/events.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/thread.h"

struct weir_listener {
    weir_events   *events;
    weir_listener *next;
    weir_filter    filter;
    char           type[WEIR_MAX_TYPE + 1];
    weir_event_fn *fn;
    void         (*closing)(void *ctx);
    void          *ctx;
    uint64_t       since;      /* events with a higher number are for it */
    uint32_t       missed;
    bool           gone;       /* released by its own function: the thread frees it */
};

/* An event on its way to the listeners. */
typedef struct event_post {
    weir_post  post;           /* first: it is found by it */
    uint64_t   seq;
    bool       keep;           /* somebody must not miss it */
    bool       lost;           /* also for all who must not miss anything */
    weir_event event;
    char       bytes[];        /* its type and text */
} event_post;

static void *events_main(void *arg);

void weir__events_init(weir_events *e)
{
    *e = (weir_events){ 0 };
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->work, NULL);
    pthread_cond_init(&e->moved, NULL);
}

/* Start the callback thread, unless it runs. Lock held. */
static weir_code start_thread(weir_events *e, weir_error *err)
{
    if (e->started)
        return WEIR_OK;
    weir_code rc = weir__thread_start(&e->thread, events_main, e, "weir-callback", err);
    e->started = rc == WEIR_OK;
    return rc;
}

static bool wants(const weir_listener *l, const weir_event *ev)
{
    const weir_filter *f = &l->filter;
    return (!f->events || f->events & WEIR_BIT(ev->kind)) && (!f->id || f->id == ev->id) &&
           (!f->type || (ev->type && strcmp(f->type, ev->type) == 0));
}

static event_post *copy_event(const weir_event *ev)
{
    size_t type_len = ev->type ? strlen(ev->type) + 1 : 0;
    event_post *c = malloc(sizeof *c + type_len + ev->text_len + 1);
    if (!c)
        return NULL;
    *c = (event_post){ .event = *ev };
    if (ev->type)
        c->event.type = memcpy(c->bytes, ev->type, type_len);
    if (ev->text) {
        char *text = c->bytes + type_len;
        memcpy(text, ev->text, ev->text_len);
        text[ev->text_len] = 0;
        c->event.text = text;
    }
    return c;
}

static _Thread_local struct {
    weir_events *of;            /* NULL: not corked */
    bool         posted;
} cork;

void weir__events_cork(weir_events *e)
{
    cork.of = e;
    cork.posted = false;
}

void weir__events_uncork(weir_events *e)
{
    cork.of = NULL;
    if (cork.posted)
        pthread_cond_signal(&e->work);
}

static void append(weir_events *e, weir_post *post)
{
    start_thread(e, NULL);
    weir__list_append(&e->posts, &post->link);
    if (cork.of == e)
        cork.posted = true;
    else
        pthread_cond_signal(&e->work);
}

/* Its listeners have missed one. */
static void missed(weir_events *e, const weir_event *ev, uint64_t seq)
{
    for (weir_listener *l = e->listeners; l; l = l->next)
        if (seq > l->since && wants(l, ev))
            l->missed++;
}

/* The list is full: drop the oldest event that may be dropped, if there is one. */
static void drop_oldest(weir_events *e)
{
    WEIR_EACH(weir_post, post, &e->posts, link) {
        event_post *c = (event_post *)post;
        if (post->fn || c->keep)
            continue;
        weir__list_remove(&e->posts, &post->link);
        e->backlog--;
        missed(e, &c->event, c->seq);
        free(c);
        return;
    }
}

/* Lock held. */
static void emit_one(weir_events *e, const weir_event *ev, bool lost)
{
    bool wanted = lost, keep = lost;
    e->seq++;
    for (const weir_listener *l = e->listeners; l && !keep; l = l->next)
        if (wants(l, ev)) {
            wanted = true;
            keep = l->closing != NULL;
        }
    if (!wanted)
        return;
    event_post *c = copy_event(ev);
    if (!c) {
        missed(e, ev, e->seq);
        return;
    }
    c->seq = e->seq;
    c->keep = keep;
    c->lost = lost;
    if (e->backlog >= WEIR_MAX_BACKLOG)
        drop_oldest(e);
    e->backlog++;
    append(e, &c->post);
}

void weir__events_emit(weir_events *e, const weir_event *events, size_t n)
{
    pthread_mutex_lock(&e->lock);
    for (size_t i = 0; i < n && e->listeners && !e->closed; i++)
        emit_one(e, &events[i], false);
    pthread_mutex_unlock(&e->lock);
}

void weir__events_lost(weir_events *e, int64_t now)
{
    static const char text[] = "events of other processes may have been missed";
    weir_event ev = { .kind = WEIR_EVENT_ERROR, .at = now, .text = text,
                      .text_len = sizeof text - 1 };
    pthread_mutex_lock(&e->lock);
    if (e->listeners && !e->closed)
        emit_one(e, &ev, true);
    pthread_mutex_unlock(&e->lock);
}

void weir__events_trouble(weir_events *e, int64_t now, const weir_error *err)
{
    weir_event ev = { .kind = WEIR_EVENT_ERROR, .at = now, .text = err->msg,
                      .text_len = strlen(err->msg) };
    weir__events_emit(e, &ev, 1);
}

bool weir__events_post(weir_events *e, weir_post *post, void (*fn)(void *ctx), void *ctx)
{
    post->fn = fn;
    post->ctx = ctx;
    pthread_mutex_lock(&e->lock);
    bool open = !e->closed;
    if (open)
        append(e, post);
    pthread_mutex_unlock(&e->lock);
    return open;
}

/* Whose callbacks this thread calls. */
static _Thread_local weir_events *calls_for;

bool weir__events_here(weir_events *e)
{
    return calls_for == e;
}

static void unlink_listener(weir_listener *l)
{
    weir_listener **at = &l->events->listeners;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    free(l);
}

/* Call every listener of an event. The lock is held, but not while calling. */
static void dispatch(weir_events *e, event_post *c)
{
    for (weir_listener *l = e->listeners, *next; l; l = next) {
        if (c->seq > l->since && ((c->lost && l->closing) || wants(l, &c->event))) {
            c->event.missed = l->missed;
            l->missed = 0;
            e->current = l;
            pthread_mutex_unlock(&e->lock);
            l->fn(&c->event, l->ctx);
            pthread_mutex_lock(&e->lock);
        }
        next = l->next;          /* read only now: the function may have changed the list */
        if (e->current == l) {
            e->current = NULL;
            pthread_cond_broadcast(&e->moved);
            if (l->gone)
                unlink_listener(l);
        }
    }
}

/* Call the functions that asked for the end of the events. The lock is held, but not while
 * calling. */
static void say_closing(weir_events *e)
{
    for (weir_listener *l = e->listeners; l;) {
        void (*closing)(void *ctx) = l->closing;
        if (!closing) {
            l = l->next;
            continue;
        }
        l->closing = NULL;
        pthread_mutex_unlock(&e->lock);
        closing(l->ctx);
        pthread_mutex_lock(&e->lock);
        l = e->listeners;        /* the list may have changed */
    }
}

static void *events_main(void *arg)
{
    weir_events *e = arg, *before = calls_for;
    calls_for = e;
    pthread_mutex_lock(&e->lock);
    for (;;) {
        while (!e->posts.first && !e->closed)
            pthread_cond_wait(&e->work, &e->lock);
        weir_post *post = WEIR_OF(e->posts.first, weir_post, link);
        if (!post)
            break;
        weir__list_remove(&e->posts, &post->link);
        if (post->fn) {
            pthread_mutex_unlock(&e->lock);
            post->fn(post->ctx);             /* the post may be gone now */
            pthread_mutex_lock(&e->lock);
        } else {
            e->backlog--;
            dispatch(e, (event_post *)post);
            free(post);
        }
    }
    say_closing(e);
    pthread_mutex_unlock(&e->lock);
    calls_for = before;
    return NULL;
}

weir_code weir__events_listen(weir_events *e, const weir_filter *filter, weir_event_fn *fn,
                              void (*closing)(void *ctx), void *ctx, weir_listener **out,
                              weir_error *err)
{
    *out = NULL;
    if (filter && WEIR__CHECK_RESERVED(filter, err))
        return WEIR_EINVAL;
    if (!fn)
        return weir_fail(err, WEIR_EINVAL, "listen: no function to call");
    if (filter && filter->type && strlen(filter->type) > WEIR_MAX_TYPE)
        return weir_fail(err, WEIR_EINVAL, "listen: type of %zu bytes, at most %d (WEIR_MAX_TYPE)",
                         strlen(filter->type), WEIR_MAX_TYPE);
    weir_listener *l = calloc(1, sizeof *l);
    if (!l)
        return weir_fail(err, WEIR_ENOMEM, "listen: out of memory");
    l->events = e;
    l->fn = fn;
    l->closing = closing;
    l->ctx = ctx;
    if (filter)
        l->filter = *filter;
    if (l->filter.type)
        l->filter.type = strcpy(l->type, filter->type);
    pthread_mutex_lock(&e->lock);
    weir_code rc = e->closed ? weir_fail(err, WEIR_ECLOSED, "the queue is closed")
                             : start_thread(e, err);
    if (rc) {
        pthread_mutex_unlock(&e->lock);
        free(l);
        return rc;
    }
    l->since = e->seq;
    weir_listener **at = &e->listeners;      /* at the end: first come, first called */
    while (*at)
        at = &(*at)->next;
    *at = l;
    *out = l;                                /* the function may be called from here on */
    pthread_mutex_unlock(&e->lock);
    return WEIR_OK;
}

void weir_unlisten(weir_listener *l)
{
    if (!l)
        return;
    weir_events *e = l->events;
    pthread_mutex_lock(&e->lock);
    if (e->current == l && weir__events_here(e)) {
        l->gone = true;                      /* dispatch() frees it */
    } else {
        l->since = UINT64_MAX;               /* nothing more, or we might never get past it */
        while (e->current == l)
            pthread_cond_wait(&e->moved, &e->lock);
        unlink_listener(l);
    }
    pthread_mutex_unlock(&e->lock);
}

void weir__events_close(weir_events *e)
{
    pthread_mutex_lock(&e->lock);
    e->closed = true;
    bool started = e->started;
    pthread_cond_signal(&e->work);
    pthread_mutex_unlock(&e->lock);
    if (started)
        pthread_join(e->thread, NULL);
    else
        events_main(e);
}

void weir__events_fini(weir_events *e)
{
    while (e->listeners)
        unlink_listener(e->listeners);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->work);
    pthread_cond_destroy(&e->moved);
}
