/* write.c - the operations of the mem store that change one job, some jobs or a type. */
#include "store/mem/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "store/answers.h"

static weir_code no_memory(weir_op *op)
{
    return weir_fail(&op->err, WEIR_ENOMEM, "%s: out of memory", weir__op_row(op)->name);
}

/* The job that is active with just this delivery, or NULL. */
static mem_job *find_active(const mem_store *s, uint64_t id, uint32_t delivery)
{
    mem_job *m = weir__mem_find(s, id);
    return m && m->j.state == WEIR_ACTIVE && m->j.delivery == delivery ? m : NULL;
}

static void run_ttl_anew(mem_store *s, mem_job *m, int64_t now)
{
    m->ttl_until = m->j.ttl_ms ? now + m->j.ttl_ms : 0;
    if (m->ttl_until && m->ttl_until < s->active_at)
        s->active_at = m->ttl_until;
    if (m->ttl_until)
        weir__mem_want(s, m->ttl_until);
}

static void lease_anew(mem_store *s, mem_job *m, int64_t until)
{
    m->j.lease_until = until;
    if (until < s->active_at)
        s->active_at = until;
    weir__mem_want(s, until);
}

/* Its lease and its ttl begin. */
static void begin_run(mem_store *s, mem_job *m, int64_t now)
{
    lease_anew(s, m, m->j.lease_until);
    run_ttl_anew(s, m, now);
    m->type->stats.last_taken_at = now;
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
        if (!weir__mem_job_values(m, &j)) {
            weir__mem_job_free(m);
            return false;
        }
        weir__mem_job_put(s, m);
    }
    *out = (weir_added){ .id = m->j.id,
                         .state = m->j.state,
                         .existed = existed,
                         .durability = WEIR_DURABLE_NONE };
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
    bool     ok = weir__mem_room(s, a->n);
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
        mem_job *m = weir__mem_find(s, a->out[i].id);
        m->type->known = true;
        if (m->j.state == WEIR_INACTIVE)
            weir__mem_tell(s, WEIR_EVENT_ENQUEUE, &m->j, false, NULL, 0, op->now_ms);
    }
    return WEIR_OK;
}

/* ---- take ---- */

/* The best waiting job of a type behind `m` (NULL: of all) whose deadline has not passed. */
static mem_job *next_of(const mem_type *t, const mem_job *m, int64_t now)
{
    const tree *waiting = &t->in[WEIR_INACTIVE];
    tree_node  *n = m ? weir__tree_after(waiting, m->in_state.rank, m->j.id)
                      : weir__tree_first(waiting);
    for (; n; n = weir__tree_after(waiting, n->rank, n->id)) {
        mem_job *next = CONTAINER(n, mem_job, in_state);
        if (!next->j.deadline_at || next->j.deadline_at > now)
            return next;
    }
    return NULL;
}

static bool plan_one(mem_job *m, weir_op_take *t, int64_t now)
{
    weir_job after = m->j;
    weir__job_take(&after, t->worker, t->lease_ms, now);
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
        weir_job_release(copy);
        t->jobs[t->n_jobs] = NULL;
    }
}

/* Choose the jobs and copy them as they will be. False: out of memory, and nothing is chosen. */
static bool plan_take(mem_store *s, weir_op_take *t, int64_t now)
{
    mem_type *type[WEIR_MAX_TAKE_TYPES];
    mem_job  *head[WEIR_MAX_TAKE_TYPES];
    size_t    n = 0, passed = 0;
    bool      alone = false;
    t->n_jobs = 0;
    for (size_t i = 0; i < t->n_types && !s->star->stats.paused; i++) {
        mem_type *known = weir__mem_type(s, t->types[i]);
        if (!known || known->stats.paused || known->seen == s->serial)
            continue;
        known->seen = s->serial;                       /* the same type twice counts once */
        assert(n < WEIR_MAX_TAKE_TYPES);
        head[n] = next_of(known, NULL, now);
        type[n] = known;
        n += head[n] != NULL;
    }
    while (n > 0 && t->n_jobs < t->n && passed < WEIR_MAX_PASSED && !alone) {
        size_t best = 0;
        for (size_t i = 1; i < n; i++) {
            if (weir__job_before(head[i]->j.priority, head[i]->j.id, head[best]->j.priority,
                                 head[best]->j.id))
                best = i;
        }
        bool suspect = weir__job_is_suspect(&head[best]->j);
        bool pass = suspect && (t->busy || t->n_jobs);
        if (!pass && !plan_one(head[best], t, now)) {
            unplan_take(s, t);
            return false;
        }
        alone = suspect && !pass;
        passed += pass;
        if (t->n_jobs < t->n)
            head[best] = next_of(type[best], head[best], now);
        if (!head[best]) {
            n--;
            head[best] = head[n];
            type[best] = type[n];
        }
    }
    t->suspect_waits = passed > 0;
    return true;
}

static void do_take(mem_store *s, weir_op_take *t, int64_t now)
{
    for (size_t i = 0; i < t->n_jobs; i++) {
        mem_job   *m = weir__mem_find(s, t->jobs[i]->id);
        mem_change c = { .m = m, .before = m->j, .after = m->j };
        weir__job_take(&c.after, m->new_worker, t->lease_ms, now);
        m->new_worker = NULL;
        weir__mem_apply(s, &c);
        weir__mem_settle(s, &c, now);
        begin_run(s, m, now);
        weir__mem_tell(s, WEIR_EVENT_START, &m->j, false, m->j.worker,
                       m->j.worker ? strlen(m->j.worker) : 0, now);
    }
}

weir_code weir__mem_take(mem_store *s, weir_op *op)
{
    weir_op_take *t = &op->u.take;
    t->n_jobs = 0;
    t->suspect_waits = false;
    if (!weir__mem_room(s, t->n) || !plan_take(s, t, op->now_ms))
        return no_memory(op);
    do_take(s, t, op->now_ms);
    return WEIR_OK;
}

/* ---- finish ---- */

static weir_code plan_done(mem_change *c, mem_job *m, const char *text, size_t len, int64_t now)
{
    *c = (mem_change){ .m = m, .before = m->j, .after = m->j };
    if (text) {
        c->text = weir__mem_text(text, len);
        if (!c->text)
            return WEIR_ENOMEM;
    }
    weir__job_complete(&c->after, c->text, len, now);
    c->gone = c->after.remove_on_complete;
    return WEIR_OK;
}

static weir_code plan_finish(mem_change *c, mem_job *m, const weir_op_finish *f, int64_t now)
{
    switch (f->outcome) {
    case WEIR_OUTCOME_DONE:
        return plan_done(c, m, f->text, f->len, now);
    case WEIR_OUTCOME_FAIL:
        return weir__mem_plan_fail(c, m, f->text ? f->text : "", f->text ? f->len : 0, now);
    case WEIR_OUTCOME_RELEASE:
        return weir__mem_plan_release(c, m, now);
    case WEIR_OUTCOME_LOST:
        return weir__mem_plan_lose(c, m, now);
    }
    return WEIR_EINVAL;
}

static void tell_finish(mem_store *s, const mem_change *c, weir_outcome outcome, int64_t now)
{
    weir_type_stats *stats = &c->m->type->stats;
    const weir_job  *j = &c->after;
    switch (outcome) {
    case WEIR_OUTCOME_DONE:
        stats->completed++;
        stats->work_ms += j->duration_ms;
        weir__mem_tell(s, WEIR_EVENT_COMPLETE, j, c->gone, j->result, j->result_len, now);
        break;
    case WEIR_OUTCOME_FAIL:
        stats->failed++;
        weir__mem_tell_failed(s, j, now);
        break;
    case WEIR_OUTCOME_RELEASE:
        weir__mem_tell(s, WEIR_EVENT_ENQUEUE, j, false, NULL, 0, now);
        break;
    case WEIR_OUTCOME_LOST:
        weir__mem_tell_lost(s, j, now);
        break;
    }
}

weir_code weir__mem_finish(mem_store *s, weir_op *op)
{
    weir_op_finish *f = &op->u.finish;
    mem_job        *m = find_active(s, f->id, f->delivery);
    mem_change      c;
    f->next.n_jobs = 0;
    f->next.suspect_waits = false;
    if (!m)
        return weir__stale(&op->err, f->id, f->delivery);
    if (!weir__mem_room(s, 2 + f->next.n))
        return no_memory(op);
    if (plan_finish(&c, m, f, op->now_ms)) {
        weir__mem_drop(&c);
        return no_memory(op);
    }
    weir__mem_apply(s, &c);
    if (f->next.n && !plan_take(s, &f->next, op->now_ms)) {
        weir__mem_undo(s, &c);
        return no_memory(op);
    }
    weir__mem_settle(s, &c, op->now_ms);
    tell_finish(s, &c, f->outcome, op->now_ms);
    f->state = c.gone ? WEIR_ANY : c.after.state;
    do_take(s, &f->next, op->now_ms);
    return WEIR_OK;
}

/* ---- while it runs ---- */

weir_code weir__mem_renew(mem_store *s, weir_op *op)
{
    weir_op_renew *r = &op->u.renew;
    for (size_t i = 0; i < r->n; i++) {
        weir_lease *l = &r->items[i];
        mem_job    *m = find_active(s, l->id, l->delivery);
        l->code = m ? WEIR_OK : WEIR_ESTALE;
        if (m)
            lease_anew(s, m, op->now_ms + l->lease_ms);
    }
    return WEIR_OK;
}

weir_code weir__mem_progress(mem_store *s, weir_op *op)
{
    const weir_op_progress *p = &op->u.progress;
    mem_job                *m = find_active(s, p->id, p->delivery);
    if (!m)
        return weir__stale(&op->err, p->id, p->delivery);
    mem_change c = { .m = m, .before = m->j, .after = m->j };
    if (!weir__mem_room(s, 1))
        return no_memory(op);
    if (p->data) {
        c.after.progress_data = weir__mem_text(p->data, p->len);
        c.after.progress_data_len = p->len;
        if (!c.after.progress_data)
            return no_memory(op);
    }
    c.after.progress = p->percent;
    c.after.updated_at = op->now_ms;
    m->j = c.after;                       /* it stays in its place */
    weir__mem_settle(s, &c, op->now_ms);
    run_ttl_anew(s, m, op->now_ms);
    weir__mem_tell(s, WEIR_EVENT_PROGRESS, &m->j, false, m->j.progress_data,
                   m->j.progress_data_len, op->now_ms);
    return WEIR_OK;
}

weir_code weir__mem_log(mem_store *s, weir_op *op)
{
    const weir_op_log *l = &op->u.log;
    mem_job *m = l->delivery ? find_active(s, l->id, l->delivery) : weir__mem_find(s, l->id);
    if (!m)
        return l->delivery ? weir__stale(&op->err, l->id, l->delivery)
                           : weir__no_job(&op->err, l->id);
    mem_line *line = weir__mem_line(NULL, l->text, l->len);
    if (!line)
        return no_memory(op);
    weir__mem_line_add(m, line, op->now_ms);
    if (l->delivery)
        run_ttl_anew(s, m, op->now_ms);
    return WEIR_OK;
}

/* ---- by hand ---- */

static void tell_update(mem_store *s, const weir_job *j, weir_state old, int64_t now)
{
    weir_event_kind kind[2];
    size_t          n = weir__update_events(j, old, kind);
    for (size_t i = 0; i < n; i++) {
        const char *text = weir__update_text(j, kind[i]);
        weir__mem_tell(s, kind[i], j, false, text, text ? strlen(text) : 0, now);
    }
}

/* A string of the job that is new: in memory of its own. */
static bool plan_text(mem_change *c, const char **member, size_t len)
{
    *member = c->text = weir__mem_text(*member, len);
    return c->text != NULL;
}

/* What is new of it: values, and one of data, a worker and an error. */
static weir_code plan_update(mem_change *c, bool new_data, weir_buf *past, weir_buf *values)
{
    weir_job *j = &c->after;
    bool      ok = true, moved = j->state != c->before.state;
    weir_code rc = weir__mem_plan_past(c, past);
    if (values->len) {
        j->values = c->values = weir__mem_text(values->data, values->len);
        ok = c->values != NULL;
    }
    weir__buf_fini(values);
    if (new_data) {
        ok = plan_text(c, &j->data, j->data_len) && ok;
    } else if (moved && j->state == WEIR_ACTIVE) {
        ok = plan_text(c, &j->worker, strlen(j->worker)) && ok;
    } else if (moved && j->state == WEIR_FAILED) {
        c->line = weir__mem_line("error", j->error, strlen(j->error));
        ok = plan_text(c, &j->error, strlen(j->error)) && c->line && ok;
    }
    return ok ? rc : WEIR_ENOMEM;
}

weir_code weir__mem_update(mem_store *s, weir_op *op)
{
    weir_op_update *u = &op->u.update;
    mem_job        *m = weir__mem_find(s, u->id);
    if (!m)
        return weir__no_job_of(&op->err, u->id, u->change.delivery);
    mem_change c = { .m = m, .before = m->j, .after = m->j };
    weir_buf   past = { 0 }, values = { 0 };
    weir_code  rc = weir__job_update(&c.after, &u->change, u->from, op->now_ms, &past, &op->err);
    if (!rc)
        rc = weir__job_set_values(&c.after, &u->change, op->now_ms, &values, &op->err);
    mem_job   *holder = NULL;
    if (!rc && c.after.unique && weir__finished(c.before.state) && !weir__finished(c.after.state))
        holder = weir__mem_holder(s, m->type, c.after.unique);
    if (holder)
        rc = weir__key_taken(&op->err, u->id, holder->j.id);
    if (rc) {
        weir__buf_fini(&past);
        weir__buf_fini(&values);
        return rc;
    }
    if (plan_update(&c, u->change.data != NULL, &past, &values) || !weir__mem_room(s, 2)) {
        weir__mem_drop(&c);
        return no_memory(op);
    }
    weir__mem_apply(s, &c);
    weir__mem_settle(s, &c, op->now_ms);
    if (c.after.state == WEIR_ACTIVE && c.before.state != WEIR_ACTIVE)
        begin_run(s, m, op->now_ms);
    tell_update(s, &m->j, c.before.state, op->now_ms);
    u->old_state = c.before.state;
    u->new_state = c.after.state;
    return WEIR_OK;
}

weir_code weir__mem_remove(mem_store *s, weir_op *op)
{
    mem_job *m = weir__mem_find(s, op->u.remove.id);
    if (!m)
        return weir__no_job(&op->err, op->u.remove.id);
    if (!weir__mem_room(s, 1))
        return no_memory(op);
    weir__mem_forget(s, m);
    weir__mem_tell(s, WEIR_EVENT_REMOVE, &m->j, true, NULL, 0, op->now_ms);
    return WEIR_OK;
}

weir_code weir__mem_configure(mem_store *s, weir_op *op)
{
    const weir_op_configure *c = &op->u.configure;
    mem_type                *t = weir__mem_type_make(s, c->type);
    if (!t || !weir__mem_room(s, 1))
        return no_memory(op);
    t->known = true;
    if (c->settings) {
        t->stats.settings = *c->settings;
        t->own_settings = true;
        s->keep_at = INT64_MIN;              /* what is kept too long now goes with the next TICK */
        weir__mem_want(s, INT64_MIN);
    }
    if (c->set_paused && c->paused != t->stats.paused) {
        t->stats.paused = c->paused;
        s->events[s->n_events++] = (weir_event){
            .kind = c->paused ? WEIR_EVENT_PAUSE : WEIR_EVENT_RESUME,
            .type = t->name,
            .at = op->now_ms,
        };
    }
    return WEIR_OK;
}
