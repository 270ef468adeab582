/* own.c - what an operation borrows from its caller, copied for a call that returns before the
 * operation has run. One entry per kind that borrows. */
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

static const weir_job *copy_job(copier *c, const weir_job *from)
{
    weir_job *j = get(c, sizeof *j);
    if (!j)
        return NULL;
    *j = *from;
    j->type = copy_text(c, from->type);
    j->data = copy(c, from->data, from->data_len);
    j->result = copy(c, from->result, from->result_len);
    j->error = copy_text(c, from->error);
    j->progress_data = copy(c, from->progress_data, from->progress_data_len);
    j->unique = copy_text(c, from->unique);
    j->worker = copy_text(c, from->worker);
    j->search_keys = copy_text(c, from->search_keys);
    return j;
}

static const weir_line *copy_lines(copier *c, const weir_line *from, size_t n)
{
    weir_line *lines = n ? get(c, n * sizeof *lines) : NULL;
    for (size_t i = 0; i < n && !c->failed; i++) {
        lines[i] = from[i];
        lines[i].text = copy_text(c, from[i].text);
    }
    return lines;
}

static void own_import(copier *c, weir_op *op)
{
    weir_op_import *in = &op->u.import;
    weir_incoming *jobs = get(c, in->n * sizeof *jobs);
    for (size_t i = 0; i < in->n && !c->failed; i++) {
        const weir_incoming *from = &in->jobs[i];
        jobs[i] = *from;
        jobs[i].job = copy_job(c, from->job);
        jobs[i].lines = copy_lines(c, from->lines, from->n_lines);
    }
    in->jobs = jobs;
    in->out = get(c, in->n * sizeof *in->out);
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

/* FINISH, RENEW, PROGRESS and TICK are submitted by the runtime alone, with memory of its own. */
static void (*const own[WEIR_OP_KINDS])(copier *c, weir_op *op) = {
    [WEIR_OP_ADD]       = own_add,
    [WEIR_OP_TAKE]      = own_take,
    [WEIR_OP_LOG]       = own_log,
    [WEIR_OP_UPDATE]    = own_update,
    [WEIR_OP_LIST]      = own_list,
    [WEIR_OP_CONFIGURE] = own_configure,
    [WEIR_OP_IMPORT]    = own_import,
};

bool weir__op_own(weir_op *op, weir_reply *to, struct weir__chunk **chunks)
{
    copier c = { .chunks = chunks };
    to->type = copy_text(&c, to->type);
    if (own[op->kind])
        own[op->kind](&c, op);
    return !c.failed;
}
