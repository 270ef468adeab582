/* run.c - a batch of operations as one request, repeated as far as that is safe: see http.h. */
#include "store/http/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

enum {
    FIRST_PAUSE_MS = 10,
    LONGEST_PAUSE_MS = 500,
    KEPT_ROOM = 1024 * 1024         /* bytes of a request's memory that is kept for the next */
};

/* What became of one try. */
typedef enum outcome {
    ANSWERED,       /* the operations have their answers */
    REFUSED,        /* certainly not done, and trying again is of no use */
    NOT_NOW,        /* certainly not done, and another try may help */
    LOST,           /* perhaps done: no answer came */
    OTHER_RUN       /* certainly not done by this run of the server; the one before is gone */
} outcome;

/* Operations that go together in one request. */
typedef struct attempt {
    http_store *s;
    http_lane  *lane;
    weir_op   **ops;
    size_t      n;
    bool        writes;             /* what must not be done twice: then it has a number */
    bool        maybe;              /* it was sent, and its answer was lost */
    int64_t     silence_ms;         /* how long the server may take */
    char        run[WEIR_BATCH_RUN + 1];  /* that it is meant for */
    weir_error  err;                /* of the last try */
} attempt;

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

static bool may_be_repeated(weir_op *op)
{
    const weir_token **token = weir__op_row(op)->token(op);
    return !weir__op_writes(op) || (token && *token);
}

static bool write_body(attempt *a)
{
    weir_buf *b = &a->lane->body;
    if (b->cap > KEPT_ROOM)
        weir__buf_fini(b);
    weir__buf_clear(b);
    weir__batch_begin(b, a->lane->caller, a->writes ? a->lane->number : 0, a->run);
    for (size_t i = 0; i < a->n; i++)
        weir__batch_add(b, a->ops[i]);
    weir__batch_end(b);
    return !b->failed;
}

/* An answer that is not one to the operations. */
static outcome take_refusal(attempt *a)
{
    const http_post *p = &a->lane->post;
    weir_batch_head        head;
    if (p->status == WEIR_BATCH_OTHER_RUN &&
        !weir__batch_read_answers(p->answer.data, p->answer.len, &head, NULL, 0, NULL)) {
        learn_run(a->s, head.run);
        memcpy(a->run, head.run, sizeof a->run);
        weir_fail(&a->err, WEIR_EUNAVAIL, "%s: the server was started anew", p->url->base);
        return OTHER_RUN;
    }
    weir__http_refusal(p->url, p->status, p->answer.data, p->answer.len, &a->err);
    if (a->err.code == WEIR_EUNKNOWN)               /* done, and the answer was not kept */
        a->maybe = true;
    else if (p->status == 503 || p->status == 429)
        return NOT_NOW;
    else if (p->status >= 500)                      /* 502, 504: of something in between */
        return LOST;
    return REFUSED;
}

/* Whoever learns that a job is gone must have been told how it ended before: weir_wait() relies on
 * that. (A test with a clock of its own looks at all events as soon as we return.) */
static bool somebody_is_gone(const attempt *a)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->ops[i]->err.code == WEIR_ENOENT)
            return true;
    return false;
}

static outcome try_once(attempt *a)
{
    http_post *p = &a->lane->post;
    weir_batch_head  head;
    weir_code  rc = weir__http_post_run(p, &a->lane->body, a->silence_ms, &a->err);
    if (rc && !p->sent)
        return rc == WEIR_EINVAL || rc == WEIR_ENOMEM ? REFUSED : NOT_NOW;
    if (rc)
        return LOST;
    if (p->status != 200)
        return take_refusal(a);
    if (weir__batch_read_answers(p->answer.data, p->answer.len, &head, a->ops, a->n, &a->err))
        return LOST;
    learn_run(a->s, head.run);
    if (a->s->env.own_clock || somebody_is_gone(a))
        weir__http_ear_until(a->s->ear, head.run, head.event);
    return ANSWERED;
}

/* ---- until it is over ---- */

static void end_all(attempt *a)
{
    for (size_t i = 0; i < a->n; i++) {
        if (!a->maybe || !weir__op_writes(a->ops[i]))
            a->ops[i]->err = a->err;
        else
            weir_fail(&a->ops[i]->err, WEIR_EUNKNOWN, "%s: not known whether it was done: %s",
                      weir__op_row(a->ops[i])->name, a->err.msg);
    }
}

/* The server was started anew between our try and this one: what can not be repeated is not known
 * to be done. Keeps the others. */
static void forget_doubtful(attempt *a)
{
    size_t kept = 0;
    a->writes = false;
    for (size_t i = 0; i < a->n; i++) {
        weir_op *op = a->ops[i];
        if (may_be_repeated(op))
            a->ops[kept++] = op;
        else
            weir_fail(&op->err, WEIR_EUNKNOWN, "%s: not known whether it was done: the server was "
                      "started anew", weir__op_row(op)->name);
    }
    a->n = kept;
    a->maybe = false;
}

static http_token *new_token(http_lane *l)
{
    if (l->n_tokens == l->cap_tokens) {
        size_t      cap = l->cap_tokens ? 2 * l->cap_tokens : 16;
        http_token *more = realloc(l->tokens, cap * sizeof *more);
        if (!more)
            return NULL;
        l->tokens = more;
        l->cap_tokens = cap;
    }
    return &l->tokens[l->n_tokens++];
}

/* Operations that can have a token and have none get one as long as they are ours. One that does
 * not get it, for want of memory, is like other writes. */
static void lend_tokens(attempt *a)
{
    http_lane *l = a->lane;
    l->n_tokens = 0;
    for (size_t i = 0; i < a->n; i++) {
        const weir_token **place = weir__op_row(a->ops[i])->token(a->ops[i]);
        http_token        *t = place && !*place ? new_token(l) : NULL;
        if (!t)
            continue;
        snprintf(t->key, sizeof t->key, "%s.%zu", l->caller, l->n_tokens - 1);
        t->place = place;
        t->token.number = l->number;
    }
    for (size_t i = 0; i < l->n_tokens; i++) {
        l->tokens[i].token.key = l->tokens[i].key;
        *l->tokens[i].place = &l->tokens[i].token;
    }
}

static void take_tokens_back(http_lane *l)
{
    for (size_t i = 0; i < l->n_tokens; i++)
        *l->tokens[i].place = NULL;
}

static void run_attempt(attempt *a)
{
    int64_t until = 0, pause = FIRST_PAUSE_MS;
    a->lane->number++;
    lend_tokens(a);
    a->silence_ms = a->s->url.timeout_ms;
    for (size_t i = 0; i < a->n; i++) {
        a->writes = a->writes || !may_be_repeated(a->ops[i]);
        if (weir__op_row(a->ops[i])->slow)
            a->silence_ms = WEIR_HTTP_SLOW_MS;
    }
    known_run(a->s, a->run);
    while (a->n) {
        if (!write_body(a)) {
            weir_fail(&a->err, WEIR_ENOMEM, "http: out of memory");
            break;
        }
        outcome got = try_once(a);
        if (got == ANSWERED)
            return;
        if (got == REFUSED)
            break;
        if (got == OTHER_RUN && a->maybe)
            forget_doubtful(a);
        a->maybe = a->maybe || got == LOST;
        int64_t now = weir__monotonic_ms();
        if (!until)
            until = now + a->s->url.timeout_ms;
        if (now + pause >= until)
            break;
        sleep_ms(pause);
        pause = pause * 2 < LONGEST_PAUSE_MS ? pause * 2 : LONGEST_PAUSE_MS;
    }
    end_all(a);
}

/* ---- batches ---- */

/* What needs no server: with a clock of its own a test wants its ticks, else the server's queue
 * does what is due, and this one has nothing to do. True: op is done. */
static bool done_here(const http_store *s, weir_op *op)
{
    weir__op_clear(op);
    if (op->kind == WEIR_OP_TICK && !s->env.own_clock) {
        op->u.tick.changed = 0;
        op->u.tick.next_at = INT64_MAX;
        return true;
    }
    return weir__op_refused(op, s->env.read_only);
}

weir_code weir__http_run(weir_store *base, weir_op **ops, size_t n, weir_error *err)
{
    http_store *s = (http_store *)base;
    http_lane  *lane = &s->lane[weir__ops_lane(ops, n)];
    weir_op    *some[WEIR_BATCH_MAX_OPS];
    (void)err;
    for (size_t i = 0; i < n;) {
        attempt a = { .s = s, .lane = lane, .ops = some };
        size_t  bytes = 0;
        for (; i < n && a.n < WEIR_BATCH_MAX_OPS && bytes < WEIR_HTTP_MAX_BODY; i++) {
            size_t more = weir__op_row(ops[i])->size(ops[i]);
            if (a.n && bytes + more > WEIR_HTTP_MAX_BODY)
                break;
            if (done_here(s, ops[i]))
                continue;
            some[a.n++] = ops[i];
            bytes += more;
        }
        if (!a.n)
            continue;
        run_attempt(&a);
        take_tokens_back(lane);
    }
    return WEIR_OK;
}

weir_code weir__http_greet(http_store *s, weir_error *err)
{
    attempt a = { .s = s, .lane = &s->lane[0], .silence_ms = s->url.timeout_ms };
    if (!write_body(&a))
        return weir_fail(err, WEIR_ENOMEM, "http: out of memory");
    outcome got = try_once(&a);
    if (got != ANSWERED && err)
        *err = a.err;
    return got == ANSWERED ? WEIR_OK : a.err.code;
}
