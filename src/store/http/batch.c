/* batch.c - a batch of operations as one request, repeated as far as that is safe: see http.h and
 * store/remote/attempt.h. */
#include "store/http/http.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "core/results.h"

enum {
    FIRST_PAUSE_MS = 10,
    LONGEST_PAUSE_MS = 500,
    STEP_ITEMS = 128,               /* of a long read in steps, at most */
    KEPT_ROOM = 1024 * 1024         /* bytes of a request's memory that is kept for the next */
};

/* The outcome of one try. */
typedef enum outcome {
    ANSWERED,       /* the operations have their answers */
    REFUSED,        /* certainly not done, and trying again is of no use */
    NOT_NOW,        /* certainly not done, and another try may help */
    LOST,           /* perhaps done: no answer came */
    OTHER_RUN       /* certainly not done by this run of the server; the one before is gone */
} outcome;

typedef struct request {
    weir_attempt a;
    http_store  *s;
    http_lane   *lane;
    int64_t      silence_ms;                /* how long the server may take */
    char         run[WEIR_BATCH_RUN + 1];   /* that it is meant for */
} request;

static void sleep_ms(int64_t ms)
{
    struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };
    nanosleep(&ts, NULL);
}

/* ---- the run of the server ---- */

static void known_run(http_store *s, char out[WEIR_BATCH_RUN + 1])
{
    pthread_mutex_lock(&s->lock);
    memcpy(out, s->run, sizeof s->run);
    pthread_mutex_unlock(&s->lock);
}

static void learn_run(http_store *s, const char *run)
{
    pthread_mutex_lock(&s->lock);
    memcpy(s->run, run, strlen(run) + 1);
    pthread_mutex_unlock(&s->lock);
}

/* ---- one try ---- */

static bool write_body(request *r)
{
    weir_buf *b = &r->lane->body;
    if (b->cap > KEPT_ROOM)
        weir__buf_fini(b);
    weir__buf_clear(b);
    return weir__attempt_write(&r->a, r->run, b);
}

/* An answer that is not one to the operations. */
static outcome take_refusal(request *r)
{
    const http_post *p = &r->lane->post;
    weir_batch_head        head;
    if (p->status == WEIR_BATCH_OTHER_RUN &&
        !weir__batch_read_answers(p->answer.data, p->answer.len, &head, NULL, 0, NULL)) {
        learn_run(r->s, head.run);
        memcpy(r->run, head.run, sizeof r->run);
        weir_fail(&r->a.err, WEIR_EUNAVAIL, "%s: the server was started anew", p->url->base);
        return OTHER_RUN;
    }
    weir__http_refusal(p->url, p->status, p->answer.data, p->answer.len, &r->a.err);
    if (r->a.err.code == WEIR_EUNKNOWN)               /* done, and the answer was not kept */
        r->a.maybe = true;
    else if (p->status == 503 || p->status == 429)
        return NOT_NOW;
    else if (p->status >= 500)                      /* 502, 504: of something in between */
        return LOST;
    return REFUSED;
}

static outcome try_once(request *r)
{
    http_post *p = &r->lane->post;
    weir_batch_head  head;
    weir_code  rc = weir__http_post_run(p, &r->lane->body, r->silence_ms, &r->a.err);
    if (rc && !p->sent)
        return rc == WEIR_EINVAL || rc == WEIR_ENOMEM ? REFUSED : NOT_NOW;
    if (rc)
        return LOST;
    if (p->status != 200)
        return take_refusal(r);
    if (weir__batch_read_answers(p->answer.data, p->answer.len, &head, r->a.ops, r->a.n, &r->a.err))
        return LOST;
    learn_run(r->s, head.run);
    if (r->s->env.test_clock || weir__attempt_gone(&r->a))
        weir__http_events_until(r->s->events, head.run, head.event);
    return ANSWERED;
}

/* ---- until it is over ---- */

static void run_request(request *r)
{
    int64_t until = 0, pause = FIRST_PAUSE_MS;
    r->silence_ms = r->a.slow ? WEIR_HTTP_SLOW_MS : r->s->url.timeout_ms;
    known_run(r->s, r->run);
    while (r->a.n) {
        if (!write_body(r)) {
            weir_fail(&r->a.err, WEIR_ENOMEM, "http: out of memory");
            break;
        }
        outcome got = try_once(r);
        if (got == ANSWERED)
            return;
        if (got == REFUSED)
            break;
        if (got == OTHER_RUN && r->a.maybe)
            weir__attempt_forget(&r->a, "the server was started anew");
        r->a.maybe = r->a.maybe || got == LOST;
        int64_t now = weir__monotonic_ms();
        if (!until)
            until = now + r->s->url.timeout_ms;
        if (now + pause >= until)
            break;
        sleep_ms(pause);
        pause = pause * 2 < LONGEST_PAUSE_MS ? pause * 2 : LONGEST_PAUSE_MS;
    }
    weir__attempt_fail(&r->a);
}

/* ---- batches ---- */

/* Operations that need no server. With a test clock, ticks are sent; else the server's queue does
 * what is due, and this process has nothing to do. True: op is done. */
static bool done_here(const http_store *s, weir_op *op)
{
    weir__op_clear(op);
    if (op->kind == WEIR_OP_TICK && !s->env.test_clock) {
        op->u.tick.changed = 0;
        op->u.tick.next_at = INT64_MAX;
        op->u.tick.schedules_due = false;
        return true;
    }
    return weir__op_refused(op, s->env.read_only);
}

static void run_on(http_store *s, http_lane *lane, weir_op **ops, size_t n);

static void settle_doubts(http_store *s, http_lane *lane, const weir_attempt *a)
{
    weir_doubts *d = weir__doubts_create(a);
    if (d)
        run_on(s, lane, d->asked, d->n);
    weir__doubts_settle(d);
}

static void run_some(http_store *s, http_lane *lane, weir_op **ops, size_t n)
{
    request r = { .s = s, .lane = lane };
    weir__attempt_begin(&r.a, &lane->caller, ops, n);
    run_request(&r);
    weir__attempt_end(&r.a);
    settle_doubts(s, lane, &r.a);
}

/* ---- reads that the server refused since answers were too large ---- */

static bool was_refused(const weir_op *op)
{
    return op->err.code == WEIR_ELIMIT && !weir__op_writes(op) && !weir__batch_takes(op);
}

/* A long read, a little at a time; less if even that is refused. */
static void read_in_steps(http_store *s, http_lane *lane, weir_op *op)
{
    const weir_steps *steps = weir__op_row(op)->steps;
    weir_op          *one, step = *op;
    size_t            wanted = *steps->limit(op), most = STEP_ITEMS;
    weir_gathered     all = { .items = steps->create(wanted), .more = true };
    bool              ok = all.items;
    while (ok && all.more && all.n < wanted) {
        size_t left = wanted - all.n;
        *steps->limit(&step) = most = left < most ? left : most;
        step.err = (weir_error){ 0 };
        one = &step;
        run_some(s, lane, &one, 1);
        if (step.err.code == WEIR_ELIMIT && most > 1) {
            most /= 2;
            continue;
        }
        if (step.err.code)
            break;
        ok = steps->gather(&step, &all);
        weir__op_free(&step);
    }
    op->err = step.err;
    if (!ok)
        weir_fail(&op->err, WEIR_ENOMEM, "out of memory");
    steps->give(op, all.items);
    if (op->err.code) {
        weir__op_row(op)->release(op);
        weir__op_row(op)->clear(op);
    }
}

/* The first read of a batch is refused for its own size alone, so each round is done with one more
 * at least. */
static void ask_again(http_store *s, http_lane *lane, weir_op **ops, size_t n)
{
    weir_op *some[WEIR_BATCH_MAX_OPS];
    for (bool alone = n == 1;; alone = true) {
        size_t kept = 0;
        for (size_t i = 0; i < n; i++)
            if (was_refused(ops[i]))
                ops[kept++] = ops[i];
        if (alone && kept == n) {
            if (weir__op_row(ops[0])->steps->limit(ops[0]))
                read_in_steps(s, lane, ops[0]);
            ops++;
            kept--;
        }
        if (!kept)
            return;
        n = kept;
        memcpy(some, ops, n * sizeof *ops);
        for (size_t i = 0; i < n; i++)
            weir__op_clear(ops[i]);
        run_some(s, lane, some, n);
    }
}

static void run_on(http_store *s, http_lane *lane, weir_op **ops, size_t n)
{
    weir_op *some[WEIR_BATCH_MAX_OPS], *refused[WEIR_BATCH_MAX_OPS];
    for (size_t i = 0; i < n;) {
        size_t fit = weir__attempt_fit(ops + i, n - i), kept = 0;
        for (size_t k = 0; k < fit; k++, i++)
            if (!done_here(s, ops[i]))
                some[kept++] = ops[i];
        memcpy(refused, some, kept * sizeof *some);     /* an attempt forgets some of its own */
        if (kept)
            run_some(s, lane, some, kept);
        ask_again(s, lane, refused, kept);
    }
}

weir_code weir__http_run(weir_store *base, weir_op **ops, size_t n, weir_error *err)
{
    http_store *s = (http_store *)base;
    (void)err;
    run_on(s, &s->lane[weir__ops_lane(ops, n)], ops, n);
    return WEIR_OK;
}

weir_code weir__http_handshake(http_store *s, weir_error *err)
{
    request r = { .s = s, .lane = &s->lane[0], .silence_ms = s->url.timeout_ms,
                  .a.caller = &s->lane[0].caller };
    if (!write_body(&r))
        return weir_fail(err, WEIR_ENOMEM, "http: out of memory");
    outcome got = try_once(&r);
    if (got != ANSWERED && err)
        *err = r.a.err;
    return got == ANSWERED ? WEIR_OK : r.a.err.code;
}
