/* workqueue_servers.h - the work queues of all servers of the bus. Each server has work queues of
 * its own (workqueues.h); whoever asks one of the servers is answered for all of them:
 *
 *     list, get    a work queue has the numbers of the server that serves it
 *     put          starts it on this server, unless another one runs it with other settings
 *     remove       stops it on every server that runs it
 *
 * A server answers the others for itself at SRV_WORKQUEUE_SERVERS and the name of its process
 * (bus_service.h). A thread of its own waits for these answers. */
#ifndef WEIR_SERVER_WORKQUEUE_SERVERS_H
#define WEIR_SERVER_WORKQUEUE_SERVERS_H

#include "server/bus/workqueues.h"

#define SRV_WORKQUEUE_SERVERS "weir.servers."       /* for servers alone */

typedef struct srv_workqueue_servers srv_workqueue_servers;

/* `bus` and `own` must stay until srv_workqueue_servers_destroy(). On success *out belongs to the
 * caller. Error: WEIR_ENOMEM. */
weir_code srv_workqueue_servers_create(srv_workqueue_servers **out, weir_bus *bus,
                                       srv_workqueues *own, weir_error *err);
/* Waits for what is asked. Before srv_workqueues_destroy(); NULL is fine. */
void srv_workqueue_servers_destroy(srv_workqueue_servers *s);

/* As srv_workqueues_post(), for all servers. Errors, besides: WEIR_EUNAVAIL (put, remove: one of
 * them does not answer). */
void srv_workqueue_servers_post(srv_workqueue_servers *s, srv_workqueue_ask *ask);

/* ---- rows ---- */

/* Append the work queue at `address` (JSON), as its server shows it, with the number of servers
 * that run it. `own`: this server's row (empty: none). False: none has it. */
bool srv_workqueue_merge(weir_buf *out, weir_json_piece address, weir_json_piece own,
                         const weir_buf *others);
/* Append to a list the rows of the others whose addresses are not in `own`, a list of rows. */
void srv_workqueue_merge_rest(weir_buf *out, weir_json_piece own, const weir_buf *others);
/* The member of a row; empty: it is missing. */
weir_json_piece srv_workqueue_member(weir_json_piece row, const char *name);

#endif
