/* chart.h - the last minutes and hours in numbers: how many jobs were queued, completed and
 * failed, and how long they waited and ran, second by second and minute by minute. In memory: what
 * a chart shows of the recent past, not a record. Not thread-safe; metrics.c guards it. */
#ifndef WEIR_SERVER_CHART_H
#define WEIR_SERVER_CHART_H

#include "base/buf.h"
#include "weir/event.h"

enum {
    SRV_HISTORY_SECONDS = 900,      /* slots of a second */
    SRV_HISTORY_MINUTES = 1440      /* slots of a minute */
};

typedef struct srv_chart srv_chart;

srv_chart *srv_chart_create(void);              /* NULL: out of memory */
void srv_chart_destroy(srv_chart *h);           /* NULL is fine */

/* An event; how long the job waited (at its start) or ran (at its end), -1: that is not known. */
void srv_chart_note(srv_chart *h, const weir_event *e, int64_t ms);

/* The last n slots up to now, the oldest first, as JSON: {"step":1000,"from":...,"queued":[...],
 * "completed":[...],"failed":[...],"wait_p50":[...],"wait_p95":[...],"run_p50":[...],
 * "run_p95":[...]}; times in milliseconds, null where nothing was measured. */
void srv_chart_json(const srv_chart *h, weir_buf *out, bool minutes, size_t n, int64_t now);

#endif
