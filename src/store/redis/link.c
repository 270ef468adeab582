/* link.c - the way to Redis: one primary, so far. */
#include "store/redis/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "store/redis/conn.h"

struct redis_link {
    redis_url       url;
    redisContext   *ctx;
    redis_call     *first, **last;      /* sent, without an answer */
    weir_durability durability;
};

enum { CALL_SENT = 1, CALL_DONE };

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void nap(int64_t ms)
{
    struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };
    nanosleep(&ts, NULL);
}

static weir_code ask_durability(redis_link *l, weir_error *err)
{
    l->durability = WEIR_DURABLE_NONE;
    redisReply *r = redisCommand(l->ctx, "CONFIG GET append*");
    if (!r)
        return weir_fail(err, WEIR_EUNAVAIL, "redis: %s", l->ctx->errstr);
    const char *on = "no", *fsync = "no";
    for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i + 1 < r->elements; i += 2) {
        if (!strcmp(r->element[i]->str, "appendonly"))
            on = r->element[i + 1]->str;
        if (!strcmp(r->element[i]->str, "appendfsync"))
            fsync = r->element[i + 1]->str;
    }
    if (!strcmp(on, "yes"))
        l->durability = !strcmp(fsync, "always") ? WEIR_DURABLE_DISK : WEIR_DURABLE_OS;
    freeReplyObject(r);
    return WEIR_OK;
}

weir_code weir__link_open(redis_link **out, const redis_url *url, weir_error *err)
{
    *out = NULL;
    redis_link *l = calloc(1, sizeof *l);
    if (!l)
        return weir_fail(err, WEIR_ENOMEM, "redis: no memory for the connection");
    l->url = *url;
    l->last = &l->first;
    weir_code rc = weir__conn_open(&l->ctx, &l->url, err);
    if (!rc)
        rc = ask_durability(l, err);
    if (rc) {
        weir__link_close(l);
        return rc;
    }
    *out = l;
    return WEIR_OK;
}

void weir__link_close(redis_link *l)
{
    if (!l)
        return;
    if (l->ctx)
        redisFree(l->ctx);
    free(l);
}

weir_durability weir__link_durability(const redis_link *l)
{
    return l->durability;
}

static void finish(redis_call *c)
{
    c->state = CALL_DONE;
}

/* The connection is lost: connect again and send what may be repeated. */
static void recover(redis_link *l)
{
    redis_call *c = l->first;
    l->first = NULL;
    l->last = &l->first;
    if (l->ctx)
        redisFree(l->ctx);
    l->ctx = NULL;
    int64_t    pause = 10;
    weir_error err = { 0 };
    while (!l->ctx && c && now_ms() < c->until_ms) {
        if (weir__conn_open(&l->ctx, &l->url, &err)) {
            nap(pause);
            pause = pause * 2 > 500 ? 500 : pause * 2;
        }
    }
    while (c) {
        redis_call *next = c->next;
        c->next = NULL;
        if (!c->repeatable) {
            weir_fail(&c->err, WEIR_EUNKNOWN, "redis: connection lost before the answer");
            finish(c);
        } else if (!l->ctx) {
            weir_fail(&c->err, WEIR_EUNKNOWN, "%s", err.msg);
            finish(c);
        } else {
            *l->last = c;
            l->last = &c->next;
            redisAppendFormattedCommand(l->ctx, c->command.data, c->command.len);
        }
        c = next;
    }
}

static redisReply *get(redis_link *l)
{
    void *r = NULL;
    if (!l->ctx || redisGetReply(l->ctx, &r) != REDIS_OK)
        return NULL;
    return r;
}

/* Load the script and run the call again, out of turn: what was sent behind it comes first. */
static void reload(redis_link *l, redis_call *c)
{
    weir_buf b = { 0 };
    weir__resp_array(&b, 3);
    weir__resp_text(&b, "SCRIPT");
    weir__resp_text(&b, "LOAD");
    weir__resp_bytes(&b, c->script->source, c->script->len);
    if (!b.failed)
        redisAppendFormattedCommand(l->ctx, b.data, b.len);
    weir__buf_fini(&b);
    redisAppendFormattedCommand(l->ctx, c->command.data, c->command.len);
}

static void answer(redis_call *c, redisReply *r)
{
    if (r->type != REDIS_REPLY_ERROR) {
        c->reply = r;
        finish(c);
        return;
    }
    weir_code code = WEIR_ECORRUPT;
    if (!strncmp(r->str, "OOM", 3))
        code = WEIR_EFULL;
    else if (!strncmp(r->str, "NOPERM", 6))
        code = WEIR_EREADONLY;
    else if (!c->script)
        code = WEIR_EUNAVAIL;
    weir_fail(&c->err, code, "redis: %s", r->str);
    freeReplyObject(r);
    finish(c);
}

/* The answer of the oldest call. */
static void turn(redis_link *l)
{
    redisReply *r = get(l);
    if (!r) {
        recover(l);
        return;
    }
    redis_call *c = l->first;
    if (r->type == REDIS_REPLY_ERROR && !strncmp(r->str, "NOSCRIPT", 8) && c->script) {
        freeReplyObject(r);
        redis_call *rest = c->next;
        redisReply *later[64];
        size_t      n = 0;
        for (redis_call *o = rest; o && n < 64; o = o->next)
            later[n++] = get(l);
        reload(l, c);
        r = get(l);
        if (r && r->type == REDIS_REPLY_ERROR) {
            weir_fail(&c->err, WEIR_ECORRUPT, "redis: script %s: %s", c->script->name, r->str);
            fprintf(stderr, "%s\n", c->err.msg);
        }
        if (r)
            freeReplyObject(r);
        r = get(l);
        for (size_t i = 0; i < n; i++) {
            redis_call *o = rest;
            rest = o->next;
            if (later[i] && later[i]->type == REDIS_REPLY_ERROR &&
                !strncmp(later[i]->str, "NOSCRIPT", 8)) {
                freeReplyObject(later[i]);
                reload(l, o);
                redisReply *s = get(l);
                if (s)
                    freeReplyObject(s);
                later[i] = get(l);
            }
            if (later[i])
                answer(o, later[i]);
        }
        l->first = NULL;
        l->last = &l->first;
        if (r)
            answer(c, r);
        return;
    }
    l->first = c->next;
    if (!l->first)
        l->last = &l->first;
    answer(c, r);
}

void weir__link_send(redis_link *l, redis_call *c)
{
    c->state = CALL_SENT;
    c->next = NULL;
    c->err.code = WEIR_OK;
    c->until_ms = now_ms() + l->url.timeout_ms;
    *l->last = c;
    l->last = &c->next;
    if (!l->ctx) {
        recover(l);
        return;
    }
    redisAppendFormattedCommand(l->ctx, c->command.data, c->command.len);
    int done = 0;
    while (!done && redisBufferWrite(l->ctx, &done) == REDIS_OK)
        ;
}

void weir__link_wait(redis_link *l, redis_call *c)
{
    while (c->state != CALL_DONE)
        turn(l);
}

void weir__link_run(redis_link *l, redis_call *const *calls, size_t n)
{
    for (size_t i = 0; i < n; i++)
        weir__link_send(l, calls[i]);
    for (size_t i = 0; i < n; i++)
        weir__link_wait(l, calls[i]);
}

redisReply *weir__link_ask(redis_link *l, uint32_t slot, weir_error *err, int argc,
                           const char *const *argv, const size_t *argv_len)
{
    redis_call c = { .slot = slot, .repeatable = true };
    weir__resp_array(&c.command, (size_t)argc);
    for (int i = 0; i < argc; i++)
        weir__resp_bytes(&c.command, argv[i], argv_len ? argv_len[i] : strlen(argv[i]));
    weir__link_send(l, &c);
    weir__link_wait(l, &c);
    redisReply *r = c.reply;
    if (c.err.code)
        weir_fail(err, c.err.code, "%s", c.err.msg);
    c.reply = NULL;
    weir__call_fini(&c);
    return r;
}
