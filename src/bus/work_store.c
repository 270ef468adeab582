/* work_store.c - the work of a persistent queue: messages that come, jobs that end, their senders,
 * events of the store. See work_store.h. */
#include "bus/work_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- calls on the mailbox's thread ---- */

typedef struct queue_call {
    delivery        d;                  /* first */
    weir_workqueue *q;
} queue_call;

static void post(weir_workqueue *q, void (*run)(delivery *))
{
    queue_call *c = calloc(1, sizeof *c);
    if (!c)
        return;
    c->d.call = run;
    c->q = q;
    weir__mailbox_call(q->mb, &c->d);
}

static void run_flush(delivery *d)
{
    weir_workqueue *q = ((queue_call *)d)->q;
    free(d);
    q->store->flush_posted = false;
    weir__work_flush(q);
}

/* Behind what waits in the mailbox now, so that it all goes in one batch. */
static void flush_soon(weir_workqueue *q)
{
    work_store *s = q->store;
    if (s->flush_posted || s->batch)
        return;
    s->flush_posted = true;
    post(q, run_flush);
}

static void timer_over(const weir_reply *reply, void *ctx)
{
    (void)reply;
    weir_workqueue *q = ctx;
    weir__request_unref(q->store->timer);
    q->store->timer = NULL;
    weir__work_flush(q);
}

/* Look again after a while. */
void weir__work_set_timer(weir_workqueue *q, int64_t ms)
{
    weir_expect e = { .fn = timer_over, .ctx = q, .mailbox = q->mb, .timeout_ms = ms > 0 ? ms : 1 };
    if (!q->store->timer)
        weir__request_open(&q->store->timer, q->bus, "", &e, NULL);
}

/* ---- jobs that end without this queue ---- */

static void answer_end(weir_message *m, const job_end *e)
{
    if (e->kind == WEIR_EVENT_COMPLETE)
        weir_message_reply(m, &(weir_content){ .body = e->len ? e->text : NULL,
                                               .body_len = e->len }, NULL);
    else if (e->kind == WEIR_EVENT_FAILED)
        weir_message_fail(m, -1, e->text, NULL);
    else
        weir_message_fail(m, -1, e->kind == WEIR_EVENT_CANCELLED ? "the work was cancelled"
                                                                 : "the work was removed", NULL);
}

/* ---- senders ---- */

void weir__work_update_known(work_store *s)
{
    atomic_store(&s->known, s->held.n || s->senders.n || (s->batch && s->batch->n_adds));
}

/* Forget senders that do not wait any more, if there are too many. */
static bool room_for_sender(work_store *s)
{
    size_t   pos = 0;
    uint64_t id;
    void    *m;
    if (s->senders.n < WEIR_WORK_MESSAGES)
        return true;
    while (weir__map_next(&s->senders, &pos, &id, &m))
        if (!weir__message_awaited(m)) {
            weir__map_remove(&s->senders, id);
            weir_message_free(m);
        }
    return s->senders.n < WEIR_WORK_MESSAGES;
}

void weir__work_put_sender(work_store *s, uint64_t id, weir_message *m)
{
    if (!m)
        return;
    WEIR_EACH(job_end, e, &s->early, d.link)
        if (e->id == id) {
            answer_end(m, e);
            weir_message_free(m);
            return;
        }
    if (!weir__map_put(&s->senders, id, m)) {
        weir__message_answer(m, WEIR_FAILURE_ERROR, WEIR_ENOMEM,
                             "out of memory; the work is kept", NULL);
        weir_message_free(m);
    }
}

/* ---- messages that come ---- */

void weir__work_store_add(weir_workqueue *q, weir_message *m, const char *accepted)
{
    work_store *s = q->store;
    size_t      size;
    weir_message_body(m, &size);
    const char *why = NULL;
    char        text[120];
    weir_buf    values = { 0 };
    weir__work_write_headers(&values, m);
    if (size > WEIR_MAX_DATA || values.len > WEIR_MAX_VALUES_BYTES) {
        bool body = size > WEIR_MAX_DATA;
        snprintf(text, sizeof text, "the %s %zu bytes; a persistent work queue takes at most %d",
                 body ? "body has" : "headers have", body ? size : values.len,
                 body ? WEIR_MAX_DATA : WEIR_MAX_VALUES_BYTES);
        why = text;
    } else if (s->n_adds >= WEIR_WORK_MESSAGES || s->add_bytes + size > WEIR_WORK_BYTES ||
               (weir_message_expects_reply(m) && !room_for_sender(s))) {
        why = "the work queue is full";
    }
    adding *a = why || values.failed ? NULL : malloc(sizeof *a + strlen(accepted) + 1);
    if (!a) {
        weir__buf_fini(&values);
        weir__work_refuse(q, m, accepted, why ? why : "out of memory");
        return;
    }
    *a = (adding){ .message = weir_message_keep(m), .size = size, .values = values };
    strcpy(a->accepted, accepted);
    weir__list_append(&s->adds, &a->link);
    s->n_adds++;
    s->add_bytes += size;
    flush_soon(q);
}

/* ---- jobs that end ---- */

static void set_ending(weir_workqueue *q, work *w, weir_outcome outcome)
{
    work_store *s = q->store;
    w->ending.set = true;
    w->ending.outcome = outcome;
    w->refs++;
    weir__list_append(&s->endings, &w->ending.link);
    s->n_endings++;
    flush_soon(q);
}

void weir__work_store_finish(weir_workqueue *q, work *w, weir_message *to, const weir_reply *reply)
{
    work_ending *e = &w->ending;
    if (e->set)
        return;
    e->to = to ? weir_message_keep(to) : NULL;
    e->reply = reply->message ? weir_message_keep(reply->message) : NULL;
    e->failure = reply->failure;
    e->code = weir__reply_code(reply);
    e->text = reply->failure ? strdup(reply->text) : NULL;
    set_ending(q, w, reply->failure ? WEIR_OUTCOME_FAIL : WEIR_OUTCOME_DONE);
}

/* ---- what happens to jobs ---- */

/* A job has ended without this queue: in another process, or by hand. */
static void run_end(delivery *d)
{
    job_end       *e = (job_end *)d;
    weir_workqueue *q = e->q;
    work_store     *s = q->store;
    weir_message   *m = weir__map_remove(&s->senders, e->id);
    work           *w = weir__map_get(&s->held, e->id);
    if (!m && !w && s->batch && s->batch->n_adds) {
        weir__list_append(&s->early, &e->d.link);
        return;
    }
    if (m) {
        answer_end(m, e);
        weir_message_free(m);
    }
    if (w && !w->ending.set) {
        weir__map_remove(&s->held, e->id);
        if (w->message)
            answer_end(w->message, e);
        if (e->kind == WEIR_EVENT_COMPLETE || e->kind == WEIR_EVENT_FAILED)
            weir__work_release(q, w);
        weir__work_end(q, w);
        weir__work_dispatch(q);
    }
    weir__work_update_known(s);
    free(e);
}

static void run_more(delivery *d)
{
    weir_workqueue *q = ((queue_call *)d)->q;
    free(d);
    q->store->more = true;
    flush_soon(q);
}

/* On the callback thread of the store's queue. */
static void on_event(const weir_event *event, void *ctx)
{
    weir_workqueue *q = ctx;
    if (event->kind == WEIR_EVENT_ENQUEUE || event->missed) {
        atomic_store(&q->store->news, true);
        if (atomic_exchange(&q->store->hungry, false))
            post(q, run_more);
        if (event->kind == WEIR_EVENT_ENQUEUE)
            return;
    }
    if (!atomic_load(&q->store->known))
        return;
    job_end *e = calloc(1, sizeof *e + event->text_len + 1);
    if (!e)
        return;
    e->d.call = run_end;
    e->q = q;
    e->id = event->id;
    e->kind = event->kind;
    e->len = event->text_len;
    if (e->len)
        memcpy(e->text, event->text, e->len);
    weir__mailbox_call(q->mb, &e->d);
}

/* ---- turns ---- */

/* Without processors, or where another process leads, nothing is held: others may take it. */
static void return_waiting(weir_workqueue *q)
{
    WEIR_EACH(work, w, &q->waiting, link) {
        set_ending(q, w, WEIR_OUTCOME_RETURN);
        weir__work_end(q, w);
    }
}

void weir__work_store_turn(weir_workqueue *q)
{
    work_store *s = q->store;
    bool        useless = (s->closing || !q->stats.idle) && !q->stats.busy;
    if (q->waiting.first && (useless || !weir__leader_leads(q->leader)))
        return_waiting(q);
    if (s->more && weir__work_wanted(q))
        flush_soon(q);
    weir__work_update_known(s);
}

/* ---- the beginning and the end ---- */

weir_code weir__work_store_open(weir_workqueue *q, const weir_workqueue_config *config,
                                weir_error *err)
{
    const char *type = config->collection ? config->collection : config->address;
    work_store *s = q->store = calloc(1, sizeof *s);
    if (!s || !(s->type = strdup(type)))
        return weir_fail(err, WEIR_ENOMEM, "work queue: out of memory");
    weir__cond_init(&s->changed);
    s->queue = config->queue;
    s->more = true;
    weir_filter f = { .type = s->type,
                      .events = WEIR_BIT(WEIR_EVENT_ENQUEUE) | WEIR_BIT(WEIR_EVENT_COMPLETE) |
                                WEIR_BIT(WEIR_EVENT_FAILED) | WEIR_BIT(WEIR_EVENT_CANCELLED) |
                                WEIR_BIT(WEIR_EVENT_REMOVE) };
    uint64_t  n;                        /* counts nothing: is the type a good one? */
    weir_code rc = weir_count(s->queue, WEIR_STATE_INACTIVE, s->type, &n, err);
    return rc ? rc : weir_listen(s->queue, &f, on_event, q, &s->listener, err);
}

static void run_stop(delivery *d)
{
    weir_workqueue *q = ((queue_call *)d)->q;
    work_store     *s = q->store;
    size_t          pos = 0;
    uint64_t        id;
    void           *w;
    free(d);
    s->closing = true;
    while (weir__map_next(&s->held, &pos, &id, &w))
        if (!((work *)w)->ending.set) {
            set_ending(q, w, WEIR_OUTCOME_RETURN);
            weir__work_end(q, w);
        }
    weir__work_flush(q);
}

void weir__work_store_stop(weir_workqueue *q)
{
    work_store *s = q->store;
    weir_unlisten(s->listener);
    if (!s->listener || !q->mb->threaded)
        return;
    post(q, run_stop);
    pthread_mutex_lock(&q->lock);
    while (!s->stopped)
        pthread_cond_wait(&s->changed, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

void weir__work_store_free(weir_workqueue *q)
{
    work_store *s = q->store;
    size_t      pos = 0;
    uint64_t    id;
    void       *m;
    while (weir__map_next(&s->senders, &pos, &id, &m)) {
        weir__message_answer(m, WEIR_FAILURE_ERROR, WEIR_ECLOSED,
                             "the work queue was closed; the work is kept", NULL);
        weir_message_free(m);
    }
    WEIR_EACH(adding, a, &s->adds, link) {
        weir_message_free(a->message);
        weir__buf_fini(&a->values);
        free(a);
    }
    weir__work_free_early(s);
    if (s->timer)
        weir__request_unref(s->timer);
    weir__map_fini(&s->senders);
    weir__map_fini(&s->held);
    pthread_cond_destroy(&s->changed);
    free(s->type);
    free(s);
    q->store = NULL;
}
