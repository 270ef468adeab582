/* hub.h - the queue's events on their way to those who listen over HTTP.
 *
 * Each event is written down once, as it will be sent, and kept in a ring (base/ring.h). All
 * listeners read from the ring, each at its own pace, and can resume after their connection broke.
 * If the ring has overtaken a listener, the listener has missed something.
 *
 * The hub listens to the queue from the first listener on, and for `keep_ms` after the last one has
 * gone: a server nobody listens to pays nothing. Any thread. */
#ifndef WEIR_SERVER_HUB_H
#define WEIR_SERVER_HUB_H

#include "base/ring.h"
#include "server/http/loop.h"
#include "weir/weir.h"

enum {
    SRV_EVENT_RING  = 16384,                /* events that are kept */
    SRV_EVENT_BYTES = 16 * 1024 * 1024,     /* and their bytes, but always one event */
    SRV_MAX_READ    = 256                   /* events given by one call of srv_hub_read() */
};

/* One event: never changed, shared by reference. */
typedef struct srv_frame {
    weir_ring_entry  entry;         /* first; its number: 1, 2, 3 ... in this run of the server */
    weir_event_kind  kind;
    bool             lost;          /* not an event: some were lost here. For everybody */
    uint64_t         id;            /* of the job, or 0 */
    const char      *type;          /* NULL: of the whole queue */
    size_t           len;
    const char      *bytes;         /* "id: RUN-N\nevent: ...\ndata: {...}\n\n" */
    char             room[];        /* of type and bytes */
} srv_frame;

typedef struct srv_hub srv_hub;

weir_code srv_hub_create(srv_hub **out, weir_queue *q, int64_t keep_ms, weir_error *err);
void srv_hub_destroy(srv_hub *h);           /* no reader is left; NULL is fine */

/* A reader of the ring, one for each loop: memory of its owner, who sets the first two. */
typedef struct srv_reader {
    weir_inbox_task   task;          /* posted when there is news */
    srv_loop        *loop;
    struct srv_reader *next;        /* guarded by the hub's lock, as is the next */
    bool             posted;        /* its task is posted, and it has not read to the end since */
} srv_reader;

/* Come and go. Its task is posted when frames come, once until it has read to the end; when it
 * has left, its task may still run. */
weir_code srv_hub_enter(srv_hub *h, srv_reader *d, weir_error *err);
void srv_hub_leave(srv_hub *h, srv_reader *d);

/* The frames after number `seq`, at most `max`, at most `bytes` together but at least one. Each
 * is to be given back with weir__ring_unref(). *gone: what comes after `seq` is not kept any more.
 * `d`: that reader reads; its task is posted again after a read of 0. NULL: any caller. */
size_t srv_hub_read(srv_hub *h, srv_reader *d, uint64_t seq, srv_frame **out, size_t max,
                    size_t bytes, bool *gone);

/* The numbers that are kept; last + 1 == first: none. */
void srv_hub_range(srv_hub *h, uint64_t *first, uint64_t *last);
const char *srv_hub_run(const srv_hub *h);  /* "5f3a9c01": of this run of the server */

#endif
