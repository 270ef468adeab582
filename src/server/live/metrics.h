/* metrics.h - the numbers of /metrics that are not from the store or counters.h: requests, and the
 * times that jobs wait and run, in all and recently, from the events of the queue. */
#ifndef WEIR_SERVER_METRICS_H
#define WEIR_SERVER_METRICS_H

#include "base/buf.h"
#include "server/http/route.h"
#include "server/live/trends.h"
#include "weir/queue.h"

typedef struct srv_metrics srv_metrics;

enum {
    SRV_METRIC_TYPES = 200,         /* types with a line of their own; the rest is type="" */
    SRV_METRIC_JOBS  = 100000       /* jobs that are followed from one event to the next */
};

/* `q` must outlive it. On success *out belongs to the caller: srv_metrics_destroy(). */
weir_code srv_metrics_create(srv_metrics **out, weir_queue *q, weir_error *err);
void srv_metrics_destroy(srv_metrics *m);           /* NULL is fine; not on the callback thread */

/* A request was answered; `route` NULL: there was none for it. Any thread. */
void srv_metrics_answered(srv_metrics *m, const srv_route *route, int status);

/* Write what was counted, in the text format of Prometheus. Any thread. */
void srv_metrics_write(srv_metrics *m, weir_buf *out);

/* Add n seconds, from this second on, to `to`: srv_chart_add(). Any thread. */
void srv_metrics_seconds(srv_metrics *m, int64_t first, int64_t n, weir_trend *to);

/* The trends, which it owns. Any thread. */
srv_trends *srv_metrics_trends(srv_metrics *m);

/* ---- for others who write metrics ---- */

/* The two lines before a family; `kind` is "gauge", "counter" or "histogram". */
void srv_metric_head(weir_buf *out, const char *name, const char *kind, const char *about);
/* {label="value"}, escaped; the value may be any text. */
void srv_metric_label(weir_buf *out, const char *label, const char *value);
/* A family of one sample without a label. */
void srv_metric_one(weir_buf *out, const char *name, const char *kind, const char *about,
                    uint64_t value);
/* 1.234 seconds of 1234 milliseconds. */
void srv_metric_seconds(weir_buf *out, int64_t ms);

#endif
