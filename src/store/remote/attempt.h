/* attempt.h - a batch of operations that another process runs, and the repetition of operations
 * without an answer. The http store and the processes beside the owner of a SQLite file share it.
 *
 * Every add gets a token (weir_add_many()) while it is under way, so that the store recognises it
 * when it is repeated. The rows of the operations say which others can be repeated (weir_repeat).
 * If one of these is refused when it is sent again, its first sending may be the reason: a question
 * to the store shows it (weir_doubts). The rest ends with WEIR_EUNKNOWN. */
#ifndef WEIR_STORE_REMOTE_ATTEMPT_H
#define WEIR_STORE_REMOTE_ATTEMPT_H

#include "op/batch.h"

/* Makes an operation repeatable that has no token. */
typedef struct weir_lent_token {
    weir_token         token;
    const weir_token **place;                       /* of the operation, where it is lent to */
    char               key[WEIR_BATCH_CALLER + 8];  /* the caller, and which of the batch it is */
} weir_lent_token;

/* A sender of batches, one at a time. */
typedef struct weir_caller {
    char             name[WEIR_BATCH_CALLER + 1];   /* nobody else has it */
    uint64_t         number;                        /* of the last batch */
    weir_lent_token *tokens;                        /* of this batch */
    size_t           n_tokens, cap_tokens;
} weir_caller;

weir_code weir__caller_init(weir_caller *c, weir_error *err);
void      weir__caller_fini(weir_caller *c);

/* Operations that go together in one request. */
typedef struct weir_attempt {
    weir_caller *caller;
    weir_op    **ops;               /* the operations that are still to be done */
    size_t       n;
    bool         writes;            /* it has a number, by which a repetition is recognised */
    bool         slow;              /* some may take long */
    bool         maybe;             /* it was sent, and its answer was lost */
    bool         repeated;          /* ... and it is sent to another process, or a new run */
    weir_error   err;               /* of the last try */
} weir_attempt;

/* How many of the n operations fit into one request. At least one, if n > 0. */
size_t weir__attempt_fit(weir_op *const *ops, size_t n);

/* A new batch: `ops` has room for what is left of it. The tokens that it lends are taken back by
 * weir__attempt_end(). */
void weir__attempt_begin(weir_attempt *a, weir_caller *caller, weir_op **ops, size_t n);
void weir__attempt_end(weir_attempt *a);

/* Append it as JSON (op/batch.h), for this run of the other process. False: out of memory. */
bool weir__attempt_write(const weir_attempt *a, const char *run, weir_buf *out);

/* It was sent, and the process that got it is gone. Operations that can be repeated stay, the
 * others end with WEIR_EUNKNOWN because of `why`. */
void weir__attempt_forget(weir_attempt *a, const char *why);

/* There is no other try: each operation ends with a->err, or WEIR_EUNKNOWN. */
void weir__attempt_fail(weir_attempt *a);

/* The operations of an attempt that were sent again and refused then, and a question about each.
 * The questions only read: the caller runs them, n in `asked`, and has them settled. */
typedef struct weir_doubts {
    size_t   n;
    weir_op *asked[WEIR_BATCH_MAX_OPS];
    struct {
        weir_op *op, question;
    } of[];
} weir_doubts;

/* After an answer. NULL: none. */
weir_doubts *weir__doubts_create(const weir_attempt *a);
/* Set the outcome of each operation, and release `d`. NULL is fine. */
void weir__doubts_settle(weir_doubts *d);

/* Does an answer say that a job is gone? Before a call returns that, its final event must
 * have been emitted: weir_wait() relies on it. */
bool weir__attempt_gone(const weir_attempt *a);

#endif
