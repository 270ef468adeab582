/* message.c - a message: one block of memory, shared by reference, and how it is answered. */
#include "bus/inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/json.h"
#include "weir/trace.h"

static size_t body_length(const weir_content *c)
{
    return c->body_len || !c->body ? c->body_len : strlen(c->body);
}

static weir_code check_address(const char *address, weir_error *err)
{
    size_t len = address ? strlen(address) : 0;
    if (!len)
        return weir_fail(err, WEIR_EINVAL, "the address is missing");
    if (len > WEIR_MAX_BUS_ADDRESS)
        return weir_fail(err, WEIR_ELIMIT, "the address has %zu bytes; at most %d are allowed", len,
                         WEIR_MAX_BUS_ADDRESS);
    if (!weir__utf8_valid(address, len))
        return weir_fail(err, WEIR_EINVAL, "the address is not UTF-8");
    return WEIR_OK;
}

static weir_code check_headers(const weir_content *c, weir_error *err)
{
    size_t bytes = 0;
    if (c->n_headers > WEIR_MAX_BUS_HEADERS)
        return weir_fail(err, WEIR_ELIMIT, "%zu headers; at most %d are allowed", c->n_headers,
                         WEIR_MAX_BUS_HEADERS);
    for (size_t i = 0; i < c->n_headers; i++) {
        const weir_header *h = &c->headers[i];
        if (!h->name || !*h->name || !h->value)
            return weir_fail(err, WEIR_EINVAL, "header %zu has no name or no value", i + 1);
        size_t name = strlen(h->name), value = strlen(h->value);
        if (!weir__utf8_valid(h->name, name) || !weir__utf8_valid(h->value, value))
            return weir_fail(err, WEIR_EINVAL, "header %zu is not UTF-8", i + 1);
        bytes += name + value;
    }
    if (bytes > WEIR_MAX_BUS_HEADERS_BYTES)
        return weir_fail(err, WEIR_ELIMIT, "the headers have %zu bytes; at most %d are allowed",
                         bytes, WEIR_MAX_BUS_HEADERS_BYTES);
    return WEIR_OK;
}

weir_code weir__content_check(const char *address, const weir_content *c, weir_error *err)
{
    weir_code   rc = address ? check_address(address, err) : WEIR_OK;
    size_t      len = body_length(c), where;
    const char *why;
    if (!rc)
        rc = WEIR__CHECK_RESERVED(c, err);
    if (!rc)
        rc = check_headers(c, err);
    if (rc)
        return rc;
    if (len > WEIR_MAX_BUS_BODY)
        return weir_fail(err, WEIR_ELIMIT, "the body has %zu bytes; at most %d are allowed", len,
                         WEIR_MAX_BUS_BODY);
    if (c->body && !weir__json_valid(c->body, len, WEIR_MAX_DEPTH, &where, &why))
        return weir_fail(err, why == weir__json_too_deep ? WEIR_ELIMIT : WEIR_EINVAL,
                         "the body is not JSON: %s at byte %zu", why, where);
    return WEIR_OK;
}

static char *put_text(char **at, const char *text, size_t len)
{
    char *to = *at;
    memcpy(to, text, len);
    to[len] = '\0';
    *at += len + 1;
    return to;
}

/* A message that is sent from a trace carries its context, unless it has one already. */
static bool needs_trace(const weir_content *c, char trace[WEIR_TRACEPARENT_LEN + 1])
{
    if (!weir_trace_get(trace) || c->n_headers == WEIR_MAX_BUS_HEADERS)
        return false;
    for (size_t i = 0; i < c->n_headers; i++)
        if (strcasecmp(c->headers[i].name, WEIR_TRACEPARENT) == 0)
            return false;
    return true;
}

static void put_header(weir_header *to, char **at, const char *name, const char *value)
{
    to->name = put_text(at, name, strlen(name));
    to->value = put_text(at, value, strlen(value));
}

weir_code weir__message_create(weir_message **out, weir_bus *b, const char *address,
                               const weir_content *c, bool sent, bus_request *request,
                               weir_error *err)
{
    const char *body = c->body ? c->body : "null";
    size_t      body_len = c->body ? body_length(c) : 4;
    char        trace[WEIR_TRACEPARENT_LEN + 1];
    bool        traced = needs_trace(c, trace);
    size_t      n = c->n_headers + traced;
    size_t      size = sizeof **out + n * sizeof *c->headers + strlen(address) + 1 + body_len + 1;
    if (traced)
        size += sizeof WEIR_TRACEPARENT + sizeof trace;
    for (size_t i = 0; i < c->n_headers; i++)
        size += strlen(c->headers[i].name) + strlen(c->headers[i].value) + 2;
    weir_message *m = *out = malloc(size);
    if (!m)
        return weir_fail(err, WEIR_ENOMEM, "message: out of memory");
    *m = (weir_message){ .refs = 1, .sent = sent, .local = c->local, .bus = b, .request = request,
                         .body_len = body_len, .n_headers = n, .size = size,
                         .headers = (weir_header *)m->room };
    char *at = m->room + n * sizeof *c->headers;
    for (size_t i = 0; i < c->n_headers; i++)
        put_header(&m->headers[i], &at, c->headers[i].name, c->headers[i].value);
    if (traced)
        put_header(&m->headers[c->n_headers], &at, WEIR_TRACEPARENT, trace);
    m->address = put_text(&at, address, strlen(address));
    m->body = put_text(&at, body, body_len);
    return WEIR_OK;
}

/* ---- reading ---- */

const char *weir_message_address(const weir_message *m)
{
    return m->address;
}

const char *weir_message_body(const weir_message *m, size_t *len)
{
    if (len)
        *len = m->body_len;
    return m->body;
}

const weir_header *weir_message_headers(const weir_message *m, size_t *n)
{
    *n = m->n_headers;
    return m->headers;
}

const char *weir_message_header(const weir_message *m, const char *name)
{
    for (size_t i = 0; i < m->n_headers; i++)
        if (strcmp(m->headers[i].name, name) == 0)
            return m->headers[i].value;
    return NULL;
}

bool weir_message_sent(const weir_message *m)
{
    return m->sent;
}

bool weir_message_expects_reply(const weir_message *m)
{
    return m->request != NULL;
}

bool weir_message_reply_address(const weir_message *m, char out[WEIR_REPLY_ADDRESS])
{
    static const char prefix[] = "__weir.reply.";
    char              digits[20], *at = out;    /* by hand: snprintf() is dear for each message */
    size_t            n = 0;
    out[0] = '\0';
    if (!m->request)
        return false;
    at = stpcpy(at, prefix);
    for (uint64_t left = m->request->number; left || !n; left /= 10)
        digits[n++] = (char)('0' + left % 10);
    while (n)
        *at++ = digits[--n];
    *at = '\0';
    return true;
}

weir_content weir__content_of(const weir_message *m)
{
    weir_content c = { 0 };
    c.body = weir_message_body(m, &c.body_len);
    c.headers = weir_message_headers(m, &c.n_headers);
    return c;
}

/* ---- keeping ---- */

weir_message *weir_message_keep(weir_message *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

void weir_message_free(weir_message *m)
{
    if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) > 1)
        return;
    if (m->request)
        weir__request_unref(m->request);
    free(m);
}

weir_message *weir__message_asker(const weir_message *m)
{
    static const weir_content nothing = { 0 };
    weir_message             *out;
    if (!m->request)
        return NULL;
    atomic_fetch_add(&m->request->refs, 1);
    if (weir__message_create(&out, m->bus, m->address, &nothing, true, m->request, NULL) == WEIR_OK)
        return out;
    weir__request_unref(m->request);
    return NULL;
}

bool weir__message_awaited(const weir_message *m)
{
    if (!m->request)
        return false;
    pthread_mutex_lock(&m->request->mailbox->lock);
    bool open = m->request->open;
    pthread_mutex_unlock(&m->request->mailbox->lock);
    return open;
}

int64_t weir__message_left_ms(const weir_message *m)
{
    int64_t left = weir__message_awaited(m) ? m->request->deadline.due - weir__monotonic_ms() : 0;
    return left > 0 ? left : 0;
}

/* ---- answers ---- */

static weir_code no_answer(const weir_message *m, weir_error *err)
{
    return weir_fail(err, WEIR_ESTATE, "the message to %s expects no reply", m->address);
}

static weir_code late(const weir_message *m, weir_error *err)
{
    return weir_fail(err, WEIR_ESTALE, "the message to %s was answered, or its sender does not "
                     "wait any more", m->address);
}

weir_code weir__message_answer(weir_message *m, weir_failure failure, int code, const char *text,
                               weir_error *err)
{
    if (!m->request)
        return no_answer(m, err);
    weir_code rc = weir__request_end(m->request, NULL, failure, code, text ? text : "");
    return rc ? late(m, err) : WEIR_OK;
}

weir_code weir_message_fail(weir_message *m, int code, const char *text, weir_error *err)
{
    return weir__message_answer(m, WEIR_FAILURE_RECIPIENT_FAILURE, code, text, err);
}

/* Reply with a message that itself expects a reply for `request` (NULL: none). */
static weir_code reply_with(weir_message *m, const weir_content *c, bus_request *request,
                            weir_error *err)
{
    weir_message *reply;
    weir_code     rc = weir__message_create(&reply, m->bus, "", c, true, request, err);
    if (rc) {
        if (request)
            weir__request_unref(request);
        return rc;
    }
    if (weir__request_end(m->request, reply, WEIR_FAILURE_NONE, 0, NULL) == WEIR_OK)
        return WEIR_OK;
    weir_message_free(reply);
    return late(m, err);
}

weir_code weir_message_reply(weir_message *m, const weir_content *c, weir_error *err)
{
    static const weir_content nothing = { 0 };
    if (!m->request)
        return no_answer(m, err);
    c = c ? c : &nothing;
    weir_code rc = weir__content_check(NULL, c, err);
    return rc ? rc : reply_with(m, c, NULL, err);
}

weir_code weir_message_request_async(weir_message *m, const weir_content *c, const weir_expect *e,
                                     weir_error *err)
{
    static const weir_content nothing = { 0 };
    bus_request              *rq;
    if (!m->request)
        return no_answer(m, err);
    c = c ? c : &nothing;
    weir_code rc = weir__content_check(NULL, c, err);
    if (!rc)
        rc = weir__request_open(&rq, m->bus, m->address, e, err);
    if (rc)
        return rc;
    atomic_fetch_add(&rq->refs, 1);             /* reply_with() takes over the other */
    rc = reply_with(m, c, rq, err);
    if (rc)
        weir__request_cancel(rq);
    weir__request_unref(rq);
    return rc;
}
