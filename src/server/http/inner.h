/* inner.h - the inside of the server: what conn.c, request.c, reply.c and server.c share. Handlers
 * see request.h alone.
 *
 * A connection belongs to a loop; a request (an exchange) to its connection until that is gone, and
 * then to nobody but the handler that still has to answer it. */
#ifndef WEIR_SERVER_INNER_H
#define WEIR_SERVER_INNER_H

#include <event2/buffer.h>
#include <openssl/ssl.h>
#include <stdatomic.h>

#include "base/list.h"
#include "server/http/access_log.h"
#include "server/live/counters.h"
#include "server/access/guard.h"
#include "server/http/http1.h"
#include "server/live/metrics.h"
#include "server/access/quota.h"
#include "server/http/request.h"
#include "server/http/tls.h"

enum { SRV_MAX_LOOPS = 16, SRV_READ_SIZE = 64 * 1024, SRV_LINGER_MS = 2000 };

typedef struct srv_exchange {
    srv_request      r;              /* first: a handler's pointer is this one's */
    weir_inbox_task   task;           /* brings the answer of the library to the loop */
    srv_then        *then;
    _Atomic uint32_t pending;        /* calls of the library that are not done */
    weir_future     *future;         /* of srv_await() */
    weir_error       err;            /* its outcome */
    struct srv_joined *joined;       /* those of srv_join() */
    struct srv_part *parts;          /* memory of srv_alloc() */
    srv_timer        timer;
    void           (*after)(srv_request *r);

    srv_http1_head   head;
    const char      *host;           /* that was asked for; NULL: it was not said (HTTP/1.0) */
    weir_buf         body;
    size_t           reserved;       /* of the server's SRV_MAX_BODIES */
    srv_quota       *quota[2];       /* of the address and the token; NULL: no limit */
    weir_buf         more;           /* headers of the answer that the handler gave */
    int64_t          began_ms;
    size_t           sent;           /* bytes of the answer's body */
    bool             head_only;      /* HEAD */
    bool             streaming;      /* srv_stream_begin() was called */
    bool             chunked;        /* and the client accepts chunks */
    bool             keep_alive;
    struct srv_audit_note *note;     /* audit_request.c; NULL: nothing to say */
    const char      *wrong;          /* the parameter that it was refused for */
    bool             handled;        /* the handler was called, or it was answered before */
} srv_exchange;

/* A connection that does not speak HTTP, or does not any more. All of these run on its loop. */
typedef struct srv_upgrade srv_upgrade;
typedef enum srv_end {          /* why the server ends a connection */
    SRV_END_STOP,               /* the server stops */
    SRV_END_SILENT,             /* the client sent nothing for too long */
    SRV_END_DENIED              /* its token was removed or has expired */
} srv_end;
typedef struct srv_upgrade_ops {
    void (*receive)(srv_upgrade *u, const char *bytes, size_t n);
    void (*drained)(srv_upgrade *u);    /* all that could not be written at once has been */
    bool (*check)(srv_upgrade *u);      /* tokens were read again; false: it may not stay */
    void (*stop)(srv_upgrade *u, srv_end why);  /* write the last words; NULL: none */
    void (*closed)(srv_upgrade *u);     /* the connection is gone: release */
} srv_upgrade_ops;
struct srv_upgrade {
    const srv_upgrade_ops *ops;
};

struct srv_conn {
    srv_server      *server;
    srv_thread      *thread;
    weir_link        link;           /* in the thread's list */
    int              fd;
    SSL             *ssl;            /* NULL: plain */
    struct event    *readable, *writable;
    struct evbuffer *out;
    srv_http1        http;           /* reads requests */
    srv_exchange    *now;            /* the request being read or answered; NULL: between two */
    srv_upgrade     *upgrade;        /* NULL: it speaks HTTP */
    weir_buf         in;             /* bytes behind it that came early */
    srv_quota       *quota[2];       /* of the address and, once known, the token */
    size_t           unsent;         /* bytes of `out` that are counted in the server's `answers` */
    int64_t          owed_ms;        /* since when there is something in `out`; 0: there is not */
    size_t           owed;           /* how much that was */
    int64_t          deadline_ms;    /* when it is closed, unless something comes; 0: never */
    int64_t          stuck_ms;       /* since when the client takes nothing of `out`; 0: it does */
    bool             complete;       /* the request has been read to its end */
    bool             feeding;        /* conn_feed() is running */
    bool             ended;          /* the client sends nothing more */
    bool             closing;        /* close when `out` is empty */
    bool             lingering;      /* closed for writing; wait for the client to do the same */
    bool             dead;           /* close as soon as nobody is inside */
    int              refused;        /* status to refuse the request with, and ... */
    char             why[WEIR_ERROR_MAX];
    char             peer[64];       /* "127.0.0.1:51234" */
};

/* A loop with its connections; all of it belongs to the loop's thread. */
struct srv_thread {
    srv_server *server;
    srv_loop   *loop;
    weir_dlist  conns;
    srv_timer   sweep;               /* closes what is over its time; set while there are conns */
    bool        sweeping;
    bool        draining;
    uint64_t    tokens_seen;         /* srv_guard_watch() when callers were last checked */
    struct srv_sse *sse;             /* those who listen to events; NULL: nobody yet */
    char        date[40];            /* of the header, made once a second */
    int64_t     date_ms;
    char        bytes[SRV_READ_SIZE];
};

/* Where connections come in: listener.c. fd -1: it does not listen, which is fine for all. */
typedef struct srv_listener {
    srv_server   *server;
    const char   *setting;           /* its name, for errors */
    /* A new connection, on its thread; `quota` as in srv_conn_open(). */
    void        (*take_in)(srv_thread *thread, int fd, const char *peer, srv_quota *quota);
    void        (*turn_away)(int fd, int status, const char *why);      /* may be NULL */
    int           fd;
    struct event *accepting;         /* on thread 0 */
    srv_timer     pause;             /* when there are no descriptors left */
    bool          loopback;
    char          address[64];       /* "127.0.0.1:7340", with the real port; "": none */
} srv_listener;

struct srv_server {
    weir_queue     *q;
    srv_options     opt;
    char           *texts[10];        /* strings of `opt` */
    srv_thread     *thread[SRV_MAX_LOOPS];
    size_t          n_threads, next_thread;
    srv_listener    listener;
    struct srv_bus *bus;             /* bus.h */
    struct srv_push *push;           /* push.h */
    struct srv_tasks *tasks;         /* tasks.h */
    bool            loopback;
    char            address[128];
    char            warning[600];    /* of srv_warning() */
    int64_t         started_at;
    int64_t         sweep_ms;        /* how often times are checked */
    srv_guard      *guard;
    srv_tls        *tls;             /* NULL: none */
    srv_access_log *log;             /* NULL: none */
    struct srv_audit *audit;         /* NULL: none */
    srv_metrics    *metrics;
    char           *openapi;         /* the document */
    const char     *origins[SRV_MAX_ORIGINS + 1];   /* of `opt` */
    _Atomic int64_t n_conns;
    _Atomic int64_t n_exchanges;     /* also those whose connection is gone */
    _Atomic size_t  bodies;          /* bytes of bodies being read or worked on */
    _Atomic size_t  answers;         /* bytes of answers that clients have not taken */
    srv_quotas     *quotas;
    atomic_bool     stopping;
    srv_counters    counters;
    struct srv_longpolls *polls;       /* takes that wait */
    struct srv_workers *workers;     /* that were seen */
    struct srv_holds   *holds;       /* jobs that streams have sent */
    struct srv_hub     *hub;         /* events for those who listen */
    struct srv_replays *replays;     /* answers to batches */
};

/* listener.c: open; then, on thread 0, take connections in, and no more; close. */
weir_code srv_listener_open(srv_listener *l, const char *address, weir_error *err);
void srv_listener_start(srv_listener *l);
void srv_listener_stop(srv_listener *l);
void srv_listener_close(srv_listener *l);

/* conn.c */
/* `quota` of the address, with one connection taken: given back when it is closed. NULL: out of
 * memory, and it is closed. */
srv_conn *srv_conn_open(srv_thread *thread, int fd, const char *peer, srv_quota *quota);
/* From here on its bytes are for `u`: of a new connection, or of one whose request was answered
 * with srv_reply_upgrade(). */
void srv_conn_upgrade(srv_conn *c, srv_upgrade *u);
void srv_conn_write(srv_conn *c, const void *bytes, size_t len);    /* srv_conn_flush() sends it */
bool srv_conn_is_behind(const srv_conn *c);         /* SRV_MAX_BACKLOG bytes wait, or it ends */
void srv_conn_hang_up(srv_conn *c);                 /* soon, whatever waits */
void srv_conn_finish(srv_conn *c);                  /* when all is written */
void srv_conn_flush(srv_conn *c);                   /* write what can be written now */
void srv_conn_answered(srv_conn *c, bool keep_alive);   /* the request is over; go on */
void srv_thread_check_callers(void *thread);        /* tokens were read: end what is not allowed */
void srv_thread_drain(srv_thread *thread);          /* the server stops: cancel all that wait */
void srv_thread_close(srv_thread *thread);          /* close every connection */

/* request.c */
srv_exchange *srv_exchange_create(srv_conn *c);
void srv_exchange_free(srv_exchange *x);
const char *srv_field_value(const srv_exchange *x, const char *name, size_t *count);

/* sse.c: a stream of events or jobs is one more listener, until it leaves. False: there are too
 * many, and the request was answered. */
bool srv_stream_admit(srv_request *r);
void srv_stream_leave(srv_request *r);

/* sse.c: the thread has no connections any more; its loop has ended */
void srv_sse_close(srv_thread *thread);
void srv_sse_free(srv_thread *thread);

/* receive.c: the head, or bytes of the body, of c->now have come. 0, or -1: it is refused
 * (c->refused and c->why) and can not be read to its end. A head that is refused and has no body
 * gives 0. */
int srv_receive_head(srv_conn *c);
int srv_receive_body(srv_conn *c, const char *bytes, size_t n);
int srv_refuse(srv_conn *c, int status, const char *why);       /* -1; the first one counts */

/* share.c: the part of its caller's shares that the request c->now, or a handled one, uses. */
#define SRV_NO_ROOM                                                                              \
    "too many answers that their clients do not read (SRV_MAX_ANSWERS); try again later"
int srv_share_admit(srv_conn *c);                   /* 0, or -1: refused */
/* The connection counts for this token from here on. False: that would be over its share. */
bool srv_share_token(srv_conn *c, const char *name, char why[WEIR_ERROR_MAX]);
int srv_share_body(srv_conn *c, size_t more);       /* 0, or -1: refused; x->reserved has it */
void srv_share_end(srv_exchange *x);
void srv_share_unsent(srv_conn *c);                 /* count what is in c->out */
/* Count n bytes of an answer that is being made. False: there is no room; the second answers so. */
bool srv_share_room(srv_request *r, size_t n);
bool srv_share_room_or_reply(srv_request *r, size_t n);
void srv_share_room_end(srv_request *r, size_t n);
void srv_share_leave(srv_conn *c, int i);           /* of c->quota[i] */
bool srv_share_take(srv_request *r, srv_share share);   /* false: it was answered with 429 */
void srv_share_give(srv_request *r, srv_share share);

/* url.c: cut the target of a request into path and query, decoded, in memory of the request, and
 * set x->host. 0, or the status to refuse it with, and why. */
int srv_url_read(srv_exchange *x, char **segments, size_t *n_segments, const char **why);

/* match.c: find the route; 0, or the status to refuse with: 404, 405 (`allowed`: the methods). */
int srv_route_find(srv_exchange *x, char **segments, size_t n, char *allowed, size_t size);
/* Is the page that says "not found" the answer, since a browser asks? Then it is the route. */
bool srv_route_missing(srv_exchange *x);
bool srv_route_serves(const srv_route *route, srv_api api);
/* A parameter the route has not, with what is wrong in `why`. NULL: there is none. */
const char *srv_query_unknown(const srv_request *r, char *why, size_t size);

/* auth.c: who is it? False: refused, with *status and why; else x->r.who is filled in. */
bool srv_auth(srv_exchange *x, char *why, size_t size, int *status);
srv_head srv_auth_head(const srv_request *r);   /* what the guard looks at */

/* openapi.c: the document, as JSON; free(). */
weir_code srv_openapi_create(char **out, srv_api api, weir_error *err);

/* cors.c: a browser asks whether a page may call: x gets the route that answers. */
bool srv_preflight(srv_exchange *x, const char *allowed);
void srv_share_with_page(srv_exchange *x);     /* let a page of an --origin read the answer */

/* reply.c */
void srv_reply_refused(srv_exchange *x, int status, const char *why);
/* Answer with 101 and the headers that were given; from here on the connection is for `u`. */
void srv_reply_upgrade(srv_request *r, srv_upgrade *u);
const char *srv_status_text(int status);

/* search.c: before it serves. */
weir_code srv_set_search(weir_queue *q, srv_search search, weir_error *err);

#endif
