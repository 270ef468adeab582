/* envelopes.c - see envelopes.h. */
#include "runtime/envelopes.h"

#include "runtime/queue.h"

bool weir__queue_shared(const weir_queue *q)
{
    return q->store->ops->join;
}

bool weir__queue_silent_ends(const weir_queue *q)
{
    return q->store->ops->silent_ends;
}

bool weir__queue_bridged(const weir_queue *q)
{
    return q->store->ops->bridged;
}

weir_code weir__queue_join(weir_queue *q, const weir_member *m, weir_error *err)
{
    if (atomic_exchange(&q->joined, true))
        return weir_fail(err, WEIR_EBUSY, "this queue has an open event bus; close that one first, "
                         "or use it");
    weir__queue_want(q, 0);                     /* this process stays */
    weir_code rc = q->store->ops->join(q->store, m, err);
    if (rc)
        atomic_store(&q->joined, false);
    return rc;
}

void weir__queue_leave(weir_queue *q)
{
    q->store->ops->leave(q->store);
    atomic_store(&q->joined, false);
}

weir_code weir__queue_post(weir_queue *q, const weir_envelope *e, weir_error *err)
{
    return q->store->ops->post(q->store, e, err);
}
