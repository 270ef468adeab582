/* audit_batch.c - what the operations of POST /v1/batch were, for the audit log: see audit.h.
 * Operations of one kind that follow each other and end alike are one entry. */
#include <string.h>

#include "server/access/audit_batch.h"
#include "server/http/inner.h"

/* Actions of administrators are recorded; the rest with "all" alone. */
static const char *name_of(const srv_request *r, const weir_op *op)
{
    const weir_op_row *row = weir__op_row(op);
    bool               recorded = r->server->opt.audit == SRV_AUDIT_ALL ||
                                  row->role(op) == WEIR_ROLE_ADMIN;
    return recorded ? row->action(op) : NULL;
}

/* The i-th job that it names, adds or takes; *id is 0 when that is not known. */
static bool job_of(weir_op *op, size_t i, uint64_t *id)
{
    const uint64_t *named = weir__op_row(op)->job(op, i);
    if (!named)
        return weir__op_row(op)->result(op, i, id);
    *id = *named;
    return true;
}

static void add_jobs(weir_op *op, srv_audit_item *item, uint64_t *ids)
{
    uint64_t id;
    for (size_t i = 0; job_of(op, i, &id); i++) {
        item->count++;
        if (id && item->n_ids < SRV_AUDIT_IDS)
            ids[item->n_ids++] = id;
    }
}

static bool alike(const weir_op *a, const weir_op *b)
{
    const char *x = weir__op_row(a)->detail(a), *y = weir__op_row(b)->detail(b);
    return a->kind == b->kind && a->err.code == b->err.code &&
           (x == y || (x && y && !strcmp(x, y)));
}

void srv_audit_batch(srv_request *r, weir_op *op, size_t n)
{
    uint64_t ids[SRV_AUDIT_IDS];
    if (!r->server->audit)
        return;
    for (size_t i = 0, next; i < n; i = next) {
        const char    *action = name_of(r, &op[i]);
        srv_audit_item item = { .action = action, .ids = ids,
                                .detail = weir__op_row(&op[i])->detail(&op[i]),
                                .status = weir_code_http(op[i].err.code) };
        for (next = i; next < n && alike(&op[i], &op[next]); next++)
            if (action)
                add_jobs(&op[next], &item, ids);
        bool nothing = !item.count && weir__op_row(&op[i])->take(&op[i]);   /* none was taken */
        if (action && !nothing)
            srv_audit_also(r, &item);
    }
}
