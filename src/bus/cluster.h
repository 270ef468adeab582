/* cluster.h - a bus over several processes: a transport (bus/transport.h) that sends frames
 * (bus/cluster_frame.h) through a carrier.
 *
 * Each process keeps a directory of what the others consume (bus/directory.h), so that counting
 * consumers never waits. The list of a process has a version, which rises with every CHANGES frame.
 * A process that missed one detects it by the version of the next frame and asks for the whole
 * list.
 *
 *     cluster.c          the transport, the thread, joining and leaving
 *     cluster_arrive.c   frames that have come, and the requests between processes */
#ifndef WEIR_BUS_CLUSTER_H
#define WEIR_BUS_CLUSTER_H

#include "bus/carrier.h"
#include "bus/cluster_frame.h"
#include "bus/directory.h"
#include "bus/inner.h"

enum {
    CLUSTER_ALIVE_MS = 1000,            /* between two signs of life, where they are needed */
    CLUSTER_GONE_MS = 3500,             /* of silence, then a process counts as ended */
    CLUSTER_ASK_MS = 200,               /* between two questions for the same list */
    CLUSTER_FRAME = 64 * 1024,          /* bytes of ADDRESSES or CHANGES in one frame, about */
    CLUSTER_MAX_HOPS = 3                /* most times that a sent message is passed on */
};

/* Join the bus, which has no consumers yet, to the others, and wait until their addresses are
 * known, at most `wait_ms`. weir_bus_close() leaves. On failure the bus is as before. */
weir_code weir__cluster_join(weir_bus *b, const weir_carrier *carrier, int64_t wait_ms,
                             weir_error *err);

/* ---- the inside ---- */

/* An address with consumers in this process. */
typedef struct local_address {
    weir_named named;
    weir_link  link;                    /* of changed, if `changed` */
    bool       changed, prefix;
    bool       again;                   /* since the last CHANGES it had no consumer for a while */
    size_t     n;                       /* 0: until the next CHANGES */
    char       name[];
} local_address;

/* A request that another process is to answer. */
typedef struct sent_request {
    weir_link     link;
    uint64_t      number;
    weir_message *message;              /* with a reference */
    bool          reply;                /* it is a reply that expects one */
    int64_t       until_ms;             /* monotonic: nobody waits any more */
    char          process[WEIR_PROCESS];
} sent_request;

/* A request of another process that a consumer of this one is to answer. */
typedef struct bus_relay {
    weir_link            link;
    struct weir_cluster *cluster;
    uint64_t             number;
    char                 process[WEIR_PROCESS];
} bus_relay;

typedef struct weir_cluster {
    weir_transport  t;                  /* first */
    weir_bus       *bus;
    weir_carrier    carrier;
    weir_member     member;
    weir_mailbox   *mailbox;            /* of relays; the thread runs it */
    pthread_t       thread;
    bool            started;
    atomic_bool     stopping;
    int64_t         alive_ms, tidied_ms;        /* the thread's: when it last did */

    pthread_mutex_t posting;            /* of CHANGES, in their order; taken before the next one */
    pthread_mutex_t lock;               /* guards what follows; taken after the lock of the bus */
    pthread_cond_t  answered;           /* a list has arrived */
    bus_directory   others;
    weir_names      local[2];           /* of local_address; [1]: prefixes */
    weir_dlist      changed;
    uint64_t        version;
    bool            hello_due;          /* a HELLO to all is due */
    bool            reached;            /* it was sent ... */
    size_t          expected;           /* ... to this many */
    bool            poked;              /* the thread will look at once */
    bool            timed;              /* the thread tidies up each CLUSTER_ALIVE_MS */
    weir_map        sent;               /* number to sent_request */
    uint64_t        numbers;
    weir_dlist      relays;
} weir_cluster;

/* cluster.c */
weir_code weir__cluster_post(weir_cluster *cl, const char *to, const bus_frame *f,
                             weir_error *err);
void weir__cluster_poke(weir_cluster *cl);      /* have the thread look; lock held */

/* cluster_arrive.c */
void weir__cluster_arrived(void *ctx, const char *bytes, size_t len);
void weir__cluster_gone(void *ctx, const char *process);
/* Keep a message that waits for a reply of that process. 0: out of memory. Lock held. */
uint64_t weir__cluster_keep(weir_cluster *cl, weir_message *m, const char *process, bool reply);
/* Take it out. NULL: it was answered, or is no request to that process. */
sent_request *weir__cluster_take(weir_cluster *cl, uint64_t number, const char *process);
void weir__cluster_forget(sent_request *s);

#endif
