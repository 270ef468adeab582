/* info.c - which Redis it is, what its servers do before they reply to a write, and whether they
 * accept writes at all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/results.h"
#include "store/redis/engine/engine.h"
#include "store/redis/link/net.h"

/* The text behind a name in the answer to INFO, "redis_version:7.0.15"; a user without the right to
 * it has none: NULL. */
static const char *find(const redisReply *r, const char *name)
{
    const char *at = r->str ? strstr(r->str, name) : NULL;
    return at ? at + strlen(name) : NULL;
}

static void take_version(weir_info *info, const redisReply *r)
{
    const char *at = find(r, "\nredis_version:");
    if (at)
        snprintf(info->engine, sizeof info->engine, "Redis %.*s", (int)strcspn(at, "\r\n"), at);
}

/* Keep the room of the server that is fullest. Without maxmemory there is no limit. */
static void take_room(weir_info *info, const redisReply *r)
{
    const char *used = find(r, "\nused_memory:"), *limit = find(r, "\nmaxmemory:");
    int64_t     n = used ? strtoll(used, NULL, 10) : 0, most = limit ? strtoll(limit, NULL, 10) : 0;
    if (most > 0 && (!info->limit_bytes || (double)n / (double)most >
                     (double)info->used_bytes / (double)info->limit_bytes)) {
        info->used_bytes = n;
        info->limit_bytes = most;
    }
}

static void ask_info(redis_lane *s, uint32_t part, const char *section, redis_call *c)
{
    *c = (redis_call){ .slot = s->part[part].slot, .repeatable = true };
    weir__resp_array(&c->command, 2);
    weir__resp_text(&c->command, "INFO");
    weir__resp_text(&c->command, section);
    weir__link_send(s->link, c);
    weir__link_wait(s->link, c);
}

/* Ask the server of a partition. */
static weir_code ask(redis_lane *s, uint32_t part, weir_info *info, weir_error *err)
{
    redis_call c, memory;
    ask_info(s, part, "server", &c);
    if (c.err.code) {
        *err = c.err;
    } else {
        char            place[REDIS_PLACE_TEXT];
        weir_durability reached = c.node->waits_aof ? WEIR_DURABILITY_DISK : c.durability;
        if (!*info->place)
            snprintf(info->place, sizeof info->place, "%s",
                     weir__place_text(&c.node->place, place));
        if (reached > info->durability)
            info->durability = reached;
        take_version(info, c.reply);
        ask_info(s, part, "memory", &memory);
        if (!memory.err.code)
            take_room(info, memory.reply);
        weir__call_fini(&memory);
    }
    weir__call_fini(&c);
    return err->code;
}

/* The durability is the lowest of all servers. */
weir_code weir__redis_info(redis_lane *s, weir_op *op)
{
    weir_info *info = weir__info_create(s->top->base.ops->name);
    op->u.info.info = NULL;
    if (!info)
        return weir_fail(&op->err, WEIR_ENOMEM, "info: out of memory");
    for (uint32_t i = 0; !op->err.code && i < s->n_parts; i++)
        ask(s, i, info, &op->err);
    if (op->err.code)
        free(info);
    else
        op->u.info.info = info;
    return op->err.code;
}

/* SETRANGE with nothing to set changes nothing, and Redis refuses it as it does any write: if its
 * memory or its disk is full, or on a replica. */
static weir_code ask_write(redis_lane *s, uint32_t part, weir_error *err)
{
    char       key[WEIR_REDIS_MAX_PREFIX + 32];
    redis_call c = { .slot = s->part[part].slot, .repeatable = true };
    snprintf(key, sizeof key, "%s%s:probe", s->part[part].prefix,
             s->layout->meta);
    weir__resp_array(&c.command, 4);
    weir__resp_text(&c.command, "SETRANGE");
    weir__resp_text(&c.command, key);
    weir__resp_text(&c.command, "0");
    weir__resp_text(&c.command, "");
    weir__link_send(s->link, &c);
    weir__link_wait(s->link, &c);
    if (c.err.code)
        *err = c.err;
    weir__call_fini(&c);
    return err->code;
}

void weir__redis_try_write(redis_lane *s, weir_error *err)
{
    for (uint32_t i = 0; i < s->n_parts; i++)
        if (ask_write(s, i, err))
            return;
}
