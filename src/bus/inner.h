/* inner.h - the inside of the bus: what bus.c, message.c, mailbox.c and request.c share.
 *
 * Locks, in the order in which they are taken: the bus (addresses and their consumers), a mailbox
 * (what waits in it, its open requests), the deadlines of requests. Handlers, `wake`, publish() and
 * send() of transports run with none of them held. */
#ifndef WEIR_BUS_INNER_H
#define WEIR_BUS_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/named.h"
#include "base/rate.h"
#include "bus/transport.h"
#include "bus/watch.h"

/* Something that waits in a mailbox: a message for a consumer, the outcome of a request, or a
 * call. */
typedef struct delivery {
    weir_link           link;
    void              (*call)(struct delivery *d);  /* owns `d`, made with malloc(); else NULL */
    weir_message       *message;        /* with a reference; NULL: an outcome */
    weir_consumer      *consumer;
    struct bus_request *request;        /* with a reference; NULL: a message */
} delivery;

struct weir_message {
    _Atomic uint32_t    refs;
    bool                sent;
    bool                local;          /* never leaves this process */
    weir_bus           *bus;
    struct bus_request *request;        /* that a reply ends, with a reference; NULL: none is */
    delivery            own;            /* of a message that goes to one consumer */
    const char         *address, *body;
    size_t              body_len, n_headers, size;
    weir_header        *headers;
    char                room[];         /* of headers and texts */
};

/* A request waits for its reply. */
typedef struct bus_request {
    weir_heap_node   deadline;          /* guarded by deadlines.lock */
    _Atomic uint32_t refs;              /* the mailbox's while open, the heap's, each message's */
    uint64_t         number;
    weir_bus        *bus;
    weir_mailbox    *mailbox;           /* with a reference */
    weir_link        link;              /* in mailbox->requests while open; guarded by its lock, */
    bool             open;              /* as this is, and what follows until it is delivered */
    delivery         outcome;
    weir_reply_fn   *fn;
    void            *ctx;
    int64_t          timeout_ms;
    weir_message    *reply;             /* NULL: a failure */
    weir_failure     failure;
    int              code;
    char            *text;              /* of the failure; NULL: out of memory, or none */
    char             address[];         /* that it was sent to */
} bus_request;

struct weir_mailbox {
    _Atomic uint32_t    refs;           /* of its memory: the owner's, its thread's, requests' */
    weir_bus           *bus;
    weir_mailbox_config config;
    pthread_mutex_t     lock;           /* guards what follows */
    pthread_cond_t      changed;
    weir_dlist          waiting;        /* of deliveries */
    weir_dlist          requests;       /* open ones */
    size_t              n_requests;
    size_t              messages, bytes;        /* of `waiting`, without outcomes */
    weir_consumer      *running;        /* whose handler runs ... */
    pthread_t           runner;         /* ... on this thread */
    uint64_t            runs;           /* counts what was handled */
    int                 awaited;        /* threads that wait for a handler to return */
    bool                signalled;      /* `wake` was called, and no run has found it empty since */
    int                 waking;         /* threads that call `wake`, or will at once */
    bool                sleeping;       /* a run waits for `changed` */
    bool                closed;
    weir_mailbox       *wake_next;      /* of the one thread that will call `wake` */
    weir_dlist          consumers;      /* guarded by the lock of the bus */
    bool                threaded;       /* `thread` runs it until it is closed */
    pthread_t           thread;
};

/* An address that has consumers. */
typedef struct bus_address {
    weir_named named;
    weir_link  link;                    /* of prefixes, if it is one */
    bool       prefix;
    weir_dlist consumers;               /* the first is the next in turn */
    size_t     n;
    size_t     turn;                    /* counts sends, to take turns with other processes */
    uint64_t   delivered;               /* messages, to all consumers that it had */
    weir_rate  rate;                    /* of these */
    char       name[];
} bus_address;

struct weir_consumer {
    weir_link        link;              /* of address->consumers; this and the next three are
                                           guarded by the lock of the bus */
    weir_link        in_mailbox;
    bus_address     *address;           /* NULL: it is closed */
    weir_mailbox    *mailbox;
    bool             owns_mailbox;
    weir_message_fn *handler;
    void            *ctx;
    _Atomic uint64_t missed;
};

struct weir_bus {
    pthread_mutex_t  lock;              /* guards the next three */
    weir_names       addresses;
    weir_mailbox    *replies;           /* for requests without a mailbox; NULL: none so far */
    weir_transport  *transport;         /* NULL: none; set before there are consumers */
    weir_bus_watch  *watches;           /* likewise */
    weir_dlist       prefixes;          /* of bus_address, whose names are beginnings; guarded by
                                           the lock, as are the next two */
    weir_dlist       leaders;           /* of weir_leader: see leader.h */
    weir_dlist       vanishing;         /* of vanish_watch: see vanish.h */
    _Atomic uint64_t requests;          /* numbers */
    struct {
        pthread_mutex_t lock;           /* guards what follows */
        pthread_cond_t  changed;
        weir_heap       heap;
        int64_t         sleeps_until;   /* monotonic ms; INT64_MAX: until something is put */
        bool            started, closing;
        pthread_t       thread;
    } deadlines;
};

/* message.c */
/* A message with one reference. `request` is taken over on success; NULL: no reply is expected. */
weir_code weir__message_create(weir_message **out, weir_bus *b, const char *address,
                               const weir_content *c, bool sent, bus_request *request,
                               weir_error *err);
/* A message without body and headers whose reply is the reply of `m`; NULL: `m` expects none, or
 * memory is out. */
weir_message *weir__message_asker(const weir_message *m);
bool weir__message_awaited(const weir_message *m);      /* does its sender still wait? */
weir_code weir__content_check(const char *address, const weir_content *c, weir_error *err);

/* mailbox.c */
/* Append to the mailbox, which is locked; *wakes gets those whose `wake` is to be called. */
void weir__mailbox_append(weir_mailbox *mb, delivery *d, weir_mailbox **wakes);
bool weir__mailbox_has_room(const weir_mailbox *mb, const weir_message *m);     /* locked */
void weir__mailbox_wake(weir_mailbox *wakes);       /* with no lock held */
/* As weir_mailbox_run(). *left: something still waits, and `wake` is not called for it again. */
size_t weir__mailbox_run(weir_mailbox *mb, size_t max, int64_t timeout_ms, bool *left);
weir_code weir__mailbox_start(weir_mailbox *mb, const char *name, weir_error *err);
void weir__mailbox_unref(weir_mailbox *mb);
/* Take what waits for `c` out of the mailbox, and wait until its handler does not run. *out gets
 * deliveries of sent messages. */
void weir__mailbox_forget(weir_mailbox *mb, weir_consumer *c, weir_dlist *out);
void weir__delivery_free(delivery *d);
/* Have d->call run on the thread of the mailbox. If that is destroyed before, `d` is only freed.
 * Any thread. */
void weir__mailbox_call(weir_mailbox *mb, delivery *d);

/* bus.c */
/* Deliver to one consumer in this process (here) or in any; takes over the reference of `m`. An
 * error that a request gets as its failure is not returned. */
weir_code weir__bus_deliver(weir_bus *b, weir_message *m, bool here, weir_error *err);
weir_consumer *weir__bus_consumer_of(weir_mailbox *mb);     /* one of them; NULL: none */
weir_mailbox *weir__bus_replies(weir_bus *b, weir_error *err);
size_t weir__bus_count(weir_bus *b, const char *address);   /* consumers in all processes */
/* The consumers of other processes have changed: "+NAME" and "-NAME", each with its NUL. `process`:
 * the process that consumed these is gone without a BYE; "": none is. With no lock held. */
void weir__bus_changed_elsewhere(weir_bus *b, const weir_buf *changes, const char *process);

/* leader.c */
/* Other processes have come, gone, or consume something else. Any thread, with no lock held. */
void weir__leaders_look(weir_bus *b);

/* request.c */
/* An open request with two references: the caller's, and its own while it is open. */
weir_code weir__request_open(bus_request **out, weir_bus *b, const char *address,
                             const weir_expect *e, weir_error *err);
/* End it: with a reply, whose reference is taken over, or a failure. `code` is as in
 * weir__message_answer(). WEIR_ESTALE: it had ended. */
weir_code weir__request_end(bus_request *rq, weir_message *reply, weir_failure failure, int code,
                            const char *text);
/* fn is not called. False: it has ended, and fn was called or will be. */
bool weir__request_cancel(bus_request *rq);
void weir__request_unref(bus_request *rq);
void weir__request_run(bus_request *rq);            /* call fn */
void weir__request_forget(bus_request *rq);         /* its mailbox is gone; ends the open state */
void weir__deadlines_init(weir_bus *b);
void weir__deadlines_fini(weir_bus *b);

#endif
