/* trends.h - trends of the queue and its types, counted from its events and kept in the store
 * (TREND_PUT), so that they outlive the server. Any thread.
 *
 * The counts of the last minutes are in memory. A thread writes a minute when it is over, with the
 * hour that it belongs to, and at the end what there is. It sleeps as long as nothing happens and
 * no job waits. At the start it reads what an earlier server has written of this hour, and goes on
 * from there. Several servers on one store write what each of them has seen, and the store keeps
 * the higher numbers. Events while no server runs are not counted. */
#ifndef WEIR_SERVER_TRENDS_H
#define WEIR_SERVER_TRENDS_H

#include "core/trend.h"
#include "weir/queue.h"

typedef struct srv_trends srv_trends;

enum { SRV_TREND_LATE_MS = 2000 };      /* a minute is written so long after its end */

/* `q` must outlive it. On success *out belongs to the caller: srv_trends_destroy(), which writes;
 * NULL is fine. */
weir_code srv_trends_create(srv_trends **out, weir_queue *q, weir_error *err);
void srv_trends_destroy(srv_trends *t);

/* Count an event: see srv_chart_count(). */
void srv_trends_note(srv_trends *t, const weir_event *e, int64_t ms);

/* The counts in memory of a slot of a type ("": the queue), which the store may not have yet: join
 * them. */
void srv_trends_join(srv_trends *t, const char *type, weir_trend_step step, int64_t slot,
                     weir_trend *to);

#endif
