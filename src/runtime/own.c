/* own.c - what an operation borrows from its caller, copied into one block for a call that returns
 * before the operation has run.
 *
 * One function per kind that borrows walks over its members, twice: first it only adds up what the
 * copies take, then there is a block and each member is copied and pointed at its copy. While it
 * counts, nothing but the operation itself is written to. */
#include <stdalign.h>
#include <string.h>

#include "core/job_fields.h"
#include "runtime/future.h"

typedef struct copier {
    char  *block;       /* NULL: only count */
    size_t used;
} copier;

static size_t aligned(size_t n)
{
    return (n + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
}

/* Room for something that is filled in elsewhere; NULL while counting. */
static void *room(copier *c, size_t size)
{
    c->used = aligned(c->used);
    void *p = c->block ? c->block + c->used : NULL;
    c->used += size;
    return p;
}

/* A copy of an array, whose members may then be pointed at copies of theirs; while counting the
 * array itself, which is not to be written to. */
static void *array(copier *c, const void *from, size_t size)
{
    void *p = room(c, size);
    return p && size ? memcpy(p, from, size) : (void *)(uintptr_t)from;
}

static void bytes(copier *c, const char **member, size_t n)
{
    if (!*member)
        return;
    if (c->block)
        *member = memcpy(c->block + c->used, *member, n);
    c->used += n;
}

static void text(copier *c, const char **member)
{
    if (*member)
        bytes(c, member, strlen(*member) + 1);
}

static void own_add(copier *c, weir_op *op)
{
    weir_op_add *add = &op->u.add;
    weir_spec   *specs = array(c, add->specs, add->n * sizeof *specs);
    for (size_t i = 0; i < add->n; i++) {
        weir_spec *s = &specs[i];
#define TEXT(member, ...) text(c, &s->member);
#define BYTES(member, ...)                                                                        \
    if (s->member##_len)                                                                          \
        bytes(c, &s->member, s->member##_len);                                                    \
    else                                                                                          \
        text(c, &s->member);
        WEIR_SPEC_TEXTS(TEXT)
        WEIR_SPEC_BYTES(BYTES)
#undef TEXT
#undef BYTES
    }
    add->specs = specs;
    if (add->token) {
        weir_token *token = array(c, add->token, sizeof *token);
        text(c, &token->key);
        add->token = token;
    }
    add->out = room(c, add->n * sizeof *add->out);
}

static void own_taking(copier *c, weir_op_take *take)
{
    const char **types = array(c, take->types, take->n_types * sizeof *types);
    for (size_t i = 0; i < take->n_types; i++)
        text(c, &types[i]);
    take->types = types;
    text(c, &take->worker);
    take->jobs = room(c, take->n * sizeof *take->jobs);
}

static void own_take(copier *c, weir_op *op)
{
    own_taking(c, &op->u.take);
}

static void own_finish(copier *c, weir_op *op)
{
    bytes(c, &op->u.finish.text, op->u.finish.len);
    if (op->u.finish.next.n)
        own_taking(c, &op->u.finish.next);
}

static void own_renew(copier *c, weir_op *op)
{
    op->u.renew.items = array(c, op->u.renew.items, op->u.renew.n * sizeof *op->u.renew.items);
}

static void own_progress(copier *c, weir_op *op)
{
    bytes(c, &op->u.progress.data, op->u.progress.len);
}

static void own_log(copier *c, weir_op *op)
{
    bytes(c, &op->u.log.text, op->u.log.len);
}

static void own_update(copier *c, weir_op *op)
{
    bytes(c, &op->u.update.change.data, op->u.update.change.data_len);
    bytes(c, &op->u.update.change.values, op->u.update.change.values_len);
    text(c, &op->u.update.change.worker);
}

static void own_job(copier *c, weir_job *j)
{
#define TEXT(member, ...)  text(c, &j->member);
#define BYTES(member, ...) bytes(c, &j->member, j->member##_len);
    WEIR_JOB_TEXTS(TEXT)
    WEIR_JOB_BYTES(BYTES)
#undef TEXT
#undef BYTES
}

static void own_import(copier *c, weir_op *op)
{
    weir_op_import *in = &op->u.import;
    weir_incoming  *jobs = array(c, in->jobs, in->n * sizeof *jobs);
    for (size_t i = 0; i < in->n; i++) {
        weir_job  *job = array(c, jobs[i].job, sizeof *job);
        weir_line *lines = array(c, jobs[i].lines, jobs[i].n_lines * sizeof *lines);
        own_job(c, job);
        for (size_t k = 0; k < jobs[i].n_lines; k++)
            text(c, &lines[k].text);
        if (c->block) {
            jobs[i].job = job;
            jobs[i].lines = lines;
        }
    }
    in->jobs = jobs;
    in->out = room(c, in->n * sizeof *in->out);
}

static void own_list(copier *c, weir_op *op)
{
    text(c, &op->u.list.query.type);
    text(c, &op->u.list.query.search);
}

static void own_configure(copier *c, weir_op *op)
{
    weir_op_configure *cfg = &op->u.configure;
    text(c, &cfg->type);
    if (cfg->settings)
        cfg->settings = array(c, cfg->settings, sizeof *cfg->settings);
}

static void (*const own[WEIR_OP_KINDS])(copier *c, weir_op *op) = {
    [WEIR_OP_ADD]       = own_add,
    [WEIR_OP_TAKE]      = own_take,
    [WEIR_OP_FINISH]    = own_finish,
    [WEIR_OP_RENEW]     = own_renew,
    [WEIR_OP_PROGRESS]  = own_progress,
    [WEIR_OP_LOG]       = own_log,
    [WEIR_OP_UPDATE]    = own_update,
    [WEIR_OP_LIST]      = own_list,
    [WEIR_OP_CONFIGURE] = own_configure,
    [WEIR_OP_IMPORT]    = own_import,
};

static size_t walk(char *block, weir_op *op, weir_reply *to)
{
    copier c = { .block = block };
    if (own[op->kind])
        own[op->kind](&c, op);
    if (to)
        text(&c, &to->type);
    return aligned(c.used);
}

size_t weir__op_size(const weir_op *op, const weir_reply *to)
{
    weir_op    op_too = *op;
    weir_reply to_too = to ? *to : (weir_reply){ 0 };
    return walk(NULL, &op_too, &to_too);
}

size_t weir__op_own(weir_op *op, weir_reply *to, void *block)
{
    return walk(block, op, to);
}
