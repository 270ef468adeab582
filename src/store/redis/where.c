/* where.c - where jobs may wait. Each partition costs a call: so a take is to ask where there are
 * jobs, and where the jobs are that end in the same batch.
 *
 * Whatever begins to wait is told (enqueue, resume). So where a take found too little, nothing of
 * its types waits; then what is told counts up, and what we take counts down: there may be fewer
 * (others take, too), never more for longer than it takes to be told of them. What is told while an
 * answer is under way may be older or newer than that: then the answer says nothing. */
#include "store/redis/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long takes stay with a partition that goes on giving. All others wait for so long; but each
 * change costs two calls more. */
enum { STAY_MS = 20 };

#define UNKNOWN UINT32_MAX              /* how many wait */

bool weir__where_open(redis_store *s)
{
    s->where.told = calloc(s->n_parts, sizeof *s->where.told);
    s->where.waits = calloc((size_t)s->n_parts * REDIS_MAX_WHERE, sizeof *s->where.waits);
    for (size_t i = 0; s->where.waits && i < REDIS_MAX_WHERE; i++)
        s->where.type[i].waits = s->where.waits + i * s->n_parts;
    return s->where.told && s->where.waits;
}

void weir__where_close(redis_store *s)
{
    free(s->where.told);
    free(s->where.waits);
    pthread_mutex_destroy(&s->where.lock);
}

static redis_where *find(redis_store *s, const char *type)
{
    for (size_t i = 0; i < s->where.n; i++) {
        if (!strcmp(s->where.type[i].type, type))
            return &s->where.type[i];
    }
    return NULL;
}

/* The place of a type. Of too many, the one that has been there longest is forgotten. */
static redis_where *find_or_make(redis_store *s, const char *type)
{
    redis_where *w = find(s, type);
    if (w)
        return w;
    size_t i = s->where.n < REDIS_MAX_WHERE ? s->where.n++ : s->where.next++ % REDIS_MAX_WHERE;
    w = &s->where.type[i];
    snprintf(w->type, sizeof w->type, "%s", type);
    for (uint32_t part = 0; part < s->n_parts; part++)
        w->waits[part] = UNKNOWN;
    w->part = s->chance % s->n_parts;
    w->since = INT64_MIN;
    return w;
}

/* ---- what was told ---- */

void weir__where_told(redis_store *s, uint32_t part, const char *type, size_t n)
{
    if (s->n_parts == 1)
        return;
    pthread_mutex_lock(&s->where.lock);
    redis_where *w = find(s, type);
    s->where.told[part]++;
    if (w)
        w->waits[part] = n < UNKNOWN - w->waits[part] ? w->waits[part] + (uint32_t)n : UNKNOWN;
    pthread_mutex_unlock(&s->where.lock);
}

void weir__where_missed(redis_store *s, uint32_t part)
{
    pthread_mutex_lock(&s->where.lock);
    s->where.told[part]++;
    for (size_t i = 0; i < s->where.n; i++)
        s->where.type[i].waits[part] = UNKNOWN;
    pthread_mutex_unlock(&s->where.lock);
}

void weir__where_resumed(redis_store *s)
{
    for (uint32_t part = 0; part < s->n_parts; part++)
        weir__where_missed(s, part);
}

/* ---- what was found ---- */

void weir__where_mark(redis_lane *s, uint32_t part)
{
    if (s->n_parts == 1)
        return;
    pthread_mutex_lock(&s->top->where.lock);
    s->draft[part].told = s->top->where.told[part];
    pthread_mutex_unlock(&s->top->where.lock);
}

void weir__where_taken(redis_lane *s, uint32_t part, weir_job *const *jobs, size_t n)
{
    redis_store *top = s->top;
    if (s->n_parts == 1)
        return;
    pthread_mutex_lock(&top->where.lock);
    for (size_t i = 0, same; i < n; i += same) {
        redis_where *w = find(top, jobs[i]->type);
        for (same = 1; i + same < n && !strcmp(jobs[i]->type, jobs[i + same]->type); same++) {}
        if (w && w->waits[part] != UNKNOWN)
            w->waits[part] -= same < w->waits[part] ? (uint32_t)same : w->waits[part];
    }
    pthread_mutex_unlock(&top->where.lock);
}

void weir__where_dry(redis_lane *s, uint32_t part, const char *const *types, size_t n)
{
    redis_store *top = s->top;
    if (s->n_parts == 1)
        return;
    pthread_mutex_lock(&top->where.lock);
    for (size_t i = 0; i < n && s->draft[part].told == top->where.told[part]; i++)
        find_or_make(top, types[i])->waits[part] = 0;
    pthread_mutex_unlock(&top->where.lock);
}

/* ---- where to ask ---- */

static redis_parts may_have(redis_store *s, const weir_op_take *take)
{
    redis_parts may = { 0 };
    for (size_t i = 0; i < take->n_types; i++) {
        const redis_where *w = find(s, take->types[i]);
        for (uint32_t part = 0; part < s->n_parts; part++) {
            if (!w || w->waits[part])
                weir__parts_add(&may, part);
        }
    }
    return may;
}

redis_parts weir__where_may(redis_lane *s, const weir_op_take *take)
{
    pthread_mutex_lock(&s->top->where.lock);
    redis_parts may = may_have(s->top, take);
    pthread_mutex_unlock(&s->top->where.lock);
    return may;
}

/* It goes on where it is, or else at the next in turn. */
static bool choose(const redis_lane *s, redis_where *w, const redis_parts *may, int64_t now)
{
    bool stays = w->since <= now && now < w->since + STAY_MS;
    for (uint32_t k = stays ? 0 : 1; k <= s->n_parts; k++) {
        uint32_t part = (w->part + k) % s->n_parts;
        if (!weir__parts_have(may, part))
            continue;
        if (k) {
            w->part = part;
            w->since = now;
        }
        return true;
    }
    w->part = (w->part + 1) % s->n_parts;
    return false;
}

bool weir__where_begin(redis_lane *s, const weir_op_take *take, uint32_t *part)
{
    redis_store *top = s->top;
    *part = 0;
    if (s->n_parts == 1)
        return true;
    pthread_mutex_lock(&top->where.lock);
    redis_where *w = find_or_make(top, take->types[0]);
    redis_parts  may = may_have(top, take);
    bool         some = choose(s, w, &may, top->env.now(top->env.ctx));
    *part = w->part;
    pthread_mutex_unlock(&top->where.lock);
    return some;
}
