/* firing.h - what a schedule does when it is due, and when that is next. Pure functions: the
 * runtime finds schedules and the state of the last job, carries out the plan, and keeps the
 * schedule. */
#ifndef WEIR_CORE_FIRING_H
#define WEIR_CORE_FIRING_H

#include "core/cron.h"
#include "weir/schedule.h"

/* A firing that is this late was missed: no process was there to add its job. */
enum { WEIR_MISSED_MS = 60000 };

/* The expression and the dates to leave out are right. */
weir_code weir__schedule_parse(weir_cron *out, const weir_schedule *s, weir_error *err);

/* The first firing after that moment: not before start_at, not on a date to leave out. 0: none, or
 * it is after end_at. */
int64_t weir__schedule_after(const weir_schedule *s, const weir_cron *c, int64_t after_ms);

/* When it is due: next_at, and the jitter of its name. INT64_MAX: never. */
int64_t weir__schedule_due(const weir_schedule *s);

typedef struct weir_plan {
    weir_firing_kind    outcome;    /* WEIR_FIRING_DONE: add a job */
    int64_t             at;         /* the time that the expression names */
    uint64_t            turn;
    bool                cancel;     /* cancel the last job first */
} weir_plan;

/* A schedule is due at `now`; its last job is in this state (WEIR_STATE_ANY: no such job, or it is
 * gone). Moves next_at and turn on. */
weir_plan weir__schedule_decide(weir_schedule *s, const weir_cron *c, weir_state last, int64_t now);

/* Its times have changed: next_at is the first firing after `now`, and a turn of its own. */
void weir__schedule_restart(weir_schedule *s, const weir_cron *c, int64_t now);

/* It was done: last_at, last_job, fired, history. */
void weir__schedule_note(weir_schedule *s, weir_firing f);

/* Does the history have the firing that added this job, or may it have had it? */
bool weir__schedule_has_noted(const weir_schedule *s, weir_firing f);

#endif
