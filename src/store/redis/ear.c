/* ear.c - a thread that hears what is published. */
#include "store/redis/link.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/thread.h"
#include "store/redis/conn.h"

struct redis_ear {
    redis_url            url;
    const redis_channel *channels;
    size_t               n;
    redis_hear_fn       *hear;
    redis_lost_fn       *lost;
    void                *ctx;
    redisContext        *redis;
    int                  wake;
    atomic_bool          stop;
    pthread_t            thread;
    bool                 running;
};

static void handle(redis_ear *e, redisReply *r)
{
    if (r->type == REDIS_REPLY_ARRAY && r->elements == 3 && r->element[1]->str) {
        const char *kind = r->element[0]->str;
        for (size_t i = 0; i < e->n; i++) {
            if (strcmp(e->channels[i].name, r->element[1]->str) != 0)
                continue;
            if (!strcmp(kind, "message") || !strcmp(kind, "smessage"))
                e->hear(e->ctx, i, r->element[2]->str, r->element[2]->len);
            else
                e->lost(e->ctx, i);
        }
    }
    freeReplyObject(r);
}

static bool subscribe(redis_ear *e, weir_error *err)
{
    if (e->redis)
        redisFree(e->redis);
    if (weir__conn_open(&e->redis, &e->url, err))
        return false;
    for (size_t i = 0; i < e->n; i++)
        redisAppendCommand(e->redis, "%s %s", e->channels[i].sharded ? "SSUBSCRIBE" : "SUBSCRIBE",
                           e->channels[i].name);
    for (size_t i = 0; i < e->n; i++) {
        void *r;
        if (redisGetReply(e->redis, &r) != REDIS_OK) {
            weir_fail(err, WEIR_EUNAVAIL, "redis: %s", e->redis->errstr);
            return false;
        }
        handle(e, r);
    }
    return true;
}

static void *listen_on(void *arg)
{
    redis_ear *e = arg;
    weir_error err;
    while (!atomic_load(&e->stop)) {
        struct pollfd p[2] = { { e->redis ? e->redis->fd : -1, POLLIN, 0 }, { e->wake, POLLIN, 0 } };
        poll(p, 2, e->redis ? -1 : 200);
        if (!e->redis || (p[0].revents && redisBufferRead(e->redis) != REDIS_OK)) {
            if (e->redis)
                redisFree(e->redis);
            e->redis = NULL;
            subscribe(e, &err);
            continue;
        }
        void *r = NULL;
        while (redisGetReplyFromReader(e->redis, &r) == REDIS_OK && r)
            handle(e, r);
    }
    return NULL;
}

weir_code weir__ear_open(redis_ear **out, const redis_url *url, const redis_channel *channels,
                         size_t n, redis_hear_fn *hear, redis_lost_fn *lost, void *ctx,
                         weir_error *err)
{
    *out = NULL;
    redis_ear *e = calloc(1, sizeof *e);
    if (!e)
        return weir_fail(err, WEIR_ENOMEM, "redis: no memory to listen");
    *e = (redis_ear){ .url = *url, .channels = channels, .n = n, .hear = hear, .lost = lost,
                      .ctx = ctx, .wake = eventfd(0, EFD_CLOEXEC) };
    weir_code rc = subscribe(e, err) ? WEIR_OK : WEIR_EUNAVAIL;
    if (!rc)
        rc = weir__thread_start(&e->thread, listen_on, e, "weir-redis", err);
    e->running = !rc;
    if (rc) {
        weir__ear_close(e);
        return rc;
    }
    *out = e;
    return WEIR_OK;
}

void weir__ear_close(redis_ear *e)
{
    if (!e)
        return;
    atomic_store(&e->stop, true);
    uint64_t one = 1;
    if (write(e->wake, &one, sizeof one) && e->running)
        pthread_join(e->thread, NULL);
    if (e->redis)
        redisFree(e->redis);
    close(e->wake);
    free(e);
}
