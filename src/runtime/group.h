/* group.h - tickets that run together under one future, which ends with the last of them. */
#ifndef WEIR_RUNTIME_GROUP_H
#define WEIR_RUNTIME_GROUP_H

#include "runtime/future.h"

typedef struct weir_group_one {
    weir_ticket        ticket;
    struct weir_group *group;
} weir_group_one;

typedef struct weir_group {
    weir_queue     *q;
    weir_future    *future;         /* ends when no ticket is left */
    void          (*fill)(void *ctx, bool wanted);      /* of weir__future_end() */
    void           *ctx;
    _Atomic size_t  left;           /* submitted, and not answered yet */
    size_t          n;
    weir_group_one *one;            /* n of them */
} weir_group;

/* A group of n tickets in the bytes of a future, or in memory that outlives it. The caller sets
 * one[i].ticket.op. */
void weir__group_init(weir_group *g, weir_queue *q, weir_future *f, weir_group_one *one, size_t n);

/* Submit the tickets whose operation has no error yet. Those of a lane go to the store together and
 * in their order. When all are answered, or none was submitted, the future ends; *g may then be
 * gone before this function returns. */
void weir__group_start(weir_group *g, void (*fill)(void *ctx, bool wanted), void *ctx);

#endif
