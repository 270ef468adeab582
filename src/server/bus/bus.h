/* bus.h - the event bus of a server, and the ways in for clients: the TCP bridge on a port of its
 * own and, at /eventbus, WebSockets. */
#ifndef WEIR_SERVER_BUS_H
#define WEIR_SERVER_BUS_H

#include "server/bus/bus_service.h"
#include "server/bus/job_events.h"
#include "server/bus/job_service.h"
#include "server/bus/permit.h"
#include "server/http/inner.h"
#include "weir/bus.h"

typedef struct srv_bus {
    srv_server   *server;
    weir_bus     *bus;
    srv_permits  *inbound, *outbound;
    srv_job_events  *events;
    srv_job_service *jobs;
    srv_workqueues  *workqueues;
    srv_workqueue_servers *workqueue_servers;
    srv_bus_service *service;
    srv_listener  listener;             /* of the TCP bridge */
} srv_bus;

/* Make the bus, start its work queues and, if opt.bus.listen is set, open its listener. On success
 * *out belongs to the caller. Errors: WEIR_EINVAL (address, a pattern; an address that is not
 * loopback without tokens), WEIR_EBUSY, WEIR_EIO, those of srv_workqueues_create(). */
weir_code srv_bus_create(srv_bus **out, srv_server *s, weir_error *err);
void srv_bus_destroy(srv_bus *b);       /* all connections are closed; NULL is fine */

/* tcp.c: a connection to the TCP bridge. As srv_conn_open(). */
void srv_bus_take_in(srv_thread *thread, int fd, const char *peer, srv_quota *quota);
/* tcp.c: a request to go on with the frames of the TCP bridge on its connection. */
void srv_bus_upgrade(srv_request *r);

#endif
