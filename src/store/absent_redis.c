/* absent_redis.c - in place of store/redis in a build with -Dredis=false: URLs of Redis are
 * rejected with the reason, and so are retry queues. The library exports the same
 * names as a whole one. */
#include "store/store.h"
#include "weir/retryqueue.h"

const weir_store_ops weir__redis_store = { .name = "redis", .absent = "Redis" };
const weir_store_ops weir__kue_store = { .name = "redis+kue", .absent = "Redis" };

static weir_code absent(weir_error *err)
{
    return weir_fail(err, WEIR_EINVAL, "retry queue: this weir was built without Redis");
}

weir_code weir_retryqueue_open(weir_retryqueue **out, const char *url,
                               const weir_retryqueue_options *opt, weir_error *err)
{
    (void)url;
    (void)opt;
    *out = NULL;
    return absent(err);
}

/* No retry queue can be open: callers of what follows have NULL. */

void weir_retryqueue_close(weir_retryqueue *rq)
{
    (void)rq;
}

weir_code weir_retryqueue_add(weir_retryqueue *rq, const weir_retry_task *task, int64_t at_ms,
                              weir_error *err)
{
    (void)rq;
    (void)task;
    (void)at_ms;
    return absent(err);
}

weir_code weir_retryqueue_pop(weir_retryqueue *rq, size_t limit, weir_retry_tasks **out,
                              weir_error *err)
{
    (void)rq;
    (void)limit;
    *out = NULL;
    return absent(err);
}

void weir_retry_tasks_free(weir_retry_tasks *tasks)
{
    (void)tasks;
}

weir_code weir_retryqueue_done(weir_retryqueue *rq, const weir_retry_task *task, weir_error *err)
{
    (void)rq;
    (void)task;
    return absent(err);
}

weir_code weir_retryqueue_fail(weir_retryqueue *rq, const weir_retry_task *task, bool *again,
                               weir_error *err)
{
    (void)rq;
    (void)task;
    if (again)
        *again = false;
    return absent(err);
}

weir_code weir_retryqueue_observe(weir_retryqueue *rq, const weir_retryqueue_observing *how,
                                  weir_retry_next_fn *on_next, weir_retry_error_fn *on_error,
                                  weir_error *err)
{
    (void)rq;
    (void)how;
    (void)on_next;
    (void)on_error;
    return absent(err);
}

void weir_retryqueue_stop(weir_retryqueue *rq)
{
    (void)rq;
}
