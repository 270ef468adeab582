/* ops.h - several operations under one future. */
#ifndef WEIR_RUNTIME_OPS_H
#define WEIR_RUNTIME_OPS_H

#include "op/op.h"
#include "weir/queue.h"

/* Would the queue run this operation? Fills in defaults. */
weir_code weir__ops_check(weir_queue *q, weir_op *op, weir_error *err);

/* Check n operations and run the valid ones; an operation whose error is set already is left out.
 * The operations, what they borrow and what they fill belong to the caller and must stay until the
 * future is done, even if the caller releases the future before. Then each operation has its error
 * or its outputs: weir__op_free(). Operations of one lane run in their order.
 * On failure none of them runs, and *f is NULL. */
weir_code weir__ops_run_async(weir_queue *q, weir_op *ops, size_t n, weir_future **f,
                              weir_error *err);

#endif
