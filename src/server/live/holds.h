/* holds.h - deliveries that streams of jobs (POST /v1/observe) have sent, and which of them have
 * ended: by POST /v1/finish of this server, or by an event of the queue. Any thread, unless said.
 *
 * An end that has no event (a return with a delay, elsewhere), or whose event was lost, is not
 * noticed here: the stream finds it when it renews the lease. */
#ifndef WEIR_SERVER_HOLDS_H
#define WEIR_SERVER_HOLDS_H

#include "base/list.h"
#include "server/http/loop.h"
#include "weir/weir.h"

typedef struct srv_holds srv_holds;

/* `q` must outlive it. On success *out belongs to the caller: srv_holds_destroy(), when no stream
 * is left. NULL is fine for destroy. */
weir_code srv_holds_create(srv_holds **out, weir_queue *q, weir_error *err);
void srv_holds_destroy(srv_holds *hs);

/* A stream: memory of its owner, who sets the first three members; {0} otherwise. */
typedef struct srv_holder {
    srv_loop       *loop;
    void          (*changed)(struct srv_holder *h);     /* on the loop: ask srv_holds_over() */
    srv_holds      *holds;
    weir_inbox_task task;
    weir_dlist      held, over;         /* guarded by the lock of `holds`, as is what follows */
    size_t          n;                  /* deliveries in both */
    bool            unsure;             /* events were lost */
    bool            posted;             /* `task` is, and has not run yet */
} srv_holder;

typedef struct srv_held {
    uint64_t id;
    uint32_t delivery;
} srv_held;

/* The holder has sent this delivery. False: out of memory. */
bool srv_holds_add(srv_holder *h, uint64_t id, uint32_t delivery);

/* The delivery has ended. It may be nobody's. */
void srv_holds_ended(srv_holds *hs, uint64_t id, uint32_t delivery);

/* A delivery that has ended; each is answered once. False: no such hold; *unsure is set if events
 * were lost since the last call. */
bool srv_holds_over(srv_holder *h, srv_held *out, bool *unsure);

/* How many are held, or have ended and were not answered by srv_holds_over(). */
size_t srv_holds_count(srv_holder *h);
/* The held ones, at most `max`. */
size_t srv_holds_list(srv_holder *h, srv_held *out, size_t max);

/* Forget all of it. False: changed() is called once more, and the holder must stay until then. */
bool srv_holds_leave(srv_holder *h);

#endif
