/* schedule_call.h - a call about a schedule, as a chain of steps: a step looks at the answer of the
 * last operation and makes the next one. Plain calls run the steps on the caller's thread, async
 * calls on the callback thread. Reading a schedule (time zones are files) is too slow for the
 * thread that leads the store. For schedule_calls.c and schedule_moves.c. */
#ifndef WEIR_RUNTIME_SCHEDULE_CALL_H
#define WEIR_RUNTIME_SCHEDULE_CALL_H

#include "op/schedule.h"
#include "runtime/future.h"
#include "runtime/ops.h"
#include "runtime/schedules.h"

typedef struct schedule_call schedule_call;

/* A step, after the operation in `ticket` was answered. True: the next one is there. False: the
 * call is over, with the outcome `err`. */
typedef bool schedule_step(schedule_call *c);

struct schedule_call {
    weir_ticket     ticket;
    schedule_step  *next;           /* after the operation under way */
    schedule_step  *then;           /* when the schedule was read into `k` */
    weir_queue     *q;
    weir_error      err;
    weir_arena      arena;          /* lives until the call is over */
    const char     *name;

    weir_arena      read;           /* texts of k.s */
    weir_kept       k;
    bool            known;          /* there is a schedule of this name */
    weir_buf        record;

    weir_schedule   given;          /* of a put ... */
    weir_cron       cron;
    bool            paused;         /* of a pause ... */
    int64_t         from_at, to_at; /* of a backfill: what it asks for, ... */
    weir_token      token;          /* ... so that the same is not added again */
    char            key[WEIR_MAX_TOKEN + 1];
    int64_t        *at;             /* the firings whose jobs are added by hand */
    weir_added     *added;
    size_t          n;

    weir_schedules *list;
    weir_schedules **list_out;      /* of the caller; NULL: not needed */
    uint64_t       *id_out;
    size_t         *n_out;
    bool            existed, *existed_out;      /* of an import */

    weir_future    *future;         /* of an async call */
    weir_post       post;
};

/* ---- for steps ---- */

/* The call is over, with this outcome. */
bool weir__call_over(schedule_call *c, const weir_error *err);
bool weir__call_fail(schedule_call *c, weir_code code, const char *what);
bool weir__call_missing(schedule_call *c);           /* no such schedule */
/* Run the operation, then `next`. */
bool weir__call_go_on(schedule_call *c, weir_op op, schedule_step *next);
/* Read the schedule of this name into c->k, then c->then. The name must be there. */
bool weir__call_read_named(schedule_call *c);
bool weir__call_read(schedule_call *c);
/* Keep the schedule, unless it was changed since it was read: then it is read again. */
bool weir__call_put(schedule_call *c, const weir_schedule *s);
/* A schedule of a name that was free: a series of its own. */
bool weir__call_new_series(schedule_call *c, weir_schedule *s);
/* The job that a firing at `at` adds; the values are in c->arena. */
weir_code weir__call_spec(schedule_call *c, int64_t at, weir_spec *out);

/* ---- running them ---- */

weir_code weir__call_steps(weir_queue *q, schedule_call *c, schedule_step *first,
                           weir_error *err);
weir_code weir__call_steps_async(weir_queue *q, schedule_call *what, schedule_step *first,
                                 weir_future **out, weir_error *err);

/* The schedules of these rows, as the caller gets them; NULL: no memory. */
weir_schedules *weir__schedules_make(const weir_schedule_rows *rows, bool more);

#endif
