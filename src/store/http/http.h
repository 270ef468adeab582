/* http.h - the store that is a weir server elsewhere: the inside of it.
 *
 * A batch is one POST to /v1/batch (op/batch.h says what is in it). Each lane has a connection of
 * its own, so that workers do not wait behind others; a third one listens to /v1/events. Events
 * come only this way, also the events of this process: each is emitted once.
 *
 * Repetitions, and unknown outcomes. A lane has a name that nobody else has (`caller`) and
 * numbers its batches. The server keeps the answer to the last batch of each caller and returns it
 * again when that number is repeated. So the client simply repeats a batch whose answer was lost
 * with the connection. Every batch also names the run of the server it is meant for, and another
 * run (the server was started anew meanwhile) refuses it untouched. A batch that had not been sent
 * before is then sent to the new run. If it had been sent, its repeatable operations are sent to
 * the new run (store/remote/attempt.h); the outcome of the others is unknown (WEIR_EUNKNOWN). */
#ifndef WEIR_STORE_HTTP_HTTP_H
#define WEIR_STORE_HTTP_HTTP_H

#include <pthread.h>

#include "base/buf.h"
#include "base/curl.h"
#include "op/batch.h"
#include "store/feed.h"
#include "store/remote/attempt.h"
#include "store/store.h"

enum {
    WEIR_HTTP_TIMEOUT_MS = 5000,            /* to connect; without a byte; to try again */
    WEIR_HTTP_SLOW_MS    = 600 * 1000,      /* without a byte, when much is to be done */
    WEIR_HTTP_MAX_TOKEN  = 256,
    WEIR_HTTP_LANES      = 2
};
#define WEIR_HTTP_MAX_ANSWER (INT64_C(2) << 30)     /* bytes: a page of the biggest jobs */

/* ---- where (url.c) ---- */

typedef struct http_url {
    char    base[1024];                     /* "https://host:7340", without a '/' at its end */
    char    token[WEIR_HTTP_MAX_TOKEN + 1]; /* "": none */
    char    ca[1024];                       /* a file; "": what the system trusts */
    int64_t timeout_ms;
} http_url;

extern const char *const weir__http_options[];

/* Never puts the token into an error. Without ?token= it is $WEIR_TOKEN, if that is set. */
weir_code weir__http_url(const weir_url *url, http_url *out, weir_error *err);

/* ---- one request (post.c) ---- */

typedef struct http_post {
    CURL              *curl;
    struct curl_slist *headers;
    const http_url    *url;
    char               why[CURL_ERROR_SIZE];
    weir_buf           answer;
    long               status;
    bool               sent;                /* perhaps: some of it has left */
} http_post;

weir_code weir__http_post_init(http_post *p, const http_url *url, weir_error *err);
void      weir__http_post_fini(http_post *p);

/* Send `body` and wait for the answer, once; it is given up after about `silence_ms` in which not
 * a byte came or went. WEIR_OK: there is an answer, whatever its status. Else p->sent says whether
 * the server may have got it. */
weir_code weir__http_post_run(http_post *p, const weir_buf *body, int64_t silence_ms,
                              weir_error *err);

/* A handle with what all requests to this server have in common; NULL: out of memory. libcurl is
 * loaded (weir__curl_load()). */
CURL *weir__http_handle(const http_url *url, struct curl_slist **headers, const char *accept);

/* The error of the transfer, with the server's address. */
weir_code weir__http_trouble(const http_url *url, CURLcode rc, const char *why, weir_error *err);

/* The error that an answer with this status is. */
weir_code weir__http_refusal(const http_url *url, long status, const char *text, size_t len,
                             weir_error *err);

/* ---- events (sse.c, event_source.c) ---- */

enum { WEIR_HTTP_MAX_EVENT = 8 * 1024 * 1024 };     /* bytes of one message */

/* Cuts a stream of events into messages. {0} is its start; set message and ctx. */
typedef struct http_sse {
    /* `id` is the last that was said, also in a message before; "": none. `event` is "" and `data`
     * NULL when the message has none. */
    void   (*message)(void *ctx, const char *id, const char *event, const char *data, size_t len);
    void    *ctx;
    weir_buf line, event, data;
    char     id[80];                        /* of the last whole message; outlasts a connection */
    char     next_id[80];                   /* of the message that is being read, if has_id */
    bool     after_cr, has_data, has_id;
} http_sse;

/* False: out of memory, or a message is longer than WEIR_HTTP_MAX_EVENT. */
bool weir__sse_feed(http_sse *s, const char *bytes, size_t len);
void weir__sse_reset(http_sse *s);          /* a new connection */
void weir__sse_fini(http_sse *s);

typedef struct http_event_source http_event_source;

/* Listens, and waits for the first id, at most url->timeout_ms: from then on no event is missed
 * silently. If the connection is lost later, the member connects again. *url and *env are borrowed
 * until it is closed. */
weir_code weir__http_events_open(http_event_source **out, const http_url *url, const weir_env *env,
                                 weir_error *err);
void      weir__http_events_close(http_event_source *e); /* NULL is fine */

/* Wait until the event with this id, of this run, was emitted; not long, and not if it is not
 * listening. */
void weir__http_events_until(http_event_source *e, const char *run, uint64_t event);

/* ---- the event bus (member.c) ---- */

typedef struct http_member http_member;

/* weir_store_ops.join(), post() and leave(). *out is set before anything arrives; *url is borrowed
 * until weir__http_member_leave(). */
weir_code weir__http_member_join(http_member **out, const http_url *url, const weir_member *is,
                                 weir_error *err);
weir_code weir__http_member_post(http_member *m, const weir_envelope *e, weir_error *err);
void      weir__http_member_leave(http_member *m);      /* NULL is fine */

/* ---- the store (store.c, batch.c) ---- */

typedef struct http_lane {
    http_post   post;
    weir_caller caller;
    weir_buf    body;
} http_lane;

typedef struct http_store {
    weir_store      base;
    http_url        url;
    weir_env        env;
    http_lane       lane[WEIR_HTTP_LANES];
    http_event_source *events;
    http_member    *member;                 /* NULL: no event bus is open */
    pthread_mutex_t lock;                   /* of what follows */
    char            run[WEIR_BATCH_RUN + 1];      /* of the server, as last received */
} http_store;

weir_code weir__http_run(weir_store *base, weir_op **ops, size_t n, weir_error *err);

/* Is it a server of ours, does it let us in, and which run of it is it? */
weir_code weir__http_handshake(http_store *s, weir_error *err);

#endif
