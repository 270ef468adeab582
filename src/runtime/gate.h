/* gate.h - the gate of a queue (core/gate.h): all jobs that this process takes from it, for pools
 * or by hand, pass through it. Jobs for workers elsewhere (weir/remote.h) do not. */
#ifndef WEIR_RUNTIME_GATE_H
#define WEIR_RUNTIME_GATE_H

#include "core/gate.h"
#include "runtime/queue.h"

/* For a pool, whose note `*knows` is guarded by the gate's lock. */
weir_pass weir__queue_enter(weir_queue *q, const bool *knows, bool only_alone);
weir_pass weir__queue_enter_by_hand(weir_queue *q);

/* Does a suspect wait that the pool was refused, as far as is known now? */
bool weir__queue_knows(weir_queue *q, const bool *knows);

/* When the gate closes or opens by itself, in ms from now; INT64_MAX: it does not. */
int64_t weir__queue_closed_ms(weir_queue *q);

/* The answer to a take is there; `take` is NULL if it failed. False: give its job back. */
bool weir__queue_answered(weir_queue *q, weir_pass pass, const weir_op_take *take, bool *knows);

/* A job has ended. */
void weir__queue_left(weir_queue *q, const weir_job *job);

/* The pool takes no more. */
void weir__queue_forget(weir_queue *q, bool *knows);

#endif
