/* job_events.h - what happens to jobs, published on the event bus at Vert.x Kue's addresses:
 *
 *     vertx.kue.handler.job.EVENT.ADDRESS_ID.TYPE     for one job
 *     vertx.kue.handler.workers.job_EVENT             for all jobs
 *
 * ADDRESS_ID is the job's value "address_id", or its id if it has none. docs/bus.md has the events
 * and their bodies. Every server receives every event of its store, and publishes it to the
 * consumers of its own process. One of the servers, the leader (bus/leader.h), publishes it to
 * processes that have the bus open and no server. So each consumer receives an event once. While no
 * such address has a consumer, an event costs nothing before the first, and one look at a number
 * afterwards. */
#ifndef WEIR_SERVER_JOB_EVENTS_H
#define WEIR_SERVER_JOB_EVENTS_H

#include "weir/bus.h"
#include "weir/queue.h"

#define SRV_JOB_EVENTS "vertx.kue.handler."      /* their addresses begin so */

enum {
    JOB_EVENTS_WAITING = 20 * 1000,         /* events to publish; more are lost, and reported */
    JOB_EVENTS_KEPT    = 10 * 1000,         /* jobs remembered, so that the event of a job that was
                                               removed can have it ... */
    JOB_EVENTS_KEPT_BYTES = 32 * 1024 * 1024    /* ... and their bytes */
};

typedef struct srv_job_events srv_job_events;

/* Before the bus has a consumer. *out belongs to the caller, also after an error:
 * srv_job_events_stop(), then srv_job_events_destroy(). Errors: WEIR_ENOMEM. */
weir_code srv_job_events_create(srv_job_events **out, weir_bus *bus, weir_queue *q,
                                weir_error *err);
void srv_job_events_stop(srv_job_events *e);        /* before weir_bus_close(); NULL is fine */
void srv_job_events_destroy(srv_job_events *e);     /* after it; NULL is fine */

typedef struct srv_job_events_stats {
    uint64_t lost;              /* events that were not published: too many waited */
    uint64_t too_long;          /* messages whose address is longer than WEIR_MAX_BUS_ADDRESS */
} srv_job_events_stats;
void srv_job_events_get(srv_job_events *e, srv_job_events_stats *out);      /* any thread */

#endif
