/* tick.c - what time does to jobs: lost leases, ttl, deadlines, delays, retention; and to tokens.
 *
 * Each job is a step of its own: when memory runs out, TICK ends there, and next_at says that there
 * is more to do now. Only when it could do nothing at all has it failed. */
#include "store/mem/mem.h"

#include <stdlib.h>

enum { EVENTS_OF_ONE = 3 };         /* at most, of one job in a TICK */

static int by_id(const void *a, const void *b)
{
    uint64_t x = (*(mem_job *const *)a)->j.id, y = (*(mem_job *const *)b)->j.id;
    return x < y ? -1 : x > y;
}

typedef int64_t end_fn(const mem_job *m);

static int64_t end_of_lease(const mem_job *m)
{
    return m->j.lease_until;
}

static int64_t end_of_ttl(const mem_job *m)
{
    return m->ttl_until ? m->ttl_until : INT64_MAX;
}

/* All active jobs whose lease or ttl is over, by id: free() it. False: out of memory. */
static bool gather(mem_store *s, end_fn *end, int64_t now, mem_job ***out, size_t *n)
{
    size_t count = 0;
    *out = NULL;
    *n = 0;
    for (const mem_job *m = s->active; m; m = m->next)
        count += end(m) <= now;
    if (!count)
        return true;
    mem_job **list = *out = malloc(count * sizeof(mem_job *));
    if (!list)
        return false;
    for (mem_job *m = s->active; m; m = m->next) {
        if (end(m) <= now)
            list[(*n)++] = m;
    }
    qsort(list, *n, sizeof *list, by_id);
    return true;
}

static bool lose(mem_store *s, mem_job *m, int64_t now)
{
    mem_change c;
    if (!weir__mem_room(s, EVENTS_OF_ONE))
        return false;
    if (weir__mem_plan_lose(&c, m, now)) {
        weir__mem_drop(&c);
        return false;
    }
    weir__mem_apply(s, &c);
    weir__mem_settle(s, &c, now);
    weir__mem_tell_lost(s, &m->j, now);
    return true;
}

static bool take_too_long(mem_store *s, mem_job *m, int64_t now)
{
    mem_change c;
    if (!weir__mem_room(s, EVENTS_OF_ONE))
        return false;
    if (weir__mem_plan_exceed(&c, m, now)) {
        weir__mem_drop(&c);
        return false;
    }
    weir__mem_apply(s, &c);
    weir__mem_settle(s, &c, now);
    m->type->stats.failed++;
    weir__mem_tell(s, WEIR_EVENT_TTL_EXCEEDED, &m->j, false, NULL, 0, now);
    weir__mem_tell_failed(s, &m->j, now);
    return true;
}

/* 1 and 2: the active ones. Like the other two, it adds to t->changed and answers false when out of
 * memory. */
static bool tick_active(mem_store *s, end_fn *end, bool (*one)(mem_store *, mem_job *, int64_t),
                        weir_op_tick *t, int64_t now)
{
    size_t    n;
    mem_job **list;
    bool      ok = gather(s, end, now, &list, &n);
    for (size_t i = 0; ok && i < n && i < t->limit; i++) {
        ok = one(s, list[i], now);
        t->changed += ok;
    }
    free(list);
    return ok;
}

/* 3: the waiting ones. */
static bool come_due(mem_store *s, mem_job *m, int64_t now)
{
    mem_change c;
    if (!weir__mem_room(s, EVENTS_OF_ONE))
        return false;
    if (m->j.deadline_at && m->j.deadline_at <= now) {
        if (weir__mem_plan_expire(&c, m, now)) {
            weir__mem_drop(&c);
            return false;
        }
        weir__mem_apply(s, &c);
        weir__mem_settle(s, &c, now);
        weir__mem_tell_failed(s, &m->j, now);
        return true;
    }
    if (weir__mem_plan_promote(&c, m, now)) {
        weir__mem_drop(&c);
        return false;
    }
    weir__mem_apply(s, &c);
    weir__mem_settle(s, &c, now);
    weir__mem_tell(s, WEIR_EVENT_PROMOTION, &m->j, false, NULL, 0, now);
    weir__mem_tell(s, WEIR_EVENT_ENQUEUE, &m->j, false, NULL, 0, now);
    return true;
}

static bool tick_waiting(mem_store *s, weir_op_tick *t, int64_t now)
{
    for (size_t done = 0; done < t->limit; done++) {
        tree_node *n = weir__tree_first(&s->due);
        if (!n || n->rank > now)
            break;
        if (!come_due(s, CONTAINER(n, mem_job, in_due), now))
            return false;
        t->changed++;
    }
    return true;
}

/* When the oldest of these jobs has to go; INT64_MAX: not, INT64_MIN: at once. */
static int64_t goes_at(const mem_store *s, const mem_type *t, weir_state state)
{
    const weir_keep *keep = weir__mem_keep(s, t, state);
    const tree_node *oldest = weir__tree_first(&t->in[state]);
    if (!oldest)
        return INT64_MAX;
    if (keep->count && t->in[state].n > (uint64_t)keep->count)
        return INT64_MIN;
    return keep->age_ms ? oldest->rank + keep->age_ms : INT64_MAX;
}

/* 4: retention. */
static bool tick_finished(mem_store *s, weir_op_tick *tick, int64_t now)
{
    size_t  left = tick->limit;
    int64_t next = INT64_MAX;
    bool    ok = true;
    if (s->keep_at > now)
        return true;
    for (size_t i = 0; i < s->n_types; i++) {
        mem_type *t = s->by_name[i];
        for (weir_state st = WEIR_COMPLETE; st <= WEIR_CANCELLED; st++) {
            int64_t at;
            while ((at = goes_at(s, t, st)) <= now && left && (ok = weir__mem_room(s, 1))) {
                mem_job *m = CONTAINER(weir__tree_first(&t->in[st]), mem_job, in_state);
                weir__mem_forget(s, m);
                weir__mem_tell(s, WEIR_EVENT_REMOVE, &m->j, true, NULL, 0, now);
                tick->changed++;
                left--;
            }
            if (at < next)
                next = at;
        }
    }
    s->keep_at = next;
    return ok;
}

/* How early the next active job may be due. */
static int64_t next_active(const mem_store *s)
{
    int64_t at = INT64_MAX;
    for (const mem_job *m = s->active; m; m = m->next) {
        int64_t end = end_of_lease(m) < end_of_ttl(m) ? end_of_lease(m) : end_of_ttl(m);
        if (end < at)
            at = end;
    }
    return at;
}

void weir__mem_clock_set(mem_store *s, int64_t step_ms)
{
    for (table_link *l = NULL; (l = weir__table_next(&s->jobs, l));) {
        mem_job *m = CONTAINER(l, mem_job, by_id);
        if (m->j.state == WEIR_ACTIVE) {
            weir__job_clock_set(&m->j, step_ms);
            if (m->ttl_until)
                m->ttl_until += step_ms;
        } else if (m->j.state == WEIR_DELAYED && !m->j.at_moment) {
            weir__mem_unindex(s, m);
            weir__job_clock_set(&m->j, step_ms);
            weir__mem_index(s, m);
        }
    }
    s->announced = INT64_MAX;
    s->active_at = next_active(s);
    weir__mem_want(s, INT64_MIN);           /* moments that were named may be due now */
}

static bool do_what_is_due(mem_store *s, weir_op_tick *t, int64_t now)
{
    if (s->active_at <= now) {
        if (!tick_active(s, end_of_lease, lose, t, now) ||
            !tick_active(s, end_of_ttl, take_too_long, t, now))
            return false;
        s->active_at = next_active(s);
    }
    return tick_waiting(s, t, now) && tick_finished(s, t, now);
}

weir_code weir__mem_tick(mem_store *s, weir_op *op)
{
    weir_op_tick *t = &op->u.tick;
    t->changed = 0;
    if (!do_what_is_due(s, t, op->now_ms) && !t->changed)
        return weir_fail(&op->err, WEIR_ENOMEM, "tick: out of memory");
    const tree_node *due = weir__tree_first(&s->due);
    t->next_at = weir__mem_tokens_tick(s, t->limit, op->now_ms);
    if (s->active_at < t->next_at)
        t->next_at = s->active_at;
    if (s->keep_at < t->next_at)
        t->next_at = s->keep_at;
    if (due && due->rank < t->next_at)
        t->next_at = due->rank;
    s->announced = s->wanted = t->next_at;
    return WEIR_OK;
}
