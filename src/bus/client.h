/* client.h - a bus through a weir server: see client.c. */
#ifndef WEIR_BUS_CLIENT_H
#define WEIR_BUS_CLIENT_H

#include "bus/carrier.h"
#include "bus/inner.h"

/* Join the bus, which has no consumers yet, to the bus of a server: the carrier brings messages of
 * its bridge. weir_bus_close() leaves. On failure the bus is as before. */
weir_code weir__client_join(weir_bus *b, const weir_carrier *carrier, weir_error *err);

#endif
