/* websocket.h - a WebSocket on a connection that was HTTP: handshake, text messages, close. wslay
 * reads and writes the frames. Everything happens on the loop of the connection. */
#ifndef WEIR_SERVER_WEBSOCKET_H
#define WEIR_SERVER_WEBSOCKET_H

#include <wslay/wslay.h>

#include "server/http/inner.h"

typedef struct websocket websocket;

struct websocket {
    srv_upgrade up;                     /* first; its ops are the owner's */
    srv_conn   *conn;
    wslay_event_context_ptr frames;
    const char *in;                     /* bytes that came and are not read yet */
    size_t      in_len;
    size_t      counted;                /* of a message that comes, in the server's `bodies` */
    void      (*receive)(websocket *w, const char *text, size_t len);   /* a whole message */
};

enum {
    WEBSOCKET_GOING_AWAY = 1001, WEBSOCKET_PROTOCOL = 1002, WEBSOCKET_POLICY = 1008,
    WEBSOCKET_TRY_LATER = 1013
};

/* Answer the request with 101 and go on as a WebSocket; `w`, whose up.ops and receive are set, is
 * the owner's until up.ops->closed(). Messages are at most `max` bytes. False: it was answered with
 * an error, and `w` is not used. */
bool websocket_accept(websocket *w, srv_request *r, size_t max);
/* Bytes have come: for up.ops->receive(). */
void websocket_read(websocket *w, const char *bytes, size_t n);
void websocket_write(websocket *w, const char *text, size_t len);
/* Send a close frame (a reason of at most 123 bytes, "": none), then hang up. */
void websocket_close(websocket *w, uint16_t code, const char *reason);
void websocket_fini(websocket *w);                      /* the connection is gone */

#endif
