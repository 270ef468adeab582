/* bridge.h - one client of the bus behind a bridge: what it has registered, which replies it waits
 * for, which replies it owes. The TCP and the WebSocket bridge differ in their dialect and in how
 * bytes are written; both belong to the loop of their connection. */
#ifndef WEIR_SERVER_BRIDGE_H
#define WEIR_SERVER_BRIDGE_H

#include "base/list.h"
#include "base/named.h"
#include "server/bus/frame.h"
#include "server/http/inner.h"

struct srv_bus;
typedef struct bridge bridge;

enum {
    BRIDGE_MAX_HANDLERS = 1000,             /* registered addresses and replies waited for */
    BRIDGE_MAX_OWED     = 1000,             /* replies that a client owes; the oldest fail ... */
    BRIDGE_MAX_OWED_BYTES = 32 * 1024 * 1024,   /* ... also beyond this size of their messages */
    BRIDGE_MAX_REPLY    = 36,               /* bytes of a reply address of a client */
    BRIDGE_MAX_TIMEOUT_MS = 7 * 24 * 3600 * 1000,       /* of a request */
    BRIDGE_RUN          = 64                /* messages delivered before others have their turn */
};

/* The differences of the two protocols. A code that is NULL is not sent. */
typedef struct bridge_dialect {
    const char *message;            /* "type" of a message to a client */
    const char *code;               /* member of an error that has its code */
    size_t      max_address;
    bool        pong;               /* a ping is answered */
    bool        send_flag;          /* a message says whether it was sent; has headers always; has
                                       no body when that is null */
    bool        source_address;     /* a failure has it */
    bool        failures;           /* what is wrong with a request is its failure */
    const char *no_type, *unknown_type, *unknown_address, *registered_twice;
} bridge_dialect;

/* The protocol of our own clients, over /eventbus/tcp and /eventbus/ws. */
extern const bridge_dialect bridge_own_dialect;

struct bridge {
    const bridge_dialect *dialect;
    struct srv_bus *bus;
    srv_conn       *conn;
    /* Write one message. Its bytes are the client's from here on: *json is reused. */
    void          (*write)(bridge *b, const weir_buf *json);
    weir_mailbox   *mb;
    weir_names      registered;     /* by address */
    weir_names      owed;           /* replies, by reply address ... */
    weir_dlist      owed_order;     /* ... the oldest first */
    weir_dlist      asked;          /* requests of the client */
    size_t          n_registered, n_owed, owed_bytes, n_asked;
    srv_caller      who;
    /* The credentials by which it is `who`; NULL: not given. */
    char           *authorization, *host, *origin, *fetch_site;
    weir_buf        out;            /* the message that is being written */
    weir_inbox_task  task;           /* runs the mailbox ... */
    atomic_bool     posted;         /* ... soon */
    bool            gone;           /* the connection is closed: the task releases the bridge */
    void          (*release)(bridge *b);
};

/* Begin on memory of the caller; dialect, bus, conn, write, release are set. `head` is of the HTTP
 * request, if there was one. Afterwards, also after an error: bridge_close(). */
weir_code bridge_open(bridge *b, const srv_head *head, weir_error *err);
/* The connection is gone, or was never used. Calls release() now or when the task has run. */
void bridge_close(bridge *b);

/* A message from the client. */
void bridge_receive(bridge *b, const char *json, size_t len);
/* All that was written has left: deliver more. */
void bridge_drained(bridge *b);
/* Tokens were read again. False: the client may not stay. */
bool bridge_check(bridge *b);
/* Report to the client what is wrong. NULL: report nothing. */
void bridge_error(bridge *b, const char *code);

#endif
