/* process.h - the names of the processes of a bus, for parts of the server that ask one by one. */
#ifndef WEIR_BUS_PROCESS_H
#define WEIR_BUS_PROCESS_H

#include "bus/transport.h"

/* The name of this process on the bus. NULL: processes have no names here, or there is only one. */
const char *weir__bus_process(const weir_bus *b);
/* Call fn for each other process that consumes the address; it must not call the bus. */
void weir__bus_processes(weir_bus *b, const char *address, weir_process_fn *fn, void *ctx);
/* As weir_bus_publish(), but only to other processes that do not consume `unless`. */
weir_code weir__bus_publish_elsewhere(weir_bus *b, const char *address, const weir_content *c,
                                      const char *unless, weir_error *err);

#endif
