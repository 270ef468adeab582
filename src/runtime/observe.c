/* observe.c - streams: see weir/observe.h. A stream is a worker pool with ports (pool_inner.h),
 * whose handler is next_job() below.
 *
 *   job ──► filter ──► map ──► buffer ──► on_next
 *
 * The demand is the pool's: it begins a job only while there is some. A job that filter or map
 * drops gives its demand back. `left` is what `take` still allows to be asked for, so that the
 * demand never exceeds it.
 *
 * A job in the buffer is held (WEIR__HELD): for the pool its handler returns only when on_next()
 * has. So an item that on_next() ends stays valid until then. */
#include "weir/observe.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "runtime/pool_inner.h"

struct weir_stream {
    weir_observing   how;
    weir_next_fn    *on_next;
    weir_trouble_fn *on_error;
    weir_end_fn     *on_end;
    pool            *pool;          /* the user's reference, until weir_stream_free() */
    pthread_mutex_t  lock;          /* guards what follows; inside it no other lock is taken */
    int64_t          left;          /* INT64_MAX: no limit */
    int64_t          passed;        /* items that on_next() was called with and has answered */
    weir_item       *buffer;        /* room for buffer_count; NULL: there is none */
    size_t           n_buffer;
    int64_t          flush_at;      /* by the steady clock */
};

/* ---- demand ---- */

void weir_stream_request(weir_stream *s, int64_t n)
{
    pthread_mutex_lock(&s->lock);
    if (n > s->left)
        n = s->left;
    if (s->left < INT64_MAX && n > 0)
        s->left -= n;
    pthread_mutex_unlock(&s->lock);
    if (n > 0)
        weir__pool_demand(s->pool, n);
}

void weir_stream_cancel(weir_stream *s)
{
    pthread_mutex_lock(&s->pool->lock);
    weir__pool_begin_stop(s->pool);
    pthread_mutex_unlock(&s->pool->lock);
}

/* on_next() has answered for n items: the last of `take`? */
static void note_passed(weir_stream *s, size_t n)
{
    if (!s->how.take)
        return;
    pthread_mutex_lock(&s->lock);
    s->passed += (int64_t)n;
    bool last = s->passed >= s->how.take;
    pthread_mutex_unlock(&s->lock);
    if (last)
        weir_stream_cancel(s);
}

/* ---- the buffer ---- */

/* Take the group that is in the buffer; the caller frees it. NULL: out of memory, and the items
 * stay there. Behind the n items is room for as many. Lock held. */
static weir_item *take_group(weir_stream *s, size_t *n)
{
    weir_item *group = malloc(2 * s->n_buffer * sizeof *group);
    *n = group ? s->n_buffer : 0;
    if (group)
        memcpy(group, s->buffer, s->n_buffer * sizeof *group);
    s->n_buffer -= *n;
    return group;
}

/* on_next() has answered for these items: the pool may send their outcomes. */
static void items_handled(const weir_item *items, size_t n, weir_code rc)
{
    for (size_t i = 0; i < n; i++) {
        weir__delivery *d = items[i].job->taken;
        if (weir__pool_handled(d, rc))
            weir__pool_send(d);
    }
}

/* Pass a group on, and free it. on_next() may write to its items: the second half is ours. */
static void pass_on(weir_stream *s, weir_item *group, size_t n)
{
    if (!n)
        return;
    memcpy(group + n, group, n * sizeof *group);
    items_handled(group + n, n, s->on_next(group, n, s->how.ctx));
    note_passed(s, n);
    free(group);
}

/* The job is dropped: one more may come in its place. */
static weir_code drop(weir_stream *s, weir_code answer)
{
    weir__pool_demand(s->pool, 1);
    return answer;
}

/* Add an item, and pass the group on if it is complete, or if the demand is used up: then the time
 * of the next item is unknown. A buffer that is full before had no memory to be passed on. */
static weir_code gather(weir_stream *s, weir_item item)
{
    enum { FULL_MS = 1000 };
    bool    no_demand = weir__pool_demand(s->pool, 0) <= 0;
    int64_t flush_at = weir__queue_steady(s->pool->q) + s->how.buffer_ms;
    for (;;) {
        weir_item *group = NULL;
        size_t     n = 0, count = (size_t)s->how.buffer_count;
        pthread_mutex_lock(&s->lock);
        bool full = s->n_buffer == count, first = s->n_buffer == 0;
        if (first)
            s->flush_at = flush_at;
        if (!full)
            s->buffer[s->n_buffer++] = item;
        if (no_demand || s->n_buffer == count)
            group = take_group(s, &n);
        pthread_mutex_unlock(&s->lock);
        pass_on(s, group, n);
        if (full && !n)
            return drop(s, weir_job_return(item.job, FULL_MS, NULL));
        if (full)
            continue;
        if (first && !n && s->how.buffer_ms)
            weir__pool_set_alarm(s->pool, flush_at);
        return WEIR__HELD;
    }
}

/* It is time to pass the group on; or that group has gone, and the next has some time left. */
static void on_alarm(void *ctx)
{
    weir_stream *s = ctx;
    int64_t      now = weir__queue_steady(s->pool->q), again_at = 0;
    weir_item   *group = NULL;
    size_t       n = 0;
    pthread_mutex_lock(&s->lock);
    if (s->n_buffer && now >= s->flush_at)
        group = take_group(s, &n);
    if (s->n_buffer)
        again_at = now < s->flush_at ? s->flush_at : now + s->how.buffer_ms;
    pthread_mutex_unlock(&s->lock);
    if (again_at)
        weir__pool_set_alarm(s->pool, again_at);
    pass_on(s, group, n);
}

/* ---- what the pool calls ---- */

static weir_code next_job(weir_job *job, void *ctx)
{
    weir_stream          *s = ctx;
    const weir_observing *how = &s->how;
    weir_item             item = { .job = job };
    if (how->filter && !how->filter(job, how->ctx))
        return drop(s, WEIR_OK);
    if (how->map) {
        weir_error err = { 0 };
        item.value = how->map(job, how->ctx, &err);
        if (err.code) {
            weir_job_fail(job, "%s", err.msg);
            return drop(s, WEIR_EJOB);
        }
    }
    if (s->buffer)
        return gather(s, item);
    weir_code rc = s->on_next(&item, 1, how->ctx);
    note_passed(s, 1);
    return rc;
}

static void on_trouble(void *ctx, const weir_error *err)
{
    weir_stream *s = ctx;
    if (s->on_error)
        s->on_error(err, s->how.ctx);
}

/* The last thread leaves. The items in the buffer go back. */
static void on_ended(void *ctx)
{
    weir_stream *s = ctx;
    for (size_t i = 0; i < s->n_buffer; i++)
        weir_job_return(s->buffer[i].job, 0, NULL);
    items_handled(s->buffer, s->n_buffer, WEIR_LATER);
    s->n_buffer = 0;
    if (s->on_end)
        s->on_end(s->how.ctx);
}

static void release(void *ctx)
{
    weir_stream *s = ctx;
    pthread_mutex_destroy(&s->lock);
    free(s->buffer);
    free(s);
}

/* ---- starting and stopping ---- */

static weir_code check(const weir_observing *how, weir_next_fn *on_next, weir_error *err)
{
    weir_code rc = WEIR__CHECK_RESERVED(how, err);
    if (rc)
        return rc;
    if (!on_next)
        return weir__fail_field(err, WEIR_EINVAL, "on_next", "missing");
    if (how->demand < WEIR_NO_DEMAND)
        return weir__fail_field(err, WEIR_EINVAL, "demand", "%lld, must be 0 (any number), %d "
                                "(WEIR_NO_DEMAND) or more", (long long)how->demand,
                                WEIR_NO_DEMAND);
    if (how->take < 0)
        return weir__fail_field(err, WEIR_EINVAL, "take", "%lld, must be 0 (no limit) or more",
                                (long long)how->take);
    if (how->poll_ms < 0 || how->poll_ms > WEIR_MAX_MS)
        return weir__fail_field(err, WEIR_EINVAL, "poll_ms", "%lld, must be 0 to %lld "
                                "(WEIR_MAX_MS)", (long long)how->poll_ms, (long long)WEIR_MAX_MS);
    if (how->buffer_count < 0 || how->buffer_count > WEIR_MAX_BUFFER)
        return weir__fail_field(err, WEIR_EINVAL, "buffer_count", "%d, must be 0 to %d "
                                "(WEIR_MAX_BUFFER)", how->buffer_count, WEIR_MAX_BUFFER);
    if (how->buffer_ms < 0 || how->buffer_ms > WEIR_MAX_MS)
        return weir__fail_field(err, WEIR_EINVAL, "buffer_ms", "%lld, must be 0 to %lld "
                                "(WEIR_MAX_MS)", (long long)how->buffer_ms, (long long)WEIR_MAX_MS);
    if (how->buffer_ms && how->buffer_count < 2)
        return weir__fail_field(err, WEIR_EINVAL, "buffer_ms", "%lld has no effect with a "
                                "buffer_count of %d, which must be at least 2",
                                (long long)how->buffer_ms, how->buffer_count);
    if (how->held && how->held < how->buffer_count)
        return weir__fail_field(err, WEIR_EINVAL, "held", "%d, must be at least buffer_count (%d)",
                                how->held, how->buffer_count);
    return WEIR_OK;
}

/* The maximum number of items at once: with a buffer, a group for each thread, and the group being
 * gathered. */
static int32_t most_held(const weir_observing *how)
{
    int64_t threads = how->threads > 0 ? how->threads : 1;
    int64_t most = how->buffer_count > 1 ? (threads + 1) * how->buffer_count : threads;
    return how->held ? how->held : (int32_t)(most < WEIR_MAX_RUNNING ? most : WEIR_MAX_RUNNING);
}

static weir_stream *stream_create(const weir_observing *how)
{
    weir_stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->how = *how;
    if (how->buffer_count > 1) {
        s->buffer = malloc((size_t)how->buffer_count * sizeof *s->buffer);
        if (!s->buffer) {
            free(s);
            return NULL;
        }
    }
    s->left = how->take ? how->take : INT64_MAX;
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

weir_code weir_observe(weir_queue *q, const char *type, const weir_observing *how,
                       weir_next_fn *on_next, weir_trouble_fn *on_error, weir_end_fn *on_end,
                       weir_stream **out, weir_error *err)
{
    static const weir_observing defaults;
    *out = NULL;
    if (!how)
        how = &defaults;
    weir_code rc = check(how, on_next, err);
    if (rc)
        return rc;
    weir_stream *s = stream_create(how);
    if (!s)
        return weir_fail(err, WEIR_ENOMEM, "observe: out of memory");
    s->on_next = on_next;
    s->on_error = on_error;
    s->on_end = on_end;
    weir_pool_config cfg = { .handler = next_job, .ctx = s, .threads = how->threads,
                             .running = most_held(how), .prefetch = how->prefetch,
                             .lease_ms = how->lease_ms, .types = how->types,
                             .when = how->when };
    weir__ports      ports = { .ctx = s, .metered = true, .poll_ms = how->poll_ms,
                               .trouble = on_trouble, .alarm = on_alarm, .ended = on_ended,
                               .release = release };
    rc = weir__pool_start(q, type, &cfg, &ports, &s->pool, err);
    if (rc)                             /* and s is released */
        return rc;
    if (how->demand != WEIR_NO_DEMAND)
        weir_stream_request(s, how->demand ? how->demand : INT64_MAX);
    *out = s;
    return WEIR_OK;
}

weir_code weir_stream_stop(weir_stream *s, int64_t timeout_ms, weir_error *err)
{
    weir_stream_cancel(s);
    return weir_pool_stop(s->pool, timeout_ms, err);
}

void weir_stream_free(weir_stream *s)
{
    if (s)
        weir__pool_unref(s->pool);
}
