/* api_batch.c - POST /v1/batch: operations of a queue elsewhere, whose store this server is. Here
 * are the rights, and the frame of the answers. op/batch.h has the format, batch_run.h the
 * execution, replay.h the repetition of a batch. */
#include <inttypes.h>
#include <string.h>

#include "op/batch.h"
#include "runtime/ops.h"
#include "server/api/api.h"
#include "server/api/batch_run.h"
#include "server/access/audit_batch.h"
#include "server/http/body.h"
#include "server/live/hub.h"
#include "server/http/inner.h"
#include "server/http/parts.h"
#include "server/access/once.h"
#include "server/live/replay.h"
#include "server/live/workers.h"

typedef struct batch {
    srv_batch_run run;
    weir_batch    in;
    srv_replay   *replay;           /* NULL: it need not be remembered */
    weir_op      *gets;             /* for a token of some types: of the jobs that are named */
    size_t        n_gets, looked;   /* how many there are, and have been looked at */
    size_t        look_bytes;       /* of the data of these */
} batch;

/* ---- who may do it ---- */

/* For a token that is bound to types: are all types that the operation names among them? A list
 * without a type becomes one of the only type. Which jobs it names is another matter. */
static bool may_in_types(const srv_request *r, weir_op *op, unsigned role)
{
    const weir_op_row *row = weir__op_row(op);
    const char       **type;
    if (row->scope != WEIR_SCOPE_NAMED)
        return row->scope == WEIR_SCOPE_ANSWER;
    for (size_t i = 0; (type = row->type(op, i)); i++) {
        if (!*type)
            *type = srv_caller_only_type(&r->who);
        if (!srv_may(r, role, *type))
            return false;
    }
    return true;
}

/* Else op->err says so. */
static bool may_do(const srv_request *r, weir_op *op)
{
    const char *name = weir__op_row(op)->name;
    unsigned    role = weir__op_row(op)->role(op);
    char        has[64], needs[64], types[100];
    if ((r->who.roles & role) && (!*r->who.types || may_in_types(r, op, role)))
        return true;
    if (*r->who.types && (r->who.roles & role))
        weir_fail(&op->err, WEIR_EREADONLY, "%s: the token %s is for jobs of the type \"%s\" alone",
                  name, r->who.name, srv_caller_types_text(&r->who, types, sizeof types));
    else
        weir_fail(&op->err, WEIR_EREADONLY, "%s: the token %s may not do this: its role is %s, "
                  "needed is %s", name, r->who.name,
                  srv_roles_text(r->who.roles, has, sizeof has),
                  srv_roles_text(role, needs, sizeof needs));
    return false;
}

/* ---- some types alone: look at the jobs that are named ---- */

static size_t count_named(batch *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->in.n; i++) {
        weir_op *op = &b->in.op[i];
        for (size_t k = 0; !op->err.code && weir__op_row(op)->job(op, k); k++)
            n++;
    }
    return n;
}

/* A GET for each job that is named, in their order. */
static void make_gets(batch *b)
{
    weir_op  *get = b->gets;
    uint64_t *id;
    for (size_t i = 0; i < b->in.n; i++) {
        weir_op *op = &b->in.op[i];
        for (size_t k = 0; !op->err.code && (id = weir__op_row(op)->job(op, k)); k++)
            *get++ = (weir_op){ .kind = WEIR_OP_GET, .u.get.id = *id };
    }
}

/* A job of another type is as if it were not there. If each job has an answer of its own, this one
 * gets an id that no job has. */
static void hide(weir_op *op, uint64_t *id, const weir_error *why)
{
    if (why->code && why->code != WEIR_ENOENT)
        op->err = *why;             /* the job may exist: the store failed */
    else if (weir__op_row(op)->each)
        *id = 0;
    else
        weir_fail(&op->err, WEIR_ENOENT, "there is no job %" PRIu64, *id);
}

enum { FIRST_LOOKS = 4, MOST_LOOKS = 128 };

/* How many jobs are looked at together: as many as have about SRV_PAGE_PART. */
static size_t looks_at_once(const batch *b)
{
    size_t fit = b->looked ? srv_parts_items(b->looked, b->look_bytes) : FIRST_LOOKS;
    size_t n = fit < MOST_LOOKS ? fit : MOST_LOOKS, left = b->n_gets - b->looked;
    return n < left ? n : left;
}

static void hide_foreign(batch *b)
{
    weir_op *get = b->gets;
    for (size_t i = 0; i < b->in.n; i++) {
        weir_op  *op = &b->in.op[i];
        uint64_t *id;
        bool      looked = !op->err.code;
        for (size_t k = 0; looked && (id = weir__op_row(op)->job(op, k)); k++, get++)
            if (get->err.code)
                hide(op, id, &get->err);
    }
}

static void run_all(srv_request *r);
static void look_on(srv_request *r);

/* Nothing is kept of a job but whether it is there for the caller. */
static void looked(srv_request *r, weir_code code, const weir_error *err)
{
    batch *b = r->state;
    size_t end = b->looked + looks_at_once(b);
    for (; b->looked < end; b->looked++) {
        weir_op        *get = &b->gets[b->looked];
        const weir_job *job = code || get->err.code ? NULL : get->u.get.job;
        bool            foreign = job && srv_caller_lacks(&r->who, job->type);
        b->look_bytes += job ? job->data_len + job->result_len : 0;
        if (code)
            get->err = *err;
        weir__op_free(get);
        if (foreign)
            weir_fail(&get->err, WEIR_ENOENT, "of another type");
    }
    look_on(r);
}

static void look_on(srv_request *r)
{
    batch       *b = r->state;
    weir_future *f = NULL;
    weir_error   err;
    if (b->looked == b->n_gets) {
        hide_foreign(b);
        run_all(r);
        return;
    }
    weir_code rc = weir__ops_run_async(srv_queue(r), b->gets + b->looked, looks_at_once(b), &f,
                                       &err);
    srv_await(r, rc, &err, f, looked);
}

static void look_first(srv_request *r)
{
    batch *b = r->state;
    b->n_gets = count_named(b);
    b->gets = b->n_gets ? srv_alloc(r, b->n_gets * sizeof *b->gets) : NULL;
    if (b->gets) {
        make_gets(b);
        look_on(r);
        return;
    }
    for (size_t i = 0; b->n_gets && i < b->in.n; i++)
        weir_fail(&b->in.op[i].err, WEIR_ENOMEM, "out of memory");
    run_all(r);
}

/* ---- running ---- */

/* A key belongs to its caller. A key that the store refuses stays as it is, for the message. */
static void scope_token(srv_request *r, weir_op *op)
{
    const weir_token **place = weir__op_row(op)->token(op);
    if (!place || !*place || !*(*place)->key || strlen((*place)->key) > WEIR_MAX_TOKEN)
        return;
    weir_token *token = srv_alloc(r, sizeof *token);
    char       *key = srv_alloc(r, WEIR_MAX_TOKEN + 1);
    if (!token || !key || !srv_once_key(r, "batch", (*place)->key, key)) {
        weir_fail(&op->err, WEIR_ENOMEM, "out of memory");
        return;
    }
    *token = **place;
    token->key = key;
    *place = token;
}

static void note_worker(srv_request *r, const weir_op *op)
{
    const weir_op_take *t = weir__op_row(op)->take(op);
    if (t && t->n)
        srv_workers_seen(r->server->workers, t->worker, t->types, weir_now(srv_queue(r)));
}

static void begin_answer(const srv_request *r, weir_buf *out)
{
    weir_batch_head head = { 0 };
    uint64_t        first;
    strcpy(head.run, srv_hub_run(r->server->hub));
    srv_hub_range(r->server->hub, &first, &head.event);
    weir__batch_answer_begin(out, &head);
}

static void answer_all(srv_request *r)
{
    batch    *b = r->state;
    weir_buf *out = &b->run.out;
    uint64_t  first, last;
    srv_audit_batch(r, b->in.op, b->in.n);
    for (size_t i = 0; i < b->in.n; i++)
        weir__op_free(&b->in.op[i]);
    srv_hub_range(r->server->hub, &first, &last);
    weir__batch_answer_event(out, last);
    weir__batch_answer_end(out);
    if (b->replay)
        srv_replay_end(r->server->replays, b->replay, out);
    srv_reply_json(r, 200, out);
}

static void run_all(srv_request *r)
{
    batch *b = r->state;
    for (size_t i = 0; i < b->in.n; i++) {
        weir_op *op = &b->in.op[i];
        if (!op->err.code) {
            scope_token(r, op);
            note_worker(r, op);
        }
    }
    b->run = (srv_batch_run){ .op = b->in.op, .n = b->in.n, .answered = answer_all,
                              .begun = b->replay != NULL };
    begin_answer(r, &b->run.out);
    srv_batch_run_start(r, &b->run);
}

/* ---- POST /v1/batch ---- */

static void *alloc(void *ctx, size_t size)
{
    return srv_alloc(ctx, size);
}

/* The batch is for another run of the server: perhaps it was done then. Say which run this is. */
static void reply_other_run(srv_request *r)
{
    weir_buf out = { 0 };
    begin_answer(r, &out);
    weir__batch_answer_end(&out);
    srv_reply_json(r, WEIR_BATCH_OTHER_RUN, &out);
}

static void handle_batch(srv_request *r)
{
    weir_reader in = { .alloc = alloc, .ctx = r };
    batch      *b = srv_alloc(r, sizeof *b);
    if (!b) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    if (weir__batch_read(&in, r->body, r->body_len, &b->in)) {
        srv_body_refuse(r, &in);
        return;
    }
    if (b->in.run && strcmp(b->in.run, srv_hub_run(r->server->hub)) != 0) {
        reply_other_run(r);
        return;
    }
    if (b->in.number) {
        srv_replay *replay = srv_replay_begin(r->server->replays, r, b->in.caller, b->in.number);
        if (!replay)
            return;
        b->replay = replay;
    }
    r->state = b;
    for (size_t i = 0; i < b->in.n; i++)
        may_do(r, &b->in.op[i]);
    if (*r->who.types)
        look_first(r);
    else
        run_all(r);
}

const srv_route srv_batch_routes[] = {
    { "POST", "/v1/batch", WEIR_ROLE_ALL, handle_batch, SRV_MAX_BODY, NULL, 0,
      "Operations of a queue whose store this server is, done together", "Batch", "BatchAnswer",
      200 },
    { 0 }
};
