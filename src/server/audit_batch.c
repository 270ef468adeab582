/* audit_batch.c - what the operations of POST /v1/batch were, for the audit log: see audit.h.
 * Operations of one kind that follow each other and end alike are one entry. */
#include <string.h>

#include "server/audit_batch.h"
#include "server/inner.h"

/* Names of operations that change something; the second list is recorded with "all" alone. A tick
 * is a queue's own clock, no action of anybody. */
static const char *const admin_names[WEIR_OP_KINDS] = {
    [WEIR_OP_UPDATE] = "job.change",
    [WEIR_OP_REMOVE] = "job.delete",
    [WEIR_OP_CONFIGURE] = "type.settings",
    [WEIR_OP_IMPORT] = "job.import",
    [WEIR_OP_CHECK] = "store.check",
};
static const char *const work_names[WEIR_OP_KINDS] = {
    [WEIR_OP_ADD] = "job.add",
    [WEIR_OP_TAKE] = "job.take",
    [WEIR_OP_FINISH] = "job.finish",
};

static const char *name_of(const srv_request *r, const weir_op *op)
{
    const char *name = admin_names[op->kind];
    if (op->kind == WEIR_OP_CONFIGURE && op->u.configure.set_paused)
        return op->u.configure.paused ? "type.pause" : "type.resume";
    return name || r->server->opt.audit != SRV_AUDIT_ALL ? name : work_names[op->kind];
}

/* Jobs of an operation, and the i-th of their ids; 0: it has none. */
static size_t jobs_of(const weir_op *op, size_t i, uint64_t *id)
{
    *id = 0;
    switch (op->kind) {
    case WEIR_OP_UPDATE:
        *id = op->u.update.id;
        return 1;
    case WEIR_OP_REMOVE:
        *id = op->u.remove.id;
        return 1;
    case WEIR_OP_FINISH:
        *id = op->u.finish.id;
        return 1;
    case WEIR_OP_ADD:
        *id = i < op->u.add.n ? op->u.add.out[i].id : 0;
        return op->u.add.n;
    case WEIR_OP_TAKE:
        *id = i < op->u.take.n_jobs ? op->u.take.jobs[i]->id : 0;
        return op->u.take.n_jobs;
    case WEIR_OP_IMPORT:
        return op->u.import.n;
    default:
        return 0;
    }
}

static void add_jobs(const weir_op *op, srv_audit_item *item, uint64_t *ids)
{
    uint64_t id;
    size_t   n = jobs_of(op, 0, &id);
    item->count += n;
    for (size_t i = 0; i < n && item->n_ids < SRV_AUDIT_IDS; i++) {
        jobs_of(op, i, &id);
        if (id)
            ids[item->n_ids++] = id;
    }
}

/* What an entry says besides ids. */
static const char *detail_of(const weir_op *op)
{
    if (op->kind == WEIR_OP_CONFIGURE)
        return op->u.configure.type;
    if (op->kind == WEIR_OP_UPDATE && op->u.update.change.state)
        return weir_state_name(op->u.update.change.state);
    return NULL;
}

static bool alike(const weir_op *a, const weir_op *b)
{
    const char *x = detail_of(a), *y = detail_of(b);
    return a->kind == b->kind && a->err.code == b->err.code &&
           (x == y || (x && y && !strcmp(x, y)));
}

void srv_audit_batch(srv_request *r, const weir_op *op, size_t n)
{
    uint64_t ids[SRV_AUDIT_IDS];
    if (!r->server->audit)
        return;
    for (size_t i = 0, next; i < n; i = next) {
        const char    *action = name_of(r, &op[i]);
        srv_audit_item item = { .action = action, .detail = detail_of(&op[i]), .ids = ids,
                                .status = weir_code_http(op[i].err.code) };
        for (next = i; next < n && alike(&op[i], &op[next]); next++)
            if (action)
                add_jobs(&op[next], &item, ids);
        if (action && (item.count || op[i].kind != WEIR_OP_TAKE))
            srv_audit_also(r, &item);
    }
}
