/* mem.c - the mem store: jobs in memory, and the executable specification of op/op.h. This file
 * opens, closes and runs batches; jobs.c keeps the jobs, token.c what was answered; write.c,
 * import.c, tick.c, read.c and check.c have the operations. */
#include "store/mem/mem.h"

#include <stdlib.h>
#include <string.h>

static weir_code (*const run_one[WEIR_OP_COUNT])(mem_store *, weir_op *) = {
#define X(kind, member) [WEIR_OP_##kind] = weir__mem_##member,
    WEIR_OPS(X)
#undef X
};

static void mem_close(weir_store *base)
{
    mem_store *s = (mem_store *)base;
    if (!s)
        return;
    for (table_link *l = weir__table_next(&s->jobs, NULL), *next; l; l = next) {
        next = weir__table_next(&s->jobs, l);
        weir__mem_job_free(CONTAINER(l, mem_job, by_id));
    }
    for (size_t i = 0; i < s->n_types; i++)
        free(s->by_name[i]);
    free(s->by_name);
    free(s->star);
    weir__outbox_fini(&s->out);
    weir__table_fini(&s->jobs);
    weir__table_fini(&s->unique);
    weir__table_fini(&s->types);
    weir__mem_tokens_fini(s);
    weir__mem_schedules_fini(s);
    weir__mem_trends_fini(s);
    free(s);
}

static weir_code mem_open(weir_store **out, const weir_url *url, const weir_env *env,
                          weir_error *err)
{
    if (*url->rest)
        return weir_fail(err, WEIR_EINVAL, "mem: must end with the colon, not \"%s\"",
                         url->rest);
    mem_store *s = calloc(1, sizeof *s);
    if (!s)
        return weir_fail(err, WEIR_ENOMEM, "mem store");
    s->base.ops = &weir__mem_store;
    s->env = *env;
    weir__agenda_init(&s->agenda);
    s->star = weir__mem_type_make(s, "*");
    if (!s->star) {
        mem_close(&s->base);
        return weir_fail(err, WEIR_ENOMEM, "mem store");
    }
    s->star->stats.settings = weir__default_settings;
    *out = &s->base;
    return WEIR_OK;
}

/* The batch is over, and all of it holds: say so, then free what it replaced. */
static void publish(mem_store *s)
{
    int64_t due_at;
    if (s->out.n)
        s->env.emit(s->env.ctx, s->out.events, s->out.n);
    weir__outbox_clear(&s->out);
    while (s->trash) {
        mem_text *t = s->trash;
        s->trash = t->next;
        free(t);
    }
    while (s->trash_jobs) {
        mem_job *m = s->trash_jobs;
        s->trash_jobs = m->next;
        weir__mem_job_free(m);
    }
    if (weir__agenda_announce(&s->agenda, &due_at))
        s->env.due(s->env.ctx, due_at);
}

static weir_code mem_run(weir_store *base, weir_op **ops, size_t n, weir_error *err)
{
    (void)err;
    mem_store *s = (mem_store *)base;
    int64_t    step = n ? weir__clock_step(&s->clock, ops[0]->now_ms, ops[0]->steady_ms) : 0;
    if (step)
        weir__mem_clock_set(s, step);
    for (size_t i = 0; i < n; i++) {
        weir_op *op = ops[i];
        weir__op_clear(op);
        s->serial++;
        if (!weir__op_refused(op, s->env.read_only))
            run_one[op->kind](s, op);
    }
    publish(s);
    return WEIR_OK;
}

const weir_store_ops weir__mem_store = {
    .name = "mem",
    .version = WEIR_STORE_OPS_VERSION,
    .open = mem_open,
    .close = mem_close,
    .run = mem_run,
    .in_process = true,
};
