/* life.h - the parts of a transition that job.c and job_update.c share. Private to both. */
#ifndef WEIR_CORE_LIFE_H
#define WEIR_CORE_LIFE_H

#include "core/history.h"
#include "core/job.h"

/* A transition of `j` begins: *e is empty. */
void weir__life_begin(const weir_job *j, weir_effects *e);

/* The job gets this state. */
void weir__life_enter(weir_job *j, weir_state state, int64_t now);

/* A delayed job waits no longer. */
void weir__life_promote(weir_job *j, int64_t now);

/* The history entry of what `was` and is over now. */
weir_history_entry weir__life_entry(const weir_job *was, const weir_job *is, weir_history_kind kind,
                                    int64_t now);
void      weir__life_remember(weir_job *j, const weir_history_entry *p, weir_effects *e);

/* The job has the error `text`, and its log the line "error | TEXT". */
void weir__life_error(weir_job *j, const char *text, int64_t now, weir_effects *e);

void weir__life_event(weir_effects *e, weir_event_kind kind);

/* The transition is over: `j` is as it will be kept. */
void weir__life_end(const weir_job *j, weir_effects *e);

#endif
