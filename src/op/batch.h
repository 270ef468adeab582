/* batch.h - batches of operations as JSON: what the http store sends to POST /v1/batch, and what
 * comes back. The client uses the first half, the server the second.
 *
 *   {"caller":"5b0c...","number":7,"run":"9f31...","ops":[OP,...]}
 *   {"run":"9f31...","event":812,"answers":[ANSWER,...]}
 *
 * `caller` and `number` name the batch: the server repeats the answer when the last number of a
 * caller is repeated. A batch of number 0 may be done twice. A batch with a `run` that is not the
 * server's is refused untouched: the answer, of status 409, names the right one and has an empty
 * list. `event` is the number of the last event that the server had sent when the batch was done.
 *
 * An ANSWER is {"error":{"code":"ESTALE","message":"..."}}, or what the operation answers. Lengths
 * of time are milliseconds. JOB is what weir_job_json() writes, SPEC what POST /v1/jobs takes.
 * Members with a default may be left out; others than these are refused.
 *
 * The tables `request` and `answer` in op_NAME.c have the members of an operation and its answer.
 * Text is UTF-8: bytes of errors and log lines that are not arrive as U+FFFD. */
#ifndef WEIR_OP_BATCH_H
#define WEIR_OP_BATCH_H

#include "op/op.h"

enum {
    WEIR_BATCH_CALLER    = 32,                  /* characters of a caller */
    WEIR_BATCH_RUN       = 32,                  /* ... of a run, at most */
    WEIR_BATCH_MAX_OPS   = 1024,                /* operations of a batch */
    WEIR_BATCH_MAX_TAKES = 64,                  /* those among them that take jobs */
    WEIR_BATCH_OTHER_RUN = 409,                 /* status: not done, it is for another run */
    WEIR_BATCH_DEPTH     = WEIR_MAX_DEPTH + 8   /* nesting of JSON: what is around a job's data */
};

/* Does it take jobs? */
bool weir__batch_takes(const weir_op *op);

/* ---- the side that asks ---- */

/* A batch: its head, each of its operations, its end. */
void weir__batch_begin(weir_buf *out, const char *caller, uint64_t number, const char *run);
void weir__batch_add(weir_buf *out, const weir_op *op);
void weir__batch_end(weir_buf *out);

typedef struct weir_batch_head {
    char     run[WEIR_BATCH_RUN + 1];
    uint64_t event;
} weir_batch_head;

/* Fill in the outputs and the errors of n operations from the answer. On failure it is no answer
 * to them, and they are as they were. */
weir_code weir__batch_read_answers(const char *text, size_t len, weir_batch_head *head,
                                   weir_op **ops, size_t n, weir_error *err);

/* An answer that is {"error":{"code","message"}} alone; code WEIR_OK: an unknown one. False: it
 * is something else. */
bool weir__batch_error(const char *text, size_t len, weir_error *out);

/* ---- the side that answers ---- */

typedef struct weir_batch {
    const char *caller, *run;               /* NULL: it has none */
    uint64_t    number;
    weir_op    *op;
    size_t      n;
} weir_batch;

/* Read a batch. Memory for its operations, inputs and outputs, is from `in`. An error is in in->err
 * and names the member: "ops[3].jobs[0].type: ...". */
weir_code weir__batch_read(weir_reader *in, const char *text, size_t len, weir_batch *out);

/* The answer: its head, one for each operation, its end. */
void weir__batch_answer_begin(weir_buf *out, const weir_batch_head *head);
void weir__batch_answer(weir_buf *out, const weir_op *op);
/* The head's event was not known when it was written: this is it. */
void weir__batch_answer_event(weir_buf *out, uint64_t event);
void weir__batch_answer_end(weir_buf *out);

#endif
