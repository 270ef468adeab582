/* request.h - one request, from its last header to its answer: what a handler works with.
 *
 * A handler runs on the loop of its connection and never blocks. It answers at once, or starts an
 * `_async` call of the library and goes on in a function that runs on the same loop when the call
 * is done. Every way through a handler ends with exactly one answer (srv_reply...). If the client
 * is gone meanwhile, the answer is thrown away, and the handler releases its data as usual. */
#ifndef WEIR_SERVER_REQUEST_H
#define WEIR_SERVER_REQUEST_H

#include "base/buf.h"
#include "base/json.h"
#include "server/access/auth.h"
#include "server/http/loop.h"
#include "server/http/route.h"
#include "server/server.h"

typedef struct srv_conn srv_conn;
typedef struct srv_thread srv_thread;

typedef struct srv_pair {
    const char *name, *value;
} srv_pair;

enum { SRV_MAX_ARGS = 5, SRV_MAX_QUERY = 32, SRV_MAX_SEGMENTS = 10 };

typedef struct srv_request {
    srv_server      *server;
    srv_loop        *loop;
    srv_conn        *conn;                  /* NULL: the client is gone */
    const srv_route *route;
    srv_caller       who;
    bool             revoked;               /* it may no longer: see srv_auth_again() */
    const char      *method;
    const char      *path;                  /* as it came, without the query */
    const char      *arg[SRV_MAX_ARGS];     /* of the route's path, decoded: {id} is arg[0] */
    srv_pair         query[SRV_MAX_QUERY];  /* decoded */
    size_t           n_query;
    const char      *body;                  /* ends with NUL */
    size_t           body_len;
    /* Called on the loop when the client goes away before the answer, or when the server stops: for
     * handlers that wait for something. Still has to answer. May be NULL. */
    void           (*cancel)(struct srv_request *r);
    /* Called on the loop when all of a stream that could not be written at once has been. May be
     * NULL. */
    void           (*drained)(struct srv_request *r);
    struct srv_parts *parts;                /* of an answer in parts: parts.h */
    bool             endless;               /* a stream whose client may be behind for long */
    void            *state;                 /* the handler's own */
} srv_request;

weir_queue        *srv_queue(const srv_request *r);
const srv_options *srv_settings(const srv_request *r);
struct srv_push   *srv_pusher(const srv_request *r);            /* push.h */

/* Zeroed memory that lives as long as the request. NULL: out of memory. */
void *srv_alloc(srv_request *r, size_t size);
char *srv_strndup(srv_request *r, const char *text, size_t len);

/* ---- what was asked ---- */

const char *srv_header(const srv_request *r, const char *name);     /* any case; NULL: not there */
const char *srv_query(const srv_request *r, const char *name);      /* NULL: not there */

/* These read a parameter of the query, or leave *out as it is when it is missing. False: it is
 * not right, and the request was answered with 400. */
bool srv_query_int(srv_request *r, const char *name, int64_t min, int64_t max, int64_t *out);
bool srv_query_ms(srv_request *r, const char *name, int64_t max_ms, int64_t *out);    /* "3s" */
bool srv_query_bool(srv_request *r, const char *name, bool *out);     /* true, false, 1, 0 */
bool srv_query_states(srv_request *r, const char *name, uint32_t *out);     /* "failed,active" */
bool srv_query_past(srv_request *r, const char *name, int64_t *out);   /* 1763542800000, or "2h" */
bool srv_query_priority(srv_request *r, const char *name, bool *given, int32_t *out);
/* A job's id in the path. */
bool srv_arg_id(srv_request *r, size_t i, uint64_t *out);

/* ---- who asks ---- */

bool srv_may(const srv_request *r, unsigned role, const char *type);
/* The same; false: it was answered with 403. `type` NULL: what concerns all types. */
bool srv_allow(srv_request *r, unsigned role, const char *type);

/* Would the caller still be let in? For handlers that have waited. False: r->revoked is set; what
 * is answered to a GET becomes 401, other handlers decide. */
bool srv_auth_again(srv_request *r);

/* ---- waiting ---- */

/* Once the call that made `f` is done, then(r, code, err) runs on the loop. `started` is what the
 * async call returned: if it failed, `then` is called at once with `err`, so that there is one way
 * for all errors:
 *
 *     weir_error   err = { 0 };
 *     weir_future *f = NULL;
 *     weir_code    rc = weir_get_async(srv_queue(r), id, &st->job, &f, &err);
 *     srv_await(r, rc, &err, f, got_job);
 */
typedef void srv_then(srv_request *r, weir_code code, const weir_error *err);
void srv_await(srv_request *r, weir_code started, const weir_error *err, weir_future *f,
               srv_then *then);

/* Abandon the awaited call, when its answer is no longer needed (a weir_wait_async() that takes too
 * long). Its outputs are not touched from here on, and `then` runs soon. */
void srv_give_up(srv_request *r);

/* Several calls: srv_gather(), then srv_join() for each, then srv_gathered(): `then` runs on the
 * loop when all are done, never before srv_gathered(). Each outcome goes to its own `out` (which
 * lives as long as the request; the same that the async call got as its `err`), and `then` gets
 * WEIR_OK. */
void srv_gather(srv_request *r, srv_then *then);
void srv_join(srv_request *r, weir_code started, weir_future *f, weir_error *out);
void srv_gathered(srv_request *r);

/* The request's one timer; unset when it is answered. */
void srv_after(srv_request *r, int64_t ms, void (*run)(srv_request *r));
void srv_not_after(srv_request *r);

/* ---- the answer: one of these, once ---- */

/* Takes the bytes of `body` (which is empty after); if it failed, the answer is 503 instead. */
void srv_reply(srv_request *r, int status, const char *content_type, weir_buf *body);
void srv_reply_json(srv_request *r, int status, weir_buf *body);
void srv_reply_empty(srv_request *r, int status);        /* 204 ... */
/* The one error shape, {"error":{"code":"EINVAL","message":"...","field":"..."}}, with the status
 * of the code (for 503 with Retry-After). */
void srv_reply_error(srv_request *r, const weir_error *err);
/* The same for a message that has the name of the field in it; `field` may be NULL. */
void srv_reply_fail(srv_request *r, weir_code code, const char *field, const char *fmt, ...)
    WEIR_PRINTF(4, 5);
/* The same with a status of its own: 401, 404 of a route, 405, 415, 429 ... `code`: "method". */
void srv_reply_status(srv_request *r, int status, const char *code, const char *fmt, ...)
    WEIR_PRINTF(4, 5);
/* A header of the answer, before it: text is copied. */
void srv_reply_header(srv_request *r, const char *name, const char *value);

#define SRV_JSON "application/json; charset=utf-8"

/* Is there room for this answer (SRV_MAX_ANSWERS, and the caller's share)? False: `body` is
 * released, and the request was answered with 503 or 429. srv_reply() asks by itself, for GET. */
bool srv_answer_fits(srv_request *r, weir_buf *body);

/* An answer that goes on: begin, then any number of writes, then the end. A write answers false
 * when the client is gone or more than SRV_MAX_BACKLOG bytes behind; then only srv_stream_end() is
 * left to be called. While it lasts `cancel` says that the client went away. */
void srv_stream_begin(srv_request *r, int status, const char *content_type);
bool srv_stream_write(srv_request *r, const void *bytes, size_t len);
size_t srv_stream_behind(const srv_request *r);     /* bytes that the client has not taken yet */
/* `whole` false: it is cut off, and the connection closed so that the client can see it. */
void srv_stream_end(srv_request *r, bool whole);

/* Is there nobody to answer to? Also when the client has closed its side, as after a crash: data
 * that must not be lost on the way must not be sent to it. */
bool srv_gone(const srv_request *r);
/* Is it too late for `cancel` to be called? For handlers that set it not at once, but after a call
 * of the library: that came before. */
bool srv_is_cancelled(const srv_request *r);

/* {"code":"EINVAL","message":"...","field":"..."}: an error as part of an answer. */
void srv_error_json(weir_buf *out, const weir_error *err);

#endif
