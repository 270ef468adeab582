/* api_batch.c - POST /v1/batch: operations of a queue elsewhere, whose store this server is. Each
 * becomes a call of the library; they are started in their order and answered together. wire/wire.h
 * has the format, replay.h what becomes of a batch that comes twice. */
#include <inttypes.h>
#include <string.h>

#include "server/api.h"
#include "server/audit_batch.h"
#include "server/body.h"
#include "server/hub.h"
#include "server/inner.h"
#include "server/once.h"
#include "server/replay.h"
#include "server/workers.h"
#include "weir/remote.h"
#include "wire/wire.h"

typedef struct batch {
    wire_batch    in;
    srv_replay   *replay;           /* NULL: it need not be remembered */
    weir_error   *more;             /* of the second call that a CONFIGURE may need */
    weir_altered *altered;          /* of UPDATEs */
    weir_ending  *endings;          /* of FINISHes, all of the batch */
    weir_taking  *next;
    weir_ended   *ended;
    weir_job    **seen;             /* for a token of some types: jobs that are named */
    size_t        n_seen;
    weir_error   *seen_err;
} batch;

/* ---- who may do it ---- */

static const unsigned roles[WEIR_OP_KINDS] = {
    [WEIR_OP_ADD] = SRV_PRODUCE,
    [WEIR_OP_TAKE] = SRV_WORK,
    [WEIR_OP_FINISH] = SRV_WORK,
    [WEIR_OP_RENEW] = SRV_WORK,
    [WEIR_OP_PROGRESS] = SRV_WORK,
    [WEIR_OP_LOG] = SRV_WORK,
    [WEIR_OP_TICK] = SRV_ADMIN,
    [WEIR_OP_UPDATE] = SRV_ADMIN,
    [WEIR_OP_REMOVE] = SRV_ADMIN,
    [WEIR_OP_CONFIGURE] = SRV_ADMIN,
    [WEIR_OP_IMPORT] = SRV_ADMIN,
    [WEIR_OP_GET] = SRV_READ,
    [WEIR_OP_LIST] = SRV_READ,
    [WEIR_OP_LOGS] = SRV_READ,
    [WEIR_OP_STATS] = SRV_READ,
    [WEIR_OP_CHECK] = SRV_ADMIN,
};

/* What workers do with their jobs: set values, and nothing else. */
static bool only_sets_values(const weir_op *op)
{
    const weir_change *c = &op->u.update.change;
    return op->kind == WEIR_OP_UPDATE && c->values && !c->set_priority && !c->set_delay &&
           !c->run_at && !c->data && !c->state;
}

static unsigned role_for(const weir_op *op)
{
    return only_sets_values(op) ? SRV_WORK : roles[op->kind];
}

static bool may_all(const srv_request *r, unsigned role, const char *const *types, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!srv_may(r, role, types[i]))
            return false;
    }
    return true;
}

static bool may_add(const srv_request *r, const weir_op_add *add)
{
    for (size_t i = 0; i < add->n; i++) {
        if (!srv_may(r, SRV_PRODUCE, add->specs[i].type))
            return false;
    }
    return true;
}

static bool may_import(const srv_request *r, const weir_op_import *in)
{
    for (size_t i = 0; i < in->n; i++) {
        if (!srv_may(r, SRV_ADMIN, in->jobs[i].job->type))
            return false;
    }
    return true;
}

/* What a token that is bound to types may do of this; which job it is about is another matter. */
static bool may_in_type(const srv_request *r, weir_op *op)
{
    switch (op->kind) {
    case WEIR_OP_ADD:
        return may_add(r, &op->u.add);
    case WEIR_OP_TAKE:
        return may_all(r, SRV_WORK, op->u.take.types, op->u.take.n_types);
    case WEIR_OP_FINISH:
        return may_all(r, SRV_WORK, op->u.finish.next.types, op->u.finish.next.n_types);
    case WEIR_OP_CONFIGURE:
        return srv_may(r, SRV_ADMIN, op->u.configure.type);
    case WEIR_OP_IMPORT:
        return may_import(r, &op->u.import);
    case WEIR_OP_LIST:
        if (!op->u.list.query.type)
            op->u.list.query.type = srv_caller_only_type(&r->who);
        return srv_may(r, SRV_READ, op->u.list.query.type);
    case WEIR_OP_TICK:
    case WEIR_OP_CHECK:
        return false;
    default:
        return true;
    }
}

/* Else op->err says so. */
static bool may_do(const srv_request *r, weir_op *op)
{
    unsigned role = role_for(op);
    char     has[64], needs[64], types[100];
    if ((r->who.roles & role) && (!*r->who.types || may_in_type(r, op)))
        return true;
    if (*r->who.types && (r->who.roles & role))
        weir_fail(&op->err, WEIR_EREADONLY, "%s: the token %s is for jobs of the type \"%s\" alone",
                  weir__op_info[op->kind].name, r->who.name,
                  srv_caller_types_text(&r->who, types, sizeof types));
    else
        weir_fail(&op->err, WEIR_EREADONLY, "%s: the token %s may not do this: its role is %s, "
                  "needed is %s", weir__op_info[op->kind].name, r->who.name,
                  srv_roles_text(r->who.roles, has, sizeof has),
                  srv_roles_text(role, needs, sizeof needs));
    return false;
}

/* ---- some types alone: look at the jobs that are named ---- */

/* How many jobs it names, and their ids. */
static size_t ids_of(const weir_op *op, size_t i, uint64_t *id)
{
    switch (op->kind) {
    case WEIR_OP_FINISH:   *id = op->u.finish.id;   return 1;
    case WEIR_OP_PROGRESS: *id = op->u.progress.id; return 1;
    case WEIR_OP_LOG:      *id = op->u.log.id;      return 1;
    case WEIR_OP_UPDATE:   *id = op->u.update.id;   return 1;
    case WEIR_OP_REMOVE:   *id = op->u.remove.id;   return 1;
    case WEIR_OP_GET:      *id = op->u.get.id;      return 1;
    case WEIR_OP_LOGS:     *id = op->u.logs.id;     return 1;
    case WEIR_OP_RENEW:
        *id = i < op->u.renew.n ? op->u.renew.items[i].id : 0;
        return op->u.renew.n;
    default:
        return 0;
    }
}

/* Jobs of other types are as if they were not there. Of a RENEW, whose leases have an answer each,
 * the id becomes one that there is not. */
static void hide_foreign(srv_request *r, batch *b)
{
    size_t k = 0;
    for (size_t i = 0; i < b->in.n; i++) {
        weir_op *op = &b->in.op[i];
        uint64_t id;
        size_t   n = op->err.code ? 0 : ids_of(op, 0, &id);
        for (size_t j = 0; j < n; j++, k++) {
            const weir_job   *job = b->seen[k];
            const weir_error *err = &b->seen_err[k];
            ids_of(op, j, &id);
            if (job && !srv_caller_lacks(&r->who, job->type))
                continue;
            if (err->code && err->code != WEIR_ENOENT)
                op->err = *err;         /* it may be there: the store could not tell */
            else if (op->kind == WEIR_OP_RENEW)
                op->u.renew.items[j].id = 0;
            else
                weir_fail(&op->err, WEIR_ENOENT, "there is no job %" PRIu64, id);
        }
    }
    for (k = 0; k < b->n_seen; k++)
        weir_job_release(b->seen[k]);
}

static void start_all(srv_request *r);

static void seen_all(srv_request *r, weir_code code, const weir_error *err)
{
    (void)code;
    (void)err;
    hide_foreign(r, r->state);
    start_all(r);
}

static void look_first(srv_request *r)
{
    batch   *b = r->state;
    uint64_t id;
    for (size_t i = 0; i < b->in.n; i++)
        b->n_seen += b->in.op[i].err.code ? 0 : ids_of(&b->in.op[i], 0, &id);
    if (!b->n_seen) {
        start_all(r);
        return;
    }
    b->seen = srv_alloc(r, b->n_seen * sizeof *b->seen);
    b->seen_err = srv_alloc(r, b->n_seen * sizeof *b->seen_err);
    if (!b->seen || !b->seen_err) {
        for (size_t i = 0; i < b->in.n; i++)
            weir_fail(&b->in.op[i].err, WEIR_ENOMEM, "out of memory");
        start_all(r);
        return;
    }
    srv_gather(r, seen_all);
    for (size_t i = 0, k = 0; i < b->in.n; i++) {
        weir_op *op = &b->in.op[i];
        for (size_t j = 0; !op->err.code && j < ids_of(op, j, &id); j++, k++) {
            weir_future *f = NULL;
            ids_of(op, j, &id);
            weir_code rc = weir_get_async(srv_queue(r), id, &b->seen[k], &f, &b->seen_err[k]);
            srv_join(r, rc, f, &b->seen_err[k]);
        }
    }
    srv_gathered(r);
}

/* ---- starting ---- */

typedef struct starter {
    srv_request *r;
    batch       *b;
    weir_queue  *q;
    size_t       i;                 /* which operation */
} starter;

typedef weir_code start_fn(starter *s, weir_op *op, weir_future **f);

/* A key belongs to its caller. One that the store refuses stays as it is, for the message. */
static weir_code start_add(starter *s, weir_op *op, weir_future **f)
{
    weir_op_add *a = &op->u.add;
    weir_token   token;
    char         key[WEIR_MAX_TOKEN + 1];
    if (a->token && *a->token->key && strlen(a->token->key) <= WEIR_MAX_TOKEN) {
        token = *a->token;
        token.key = key;
        if (!srv_once_key(s->r, "batch", a->token->key, key))
            return weir_fail(&op->err, WEIR_ENOMEM, "out of memory");
        return weir_add_once_async(s->q, &token, a->specs, a->n, a->out, f, &op->err);
    }
    return weir_add_once_async(s->q, a->token, a->specs, a->n, a->out, f, &op->err);
}

static weir_taking taking_of(const weir_op_take *t)
{
    return (weir_taking){ .types = t->types, .n = t->n, .lease_ms = t->lease_ms,
                          .worker = t->worker, .busy = t->busy };
}

static weir_code start_take(starter *s, weir_op *op, weir_future **f)
{
    weir_op_take *t = &op->u.take;
    weir_taking   what = taking_of(t);
    what.suspect_waits = &t->suspect_waits;
    srv_workers_seen(s->r->server->workers, t->worker, t->types, weir_now(s->q));
    return weir_take_for_async(s->q, &what, t->jobs, &t->n_jobs, f, &op->err);
}

static weir_code start_renew(starter *s, weir_op *op, weir_future **f)
{
    return weir_renew_async(s->q, op->u.renew.items, op->u.renew.n, f, &op->err);
}

static weir_code start_progress(starter *s, weir_op *op, weir_future **f)
{
    const weir_op_progress *p = &op->u.progress;
    return weir_progress_async(s->q, p->id, p->delivery, p->percent, p->data, p->len, f, &op->err);
}

static weir_code start_log(starter *s, weir_op *op, weir_future **f)
{
    const weir_op_log *l = &op->u.log;
    return weir_log_by_async(s->q, l->id, l->delivery, l->text, l->len, f, &op->err);
}

static weir_code start_tick(starter *s, weir_op *op, weir_future **f)
{
    weir_op_tick *t = &op->u.tick;
    return weir_tick_async(s->q, t->limit, &t->changed, &t->next_at, f, &op->err);
}

static weir_code start_update(starter *s, weir_op *op, weir_future **f)
{
    weir_op_update *u = &op->u.update;
    u->change.from = u->from;
    return weir_alter_async(s->q, u->id, &u->change, &s->b->altered[s->i], f, &op->err);
}

static weir_code start_remove(starter *s, weir_op *op, weir_future **f)
{
    return weir_remove_async(s->q, op->u.remove.id, f, &op->err);
}

/* It may say two things at once, which the library has two calls for. */
static weir_code start_configure(starter *s, weir_op *op, weir_future **f)
{
    const weir_op_configure *c = &op->u.configure;
    if (!c->set_paused)
        return weir_configure_async(s->q, c->type, c->settings, f, &op->err);
    if (c->settings) {
        weir_error  *err = &s->b->more[s->i];
        weir_future *first = NULL;
        weir_code    rc = weir_configure_async(s->q, c->type, c->settings, &first, err);
        srv_join(s->r, rc, first, err);
    }
    return c->paused ? weir_pause_async(s->q, c->type, f, &op->err)
                     : weir_resume_async(s->q, c->type, f, &op->err);
}

static weir_code start_import(starter *s, weir_op *op, weir_future **f)
{
    weir_op_import *in = &op->u.import;
    return weir_import_async(s->q, in->jobs, in->n, in->out, f, &op->err);
}

static weir_code start_get(starter *s, weir_op *op, weir_future **f)
{
    return weir_get_async(s->q, op->u.get.id, &op->u.get.job, f, &op->err);
}

static weir_code start_list(starter *s, weir_op *op, weir_future **f)
{
    return weir_list_async(s->q, &op->u.list.query, &op->u.list.page, f, &op->err);
}

static weir_code start_logs(starter *s, weir_op *op, weir_future **f)
{
    weir_op_logs *l = &op->u.logs;
    return weir_logs_async(s->q, l->id, l->after, l->limit, &l->lines, f, &op->err);
}

static weir_code start_stats(starter *s, weir_op *op, weir_future **f)
{
    return weir_get_stats_async(s->q, &op->u.stats.stats, f, &op->err);
}

static weir_code start_check(starter *s, weir_op *op, weir_future **f)
{
    return weir_check_async(s->q, op->u.check.mend, &op->u.check.report, f, &op->err);
}

#define start_finish NULL           /* in lots: start_finishes() */
static start_fn *const starts[WEIR_OP_KINDS] = {
#define X(kind, member, writes) start_##member,
    WEIR_OPS(X)
#undef X
};

/* FINISHes that follow each other go to the store together. Answers how many. */
static size_t start_finishes(starter *s)
{
    batch *b = s->b;
    size_t n = 0;
    for (; s->i + n < b->in.n; n++) {
        const weir_op        *op = &b->in.op[s->i + n];
        const weir_op_finish *f = &op->u.finish;
        if (op->kind != WEIR_OP_FINISH || op->err.code)
            break;
        b->next[s->i + n] = taking_of(&f->next);
        b->endings[s->i + n] = (weir_ending){
            .id = f->id, .delivery = f->delivery, .outcome = f->outcome, .text = f->text,
            .len = f->len, .next = f->next.n ? &b->next[s->i + n] : NULL, .jobs = f->next.jobs };
        if (f->next.n)
            srv_workers_seen(s->r->server->workers, f->next.worker, f->next.types, weir_now(s->q));
    }
    weir_error  *err = &b->more[s->i];
    weir_future *future = NULL;
    weir_code    rc = weir_finish_async(s->q, &b->endings[s->i], n, &b->ended[s->i], &future, err);
    srv_join(s->r, rc, future, err);
    return n;
}

static void answer_all(srv_request *r, weir_code code, const weir_error *err);

static void start_all(srv_request *r)
{
    batch  *b = r->state;
    starter s = { .r = r, .b = b, .q = srv_queue(r) };
    srv_gather(r, answer_all);
    while (s.i < b->in.n) {
        weir_op *op = &b->in.op[s.i];
        if (op->err.code) {
            s.i++;
        } else if (op->kind == WEIR_OP_FINISH) {
            s.i += start_finishes(&s);
        } else {
            weir_future *f = NULL;
            weir_code    rc = starts[op->kind](&s, op, &f);
            srv_join(r, rc, f, &op->err);
            s.i++;
        }
    }
    srv_gathered(r);
}

/* ---- answering ---- */

/* A token of some types sees their numbers alone. */
static void hide_other_types(const srv_request *r, weir_op *op)
{
    if (!srv_own_stats(r, &op->u.stats.stats))
        weir_fail(&op->err, WEIR_ENOMEM, "out of memory");
}

/* Where an answer did not go into the operation by itself. */
static void collect(const srv_request *r, batch *b)
{
    for (size_t i = 0; i < b->in.n; i++) {
        weir_op *op = &b->in.op[i];
        if (op->kind == WEIR_OP_FINISH && !op->err.code) {
            op->err = b->ended[i].err;
            op->u.finish.state = b->ended[i].state;
            op->u.finish.next.n_jobs = b->ended[i].n_jobs;
            op->u.finish.next.suspect_waits = b->ended[i].suspect_waits;
        } else if (op->kind == WEIR_OP_UPDATE) {
            op->u.update.old_state = b->altered[i].from;
            op->u.update.new_state = b->altered[i].to;
        } else if (op->kind == WEIR_OP_CONFIGURE && !op->err.code) {
            op->err = b->more[i];
        } else if (op->kind == WEIR_OP_STATS && !op->err.code && *r->who.types) {
            hide_other_types(r, op);
        }
    }
}

static void set_head(const srv_request *r, wire_head *head)
{
    uint64_t first;
    strcpy(head->run, srv_hub_run(r->server->hub));
    srv_hub_range(r->server->hub, &first, &head->event);
}

static void answer_all(srv_request *r, weir_code code, const weir_error *err)
{
    batch    *b = r->state;
    wire_head head = { 0 };
    weir_buf  out = { 0 };
    (void)code;
    (void)err;
    collect(r, b);
    srv_audit_batch(r, b->in.op, b->in.n);
    set_head(r, &head);
    weir__wire_reply(&out, &head);
    for (size_t i = 0; i < b->in.n; i++) {
        weir__wire_answer(&out, &b->in.op[i]);
        weir__wire_drop(&b->in.op[i]);
    }
    weir__wire_replied(&out);
    if (b->replay)
        srv_replay_end(r->server->replays, b->replay, &out);
    srv_reply_json(r, 200, &out);
}

/* ---- POST /v1/batch ---- */

static void *alloc(void *ctx, size_t size)
{
    return srv_alloc(ctx, size);
}

static bool make_room(srv_request *r, batch *b)
{
    size_t n = b->in.n ? b->in.n : 1;
    b->more = srv_alloc(r, n * sizeof *b->more);
    b->altered = srv_alloc(r, n * sizeof *b->altered);
    b->endings = srv_alloc(r, n * sizeof *b->endings);
    b->next = srv_alloc(r, n * sizeof *b->next);
    b->ended = srv_alloc(r, n * sizeof *b->ended);
    return b->more && b->altered && b->endings && b->next && b->ended;
}

/* The batch is for another run of the server: perhaps it was done then. Say which run this is. */
static void reply_other_run(srv_request *r)
{
    wire_head head = { 0 };
    weir_buf  out = { 0 };
    set_head(r, &head);
    weir__wire_reply(&out, &head);
    weir__wire_replied(&out);
    srv_reply_json(r, WIRE_OTHER_RUN, &out);
}

static void handle_batch(srv_request *r)
{
    weir_reader in = { .alloc = alloc, .ctx = r };
    batch      *b = srv_alloc(r, sizeof *b);
    if (!b) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    if (weir__wire_read(&in, r->body, r->body_len, &b->in)) {
        srv_body_refuse(r, &in);
        return;
    }
    if (b->in.run && strcmp(b->in.run, srv_hub_run(r->server->hub)) != 0) {
        reply_other_run(r);
        return;
    }
    if (!make_room(r, b)) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
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
        start_all(r);
}

const srv_route srv_batch_routes[] = {
    { "POST", "/v1/batch", SRV_ALL, handle_batch, SRV_MAX_BODY, NULL, 0,
      "Operations of a queue whose store this server is, done together", "Batch", "BatchAnswer",
      200 },
    { 0 }
};
