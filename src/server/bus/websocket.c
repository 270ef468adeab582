/* websocket.c - see websocket.h. */
#include "server/bus/websocket.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

/* ---- the handshake ---- */

enum { KEY_LEN = 24 };              /* 16 bytes in base64 */

static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = list; at && (at = strcasestr(at, word)); at += len)
        if ((at == list || strchr(", \t", at[-1])) && (!at[len] || strchr(", \t", at[len])))
            return true;
    return false;
}

static void accept_key(const char *key, char out[64])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    char              both[KEY_LEN + sizeof guid];
    unsigned char     hash[SHA_DIGEST_LENGTH];
    int               n = snprintf(both, sizeof both, "%.*s%s", KEY_LEN, key, guid);
    SHA1((const unsigned char *)both, (size_t)n, hash);
    EVP_EncodeBlock((unsigned char *)out, hash, sizeof hash);
}

static bool refuse(srv_request *r, int status, const char *why)
{
    srv_reply_status(r, status, "websocket", "%s", why);
    return false;
}

static bool check_request(srv_request *r)
{
    const char *version = srv_header(r, "Sec-WebSocket-Version");
    const char *key = srv_header(r, "Sec-WebSocket-Key");
    if (!has_word(srv_header(r, "Upgrade"), "websocket") ||
        !has_word(srv_header(r, "Connection"), "Upgrade"))
        return refuse(r, 400, "this address is for WebSockets (Upgrade: websocket)");
    if (!version || strcmp(version, "13") != 0) {
        srv_reply_header(r, "Sec-WebSocket-Version", "13");
        return refuse(r, 426, "Sec-WebSocket-Version: only 13 is supported");
    }
    if (!key || strlen(key) != KEY_LEN)
        return refuse(r, 400, "Sec-WebSocket-Key: 16 bytes in base64 are expected");
    return true;
}

/* ---- frames ---- */

static ssize_t give_bytes(wslay_event_context_ptr frames, uint8_t *buf, size_t len, int flags,
                          void *ctx)
{
    (void)flags;
    websocket *w = ctx;
    if (!w->in_len) {
        wslay_event_set_error(frames, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    len = len < w->in_len ? len : w->in_len;
    memcpy(buf, w->in, len);
    w->in += len;
    w->in_len -= len;
    return (ssize_t)len;
}

static ssize_t take_bytes(wslay_event_context_ptr frames, const uint8_t *bytes, size_t len,
                          int flags, void *ctx)
{
    (void)frames;
    (void)flags;
    srv_conn_write(((websocket *)ctx)->conn, bytes, len);
    return (ssize_t)len;
}

static void uncount(websocket *w)
{
    atomic_fetch_sub(&w->conn->server->bodies, w->counted);
    w->counted = 0;
}

/* wslay takes memory for a frame when it begins. */
static void frame_begins(wslay_event_context_ptr frames,
                         const struct wslay_event_on_frame_recv_start_arg *arg, void *ctx)
{
    (void)frames;
    websocket  *w = ctx;
    srv_server *s = w->conn->server;
    if (wslay_is_ctrl_frame(arg->opcode))
        return;
    w->counted += (size_t)arg->payload_length;
    size_t before = atomic_fetch_add(&s->bodies, (size_t)arg->payload_length);
    if (before + arg->payload_length > s->opt.limits.bodies && w->counted > SRV_FREE_BODY)
        websocket_close(w, WEBSOCKET_TRY_LATER, "");
}

static void message_came(wslay_event_context_ptr frames,
                         const struct wslay_event_on_msg_recv_arg *arg, void *ctx)
{
    (void)frames;
    websocket *w = ctx;
    if (wslay_is_ctrl_frame(arg->opcode))
        return;
    uncount(w);
    if (!w->conn->closing && !w->conn->dead)
        w->receive(w, (const char *)arg->msg, arg->msg_length);
}

static void flush(websocket *w)
{
    if (wslay_event_want_write(w->frames) && wslay_event_send(w->frames))
        srv_conn_hang_up(w->conn);
}

/* ---- the interface ---- */

bool websocket_accept(websocket *w, srv_request *r, size_t max)
{
    static const struct wslay_event_callbacks calls = {
        .recv_callback = give_bytes, .send_callback = take_bytes,
        .on_frame_recv_start_callback = frame_begins, .on_msg_recv_callback = message_came };
    char accept[64];
    if (!check_request(r))
        return false;
    w->conn = r->conn;
    if (!r->conn || wslay_event_context_server_init(&w->frames, &calls, w))
        return refuse(r, 503, "out of memory");
    wslay_event_config_set_max_recv_msg_length(w->frames, max);
    accept_key(srv_header(r, "Sec-WebSocket-Key"), accept);
    srv_reply_header(r, "Upgrade", "websocket");
    srv_reply_header(r, "Connection", "Upgrade");
    srv_reply_header(r, "Sec-WebSocket-Accept", accept);
    srv_reply_upgrade(r, &w->up);
    return true;
}

void websocket_read(websocket *w, const char *bytes, size_t n)
{
    w->in = bytes;
    w->in_len = n;
    bool broken = false;                /* then wslay has a close frame to send */
    while (w->in_len && wslay_event_want_read(w->frames) && !w->conn->dead && !broken)
        broken = wslay_event_recv(w->frames) != 0;
    flush(w);
    if (broken || wslay_event_get_close_received(w->frames) || !wslay_event_want_read(w->frames))
        srv_conn_finish(w->conn);
}

void websocket_write(websocket *w, const char *text, size_t len)
{
    struct wslay_event_msg m = { .opcode = WSLAY_TEXT_FRAME, .msg = (const uint8_t *)text,
                                 .msg_length = len };
    if (w->conn->closing || w->conn->dead)
        return;
    if (wslay_event_queue_msg(w->frames, &m))
        srv_conn_hang_up(w->conn);
    else
        flush(w);
}

void websocket_close(websocket *w, uint16_t code, const char *reason)
{
    wslay_event_queue_close(w->frames, code, (const uint8_t *)reason, strlen(reason));
    flush(w);
    srv_conn_finish(w->conn);
}

void websocket_fini(websocket *w)
{
    uncount(w);
    wslay_event_context_free(w->frames);
}
