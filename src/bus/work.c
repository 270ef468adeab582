/* work.c - who gets what: work, processors, and work in the hands of a processor. See work.h. */
#include "bus/work.h"

#include <stdlib.h>
#include <string.h>

enum { LATE_MS = 24 * 3600 * 1000 };        /* how long after its time an answer is waited for */

/* The message that a processor receives. */
static weir_content body_of(const work *w)
{
    if (w->job)
        return (weir_content){ .body = w->job->data, .body_len = w->job->data_len,
                               .headers = w->headers, .n_headers = w->n_headers };
    return weir__content_of(w->message);
}

/* ---- work ---- */

work *weir__work_create(weir_workqueue *q, weir_message *m, weir_job *job)
{
    work *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->message = m;
    w->job = job;
    w->size = body_of(w).body_len;
    q->bytes += w->size;
    return w;
}

void weir__work_enqueue(weir_workqueue *q, work *w, bool first)
{
    w->waits = true;
    weir__list_insert(&q->waiting, first ? NULL : q->waiting.last, &w->link);
    WORK_COUNT(q, waiting, 1);
}

static void unqueue(weir_workqueue *q, work *w)
{
    if (!w->waits)
        return;
    w->waits = false;
    weir__list_remove(&q->waiting, &w->link);
    WORK_COUNT(q, waiting, (size_t)-1);
}

void weir__work_free(weir_workqueue *q, work *w)
{
    q->bytes -= w->size;
    weir_message_free(w->message);
    weir_message_free(w->ending.to);
    weir_message_free(w->ending.reply);
    free(w->ending.text);
    weir_job_free(w->job);
    weir__arena_free(&w->arena);
    free(w);
}

void weir__work_unref(weir_workqueue *q, work *w)
{
    if (--w->refs == 0 && w->done)
        weir__work_free(q, w);
}

/* Deliveries that still have it only wait for their end. */
void weir__work_end(weir_workqueue *q, work *w)
{
    if (w->done)
        return;
    w->done = true;
    unqueue(q, w);
    if (!w->refs)
        weir__work_free(q, w);
}

/* ---- deliveries ---- */

static void unref(work_delivery *d)
{
    weir_workqueue *q = d->q;
    if (--d->refs)
        return;
    weir__list_remove(&q->deliveries, &d->link);
    weir__work_unref(q, d->work);
    if (d->timer)
        weir__request_unref(d->timer);
    weir_message_free(d->asks);
    weir_message_free(d->sender);
    free(d);
}

/* The processor is idle again, or gone. */
static void free_slot(work_delivery *d, bool gone)
{
    weir_workqueue *q = d->q;
    slot           *s = d->slot;
    if (!s)
        return;
    d->slot = NULL;
    weir__list_remove(&q->busy, &s->link);
    WORK_COUNT(q, busy, (size_t)-1);
    if (!d->late)
        WORK_COUNT(q, running, (size_t)-1);
    if (s->leaves)
        weir__work_free_slot(q, s);
    else if (*s->process)
        weir__work_put_away(q, s);
    else if (gone)
        weir__work_end_slot(q, s);
    else
        weir__work_add_slot(q, s);
}

static void stop_timer(work_delivery *d)
{
    if (!d->late && weir__request_cancel(d->timer))
        unref(d);                           /* otherwise its call is on the way */
}

/* The processor is gone: its work goes to the next. The caller still has its reference. */
static void give_back(work_delivery *d)
{
    weir_workqueue *q = d->q;
    work           *w = d->work;
    bool            late = d->late;
    free_slot(d, true);
    stop_timer(d);
    if (!late && !w->done)
        weir__work_enqueue(q, w, true);
    weir__work_dispatch(q);
}

void weir__work_answer(weir_message *to, const weir_message *reply, weir_failure failure, int code,
                       const char *text)
{
    if (!reply) {
        weir__message_answer(to, failure, code, text, NULL);
        return;
    }
    weir_content c = weir__content_of(reply);
    weir_message_reply(to, &c, NULL);
}

static void count_done(weir_workqueue *q)
{
    pthread_mutex_lock(&q->lock);
    q->stats.done++;
    weir__rate_add(&q->rate, weir__coarse_ms(), 1);
    pthread_mutex_unlock(&q->lock);
}

/* The processor is done: the last reply, or its failure, is the sender's. A reply without message
 * and failure: the sender expects none. */
static void finish(work_delivery *d, const weir_reply *reply)
{
    weir_workqueue *q = d->q;
    work           *w = d->work;
    weir_message   *to = d->sender ? d->sender : w->message;
    if (to && ((!reply->message && !reply->failure) || !weir_message_expects_reply(to)))
        to = NULL;
    free_slot(d, false);
    stop_timer(d);
    if (!w->done) {
        count_done(q);
        if (q->store)
            weir__work_store_finish(q, w, to, reply);
        else if (to)
            weir__work_answer(to, reply->message, reply->failure,
                              weir__reply_code(reply), reply->text);
        weir__work_end(q, w);
    }
    weir__work_dispatch(q);
}

static void processed(const weir_reply *reply, void *ctx);

/* The sender's reply to a reply of the processor. */
static void sender_answered(const weir_reply *reply, void *ctx)
{
    static const weir_reply nothing = { .failure = WEIR_FAILURE_NONE };
    work_delivery *d = ctx;
    weir_message  *asks = d->asks;
    d->asks = NULL;
    weir_message_free(d->sender);
    d->sender = NULL;
    if (!reply->message) {
        weir__message_answer(asks, reply->failure, weir__reply_code(reply), reply->text, NULL);
    } else {
        weir_content c = weir__content_of(reply->message);
        weir_expect  e = { .fn = processed, .ctx = d, .mailbox = d->q->mb,
                           .timeout_ms = d->q->timeout_ms + LATE_MS };
        if (!weir_message_expects_reply(reply->message)) {
            weir_message_reply(asks, &c, NULL);
        } else if (weir_message_request_async(asks, &c, &e, NULL) == WEIR_OK) {
            d->sender = weir_message_keep(reply->message);
            weir_message_free(asks);
            return;                         /* with the reference of this call */
        }
    }
    weir_message_free(asks);
    finish(d, &nothing);                    /* the sender expects no more */
    unref(d);
}

/* A reply that expects the sender's: hand it on. True: the sender's reply will come. */
static bool pass_on(work_delivery *d, weir_message *reply)
{
    weir_message *to = d->sender ? d->sender : d->work->message;
    weir_content  c = weir__content_of(reply);
    weir_expect   e = { .fn = sender_answered, .ctx = d, .mailbox = d->q->mb,
                        .timeout_ms = d->q->timeout_ms };
    if (!weir_message_expects_reply(reply))
        return false;
    if (!d->work->done && to && weir_message_expects_reply(to) &&
        weir_message_request_async(to, &c, &e, NULL) == WEIR_OK) {
        d->asks = weir_message_keep(reply);
        return true;
    }
    weir__message_answer(reply, WEIR_FAILURE_ERROR, WEIR_ESTALE, "the sender of the work does not "
                         "wait for a reply", NULL);
    return false;
}

/* The processor has answered, has failed, or is gone. */
static void processed(const weir_reply *reply, void *ctx)
{
    work_delivery *d = ctx;
    if (reply->message && pass_on(d, reply->message))
        return;                             /* with the reference of this call */
    if (reply->failure && reply->failure != WEIR_FAILURE_RECIPIENT_FAILURE)
        give_back(d);
    else
        finish(d, reply);
    unref(d);
}

static void time_is_over(const weir_reply *reply, void *ctx)
{
    (void)reply;
    work_delivery  *d = ctx;
    weir_workqueue *q = d->q;
    if (d->slot) {
        d->late = true;
        WORK_COUNT(q, running, (size_t)-1);
        WORK_COUNT(q, timed_out, 1);
        if (!d->work->done)
            weir__work_enqueue(q, d->work, q->timed_out_first);
        weir__work_dispatch(q);
    }
    unref(d);
}

/* Give work to a processor; both are in no list now. False: out of memory, and nothing happened. */
static bool deliver(weir_workqueue *q, work *w, slot *s)
{
    weir_expect    timer = { .fn = time_is_over, .mailbox = q->mb, .timeout_ms = q->timeout_ms };
    weir_expect    e = { .fn = processed, .mailbox = q->mb,
                         .timeout_ms = q->timeout_ms + LATE_MS };
    weir_content   c = body_of(w);
    work_delivery *d = calloc(1, sizeof *d);
    if (!d)
        return false;
    timer.ctx = e.ctx = d;
    if (weir__request_open(&d->timer, q->bus, s->address, &timer, NULL)) {
        free(d);
        return false;
    }
    if (weir_bus_request_async(q->bus, s->address, &c, &e, NULL)) {
        weir__request_cancel(d->timer);
        weir__request_unref(d->timer);
        free(d);
        return false;
    }
    d->q = q;
    d->refs = 2;
    d->work = w;
    d->slot = s;
    w->refs++;
    weir__list_append(&q->deliveries, &d->link);
    return true;
}

/* Another process has the address: it gets the work that waits here in memory. */
static void pass_on_waiting(weir_workqueue *q)
{
    WEIR_EACH(work, w, &q->waiting, link) {
        weir__bus_send_again(q->bus, weir_message_keep(w->message), NULL);
        weir__work_end(q, w);
    }
}

void weir__work_dispatch(weir_workqueue *q)
{
    if (!q->store && !weir__leader_leads(q->leader))
        pass_on_waiting(q);
    while (q->waiting.first && q->idle.first) {
        work *w = WEIR_OF(q->waiting.first, work, link);
        slot *s = WEIR_OF(q->idle.first, slot, link);
        if (!deliver(q, w, s))
            break;                          /* no memory: the next event tries again */
        unqueue(q, w);
        weir__list_remove(&q->idle, &s->link);
        weir__list_append(&q->busy, &s->link);
        WORK_COUNT(q, idle, (size_t)-1);
        WORK_COUNT(q, busy, 1);
        WORK_COUNT(q, running, 1);
    }
    if (q->store)
        weir__work_store_turn(q);
}

void weir__work_release(weir_workqueue *q, work *w)
{
    w->refs++;
    WEIR_EACH(work_delivery, d, &q->deliveries, link) {
        if (d->work != w || !d->slot)
            continue;
        d->refs++;
        free_slot(d, false);
        stop_timer(d);
        d->refs--;                          /* its answer has one still */
    }
    weir__work_unref(q, w);
}

/* ---- the end ---- */

static void drop(weir_workqueue *q, work *w)
{
    if (!w->done && w->message && weir_message_expects_reply(w->message))
        weir__message_answer(w->message, WEIR_FAILURE_ERROR, WEIR_ECLOSED,
                             "the work queue was closed", NULL);
    unqueue(q, w);
    w->done = true;
}

void weir__work_drop_all(weir_workqueue *q)
{
    WEIR_EACH(work_delivery, d, &q->deliveries, link) {
        drop(q, d->work);
        d->refs = 1;
        unref(d);
    }
    WEIR_EACH(work, w, &q->waiting, link) {
        drop(q, w);
        if (!w->refs)
            weir__work_free(q, w);
    }
    WEIR_EACH(slot, s, &q->idle, link)
        free(s);
    WEIR_EACH(slot, s, &q->busy, link)
        free(s);
    WEIR_EACH(slot, s, &q->known, link)
        free(s);
    WEIR_EACH(slot, s, &q->away, link)
        free(s);
}
