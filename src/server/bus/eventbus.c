/* eventbus.c - the bus at /eventbus: over SockJS (its information, and its WebSocket transport) and
 * over plain WebSockets, with the messages of Vert.x's bridge or with our own.
 *
 * SockJS has frames of its own inside the frames of the WebSocket. From the server: "o" (open), "h"
 * (still there), a["text",...] (messages), c[code,"reason"] (close). From the client: ["text",...]
 * or "text". */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/json.h"
#include "server/access/guard.h"
#include "server/bus/bridge.h"
#include "server/bus/bus.h"
#include "server/bus/websocket.h"

enum { MAX_WS_ADDRESS = 200 };

typedef struct ws_client {
    websocket w;                    /* first: the connection's pointer is this one's */
    bridge    b;
    bool      sockjs;
    srv_timer heartbeat;
    weir_buf  frame;                /* of SockJS, being written */
} ws_client;

static const bridge_dialect ws_dialect = {
    .message = "rec", .code = "body", .max_address = MAX_WS_ADDRESS, .no_type = "missing_type",
    .unknown_type = "invalid_type", .registered_twice = "address_already_registered",
};

static ws_client *of_bridge(bridge *b)
{
    return (ws_client *)((char *)b - offsetof(ws_client, b));
}

/* ---- writing ---- */

static void write_message(bridge *b, const weir_buf *json)
{
    ws_client *c = of_bridge(b);
    if (!c->sockjs) {
        websocket_write(&c->w, json->data, json->len);
        return;
    }
    weir__buf_clear(&c->frame);
    weir__buf_str(&c->frame, "a[");
    weir__json_string(&c->frame, json->data, json->len);
    weir__buf_char(&c->frame, ']');
    if (c->frame.failed)
        srv_conn_hang_up(b->conn);
    else
        websocket_write(&c->w, c->frame.data, c->frame.len);
    if (c->frame.cap > SRV_READ_SIZE || c->frame.failed)
        weir__buf_fini(&c->frame);
}

static void beat(void *ctx);

static void beat_later(ws_client *c)
{
    srv_timer_set(&c->heartbeat, c->w.conn->thread->loop,
                  c->w.conn->server->opt.limits.heartbeat_ms, beat, c);
}

static void beat(void *ctx)
{
    ws_client *c = ctx;
    websocket_write(&c->w, "h", 1);
    srv_conn_flush(c->w.conn);
    beat_later(c);
}

/* ---- reading ---- */

/* A client that is alive sends pings. */
static void note_alive(ws_client *c)
{
    c->w.conn->deadline_ms = srv_loop_ms() + c->w.conn->server->opt.limits.ping_ms;
}

static void receive_one(const char *json, size_t len, void *ctx)
{
    bridge_receive(ctx, json, len);
}

static void receive_text(websocket *w, const char *text, size_t len)
{
    ws_client *c = (ws_client *)w;
    note_alive(c);
    if (!c->sockjs)
        bridge_receive(&c->b, text, len);
    else if (!bridge_sockjs_read(text, len, receive_one, &c->b))
        websocket_close(w, WEBSOCKET_PROTOCOL, "");
}

/* ---- the connection ---- */

static void receive(srv_upgrade *u, const char *bytes, size_t n)
{
    websocket_read((websocket *)u, bytes, n);
}

static void drained(srv_upgrade *u)
{
    bridge_drained(&((ws_client *)u)->b);
}

static bool check(srv_upgrade *u)
{
    return bridge_check(&((ws_client *)u)->b);
}

static void stop(srv_upgrade *u, srv_end why)
{
    static const struct { uint16_t code; const char *reason; } ends[] = {
        [SRV_END_STOP] = { WEBSOCKET_GOING_AWAY, "the server stops" },
        [SRV_END_SILENT] = { WEBSOCKET_GOING_AWAY, "the client sent no ping" },
        [SRV_END_DENIED] = { WEBSOCKET_POLICY, "the token is not valid" },
    };
    ws_client        *c = (ws_client *)u;
    static const char last[] = "c[3000,\"Go away!\"]";
    if (c->sockjs)
        websocket_write(&c->w, last, sizeof last - 1);
    websocket_close(&c->w, ends[why].code, ends[why].reason);
}

static void closed(srv_upgrade *u)
{
    ws_client *c = (ws_client *)u;
    srv_timer_unset(&c->heartbeat);
    websocket_fini(&c->w);
    bridge_close(&c->b);
}

static void release(bridge *b)
{
    ws_client *c = of_bridge(b);
    weir__buf_fini(&c->frame);
    free(c);
}

static void begin(srv_request *r, const bridge_dialect *dialect, bool sockjs)
{
    static const srv_upgrade_ops ops = { .receive = receive, .drained = drained, .check = check,
                                         .stop = stop, .closed = closed };
    ws_client *c = calloc(1, sizeof *c);
    if (!c) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    c->sockjs = sockjs;
    c->w.up.ops = &ops;
    c->w.receive = receive_text;
    c->b = (bridge){ .dialect = dialect, .bus = r->server->bus, .conn = r->conn,
                     .write = write_message, .release = release };
    srv_head  head = srv_auth_head(r);
    weir_code rc = r->conn ? bridge_open(&c->b, &head, NULL) : WEIR_ECLOSED;
    if (rc) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
    } else if (websocket_accept(&c->w, r, BRIDGE_MAX_FRAME)) {
        note_alive(c);
        if (sockjs) {
            websocket_write(&c->w, "o", 1);
            beat_later(c);
        }
        srv_conn_flush(c->w.conn);
        return;
    }
    bridge_close(&c->b);
}

/* ---- routes ---- */

static void get_plain(srv_request *r)
{
    begin(r, &ws_dialect, false);
}

static void get_own(srv_request *r)
{
    begin(r, &bridge_own_dialect, false);
}

/* /eventbus/SERVER/SESSION/websocket: two names without dots, which mean nothing here. */
static void get_sockjs(srv_request *r)
{
    if (strchr(r->arg[0], '.') || strchr(r->arg[1], '.'))
        srv_reply_status(r, 404, "http", "server and session have no dots");
    else
        begin(r, &ws_dialect, true);
}

/* sockjs-client asks with cookies allowed, even if no cookies exist. Browsers keep the answer from
 * a page of another origin unless it agrees to that. */
static void get_info(srv_request *r)
{
    weir_buf body = { 0 };
    uint32_t entropy = 0;
    if (getrandom(&entropy, sizeof entropy, 0) < 0)
        entropy = (uint32_t)srv_loop_ms();
    weir__buf_printf(&body, "{\"websocket\":true,\"cookie_needed\":false,\"origins\":[\"*:*\"],"
                     "\"entropy\":%u}", entropy);
    srv_reply_header(r, "Cache-Control", "no-store, no-cache, no-transform, must-revalidate, "
                                         "max-age=0");
    if (srv_guard_shares(r->server->guard, srv_header(r, "Origin")))
        srv_reply_header(r, "Access-Control-Allow-Credentials", "true");
    srv_reply_json(r, 200, &body);
}

static void get_welcome(srv_request *r)
{
    weir_buf body = { 0 };
    weir__buf_str(&body, "Welcome to SockJS!\n");
    srv_reply(r, 200, "text/plain; charset=utf-8", &body);
}

enum { FLAGS = SRV_OPEN | SRV_PLAIN | SRV_ANY_QUERY };

const srv_route srv_eventbus_routes[] = {
    { "GET", "/eventbus", 0, get_welcome, 0, NULL, FLAGS, "Check for an event bus", NULL, NULL,
      200 },
    { "GET", "/eventbus/", 0, get_welcome, 0, NULL, FLAGS, "The same", NULL, NULL, 200 },
    { "GET", "/eventbus/info", 0, get_info, 0, NULL, FLAGS, "What SockJS can do here", NULL, NULL,
      200 },
    { "GET", "/eventbus/tcp", 0, srv_bus_upgrade, 0, NULL, FLAGS,
      "The event bus with the frames of the TCP bridge", NULL, NULL, 101 },
    { "GET", "/eventbus/ws", 0, get_own, 0, NULL, FLAGS,
      "The event bus over a WebSocket, with the messages of the TCP bridge", NULL, NULL, 101 },
    { "GET", "/eventbus/websocket", 0, get_plain, 0, NULL, FLAGS, "The event bus over a WebSocket",
      NULL, NULL, 101 },
    { "GET", "/eventbus/{server}/{session}/websocket", 0, get_sockjs, 0, NULL, FLAGS,
      "The event bus over SockJS", NULL, NULL, 101 },
    { 0 }
};
