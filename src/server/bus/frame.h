/* frame.h - the bytes of the bridges: frames of the TCP bridge, and the JSON messages that both
 * bridges carry. Pure functions.
 *
 * A frame is the length of its payload (4 bytes, big-endian), then that many bytes of JSON. */
#ifndef WEIR_SERVER_FRAME_H
#define WEIR_SERVER_FRAME_H

#include "base/buf.h"
#include "weir/bus.h"

enum {
    BRIDGE_MAX_FRAME = WEIR_MAX_BUS_BODY + 64 * 1024,   /* bytes of a message, all members */
    BRIDGE_FRAME_HEAD = 4
};

/* Does a whole frame begin at bytes[0]? 1: yes, its payload is *len bytes behind the head. 0: more
 * bytes must come. -1: it is longer than BRIDGE_MAX_FRAME. */
int  bridge_frame_read(const char *bytes, size_t n, size_t *len);
/* Room for a head at the end of `out`, and its place; then the payload; then its length. */
size_t bridge_frame_begin(weir_buf *out);
void bridge_frame_end(weir_buf *out, size_t begin);

/* The messages of a frame of SockJS: ["text",...], "text" or nothing. `each` is called for each in
 * order. False: it is none of these, or memory is out; what came before was handed on. */
bool bridge_sockjs_read(const char *text, size_t len,
                        void (*each)(const char *json, size_t len, void *ctx), void *ctx);

/* A message from a client. Texts end with NUL; NULL: not there. */
typedef struct bridge_message {
    const char *type, *address, *reply_address, *text;
    const char *body;               /* JSON, points into the input; NULL: none */
    size_t      body_len;
    weir_header headers[WEIR_MAX_BUS_HEADERS];
    size_t      n_headers;
    bool        fails;              /* there is a failureCode: it fails the request it answers */
    int         failure_code;
    char       *room;               /* of the texts */
} bridge_message;

/* Take a message apart. `json` must stay as long as `out` is used. Afterwards, always:
 * bridge_message_fini(). Errors: WEIR_EINVAL (not JSON, not an object, a member of the wrong kind),
 * WEIR_ELIMIT (nesting, headers), WEIR_ENOMEM. */
weir_code bridge_message_read(bridge_message *out, const char *json, size_t len, weir_error *err);
void bridge_message_fini(bridge_message *m);
const char *bridge_message_header(const bridge_message *m, const char *name);   /* or NULL */

/* Append a member with a text to an object that has been begun: ,"name":"text". */
void bridge_write_text(weir_buf *out, const char *name, const char *text);
/* ,"headers":{...} of a message. */
void bridge_write_headers(weir_buf *out, const weir_message *m);

#endif
