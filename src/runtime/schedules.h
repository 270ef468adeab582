/* schedules.h - schedules between the store, which keeps them as texts, and their users: the calls
 * of weir/schedule.h (schedule_calls.c) and the thread that fires them (firer.c). */
#ifndef WEIR_RUNTIME_SCHEDULES_H
#define WEIR_RUNTIME_SCHEDULES_H

#include "base/buf.h"
#include "core/cron.h"
#include "runtime/queue.h"
#include "weir/schedule.h"

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

/* The token with which the firing of this turn is added. Its key is in `key`. */
weir_token weir__schedule_token(const weir_schedule *s, uint64_t turn,
                                char key[WEIR_MAX_TOKEN + 1]);

#endif
