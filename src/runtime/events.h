/* events.h - listeners, and the one thread on which everything of the user's is called back. The
 * thread starts with the first listener or the first post. */
#ifndef WEIR_RUNTIME_EVENTS_H
#define WEIR_RUNTIME_EVENTS_H

#include <pthread.h>
#include "base/list.h"
#include "weir/event.h"

/* One thing to call back. The memory is the poster's until fn is called. */
typedef struct weir_post {
    weir_link  link;
    void     (*fn)(void *ctx);      /* NULL: an event for the listeners */
    void      *ctx;
} weir_post;

typedef struct weir_events {
    pthread_mutex_t  lock;          /* guards what follows */
    pthread_t        thread;
    bool             started;       /* the thread */
    pthread_cond_t   work, moved;   /* moved: `current` has changed */
    weir_dlist       posts;
    size_t           backlog;       /* events in the list */
    uint64_t         seq;
    weir_listener   *listeners;
    weir_listener   *current;       /* whose function is running */
    bool             closed;
} weir_events;

void weir__events_init(weir_events *e);

/* Hand the event to the listeners. Any thread, also from inside the store. */
void weir__events_emit(weir_events *e, const weir_event *events, size_t n);

/* Emit an error event for trouble that no call returns. */
void weir__events_trouble(weir_events *e, int64_t now, const weir_error *err);

/* Events of other processes may have been missed. Every listener for errors is called, and so
 * is, whatever it listens to, a listener that must not miss anything: it has to look. */
void weir__events_lost(weir_events *e, int64_t now);

/* Between these two, posts and events of this thread do not wake the callback thread; the end does.
 * A batch has many answers and events, and a wake for each would cost more than they do. */
void weir__events_cork(weir_events *e);
void weir__events_uncork(weir_events *e);

/* Have fn(ctx) called on the callback thread. False: closed. If no thread can be started, the next
 * post tries again, and weir__events_close() calls what is still in the list. */
bool weir__events_post(weir_events *e, weir_post *post, void (*fn)(void *ctx), void *ctx);

/* Are we on the callback thread? */
bool weir__events_here(weir_events *e);

/* A listener that must not miss anything gives closing(), which is called on the callback thread
 * if it is still there when the queue is closed. *out is set before the first call. */
weir_code weir__events_listen(weir_events *e, const weir_filter *filter, weir_event_fn *fn,
                              void (*closing)(void *ctx), void *ctx, weir_listener **out,
                              weir_error *err);

/* Call back what is still in the list, then stop the thread; with no thread, the caller does it.
 * Listeners may still be released. */
void weir__events_close(weir_events *e);
void weir__events_fini(weir_events *e);

#endif
