/* job_service.h - Vert.x Kue's JobService on the event bus: a request to SRV_JOB_SERVICE names an
 * action in its header "action" and has the arguments as its body. The actions of Vert.x Kue's
 * callback facade are there, too, and what a worker behind a bridge needs: take, renew, progress,
 * done, failed. docs/bus.md has the table.
 *
 * A message to vertx.kue.handler.workers.done.ADDRESS_ID or .done_fail.ADDRESS_ID ends the job with
 * this address, as in Vert.x Kue, through whichever server of the bus it was taken.
 *
 * A client that may send to these addresses may do all this to all jobs: the bus has no roles. */
#ifndef WEIR_SERVER_JOB_SERVICE_H
#define WEIR_SERVER_JOB_SERVICE_H

#include "weir/bus.h"
#include "weir/queue.h"

#define SRV_JOB_SERVICE "vertx.kue.service.job.internal"
#define SRV_JOB_ENDS "weir.ends."       /* and the name of a process; for servers alone */

enum { SRV_JOBS_TAKEN = 10 * 1000 };        /* addresses of taken jobs that are remembered */

typedef struct srv_job_service srv_job_service;

/* On success *out belongs to the caller. Errors: as weir_bus_consume(). */
weir_code srv_job_service_create(srv_job_service **out, weir_bus *bus, weir_queue *q,
                                 weir_error *err);
/* Waits for calls of the store. Before weir_bus_close(). NULL is fine. */
void srv_job_service_destroy(srv_job_service *s);

/* The name of an action in the audit log, "job.delete", and whether it is administrative; NULL: it
 * changes nothing. */
const char *srv_job_service_audit(const char *action, bool *admin);

#endif
