/* watch.h - for parts of this process that serve many addresses: consumers of all addresses with
 * one beginning, and functions that are called when an address gets consumers. */
#ifndef WEIR_BUS_WATCH_H
#define WEIR_BUS_WATCH_H

#include "weir/bus.h"

/* As weir_bus_consume(), but config->address is the beginning of addresses. If an address begins so
 * and has no consumer in any process, its messages go to this consumer: first in the sender's
 * process, then in other processes. Published messages do not. */
weir_code weir__bus_consume_prefix(weir_consumer **out, weir_bus *b,
                                   const weir_consumer_config *config, weir_error *err);

typedef struct weir_bus_watch weir_bus_watch;
struct weir_bus_watch {
    const char     *prefix;
    /* The first consumer of an address that begins with `prefix` has come to this process (on), or
     * its last one has gone. Called with the bus locked: must not block, and must not call it. */
    void          (*changed)(weir_bus_watch *w, const char *address, bool on);
    /* The same about the other processes together; it may say twice the same. NULL: not needed. */
    void          (*elsewhere)(weir_bus_watch *w, const char *address, bool on);
    weir_bus_watch *next;               /* the bus's own */
};

/* Watch, before the bus has any consumer. `w` must stay until weir_bus_close(). */
void weir__bus_watch(weir_bus *b, weir_bus_watch *w);

#endif
