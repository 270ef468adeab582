/* bus.c - the table of addresses, and how messages find their consumers. */
#include "bus/inner.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "bus/process.h"
#include "bus/vanish.h"

static const weir_content nothing = { 0 };

/* ---- the bus ---- */

weir_code weir_bus_create(weir_bus **out, weir_error *err)
{
    weir_bus *b = *out = calloc(1, sizeof *b);
    if (!b)
        return weir_fail(err, WEIR_ENOMEM, "bus: out of memory");
    pthread_mutex_init(&b->lock, NULL);
    weir__deadlines_init(b);
    return WEIR_OK;
}

void weir_bus_close(weir_bus *b)
{
    if (!b)
        return;
    assert(!b->addresses.n && !b->prefixes.first);
    weir_transport *t = b->transport;
    if (t && t->ops->stop)
        t->ops->stop(t);
    weir_mailbox_destroy(b->replies);
    if (t && t->ops->destroy)
        t->ops->destroy(t);
    weir__deadlines_fini(b);
    weir__names_fini(&b->addresses);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

void weir__bus_attach(weir_bus *b, weir_transport *t)
{
    b->transport = t;
}

weir_mailbox *weir__bus_replies(weir_bus *b, weir_error *err)
{
    pthread_mutex_lock(&b->lock);
    weir_mailbox *mb = b->replies;
    if (!mb && !weir_mailbox_create(&mb, b, NULL, err)) {
        if (weir__mailbox_start(mb, "weir-replies", err)) {
            weir__mailbox_unref(mb);
            mb = NULL;
        }
        b->replies = mb;
    }
    pthread_mutex_unlock(&b->lock);
    return mb;
}

/* ---- delivering ---- */

static weir_code no_handlers(weir_message *m, weir_error *err)
{
    char text[WEIR_MAX_BUS_ADDRESS + 40];
    snprintf(text, sizeof text, "No handlers for address %s", m->address);
    if (m->request)
        return weir__request_end(m->request, NULL, WEIR_FAILURE_NO_HANDLERS, -1, text), WEIR_OK;
    return weir_fail(err, WEIR_ENOENT, "%s", text);
}

static weir_code cannot(weir_message *m, const weir_error *why, weir_error *err)
{
    if (m->request)
        return weir__request_end(m->request, NULL, WEIR_FAILURE_ERROR, why->code, why->msg),
               WEIR_OK;
    return weir_fail(err, why->code, "%s", why->msg);
}

static bool try_consumer(weir_consumer *c, weir_message *m, delivery *d, weir_mailbox **wakes)
{
    weir_mailbox *mb = c->mailbox;
    pthread_mutex_lock(&mb->lock);
    bool room = weir__mailbox_has_room(mb, m);
    if (room) {
        *d = (delivery){ .message = weir_message_keep(m), .consumer = c };
        weir__mailbox_append(mb, d, wakes);
    }
    pthread_mutex_unlock(&mb->lock);
    return room;
}

static void count_delivered(bus_address *a, size_t n)
{
    a->delivered += n;
    weir__rate_add(&a->rate, weir__coarse_ms(), n);
}

/* To the next consumer in turn that has room, which then is the last in turn. */
static bool take_turns(bus_address *a, weir_message *m, weir_mailbox **wakes)
{
    WEIR_EACH(weir_consumer, c, &a->consumers, link) {
        if (!try_consumer(c, m, &m->own, wakes))
            continue;
        weir__list_remove(&a->consumers, &c->link);
        weir__list_append(&a->consumers, &c->link);
        count_delivered(a, 1);
        return true;
    }
    return false;
}

/* The consumers of the beginning of an address. The bus is locked. */
static bus_address *find_prefix(weir_bus *b, const char *address)
{
    WEIR_EACH(bus_address, a, &b->prefixes, link)
        if (strncmp(address, a->name, strlen(a->name)) == 0)
            return a;
    return NULL;
}

/* Where a message can go. */
typedef struct targets {
    size_t here, elsewhere;             /* consumers */
    bool   out_first;                   /* it is the turn of another process */
} targets;

static size_t count_out(weir_bus *b, const char *address, bool prefix)
{
    return b->transport ? b->transport->ops->count(b->transport, address, prefix) : 0;
}

/* The consumers of its address; if it has none, the consumers of a beginning of it. The bus is
 * locked. */
static bus_address *find_targets(weir_bus *b, const weir_message *m, bool here, targets *t)
{
    bus_address *a = weir__names_get(&b->addresses, m->address);
    *t = (targets){ .elsewhere = here ? 0 : count_out(b, m->address, false) };
    if (!a && !t->elsewhere && !(a = find_prefix(b, m->address)) && !here)
        t->elsewhere = count_out(b, m->address, true);
    t->here = a ? a->n : 0;
    t->out_first = t->elsewhere && (!a || b->transport->ops->central ||
                                    a->turn++ % (a->n + t->elsewhere) >= a->n);
    return a;
}

static bool deliver_here(weir_bus *b, weir_message *m)
{
    weir_mailbox *wakes = NULL;
    pthread_mutex_lock(&b->lock);
    bus_address *a = weir__names_get(&b->addresses, m->address);
    if (!a)
        a = find_prefix(b, m->address);
    bool done = a && take_turns(a, m, &wakes);
    pthread_mutex_unlock(&b->lock);
    weir__mailbox_wake(wakes);
    return done;
}

static weir_code not_delivered(weir_message *m, const targets *t, weir_error *why, weir_error *err)
{
    if (!t->here && !t->elsewhere)
        return no_handlers(m, err);
    if (!why->code)
        weir_fail(why, WEIR_EFULL, "the mailboxes of all %zu consumers of %s are full", t->here,
                  m->address);
    return cannot(m, why, err);
}

weir_code weir__bus_deliver(weir_bus *b, weir_message *m, bool here, weir_error *err)
{
    weir_mailbox *wakes = NULL;
    weir_error    why = { 0 };
    weir_code     rc = WEIR_OK;
    targets       t;
    pthread_mutex_lock(&b->lock);
    bus_address *a = find_targets(b, m, here || m->local, &t);
    bool         done = !t.out_first && a && take_turns(a, m, &wakes);
    pthread_mutex_unlock(&b->lock);
    weir__mailbox_wake(wakes);
    if (!done && t.elsewhere)
        done = !b->transport->ops->send(b->transport, m, &why);
    if (!done && t.out_first && t.here)
        done = deliver_here(b, m);
    if (!done)
        rc = not_delivered(m, &t, &why, err);
    weir_message_free(m);
    return rc;
}

weir_code weir__bus_send_again(weir_bus *b, weir_message *m, weir_error *err)
{
    return weir__bus_deliver(b, m, false, err);
}

static void deliver_to_all(weir_bus *b, weir_message *m)
{
    weir_mailbox *wakes = NULL;
    delivery     *d = &m->own;
    size_t        n = 0;
    pthread_mutex_lock(&b->lock);
    bus_address *a = weir__names_get(&b->addresses, m->address);
    if (a) {
        WEIR_EACH(weir_consumer, c, &a->consumers, link) {
            if (!d)
                d = malloc(sizeof *d);
            bool room = d && try_consumer(c, m, d, &wakes);
            if (room)
                d = NULL;
            else
                atomic_fetch_add(&c->missed, 1);
            n += room;
        }
        count_delivered(a, n);
    }
    pthread_mutex_unlock(&b->lock);
    if (d != &m->own)
        free(d);
    weir__mailbox_wake(wakes);
}

/* ---- what is consumed elsewhere ---- */

size_t weir__bus_count(weir_bus *b, const char *address)
{
    pthread_mutex_lock(&b->lock);
    const bus_address *a = weir__names_get(&b->addresses, address);
    size_t             n = (a ? a->n : 0) + count_out(b, address, false);
    pthread_mutex_unlock(&b->lock);
    return n;
}

static void notice_elsewhere(weir_bus *b, const char *address, bool on)
{
    for (weir_bus_watch *w = b->watches; w; w = w->next)
        if (w->elsewhere && strncmp(address, w->prefix, strlen(w->prefix)) == 0)
            w->elsewhere(w, address, on);
}

void weir__bus_changed_elsewhere(weir_bus *b, const weir_buf *changes, const char *process)
{
    weir_mailbox *wakes = NULL;
    const char   *at = changes->data, *end = at + changes->len;
    pthread_mutex_lock(&b->lock);
    for (; at < end; at += strlen(at) + 1) {
        notice_elsewhere(b, at + 1, *at == '+');
        if (*at == '-' && !weir__names_get(&b->addresses, at + 1))
            weir__vanish_post(b, at + 1, process, &wakes);
    }
    pthread_mutex_unlock(&b->lock);
    weir__mailbox_wake(wakes);
}

/* ---- sending ---- */

static weir_code publish(weir_bus *b, const char *address, const weir_content *c, bool here,
                         weir_error *err)
{
    weir_message *m;
    weir_code     rc = weir__content_check(address ? address : "", c, err);
    if (!rc)
        rc = weir__message_create(&m, b, address, c, false, NULL, err);
    if (rc)
        return rc;
    const weir_transport_ops *out = here || c->local || !b->transport ? NULL : b->transport->ops;
    if (out)
        rc = out->publish(b->transport, m, NULL, err);
    if (!out || !out->central || rc)
        deliver_to_all(b, m);
    weir_message_free(m);
    return rc;
}

weir_code weir__bus_publish_elsewhere(weir_bus *b, const char *address, const weir_content *c,
                                      const char *unless, weir_error *err)
{
    weir_message *m;
    if (!b->transport)
        return WEIR_OK;
    weir_code rc = weir__content_check(address, c, err);
    if (!rc)
        rc = weir__message_create(&m, b, address, c, false, NULL, err);
    if (rc)
        return rc;
    rc = b->transport->ops->publish(b->transport, m, unless, err);
    weir_message_free(m);
    return rc;
}

static weir_code send(weir_bus *b, const char *address, const weir_content *c, bool here,
                      weir_error *err)
{
    weir_message *m;
    weir_code     rc = weir__content_check(address ? address : "", c, err);
    if (!rc)
        rc = weir__message_create(&m, b, address, c, true, NULL, err);
    return rc ? rc : weir__bus_deliver(b, m, here, err);
}

static weir_code request(weir_bus *b, const char *address, const weir_content *c, bool here,
                         const weir_expect *e, weir_error *err)
{
    weir_message *m;
    bus_request  *rq;
    weir_code     rc = weir__content_check(address ? address : "", c, err);
    if (!rc)
        rc = weir__request_open(&rq, b, address, e, err);
    if (rc)
        return rc;
    rc = weir__message_create(&m, b, address, c, true, rq, err);
    if (!rc)
        return weir__bus_deliver(b, m, here, err);
    weir__request_cancel(rq);
    weir__request_unref(rq);
    return rc;
}

weir_code weir_bus_publish(weir_bus *b, const char *address, const weir_content *c,
                           weir_error *err)
{
    return publish(b, address, c ? c : &nothing, false, err);
}

weir_code weir_bus_send(weir_bus *b, const char *address, const weir_content *c, weir_error *err)
{
    return send(b, address, c ? c : &nothing, false, err);
}

weir_code weir_bus_request_async(weir_bus *b, const char *address, const weir_content *c,
                                 const weir_expect *e, weir_error *err)
{
    return request(b, address, c ? c : &nothing, false, e, err);
}

weir_code weir__bus_arrive(weir_bus *b, const char *address, const weir_content *c, bool sent,
                           const weir_expect *e, weir_error *err)
{
    if (e)
        return request(b, address, c, true, e, err);
    return sent ? send(b, address, c, true, err) : publish(b, address, c, true, err);
}

/* ---- consumers ---- */

/* The address has another number of consumers. The bus is locked. False: out of memory. */
static bool notice(weir_bus *b, const bus_address *a, size_t before)
{
    if (b->transport && !b->transport->ops->listen(b->transport, a->name, a->prefix, a->n))
        return false;
    for (weir_bus_watch *w = b->watches; w && !a->prefix && !(a->n && before); w = w->next)
        if (strncmp(a->name, w->prefix, strlen(w->prefix)) == 0)
            w->changed(w, a->name, a->n);
    return true;
}

static void see_elsewhere(void *ctx, const char *address, size_t consumers)
{
    (void)consumers;
    notice_elsewhere(ctx, address, true);
}

void weir__bus_watch(weir_bus *b, weir_bus_watch *w)
{
    pthread_mutex_lock(&b->lock);
    w->next = b->watches;
    b->watches = w;
    if (b->transport && w->elsewhere)
        b->transport->ops->list(b->transport, see_elsewhere, b);
    pthread_mutex_unlock(&b->lock);
}

/* The address, which is made when it is missing. The bus is locked. */
static bus_address *find_address(weir_bus *b, const char *name, bool prefix)
{
    bus_address *a = prefix ? NULL : weir__names_get(&b->addresses, name);
    if (prefix)
        WEIR_EACH(bus_address, at, &b->prefixes, link)
            if (!strcmp(at->name, name))
                a = at;
    if (a)
        return a;
    a = prefix ? WEIR__NAMED_NEW(bus_address, name)
               : WEIR__NAMES_ADD(&b->addresses, bus_address, name);
    if (!a)
        return NULL;
    a->prefix = prefix;
    if (prefix)
        weir__list_append(&b->prefixes, &a->link);
    return a;
}

/* It has no consumer: the bus forgets it. */
static void remove_address(weir_bus *b, bus_address *a)
{
    if (a->prefix)
        weir__list_remove(&b->prefixes, &a->link);
    else
        weir__names_remove(&b->addresses, &a->named);
    free(a);
}

static bool enter(weir_bus *b, weir_consumer *c, const char *name, bool prefix)
{
    pthread_mutex_lock(&b->lock);
    bus_address *a = find_address(b, name, prefix);
    bool         ok = a;
    if (a) {
        a->n++;
        ok = notice(b, a, a->n - 1);
        if (!ok && --a->n == 0)
            remove_address(b, a);
    }
    if (ok) {
        c->address = a;
        weir__list_append(&a->consumers, &c->link);
        weir__list_append(&c->mailbox->consumers, &c->in_mailbox);
    }
    pthread_mutex_unlock(&b->lock);
    return ok;
}

/* Nothing is delivered to it from here on. */
static void leave(weir_bus *b, weir_consumer *c)
{
    weir_mailbox *wakes = NULL;
    pthread_mutex_lock(&b->lock);
    bus_address *a = c->address;
    weir__list_remove(&c->mailbox->consumers, &c->in_mailbox);
    weir__list_remove(&a->consumers, &c->link);
    a->n--;
    notice(b, a, a->n + 1);
    if (!a->n) {
        if (!a->prefix && !count_out(b, a->name, false))
            weir__vanish_post(b, a->name, "", &wakes);
        remove_address(b, a);
    }
    pthread_mutex_unlock(&b->lock);
    weir__mailbox_wake(wakes);
}

static weir_code create_mailbox(weir_consumer *c, weir_bus *b, weir_error *err)
{
    weir_code rc = weir_mailbox_create(&c->mailbox, b, NULL, err);
    if (!rc && (rc = weir__mailbox_start(c->mailbox, "weir-consumer", err)) != WEIR_OK) {
        weir_mailbox_destroy(c->mailbox);
        c->mailbox = NULL;
    }
    c->owns_mailbox = true;
    return rc;
}

static weir_code open_consumer(weir_consumer **out, weir_bus *b,
                               const weir_consumer_config *config, bool prefix, weir_error *err)
{
    *out = NULL;
    weir_code rc = WEIR__CHECK_RESERVED(config, err);
    if (!rc)
        rc = weir__content_check(config->address ? config->address : "", &nothing, err);
    if (rc)
        return rc;
    weir_consumer *c = calloc(1, sizeof *c);
    if (!c)
        return weir_fail(err, WEIR_ENOMEM, "consumer: out of memory");
    c->handler = config->handler;
    c->ctx = config->ctx;
    c->mailbox = config->mailbox;
    if (!c->mailbox)
        rc = create_mailbox(c, b, err);
    if (!rc && !enter(b, c, config->address, prefix)) {
        if (c->owns_mailbox)
            weir_mailbox_destroy(c->mailbox);
        rc = weir_fail(err, WEIR_ENOMEM, "consumer: out of memory");
    }
    if (rc)
        free(c);
    else
        *out = c;
    return rc;
}

weir_code weir_bus_consume(weir_consumer **out, weir_bus *b, const weir_consumer_config *config,
                           weir_error *err)
{
    return open_consumer(out, b, config, false, err);
}

weir_code weir__bus_consume_prefix(weir_consumer **out, weir_bus *b,
                                   const weir_consumer_config *config, weir_error *err)
{
    return open_consumer(out, b, config, true, err);
}

weir_consumer *weir__bus_consumer_of(weir_mailbox *mb)
{
    pthread_mutex_lock(&mb->bus->lock);
    weir_consumer *c = WEIR_OF(mb->consumers.first, weir_consumer, in_mailbox);
    pthread_mutex_unlock(&mb->bus->lock);
    return c;
}

void weir_consumer_close(weir_consumer *c)
{
    if (!c)
        return;
    weir_mailbox *mb = c->mailbox;
    weir_bus     *b = mb->bus;
    weir_dlist    left = { 0 };
    leave(b, c);
    weir__mailbox_forget(mb, c, &left);
    WEIR_EACH(delivery, d, &left, link) {
        weir_message *m = d->message;
        weir__list_remove(&left, &d->link);
        if (m->sent)
            weir__bus_deliver(b, m, false, NULL);       /* takes over the delivery's reference */
        else
            weir__delivery_free(d);
    }
    if (c->owns_mailbox)
        weir_mailbox_destroy(mb);
    free(c);
}

uint64_t weir_consumer_missed(const weir_consumer *c)
{
    return atomic_load(&c->missed);
}
