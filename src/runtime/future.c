/* future.c - calls that wait and calls that do not: see future.h. */
#include "runtime/future.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"

struct weir_future {
    weir_ticket         ticket;        /* of an operation; unused for others */
    weir_queue         *q;             /* a reference */
    _Atomic uint32_t    refs;          /* the user's, and the reference of its ender */
    _Atomic uint32_t    done;
    weir_reply          to;
    void              (*abandoned)(void *bytes);
    pthread_mutex_t     lock;          /* guards what follows */
    bool                released;
    weir_error          err;
    weir_future_fn     *then;
    void               *then_ctx;
    weir_watch         *watches;
    weir_post           post;          /* to call it with */
    max_align_t         bytes[];       /* what its operation borrows; or of whoever ends it */
};

weir_code weir__call(weir_queue *q, weir_op *op, const weir_reply *to, weir_error *err)
{
    weir_ticket t;
    t.op = *op;
    weir__queue_run(q, &t, NULL);
    if (to)
        to->give(q, &t.op, to);      /* may find that it is no error after all */
    if (t.op.err.code && err)
        *err = t.op.err;
    return t.op.err.code;
}

static weir_code create(weir_queue *q, weir_future **out, size_t size, weir_error *err)
{
    weir_future *f = malloc(sizeof *f + size);
    *out = f;
    if (!f)
        return weir_fail(err, WEIR_ENOMEM, "out of memory");
    *f = (weir_future){ .q = q, .refs = 2 };
    pthread_mutex_init(&f->lock, NULL);
    weir__queue_ref(q);
    return WEIR_OK;
}

void weir__future_ref(weir_future *f)
{
    atomic_fetch_add(&f->refs, 1);
}

void weir__future_unref(weir_future *f)
{
    if (atomic_fetch_sub(&f->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&f->lock);
    weir__queue_unref(f->q);
    free(f);
}

/* On the callback thread; holds a reference. */
static void call_then(void *ctx)
{
    weir_future *f = ctx;
    f->then(f->err.code, &f->err, f->then_ctx);
    weir__future_unref(f);
}

static void post_then(weir_future *f)
{
    weir__future_ref(f);
    if (!weir__events_post(&f->q->events, &f->post, call_then, f))
        call_then(f);          /* closed: better here than never */
}

void weir__future_end(weir_future *f, const weir_error *err, void (*fill)(void *ctx, bool wanted),
                      void *ctx)
{
    pthread_mutex_lock(&f->lock);
    if (fill)
        fill(ctx, !f->released);
    f->err = *err;
    atomic_store(&f->done, 1);
    bool        then = f->then != NULL;
    weir_watch *watches = f->watches;
    f->watches = NULL;
    pthread_mutex_unlock(&f->lock);
    weir__futex_wake(&f->done);
    for (weir_watch *w = watches, *next; w; w = next) {
        next = w->next;
        w->fn(w, &f->err);
    }
    if (then)
        post_then(f);
    weir__future_unref(f);
}

static void give_op(void *ctx, bool wanted)
{
    weir_future *f = ctx;
    if (!wanted) {
        f->to.out = NULL;
        f->to.n_out = NULL;
        f->to.at_out = NULL;
        f->to.waits_out = NULL;
    }
    if (f->to.give)
        f->to.give(f->q, &f->ticket.op, &f->to);
}

static void op_done(weir_ticket *t)
{
    weir_future *f = (weir_future *)((char *)t - offsetof(weir_future, ticket));
    weir__future_end(f, &t->op.err, give_op, f);
}

/* The call is refused: its outputs are "nothing", as when it fails later. */
static weir_code refuse(weir_queue *q, weir_op *op, const weir_reply *to, weir_code rc)
{
    op->err.code = rc;
    if (to)
        to->give(q, op, to);
    return rc;
}

static size_t type_size(const weir_reply *to)
{
    return to && to->type ? strlen(to->type) + 1 : 0;
}

weir_code weir__call_async(weir_queue *q, weir_op *op, const weir_reply *to, weir_future **out,
                           weir_error *err)
{
    weir_future *f;
    if (out)
        *out = NULL;
    op->err.code = WEIR_OK;
    weir_code rc = weir__op_check(op, err);
    if (!rc && q->objects_only)
        rc = weir__op_check_objects(op, err);
    if (!rc)
        rc = create(q, &f, weir__op_copy_size(op) + type_size(to), err);
    if (rc)
        return refuse(q, op, to, rc);
    f->ticket.op = *op;
    f->ticket.done = op_done;
    f->ticket.detached = false;
    if (to)
        f->to = *to;
    char *behind = (char *)f->bytes + weir__op_copy(&f->ticket.op, f->bytes);
    if (type_size(to))
        f->to.type = memcpy(behind, to->type, type_size(to));
    rc = weir__queue_submit(q, &f->ticket);
    if (rc) {
        if (err)
            *err = f->ticket.op.err;
        weir__future_unref(f);
        weir__future_unref(f);
        return refuse(q, op, to, rc);
    }
    if (out)
        *out = f;
    else
        weir_future_free(f);
    return WEIR_OK;
}

weir_code weir__future_create(weir_queue *q, weir_future **out, size_t size,
                              void (*abandoned)(void *bytes), weir_error *err)
{
    weir_code rc = create(q, out, size, err);
    if (!rc)
        (*out)->abandoned = abandoned;
    return rc;
}

weir_code weir__future_none(weir_queue *q, weir_future **out, weir_error *err)
{
    weir_future *f;
    weir_code    rc = create(q, &f, 0, err);
    if (!rc)
        weir__future_end(f, &(weir_error){ .code = WEIR_OK }, NULL, NULL);
    if (out)
        *out = f;
    else
        weir_future_free(f);
    return rc;
}

void *weir__future_bytes(weir_future *f)
{
    return f->bytes;
}

weir_code weir_future_wait(weir_future *f, int64_t timeout_ms, weir_error *err)
{
    weir_deadline until = weir__deadline_in(timeout_ms);
    while (!atomic_load(&f->done)) {
        int64_t left = weir__deadline_left_ms(until);
        if (!left)
            return weir_fail(err, WEIR_ETIMEOUT, "not done after %lld ms", (long long)timeout_ms);
        weir__futex_wait(&f->done, 0, left);
    }
    pthread_mutex_lock(&f->lock);      /* so that what was filled in can be read */
    weir_code rc = f->err.code;
    if (rc && err)
        *err = f->err;
    pthread_mutex_unlock(&f->lock);
    return rc;
}

bool weir_future_done(weir_future *f)
{
    return atomic_load(&f->done);
}

void weir__future_watch(weir_future *f, weir_watch *w)
{
    pthread_mutex_lock(&f->lock);
    bool done = atomic_load(&f->done);
    if (!done) {
        w->next = f->watches;
        f->watches = w;
    }
    pthread_mutex_unlock(&f->lock);
    if (done)
        w->fn(w, &f->err);
}

weir_queue *weir__future_queue(weir_future *f)
{
    return f->q;
}

const weir_error *weir__future_outcome(weir_future *f)
{
    return &f->err;
}

weir_code weir_future_then(weir_future *f, weir_future_fn *fn, void *ctx)
{
    pthread_mutex_lock(&f->lock);
    bool first = !f->then;
    if (first) {
        f->then_ctx = ctx;
        f->then = fn;
    }
    bool done = atomic_load(&f->done);
    pthread_mutex_unlock(&f->lock);
    if (first && done)
        post_then(f);
    return first ? WEIR_OK : WEIR_ESTATE;
}

void weir_future_free(weir_future *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->released = true;
    bool abandon = f->abandoned && !atomic_load(&f->done);
    pthread_mutex_unlock(&f->lock);
    if (abandon)
        f->abandoned(f->bytes);
    weir__future_unref(f);
}
