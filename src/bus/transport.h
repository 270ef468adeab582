/* transport.h - how a bus reaches consumers in other processes: a table of functions.
 *
 * A transport keeps track of which processes consume which addresses and carries messages between
 * them. The bus asks it for each message; what arrives from another process the transport hands in
 * with weir__bus_arrive(). A request goes out as a message that the transport keeps and answers
 * with weir_message_reply(), weir_message_request_async() or weir__message_answer() when its peer's
 * answer has come. */
#ifndef WEIR_BUS_TRANSPORT_H
#define WEIR_BUS_TRANSPORT_H

#include "weir/bus.h"

typedef struct weir_transport weir_transport;

typedef struct weir_transport_ops {
    /* The first consumer of `address` has come to this process (on), or its last one has gone.
     * Called with the bus locked: must not block, and must not call the bus. */
    void (*listen)(weir_transport *t, const char *address, bool on);
    /* How many other processes consume `address`? Called with the bus locked, as listen(). */
    size_t (*count)(weir_transport *t, const char *address);
    /* Deliver to all other processes that consume the address, or to one of them. Called with no
     * lock held; must not block. An error of send() becomes the failure of the request. */
    weir_code (*publish)(weir_transport *t, weir_message *m, weir_error *err);
    weir_code (*send)(weir_transport *t, weir_message *m, weir_error *err);
} weir_transport_ops;

struct weir_transport {             /* first member of every transport */
    const weir_transport_ops *ops;
};

/* Join the bus to others, before it has any consumer. `t` must stay until weir_bus_close(). */
void weir__bus_attach(weir_bus *b, weir_transport *t);

/* A message from another process, for consumers of this one alone. `sent` false: published. `e`
 * NULL: no reply is expected. Errors: as weir_bus_send() and weir_bus_request_async(). */
weir_code weir__bus_arrive(weir_bus *b, const char *address, const weir_content *c, bool sent,
                           const weir_expect *e, weir_error *err);

/* Answer the request of `m` with any failure, as weir_message_fail() does with its one. */
weir_code weir__message_answer(weir_message *m, weir_failure failure, int code, const char *text,
                               weir_error *err);

#endif
