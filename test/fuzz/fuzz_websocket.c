/* fuzz_websocket.c - what a client sends once its connection is a WebSocket: bytes read whole and
 * one at a time must give the same messages, and the memory of messages that are under way is
 * counted back to nothing. (Control frames may differ: wslay looks at the part of a close frame
 * that is there.) websocket.c is built into this program; what it asks of the server is here. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "server/bus/websocket.h"

enum { MAX_MESSAGE = 4096 };

static websocket *made;         /* by websocket_accept() */

const char *srv_header(const srv_request *r, const char *name)
{
    (void)r;
    return !strcmp(name, "Upgrade") ? "websocket" : !strcmp(name, "Connection") ? "Upgrade"
           : !strcmp(name, "Sec-WebSocket-Version") ? "13" : "dGhlIHNhbXBsZSBub25jZQ==";
}

void srv_reply_status(srv_request *r, int status, const char *code, const char *fmt, ...)
{
    (void)r, (void)status, (void)code, (void)fmt;
}

void srv_reply_header(srv_request *r, const char *name, const char *value)
{
    (void)r, (void)name, (void)value;
}

void srv_reply_upgrade(srv_request *r, srv_upgrade *up)
{
    (void)r;
    made = (websocket *)up;
}

/* ---- a connection ---- */

typedef struct reading {
    websocket  w;               /* first */
    srv_conn   conn;
    srv_server server;
    weir_buf   got;             /* messages */
    size_t     sent;            /* bytes of frames */
} reading;

static reading *reading_of(srv_conn *c)
{
    return (reading *)((char *)c - offsetof(reading, conn));
}

void srv_conn_write(srv_conn *c, const void *bytes, size_t len)
{
    (void)bytes;
    reading_of(c)->sent += len;
}

void srv_conn_finish(srv_conn *c)
{
    c->closing = true;
}

void srv_conn_hang_up(srv_conn *c)
{
    c->dead = true;
}

static void receive(websocket *w, const char *text, size_t len)
{
    reading *r = (reading *)w;
    MUST(len <= MAX_MESSAGE);
    weir__buf_printf(&r->got, "[%zu:", len);
    weir__buf_add(&r->got, text, len);
    weir__buf_char(&r->got, ']');
    websocket_write(w, "got", 3);
}

static reading *read_in_steps(const char *bytes, size_t n, size_t step)
{
    reading    *r = calloc(1, sizeof *r);
    srv_request request = { .conn = &r->conn };
    MUST(r);
    r->conn.server = &r->server;
    r->server.opt.limits.bodies = 64 * 1024;
    r->w.receive = receive;
    MUST(websocket_accept(&r->w, &request, MAX_MESSAGE) && made == &r->w);
    for (size_t i = 0; i < n && !r->conn.closing && !r->conn.dead; i += step)
        websocket_read(&r->w, bytes + i, n - i < step ? n - i : step);
    websocket_fini(&r->w);
    MUST(!atomic_load(&r->server.bodies));
    return r;
}

static void free_reading(reading *r)
{
    weir__buf_fini(&r->got);
    free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *bytes = (const char *)data;
    reading    *whole = read_in_steps(bytes, n, n ? n : 1), *single = read_in_steps(bytes, n, 1);
    MUST(whole->got.len == single->got.len);
    MUST(!whole->got.len || !memcmp(whole->got.data, single->got.data, whole->got.len));
    MUST(!whole->conn.closing || whole->sent);      /* the client learns why */
    MUST(!single->conn.closing || single->sent);
    free_reading(whole);
    free_reading(single);
    return 0;
}
