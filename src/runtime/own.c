/* own.c - what an operation borrows from its caller, copied for a call that returns before the
 * operation has run; and what it leaves when nobody wants its answer. One entry per kind. */
#include <stdlib.h>
#include <string.h>

#include "runtime/future.h"

struct weir__chunk {
    struct weir__chunk *next;
    max_align_t         bytes[];
};

void weir__chunks_free(struct weir__chunk *c)
{
    while (c) {
        struct weir__chunk *next = c->next;
        free(c);
        c = next;
    }
}

typedef struct copier {
    struct weir__chunk **chunks;
    bool                 failed;
} copier;

static void *get(copier *c, size_t size)
{
    struct weir__chunk *chunk = malloc(sizeof *chunk + (size ? size : 1));
    if (!chunk) {
        c->failed = true;
        return NULL;
    }
    chunk->next = *c->chunks;
    *c->chunks = chunk;
    return chunk->bytes;
}

static const void *copy(copier *c, const void *bytes, size_t n)
{
    void *p = bytes ? get(c, n) : NULL;
    return p ? memcpy(p, bytes, n) : NULL;
}

static const char *copy_text(copier *c, const char *text)
{
    return text ? copy(c, text, strlen(text) + 1) : NULL;
}

static void own_add(copier *c, weir_op *op)
{
    weir_op_add *add = &op->u.add;
    weir_spec *specs = get(c, add->n * sizeof *specs);
    for (size_t i = 0; i < add->n && !c->failed; i++) {
        const weir_spec *from = &add->specs[i];
        specs[i] = *from;
        specs[i].type = copy_text(c, from->type);
        specs[i].data_len = from->data_len || !from->data ? from->data_len : strlen(from->data);
        specs[i].data = copy(c, from->data, specs[i].data_len);
        specs[i].unique = copy_text(c, from->unique);
        specs[i].search_keys = copy_text(c, from->search_keys);
    }
    add->specs = specs;
    add->out = get(c, add->n * sizeof *add->out);
}

static void own_take(copier *c, weir_op *op)
{
    weir_op_take *take = &op->u.take;
    const char **types = get(c, take->n_types * sizeof *types);
    for (size_t i = 0; i < take->n_types && !c->failed; i++)
        types[i] = copy_text(c, take->types[i]);
    take->types = types;
    take->worker = copy_text(c, take->worker);
    take->jobs = get(c, take->n * sizeof *take->jobs);
}

static void own_log(copier *c, weir_op *op)
{
    op->u.log.text = copy(c, op->u.log.text, op->u.log.len);
}

static void own_update(copier *c, weir_op *op)
{
    op->u.update.change.data = copy(c, op->u.update.change.data, op->u.update.change.data_len);
}

static void own_list(copier *c, weir_op *op)
{
    op->u.list.query.type = copy_text(c, op->u.list.query.type);
    op->u.list.query.search = copy_text(c, op->u.list.query.search);
}

static void own_configure(copier *c, weir_op *op)
{
    weir_op_configure *cfg = &op->u.configure;
    cfg->type = copy_text(c, cfg->type);
    cfg->settings = copy(c, cfg->settings, sizeof *cfg->settings);
}

static void discard_take(weir_op *op)
{
    for (size_t i = 0; i < op->u.take.n_jobs; i++)
        weir_job_release(op->u.take.jobs[i]);      /* their leases will run out */
}

static void discard_get(weir_op *op)
{
    weir_job_release(op->u.get.job);
}

static void discard_list(weir_op *op)
{
    weir_page_release(op->u.list.page);
}

static void discard_logs(weir_op *op)
{
    weir_lines_release(op->u.logs.lines);
}

static void discard_stats(weir_op *op)
{
    weir_stats_release(op->u.stats.stats);
}

static void discard_check(weir_op *op)
{
    weir_report_release(op->u.check.report);
}

/* FINISH, RENEW, PROGRESS and TICK are submitted by the runtime alone, with memory of its own. */
static const struct {
    void (*own)(copier *c, weir_op *op);
    void (*discard)(weir_op *op);
} by_kind[WEIR_OP_KINDS] = {
    [WEIR_OP_ADD]       = { own_add, NULL },
    [WEIR_OP_TAKE]      = { own_take, discard_take },
    [WEIR_OP_LOG]       = { own_log, NULL },
    [WEIR_OP_UPDATE]    = { own_update, NULL },
    [WEIR_OP_LIST]      = { own_list, discard_list },
    [WEIR_OP_CONFIGURE] = { own_configure, NULL },
    [WEIR_OP_GET]       = { NULL, discard_get },
    [WEIR_OP_LOGS]      = { NULL, discard_logs },
    [WEIR_OP_STATS]     = { NULL, discard_stats },
    [WEIR_OP_CHECK]     = { NULL, discard_check },
};

bool weir__op_own(weir_op *op, weir_reply *to, struct weir__chunk **chunks)
{
    copier c = { .chunks = chunks };
    to->type = copy_text(&c, to->type);
    if (by_kind[op->kind].own)
        by_kind[op->kind].own(&c, op);
    return !c.failed;
}

void weir__op_discard(weir_op *op)
{
    if (by_kind[op->kind].discard)
        by_kind[op->kind].discard(op);
}
