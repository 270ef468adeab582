/* attempt.c - a batch on its way to another process: see attempt.h. */
#include "store/remote/attempt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/grow.h"

enum { MAX_BODY = 16 * 1024 * 1024 };       /* bytes; from there on a batch is cut in two */

weir_code weir__caller_init(weir_caller *c, weir_error *err)
{
    unsigned char bytes[WEIR_BATCH_CALLER / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return weir_fail(err, WEIR_EIO, "no random numbers: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(c->name + 2 * i, 3, "%02x", bytes[i]);
    return WEIR_OK;
}

void weir__caller_fini(weir_caller *c)
{
    free(c->tokens);
    c->tokens = NULL;
}

/* ---- tokens ---- */

static bool may_be_repeated(const weir_op *op)
{
    return weir__op_row(op)->repeat->may(op);
}

/* Does the process that runs it have to notice that it is sent to it twice? */
static bool needs_number(weir_op *op)
{
    const weir_token **token = weir__op_row(op)->token(op);
    return weir__op_writes(op) && !(token && *token);
}

static weir_lent_token *new_token(weir_caller *c)
{
    if (!weir__grow(&c->tokens, &c->cap_tokens, c->n_tokens + 1, sizeof *c->tokens))
        return NULL;
    return &c->tokens[c->n_tokens++];
}

/* Operations that can have a token and have none get one. If memory for the token is missing, the
 * operation is like other writes. */
static void lend_tokens(weir_attempt *a)
{
    weir_caller *c = a->caller;
    c->n_tokens = 0;
    for (size_t i = 0; i < a->n; i++) {
        const weir_token **place = weir__op_row(a->ops[i])->token(a->ops[i]);
        weir_lent_token   *t = place && !*place ? new_token(c) : NULL;
        if (!t)
            continue;
        *t = (weir_lent_token){ .place = place, .token.number = c->number };
        snprintf(t->key, sizeof t->key, "%s.%zu", c->name, c->n_tokens - 1);
    }
    for (size_t i = 0; i < c->n_tokens; i++) {
        c->tokens[i].token.key = c->tokens[i].key;
        *c->tokens[i].place = &c->tokens[i].token;
    }
}

/* ---- attempts ---- */

size_t weir__attempt_fit(weir_op *const *ops, size_t n)
{
    size_t bytes = 0, takes = 0, i = 0;
    for (; i < n && i < WEIR_BATCH_MAX_OPS; i++) {
        bytes += weir__op_row(ops[i])->size(ops[i]);
        takes += weir__batch_takes(ops[i]);
        if (i && (bytes > MAX_BODY || takes > WEIR_BATCH_MAX_TAKES))
            break;
    }
    return i;
}

void weir__attempt_begin(weir_attempt *a, weir_caller *caller, weir_op **ops, size_t n)
{
    *a = (weir_attempt){ .caller = caller, .ops = ops, .n = n };
    caller->number++;
    lend_tokens(a);
    for (size_t i = 0; i < n; i++) {
        a->writes = a->writes || needs_number(ops[i]);
        a->slow = a->slow || weir__op_row(ops[i])->slow;
    }
}

void weir__attempt_end(weir_attempt *a)
{
    weir_caller *c = a->caller;
    for (size_t i = 0; i < c->n_tokens; i++)
        *c->tokens[i].place = NULL;
    c->n_tokens = 0;
}

bool weir__attempt_write(const weir_attempt *a, const char *run, weir_buf *out)
{
    weir__batch_begin(out, a->caller->name, a->writes ? a->caller->number : 0, run);
    for (size_t i = 0; i < a->n; i++)
        weir__batch_add(out, a->ops[i]);
    weir__batch_end(out);
    return !out->failed;
}

static void not_known(weir_op *op, const char *why)
{
    weir_fail(&op->err, WEIR_EUNKNOWN, "%s: not known whether it was done: %s",
              weir__op_row(op)->name, why);
}

void weir__attempt_forget(weir_attempt *a, const char *why)
{
    size_t kept = 0;
    a->writes = false;
    for (size_t i = 0; i < a->n; i++) {
        weir_op *op = a->ops[i];
        if (may_be_repeated(op)) {
            a->ops[kept++] = op;
            a->writes = a->writes || needs_number(op);
        } else {
            not_known(op, why);
        }
    }
    a->n = kept;
    a->maybe = a->repeated = true;
}

void weir__attempt_fail(weir_attempt *a)
{
    for (size_t i = 0; i < a->n; i++) {
        if (!a->maybe || !weir__op_writes(a->ops[i]))
            a->ops[i]->err = a->err;
        else
            not_known(a->ops[i], a->err.msg);
    }
}

/* ---- what was sent again ---- */

static bool is_doubtful(const weir_op *op)
{
    weir_code rc = op->err.code;
    return weir__op_row(op)->repeat->ask &&
           (rc == WEIR_ESTALE || rc == WEIR_ESTATE || rc == WEIR_ENOENT);
}

weir_doubts *weir__doubts_create(const weir_attempt *a)
{
    size_t n = 0;
    for (size_t i = 0; a->repeated && i < a->n; i++)
        n += is_doubtful(a->ops[i]);
    weir_doubts *d = n ? calloc(1, sizeof *d + n * sizeof *d->of) : NULL;
    for (size_t i = 0; n && i < a->n; i++) {
        weir_op *op = a->ops[i];
        if (!is_doubtful(op))
            continue;
        if (!d) {
            not_known(op, "out of memory");
            continue;
        }
        weir_op *question = &d->of[d->n].question;
        weir__op_row(op)->repeat->ask(op, question);
        weir__op_clear(question);
        question->now_ms = op->now_ms;
        question->steady_ms = op->steady_ms;
        d->of[d->n].op = op;
        d->asked[d->n++] = question;
    }
    return d;
}

void weir__doubts_settle(weir_doubts *d)
{
    for (size_t i = 0; d && i < d->n; i++) {
        weir_op    *op = d->of[i].op;
        weir_recall known = weir__op_row(op)->repeat->recall(op, &d->of[i].question);
        if (known == WEIR_RECALL_DONE)
            op->err = (weir_error){ 0 };
        else if (known == WEIR_RECALL_UNKNOWN)
            not_known(op, op->err.msg);
        weir__op_free(&d->of[i].question);
    }
    free(d);
}

bool weir__attempt_gone(const weir_attempt *a)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->ops[i]->err.code == WEIR_ENOENT)
            return true;
    return false;
}
