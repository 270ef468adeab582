/* info.c - which Redis it is, and what its servers do before they reply to a write. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/results.h"
#include "store/redis/engine/engine.h"
#include "store/redis/link/net.h"

/* "redis_version:7.0.15" in the answer to INFO server; a user without the right to it has none. */
static void take_version(weir_info *info, const redisReply *r)
{
    static const char name[] = "redis_version:";
    const char       *at = r->str ? strstr(r->str, name) : NULL;
    if (!at)
        return;
    at += sizeof name - 1;
    snprintf(info->engine, sizeof info->engine, "Redis %.*s", (int)strcspn(at, "\r\n"), at);
}

/* Ask the server of a partition. */
static weir_code ask(redis_lane *s, uint32_t part, weir_info *info, weir_error *err)
{
    redis_call c = { .slot = s->part[part].slot, .repeatable = true };
    weir__resp_array(&c.command, 2);
    weir__resp_text(&c.command, "INFO");
    weir__resp_text(&c.command, "server");
    weir__link_send(s->link, &c);
    weir__link_wait(s->link, &c);
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
    }
    weir__call_fini(&c);
    return err->code;
}

/* The durability is that of the server which promises least. */
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
