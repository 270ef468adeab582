/* bus_call.h - ask the server that has the store open about its bus (the service `weir.bus`,
 * docs/bus.md). */
#ifndef WEIR_CLI_BUS_CALL_H
#define WEIR_CLI_BUS_CALL_H

#include <jansson.h>

#include "cli/cli.h"

/* Call an action and wait. `args` is taken over; NULL: {}. 0, and *out is the caller's:
 * json_decref(). Otherwise the exit status, and the error was said. */
int cli_bus_call(cli *c, const char *action, json_t *args, json_t **out);

#endif
