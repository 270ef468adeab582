/* chart.h - what a chart shows: the last minutes second by second, in memory; and records of any
 * time as curves in JSON. Not thread-safe; metrics.c guards the seconds. */
#ifndef WEIR_SERVER_CHART_H
#define WEIR_SERVER_CHART_H

#include "base/buf.h"
#include "core/trend.h"
#include "weir/event.h"

enum { SRV_HISTORY_SECONDS = 900 };     /* slots of a second */

/* Count an event. `ms`: how long the job waited (at its start) or ran (at its end), -1: that is not
 * known. */
void srv_chart_count(weir_trend *t, const weir_event *e, int64_t ms);

/* ---- seconds ---- */

typedef struct srv_chart srv_chart;

srv_chart *srv_chart_create(void);              /* NULL: out of memory */
void srv_chart_destroy(srv_chart *h);           /* NULL is fine */
void srv_chart_note(srv_chart *h, const weir_event *e, int64_t ms);

/* Add the second to what `to` has of the seconds before it. */
void srv_chart_add(const srv_chart *h, int64_t second, weir_trend *to);

/* ---- as JSON ---- */

/* {"step":STEP_MS,"from":FROM,"added":[...], ... "run_p99":[...]}: a number of each for the n
 * records; times in milliseconds; null where nothing was measured. */
void srv_chart_json(weir_buf *out, const weir_trend *records, size_t n, int64_t step_ms,
                    int64_t from);

#endif
