/* api_bus.c - the event bus: who consumes what, and a message to try it: /v1/bus. */
#include <string.h>

#include "server/api/api.h"
#include "server/bus/bus.h"
#include "server/http/body.h"

/* ---- GET /v1/bus ---- */

static void get_bus(srv_request *r)
{
    weir_error err = { 0 };
    weir_buf   body = { 0 };
    if (!srv_allow(r, WEIR_ROLE_ADMIN, NULL))
        return;
    if (srv_bus_addresses(r->server->bus->bus, &body, &err)) {
        weir__buf_fini(&body);
        srv_reply_error(r, &err);
    } else {
        srv_reply_json(r, 200, &body);
    }
}

/* ---- POST /v1/bus ---- */

enum { TRIAL_MS = 5000, MAX_TRIAL_MS = 10 * 1000 };     /* to wait for a reply */

/* In memory of the request. */
typedef struct trial {
    weir_inbox_task task;               /* first */
    srv_request    *r;
    const char     *address, *how;
    weir_json_piece body, headers;
    int64_t         timeout_ms;
    weir_header     header[WEIR_MAX_BUS_HEADERS];
    size_t          n_headers;
    weir_reply      reply;
} trial;

static const weir_field trial_fields[] = {
    WEIR_FIELD("address", weir__as_text, offsetof(trial, address), .needed = true, .min = 1,
               .max = WEIR_MAX_BUS_ADDRESS),
    WEIR_FIELD("how", weir__as_text, offsetof(trial, how)),
    WEIR_FIELD("body", weir__as_raw, offsetof(trial, body)),
    WEIR_FIELD("headers", weir__as_raw, offsetof(trial, headers)),
    WEIR_FIELD("timeout", weir__as_ms, offsetof(trial, timeout_ms), .min = 1,
               .max = MAX_TRIAL_MS),
    { 0 }
};

/* False: it was answered. */
static bool read_headers(trial *t)
{
    weir_json_walk  w;
    weir_json_piece name, value;
    if (!t->headers.len)
        return true;
    bool ok = *t->headers.text == '{' && weir__json_open(&w, t->headers);
    while (ok && weir__json_next(&w, &name, &value)) {
        char  *n = srv_alloc(t->r, name.len), *v = srv_alloc(t->r, value.len);
        size_t len;
        ok = *value.text == '"' && t->n_headers < WEIR_MAX_BUS_HEADERS && n && v &&
             weir__json_text(name, n, &len) && weir__json_text(value, v, &len);
        t->header[t->n_headers] = (weir_header){ n, v };
        t->n_headers += ok;
    }
    if (!ok)
        srv_reply_fail(t->r, WEIR_EINVAL, "headers", "headers: must be an object of at most %d "
                       "texts", WEIR_MAX_BUS_HEADERS);
    return ok;
}

/* On the loop of the request. */
static void show_reply(weir_inbox_task *task)
{
    trial       *t = (trial *)task;
    weir_buf     body = { 0 };
    weir_message *m = t->reply.message;
    size_t       len;
    if (m) {
        const char *text = weir_message_body(m, &len);
        weir__buf_str(&body, "{\"body\":");
        weir__buf_add(&body, text, len);
    } else {
        weir__buf_printf(&body, "{\"failureCode\":%d,\"failureType\":\"%s\",\"message\":",
                         t->reply.code, weir_failure_name(t->reply.failure));
        weir__json_string(&body, t->reply.text, strlen(t->reply.text));
        if (t->reply.failure == WEIR_FAILURE_ERROR)
            weir__buf_printf(&body, ",\"error\":\"%s\"", weir_code_name(t->reply.error));
    }
    weir__buf_char(&body, '}');
    weir_message_free(m);
    srv_reply_json(t->r, 200, &body);
}

static void replied(const weir_reply *reply, void *ctx)
{
    trial *t = ctx;
    t->reply = *reply;
    if (reply->message)
        weir_message_keep(reply->message);
    srv_loop_post(t->r->loop, &t->task);
}

static void post_bus(srv_request *r)
{
    trial     *t;
    weir_error err = { 0 };
    weir_bus  *bus = r->server->bus->bus;
    if (!srv_allow(r, WEIR_ROLE_ADMIN, NULL) || !SRV_STATE(r, t))
        return;
    t->r = r;
    t->task.run = show_reply;
    t->how = "request";
    t->timeout_ms = TRIAL_MS;
    if (!srv_body(r, trial_fields, t) || !read_headers(t))
        return;
    weir_content c = { .body = t->body.text, .body_len = t->body.len, .headers = t->header,
                       .n_headers = t->n_headers };
    weir_expect  e = { .fn = replied, .ctx = t, .timeout_ms = t->timeout_ms };
    weir_code    rc;
    if (strcmp(t->how, "request") == 0)
        rc = weir_bus_request_async(bus, t->address, &c, &e, &err);
    else if (strcmp(t->how, "publish") == 0)
        rc = weir_bus_publish(bus, t->address, &c, &err);
    else if (strcmp(t->how, "send") == 0)
        rc = weir_bus_send(bus, t->address, &c, &err);
    else
        rc = weir_fail(&err, WEIR_EINVAL, "how: must be request, send or publish");
    if (rc)
        srv_reply_error(r, &err);
    else if (strcmp(t->how, "request") != 0)
        srv_reply_empty(r, 204);
}

const srv_route srv_bus_routes[] = {
    { "GET", "/v1/bus", WEIR_ROLE_ADMIN, get_bus, 0, NULL, 0,
      "Addresses of the event bus that have consumers", NULL, "BusAddresses", 200 },
    { "POST", "/v1/bus", WEIR_ROLE_ADMIN, post_bus, SRV_MAX_SMALL_BODY, NULL, 0,
      "Publish, send or request on the event bus; a request answers with the reply or the failure",
      "BusMessage", "BusReply", 200 },
    { 0 }
};
