/* future.h - the answer to an `_async` call.
 *
 * Every call that reaches the store exists twice. weir_get(q, id, &job, &err) waits;
 * weir_get_async(q, id, &job, &future, &err) returns at once and fills `job` when the future is
 * done. What the call borrows is copied before it returns. What it fills (`job`) must stay valid
 * until the future is done or released, and is not to be read before. */
#ifndef WEIR_FUTURE_H
#define WEIR_FUTURE_H

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
 * once, also when the future is released before. At most one per future. */
typedef void weir_future_fn(weir_code code, const weir_error *err, void *ctx);
WEIR_API void weir_future_then(weir_future *f, weir_future_fn *fn, void *ctx);

/* Let go of it; NULL is fine. A call that is not done yet still happens, but from here on nothing
 * of the caller's memory is touched and its answer is thrown away. Never blocks on the store. */
WEIR_API void weir_future_release(weir_future *f);

#ifdef __cplusplus
}
#endif
#endif
