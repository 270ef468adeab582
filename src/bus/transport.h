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
typedef void weir_address_fn(void *ctx, const char *address, size_t consumers);
typedef void weir_process_fn(void *ctx, const char *process);

typedef struct weir_transport_ops {
    /* Every message that is not local goes to send() or publish(), and comes back if it is for
     * consumers of this process. If there is an error, these consumers get it all the same. */
    bool central;
    /* The number of consumers of `address` in this process has changed. `prefix`: of all addresses
     * that begin so (bus/watch.h). False: out of memory, and the consumer is not opened; never when
     * there are fewer than before. Called with the bus locked, as the next two: must not block, and
     * must not call the bus. */
    bool (*listen)(weir_transport *t, const char *address, bool prefix, size_t consumers);
    /* How many consumers has `address` in other processes? `prefix`: consumers of its beginning. */
    size_t (*count)(weir_transport *t, const char *address, bool prefix);
    /* Call fn for each address that has consumers in other processes. */
    void (*list)(weir_transport *t, weir_address_fn *fn, void *ctx);
    /* Call fn for each other process that consumes `address`; NULL: for each other process. Only
     * if t->process is there. When the answer may have changed: weir__leaders_look(). */
    void (*processes)(weir_transport *t, const char *address, weir_process_fn *fn, void *ctx);
    /* Deliver to all other processes that consume the address, or to one of their consumers: the
     * next in turn. publish() leaves out processes that consume `unless`, too (NULL: none). Called
     * with no lock held; must not block. An error of send() means that it was not sent. */
    weir_code (*publish)(weir_transport *t, weir_message *m, const char *unless, weir_error *err);
    weir_code (*send)(weir_transport *t, weir_message *m, weir_error *err);
    /* weir_bus_close(): hand in nothing any more; then, when the requests of the bus are forgotten,
     * release it. NULL: whoever attached it does. */
    void (*stop)(weir_transport *t);
    void (*destroy)(weir_transport *t);
} weir_transport_ops;

struct weir_transport {             /* first member of every transport */
    const weir_transport_ops *ops;
    const char               *process;  /* this one among them; NULL: they have no names */
};

/* Join the bus to others, before it has any consumer. `t` must stay until weir_bus_close(). */
void weir__bus_attach(weir_bus *b, weir_transport *t);

/* A message from another process, for consumers of this one alone. `sent` false: published. `e`
 * NULL: no reply is expected. Errors: as weir_bus_send() and weir_bus_request_async(). */
weir_code weir__bus_arrive(weir_bus *b, const char *address, const weir_content *c, bool sent,
                           const weir_expect *e, weir_error *err);

/* Is the address one by which processes agree who does what (bus/leader.h)? Clients of bridges must
 * not use it. */
bool weir__bus_reserved(const char *address);

/* A message of send() that the peer did not take goes to another consumer, here or elsewhere. Takes
 * over the caller's reference. Errors: as weir_bus_send(); a request has them as its failure. */
weir_code weir__bus_send_again(weir_bus *b, weir_message *m, weir_error *err);

/* The content of a message, borrowed from it. */
weir_content weir__content_of(const weir_message *m);

/* Milliseconds until the requester stops waiting; 0: no reply is expected, or none any more. */
int64_t weir__message_left_ms(const weir_message *m);

/* Answer the request of `m` with any failure, as weir_message_fail() does with its one. `code` is
 * the weir_code of WEIR_FAILURE_ERROR, the recipient's own of WEIR_FAILURE_RECIPIENT_FAILURE, and
 * otherwise -1. */
weir_code weir__message_answer(weir_message *m, weir_failure failure, int code, const char *text,
                               weir_error *err);
int weir__reply_code(const weir_reply *r);      /* that `code` of a failure, to hand it on */

#endif
