/* compose.c - several futures as one: all of them, the first of them, one after the other. The
 * state of each kind is in the bytes of the future that it makes; watches (future.h) move it on. */
#include "runtime/future.h"

static weir_code create(weir_future *const *futures, size_t n, size_t size, const char *what,
                        weir_future **out, weir_error *err)
{
    *out = NULL;
    if (!n)
        return weir_fail(err, WEIR_EINVAL, "%s: no futures given", what);
    return weir__future_create(weir__future_queue(futures[0]), out, size, NULL, err);
}

/* ---- all ---- */

typedef struct all {
    weir_future   *out;
    _Atomic size_t left;
    size_t         n;
    struct all_one {
        weir_watch   watch;
        struct all  *all;
        weir_future *future;        /* a reference */
    } one[];
} all;

static void all_done(all *a)
{
    weir_error err = { .code = WEIR_OK };
    for (size_t i = a->n; i > 0; i--) {
        const weir_error *outcome = weir__future_outcome(a->one[i - 1].future);
        if (outcome->code)
            err = *outcome;
    }
    for (size_t i = 0; i < a->n; i++)
        weir__future_unref(a->one[i].future);
    weir__future_end(a->out, &err, NULL, NULL);
}

static void all_count(weir_watch *w, const weir_error *err)
{
    all *a = ((struct all_one *)w)->all;
    (void)err;
    if (atomic_fetch_sub(&a->left, 1) == 1)
        all_done(a);
}

weir_code weir_future_all(weir_future *const *futures, size_t n, weir_future **out,
                          weir_error *err)
{
    weir_code rc = create(futures, n, sizeof(all) + n * sizeof(struct all_one), "all", out, err);
    if (rc)
        return rc;
    all *a = weir__future_bytes(*out);
    *a = (all){ .out = *out, .left = n, .n = n };
    for (size_t i = 0; i < n; i++) {
        a->one[i] = (struct all_one){ .watch.fn = all_count, .all = a, .future = futures[i] };
        weir__future_ref(futures[i]);
    }
    weir_future *made = *out;
    weir__future_ref(made);             /* the last watch may end it, and *a with it */
    for (size_t i = 0; i < n; i++)
        weir__future_watch(a->one[i].future, &a->one[i].watch);
    weir__future_unref(made);
    return WEIR_OK;
}

/* ---- any ---- */

typedef struct any {
    weir_future *out;
    atomic_bool  decided;
    size_t      *which;             /* the caller's, or NULL */
    struct any_one {
        weir_watch  watch;
        struct any *any;
        size_t      index;
    } one[];
} any;

static void set_which(void *ctx, bool wanted)
{
    struct any_one *one = ctx;
    if (wanted && one->any->which)
        *one->any->which = one->index;
}

/* Each watch has a reference to the future; the first one has the right to end it. */
static void any_decide(weir_watch *w, const weir_error *err)
{
    struct any_one *one = (struct any_one *)w;
    weir_future    *out = one->any->out;
    if (!atomic_exchange(&one->any->decided, true))
        weir__future_end(out, err, set_which, one);
    else
        weir__future_unref(out);
}

weir_code weir_future_any(weir_future *const *futures, size_t n, size_t *which, weir_future **out,
                          weir_error *err)
{
    weir_code rc = create(futures, n, sizeof(any) + n * sizeof(struct any_one), "any", out, err);
    if (rc)
        return rc;
    any *a = weir__future_bytes(*out);
    *a = (any){ .out = *out, .which = which };
    weir_future *made = *out;
    for (size_t i = 0; i < n; i++) {
        a->one[i] = (struct any_one){ .watch.fn = any_decide, .any = a, .index = i };
        weir__future_ref(made);         /* with the first one's: one more than there are watches */
    }
    for (size_t i = 0; i < n; i++)
        weir__future_watch(futures[i], &a->one[i].watch);
    weir__future_unref(made);
    return WEIR_OK;
}

/* ---- a chain ---- */

typedef struct chain {
    weir_watch        watch;        /* of the first call, then of the second */
    weir_future      *out;
    weir_future_next *next;
    void             *ctx;
    weir_future      *second;       /* ours */
    weir_post         post;
} chain;

static void second_done(weir_watch *w, const weir_error *err)
{
    chain       *c = (chain *)w;
    weir_future *second = c->second;
    weir__future_end(c->out, err, NULL, NULL);
    weir_future_free(second);
}

/* On the callback thread. */
static void start_second(void *ctx)
{
    chain     *c = ctx;
    weir_error err = { .code = WEIR_OK };
    weir_code  rc = c->next(&c->second, c->ctx, &err);
    if (rc || !c->second) {
        err.code = rc;
        weir__future_end(c->out, &err, NULL, NULL);
        return;
    }
    c->watch.fn = second_done;
    weir__future_watch(c->second, &c->watch);
}

static void first_done(weir_watch *w, const weir_error *err)
{
    chain      *c = (chain *)w;
    weir_queue *q = weir__future_queue(c->out);
    if (err->code)
        weir__future_end(c->out, err, NULL, NULL);
    else if (!weir__events_post(&q->events, &c->post, start_second, c))
        start_second(c);                /* closed: better here than never */
}

weir_code weir_future_chain(weir_future *f, weir_future_next *next, void *ctx, weir_future **out,
                            weir_error *err)
{
    weir_code rc = create(&f, 1, sizeof(chain), "chain", out, err);
    if (rc)
        return rc;
    chain *c = weir__future_bytes(*out);
    *c = (chain){ .watch.fn = first_done, .out = *out, .next = next, .ctx = ctx };
    weir__future_watch(f, &c->watch);
    return WEIR_OK;
}
