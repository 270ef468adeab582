/* future.h - a call that is on its way: its operation, a copy of what it borrows, and where its
 * answer goes. */
#ifndef WEIR_RUNTIME_FUTURE_H
#define WEIR_RUNTIME_FUTURE_H

#include "runtime/queue.h"
#include "runtime/gate.h"
#include "weir/future.h"

/* How the answer of an operation reaches the caller. */
typedef struct weir_reply {
    /* Move the answer (op->err.code is WEIR_OK), or "nothing", to the caller's memory. */
    void (*give)(weir_queue *q, weir_op *op, const struct weir_reply *to);
    void       *out;        /* NULL: it has no user, release it */
    size_t     *n_out;      /* of a take, of a tick; NULL likewise */
    int64_t    *at_out;     /* of a tick */
    bool       *waits_out;  /* of a take: a suspect was passed over */
    weir_pass   pass;       /* of a take by hand */
    weir_state  state;      /* of a count */
    const char *type;
} weir_reply;

/* Run an operation and wait. */
weir_code weir__call(weir_queue *q, weir_op *op, const weir_reply *to, weir_error *err);

/* A call that has nothing to do: *f is done (f may be NULL). */
weir_code weir__future_none(weir_queue *q, weir_future **f, weir_error *err);

/* Run an operation; *f is its future (f may be NULL: no future is needed). */
weir_code weir__call_async(weir_queue *q, weir_op *op, const weir_reply *to, weir_future **f,
                           weir_error *err);

/* A future that is not an operation's but ends when somebody says so, with `size` bytes that live
 * as long as it does. One reference is the user's, the other belongs to whoever calls
 * weir__future_end(). When the user releases it before its end, abandoned(bytes) is called; the
 * user's reference still counts then. */
weir_code weir__future_create(weir_queue *q, weir_future **f, size_t size,
                              void (*abandoned)(void *bytes), weir_error *err);
void *weir__future_bytes(weir_future *f);
void weir__future_ref(weir_future *f);
void weir__future_unref(weir_future *f);
/* It ends with *err as fill() leaves it, which is called first, with whether the user still waits
 * for the answer; fill may be NULL. */
void weir__future_end(weir_future *f, const weir_error *err, void (*fill)(void *ctx, bool wanted),
                      void *ctx);

/* fn() is called when the future is done, by the thread that ends it and with no lock held; at once
 * if it is done already. The memory is the watcher's. A future may have any number of watches. */
typedef struct weir_watch {
    struct weir_watch *next;
    void             (*fn)(struct weir_watch *w, const weir_error *err);
} weir_watch;
void weir__future_watch(weir_future *f, weir_watch *w);

/* The queue of a future; the outcome of a future that is done. */
weir_queue *weir__future_queue(weir_future *f);
const weir_error *weir__future_outcome(weir_future *f);

/* A take for a worker; everything is borrowed. */
weir_op_take weir__taking(weir_queue *q, const weir_taking *what, weir_job **jobs);

/* weir_take() with weir_taking.remote. */
weir_code weir__take_remote(weir_queue *q, const weir_taking *what, weir_job **out, size_t *n_out,
                            weir_error *err);
weir_code weir__take_remote_async(weir_queue *q, const weir_taking *what, weir_job **out,
                                  size_t *n_out, weir_future **f, weir_error *err);

#endif
