/* ring.h - numbered messages that many readers read, each at its own pace.
 *
 * The writer numbers the messages 1, 2, 3 ... and the ring keeps the last ones, within a count and
 * a number of bytes. A reader asks for the messages after the number that it has: so it costs no
 * memory, and can resume after its connection broke. When the next message that it needs is not
 * kept any more, it has missed some, and the ring says so.
 *
 * The ring has no lock: its owner guards it. Messages are shared by reference and never change, so
 * a reader may use those it got without the lock. */
#ifndef WEIR_BASE_RING_H
#define WEIR_BASE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* First member of a message, which is one block of malloc(). */
typedef struct weir_ring_entry {
    _Atomic uint32_t refs;
    uint64_t         number;        /* set by weir__ring_push() */
    size_t           size;          /* bytes that it counts for */
} weir_ring_entry;

/* {0} is a ring that was not begun: it keeps nothing. */
typedef struct weir_ring {
    weir_ring_entry **slot;         /* number n is at n % count */
    size_t            count, bytes;             /* limits */
    size_t            used;                     /* bytes */
    uint64_t          first, last;              /* numbers that are kept; first == last + 1: none */
} weir_ring;

/* Keep up to `count` messages and `bytes` bytes, but always one message, from now on. Numbers go on
 * where they stopped. False: out of memory. */
bool weir__ring_begin(weir_ring *r, size_t count, size_t bytes);

/* Drop all messages and release the memory. A number is left out, so that a reader that returns
 * after weir__ring_begin() detects that it missed something. */
void weir__ring_end(weir_ring *r);

/* Put in a message with one reference, which the ring takes over; its number is last + 1. */
void weir__ring_push(weir_ring *r, weir_ring_entry *e);

/* A message could not be made: drop all, and leave a number out. */
void weir__ring_gap(weir_ring *r);

/* The messages after `number`: at most `max`, at most `bytes` together but at least one. Returns
 * how many, each with a reference for the caller: weir__ring_unref(). *gone: the message after
 * `number` is not kept any more, and none was given. */
size_t weir__ring_read(const weir_ring *r, uint64_t number, weir_ring_entry **out, size_t max,
                       size_t bytes, bool *gone);

void weir__ring_unref(weir_ring_entry *e);

#endif
