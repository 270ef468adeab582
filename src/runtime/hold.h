/* hold.h - what ties a taken job to its queue: the delivery, the lease, the outcome. */
#ifndef WEIR_RUNTIME_HOLD_H
#define WEIR_RUNTIME_HOLD_H

#include <stdatomic.h>
#include "base/list.h"
#include "runtime/batcher.h"
#include "weir/worker.h"

struct weir__pool;

typedef struct weir__hold {
    weir_queue        *q;              /* a reference */
    weir_job          *job;
    struct weir__pool *pool;           /* a reference; NULL: taken by hand */
    int64_t            lease_ms;
    _Atomic int64_t    lease_until;    /* by the steady clock, and no later than the store's */
    int64_t            back_at;        /* taken ahead: when it goes back if it is not begun */
    atomic_bool        revoked;        /* no longer ours */
    atomic_bool        left;           /* the gate of the queue does not count it any more */
    bool               renewing;       /* a renewal is under way; guarded by q->holds.lock */
    bool               shut;           /* failed by weir_stop(); guarded by q->holds.lock */
    /* The outcome is noted once (ENDED), and reaches the store once the handler has let go of the
     * job (RETURNED): whoever sets the second of the two bits sends it. */
    _Atomic uint32_t   phase;
    weir_outcome       outcome;
    char              *text;           /* of the outcome; ours */
    size_t             len;
    char               note[WEIR_ERROR_MAX];   /* why weir_job_done() was refused, if it was */
    weir_ticket        ticket;         /* to send it with */
    weir_link          link;           /* in q->holds */
    struct weir__hold *queued;         /* in one of the pool's lists */
} weir__hold;

enum { WEIR__ENDED = 1, WEIR__RETURNED = 2 };

/* Tie a job that was just taken, and that the gate counts. NULL: out of memory; the job is as it
 * was. With a pool, its lease
 * is renewed by the timer until the hold is released. `asked_at` is when the take was submitted, by
 * the steady clock: the lease began then or later. */
weir__hold *weir__hold_create(weir_queue *q, weir_job *job, struct weir__pool *pool,
                              int64_t lease_ms, int64_t asked_at);

/* Before a job is begun. A process that was stopped for longer than a lease finds jobs in its hands
 * that somebody else has by now. True: as far as this process can tell, the lease lasts. */
bool weir__hold_lasts(weir__hold *h);
/* If it does not, the store decides: it renews the lease, or the job is no longer ours. Waits. */
bool weir__hold_confirm(weir__hold *h);

/* Release the hold and its job (weir_job_release() comes here). */
void weir__hold_release(weir__hold *h);

/* Note the outcome; text is copied. WEIR_ESTALE: there is one already. Sends it if the handler has
 * let go of the job. */
weir_code weir__hold_end(weir__hold *h, weir_outcome outcome, const char *text, size_t len);

/* Fill in h->ticket to send the noted outcome. */
void weir__hold_ticket(weir__hold *h);

/* This delivery of job `id` is no longer its worker's. */
void weir__holds_revoke(weir_queue *q, uint64_t id, uint32_t delivery);

/* Renew all leases of pools. Returns when to come again (INT64_MAX: no leases). */
int64_t weir__holds_renew(weir_queue *q);

#endif
