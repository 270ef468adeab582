/* backlog.c - an upper bound of the jobs that wait, per type and partition. Asking a partition
 * costs a call, so a take asks partitions that have jobs, and first the one to which its batch goes
 * anyway.
 *
 * waits[part] of a type is an upper bound, or UNKNOWN:
 *   an enqueue event   adds to it
 *   a take             subtracts the jobs it got; other processes take, too, so the true number may
 *                      be lower
 *   an empty take      sets it to 0, unless an enqueue event arrived while the take was under way.
 *                      The two cannot be ordered then, and epoch[part] shows it: it counts events.
 * Every job that begins to wait is announced by an event, so 0 stays true until the next event. */
#include "store/redis/engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes stay with a partition that has jobs for this long. Jobs in other partitions wait for as
 * long; but each change of the partition costs two more calls. */
enum { STAY_MS = 20 };

#define UNKNOWN UINT32_MAX              /* as the number of waiting jobs */

bool weir__backlog_open(redis_store *s)
{
    s->backlog.epoch = calloc(s->n_parts, sizeof *s->backlog.epoch);
    s->backlog.waits = calloc((size_t)s->n_parts * REDIS_MAX_BACKLOG, sizeof *s->backlog.waits);
    for (size_t i = 0; s->backlog.waits && i < REDIS_MAX_BACKLOG; i++)
        s->backlog.type[i].waits = s->backlog.waits + i * s->n_parts;
    return s->backlog.epoch && s->backlog.waits;
}

void weir__backlog_close(redis_store *s)
{
    free(s->backlog.epoch);
    free(s->backlog.waits);
    pthread_mutex_destroy(&s->backlog.lock);
}

static redis_backlog *find(redis_store *s, const char *type)
{
    for (size_t i = 0; i < s->backlog.n; i++) {
        if (!strcmp(s->backlog.type[i].type, type))
            return &s->backlog.type[i];
    }
    return NULL;
}

/* The entry of a type. If all entries are in use, the oldest one is replaced. */
static redis_backlog *find_or_make(redis_store *s, const char *type)
{
    redis_backlog *w = find(s, type);
    if (w)
        return w;
    size_t i = s->backlog.n < REDIS_MAX_BACKLOG ? s->backlog.n++
                                                : s->backlog.next++ % REDIS_MAX_BACKLOG;
    w = &s->backlog.type[i];
    snprintf(w->type, sizeof w->type, "%s", type);
    for (uint32_t part = 0; part < s->n_parts; part++)
        w->waits[part] = UNKNOWN;
    w->part = s->chance % s->n_parts;
    w->since = INT64_MIN;
    return w;
}

/* ---- events ---- */

void weir__backlog_grew(redis_store *s, uint32_t part, const char *type, size_t n)
{
    if (s->n_parts == 1)
        return;
    pthread_mutex_lock(&s->backlog.lock);
    redis_backlog *w = find(s, type);
    s->backlog.epoch[part]++;
    if (w)
        w->waits[part] = n < UNKNOWN - w->waits[part] ? w->waits[part] + (uint32_t)n : UNKNOWN;
    pthread_mutex_unlock(&s->backlog.lock);
}

void weir__backlog_forget(redis_store *s, uint32_t part)
{
    pthread_mutex_lock(&s->backlog.lock);
    s->backlog.epoch[part]++;
    for (size_t i = 0; i < s->backlog.n; i++)
        s->backlog.type[i].waits[part] = UNKNOWN;
    pthread_mutex_unlock(&s->backlog.lock);
}

void weir__backlog_forget_all(redis_store *s)
{
    for (uint32_t part = 0; part < s->n_parts; part++)
        weir__backlog_forget(s, part);
}

/* ---- answers of takes ---- */

void weir__backlog_mark(redis_lane *s, uint32_t part)
{
    if (s->n_parts == 1)
        return;
    pthread_mutex_lock(&s->top->backlog.lock);
    s->draft[part].backlog_epoch = s->top->backlog.epoch[part];
    pthread_mutex_unlock(&s->top->backlog.lock);
}

void weir__backlog_shrank(redis_lane *s, uint32_t part, weir_job *const *jobs, size_t n)
{
    redis_store *top = s->top;
    if (s->n_parts == 1)
        return;
    pthread_mutex_lock(&top->backlog.lock);
    for (size_t i = 0, same; i < n; i += same) {
        redis_backlog *w = find(top, jobs[i]->type);
        for (same = 1; i + same < n && !strcmp(jobs[i]->type, jobs[i + same]->type); same++) {}
        if (w && w->waits[part] != UNKNOWN)
            w->waits[part] -= same < w->waits[part] ? (uint32_t)same : w->waits[part];
    }
    pthread_mutex_unlock(&top->backlog.lock);
}

void weir__backlog_set_empty(redis_lane *s, uint32_t part, const char *const *types, size_t n)
{
    redis_store *top = s->top;
    if (s->n_parts == 1)
        return;
    pthread_mutex_lock(&top->backlog.lock);
    for (size_t i = 0; i < n && s->draft[part].backlog_epoch == top->backlog.epoch[part]; i++)
        find_or_make(top, types[i])->waits[part] = 0;
    pthread_mutex_unlock(&top->backlog.lock);
}

/* ---- which partition to ask ---- */

static redis_parts may_have(redis_store *s, const weir_op_take *take)
{
    redis_parts may = { 0 };
    for (size_t i = 0; i < take->n_types; i++) {
        const redis_backlog *w = find(s, take->types[i]);
        for (uint32_t part = 0; part < s->n_parts; part++) {
            if (!w || w->waits[part])
                weir__parts_add(&may, part);
        }
    }
    return may;
}

redis_parts weir__backlog_candidates(redis_lane *s, const weir_op_take *take)
{
    pthread_mutex_lock(&s->top->backlog.lock);
    redis_parts may = may_have(s->top, take);
    pthread_mutex_unlock(&s->top->backlog.lock);
    return may;
}

/* Stay with w->part, or go on to the next candidate. */
static bool choose(const redis_lane *s, redis_backlog *w, const redis_parts *may, int64_t now)
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

bool weir__backlog_first(redis_lane *s, const weir_op_take *take, uint32_t *part)
{
    redis_store *top = s->top;
    *part = 0;
    if (s->n_parts == 1)
        return true;
    pthread_mutex_lock(&top->backlog.lock);
    redis_backlog *w = find_or_make(top, take->types[0]);
    redis_parts  may = may_have(top, take);
    bool         some = choose(s, w, &may, top->env.now(top->env.ctx));
    *part = w->part;
    pthread_mutex_unlock(&top->backlog.lock);
    return some;
}
