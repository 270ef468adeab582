/* confirm.c - the durability of the writes of a round. Each server that carried out some of them is
 * asked once, over the same connection: WAIT (replicas) and WAITAOF (its disk).
 *
 * Another connection would not do. Between the two, the server may have been restarted without the
 * writes, or replaced by a server that never had them. The outcome is then unknown:
 * WEIR_EUNKNOWN. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/redis/engine/engine.h"
#include "store/redis/link/net.h"

void weir__confirm_fini(redis_confirm *c)
{
    weir__call_fini(&c->guard);
    weir__call_fini(&c->replicas);
    weir__call_fini(&c->disk);
}

/* ---- asking ---- */

static int64_t wait_ms(const redis_lane *s)
{
    return s->top->url.timeout_ms / 2;
}

static void ask(redis_lane *s, const redis_call *about, redis_call *c, size_t argc,
                const char *const *argv)
{
    weir__call_reset(c);
    c->slot = about->slot;
    c->node = about->node;
    c->connection = about->connection;
    c->pinned = true;
    weir__resp_array(&c->command, argc);
    for (size_t i = 0; i < argc; i++)
        weir__resp_text(&c->command, argv[i]);
    weir__link_send(s->link, c);
}

/* A call that was repeated may have written nothing the second time. WAIT looks only at what was
 * written over its connection: so something is. */
static void ask_server(redis_lane *s, uint32_t part)
{
    redis_draft   *d = &s->draft[part];
    redis_confirm *c = &d->confirm;
    char           key[WEIR_REDIS_MAX_PREFIX + 32], replicas[12], ms[24];
    snprintf(key, sizeof key, "%s%s", s->part[part].prefix, s->layout->meta);
    snprintf(replicas, sizeof replicas, "%" PRIu32, s->top->url.replicas);
    snprintf(ms, sizeof ms, "%" PRId64, wait_ms(s));
    if (d->call.maybe)
        ask(s, &d->call, &c->guard, 4, (const char *[]){ "HSET", key, "confirm", "1" });
    if (s->top->url.replicas)
        ask(s, &d->call, &c->replicas, 3, (const char *[]){ "WAIT", replicas, ms });
    if (d->call.node->waits_aof)
        ask(s, &d->call, &c->disk, 4, (const char *[]){ "WAITAOF", "1", "0", ms });
}

/* ---- what they say ---- */

/* The number that the server says; -1: none, and *err says why. */
static int64_t wait_for(redis_lane *s, redis_call *c, weir_error *err)
{
    weir__link_wait(s->link, c);
    if (c->err.code) {
        weir_fail(err, WEIR_EUNKNOWN, "done, but not known how safe it is: %.150s", c->err.msg);
        return -1;
    }
    const redisReply *r = c->reply;
    return r->type == REDIS_REPLY_ARRAY && r->elements ? weir__reply_int(r->element[0])
                                                       : weir__reply_int(r);
}

static void take_replies(redis_lane *s, redis_draft *d)
{
    redis_confirm *c = &d->confirm;
    uint32_t       want = s->top->url.replicas;
    weir_error     guard = { 0 }, replicas = { 0 }, disk = { 0 };
    char           place[REDIS_PLACE_TEXT];
    weir__place_text(&d->call.node->place, place);
    if (d->call.maybe)
        wait_for(s, &c->guard, &guard);
    if (want) {
        int64_t n = wait_for(s, &c->replicas, &replicas);
        if (n >= 0 && n < (int64_t)want)
            weir_fail(&replicas, WEIR_EUNKNOWN, "redis %.80s: done, but only %" PRId64 " of "
                      "%" PRIu32 " replicas have it after %" PRId64 " ms: it is lost if this "
                      "server is", place, n, want, wait_ms(s));
    }
    if (d->call.node->waits_aof) {
        int64_t n = wait_for(s, &c->disk, &disk);
        if (n == 0)
            weir_fail(&disk, WEIR_EUNKNOWN, "redis %.80s: done, but not synced to its disk after "
                      "%" PRId64 " ms", place, wait_ms(s));
        else if (n > 0)
            d->call.durability = WEIR_DURABILITY_DISK;
    }
    c->err = guard.code ? guard : replicas.code ? replicas : disk;
}

/* The partition before this one whose call went over the same connection; this one: none. */
static uint32_t first_of_server(const redis_lane *s, uint32_t part)
{
    const redis_call *c = &s->draft[part].call;
    for (uint32_t i = 0; i < part; i++) {
        const redis_draft *d = &s->draft[i];
        if (d->confirm.asks && d->call.node == c->node && d->call.connection == c->connection)
            return i;
    }
    return part;
}

void weir__confirm(redis_lane *s)
{
    if (!s->top->url.replicas && !s->top->url.durability)
        return;
    for (uint32_t i = 0; i < s->n_parts; i++) {
        redis_draft *d = &s->draft[i];
        d->confirm.err = (weir_error){ 0 };
        d->confirm.asks = false;
        if (!d->n_answers || d->call.err.code)
            continue;
        d->confirm.asks = d->call.maybe || first_of_server(s, i) == i;
        if (d->confirm.asks)
            ask_server(s, i);
    }
    for (uint32_t i = 0; i < s->n_parts; i++) {
        redis_draft *d = &s->draft[i];
        if (!d->n_answers || d->call.err.code)
            continue;
        if (d->confirm.asks) {
            take_replies(s, d);
            continue;
        }
        const redis_draft *first = &s->draft[first_of_server(s, i)];
        d->confirm.err = first->confirm.err;
        d->call.durability = first->call.durability;
    }
}

const weir_error *weir__step_unsafe(const redis_lane *s, const redis_task *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const redis_draft *d = &s->draft[s->step[t->first + i].part];
        if (d->confirm.err.code)
            return &d->confirm.err;
    }
    return NULL;
}
