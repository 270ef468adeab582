/* demo_flow.h - a queue with something going on: jobs of several types that never end, so that
 * there is something to see (`weir serve --demo`). */
#ifndef WEIR_CLI_DEMO_FLOW_H
#define WEIR_CLI_DEMO_FLOW_H

#include "weir/weir.h"

typedef struct demo_flow demo_flow;

/* Start to add jobs, some a second, and to do them. Finished ones are kept for a while only. *out
 * belongs to the caller: demo_flow_stop(). */
weir_code demo_flow_start(demo_flow **out, weir_queue *q, weir_error *err);

/* Stop adding and working, and release. NULL is fine. */
void demo_flow_stop(demo_flow *f);

#endif
