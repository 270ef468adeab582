/* future.h - the answer to an `_async` call.
 *
 * Every call that reaches the store exists twice. weir_get(q, id, &job, &err) waits;
 * weir_get_async(q, id, &job, &future, &err) returns at once and fills `job` when the future is
 * done. The call copies its borrowed arguments before it returns. Its output (`job`) must stay
 * valid until the future is done or freed; do not read it earlier. */
#ifndef WEIR_FUTURE_H
#define WEIR_FUTURE_H

#include <stddef.h>
#include <stdint.h>
#include "weir/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_future weir_future;

#define WEIR_FOREVER INT64_C(-1)

/* Wait until it is done, at most `timeout_ms` (WEIR_FOREVER: no limit). The outcome of the call,
 * or WEIR_ETIMEOUT: then the call goes on and can be waited for again. Any thread. */
WEIR_API weir_code weir_future_wait(weir_future *f, int64_t timeout_ms, weir_error *err);

/* Is it done? Never blocks. Any thread. */
WEIR_API bool weir_future_done(weir_future *f);

/* Have `fn` called on the queue's callback thread when it is done (soon, if it already is): exactly
 * once, also when the future is freed before. WEIR_ESTATE: the future has a function already,
 * and `fn` is not called. */
typedef void weir_future_fn(weir_code code, const weir_error *err, void *ctx);
WEIR_API weir_code weir_future_then(weir_future *f, weir_future_fn *fn, void *ctx);

/* Let go of it; NULL is fine. A call that is not done yet still happens, but from here on nothing
 * of the caller's memory is touched and its answer is thrown away. Never blocks on the store. */
WEIR_API void weir_future_free(weir_future *f);

/* ---- several futures as one ---- */

/* *out is a future like any other: weir_future_free(). The futures that it is made of stay the
 * caller's and may be freed at any time. They may be of different queues; callbacks of *out run
 * on the callback thread of the first one's. None of these functions needs a thread that waits. */

/* A future that is done when all n are done. Its outcome is the error of the first of them, in
 * their order, that failed; WEIR_OK if none did. Errors: WEIR_EINVAL (n is 0), WEIR_ENOMEM. */
WEIR_API weir_code weir_future_all(weir_future *const *futures, size_t n, weir_future **out,
                                   weir_error *err);

/* A future that is done when the first of the n is done, and has its outcome. *which (may be NULL)
 * is then the index of this first one. Errors: WEIR_EINVAL (n is 0), WEIR_ENOMEM. */
WEIR_API weir_code weir_future_any(weir_future *const *futures, size_t n, size_t *which,
                                   weir_future **out, weir_error *err);

/* Starts the call that follows and sets *next to its future, which belongs to the chain then; NULL
 * with WEIR_OK ends the chain. On failure it fills `err` and the chain ends with that error. Runs
 * on the callback thread. */
typedef weir_code weir_future_next(weir_future **next, void *ctx, weir_error *err);

/* A chain of two calls: when `f` is done without an error, next() starts the following call, and
 * *out is done when that one is, with its outcome. If `f` fails, next() is not called and *out has
 * the error of `f`. A chain goes on when *out is freed. Error: WEIR_ENOMEM. */
WEIR_API weir_code weir_future_chain(weir_future *f, weir_future_next *next, void *ctx,
                                     weir_future **out, weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
