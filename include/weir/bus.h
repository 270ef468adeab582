/* bus.h - an event bus: parts of a program, and programs, talk by messages to addresses.
 *
 *     publish    every consumer of the address receives the message
 *     send       one consumer receives the message; consumers take turns
 *     request    send, and wait for the reply
 *
 * A message carries any JSON value and headers (text to text). A consumer's handler runs on the
 * thread of its mailbox. A consumer without a mailbox has one of its own, with a thread, so that a
 * slow handler never delays another consumer. docs/bus.md is the guide. */
#ifndef WEIR_BUS_H
#define WEIR_BUS_H

#include <stddef.h>
#include <stdint.h>
#include "weir/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_queue weir_queue;
typedef struct weir_bus weir_bus;
typedef struct weir_message weir_message;
typedef struct weir_mailbox weir_mailbox;
typedef struct weir_consumer weir_consumer;
typedef struct weir_service weir_service;

enum {
    WEIR_MAX_BUS_ADDRESS   = 255,                   /* bytes of an address */
    WEIR_MAX_BUS_BODY      = 16 * 1024 * 1024,      /* bytes of a body */
    WEIR_MAX_BUS_HEADERS   = 64,                    /* headers of a message ... */
    WEIR_MAX_BUS_HEADERS_BYTES = 16 * 1024,         /* ... and their bytes */
    WEIR_MAX_FAILURE       = 1024,                  /* bytes of a failure's text; more is cut */
    WEIR_MAILBOX_MESSAGES  = 4096,                  /* messages that wait in a mailbox ... */
    WEIR_MAILBOX_BYTES     = 64 * 1024 * 1024,      /* ... and their bytes, but always one */
    WEIR_MAX_REQUESTS      = 65536,                 /* of one mailbox that wait for a reply */
    WEIR_REPLY_TIMEOUT_MS  = 30 * 1000,
    WEIR_BUS_JOIN_MS       = 1000,                  /* see weir_bus_open() */
    WEIR_REPLY_ADDRESS     = 37                     /* bytes of a reply address, with its NUL */
};

/* ---- a bus ---- */

/* A bus of this process. On success *out belongs to the caller: weir_bus_close(). */
WEIR_API weir_code weir_bus_create(weir_bus **out, weir_error *err);

/* The one bus of all processes that have opened it on the store of `q`, on a server (http:) that of
 * its clients, too; on mem: it is a bus of this process. docs/bus.md says what is promised between
 * processes. Waits until this process has the addresses of the others, at most WEIR_BUS_JOIN_MS. On
 * success *out belongs to the caller, who closes it before the queue. Errors:
 * WEIR_EBUSY (the queue has one open already), WEIR_EUNAVAIL, WEIR_ENOMEM. */
WEIR_API weir_code weir_bus_open(weir_bus **out, weir_queue *q, weir_error *err);

/* Release the bus. Its consumers, services and mailboxes must be closed before. Requests that still
 * wait for a reply are forgotten. Not from a handler. NULL is fine. */
WEIR_API void weir_bus_close(weir_bus *b);

/* ---- what is there ---- */

typedef struct weir_bus_address {
    const char *address;
    size_t      here, elsewhere;    /* consumers in this process, in others */
    uint64_t    delivered;          /* messages for consumers here, since the address has some */
    double      per_second;         /* of these, over the last seconds */
    void       *reserved[WEIR_RESERVED];
} weir_bus_address;

typedef struct weir_bus_addresses {
    size_t            n;
    weir_bus_address *address;
} weir_bus_addresses;

/* The addresses that have consumers, in the order of their names. *out is the caller's:
 * weir_bus_addresses_free(). Error: WEIR_ENOMEM. */
WEIR_API weir_code weir_bus_list(weir_bus *b, weir_bus_addresses **out, weir_error *err);
WEIR_API void weir_bus_addresses_free(weir_bus_addresses *list);        /* NULL is fine */

/* ---- sending ---- */

typedef struct weir_header {
    const char *name, *value;
} weir_header;

/* The content of a message. {0}: the body null, no headers. */
typedef struct weir_content {
    const char        *body;        /* JSON, at most WEIR_MAX_DEPTH levels deep; NULL: null */
    size_t             body_len;    /* 0: strlen(body) */
    const weir_header *headers;
    size_t             n_headers;
    bool               local;       /* for consumers of this process alone */
    void              *reserved[WEIR_RESERVED];
} weir_content;

/* Deliver to every consumer. WEIR_OK also if the address has none. A consumer whose mailbox is full
 * misses the message: weir_consumer_missed(). `c` may be NULL. Any thread. Errors: WEIR_EINVAL
 * (address, body or headers), WEIR_ELIMIT, WEIR_ENOMEM; WEIR_EUNAVAIL, WEIR_EFULL (some other
 * processes cannot be reached; consumers of this one have received it). */
WEIR_API weir_code weir_bus_publish(weir_bus *b, const char *address, const weir_content *c,
                                    weir_error *err);

/* Deliver to one consumer: the next in turn whose mailbox has room. Errors: those of
 * weir_bus_publish(); WEIR_ENOENT (the address has no consumer), WEIR_EFULL (all mailboxes are
 * full), WEIR_EUNAVAIL (other processes have consumers, and cannot be reached). */
WEIR_API weir_code weir_bus_send(weir_bus *b, const char *address, const weir_content *c,
                                 weir_error *err);

/* ---- requests ---- */

/* Why a request failed. The texts are Vert.x's. */
#define WEIR_FAILURES(X)                                                                          \
    X(NONE,              "")                        /* it did not: there is a reply */            \
    X(NO_HANDLERS,       "NO_HANDLERS")             /* the address has no consumer */             \
    X(TIMEOUT,           "TIMEOUT")                 /* no reply in time */                        \
    X(RECIPIENT_FAILURE, "RECIPIENT_FAILURE")       /* the recipient called weir_message_fail() */ \
    X(ERROR,             "ERROR")                   /* anything else: weir_reply.error */

typedef enum weir_failure {
#define X(name, text) WEIR_FAILURE_##name,
    WEIR_FAILURES(X)
#undef X
    WEIR_FAILURE_COUNT
} weir_failure;
WEIR_API const char *weir_failure_name(weir_failure f);      /* "TIMEOUT"; NONE: "" */

/* The outcome of a request: a message, or a failure. */
typedef struct weir_reply {
    weir_message *message;          /* NULL: it failed */
    weir_failure  failure;
    weir_code     error;            /* the same as weir_bus_request() returns it; WEIR_OK: none */
    int           code;             /* the recipient's own; -1 for other failures */
    char          text[WEIR_MAX_FAILURE + 1];
} weir_reply;

/* Send and wait for the reply, at most `timeout_ms` (0: WEIR_REPLY_TIMEOUT_MS). On success
 * out->message belongs to the caller: weir_message_free(). `out` has the failure otherwise.
 * Errors: those of weir_bus_send(), WEIR_ETIMEOUT, WEIR_EREPLY (the recipient's failure),
 * WEIR_ELOST (the recipient, its process or the connection to the server was lost before it
 * replied: perhaps it has done what was asked), WEIR_EREADONLY (the server does not permit it). */
WEIR_API weir_code weir_bus_request(weir_bus *b, const char *address, const weir_content *c,
                                    int64_t timeout_ms, weir_reply *out, weir_error *err);

/* The receiver of the reply, and until when. `fn` runs exactly once, on the thread of the mailbox,
 * unless the mailbox is destroyed before. `reply` is borrowed: weir_message_keep() keeps its
 * message. */
typedef void weir_reply_fn(const weir_reply *reply, void *ctx);
typedef struct weir_expect {
    weir_reply_fn *fn;
    void          *ctx;
    weir_mailbox  *mailbox;         /* NULL: one that the bus makes, with a thread for all such */
    int64_t        timeout_ms;      /* 0: WEIR_REPLY_TIMEOUT_MS */
    void          *reserved[WEIR_RESERVED];
} weir_expect;

/* Send; the reply or failure goes to `e`. An error means that nothing was sent and fn is not
 * called. Errors: those of weir_bus_publish(), WEIR_ELIMIT (WEIR_MAX_REQUESTS). An address without
 * consumers, full mailboxes and timeouts are failures of the reply. */
WEIR_API weir_code weir_bus_request_async(weir_bus *b, const char *address, const weir_content *c,
                                          const weir_expect *e, weir_error *err);

/* ---- a message ---- */

/* Messages never change and are shared. Good until the handler returns, or until the caller's
 * weir_message_free(). Any thread. */
WEIR_API const char *weir_message_address(const weir_message *m);   /* "": it is a reply */
WEIR_API const char *weir_message_body(const weir_message *m, size_t *len);     /* ends with NUL */
WEIR_API const weir_header *weir_message_headers(const weir_message *m, size_t *n);
WEIR_API const char *weir_message_header(const weir_message *m, const char *name);  /* or NULL */
WEIR_API bool weir_message_sent(const weir_message *m);             /* false: it was published */
WEIR_API bool weir_message_expects_reply(const weir_message *m);
/* A name for the reply, of this process alone. False: no reply is expected. */
WEIR_API bool weir_message_reply_address(const weir_message *m, char out[WEIR_REPLY_ADDRESS]);

/* Keep the message after the handler has returned, for instance to reply later. */
WEIR_API weir_message *weir_message_keep(weir_message *m);
WEIR_API void weir_message_free(weir_message *m);                /* NULL is fine */

/* Reply, once. Errors: WEIR_ESTATE (no reply is expected), WEIR_ESTALE (it was answered before, or
 * the requester does not wait any more), those of weir_bus_publish(). */
WEIR_API weir_code weir_message_reply(weir_message *m, const weir_content *c, weir_error *err);
/* Reply with a failure: WEIR_FAILURE_RECIPIENT_FAILURE with this code and text. */
WEIR_API weir_code weir_message_fail(weir_message *m, int code, const char *text, weir_error *err);
/* Reply, and expect a reply to that: a conversation. */
WEIR_API weir_code weir_message_request(weir_message *m, const weir_content *c, int64_t timeout_ms,
                                        weir_reply *out, weir_error *err);
WEIR_API weir_code weir_message_request_async(weir_message *m, const weir_content *c,
                                              const weir_expect *e, weir_error *err);

/* ---- mailboxes ---- */

/* A mailbox holds what has arrived for its consumers and the replies to its requests, in order,
 * until its thread handles it. {0}: the limits above. If a message is over a limit, a send goes to
 * the next consumer and a publish is lost for this one; replies always have room. */
typedef struct weir_mailbox_config {
    size_t messages, bytes;
    void (*wake)(void *ctx);        /* called, on any thread and with no lock held, when something
                                       arrives and nobody runs the mailbox; may be NULL */
    void  *ctx;
    void  *reserved[WEIR_RESERVED];
} weir_mailbox_config;

/* A mailbox for weir_mailbox_run(). `config` may be NULL. On success *out belongs to the caller:
 * weir_mailbox_destroy(). */
WEIR_API weir_code weir_mailbox_create(weir_mailbox **out, weir_bus *b,
                                       const weir_mailbox_config *config, weir_error *err);
/* Handle at most `max` arrivals on the calling thread; wait for the first at most `timeout_ms`
 * (0: not at all). Returns how many there were. One thread at a time. After `wake` was called, it
 * is called again only when a run has found the mailbox empty. */
WEIR_API size_t weir_mailbox_run(weir_mailbox *mb, size_t max, int64_t timeout_ms);
/* Close its consumers, forget its requests, release it. Waits for a `wake` that runs. From the
 * thread that runs the mailbox, or when none does. NULL is fine. */
WEIR_API void weir_mailbox_destroy(weir_mailbox *mb);

/* ---- consumers ---- */

typedef void weir_message_fn(weir_message *m, void *ctx);
typedef struct weir_consumer_config {
    const char      *address;
    weir_message_fn *handler;
    void            *ctx;
    weir_mailbox    *mailbox;       /* NULL: one of its own, with a thread */
    void            *reserved[WEIR_RESERVED];
} weir_consumer_config;

/* Receive messages from here on. On success *out belongs to the caller: weir_consumer_close().
 * Errors: WEIR_EINVAL (address), WEIR_ENOMEM. */
WEIR_API weir_code weir_bus_consume(weir_consumer **out, weir_bus *b,
                                    const weir_consumer_config *config, weir_error *err);
/* The handler does not run any more when this returns; a handler may close its own consumer. Sent
 * messages that still waited go to another consumer of the address. NULL is fine. */
WEIR_API void weir_consumer_close(weir_consumer *c);
/* Published messages that were lost because the mailbox was full. Any thread. */
WEIR_API uint64_t weir_consumer_missed(const weir_consumer *c);

/* ---- services ---- */

/* A service is a consumer whose messages name an action in the header "action"; the body is a JSON
 * object of named arguments. The action answers with weir_message_reply(), weir_message_fail(), now
 * or later. A message without an action, or with an unknown one, is answered with failure 500. */
typedef struct weir_action {
    const char      *name;          /* NULL ends the table */
    weir_message_fn *run;           /* with the ctx of the service */
    void            *reserved[WEIR_RESERVED];
} weir_action;

typedef struct weir_service_config {
    const char        *name;        /* its address */
    const weir_action *actions;     /* must stay until the service is closed */
    void              *ctx;
    weir_mailbox      *mailbox;     /* NULL: one of its own, with a thread */
    void              *reserved[WEIR_RESERVED];
} weir_service_config;

/* On success *out belongs to the caller: weir_service_close(). Errors: those of
 * weir_bus_consume(). */
WEIR_API weir_code weir_service_publish(weir_service **out, weir_bus *b,
                                        const weir_service_config *config, weir_error *err);
/* As weir_consumer_close(). */
WEIR_API void weir_service_close(weir_service *s);

/* Call an action with arguments (a JSON object; NULL: {}) and wait, as weir_bus_request() does. */
WEIR_API weir_code weir_service_call(weir_bus *b, const char *service, const char *action,
                                     const char *args, int64_t timeout_ms, weir_reply *out,
                                     weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
