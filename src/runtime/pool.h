/* pool.h - worker pools: threads that take jobs and call a handler. */
#ifndef WEIR_RUNTIME_POOL_H
#define WEIR_RUNTIME_POOL_H

#include "runtime/delivery.h"

/* n jobs of this type wait now (type "*" or NULL: it is not known how many of which). */
void weir__pools_hint(weir_queue *q, const char *type, uint32_t n);

/* Make holds of all jobs that were fetched. */
void weir__pools_unpack(weir_queue *q);

/* Give back what was taken ahead and has waited too long, and send outcomes that no thread had the
 * time to send again. Returns the time of the next call (INT64_MAX: never). */
int64_t weir__pools_tend(weir_queue *q);

void weir__pool_ref(struct weir_pool *p);
void weir__pool_unref(struct weir_pool *p);      /* NULL is fine */

/* A handler has given this outcome. */
void weir__pool_count(struct weir_pool *p, weir_outcome outcome);

/* The outcome of h is known and its handler has let go of it: send it to the store. */
void weir__pool_send(weir__delivery *h);
/* Hand its outcome over; nobody waits for the answer. */
void weir__pool_submit(weir__delivery *h);

#endif
