/* choose.c - takes with a condition. Lua evaluates none: the jobs that wait are read here, page by
 * page of each type in each partition, and the condition is asked for each. A job that may be taken
 * is read once more and put as active (step P), which fails if the job has changed meanwhile.
 *
 * Pages of several lists are merged: a job is taken only when no list can have a better one on a
 * page that is not read yet. */
#include "store/redis/engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "core/condition.h"
#include "core/job.h"

enum {
    PAGE       = 100,               /* jobs of a list that are read at once */
    MOST_TURNS = 500                /* rounds of an operation: then there may be more */
};

/* The waiting jobs of a type in a partition. */
typedef struct list {
    uint32_t    part;
    const char *type;
    weir_cursor at;                 /* read up to here */
    bool        more;
} list;

typedef struct redis_choosing {
    weir_condition *when;
    weir_job      **job;            /* that may be taken, best first, from `next` on */
    size_t          n, cap, next;
    size_t          looked, passed; /* jobs that the condition was asked for; suspects */
    bool            tries;          /* the best of them is being taken in this round */
    size_t          n_lists;
    list            list[];
} choosing;

void weir__choosing_free(redis_task *t)
{
    choosing *c = t->choosing;
    if (!c)
        return;
    for (size_t i = c->next; i < c->n; i++)
        weir_job_free(c->job[i]);
    weir_condition_free(c->when);
    free(c->job);
    free(c);
    t->choosing = NULL;
}

static void no_memory(redis_task *t)
{
    weir_error err;
    weir_fail(&err, WEIR_ENOMEM, "take: out of memory");
    weir__task_fail(t, &err);
}

void weir__choosing_begin(redis_lane *s, redis_task *t, const weir_op_take *take)
{
    choosing *c = calloc(1, sizeof *c + s->n_parts * take->n_types * sizeof *c->list);
    t->choosing = c;
    if (!c || weir_condition_parse(&c->when, take->when, NULL)) {
        no_memory(t);
        return;
    }
    for (uint32_t part = 0; part < s->n_parts; part++) {
        for (size_t i = 0; i < take->n_types; i++) {
            bool twice = false;
            for (size_t k = 0; k < i && !twice; k++)
                twice = strcmp(take->types[k], take->types[i]) == 0;
            if (twice)
                continue;
            c->list[c->n_lists++] = (list){ .part = part, .type = take->types[i], .more = true };
        }
    }
}

/* ---- the best of the jobs read ---- */

static int by_place(const void *a, const void *b)
{
    const weir_job *x = *(weir_job *const *)a, *y = *(weir_job *const *)b;
    return weir__job_before(x->priority, x->id, y->priority, y->id) ? -1 : 1;
}

static bool reads_more(const choosing *c)
{
    for (size_t i = 0; i < c->n_lists; i++)
        if (c->list[i].more)
            return c->looked < WEIR_MAX_LOOK;
    return false;
}

/* Can a list still have a better one? */
static bool is_first(const choosing *c, const weir_job *j)
{
    for (size_t i = 0; i < c->n_lists && reads_more(c); i++) {
        const list *l = &c->list[i];
        if (l->more && !weir__job_before(j->priority, j->id, (int32_t)l->at.rank, l->at.id + 1))
            return false;
    }
    return true;
}

/* Suspects that this worker does not get are left out. NULL: more must be read first, or no job is
 * left. */
static weir_job *best_of(choosing *c, weir_op_take *take)
{
    while (c->next < c->n && is_first(c, c->job[c->next])) {
        weir_job *j = c->job[c->next];
        if (!weir__job_is_suspect(j) || (!take->busy && !take->n_jobs))
            return j;
        take->suspect_waits = true;
        c->passed++;
        c->next++;
        weir_job_free(j);
    }
    return NULL;
}

/* ---- reading ---- */

static void list_steps(redis_lane *s, redis_task *t)
{
    choosing *c = t->choosing;
    for (size_t i = 0; i < c->n_lists; i++) {
        weir_query page = { .state = WEIR_STATE_INACTIVE, .type = c->list[i].type,
                            .after = c->list[i].at, .limit = PAGE };
        if (c->list[i].more)
            weir__redis_list_step(s, t, c->list[i].part, &page, 0);
    }
}

/* Keep the jobs of a page that may be taken. */
static weir_code read_page(choosing *c, list *l, const redisReply *r, int64_t now,
                           weir_error *err)
{
    weir_job  *page[PAGE];
    size_t     n = 0;
    redisReply some = *r;
    l->more = some.elements / 3 > PAGE;
    if (l->more)
        some.elements = 3 * PAGE;
    bool      room = weir__grow(&c->job, &c->cap, c->n + PAGE, sizeof *c->job);
    weir_code rc = room ? weir__jobs_of(&some, page, &n, PAGE, err)
                        : weir_fail(err, WEIR_ENOMEM, "take: out of memory");
    for (size_t i = 0; i < n; i++) {
        weir_job *j = page[i];
        l->at = (weir_cursor){ .rank = weir__job_rank(j), .id = j->id };
        c->looked++;
        if (!rc && (!j->deadline_at || j->deadline_at > now) &&
            weir__condition_holds(c->when, j, now))
            c->job[c->n++] = j;
        else
            weir_job_free(j);
    }
    return rc;
}

static void read_pages(redis_lane *s, redis_task *t, weir_error *err)
{
    choosing *c = t->choosing;
    for (size_t i = 0, step = 0; i < c->n_lists && !err->code; i++) {
        if (!c->list[i].more)
            continue;
        const redisReply *r = weir__step_answer(s, t, step, err);
        if (r)
            read_page(c, &c->list[i], r, weir__step_now(s, t, step), err);
        step++;
    }
    if (c->n > c->next)
        qsort(c->job + c->next, c->n - c->next, sizeof *c->job, by_place);
}

/* ---- taking ---- */

bool weir__choosing_look(redis_lane *s, redis_task *t)
{
    choosing *c = t->choosing;
    if (!c || !c->tries)
        return false;
    weir__task_look(s, t, c->job[c->next]->id);
    return true;
}

/* An error is none of the whole when jobs were given before. */
static void stop_short(redis_task *t, weir_op_take *take)
{
    if (!take->n_jobs && !t->finished)
        return;
    t->op->err = (weir_error){ 0 };
    take->partial = true;
}

void weir__choosing_seen(redis_lane *s, redis_task *t, weir_op_take *take)
{
    const choosing *c = t->choosing;
    const weir_job *j = c->job[c->next];
    if (weir__task_seen(s, t, j->id))
        stop_short(t, take);
    else if (t->seen && (t->seen->state != WEIR_STATE_INACTIVE ||
                         t->seen->updated_at != j->updated_at ||
                         t->seen->delivery != j->delivery))
        weir__task_drop(t);                 /* it is another one now */
}

void weir__choosing_act(redis_lane *s, redis_task *t, const weir_op_take *take)
{
    if (!t->choosing->tries) {
        list_steps(s, t);
        return;
    }
    if (!t->seen)
        return;
    weir__job_take(t->seen, take->worker, take->lease_ms, t->now, &t->effects);
    weir__put_seen(s, t);
}

/* The job as it is now, for the caller. */
static bool give(choosing *c, weir_op_take *take, const redis_task *t)
{
    weir_job     now = *c->job[c->next];
    weir_effects e;
    weir__job_take(&now, take->worker, take->lease_ms, t->now, &e);
    weir_job *copy = weir__job_copy(&now);
    weir__effects_fini(&e);
    if (copy)
        take->jobs[take->n_jobs++] = copy;
    return copy != NULL;
}

/* The best one was taken, or not. */
static void tried(redis_lane *s, redis_task *t, weir_op_take *take, weir_error *err)
{
    enum { TAKEN = 1 };
    choosing         *c = t->choosing;
    const redisReply *r = t->seen ? weir__step_answer(s, t, 0, err) : NULL;
    if (r && weir__reply_int(r) == TAKEN) {
        if (give(c, take, t))
            weir__backlog_shrank(s, s->step[t->first].part, take->jobs + take->n_jobs - 1, 1);
        else
            weir_fail(err, WEIR_ENOMEM, "take: out of memory");
    }
    weir_job_free(c->job[c->next++]);
    c->tries = false;
}

static bool has_enough(const choosing *c, const weir_op_take *take)
{
    return take->n_jobs == take->n || take->partial || c->passed >= WEIR_MAX_PASSED ||
           (take->n_jobs == 1 && weir__job_is_suspect(take->jobs[0]));
}

/* Jobs that were given are ours, whatever comes after. */
void weir__choosing_end(redis_lane *s, redis_task *t, weir_op_take *take)
{
    choosing  *c = t->choosing;
    weir_error err = { 0 };
    if (c->tries)
        tried(s, t, take, &err);
    else
        read_pages(s, t, &err);
    if (err.code && !take->n_jobs && !t->finished) {
        weir__task_fail(t, &err);
        return;
    }
    take->partial = err.code || t->rounds >= MOST_TURNS ||
                    weir__jobs_fill_take(take->jobs, take->n_jobs);
    c->tries = !has_enough(c, take) && best_of(c, take) != NULL;
    t->over = has_enough(c, take) || (!c->tries && !reads_more(c));
    if (t->over && !has_enough(c, take))
        weir__tokens_watch(s->top, take->types, take->n_types);
}
