/* request.c - a request from its sending to its one outcome: the reply, a failure, or the time that
 * has run out. One thread watches the deadlines of all requests of a bus. */
#include "bus/inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fail.h"
#include "base/thread.h"
#include "base/word.h"

/* ---- references ---- */

void weir__request_unref(bus_request *rq)
{
    if (atomic_fetch_sub(&rq->refs, 1) > 1)
        return;
    weir_message_free(rq->reply);
    weir__mailbox_unref(rq->mailbox);
    free(rq->text);
    free(rq);
}

/* ---- deadlines ---- */

static void expire(bus_request *rq)
{
    char text[WEIR_MAX_FAILURE + 1];
    snprintf(text, sizeof text, "Timed out after waiting %lld(ms) for a reply. address: "
             "__weir.reply.%llu, repliedAddress: %s", (long long)rq->timeout_ms,
             (unsigned long long)rq->number, rq->address);
    weir__request_end(rq, NULL, WEIR_FAILURE_TIMEOUT, -1, text);
    weir__request_unref(rq);
}

/* The next request that is due, with a reference; NULL: none is. The lock is held. */
static bus_request *next_due(weir_bus *b)
{
    weir_heap_node *first = weir__heap_first(&b->deadlines.heap);
    if (!first || first->due > weir__monotonic_ms())
        return NULL;
    weir__heap_remove(&b->deadlines.heap, first);
    bus_request *rq = (bus_request *)first;
    atomic_fetch_add(&rq->refs, 1);
    return rq;
}

static void *watch_deadlines(void *ctx)
{
    weir_bus *b = ctx;
    pthread_mutex_lock(&b->deadlines.lock);
    while (!b->deadlines.closing) {
        bus_request *rq = next_due(b);
        if (rq) {
            pthread_mutex_unlock(&b->deadlines.lock);
            expire(rq);
            pthread_mutex_lock(&b->deadlines.lock);
            continue;
        }
        weir_heap_node *first = weir__heap_first(&b->deadlines.heap);
        int64_t         left = first ? first->due - weir__monotonic_ms() : -1;
        b->deadlines.sleeps_until = first ? first->due : INT64_MAX;
        weir__cond_wait_until(&b->deadlines.changed, &b->deadlines.lock,
                              weir__deadline_in(first && left < 0 ? 0 : left));
    }
    pthread_mutex_unlock(&b->deadlines.lock);
    return NULL;
}

/* The thread may sleep on for a request that has ended meanwhile: so a stream of quick requests
 * wakes it once a timeout, not once a request. */
static weir_code put_deadline(weir_bus *b, bus_request *rq, weir_error *err)
{
    weir_code rc = WEIR_OK;
    pthread_mutex_lock(&b->deadlines.lock);
    if (!b->deadlines.started)
        rc = weir__thread_start(&b->deadlines.thread, watch_deadlines, b, "weir-bus", err);
    b->deadlines.started |= !rc;
    if (!rc && !weir__heap_put(&b->deadlines.heap, &rq->deadline))
        rc = weir_fail(err, WEIR_ENOMEM, "request: out of memory");
    if (!rc && rq->deadline.due < b->deadlines.sleeps_until) {
        b->deadlines.sleeps_until = rq->deadline.due;
        pthread_cond_signal(&b->deadlines.changed);
    }
    pthread_mutex_unlock(&b->deadlines.lock);
    return rc;
}

static void remove_deadline(bus_request *rq)
{
    weir_bus *b = rq->bus;
    pthread_mutex_lock(&b->deadlines.lock);
    weir__heap_remove(&b->deadlines.heap, &rq->deadline);
    pthread_mutex_unlock(&b->deadlines.lock);
}

void weir__deadlines_init(weir_bus *b)
{
    pthread_mutex_init(&b->deadlines.lock, NULL);
    weir__cond_init(&b->deadlines.changed);
    b->deadlines.sleeps_until = INT64_MAX;
}

void weir__deadlines_fini(weir_bus *b)
{
    pthread_mutex_lock(&b->deadlines.lock);
    b->deadlines.closing = true;
    pthread_cond_signal(&b->deadlines.changed);
    pthread_mutex_unlock(&b->deadlines.lock);
    if (b->deadlines.started)
        pthread_join(b->deadlines.thread, NULL);
    weir__heap_fini(&b->deadlines.heap);
    pthread_cond_destroy(&b->deadlines.changed);
    pthread_mutex_destroy(&b->deadlines.lock);
}

/* ---- opening ---- */

/* Count it among the open requests of its mailbox. */
static weir_code enter(bus_request *rq, weir_error *err)
{
    weir_mailbox *mb = rq->mailbox;
    weir_code     rc = WEIR_OK;
    pthread_mutex_lock(&mb->lock);
    if (mb->closed) {                       /* by another thread, while its last handler runs */
        rc = weir_fail(err, WEIR_ECLOSED, "the mailbox is closed");
    } else if (mb->n_requests >= WEIR_MAX_REQUESTS) {
        rc = weir_fail(err, WEIR_ELIMIT, "%zu requests of this mailbox wait for a reply; at most "
                       "%d are allowed", mb->n_requests, WEIR_MAX_REQUESTS);
    } else {
        mb->n_requests++;
        weir__list_append(&mb->requests, &rq->link);
        rq->open = true;
    }
    pthread_mutex_unlock(&mb->lock);
    return rc;
}

weir_code weir__request_open(bus_request **out, weir_bus *b, const char *address,
                             const weir_expect *e, weir_error *err)
{
    size_t        len = strlen(address);
    int64_t       ms = e->timeout_ms > 0 ? e->timeout_ms : WEIR_REPLY_TIMEOUT_MS;
    weir_code     rc = WEIR__CHECK_RESERVED(e, err);
    *out = NULL;
    if (rc)
        return rc;
    weir_mailbox *mb = e->mailbox ? e->mailbox : weir__bus_replies(b, err);
    if (!mb)
        return WEIR_ENOMEM;
    bus_request *rq = malloc(sizeof *rq + len + 1);
    if (!rq)
        return weir_fail(err, WEIR_ENOMEM, "request: out of memory");
    *rq = (bus_request){ .refs = 2, .bus = b, .mailbox = mb, .fn = e->fn, .ctx = e->ctx,
                         .timeout_ms = ms,
                         .number = atomic_fetch_add(&b->requests, 1) + 1 };
    memcpy(rq->address, address, len + 1);
    rq->deadline.due = weir__monotonic_ms() + (ms < INT32_MAX ? ms : INT32_MAX);
    atomic_fetch_add(&mb->refs, 1);
    rc = enter(rq, err);
    if (!rc && (rc = put_deadline(b, rq, err)) != WEIR_OK)
        weir__request_cancel(rq);
    else if (rc)
        weir__request_unref(rq);            /* it never was open */
    if (rc)
        weir__request_unref(rq);
    else
        *out = rq;
    return rc;
}

/* ---- ending ---- */

/* End the open state; the mailbox is locked. False: it had ended. */
static bool leave(bus_request *rq)
{
    if (!rq->open)
        return false;
    rq->open = false;
    weir__list_remove(&rq->mailbox->requests, &rq->link);
    rq->mailbox->n_requests--;
    remove_deadline(rq);
    return true;
}

static char *cut_text(const char *text)
{
    return text ? strndup(text, weir__utf8_cut(text, strlen(text), WEIR_MAX_FAILURE)) : NULL;
}

weir_code weir__request_end(bus_request *rq, weir_message *reply, weir_failure failure, int code,
                            const char *text)
{
    weir_mailbox *mb = rq->mailbox, *wakes = NULL;
    char         *copy = cut_text(text);
    pthread_mutex_lock(&mb->lock);
    bool open = leave(rq);
    if (open) {
        rq->reply = reply;
        rq->failure = failure;
        rq->code = code;
        rq->text = copy;
        rq->outcome.request = rq;           /* with the reference of being open */
        weir__mailbox_append(mb, &rq->outcome, &wakes);
    }
    pthread_mutex_unlock(&mb->lock);
    if (!open)
        free(copy);
    weir__mailbox_wake(wakes);
    return open ? WEIR_OK : WEIR_ESTALE;
}

bool weir__request_cancel(bus_request *rq)
{
    pthread_mutex_lock(&rq->mailbox->lock);
    bool open = leave(rq);
    pthread_mutex_unlock(&rq->mailbox->lock);
    if (open)
        weir__request_unref(rq);
    return open;
}

void weir__request_forget(bus_request *rq)
{
    remove_deadline(rq);
    weir__request_unref(rq);
}

static weir_code error_of(weir_failure failure, int code)
{
    static const weir_code error[WEIR_FAILURE_COUNT] = {
        [WEIR_FAILURE_NO_HANDLERS] = WEIR_ENOENT, [WEIR_FAILURE_TIMEOUT] = WEIR_ETIMEOUT,
        [WEIR_FAILURE_RECIPIENT_FAILURE] = WEIR_EREPLY };
    if (failure != WEIR_FAILURE_ERROR)
        return error[failure];
    return code > WEIR_OK && code < WEIR_CODE_COUNT ? (weir_code)code : WEIR_EREPLY;
}

int weir__reply_code(const weir_reply *r)
{
    return r->failure == WEIR_FAILURE_ERROR ? (int)r->error : r->code;
}

void weir__request_run(bus_request *rq)
{
    weir_reply r;
    r.message = rq->reply;
    r.failure = rq->failure;
    r.error = error_of(rq->failure, rq->code);
    r.code = rq->failure == WEIR_FAILURE_RECIPIENT_FAILURE ? rq->code : rq->failure ? -1 : 0;
    r.text[0] = '\0';
    if (rq->text)
        snprintf(r.text, sizeof r.text, "%s", rq->text);
    rq->fn(&r, rq->ctx);
}

/* ---- waiting for a reply ---- */

typedef struct sync_call {
    weir_reply *out;
    bool        done;
} sync_call;

static void got_reply(const weir_reply *reply, void *ctx)
{
    sync_call *call = ctx;
    *call->out = *reply;
    if (reply->message)
        weir_message_keep(reply->message);
    call->done = true;
}

/* Ask `m` or, if that is NULL, the address. */
static weir_code ask(weir_bus *b, weir_message *m, const char *address, const weir_content *c,
                     int64_t timeout_ms, weir_reply *out, weir_error *err)
{
    sync_call     call = { .out = out };
    weir_mailbox *mb;
    out->message = NULL;
    out->failure = WEIR_FAILURE_ERROR;
    out->code = -1;
    out->text[0] = '\0';
    weir_code rc = weir_mailbox_create(&mb, b, NULL, err);
    if (rc)
        return out->error = rc;
    weir_expect e = { .fn = got_reply, .ctx = &call, .mailbox = mb, .timeout_ms = timeout_ms };
    rc = m ? weir_message_request_async(m, c, &e, err)
           : weir_bus_request_async(b, address, c, &e, err);
    while (!rc && !call.done)
        weir_mailbox_run(mb, 1, -1);
    weir_mailbox_destroy(mb);
    if (rc)
        return out->error = rc;
    return out->error ? weir_fail(err, out->error, "%s", out->text) : WEIR_OK;
}

weir_code weir_bus_request(weir_bus *b, const char *address, const weir_content *c,
                           int64_t timeout_ms, weir_reply *out, weir_error *err)
{
    return ask(b, NULL, address, c, timeout_ms, out, err);
}

weir_code weir_message_request(weir_message *m, const weir_content *c, int64_t timeout_ms,
                               weir_reply *out, weir_error *err)
{
    return ask(m->bus, m, NULL, c, timeout_ms, out, err);
}

const char *weir_failure_name(weir_failure f)
{
    return WEIR__WORD(WEIR_FAILURES, WEIR_FAILURE_COUNT, f, "");
}
