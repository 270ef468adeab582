/* bridge.c - one client of the bus: see bridge.h. */
#include "server/bus/bridge.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bus/transport.h"
#include "server/access/audit.h"
#include "server/bus/bus.h"

/* ---- writing ---- */

static void begin(bridge *b, const char *type)
{
    weir__buf_clear(&b->out);
    weir__buf_str(&b->out, "{\"type\":\"");
    weir__buf_str(&b->out, type);
    weir__buf_char(&b->out, '"');
}

static void end(bridge *b)
{
    weir__buf_char(&b->out, '}');
    if (!b->out.failed)
        b->write(b, &b->out);
    else
        srv_conn_hang_up(b->conn);          /* no memory: the client must notice that messages are
                                               lost */
    if (b->out.cap > SRV_READ_SIZE)
        weir__buf_fini(&b->out);
    b->out.failed = false;
}

void bridge_error(bridge *b, const char *code)
{
    if (!code)
        return;
    begin(b, "err");
    bridge_write_text(&b->out, b->dialect->code, code);
    end(b);
}

static void write_message(bridge *b, const weir_message *m, const char *address,
                          const char *reply_address)
{
    size_t      len, n;
    const char *body = weir_message_body(m, &len);
    bool        null = len == 4 && memcmp(body, "null", 4) == 0;
    weir_message_headers(m, &n);
    begin(b, b->dialect->message);
    bridge_write_text(&b->out, "address", address);
    if (*reply_address)
        bridge_write_text(&b->out, "replyAddress", reply_address);
    if (n || b->dialect->send_flag)
        bridge_write_headers(&b->out, m);
    if (!null || !b->dialect->send_flag) {
        weir__buf_str(&b->out, ",\"body\":");
        weir__buf_add(&b->out, body, len);
    }
    if (b->dialect->send_flag)
        weir__buf_str(&b->out, weir_message_sent(m) ? ",\"send\":true" : ",\"send\":false");
    end(b);
}

static weir_code refused_error(const char *code)
{
    static const struct {
        const char *code;
        weir_code   error;
    } known[] = { { "access_denied", WEIR_EREADONLY }, { "rate_limited", WEIR_EUNAVAIL },
                  { "max_handlers_reached", WEIR_ELIMIT },
                  { "max_address_length_reached", WEIR_ELIMIT } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].code, code) == 0)
            return known[i].error;
    return WEIR_EINVAL;
}

/* The rest of a failed request. */
static void write_failure(bridge *b, weir_failure failure, int code, weir_code error,
                          const char *text)
{
    weir__buf_printf(&b->out, ",\"failureCode\":%d", code);
    bridge_write_text(&b->out, "failureType", weir_failure_name(failure));
    if (failure == WEIR_FAILURE_ERROR)
        bridge_write_text(&b->out, "error", weir_code_name(error));
    bridge_write_text(&b->out, "message", text);
    end(b);
}

/* Report to the client what is wrong with this message. */
static void refuse(bridge *b, const bridge_message *m, const char *code)
{
    if (!b->dialect->failures || !m->reply_address) {
        bridge_error(b, code);
        return;
    }
    begin(b, "err");
    bridge_write_text(&b->out, "address", m->reply_address);
    write_failure(b, WEIR_FAILURE_ERROR, -1, refused_error(code), code);
}

/* ---- replies that the client owes ---- */

typedef struct owed {
    weir_named    named;
    weir_link     link;
    weir_message *message;
    size_t        size;
    char          address[WEIR_REPLY_ADDRESS];
} owed;

static weir_message *remove_owed(bridge *b, owed *o)
{
    weir_message *m = o->message;
    weir__names_remove(&b->owed, &o->named);
    weir__list_remove(&b->owed_order, &o->link);
    b->n_owed--;
    b->owed_bytes -= o->size;
    free(o);
    return m;
}

static void fail_owed(bridge *b, owed *o, weir_code error, const char *why)
{
    weir_message *m = remove_owed(b, o);
    weir__message_answer(m, WEIR_FAILURE_ERROR, error, why, NULL);
    weir_message_free(m);
}

/* The client is given a reply address, "" if no reply is expected. */
static bool hand_out(bridge *b, weir_message *m, char reply_address[WEIR_REPLY_ADDRESS])
{
    if (!weir_message_reply_address(m, reply_address))
        return true;
    owed *o = calloc(1, sizeof *o);
    if (!o)
        return false;
    memcpy(o->address, reply_address, sizeof o->address);
    if (!weir__names_put(&b->owed, &o->named, o->address)) {
        free(o);
        return false;
    }
    weir_message_body(m, &o->size);
    o->message = weir_message_keep(m);
    weir__list_append(&b->owed_order, &o->link);
    b->n_owed++;
    b->owed_bytes += o->size;
    while (b->n_owed > 1 && (b->n_owed > BRIDGE_MAX_OWED || b->owed_bytes > BRIDGE_MAX_OWED_BYTES))
        fail_owed(b, WEIR_OF(b->owed_order.first, owed, link), WEIR_EFULL,
                  "the recipient has too many requests that it did not answer");
    return true;
}

/* ---- from the bus to the client ---- */

typedef struct registration {
    weir_named     named;
    bridge        *bridge;
    weir_consumer *consumer;
    char           address[];
} registration;

static void deliver(weir_message *m, void *ctx)
{
    registration *r = ctx;
    char          reply_address[WEIR_REPLY_ADDRESS];
    if (hand_out(r->bridge, m, reply_address))
        write_message(r->bridge, m, r->address, reply_address);
    else
        srv_conn_hang_up(r->bridge->conn);
}

/* A request of the client, until it is answered. */
typedef struct asked {
    weir_link link;
    bridge   *bridge;
    char     *address;              /* in room, behind the reply address */
    char      room[];
} asked;

static void fail_asked(bridge *b, const asked *q, const weir_reply *r)
{
    begin(b, "err");
    bridge_write_text(&b->out, "address", q->room);
    if (b->dialect->source_address)
        bridge_write_text(&b->out, "sourceAddress", q->address);
    write_failure(b, r->failure, r->code, r->error, r->text);
}

static void remove_asked(bridge *b, asked *q)
{
    weir__list_remove(&b->asked, &q->link);
    b->n_asked--;
    free(q);
}

static void answered(const weir_reply *reply, void *ctx)
{
    asked  *q = ctx;
    bridge *b = q->bridge;
    char    reply_address[WEIR_REPLY_ADDRESS];
    if (!reply->message)
        fail_asked(b, q, reply);
    else if (hand_out(b, reply->message, reply_address))
        write_message(b, reply->message, q->room, reply_address);
    else
        srv_conn_hang_up(b->conn);
    remove_asked(b, q);
}

/* Deliver as much as the client takes; the rest waits in the mailbox. */
static void run(bridge *b)
{
    while (!srv_conn_is_behind(b->conn)) {
        size_t n = weir_mailbox_run(b->mb, BRIDGE_RUN, 0);
        srv_conn_flush(b->conn);
        if (n < BRIDGE_RUN)
            return;
        if (!atomic_exchange(&b->posted, true)) {
            srv_loop_post(b->conn->thread->loop, &b->task);
            return;
        }
    }
}

static void run_task(weir_inbox_task *task)
{
    bridge *b = (bridge *)((char *)task - offsetof(bridge, task));
    atomic_store(&b->posted, false);
    if (b->gone)
        b->release(b);
    else
        run(b);
}

static void wake(void *ctx)
{
    bridge *b = ctx;
    if (!atomic_exchange(&b->posted, true))
        srv_loop_post(b->conn->thread->loop, &b->task);
}

void bridge_drained(bridge *b)
{
    run(b);
}

/* ---- who it is ---- */

/* Everything that reaches the bus needs one of these roles; what is allowed is in the permits. */
static const srv_route door = { .roles = WEIR_ROLE_READ | WEIR_ROLE_PRODUCE | WEIR_ROLE_WORK |
                                         WEIR_ROLE_ADMIN };

bool bridge_check(bridge *b)
{
    srv_refusal no;
    srv_head    head = { .route = &door, .method = "GET", .peer = b->conn->peer, .host = b->host,
                         .origin = b->origin, .fetch_site = b->fetch_site,
                         .authorization = b->authorization };
    bool ok = srv_guard_admit(b->conn->server->guard, &head, srv_loop_ms(), &b->who, &no);
    if (!ok)
        b->who = (srv_caller){ 0 };
    return ok || !b->authorization;
}

/* A message may bring the token, which pays for this and what follows. NULL, or the code of what is
 * wrong. */
static const char *take_token(bridge *b, const bridge_message *m)
{
    const char *text = bridge_message_header(m, "Authorization");
    char        why[WEIR_ERROR_MAX];
    if (!text || (b->authorization && strcmp(text, b->authorization) == 0))
        return NULL;
    free(b->authorization);
    b->authorization = strdup(text);
    if (!bridge_check(b) || !b->who.roles)
        return "access_denied";
    if (srv_share_token(b->conn, b->who.name, why))
        return NULL;
    b->who = (srv_caller){ 0 };
    return "rate_limited";
}

static bool permitted(const bridge *b, const srv_permits *permits, unsigned roles,
                      const char *address)
{
    bool admin = b->who.roles & WEIR_ROLE_ADMIN;
    if (weir__bus_reserved(address) || !strncmp(address, SRV_JOB_ENDS, strlen(SRV_JOB_ENDS)) ||
        !strncmp(address, SRV_WORKQUEUE_SERVERS, strlen(SRV_WORKQUEUE_SERVERS)))
        return false;
    if (strcmp(address, SRV_BUS_SERVICE) == 0)      /* as the routes of HTTP, from anywhere */
        return admin;
    if (admin && srv_permits_all_to(b->conn->peer))
        return true;
    return b->who.roles & roles && srv_permits_match(permits, address);
}

/* ---- from the client to the bus ---- */

static void do_ping(bridge *b, bridge_message *m)
{
    (void)m;
    if (!b->dialect->pong)
        return;
    begin(b, "pong");
    end(b);
}

static void do_register(bridge *b, bridge_message *m)
{
    if (!permitted(b, b->bus->outbound, WEIR_ROLE_READ, m->address)) {
        bridge_error(b, "access_denied");
        return;
    }
    if (weir__names_get(&b->registered, m->address)) {
        bridge_error(b, b->dialect->registered_twice);
        return;
    }
    if (b->n_registered + b->n_asked >= BRIDGE_MAX_HANDLERS) {
        bridge_error(b, "max_handlers_reached");
        return;
    }
    size_t        len = strlen(m->address) + 1;
    registration *r = calloc(1, sizeof *r + len);
    if (r) {
        r->bridge = b;
        memcpy(r->address, m->address, len);
        weir_consumer_config c = { .address = r->address, .handler = deliver, .ctx = r,
                                   .mailbox = b->mb };
        if (weir_bus_consume(&r->consumer, b->bus->bus, &c, NULL) == WEIR_OK &&
            weir__names_put(&b->registered, &r->named, r->address)) {
            b->n_registered++;
            return;
        }
        weir_consumer_close(r->consumer);
        free(r);
    }
    bridge_error(b, "registration_failure");
}

static void unregister(bridge *b, registration *r)
{
    weir__names_remove(&b->registered, &r->named);
    b->n_registered--;
    weir_consumer_close(r->consumer);
    free(r);
}

static void do_unregister(bridge *b, bridge_message *m)
{
    registration *r = weir__names_get(&b->registered, m->address);
    if (!permitted(b, b->bus->outbound, WEIR_ROLE_READ, m->address))
        bridge_error(b, "access_denied");
    else if (r)
        unregister(b, r);
    else
        bridge_error(b, b->dialect->unknown_address);
}

/* The header `timeout`; 0: it is missing. False: it is no whole number of milliseconds, or out of
 * range. */
static bool read_timeout(const bridge_message *m, int64_t *out)
{
    const char *text = bridge_message_header(m, "timeout");
    char       *end;
    *out = 0;
    if (!text)
        return true;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return isdigit((unsigned char)*text) && !*end && !errno && *out >= 1 &&
           *out <= BRIDGE_MAX_TIMEOUT_MS;
}

/* Headers that are for us are not passed on. */
static weir_content content_of(bridge_message *m)
{
    static const char *const ours[] = { "timeout", "localOnly", "codecName", "Authorization" };
    const char *local = bridge_message_header(m, "localOnly");
    weir_content c = { .body = m->body, .body_len = m->body_len, .headers = m->headers,
                       .local = local && strcmp(local, "true") == 0 };
    for (size_t i = 0; i < m->n_headers; i++) {
        bool keep = true;
        for (size_t k = 0; k < sizeof ours / sizeof *ours; k++)
            keep &= strcmp(m->headers[i].name, ours[k]) != 0;
        if (keep)
            m->headers[c.n_headers++] = m->headers[i];
    }
    m->n_headers = c.n_headers;
    return c;
}

/* Is it wrong, or was it only not delivered, of which a client of Vert.x has no word? */
static bool is_refused(weir_code rc)
{
    return rc && rc != WEIR_ENOENT && rc != WEIR_EFULL && rc != WEIR_ESTALE && rc != WEIR_EUNAVAIL;
}

static asked *create_asked(bridge *b, const bridge_message *m)
{
    size_t reply = strlen(m->reply_address) + 1, address = strlen(m->address) + 1;
    asked *q = calloc(1, sizeof *q + reply + address);
    if (!q)
        return NULL;
    q->bridge = b;
    memcpy(q->room, m->reply_address, reply);
    q->address = q->room + reply;
    memcpy(q->address, m->address, address);
    weir__list_append(&b->asked, &q->link);
    b->n_asked++;
    return q;
}

/* Send, or reply if `to` is set; expect a reply if the message has an address for that. */
static void pass_on(bridge *b, bridge_message *m, weir_message *to)
{
    int64_t   timeout_ms;
    weir_code rc;
    asked    *q = NULL;
    if (!read_timeout(m, &timeout_ms)) {
        refuse(b, m, "invalid_timeout");
        return;
    }
    weir_content c = content_of(m);
    if (m->reply_address && b->n_registered + b->n_asked >= BRIDGE_MAX_HANDLERS) {
        refuse(b, m, "max_handlers_reached");
        return;
    }
    if (m->reply_address && !(q = create_asked(b, m))) {
        refuse(b, m, "rejected");
        return;
    }
    weir_expect e = { .fn = answered, .ctx = q, .mailbox = b->mb, .timeout_ms = timeout_ms };
    if (q)
        rc = to ? weir_message_request_async(to, &c, &e, NULL)
                : weir_bus_request_async(b->bus->bus, m->address, &c, &e, NULL);
    else
        rc = to ? weir_message_reply(to, &c, NULL)
                : weir_bus_send(b->bus->bus, m->address, &c, NULL);
    if (rc && q)
        remove_asked(b, q);
    if (is_refused(rc))
        refuse(b, m, "rejected");
}

/* The name of a message's action in the audit log; NULL: nothing. */
static const char *audited(const bridge_message *m, const char *name, bool *admin)
{
    *admin = true;
    if (name && strcmp(m->address, SRV_BUS_SERVICE) == 0)
        return srv_bus_service_audit(name);
    if (name && strcmp(m->address, SRV_JOB_SERVICE) == 0)
        return srv_job_service_audit(name, admin);
    return NULL;
}

/* Actions that change jobs or work queues are in the audit log, like the same routes of HTTP. */
static void audit(const bridge *b, const bridge_message *m)
{
    srv_server *s = b->conn->server;
    const char *name = bridge_message_header(m, "action");
    char        detail[SRV_AUDIT_TEXT];
    bool        admin;
    const char *action = s->audit ? audited(m, name, &admin) : NULL;
    if (!action || (s->opt.audit == SRV_AUDIT_ADMIN && !admin))
        return;
    snprintf(detail, sizeof detail, "%s %.*s", name, (int)(m->body_len < 200 ? m->body_len : 200),
             m->body ? m->body : "");
    srv_audit_record(s->audit, &(srv_audit_item){ .at = weir__wall_ms(), .token = b->who.name,
                     .address = b->conn->peer, .action = action, .path = m->address,
                     .detail = detail, .status = 202 });
}

static void do_send(bridge *b, bridge_message *m)
{
    owed *o = weir__names_get(&b->owed, m->address);
    if (!o) {
        if (!permitted(b, b->bus->inbound, WEIR_ROLE_PRODUCE | WEIR_ROLE_WORK, m->address)) {
            refuse(b, m, "access_denied");
            return;
        }
        audit(b, m);
        pass_on(b, m, NULL);
        return;
    }
    weir_message *to = remove_owed(b, o);
    if (m->fails)
        weir_message_fail(to, m->failure_code, m->text, NULL);
    else
        pass_on(b, m, to);
    weir_message_free(to);
}

static void do_publish(bridge *b, bridge_message *m)
{
    if (!permitted(b, b->bus->inbound, WEIR_ROLE_PRODUCE | WEIR_ROLE_WORK, m->address)) {
        refuse(b, m, "access_denied");
        return;
    }
    weir_content c = content_of(m);
    if (is_refused(weir_bus_publish(b->bus->bus, m->address, &c, NULL)))
        refuse(b, m, "rejected");
}

static const struct {
    const char *type;
    bool        address;            /* it needs one */
    void      (*run)(bridge *b, bridge_message *m);
} types[] = {
    { "send", true, do_send },          { "publish", true, do_publish },
    { "register", true, do_register },  { "unregister", true, do_unregister },
    { "ping", false, do_ping },
};

static void dispatch(bridge *b, bridge_message *m)
{
    size_t i = 0, n = sizeof types / sizeof *types;
    while (i < n && strcmp(types[i].type, m->type) != 0)
        i++;
    if (i == n)
        bridge_error(b, b->dialect->unknown_type);
    else if (types[i].address && (!m->address || !*m->address))
        bridge_error(b, "missing_address");
    else if (m->address && strlen(m->address) > b->dialect->max_address)
        refuse(b, m, "max_address_length_reached");
    else if (m->reply_address && strlen(m->reply_address) > BRIDGE_MAX_REPLY)
        bridge_error(b, "invalid_reply_address");
    else
        types[i].run(b, m);
}

void bridge_receive(bridge *b, const char *json, size_t len)
{
    bridge_message m;
    int64_t        now = srv_loop_ms();
    const char    *why = NULL;
    if (bridge_message_read(&m, json, len, NULL))
        bridge_error(b, "invalid_json");
    else if (srv_quota_request(b->conn->quota[0], now))
        refuse(b, &m, "rate_limited");
    else if ((why = take_token(b, &m)))
        refuse(b, &m, why);
    else if (srv_quota_request(b->conn->quota[1], now))
        refuse(b, &m, "rate_limited");
    else if (!m.type)
        bridge_error(b, b->dialect->no_type);
    else
        dispatch(b, &m);
    bridge_message_fini(&m);
}

/* ---- the beginning and the end ---- */

static bool copy(char **to, const char *text)
{
    *to = text ? strdup(text) : NULL;
    return *to || !text;
}

weir_code bridge_open(bridge *b, const srv_head *head, weir_error *err)
{
    b->task.run = run_task;
    if (head && (!copy(&b->authorization, head->authorization) || !copy(&b->host, head->host) ||
                 !copy(&b->origin, head->origin) || !copy(&b->fetch_site, head->fetch_site)))
        return weir_fail(err, WEIR_ENOMEM, "bridge: out of memory");
    bridge_check(b);
    return weir_mailbox_create(&b->mb, b->bus->bus,
                               &(weir_mailbox_config){ .wake = wake, .ctx = b }, err);
}

static void forget_all(bridge *b)
{
    registration *r;
    size_t        pos = 0;
    while ((r = weir__names_next(&b->registered, &pos, NULL))) {
        unregister(b, r);
        pos = 0;
    }
    while (b->owed_order.first)
        fail_owed(b, WEIR_OF(b->owed_order.first, owed, link), WEIR_ELOST,
                  "the recipient has disconnected before it replied");
    weir_mailbox_destroy(b->mb);
    WEIR_EACH(asked, q, &b->asked, link)
        remove_asked(b, q);
    weir__names_fini(&b->registered);
    weir__names_fini(&b->owed);
    weir__buf_fini(&b->out);
    free(b->authorization);
    free(b->host);
    free(b->origin);
    free(b->fetch_site);
}

void bridge_close(bridge *b)
{
    forget_all(b);
    b->gone = true;
    if (!atomic_load(&b->posted))
        b->release(b);
}
