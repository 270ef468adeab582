/* bus_service.h - the bus of a server asked about itself: a service at SRV_BUS_SERVICE, for
 * programs that reach the server by its bus alone.
 *
 *     action            body                               reply
 *     addresses         {}                                 as GET /v1/bus
 *     workQueues        {}                                 as GET /v1/workqueues
 *     getWorkQueue      {"address":A}                      as GET /v1/workqueues/{address}
 *     putWorkQueue      {"address":A, settings}            as PUT /v1/workqueues/{address}
 *     removeWorkQueue   {"address":A}                      null
 *
 * The code of a failure is the HTTP status of the same route. Among the clients of bridges, only
 * admins may use the address; processes that have opened the store may always. */
#ifndef WEIR_SERVER_BUS_SERVICE_H
#define WEIR_SERVER_BUS_SERVICE_H

#include "server/bus/workqueue_servers.h"

#define SRV_BUS_SERVICE "weir.bus"

typedef struct srv_bus_service srv_bus_service;

/* `bus`, `own` and `all` must stay until srv_workqueues_destroy(). On success *out belongs to the
 * caller. Errors: as weir_bus_consume(). */
weir_code srv_bus_service_create(srv_bus_service **out, weir_bus *bus, srv_workqueues *own,
                                 srv_workqueue_servers *all, weir_error *err);
/* No call begins any more; those under way end with srv_workqueues_destroy(). NULL is fine. */
void srv_bus_service_destroy(srv_bus_service *s);

/* Append {"addresses":[...]}. Error: WEIR_ENOMEM. */
weir_code srv_bus_addresses(weir_bus *bus, weir_buf *out, weir_error *err);

/* The name of an action in the audit log, "workqueue.add"; NULL: it changes nothing. */
const char *srv_bus_service_audit(const char *action);

#endif
