/* job_notice.h - what Vert.x Kue publishes about one event of a job: addresses and bodies, in their
 * order. docs/bus.md has them. */
#ifndef WEIR_SERVER_JOB_NOTICE_H
#define WEIR_SERVER_JOB_NOTICE_H

#include "weir/queue.h"

typedef void job_publish_fn(void *ctx, const char *address, const char *body, size_t len);

/* Call publish() for each message about the event. `job`: as it was read a moment later, it is
 * shown as the event left it; NULL: it is gone, and the event says all that is known. Returns how
 * many messages have an address that is too long for the bus: publish() was not called for these.
 */
size_t job_notice_publish(const weir_event *event, const weir_job *job, job_publish_fn *publish,
                          void *ctx);

bool job_notice_fails(const weir_event *event);     /* it is about a failure of the job */
/* It is about a job that was removed because it is complete: the store has one event for both. */
bool job_notice_removes(const weir_event *event);

#endif
