/* schedules.h - firing schedules that are due. The timer calls this after a TICK that says so.
 *
 * However many processes do it at once, each firing adds one job: the add carries a token (the
 * schedule, the time that its expression names), and the schedule is moved on only if nobody has
 * changed it since it was read. A process that dies between the two leaves a schedule that is still
 * due; whoever fires it next repeats the add, which the store recognises. */
#ifndef WEIR_RUNTIME_SCHEDULES_H
#define WEIR_RUNTIME_SCHEDULES_H

#include "runtime/queue.h"

/* Fire what is due. WEIR_OK: nothing is due any more, or others have fired it. */
weir_code weir__schedules_fire(weir_queue *q, weir_error *err);

#endif
