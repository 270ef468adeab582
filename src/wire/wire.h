/* wire.h - operations as JSON: what the http store sends to POST /v1/batch, and what comes back.
 * Both ends use what is here, one half each.
 *
 *   {"caller":"5b0c...","number":7,"run":"9f31...","ops":[OP,...]}
 *   {"run":"9f31...","event":812,"answers":[ANSWER,...]}
 *
 * `caller` and `number` name the batch: the server gives the answer again when the last number of a
 * caller comes again. Number 0 is one that may be done twice. A batch with a `run` that is not the
 * server's is refused untouched: the answer, of status 409, names the right one and has an empty
 * list. `event` is the number of the last event that the server had told when the batch was done.
 *
 * An ANSWER is {"error":{"code":"ESTALE","message":"..."}}, or what the operation answers. Lengths
 * of time are milliseconds. JOB is what weir_job_json() writes, SPEC what POST /v1/jobs takes.
 * Members with a default may be left out; others than these are refused.
 *
 *   op         members                                            answer
 *   add        jobs [SPEC], once {key, number, digest}            durability, jobs [{id,state,
 *                                                                 existed}]
 *   take       types, n, lease, worker                            jobs [JOB]
 *   finish     id, delivery, result | error | release,            state (none: it is gone),
 *              next {types, n, lease, worker}                     jobs [JOB]
 *   renew      jobs [{id, delivery, lease}]                       codes ["OK"]
 *   progress   id, delivery, percent, data                        -
 *   log        id, delivery, text                                 -
 *   tick       limit                                              changed, next_at
 *   update     id, from [state], priority, delay, run_at, data,   old, new
 *              values, delivery, state
 *   remove     id                                                 -
 *   configure  type, paused, settings                             -
 *   import     jobs [{job JOB, log [{n,at,text}], new_id}]        jobs [{id, state, existed,
 *                                                                 id_taken, error}]
 *   get        id                                                 job JOB
 *   list       state, type, search, desc, ids, after {rank,id},   jobs [JOB] | ids [id],
 *              limit                                              next {rank,id}
 *   logs       id, after, limit                                   lines [{n,at,text}]
 *   stats      -                                                  last_id, all TYPE, types [TYPE]
 *   check      mend                                               lines [text], mended, jobs
 *
 * Text is UTF-8: bytes of errors and log lines that are not arrive as U+FFFD. */
#ifndef WEIR_WIRE_WIRE_H
#define WEIR_WIRE_WIRE_H

#include "core/fields.h"
#include "store/store.h"

enum {
    WIRE_CALLER    = 32,                    /* characters of a caller */
    WIRE_RUN       = 32,                    /* ... of a run, at most */
    WIRE_MAX_OPS   = 1024,                    /* operations of a batch */
    WIRE_OTHER_RUN = 409,                   /* status: not done, it is for another run */
    WIRE_DEPTH     = WEIR_MAX_DEPTH + 8       /* nesting of JSON: what is around a job's data */
};

/* ---- the side that asks ---- */

/* A batch: its head, each of its operations, its end. */
void weir__wire_begin(weir_buf *out, const char *caller, uint64_t number, const char *run);
void weir__wire_ask(weir_buf *out, const weir_op *op);
void weir__wire_end(weir_buf *out);

typedef struct wire_head {
    char     run[WIRE_RUN + 1];
    uint64_t event;
} wire_head;

/* Fill in the outputs and the errors of n operations from the answer. On failure it is no answer
 * to them, and they are as they were. */
weir_code weir__wire_take(const char *text, size_t len, wire_head *head, weir_op **ops, size_t n,
                          weir_error *err);

/* An answer that is {"error":{"code","message"}} alone; code WEIR_OK: one we do not know. False: it
 * is something else. */
bool weir__wire_error(const char *text, size_t len, weir_error *out);

/* The data of a message of /v1/events. Texts are in memory of `in`. False: it is none. */
bool weir__wire_event(weir_reader *in, const char *text, size_t len, weir_event *out);

/* ---- the side that answers ---- */

typedef struct wire_batch {
    const char *caller, *run;               /* NULL: it has none */
    uint64_t    number;
    weir_op    *op;
    size_t      n;
} wire_batch;

/* Read a batch. Memory for its operations, inputs and outputs, is from `in`. An error is in in->err
 * and names the member: "ops[3].jobs[0].type: ...". */
weir_code weir__wire_read(weir_reader *in, const char *text, size_t len, wire_batch *out);

/* The answer: its head, one for each operation, its end. */
void weir__wire_reply(weir_buf *out, const wire_head *head);
void weir__wire_answer(weir_buf *out, const weir_op *op);
void weir__wire_replied(weir_buf *out);

/* Release what an operation that was read has for outputs. */
void weir__wire_drop(weir_op *op);

#endif
