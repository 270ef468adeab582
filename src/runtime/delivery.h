/* delivery.h - a job that this process has taken: its lease and its outcome. */
#ifndef WEIR_RUNTIME_DELIVERY_H
#define WEIR_RUNTIME_DELIVERY_H

#include <stdatomic.h>
#include "base/list.h"
#include "runtime/batcher.h"
#include "weir/worker.h"

struct weir_pool;

typedef struct weir__delivery {
    weir_queue        *q;              /* a reference */
    weir_job          *job;
    struct weir_pool  *pool;           /* a reference; NULL: taken with weir_take() */
    int64_t            lease_ms;
    _Atomic int64_t    lease_until;    /* by the steady clock, and no later than the store's */
    int64_t            back_at;        /* taken ahead: when it goes back if it is not begun */
    atomic_bool        revoked;        /* another worker may have the job by now */
    atomic_bool        left;           /* the gate of the queue does not count it any more */
    bool               renewing;       /* a renewal is under way; guarded by q->deliveries.lock */
    bool               shut;           /* failed by weir_stop(); guarded by q->deliveries.lock */
    /* The outcome is noted once (ENDED), and reaches the store once the handler has let go of the
     * job (RETURNED): whoever sets the second of the two bits sends it. */
    _Atomic uint32_t   phase;
    weir_outcome       outcome;
    int64_t            delay_ms;       /* of a return */
    int64_t            begun_ns;       /* spans are sent: when the handler was called */
    char              *text;           /* of the outcome; ours */
    size_t             len;
    weir_error         last_error;     /* of a weir_job_...() call; guarded by q->deliveries.lock */
    weir_ticket        ticket;         /* to send it with */
    weir_link          link;           /* in q->deliveries */
    struct weir__delivery *queued;     /* in one of the pool's lists */
} weir__delivery;

enum { WEIR__ENDED = 1, WEIR__RETURNED = 2 };

/* For a job that was just taken, and that the gate counts. NULL: out of memory; the job is
 * unchanged. With a pool, the timer renews the lease until the delivery is released. `asked_at`:
 * when the take was submitted, by the steady clock; the lease began then or later. */
weir__delivery *weir__delivery_create(weir_queue *q, weir_job *job, struct weir_pool *pool,
                                      int64_t lease_ms, int64_t asked_at);

/* Before a job is begun: does its lease last, by this process's own record? It does not if the
 * process was stopped for longer than a lease: then another worker may have the job. */
bool weir__delivery_lasts(weir__delivery *d);
/* If it does not, ask the store to renew it, and wait. False: the job is lost to this process. */
bool weir__delivery_confirm(weir__delivery *d);

/* The job belongs to somebody else now. A suspect keeps its place in the gate while a handler works
 * on it, since it may still kill the process. */
void weir__delivery_revoke(weir__delivery *d);
/* The gate counts the job no longer. */
void weir__delivery_leave(weir__delivery *d);

/* Release the delivery and its job (weir_job_free() comes here). */
void weir__delivery_release(weir__delivery *d);

/* Note the outcome; text is copied. WEIR_ESTALE: there is one already. Sends it if the handler has
 * returned. */
weir_code weir__delivery_end(weir__delivery *d, weir_outcome outcome, const char *text, size_t len,
                             int64_t delay_ms);

/* Fill in h->ticket to send the noted outcome. */
void weir__delivery_ticket(weir__delivery *d);

/* The store says that this delivery of job `id` is over. */
void weir__deliveries_revoke(weir_queue *q, uint64_t id, uint32_t delivery);

/* Renew the leases of all pools. Returns when to call it next (INT64_MAX: no leases). */
int64_t weir__deliveries_renew(weir_queue *q);

#endif
