/* server_clock.c - Redis's clock, by which leases and ttls end, may be set while workers go on.
 * Every process compares it with its own monotonic clock; when it was set, the first one to notice
 * moves the leases and ttls along (the step Y). So a living worker keeps its jobs, and the jobs of
 * a dead worker are free at the same time as without the step. In a cluster each server has a clock
 * of its own. */
#include <stdlib.h>

#include "store/redis/engine/engine.h"

enum { STEP_MS = 2000 };        /* less is not worth it: leases are longer */

weir_code weir__clock_open(redis_store *s, weir_error *err)
{
    if (s->env.test_clock)
        return WEIR_OK;
    s->clock = calloc(s->n_parts, sizeof *s->clock);
    if (!s->clock)
        return weir_fail(err, WEIR_ENOMEM, "redis: out of memory");
    for (uint32_t i = 0; i < s->n_parts; i++)
        s->clock[i].count = -1;
    return WEIR_OK;
}

void weir__clock_close(redis_store *s)
{
    free(s->clock);
    pthread_mutex_destroy(&s->clock_lock);
}

/* The middle of what is possible, before and after. An answer that took long says little, unless it
 * contradicts what was known. */
static bool compare(redis_clock *c, int64_t least, int64_t most)
{
    bool stepped = c->known && (least > c->most_ms + STEP_MS || most < c->least_ms - STEP_MS);
    if (stepped)
        c->step_ms += (least + most) / 2 - (c->least_ms + c->most_ms) / 2;
    if (!c->known || stepped || most - least < STEP_MS) {
        c->least_ms = least;
        c->most_ms = most;
    }
    c->known = true;
    return stepped;
}

void weir__clock_seen(redis_store *s, uint32_t part, int64_t now, int64_t sent, int64_t got)
{
    if (!s->clock)
        return;
    pthread_mutex_lock(&s->clock_lock);
    bool stepped = compare(&s->clock[part], now - got - 1, now - sent + 1);
    pthread_mutex_unlock(&s->clock_lock);
    if (stepped && s->env.due)
        s->env.due(s->env.ctx, INT64_MIN);      /* a TICK moves the leases */
}

bool weir__clock_has_step(redis_store *s, uint32_t part)
{
    if (!s->clock)
        return false;
    pthread_mutex_lock(&s->clock_lock);
    bool has = s->clock[part].step_ms != 0;
    pthread_mutex_unlock(&s->clock_lock);
    return has;
}

void weir__clock_count(redis_store *s, uint32_t part, int64_t count)
{
    if (!s->clock)
        return;
    pthread_mutex_lock(&s->clock_lock);
    s->clock[part].count = count;
    pthread_mutex_unlock(&s->clock_lock);
}

void weir__clock_repair(redis_lane *l, redis_task *t, uint32_t part)
{
    redis_store *s = l->top;
    if (!weir__clock_has_step(s, part))
        return;
    pthread_mutex_lock(&s->clock_lock);
    redis_clock *c = &s->clock[part];
    int64_t      step_ms = c->step_ms, count = c->count;
    c->step_ms = 0;
    pthread_mutex_unlock(&s->clock_lock);
    weir_buf *b = weir__step(l, t, part, 'Y', 2);
    weir__resp_int(b, step_ms);
    weir__resp_int(b, count);
}
