/* sendbuf.h - bytes on their way to a connection: any thread posts, one thread sends. An eventfd
 * wakes the sender. */
#ifndef WEIR_BASE_SENDBUF_H
#define WEIR_BASE_SENDBUF_H

#include <pthread.h>

#include "base/buf.h"
#include "weir/error.h"

enum { WEIR__MAX_UNSENT = 64 * 1024 * 1024 };      /* bytes that wait; a post beyond is refused */

typedef struct weir_sendbuf {
    int             wake;           /* an eventfd: there is something to send, or the end */
    pthread_mutex_t lock;           /* guards what follows */
    bool            live;           /* there is a connection */
    bool            first;          /* the post under way is the first: the sender may sleep */
    weir_buf        posted;

    weir_buf        out;            /* the sender's, as what follows */
    size_t          sent;           /* of `out` */
} weir_sendbuf;

/* On failure nothing needs to be released. */
weir_code weir__sendbuf_init(weir_sendbuf *b, weir_error *err);
void      weir__sendbuf_fini(weir_sendbuf *b);

/* A connection was made or lost: forget all that was not sent. The sender's thread. */
void weir__sendbuf_set_live(weir_sendbuf *b, bool live);

/* Post: add bytes to *out between begin and end, which locks the buffer. `to` names the peer in
 * errors. If begin fails, end is not called. Errors of begin: WEIR_EUNAVAIL with the message
 * `unavailable`, WEIR_EFULL (WEIR__MAX_UNSENT); of end: WEIR_ENOMEM, and what was posted before is
 * lost, too. Any thread. */
weir_code weir__sendbuf_begin(weir_sendbuf *b, weir_buf **out, const char *to,
                              const char *unavailable, weir_error *err);
weir_code weir__sendbuf_end(weir_sendbuf *b, weir_error *err);

/* Wake the sender; and the sender's answer to that. */
void weir__sendbuf_wake(weir_sendbuf *b);
void weir__sendbuf_woken(weir_sendbuf *b);

/* Send `len` bytes, or some of them: *n. False: the connection is gone. */
typedef bool weir_send_fn(void *ctx, const char *bytes, size_t len, size_t *n);

/* Send what can be sent without waiting. False: the connection is gone. The sender's thread. */
bool weir__sendbuf_send(weir_sendbuf *b, weir_send_fn *send, void *ctx);

/* Is there something that send() has left? */
bool weir__sendbuf_waits(const weir_sendbuf *b);

#endif
