/* tcp.c - the TCP bridge: frames in both directions on a connection of its own. */
#include <stdlib.h>
#include <strings.h>

#include "server/bus/bridge.h"
#include "server/bus/bus.h"

typedef struct tcp_client {
    srv_upgrade up;                 /* first: the connection's pointer is this one's */
    bridge      b;
    weir_buf    in;                 /* the beginning of a frame */
    size_t      counted;            /* of `in`, in the server's `bodies` */
    weir_buf    frame;              /* the frame that is being written */
} tcp_client;

static const bridge_dialect tcp_dialect = {
    .message = "message", .code = "message", .max_address = WEIR_MAX_BUS_ADDRESS, .pong = true,
    .send_flag = true, .source_address = true, .no_type = "unknown_type",
    .unknown_type = "unknown_type", .unknown_address = "unknown_address",
};

static void write_frame(bridge *b, const weir_buf *json)
{
    tcp_client *t = (tcp_client *)((char *)b - offsetof(tcp_client, b));
    weir__buf_clear(&t->frame);
    size_t at = bridge_frame_begin(&t->frame);
    weir__buf_add(&t->frame, json->data, json->len);
    bridge_frame_end(&t->frame, at);
    if (t->frame.failed)
        srv_conn_hang_up(b->conn);
    else
        srv_conn_write(b->conn, t->frame.data, t->frame.len);
    if (t->frame.cap > SRV_READ_SIZE || t->frame.failed)
        weir__buf_fini(&t->frame);
}

/* Frames that are not whole yet count as bodies of requests do. False: there is no room. */
static bool count_memory(tcp_client *t)
{
    srv_server *s = t->b.conn->server;
    size_t      more = t->in.cap - t->counted;  /* wraps if it has shrunk; so does the sum */
    t->counted = t->in.cap;
    return atomic_fetch_add(&s->bodies, more) + more <= s->opt.limits.bodies ||
           t->in.cap <= SRV_FREE_BODY;
}

/* The frames that are whole. Returns how many bytes they are; *why: it cannot go on. */
static size_t read_frames(tcp_client *t, const char *bytes, size_t n, const char **why)
{
    size_t at = 0, len;
    int    whole = 0;
    while (!t->b.conn->dead && (whole = bridge_frame_read(bytes + at, n - at, &len)) > 0) {
        bridge_receive(&t->b, bytes + at + BRIDGE_FRAME_HEAD, len);
        at += BRIDGE_FRAME_HEAD + len;
    }
    if (whole < 0)
        *why = "max_frame_size_reached";
    return at;
}

static void receive(srv_upgrade *u, const char *bytes, size_t n)
{
    tcp_client *t = (tcp_client *)u;
    const char *why = NULL;
    if (t->in.len) {
        weir__buf_add(&t->in, bytes, n);
        bytes = t->in.data;
        n = t->in.len;
    }
    size_t done = t->in.failed ? 0 : read_frames(t, bytes, n, &why);
    if (bytes != t->in.data)
        weir__buf_add(&t->in, bytes + done, n - done);
    else if (done)
        memmove(t->in.data, t->in.data + done, t->in.len -= done);
    if (!t->in.len && t->in.cap)
        weir__buf_fini(&t->in);
    if (t->in.failed || !count_memory(t))
        why = "out_of_memory";
    if (why) {
        bridge_error(&t->b, why);
        srv_conn_finish(t->b.conn);
    }
}

static void drained(srv_upgrade *u)
{
    bridge_drained(&((tcp_client *)u)->b);
}

static bool check(srv_upgrade *u)
{
    return bridge_check(&((tcp_client *)u)->b);
}

static void closed(srv_upgrade *u)
{
    tcp_client *t = (tcp_client *)u;
    weir__buf_fini(&t->in);
    count_memory(t);
    bridge_close(&t->b);
}

static void release(bridge *b)
{
    tcp_client *t = (tcp_client *)((char *)b - offsetof(tcp_client, b));
    weir__buf_fini(&t->frame);
    free(t);
}

static tcp_client *make_client(srv_server *s, srv_conn *c, const bridge_dialect *dialect)
{
    static const srv_upgrade_ops ops = { .receive = receive, .drained = drained, .check = check,
                                         .closed = closed };
    tcp_client *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->up.ops = &ops;
    t->b = (bridge){ .dialect = dialect, .bus = s->bus, .conn = c, .write = write_frame,
                     .release = release };
    return t;
}

void srv_bus_take_in(srv_thread *thread, int fd, const char *peer, srv_quota *quota)
{
    srv_conn   *c = srv_conn_open(thread, fd, peer, quota);
    tcp_client *t = c ? make_client(thread->server, c, &tcp_dialect) : NULL;
    if (!t) {
        if (c)
            srv_conn_hang_up(c);
        return;
    }
    srv_conn_upgrade(c, &t->up);
    if (bridge_open(&t->b, NULL, NULL))
        srv_conn_hang_up(c);
}

/* ---- the same over HTTP, for processes whose store is this server, and for our clients ---- */

const bridge_dialect bridge_own_dialect = {
    .message = "message", .code = "message", .max_address = WEIR_MAX_BUS_ADDRESS, .pong = true,
    .send_flag = true, .source_address = true, .failures = true, .no_type = "unknown_type",
    .unknown_type = "unknown_type", .unknown_address = "unknown_address",
};

void srv_bus_upgrade(srv_request *r)
{
    const char *upgrade = srv_header(r, "Upgrade");
    if (!upgrade || strcasecmp(upgrade, "weir-bus") != 0) {
        srv_reply_status(r, 400, "http", "this address is for event buses (Upgrade: weir-bus)");
        return;
    }
    srv_head    head = srv_auth_head(r);
    tcp_client *t = r->conn ? make_client(r->server, r->conn, &bridge_own_dialect) : NULL;
    if (!t || bridge_open(&t->b, &head, NULL)) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        if (t)
            bridge_close(&t->b);
        return;
    }
    srv_reply_header(r, "Upgrade", "weir-bus");
    srv_reply_header(r, "Connection", "Upgrade");
    srv_reply_upgrade(r, &t->up);
}
