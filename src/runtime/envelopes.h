/* envelopes.h - a queue as the way to the other processes of its store (store/envelope.h). */
#ifndef WEIR_RUNTIME_ENVELOPES_H
#define WEIR_RUNTIME_ENVELOPES_H

#include "store/envelope.h"
#include "weir/queue.h"

/* Can other processes have this store open? Must members give signs of life? Are envelopes messages
 * of a server's bridge? See weir_store_ops. */
bool weir__queue_shared(const weir_queue *q);
bool weir__queue_silent_ends(const weir_queue *q);
bool weir__queue_bridged(const weir_queue *q);

/* The calls of weir_store_ops. The queue must stay open until weir__queue_leave() has returned.
 * WEIR_EBUSY: it has a member. */
weir_code weir__queue_join(weir_queue *q, const weir_member *m, weir_error *err);
void      weir__queue_leave(weir_queue *q);
weir_code weir__queue_post(weir_queue *q, const weir_envelope *e, weir_error *err);

#endif
