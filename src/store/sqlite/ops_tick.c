/* ops_tick.c - TICK in the sqlite store: finding what is due (core/tick.h). */
#include "store/sqlite/sq.h"

enum { DAMAGED_MS = 1000 };     /* until the next TICK, when a damaged row is in the way */

static weir_code outcome(const sq_store *s)
{
    return s->broken ? s->error.code : WEIR_OK;
}

/* ---- jobs that are due ---- */

static int64_t end_of(const sq_active *a, weir_due sort)
{
    return sort == WEIR_DUE_LEASE ? a->job.lease_until : a->ttl_until;
}

static void find_active(sq_store *s, weir_due sort, int64_t now, weir_due_list *list)
{
    size_t   pos = 0;
    uint64_t id;
    void    *a;
    while (!s->broken && weir__map_next(&s->active, &pos, &id, &a)) {
        if (end_of(a, sort) <= now && !weir__due_add(list, id))
            weir__sq_no_memory(s);
    }
}

/* Damaged rows that cannot be changed stay due: pass over them. */
static void find_waiting(sq_store *s, int64_t now, size_t limit, weir_due_list *list)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_DUE);
    weir__sq_int(st, 1, now);
    weir__sq_int(st, 2, (int64_t)(limit + s->damaged.n));
    while (!s->broken && list->n < limit && weir__sq_row(s, st)) {
        uint64_t id = (uint64_t)sqlite3_column_int64(st, 0);
        if (!weir__sq_is_damaged(s, id) && !weir__due_add(list, id))
            weir__sq_no_memory(s);
    }
    sqlite3_reset(st);
}

static weir_code find(void *store, weir_due sort, int64_t now, size_t limit, weir_due_list *list)
{
    sq_store *s = store;
    if (sort == WEIR_DUE_WAITING)
        find_waiting(s, now, limit, list);
    else
        find_active(s, sort, now, list);
    return outcome(s);
}

static weir_code set_aside(sq_store *s, uint64_t id, int64_t now)
{
    weir__sq_note_damaged(s, id);
    weir_code rc = weir__sq_set_aside(s, now);
    if (weir__sq_is_damaged(s, id))
        weir__sq_deactivate(s, id);
    return s->broken ? s->error.code : rc;
}

weir_code weir__sq_come_due(sq_store *s, weir_due sort, uint64_t id, int64_t now,
                            weir_state *state)
{
    weir_job      j;
    sq_type      *t;
    sql_sums       sums;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_GET);
    *state = WEIR_STATE_FAILED;
    weir__sq_int(st, 1, (int64_t)id);
    if (!weir__sq_row(s, st))
        return outcome(s);
    if (!weir__sq_sound(s, st, &j, &t, &sums)) {
        sqlite3_reset(st);
        return s->broken ? s->error.code : set_aside(s, id, now);
    }
    if (!weir__job_is_due(&j, sort)) {
        sqlite3_reset(st);
        return weir__sq_damaged(s, "a job is due that neither waits nor runs; check mends that");
    }
    weir_effects e;
    weir__job_come_due(&j, sort, now, &e);
    sqlite3_reset(st);
    weir_code rc = weir__sq_apply(s, &j, t, &e, &sums, now);
    *state = e.to;
    weir__effects_fini(&e);
    return rc;
}

static weir_code change(void *store, weir_due sort, uint64_t id, int64_t now)
{
    weir_state state;
    return weir__sq_come_due(store, sort, id, now, &state);
}

/* The minimum that a statement selects; INT64_MAX: none. */
static int64_t least(sq_store *s, sq_sql which)
{
    sqlite3_stmt *st = weir__sq_stmt(s, which);
    int64_t       at = INT64_MAX;
    if (weir__sq_row(s, st)) {
        if (sqlite3_column_type(st, 0) != SQLITE_NULL)
            at = sqlite3_column_int64(st, 0);
        sqlite3_reset(st);
    }
    return at;
}

static int64_t earliest(void *store, weir_due sort)
{
    sq_store *s = store;
    if (sort == WEIR_DUE_WAITING)
        return least(s, SQ_NEXT_DUE);
    if (sort == WEIR_DUE_TOKENS)
        return least(s, SQ_TOKEN_OLDEST);
    if (sort == WEIR_DUE_SCHEDULES)
        return least(s, SQ_SCHEDULE_NEXT);
    int64_t  at = INT64_MAX;
    size_t   pos = 0;
    uint64_t id;
    void    *a;
    while (weir__map_next(&s->active, &pos, &id, &a)) {
        if (end_of(a, sort) < at)
            at = end_of(a, sort);
    }
    return at;
}

/* ---- finished jobs, tokens ---- */

static bool kept(void *store, size_t i, weir_state state, weir_kept *out)
{
    sq_store *s = store;
    if (i >= s->types.n)
        return false;
    *out = weir__sq_kept(s, s->types.by_name[i], state);
    return true;
}

/* Find the first SQ_OLDEST_AT_ONCE of them. */
static void find_oldest(sq_store *s, int64_t type, weir_state state)
{
    sq_oldest    *o = &s->oldest;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_OLDEST_IDS);
    *o = (sq_oldest){ .type = type, .state = state };
    weir__sq_int(st, 1, type);
    weir__sq_int(st, 2, state);
    weir__sq_int(st, 3, SQ_OLDEST_AT_ONCE);
    while (o->n < SQ_OLDEST_AT_ONCE && weir__sq_row(s, st)) {
        o->id[o->n] = (uint64_t)sqlite3_column_int64(st, 0);
        o->finished_at[o->n++] = sqlite3_column_int64(st, 1);
    }
    sqlite3_reset(st);
}

/* The caller has removed the one before: nothing else happens to finished jobs in a TICK. */
static uint64_t oldest(void *store, size_t i, weir_state state, int64_t *finished_at)
{
    sq_store  *s = store;
    sq_oldest *o = &s->oldest;
    int64_t    type = s->types.by_name[i]->id;
    if (o->type != type || o->state != state || o->next == o->n)
        find_oldest(s, type, state);
    if (o->next == o->n)
        return 0;
    *finished_at = o->finished_at[o->next];
    return o->id[o->next++];
}

static weir_code remove_one(void *store, uint64_t id, int64_t now)
{
    bool      found;
    weir_code rc = weir__sq_remove_job(store, id, now, &found);
    return rc || found ? rc : weir__sq_damaged(store, "an index names a job that is gone");
}

static weir_code forget_tokens(void *store, int64_t until, size_t limit, size_t *n)
{
    return weir__sq_tokens_forget(store, until, limit, n);
}

/* ---- all of it ---- */

static const weir_tick_ops tick_ops = {
    .find = find,       .change = change,   .earliest = earliest, .kept = kept,
    .oldest = oldest,   .remove = remove_one, .forget_tokens = forget_tokens,
};

weir_code weir__sq_op_tick(sq_store *s, weir_op *op)
{
    weir_op_tick *t = &op->u.tick;
    s->first_logged = (uint64_t)least(s, SQ_LOG_FIRST);
    s->oldest = (sq_oldest){ 0 };
    weir_code rc = weir__tick_run(&s->agenda, &tick_ops, s, op->now_ms, t->limit, &t->changed,
                                  &t->next_at, &t->schedules_due);
    if (s->damaged.n && t->next_at <= op->now_ms) {     /* a row that cannot be changed stays due */
        t->next_at = op->now_ms + DAMAGED_MS;
        s->agenda.announced = s->agenda.wanted = t->next_at;
    }
    return s->broken ? s->error.code : rc;
}

weir_code weir__sq_lose_all(sq_store *s)
{
    weir_code rc = weir__tick_lose_all(&s->agenda, &tick_ops, s, s->env.now(s->env.ctx));
    return s->broken ? s->error.code : rc;
}
