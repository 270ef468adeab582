/* write.c - the operations of the mem store that change one job, some jobs or a type. */
#include "store/mem/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/condition.h"
#include "store/answers.h"

static weir_code no_memory(weir_op *op)
{
    return weir_fail(&op->err, WEIR_ENOMEM, "%s: out of memory", weir__op_row(op)->name);
}

/* The job that is active with just this delivery, or NULL. */
static mem_job *find_active(const mem_store *s, uint64_t id, uint32_t delivery)
{
    mem_job *m = weir__mem_find(s, id);
    return m && m->j.state == WEIR_STATE_ACTIVE && m->j.delivery == delivery ? m : NULL;
}

static void run_ttl_anew(mem_store *s, mem_job *m, int64_t now)
{
    m->ttl_until = weir__job_ttl_until(&m->j, now);
    weir__agenda_want(&s->agenda, WEIR_DUE_TTL, m->ttl_until);
}

/* ---- add ---- */

static bool add_one(mem_store *s, const weir_spec *spec, weir_added *out, int64_t now)
{
    mem_type *t = weir__mem_type_make(s, spec->type);
    if (!t)
        return false;
    mem_job *m = spec->unique ? weir__mem_holder(s, t, spec->unique) : NULL;
    bool     existed = m != NULL;
    if (!existed) {
        weir_job j;
        weir__job_init(&j, spec, s->last_id + 1, now);
        j.search = j.search || weir__mem_settings(s, t)->search;
        m = weir__mem_job_create(t, &j);
        if (!m)
            return false;
        weir__mem_job_put(s, m);
    }
    *out = (weir_added){ .id = m->j.id,
                         .state = m->j.state,
                         .existed = existed,
                         .durability = WEIR_DURABILITY_NONE };
    return true;
}

weir_code weir__mem_add(mem_store *s, weir_op *op)
{
    weir_op_add *a = &op->u.add;
    mem_token   *token = NULL;
    bool         again = false;
    if (a->token && (weir__mem_token_look(s, op, &again) || again))
        return op->err.code;
    if (a->token && !(token = weir__mem_token_create(a)))
        return no_memory(op);
    uint64_t last_id = s->last_id;
    bool     ok = weir__outbox_reserve(&s->out, a->n);
    for (size_t i = 0; ok && i < a->n; i++)
        ok = add_one(s, &a->specs[i], &a->out[i], op->now_ms);
    if (!ok) {
        for (; s->last_id > last_id; s->last_id--)
            weir__mem_forget(s, weir__mem_find(s, s->last_id));
        free(token);
        return no_memory(op);
    }
    if (token)
        weir__mem_token_put(s, token, a->out, op->now_ms);
    for (size_t i = 0; i < a->n; i++) {
        if (a->out[i].existed)
            continue;
        mem_job     *m = weir__mem_find(s, a->out[i].id);
        weir_effects e;
        m->type->known = true;
        weir__job_added(&m->j, &e);
        weir__mem_follow(s, m, &e, op->now_ms);
    }
    return WEIR_OK;
}

/* ---- take ---- */

/* The jobs that a take may choose. */
typedef struct mem_choice {
    int64_t         now;
    weir_condition *when;               /* NULL: none */
    size_t          looked;             /* jobs for which it was asked */
} mem_choice;

static bool may_be_taken(mem_choice *c, const weir_job *j)
{
    if (j->deadline_at && j->deadline_at <= c->now)
        return false;
    if (!c->when)
        return true;
    c->looked++;
    return weir__condition_holds(c->when, j, c->now);
}

/* The best waiting job of a type behind `m` (NULL: of all) that may be taken. */
static mem_job *next_of(const mem_type *t, const mem_job *m, mem_choice *c)
{
    const tree *waiting = &t->in[WEIR_STATE_INACTIVE];
    tree_node  *n = m ? weir__tree_after(waiting, m->in_state.rank, m->j.id)
                      : weir__tree_first(waiting);
    for (; n && c->looked < WEIR_MAX_LOOK; n = weir__tree_after(waiting, n->rank, n->id)) {
        mem_job *next = CONTAINER(n, mem_job, in_state);
        if (may_be_taken(c, &next->j))
            return next;
    }
    return NULL;
}

static bool plan_one(mem_job *m, weir_op_take *t, int64_t now)
{
    weir_job     after = m->j;
    weir_effects e;
    weir__job_take(&after, t->worker, t->lease_ms, now, &e);
    m->new_worker = t->worker ? weir__mem_text(t->worker, strlen(t->worker)) : NULL;
    if (t->worker && !m->new_worker)
        return false;
    t->jobs[t->n_jobs] = weir__job_copy(&after);
    if (!t->jobs[t->n_jobs]) {
        weir__mem_text_free(m->new_worker);
        return false;
    }
    t->n_jobs++;
    return true;
}

static void unplan_take(mem_store *s, weir_op_take *t)
{
    while (t->n_jobs > 0) {
        weir_job *copy = t->jobs[--t->n_jobs];
        weir__mem_text_free(weir__mem_find(s, copy->id)->new_worker);
        weir_job_free(copy);
        t->jobs[t->n_jobs] = NULL;
    }
}

/* Choose the jobs and copy them as they will be. False: out of memory, and nothing is chosen. */
static bool plan_choice(mem_store *s, weir_op_take *t, mem_choice *c)
{
    mem_type *type[WEIR_MAX_TAKE_TYPES];
    mem_job  *head[WEIR_MAX_TAKE_TYPES];
    size_t    n = 0, passed = 0, bytes = 0;
    bool      alone = false;
    t->n_jobs = 0;
    t->partial = false;
    for (size_t i = 0; i < t->n_types && !s->star->stats.paused; i++) {
        mem_type *known = weir__mem_type(s, t->types[i]);
        if (!known || known->stats.paused || known->seen == s->serial)
            continue;
        known->seen = s->serial;                       /* the same type twice counts once */
        assert(n < WEIR_MAX_TAKE_TYPES);
        head[n] = next_of(known, NULL, c);
        type[n] = known;
        n += head[n] != NULL;
    }
    while (n > 0 && t->n_jobs < t->n && passed < WEIR_MAX_PASSED && !alone && !t->partial) {
        size_t best = 0;
        for (size_t i = 1; i < n; i++) {
            if (weir__job_before(head[i]->j.priority, head[i]->j.id, head[best]->j.priority,
                                 head[best]->j.id))
                best = i;
        }
        bool suspect = weir__job_is_suspect(&head[best]->j);
        bool pass = suspect && (t->busy || t->n_jobs);
        if (!pass && !plan_one(head[best], t, c->now)) {
            unplan_take(s, t);
            return false;
        }
        alone = suspect && !pass;
        passed += pass;
        bytes += pass ? 0 : head[best]->j.data_len;
        t->partial = bytes >= WEIR_MAX_TAKE_BYTES;
        if (t->n_jobs < t->n)
            head[best] = next_of(type[best], head[best], c);
        if (!head[best]) {
            n--;
            head[best] = head[n];
            type[best] = type[n];
        }
    }
    t->suspect_waits = passed > 0;
    return true;
}

static bool plan_take(mem_store *s, weir_op_take *t, int64_t now)
{
    mem_choice c = { .now = now };
    if (t->when && weir_condition_parse(&c.when, t->when, NULL))
        return false;
    bool planned = plan_choice(s, t, &c);
    weir_condition_free(c.when);
    return planned;
}

static void do_take(mem_store *s, weir_op_take *t, int64_t now)
{
    for (size_t i = 0; i < t->n_jobs; i++) {
        mem_job   *m = weir__mem_find(s, t->jobs[i]->id);
        mem_change c;
        weir__mem_change(&c, m);
        weir__job_take(&c.after, m->new_worker, t->lease_ms, now, &c.e);
        m->new_worker = NULL;
        weir__mem_apply(s, &c);
        weir__mem_settle(s, &c, now);
    }
}

weir_code weir__mem_take(mem_store *s, weir_op *op)
{
    weir_op_take *t = &op->u.take;
    t->n_jobs = 0;
    t->suspect_waits = false;
    if (!weir__outbox_reserve(&s->out, t->n) || !plan_take(s, t, op->now_ms))
        return no_memory(op);
    do_take(s, t, op->now_ms);
    return WEIR_OK;
}

/* ---- finish ---- */

weir_code weir__mem_finish(mem_store *s, weir_op *op)
{
    weir_op_finish *f = &op->u.finish;
    mem_job        *m = find_active(s, f->id, f->delivery);
    mem_change      c;
    f->next.n_jobs = 0;
    f->next.suspect_waits = false;
    if (!m)
        return weir__stale(&op->err, f->id, f->delivery);
    if (!weir__outbox_reserve(&s->out, WEIR__MAX_EVENTS + f->next.n))
        return no_memory(op);
    weir__mem_change(&c, m);
    weir__job_finish(&c.after, f->outcome, f->text, f->len, f->delay_ms, op->now_ms, &c.e);
    if (!weir__mem_plan(s, &c))
        return no_memory(op);
    weir__mem_apply(s, &c);
    if (f->next.n && !plan_take(s, &f->next, op->now_ms)) {
        weir__mem_undo(s, &c);
        return no_memory(op);
    }
    weir__mem_settle(s, &c, op->now_ms);
    f->state = c.e.to;
    do_take(s, &f->next, op->now_ms);
    return WEIR_OK;
}

/* ---- while it runs ---- */

weir_code weir__mem_renew(mem_store *s, weir_op *op)
{
    weir_op_renew *r = &op->u.renew;
    for (size_t i = 0; i < r->n; i++) {
        weir_renewal *l = &r->items[i];
        mem_job    *m = find_active(s, l->id, l->delivery);
        l->code = m ? WEIR_OK : WEIR_ESTALE;
        if (!m)
            continue;
        m->j.lease_until = op->now_ms + l->lease_ms;
        weir__agenda_want(&s->agenda, WEIR_DUE_LEASE, m->j.lease_until);
    }
    return WEIR_OK;
}

weir_code weir__mem_progress(mem_store *s, weir_op *op)
{
    const weir_op_progress *p = &op->u.progress;
    mem_job                *m = find_active(s, p->id, p->delivery);
    if (!m)
        return weir__stale(&op->err, p->id, p->delivery);
    mem_change c;
    weir__mem_change(&c, m);
    weir__job_progress(&c.after, p->percent, p->data, p->len, op->now_ms, &c.e);
    if (!weir__mem_plan(s, &c))
        return no_memory(op);
    m->j = c.after;                       /* it stays in its place */
    run_ttl_anew(s, m, op->now_ms);
    weir__mem_settle(s, &c, op->now_ms);
    return WEIR_OK;
}

weir_code weir__mem_log(mem_store *s, weir_op *op)
{
    const weir_op_log *l = &op->u.log;
    mem_job *m = l->delivery ? find_active(s, l->id, l->delivery) : weir__mem_find(s, l->id);
    if (!m)
        return l->delivery ? weir__stale(&op->err, l->id, l->delivery)
                           : weir__no_job(&op->err, l->id);
    mem_line *line = weir__mem_line(l->text, l->len);
    if (!line)
        return no_memory(op);
    weir__mem_line_add(m, line, op->now_ms);
    if (l->delivery)
        run_ttl_anew(s, m, op->now_ms);
    return WEIR_OK;
}

/* ---- by hand ---- */

weir_code weir__mem_update(mem_store *s, weir_op *op)
{
    weir_op_update *u = &op->u.update;
    mem_job        *m = weir__mem_find(s, u->id);
    if (!m)
        return weir__no_job_of(&op->err, u->id, u->change.delivery);
    mem_change c;
    weir__mem_change(&c, m);
    if (weir__job_update(&c.after, &u->change, u->from, op->now_ms, &c.e, &op->err))
        return op->err.code;
    mem_job *holder = c.e.takes_key ? weir__mem_holder(s, m->type, c.after.unique) : NULL;
    if (holder) {
        weir__effects_fini(&c.e);
        return weir__key_taken(&op->err, u->id, holder->j.id);
    }
    if (!weir__mem_plan(s, &c))
        return no_memory(op);
    weir__mem_apply(s, &c);
    weir__mem_settle(s, &c, op->now_ms);
    u->old_state = c.e.from;
    u->new_state = c.e.to;
    return WEIR_OK;
}

bool weir__mem_remove_job(mem_store *s, mem_job *m, int64_t now)
{
    mem_change c;
    weir__mem_change(&c, m);
    weir__job_remove(&c.after, &c.e);
    if (!weir__mem_plan(s, &c))
        return false;
    weir__mem_apply(s, &c);
    weir__mem_settle(s, &c, now);
    return true;
}

weir_code weir__mem_remove(mem_store *s, weir_op *op)
{
    mem_job *m = weir__mem_find(s, op->u.remove.id);
    if (!m)
        return weir__no_job(&op->err, op->u.remove.id);
    return weir__mem_remove_job(s, m, op->now_ms) ? WEIR_OK : no_memory(op);
}

weir_code weir__mem_configure(mem_store *s, weir_op *op)
{
    const weir_op_configure *c = &op->u.configure;
    mem_type                *t = weir__mem_type_make(s, c->type);
    if (!t || !weir__outbox_reserve(&s->out, 1))
        return no_memory(op);
    t->known = true;
    if (c->settings) {
        t->stats.settings = weir__settings_in(c->settings, true);
        t->has_settings = true;
        /* Jobs beyond the new limits are removed with the next TICK. */
        weir__agenda_want(&s->agenda, WEIR_DUE_FINISHED, INT64_MIN);
    }
    if (c->set_paused && c->paused != t->stats.paused) {
        t->stats.paused = c->paused;
        weir_event event = weir__pause_event(t->name, c->paused, op->now_ms);
        weir__outbox_add(&s->out, &event);
    }
    return WEIR_OK;
}
