/* server.h - a queue served over HTTP: the whole server as one object.
 *
 * The server is a user of the library: it gets an open queue and calls the public API.
 * CONTRIBUTING.md names the few other headers that it uses. It shares the helpers of base, core and
 * op. The program `weir` sees this header, config.h, tokens.h and auth.h. */
#ifndef WEIR_SERVER_SERVER_H
#define WEIR_SERVER_SERVER_H

#include "weir/weir.h"

typedef struct srv_server srv_server;

/* Limits. A request beyond a limit is answered with a 4xx that names the limit, or the connection
 * is closed. */
enum {
    SRV_MAX_HEAD        = 16 * 1024,            /* bytes of request line and headers */
    SRV_MAX_TARGET      = 8 * 1024,             /* bytes of the target (path and query) */
    SRV_MAX_HEADERS     = 100,
    SRV_MAX_BODY        = 96 * 1024 * 1024,     /* bytes of many jobs; other bodies: less */
    SRV_MAX_SMALL_BODY  = 2 * 1024 * 1024,      /* what holds one job, or an order */
    SRV_MAX_PAGE        = 16 * 1024 * 1024,     /* bytes of a page of jobs; the rest: the next */
    SRV_MAX_BATCH_ANSWER = 32 * 1024 * 1024,    /* of what a batch reads; then it reads no more */
    SRV_MAX_BODIES      = 256 * 1024 * 1024,    /* of all bodies being read or worked on */
    SRV_MAX_ANSWERS     = 256 * 1024 * 1024,    /* of all answers that clients have not taken yet */
    SRV_FREE_ANSWER     = 64 * 1024,            /* bytes of an answer that is sent even beyond
                                                   that */
    SRV_PAGE_PART       = 1024 * 1024,          /* bytes of a page that are made and sent at once */
    SRV_FREE_BODY       = 16 * 1024,            /* bytes of a body that is accepted even beyond
                                                   that */
    SRV_MAX_CONNECTIONS = 10000,
    SRV_MAX_LISTENERS   = 4096,                 /* of events, at once */
    /* of one token, or one address that is not this machine; each can be set */
    SRV_CALLER_RATE        = 10000,             /* requests a second */
    SRV_CALLER_CONNECTIONS = 2500,
    SRV_CALLER_LISTENERS   = 1024,
    SRV_CALLER_WAITS       = 2500,              /* long polls */
    SRV_CALLER_BODIES      = 128 * 1024 * 1024, /* bytes of bodies being read or worked on */
    SRV_CALLER_ANSWERS     = 128 * 1024 * 1024, /* bytes of answers that it has not taken */
    SRV_MAX_QUOTAS         = 4096,              /* tokens and addresses that are counted */
    SRV_MAX_BACKLOG     = 1024 * 1024,          /* bytes of a stream that were not taken yet */
    SRV_MAX_WAIT_MS     = 60 * 1000,            /* of a long poll */
    SRV_HEAD_MS         = 10 * 1000,            /* from a request's first byte to its last header */
    SRV_BODY_MS         = 60 * 1000,            /* for the body, and as much again for each MiB */
    SRV_IDLE_MS         = 75 * 1000,            /* a connection without a request */
    SRV_WRITE_MS        = 30 * 1000,            /* a client that takes nothing of its answer */
    SRV_ANSWER_MS       = 60 * 1000,            /* to take what was sent; again for each MiB */
    SRV_PING_MS         = 10 * 1000,            /* a client at /eventbus that sends no ping */
    SRV_HEARTBEAT_MS    = 25 * 1000,            /* between two heartbeats for one of SockJS */
    SRV_MAX_ORIGINS     = 32,
    SRV_EVENT_KEEP_MS   = 60 * 1000,            /* events for readers that reconnect */
    SRV_DRAIN_MS        = 10 * 1000             /* for requests under way when the server stops */
};

typedef enum srv_api { SRV_API_KUE, SRV_API_VERTX } srv_api;
typedef enum srv_search { SRV_SEARCH_AS_IT_IS, SRV_SEARCH_ON, SRV_SEARCH_OFF } srv_search;

/* The contents of the audit log: administrative actions, actions of producers and workers too, or
 * nothing. */
typedef enum srv_audit_mode { SRV_AUDIT_ADMIN, SRV_AUDIT_ALL, SRV_AUDIT_OFF } srv_audit_mode;

/* The resources of which a caller has a share. */
typedef enum srv_share {
    SRV_SHARE_RATE, SRV_SHARE_CONNECTIONS, SRV_SHARE_LISTENERS, SRV_SHARE_WAITS, SRV_SHARE_BODIES,
    SRV_SHARE_ANSWERS, SRV_SHARES
} srv_share;

/* Limits that can be set lower, limits of callers also higher; 0: as above. */
typedef struct srv_limits {
    int64_t head_ms, body_ms, idle_ms, write_ms, answer_ms, event_keep_ms, ping_ms,
            heartbeat_ms;
    int64_t connections, listeners;
    size_t  bodies, answers;
    int64_t caller[SRV_SHARES];     /* of one token or address */
} srv_limits;

/* A work queue that the server runs: see weir/workqueue.h. */
typedef struct srv_workqueue {
    const char *address;
    int64_t     process_timeout_ms;     /* 0: WEIR_WORK_TIMEOUT_MS */
    bool        timed_out_first;
    bool        persist;                /* its work is jobs of the server's queue ... */
    const char *collection;             /* ... of this type; NULL: the address */
} srv_workqueue;

/* The event bus for clients. Patterns are regular expressions (POSIX extended) for whole addresses,
 * NULL at the end; NULL: none. */
typedef struct srv_bus_options {
    const char *listen;             /* "ADDRESS:PORT" of the TCP bridge; NULL: none */
    const char *const *inbound;     /* addresses that clients may send and publish to ... */
    const char *const *outbound;    /* ... and register for */
    const srv_workqueue *workqueues;
    size_t      n_workqueues;
} srv_bus_options;

/* How to serve. {0} is a server on 127.0.0.1:7340 for everybody on this machine. */
typedef struct srv_options {
    const char *listen;             /* "ADDRESS:PORT", "[::1]:7340"; port 0: any that is free */
    const char *store_url;          /* for people, without a password */
    const char *task_table;         /* of record for tasks (weir_tasks_config.table); NULL: none */
    const char *data_dir;           /* where tokens and push targets are kept; NULL: nowhere */
    bool        data_vanishes;      /* the caller removes data_dir at the end */
    const char *tokens_file;        /* NULL: "tokens.json" in data_dir, if there is one */
    const char *tls_cert, *tls_key; /* PEM files; both or none */
    const char *title;              /* of the page */
    const char *demo;               /* it is a demo: what the page says about that; NULL: not */
    const char *access_log;         /* a file, "-" is standard error; NULL: none */
    srv_audit_mode audit;
    srv_api     api;                /* whose answer holds where Kue's and Vert.x Kue's differ */
    srv_search  search;             /* are new jobs of all types searched? */
    bool        kue_get;            /* let Kue's GET /inactive/:id change a job */
    bool        push_private;       /* push to private addresses too */
    int         threads;            /* event loops; 0: one a core, at most 4 */
    srv_limits  limits;
    srv_bus_options bus;            /* its lists are borrowed while srv_start() runs */
    /* Called, on any thread, with a line that its owner should see while it serves. May be NULL. */
    void      (*notice)(const char *text, void *ctx);
    void       *notice_ctx;
    const char *const *origins;     /* origins of other pages that may call, NULL at the end */
} srv_options;

/* Start serving `q`, which must stay open until srv_destroy(). Returns when it listens. An address
 * that is not loopback needs at least one token: else WEIR_EINVAL with the remedy. On success *out
 * belongs to the caller: srv_stop(), then srv_destroy(). */
weir_code srv_start(srv_server **out, weir_queue *q, const srv_options *opt, weir_error *err);

/* "http://127.0.0.1:7340": where it listens, with the real port. */
const char *srv_address(const srv_server *s);

/* "127.0.0.1:7341": where the TCP bridge listens; NULL: nowhere. */
const char *srv_bus_address(const srv_server *s);

/* Warnings to the owner of the server; NULL: nothing. Good until the next call. */
const char *srv_warning(srv_server *s);

/* Read tokens and certificates again, and open the access log anew (SIGHUP). A file that cannot be
 * read stays as it was and is counted in /metrics; the error is the first. Streams and waiting
 * requests of callers whose token is gone end. Not from a loop. */
weir_code srv_reload(srv_server *s, weir_error *err);

/* Take no more connections, answer what is under way (long polls at once, event listeners get
 * a last message), at most SRV_DRAIN_MS. Waits. */
void srv_stop(srv_server *s);

/* After srv_stop(). NULL is fine. */
void srv_destroy(srv_server *s);

#endif
