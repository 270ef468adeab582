/* vanish.h - report that an address has lost its last consumer, in any process.
 *
 * A watch has the addresses that it cares for. When one of them vanishes, the function runs by the
 * watch's mailbox: behind earlier messages, and before later ones. On a bus through a server
 * (bus/client.h) nothing is known about other processes, and fn is never called. */
#ifndef WEIR_BUS_VANISH_H
#define WEIR_BUS_VANISH_H

#include "bus/inner.h"

/* The address has vanished. `process`: the process that consumed it is gone without a BYE, so it
 * may be cut off and return; "": the consumer was closed. */
typedef void vanish_fn(void *ctx, const char *address, const char *process);

typedef struct vanish_watch {
    weir_link     link;                 /* of bus->vanishing */
    weir_names    cares;                /* of addresses; guarded by the lock of the bus */
    weir_mailbox *mailbox;
    vanish_fn    *fn;
    void         *ctx;
} vanish_watch;

/* `w` has mailbox, fn and ctx. Nothing is posted any more after stop(), which comes before the
 * mailbox is destroyed. */
void weir__vanish_start(weir_bus *b, vanish_watch *w);
void weir__vanish_stop(weir_bus *b, vanish_watch *w);
/* Care for the address once more, once less. False: out of memory. */
bool weir__vanish_add(weir_bus *b, vanish_watch *w, const char *address);
void weir__vanish_drop(weir_bus *b, vanish_watch *w, const char *address);

/* For bus.c: no process has a consumer of the address any more. The bus is locked. */
void weir__vanish_post(weir_bus *b, const char *address, const char *process,
                       weir_mailbox **wakes);

#endif
