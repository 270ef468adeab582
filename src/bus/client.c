/* client.c - a bus through a weir server: a transport (bus/transport.h) that speaks the messages of
 * the server's TCP bridge (docs/bus.md). Every message that is not local goes to the server, which
 * sends those for consumers of this process back. So the server's permissions hold, and consumers
 * take turns as its bus decides. */
#include "bus/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus/client_message.h"

enum { ANSWER_MS = 600 * 1000 };        /* how long a consumer of this process may take to reply */

#define REPLY_PREFIX "__weir.http."

/* A request that waits for an answer of the server. */
typedef struct sent_request {
    weir_link     link;
    weir_message *message;              /* with a reference */
} sent_request;

/* An address that is registered. */
typedef struct registered {
    weir_named named;
    char       name[];
} registered;

typedef struct bus_client {
    weir_transport  t;                  /* first */
    weir_bus       *bus;
    weir_carrier    carrier;
    pthread_mutex_t lock;               /* guards what follows; taken after the lock of the bus */
    weir_names      registered;
    weir_map        sent;               /* number to sent_request */
    uint64_t        numbers;
    weir_dlist      relays;
} bus_client;

/* A request from the server that a consumer of this process is to answer. */
typedef struct relay {
    weir_link   link;
    bus_client *client;
    char        address[];              /* for the answer */
} relay;

/* ---- writing ---- */

static void put_text(weir_buf *out, const char *before, const char *text)
{
    weir__buf_str(out, before);
    weir__json_string(out, text, strlen(text));
}

static void put_content(weir_buf *out, const weir_content *c, int64_t timeout_ms)
{
    char number[24];
    weir__buf_str(out, ",\"headers\":{");
    for (size_t i = 0; i < c->n_headers; i++) {
        put_text(out, i ? "," : "", c->headers[i].name);
        put_text(out, ":", c->headers[i].value);
    }
    if (timeout_ms) {
        snprintf(number, sizeof number, "%" PRId64, timeout_ms);
        put_text(out, c->n_headers ? ",\"timeout\":" : "\"timeout\":", number);
    }
    weir__buf_str(out, "},\"body\":");
    weir__buf_add(out, c->body, c->body_len);
}

static weir_code post(bus_client *cl, weir_buf *text, weir_error *err)
{
    weir__buf_char(text, '}');
    weir_envelope e = { .bytes = text->data, .len = text->len };
    weir_code     rc = text->failed ? weir_fail(err, WEIR_ENOMEM, "bus: out of memory")
                                    : cl->carrier.post(cl->carrier.ctx, &e, err);
    weir__buf_fini(text);
    return rc;
}

static weir_buf begin(const char *type, const char *address)
{
    weir_buf out = { 0 };
    put_text(&out, "{\"type\":", type);
    put_text(&out, ",\"address\":", address);
    return out;
}

/* ---- requests of this process ---- */

static sent_request *take_sent(bus_client *cl, uint64_t number)
{
    pthread_mutex_lock(&cl->lock);
    sent_request *s = number ? weir__map_remove(&cl->sent, number) : NULL;
    pthread_mutex_unlock(&cl->lock);
    return s;
}

static void forget_sent(sent_request *s)
{
    weir_message_free(s->message);
    free(s);
}

/* Its number; 0: out of memory. */
static uint64_t keep_sent(bus_client *cl, weir_message *m)
{
    sent_request *s = malloc(sizeof *s);
    if (!s)
        return 0;
    *s = (sent_request){ .message = m };
    pthread_mutex_lock(&cl->lock);
    uint64_t number = ++cl->numbers;
    bool     ok = weir__map_put(&cl->sent, number, s);
    pthread_mutex_unlock(&cl->lock);
    if (!ok) {
        free(s);
        return 0;
    }
    weir_message_keep(m);
    return number;
}

/* Send a message, also as a reply, and keep it if it expects an answer. */
static weir_code send_message(bus_client *cl, const char *address, weir_message *m,
                              weir_error *err)
{
    weir_content c = weir__content_of(m);
    weir_buf     out = begin("send", address);
    uint64_t     number = 0;
    char         reply[40];
    if (weir_message_expects_reply(m)) {
        number = keep_sent(cl, m);
        snprintf(reply, sizeof reply, REPLY_PREFIX "%" PRIu64, number);
        put_text(&out, ",\"replyAddress\":", reply);
        out.failed = out.failed || !number;
    }
    put_content(&out, &c, number ? weir__message_left_ms(m) : 0);
    weir_code     rc = post(cl, &out, err);
    sent_request *s = rc ? take_sent(cl, number) : NULL;
    if (s)
        forget_sent(s);
    return rc && number && !s ? WEIR_OK : rc;       /* it has failed with the connection already */
}

/* The number of an address for replies; 0: another address. */
static uint64_t number_of(const char *address)
{
    size_t len = strlen(REPLY_PREFIX);
    return strncmp(address, REPLY_PREFIX, len) ? 0 : strtoull(address + len, NULL, 10);
}

/* ---- requests of the server ---- */

static void free_relay(relay *r)
{
    pthread_mutex_lock(&r->client->lock);
    weir__list_remove(&r->client->relays, &r->link);
    pthread_mutex_unlock(&r->client->lock);
    free(r);
}

static void fail_request(bus_client *cl, const char *address, int code, const char *text)
{
    weir_buf out = begin("send", address);
    weir__buf_printf(&out, ",\"failureCode\":%d", code);
    put_text(&out, ",\"message\":", text);
    post(cl, &out, NULL);
}

static void relay_answer(const weir_reply *reply, void *ctx)
{
    relay     *r = ctx;
    weir_error why;
    if (!reply->message)
        fail_request(r->client, r->address, reply->code, reply->text);
    else if (send_message(r->client, r->address, reply->message, &why))
        weir__message_answer(reply->message, WEIR_FAILURE_ERROR, why.code, why.msg, NULL);
    free_relay(r);
}

/* False: out of memory. */
static bool expect_answer(bus_client *cl, const char *address, weir_expect *out)
{
    size_t len = strlen(address) + 1;
    relay *r = calloc(1, sizeof *r + len);
    if (!r)
        return false;
    r->client = cl;
    memcpy(r->address, address, len);
    pthread_mutex_lock(&cl->lock);
    weir__list_append(&cl->relays, &r->link);
    pthread_mutex_unlock(&cl->lock);
    *out = (weir_expect){ .fn = relay_answer, .ctx = r, .timeout_ms = ANSWER_MS };
    return true;
}

/* ---- what comes ---- */

/* A request, or a reply that expects one: have it answered. */
static void take_request(bus_client *cl, const client_message *m, weir_message *to)
{
    weir_expect e;
    weir_error  why = { 0 };
    if (!expect_answer(cl, m->reply_address, &e))
        return;
    weir_code rc = to ? weir_message_request_async(to, &m->content, &e, &why)
                      : weir__bus_arrive(cl->bus, m->address, &m->content, true, &e, &why);
    if (!rc)
        return;
    fail_request(cl, m->reply_address, -1, why.msg);
    free_relay(e.ctx);
}

static void take_message(bus_client *cl, const client_message *m)
{
    sent_request *s = take_sent(cl, number_of(m->address));
    if (s && m->reply_address)
        take_request(cl, m, s->message);
    else if (s)
        weir_message_reply(s->message, &m->content, NULL);
    else if (m->reply_address)
        take_request(cl, m, NULL);
    else
        weir__bus_arrive(cl->bus, m->address, &m->content, m->send, NULL, NULL);
    if (s)
        forget_sent(s);
}

/* The code with this name; WEIR_OK: unknown. */
static weir_code find_code(const char *name)
{
    weir_code code = WEIR_CODE_COUNT;
    while (--code > WEIR_OK && (!name || strcmp(weir_code_name(code), name)))
        ;
    return code;
}

static void take_failure(bus_client *cl, const client_message *m)
{
    sent_request *s = take_sent(cl, number_of(m->address));
    weir_failure  f = WEIR_FAILURE_NONE + 1;
    if (!s)
        return;
    while (f < WEIR_FAILURE_ERROR && (!m->failure || strcmp(weir_failure_name(f), m->failure)))
        f++;
    int code = f == WEIR_FAILURE_ERROR ? (int)find_code(m->error) : m->code;
    weir__message_answer(s->message, f, code, m->text, NULL);
    forget_sent(s);
}

static void client_arrived(void *ctx, const char *bytes, size_t len)
{
    bus_client *cl = ctx;
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena };
    client_message m = { 0 };
    if (weir__client_read(&in, bytes, len, &m) && m.address) {
        if (!strcmp(m.type, "message"))
            take_message(cl, &m);
        else if (!strcmp(m.type, "err"))
            take_failure(cl, &m);
    }
    weir__arena_free(&arena);
}

/* The connection is lost: replies cannot come any more. */
static void client_gone(void *ctx, const char *process)
{
    bus_client *cl = ctx;
    weir_dlist  failed = { 0 };
    size_t      pos = 0;
    uint64_t    number;
    void       *value;
    (void)process;
    pthread_mutex_lock(&cl->lock);
    while (weir__map_next(&cl->sent, &pos, &number, &value)) {
        weir__map_remove(&cl->sent, number);
        weir__list_append(&failed, &((sent_request *)value)->link);
    }
    pthread_mutex_unlock(&cl->lock);
    WEIR_EACH(sent_request, s, &failed, link) {
        weir__message_answer(s->message, WEIR_FAILURE_ERROR, WEIR_ELOST,
                             "the connection to the server was lost", NULL);
        forget_sent(s);
    }
}

/* The connection is new: send the server the addresses that are consumed here. */
static void client_lost(void *ctx)
{
    bus_client *cl = ctx;
    size_t      pos = 0;
    pthread_mutex_lock(&cl->lock);
    for (registered *r = NULL; (r = weir__names_next(&cl->registered, &pos, r));) {
        weir_buf out = begin("register", r->name);
        post(cl, &out, NULL);
    }
    pthread_mutex_unlock(&cl->lock);
}

/* ---- the transport ---- */

/* Consumers of prefixes are for messages that this process cannot send out. */
static bool client_listen(weir_transport *t, const char *address, bool prefix, size_t consumers)
{
    bus_client *cl = (bus_client *)t;
    if (prefix)
        return true;
    pthread_mutex_lock(&cl->lock);
    registered *r = weir__names_get(&cl->registered, address);
    bool        change = !r == (consumers > 0), ok = true;
    if (change && !r)
        ok = WEIR__NAMES_ADD(&cl->registered, registered, address);
    if (change && ok) {
        weir_buf out = begin(r ? "unregister" : "register", address);
        post(cl, &out, NULL);           /* if there is no connection, the next one does */
    }
    if (change && r) {
        weir__names_remove(&cl->registered, &r->named);
        free(r);
    }
    pthread_mutex_unlock(&cl->lock);
    return ok;
}

/* Only the server has them. */
static size_t client_count(weir_transport *t, const char *address, bool prefix)
{
    (void)t;
    (void)address;
    return !prefix;
}

static void client_list(weir_transport *t, weir_address_fn *fn, void *ctx)
{
    (void)t;
    (void)fn;
    (void)ctx;
}

/* Only the server has the list of processes and their addresses. */
static weir_code client_publish(weir_transport *t, weir_message *m, const char *unless,
                                weir_error *err)
{
    if (unless)
        return WEIR_OK;
    weir_content c = weir__content_of(m);
    weir_buf     out = begin("publish", weir_message_address(m));
    put_content(&out, &c, 0);
    return post((bus_client *)t, &out, err);
}

static weir_code client_send(weir_transport *t, weir_message *m, weir_error *err)
{
    return send_message((bus_client *)t, weir_message_address(m), m, err);
}

static void client_stop(weir_transport *t)
{
    bus_client *cl = (bus_client *)t;
    cl->carrier.leave(cl->carrier.ctx);
}

static void client_destroy(weir_transport *t)
{
    bus_client *cl = (bus_client *)t;
    size_t      pos = 0;
    uint64_t    number;
    void       *value;
    while (weir__map_next(&cl->sent, &pos, &number, &value))
        forget_sent(value);
    WEIR_EACH(relay, r, &cl->relays, link)
        free(r);
    pos = 0;
    for (registered *r; (r = weir__names_next(&cl->registered, &pos, NULL)); pos = 0) {
        weir__names_remove(&cl->registered, &r->named);
        free(r);
    }
    weir__map_fini(&cl->sent);
    weir__names_fini(&cl->registered);
    pthread_mutex_destroy(&cl->lock);
    free(cl);
}

weir_code weir__client_join(weir_bus *b, const weir_carrier *carrier, weir_error *err)
{
    static const weir_transport_ops ops = {
        .central = true, .listen = client_listen, .count = client_count, .list = client_list,
        .publish = client_publish, .send = client_send,
        .stop = client_stop, .destroy = client_destroy,
    };
    bus_client *cl = calloc(1, sizeof *cl);
    if (!cl)
        return weir_fail(err, WEIR_ENOMEM, "bus: out of memory");
    cl->t.ops = &ops;
    cl->bus = b;
    cl->carrier = *carrier;
    pthread_mutex_init(&cl->lock, NULL);
    weir_member m = { .arrived = client_arrived, .lost = client_lost, .gone = client_gone,
                      .ctx = cl };
    weir_code   rc = carrier->join(carrier->ctx, &m, err);
    if (rc)
        client_destroy(&cl->t);
    else
        weir__bus_attach(b, &cl->t);
    return rc;
}
