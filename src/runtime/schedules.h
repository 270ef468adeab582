/* schedules.h - firing schedules that are due. The timer calls this after a TICK that says so.
 *
 * However many processes do it at once, each firing adds one job: the add carries a token (the
 * schedule, the time that its expression names), and the schedule is moved on only if nobody has
 * changed it since it was read. A process that dies between the two leaves a schedule that is still
 * due; whoever fires it next repeats the add, which the store recognises. */
#ifndef WEIR_RUNTIME_SCHEDULES_H
#define WEIR_RUNTIME_SCHEDULES_H

#include "base/buf.h"
#include "core/cron.h"
#include "runtime/queue.h"
#include "weir/schedule.h"

/* Fire what is due. WEIR_OK: nothing is due any more, or others have fired it. */
weir_code weir__schedules_fire(weir_queue *q, weir_error *err);

/* A schedule that was read from the store. */
typedef struct weir_kept {
    weir_schedule s;
    weir_cron     cron;
    uint64_t      version;
    weir_error    err;              /* it cannot be read, or not be understood any more */
} weir_kept;

/* Read a row. Texts are in the row's record or in `arena`. */
void weir__schedule_load(const weir_schedule_row *row, weir_arena *arena, weir_kept *out);

/* The operation that puts the schedule; its record is in `record`. */
weir_op weir__schedule_op_put(const weir_schedule *s, uint64_t version, int64_t due_at,
                              weir_buf *record);

/* What a firing adds. The values of the job are in `values`. */
weir_code weir__schedule_spec(const weir_schedule *s, int64_t at, weir_buf *values, weir_spec *out,
                              weir_error *err);

#endif
