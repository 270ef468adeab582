/* ops_take.c - which partitions takes ask, also takes that follow an end. Where one has given
 * all it has, others are asked, until there is enough or nobody is left. */
#include "store/redis/engine/engine.h"

/* ---- whom to ask ---- */

bool weir__taking_here(redis_lane *s, uint32_t part, const weir_op_take *take)
{
    uint32_t first;
    if (take->when)
        return false;
    return weir__backlog_first(s, take, &first) ? first == part : !take->notified;
}

void weir__taking_begin(redis_lane *s, redis_task *t, const weir_op_take *take)
{
    if (take->when)
        weir__choosing_begin(s, t, take);
    else
        t->over = !weir__backlog_first(s, take, &t->part) && take->notified;
}

/* Is anything of these types waiting there? */
static void peek_steps(redis_lane *s, redis_task *t, const weir_op_take *take)
{
    for (uint32_t part = 0; part < s->n_parts; part++) {
        for (size_t i = 0; weir__parts_have(&t->waits, part) && i < take->n_types; i++) {
            weir_query first = { .state = WEIR_STATE_INACTIVE, .type = take->types[i],
                                 .ids_only = true };
            weir__redis_list_step(s, t, part, &first, 0);
        }
    }
}

void weir__taking_act(redis_lane *s, redis_task *t, const weir_op_take *take)
{
    if (take->when)
        weir__choosing_act(s, t, take);
    else if (t->taking == TAKE_PEEK)
        peek_steps(s, t, take);
    else
        weir__step_take(s, t, t->part, take);
}

static void peeked(redis_lane *s, redis_task *t, const weir_op_take *take)
{
    weir_error err;
    t->waits = (redis_parts){ 0 };
    for (size_t i = 0; i < t->n; i++) {
        const redisReply *r = weir__step_answer(s, t, i, &err);
        uint32_t          part = s->step[t->first + i].part;
        if (r && r->elements)
            weir__parts_add(&t->waits, part);
        else if (r)
            weir__backlog_set_empty(s, part, &take->types[i % take->n_types], 1);
    }
}

/* The next of these behind t->part, but none twice; false: none is left. */
static bool next_of(const redis_lane *s, redis_task *t, const redis_parts *parts)
{
    for (uint32_t k = 1; k < s->n_parts; k++) {
        uint32_t part = (t->part + k) % s->n_parts;
        if (weir__parts_have(parts, part) && !weir__parts_have(&t->asked, part)) {
            t->part = part;
            return true;
        }
    }
    return false;
}

/* How many partitions are left that are worth a look; notes them in t->waits. */
static uint32_t left(const redis_lane *s, redis_task *t, const redis_parts *may, bool notified)
{
    uint32_t n = 0;
    t->waits = (redis_parts){ 0 };
    for (uint32_t part = 0; part < s->n_parts; part++) {
        if (weir__parts_have(&t->asked, part) || (notified && !weir__parts_have(may, part)))
            continue;
        weir__parts_add(&t->waits, part);
        n++;
    }
    return n;
}

/* It has too little. Where one has jobs the next mostly has some, too: then it is asked for them.
 * Else all are asked whether they have any. */
static void ask_others(redis_lane *s, redis_task *t, const weir_op_take *take, bool gave)
{
    if (t->taking == TAKE_FIRST) {
        redis_parts may = weir__backlog_candidates(s, take);
        uint32_t    n = left(s, t, &may, take->notified);
        if (n > 1 && !(gave && next_of(s, t, &may)))
            t->taking = TAKE_PEEK;
        else if (n == 1)
            next_of(s, t, &t->waits);
        t->over = !n;
        return;
    }
    if (t->taking == TAKE_PEEK)
        peeked(s, t, take);
    t->taking = TAKE_REST;
    t->over = !next_of(s, t, &t->waits);
}

/* ---- what they gave ---- */

/* The step has given what it has. */
static void taken(redis_lane *s, redis_task *t, weir_op_take *take, bool gave, bool waits)
{
    take->partial = weir__jobs_fill_take(take->jobs, take->n_jobs);
    bool enough = take->n_jobs == take->n || take->partial ||
                  (take->n_jobs == 1 && weir__job_is_suspect(take->jobs[0]));
    if (t->taking != TAKE_PEEK) {
        weir__parts_add(&t->asked, t->part);
        if (!enough && !waits)
            weir__backlog_set_empty(s, t->part, take->types, take->n_types);
        if (!enough)
            weir__tokens_watch(s->top, take->types, take->n_types);
    }
    if (enough)
        t->over = true;
    else
        ask_others(s, t, take, gave);
}

/* Jobs that were given are ours, whatever comes after: an answer that fails then is no failure of
 * the whole. */
void weir__taking_end(redis_lane *s, redis_task *t, weir_op_take *take, size_t i)
{
    if (take->when) {
        weir__choosing_end(s, t, take);
        return;
    }
    weir_error err = { 0 };
    size_t     before = take->n_jobs;
    bool       waited = take->suspect_waits, waits = false;
    if (t->taking != TAKE_PEEK) {
        take->suspect_waits = false;
        weir__step_taken(s, t, i, take, &err);
        waits = take->suspect_waits;
        take->suspect_waits = waits || waited;
        for (size_t k = before; k < take->n_jobs; k++)
            take->jobs[k]->lease_until = take->jobs[k]->started_at + take->lease_ms;
        weir__backlog_shrank(s, t->part, take->jobs + before, take->n_jobs - before);
        if (err.code && !take->n_jobs && !t->finished) {
            weir__task_fail(t, &err);
            return;
        }
    }
    if (err.code)
        t->over = take->partial = true;
    else
        taken(s, t, take, take->n_jobs > before, waits);
}

/* ---- the operation ---- */

bool weir__redis_take_look(redis_lane *s, redis_task *t)
{
    return weir__choosing_look(s, t);
}

void weir__redis_take_seen(redis_lane *s, redis_task *t)
{
    weir__choosing_seen(s, t, &t->op->u.take);
}

void weir__redis_take_act(redis_lane *s, redis_task *t)
{
    weir_op_take *take = &t->op->u.take;
    if (!t->rounds) {
        take->n_jobs = 0;
        take->suspect_waits = false;
        weir__taking_begin(s, t, take);
    }
    if (!t->over)
        weir__taking_act(s, t, take);
}

void weir__redis_take_end(redis_lane *s, redis_task *t)
{
    weir__taking_end(s, t, &t->op->u.take, 0);
}
