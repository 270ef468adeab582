/* receiver.h - a little HTTP server in the test's process, for what weir sends: each connection has
 * a thread, a function of the test answers, and everything that came is kept. */
#ifndef WEIR_TEST_RECEIVER_H
#define WEIR_TEST_RECEIVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { RECEIVER_MAX_CONNS = 256, RECEIVER_MAX_KEPT = 1024 };

typedef struct received {
    char  *head;                /* request line and headers */
    char  *body;                /* ends with NUL */
    size_t len;
} received;

/* What to answer; {0}: 200 with nothing. */
typedef struct reply {
    int         status;
    const char *headers;        /* lines that end with \r\n */
    const char *body;
    size_t      len;            /* 0: the body ends at its NUL */
    bool        hang_up;        /* no answer at all */
} reply;

/* On the thread of the connection; may block. `n`: the number of the request, from 0. */
typedef reply receiver_fn(const received *in, size_t n, void *ctx);

typedef struct receiver {
    receiver_fn    *fn;
    void           *ctx;
    int             fd, port;
    void           *tls;        /* an SSL_CTX; NULL: plain */
    pthread_t       thread;
    pthread_mutex_t lock;       /* of what follows */
    bool            stopping;
    size_t          n_conns;    /* ever */
    int             conn[RECEIVER_MAX_CONNS];
    pthread_t       conn_thread[RECEIVER_MAX_CONNS];
    size_t          n;          /* requests */
    size_t          now, most;  /* at once */
    received        kept[RECEIVER_MAX_KEPT];
} receiver;

/* Listen on 127.0.0.1; port 0: any. NULL as function: 200 with nothing. */
void receiver_start(receiver *r, int port, receiver_fn *fn, void *ctx);
/* The same over TLS, with a certificate that nobody has signed. */
void receiver_start_tls(receiver *r, receiver_fn *fn, void *ctx);
void receiver_stop(receiver *r);        /* no function of it may be blocked any more */

size_t receiver_count(receiver *r);     /* requests so far */
size_t receiver_conns(receiver *r);     /* connections so far */
size_t receiver_most(receiver *r);      /* requests at once, at most */
/* One header of what came, any case; NULL: not there. Good until the next call. */
const char *received_header(const received *in, const char *name);

#endif
