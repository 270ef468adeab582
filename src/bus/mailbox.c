/* mailbox.c - what waits for a thread: messages for consumers and outcomes of requests, in order of
 * arrival. */
#include "bus/inner.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/thread.h"
#include "weir/trace.h"

enum { THREAD_RUN = 256 };          /* arrivals that a mailbox's own thread handles in a run */

/* ---- arriving ---- */

bool weir__mailbox_has_room(const weir_mailbox *mb, const weir_message *m)
{
    return !mb->closed && mb->messages < mb->config.messages &&
           (!mb->messages || mb->bytes + m->size <= mb->config.bytes);
}

void weir__mailbox_append(weir_mailbox *mb, delivery *d, weir_mailbox **wakes)
{
    weir__list_append(&mb->waiting, &d->link);
    if (d->message) {
        mb->messages++;
        mb->bytes += d->message->size;
    }
    if (mb->sleeping) {
        mb->sleeping = false;
        pthread_cond_broadcast(&mb->changed);
    }
    if (mb->config.wake && !mb->signalled) {
        mb->signalled = true;
        mb->waking++;
        mb->wake_next = *wakes;
        *wakes = mb;
    }
}

void weir__mailbox_wake(weir_mailbox *wakes)
{
    while (wakes) {
        weir_mailbox *mb = wakes;
        wakes = mb->wake_next;
        mb->config.wake(mb->config.ctx);
        pthread_mutex_lock(&mb->lock);
        if (--mb->waking == 0 && mb->closed)
            pthread_cond_broadcast(&mb->changed);
        pthread_mutex_unlock(&mb->lock);
    }
}

/* ---- handling ---- */

void weir__delivery_free(delivery *d)
{
    weir_message *m = d->message;
    bool          own = d->call || (m && d != &m->own);    /* memory of its own */
    if (d->request)
        weir__request_unref(d->request);
    if (own)
        free(d);
    weir_message_free(m);
}

static void unqueue(weir_mailbox *mb, delivery *d)
{
    weir__list_remove(&mb->waiting, &d->link);
    if (d->message) {
        mb->messages--;
        mb->bytes -= d->message->size;
    }
}

/* The handler's thread has the trace context of the message meanwhile, if that is a valid one. */
static void call_handler(weir_message *m, weir_message_fn *handler, void *ctx)
{
    char before[WEIR_TRACEPARENT_LEN + 1];
    weir_trace_get(before);
    weir_trace_set(NULL, NULL);
    for (size_t i = 0; i < m->n_headers; i++)
        if (strcasecmp(m->headers[i].name, WEIR_TRACEPARENT) == 0)
            weir_trace_set(m->headers[i].value, NULL);
    handler(m, ctx);
    weir_trace_set(*before ? before : NULL, NULL);
}

static void handle(delivery *d, weir_message_fn *handler, void *ctx)
{
    if (d->call) {
        d->call(d);
        return;
    }
    if (d->message)
        call_handler(d->message, handler, ctx);
    else
        weir__request_run(d->request);
    weir__delivery_free(d);
}

void weir__mailbox_call(weir_mailbox *mb, delivery *d)
{
    weir_mailbox *wakes = NULL;
    pthread_mutex_lock(&mb->lock);
    bool closed = mb->closed;
    if (!closed)
        weir__mailbox_append(mb, d, &wakes);
    pthread_mutex_unlock(&mb->lock);
    if (closed)
        free(d);
    weir__mailbox_wake(wakes);
}

static void wait_for_first(weir_mailbox *mb, int64_t timeout_ms)
{
    weir_deadline end = weir__deadline_in(timeout_ms);
    while (!mb->waiting.first && !mb->closed) {
        mb->sleeping = true;
        if (!weir__cond_wait_until(&mb->changed, &mb->lock, end))
            break;
    }
    mb->sleeping = false;
}

size_t weir__mailbox_run(weir_mailbox *mb, size_t max, int64_t timeout_ms, bool *left)
{
    size_t n = 0;
    pthread_mutex_lock(&mb->lock);
    if (!mb->waiting.first && timeout_ms)
        wait_for_first(mb, timeout_ms);
    for (; n < max && mb->waiting.first && !mb->closed; n++) {
        delivery *d = WEIR_OF(mb->waiting.first, delivery, link);
        unqueue(mb, d);
        const weir_consumer *c = mb->running = d->consumer;
        weir_message_fn *handler = c ? c->handler : NULL;
        void            *ctx = c ? c->ctx : NULL;
        mb->runner = pthread_self();
        pthread_mutex_unlock(&mb->lock);
        handle(d, handler, ctx);
        pthread_mutex_lock(&mb->lock);
        mb->running = NULL;
        mb->runs++;
        if (mb->awaited)
            pthread_cond_broadcast(&mb->changed);
    }
    *left = mb->waiting.first;
    if (!*left)
        mb->signalled = false;
    pthread_mutex_unlock(&mb->lock);
    return n;
}

size_t weir_mailbox_run(weir_mailbox *mb, size_t max, int64_t timeout_ms)
{
    bool left;
    return weir__mailbox_run(mb, max, timeout_ms, &left);
}

static void *thread_main(void *ctx)
{
    weir_mailbox *mb = ctx;
    bool          closed = false;
    while (!closed) {
        weir_mailbox_run(mb, THREAD_RUN, -1);
        pthread_mutex_lock(&mb->lock);
        closed = mb->closed;
        pthread_mutex_unlock(&mb->lock);
    }
    weir__mailbox_unref(mb);
    return NULL;
}

weir_code weir__mailbox_start(weir_mailbox *mb, const char *name, weir_error *err)
{
    atomic_fetch_add(&mb->refs, 1);
    weir_code rc = weir__thread_start(&mb->thread, thread_main, mb, name, err);
    mb->threaded = !rc;
    if (rc)
        weir__mailbox_unref(mb);
    return rc;
}

/* ---- the beginning and the end ---- */

weir_code weir_mailbox_create(weir_mailbox **out, weir_bus *b, const weir_mailbox_config *config,
                              weir_error *err)
{
    *out = NULL;
    if (config && WEIR__CHECK_RESERVED(config, err))
        return WEIR_EINVAL;
    weir_mailbox *mb = *out = calloc(1, sizeof *mb);
    if (!mb)
        return weir_fail(err, WEIR_ENOMEM, "mailbox: out of memory");
    mb->refs = 1;
    mb->bus = b;
    if (config)
        mb->config = *config;
    if (!mb->config.messages)
        mb->config.messages = WEIR_MAILBOX_MESSAGES;
    if (!mb->config.bytes)
        mb->config.bytes = WEIR_MAILBOX_BYTES;
    pthread_mutex_init(&mb->lock, NULL);
    weir__cond_init(&mb->changed);
    return WEIR_OK;
}

void weir__mailbox_unref(weir_mailbox *mb)
{
    if (atomic_fetch_sub(&mb->refs, 1) > 1)
        return;
    pthread_cond_destroy(&mb->changed);
    pthread_mutex_destroy(&mb->lock);
    free(mb);
}

void weir__mailbox_forget(weir_mailbox *mb, weir_consumer *c, weir_dlist *out)
{
    pthread_mutex_lock(&mb->lock);
    WEIR_EACH(delivery, d, &mb->waiting, link) {
        if (d->consumer != c)
            continue;
        unqueue(mb, d);
        weir__list_append(out, &d->link);
    }
    uint64_t run = mb->runs;
    bool     elsewhere = mb->running == c && !pthread_equal(mb->runner, pthread_self());
    mb->awaited += elsewhere;
    while (elsewhere && mb->runs == run)
        pthread_cond_wait(&mb->changed, &mb->lock);
    mb->awaited -= elsewhere;
    pthread_mutex_unlock(&mb->lock);
}

/* Messages that have not been handled, and requests without a reply. */
static void drop_all(weir_mailbox *mb, weir_dlist *waiting, weir_dlist *requests)
{
    WEIR_EACH(delivery, d, waiting, link)
        weir__delivery_free(d);
    WEIR_EACH(bus_request, rq, requests, link)
        weir__request_forget(rq);
    weir__mailbox_unref(mb);
}

void weir_mailbox_destroy(weir_mailbox *mb)
{
    if (!mb)
        return;
    weir_consumer *c;
    while ((c = weir__bus_consumer_of(mb)))
        weir_consumer_close(c);
    pthread_mutex_lock(&mb->lock);
    mb->closed = true;
    weir_dlist waiting = mb->waiting, requests = mb->requests;
    mb->waiting = mb->requests = (weir_dlist){ 0 };
    WEIR_EACH(bus_request, rq, &requests, link)
        rq->open = false;
    pthread_cond_broadcast(&mb->changed);
    while (mb->waking)
        pthread_cond_wait(&mb->changed, &mb->lock);
    pthread_mutex_unlock(&mb->lock);
    if (mb->threaded && pthread_equal(mb->thread, pthread_self()))
        pthread_detach(mb->thread);
    else if (mb->threaded)
        pthread_join(mb->thread, NULL);
    drop_all(mb, &waiting, &requests);
}
