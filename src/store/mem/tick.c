/* tick.c - TICK in the mem store: finding what is due (core/tick.h), and setting the clock.
 *
 * Each job is a step of its own: when memory runs out, TICK ends there, and next_at says that there
 * is more to do now. Only when it could do nothing at all has it failed. */
#include "store/mem/mem.h"

static int64_t end_of(const mem_job *m, weir_due sort)
{
    return sort == WEIR_DUE_LEASE ? m->j.lease_until : m->ttl_until;
}

static weir_code find(void *store, weir_due sort, int64_t now, size_t limit, weir_due_list *list)
{
    const mem_store *s = store;
    bool             ok = true;
    if (sort == WEIR_DUE_WAITING) {
        const tree_node *n = weir__tree_first(&s->due);
        for (; ok && n && n->rank <= now && list->n < limit;
             n = weir__tree_after(&s->due, n->rank, n->id))
            ok = weir__due_add(list, n->id);
    } else {
        for (const mem_job *m = s->active; ok && m; m = m->next)
            ok = end_of(m, sort) > now || weir__due_add(list, m->j.id);
    }
    return ok ? WEIR_OK : WEIR_ENOMEM;
}

static weir_code change(void *store, weir_due sort, uint64_t id, int64_t now)
{
    mem_store *s = store;
    mem_change c;
    weir__mem_change(&c, weir__mem_find(s, id));
    weir__job_come_due(&c.after, sort, now, &c.e);
    if (!weir__mem_plan(s, &c))
        return WEIR_ENOMEM;
    weir__mem_apply(s, &c);
    weir__mem_settle(s, &c, now);
    return WEIR_OK;
}

static int64_t rank_of_first(const tree *t)
{
    const tree_node *n = weir__tree_first(t);
    return n ? n->rank : INT64_MAX;
}

static int64_t earliest(void *store, weir_due sort)
{
    const mem_store *s = store;
    int64_t          at = INT64_MAX;
    if (sort == WEIR_DUE_WAITING)
        return rank_of_first(&s->due);
    if (sort == WEIR_DUE_TOKENS)
        return rank_of_first(&s->tokens_by_time);
    if (sort == WEIR_DUE_SCHEDULES)
        return rank_of_first(&s->schedules_due);
    for (const mem_job *m = s->active; m; m = m->next) {
        if (end_of(m, sort) < at)
            at = end_of(m, sort);
    }
    return at;
}

static bool kept(void *store, size_t i, weir_state state, weir_kept *out)
{
    const mem_store *s = store;
    if (i >= s->n_types)
        return false;
    *out = weir__mem_kept(s, s->by_name[i], state);
    return true;
}

static uint64_t oldest(void *store, size_t i, weir_state state, int64_t *finished_at)
{
    const mem_store *s = store;
    const tree_node *n = weir__tree_first(&s->by_name[i]->in[state]);
    *finished_at = n ? n->rank : 0;
    return n ? n->id : 0;
}

static weir_code remove_one(void *store, uint64_t id, int64_t now)
{
    mem_store *s = store;
    return weir__mem_remove_job(s, weir__mem_find(s, id), now) ? WEIR_OK : WEIR_ENOMEM;
}

static weir_code forget_tokens(void *store, int64_t until, size_t limit, size_t *n)
{
    *n = weir__mem_tokens_forget(store, until, limit);
    return WEIR_OK;
}

weir_code weir__mem_tick(mem_store *s, weir_op *op)
{
    static const weir_tick_ops ops = {
        .find = find,       .change = change,   .earliest = earliest, .kept = kept,
        .oldest = oldest,   .remove = remove_one, .forget_tokens = forget_tokens,
    };
    weir_op_tick *t = &op->u.tick;
    weir_code     rc = weir__tick_run(&s->agenda, &ops, s, op->now_ms, t->limit, &t->changed,
                                      &t->next_at, &t->schedules_due);
    return rc && !t->changed ? weir_fail(&op->err, rc, "tick: out of memory") : WEIR_OK;
}

void weir__mem_clock_set(mem_store *s, int64_t step_ms)
{
    for (table_link *l = NULL; (l = weir__table_next(&s->jobs, l));) {
        mem_job *m = CONTAINER(l, mem_job, by_id);
        if (m->j.state == WEIR_STATE_ACTIVE) {
            weir__job_clock_set(&m->j, step_ms);
            if (m->ttl_until != INT64_MAX)
                m->ttl_until += step_ms;
        } else if (m->j.state == WEIR_STATE_DELAYED && !m->j.at_moment) {
            weir__mem_unindex(s, m);
            weir__job_clock_set(&m->j, step_ms);
            weir__mem_index(s, m);
        }
    }
    weir__agenda_doubt(&s->agenda);         /* moments that were named may be due now */
}
