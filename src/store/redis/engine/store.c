/* store.c - opening and closing a Redis store: see engine.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "store/redis/engine/engine.h"

/* ---- partitions ---- */

static bool make_part(redis_store *s, uint32_t i)
{
    redis_part *p = &s->part[i];
    if (s->url.kue)
        snprintf(p->prefix, sizeof p->prefix, "%s", s->url.prefix);
    else
        snprintf(p->prefix, sizeof p->prefix, "{%s:%" PRIu32 "}", s->url.prefix, i);
    snprintf(p->channel, sizeof p->channel, "%s%s", p->prefix, s->layout->channel);
    char key[sizeof p->prefix + 32];
    p->n_keys = 1;
    while (s->url.way == REDIS_CLUSTER && s->layout->keys[p->n_keys])
        p->n_keys++;
    weir__resp_int(&p->keys, (int64_t)p->n_keys);
    for (size_t k = 0; k < p->n_keys; k++) {
        snprintf(key, sizeof key, "%s%s", p->prefix, s->layout->keys[k]);
        weir__resp_text(&p->keys, key);
    }
    p->slot = weir__redis_slot(key, strlen(key));
    return !p->keys.failed;
}

static weir_code make_parts(redis_store *s, uint32_t n, weir_error *err)
{
    s->part = calloc(n, sizeof *s->part);
    s->n_parts = s->part ? n : 0;
    bool ok = s->part && weir__backlog_open(s);
    for (uint32_t i = 0; ok && i < n; i++)
        ok = make_part(s, i);
    return ok ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "redis: out of memory");
}

/* One command about a field of a meta key; its answer as a number, 0 if the field is missing. */
static weir_code ask(redis_store *s, const char *prefix, const char *command, const char *field,
                     int64_t value, int64_t *out, weir_error *err)
{
    char key[WEIR_REDIS_MAX_PREFIX + 32], number[24];
    snprintf(key, sizeof key, "%s%s", prefix, s->layout->meta);
    snprintf(number, sizeof number, "%" PRId64, value);
    const char *argv[] = { command, key, field, number };
    int         argc = value ? 4 : 3;
    uint32_t    slot = weir__redis_slot(key, strlen(key));
    redisReply *r = weir__link_ask(s->lane[0].link, slot, err, argc, argv, NULL);
    if (!r)
        return err->code;
    *out = weir__reply_int(r);
    freeReplyObject(r);
    return WEIR_OK;
}

/* Is there a queue, of our version, with as many partitions as we think? A new one gets as many as
 * the URL says; who comes first decides. */
static weir_code agree(redis_store *s, uint32_t *parts, weir_error *err)
{
    int64_t version, n, dummy;
    char    prefix[WEIR_REDIS_MAX_PREFIX + 16];
    snprintf(prefix, sizeof prefix, "{%s:0}", s->url.prefix);
    weir_code rc = ask(s, prefix, "HGET", "version", 0, &version, err);
    if (!rc && !version && s->env.read_only)
        return weir_fail(err, WEIR_ENOENT, "there is no queue \"%s\" in this Redis", s->url.prefix);
    if (!rc && !version)
        rc = ask(s, prefix, "HSETNX", "partitions", s->url.partitions ? s->url.partitions : 1,
                 &dummy, err);
    if (!rc && !version)
        rc = ask(s, prefix, "HSETNX", "version", WEIR__REDIS_VERSION, &dummy, err);
    if (!rc)
        rc = ask(s, prefix, "HGET", "version", 0, &version, err);
    if (!rc)
        rc = ask(s, prefix, "HGET", "partitions", 0, &n, err);
    if (rc)
        return rc;
    if (version != WEIR__REDIS_VERSION)
        return weir_fail(err, WEIR_EVERSION, "queue \"%s\" has layout version %" PRId64
                         ", but this weir reads %d", s->url.prefix, version, WEIR__REDIS_VERSION);
    if (n < 1 || n > WEIR_REDIS_MAX_PARTITIONS)
        return weir_fail(err, WEIR_ECORRUPT, "queue \"%s\": %" PRId64 " partitions, must be 1 "
                         "to %d", s->url.prefix, n, WEIR_REDIS_MAX_PARTITIONS);
    if (s->url.partitions && n != s->url.partitions)
        return weir_fail(err, WEIR_EINVAL, "queue \"%s\" was made with %" PRId64 " partitions, not "
                         "%" PRIu32 ": leave partitions out of the URL, or migrate its jobs to a "
                         "new queue", s->url.prefix, n, s->url.partitions);
    *parts = (uint32_t)n;
    return WEIR_OK;
}

/* ---- lanes ---- */

weir_code weir__lane_open(redis_lane *l, weir_error *err)
{
    return l->link ? WEIR_OK : weir__link_create(&l->link, &l->top->url, err);
}

static weir_code make_lanes(redis_store *s, weir_error *err)
{
    for (int i = 0; i < REDIS_LANES; i++) {
        redis_lane *l = &s->lane[i];
        l->layout = s->layout;
        l->part = s->part;
        l->n_parts = s->n_parts;
        l->test_clock = s->env.test_clock;
        l->add_part = s->chance % s->n_parts;
        l->draft = calloc(s->n_parts, sizeof *l->draft);
        snprintf(l->origin, sizeof l->origin, "%s%d", s->mark, i);
        if (!l->draft)
            return weir_fail(err, WEIR_ENOMEM, "redis: out of memory");
    }
    return WEIR_OK;
}

/* The answers to our last calls, which Redis keeps, are not needed any more. */
static void forget_calls(redis_lane *l)
{
    char last[2][sizeof l->origin + 4];
    for (int i = 0; i < 2; i++)
        snprintf(last[i], sizeof last[i], "%s:%d", l->origin, i);
    for (uint32_t i = 0; i < l->n_parts; i++) {
        const redis_part *p = &l->part[i];
        redis_call       *c = &l->draft[i].call;
        char              key[sizeof p->prefix + 16];
        if (c->err.code)
            return;                     /* Redis is unreachable: do not wait for it */
        snprintf(key, sizeof key, "%s%s", p->prefix, l->layout->meta);
        weir__call_reset(c);
        c->slot = p->slot;
        c->repeatable = true;
        c->library = NULL;
        weir__resp_array(&c->command, 4);
        weir__resp_text(&c->command, "HDEL");
        weir__resp_text(&c->command, key);
        weir__resp_text(&c->command, last[0]);
        weir__resp_text(&c->command, last[1]);
        if (c->command.failed)
            return;
        weir__link_send(l->link, c);
        weir__link_wait(l->link, c);
    }
}

static void close_lane(redis_lane *l)
{
    if (l->link && l->number && !l->top->url.kue)
        forget_calls(l);
    weir__link_close(l->link);
    for (uint32_t i = 0; l->draft && i < l->n_parts; i++) {
        weir__buf_fini(&l->draft[i].steps);
        weir__buf_fini(&l->draft[i].piece.specs);
        free(l->draft[i].coalesced.entry);
        weir__call_fini(&l->draft[i].call);
        weir__confirm_fini(&l->draft[i].confirm);
    }
    free(l->draft);
    free(l->task);
    free(l->step);
    weir__buf_fini(&l->scratch);
}

/* ---- open and close ---- */

static bool make_mark(redis_store *s)
{
    uint64_t mark;
    if (getrandom(&mark, sizeof mark, 0) != (ssize_t)sizeof mark)
        return false;
    snprintf(s->mark, sizeof s->mark, "%015" PRIx64, mark >> 4);
    s->chance = s->env.test_clock ? 0 : (uint32_t)mark;     /* else all is to be repeatable */
    return true;
}

static void redis_close(weir_store *base)
{
    redis_store *s = (redis_store *)base;
    if (!s)
        return;
    weir__tokens_close(s);
    weir__redis_events_close(s);
    for (int i = 0; i < REDIS_LANES; i++)
        close_lane(&s->lane[i]);
    for (uint32_t i = 0; i < s->n_parts; i++)
        weir__buf_fini(&s->part[i].keys);
    free(s->part);
    weir__backlog_close(s);
    weir__clock_close(s);
    pthread_mutex_destroy(&s->events.lock);
    pthread_cond_destroy(&s->events.advanced);
    free(s);
}

static pthread_once_t libraries_once = PTHREAD_ONCE_INIT;

static void init_libraries(void)
{
    redis_layout *const all[] = { &weir__layout_native, &weir__layout_kue, &weir__layout_vertx };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        weir__library_init(&all[i]->library);
}

/* The number of the last message of a partition. A new partition gets one, so that it is known
 * which is the first; 0: it is new, and we only read. */
static weir_code last_message(redis_store *s, uint32_t part, int64_t *last, weir_error *err)
{
    int64_t     dummy;
    const char *prefix = s->part[part].prefix;
    weir_code   rc = ask(s, prefix, "HGET", "messages", 0, last, err);
    if (rc || *last || s->env.read_only)
        return rc;
    rc = ask(s, prefix, "HSETNX", "messages", weir__wall_ms() * 1000, &dummy, err);
    return rc ? rc : ask(s, prefix, "HGET", "messages", 0, last, err);
}

/* Subscribe, then read the number of the last message: all later ones arrive. */
static weir_code listen(redis_store *s, weir_error *err)
{
    weir_code rc = weir__redis_events_open(s, err);
    for (uint32_t i = 0; !rc && i < s->n_parts; i++) {
        int64_t last, seq = 0;
        rc = last_message(s, i, &last, err);
        if (!rc && last)
            weir__redis_events_sync(s, i, last + 1);
        if (!rc && !s->url.kue)
            rc = ask(s, s->part[i].prefix, "HGET", "last", 0, &seq, err);
        weir__redis_id_seen(s, i, (uint64_t)seq * s->n_parts);
    }
    return rc;
}

static weir_code start(redis_store *s, weir_error *err)
{
    uint32_t  parts = 1;
    weir_code rc = weir__link_open(&s->lane[0].link, &s->url, err);
    if (!rc && !s->url.kue)
        rc = agree(s, &parts, err);
    if (!rc)
        rc = make_parts(s, parts, err);
    if (!rc)
        rc = make_lanes(s, err);
    if (!rc)
        rc = weir__clock_open(s, err);
    if (!rc && s->layout->foreign) {
        snprintf(s->foreign, sizeof s->foreign, "%s%s", s->url.prefix, s->layout->foreign);
        snprintf(s->presence_channel, sizeof s->presence_channel, "%s%s", s->url.prefix,
                 s->layout->presence_channel);
    }
    if (!rc)
        rc = listen(s, err);
    return rc;
}

static weir_code redis_open(weir_store **out, const weir_url *url, const weir_env *env,
                            weir_error *err)
{
    redis_store *s = calloc(1, sizeof *s);
    if (!s)
        return weir_fail(err, WEIR_ENOMEM, "redis: out of memory");
    s->base.ops = url->ops;
    s->env = *env;
    s->env.name = NULL;                 /* borrowed only for the call */
    pthread_mutex_init(&s->events.lock, NULL);
    pthread_mutex_init(&s->backlog.lock, NULL);
    pthread_mutex_init(&s->clock_lock, NULL);
    pthread_mutex_init(&s->tokens.lock, NULL);
    weir__cond_init(&s->events.advanced);
    for (int i = 0; i < REDIS_LANES; i++)
        s->lane[i].top = s;
    atomic_store(&s->sure_ms, INT64_MIN);
    weir_code rc = weir__redis_url(url, &s->url, err);
    s->url.durability = env->durability;
    if (!rc)
        rc = weir__redis_password(&s->url, err);
    s->layout = !s->url.kue   ? &weir__layout_native
              : s->url.vertx  ? &weir__layout_vertx
                              : &weir__layout_kue;
    s->base.objects_only = s->layout == &weir__layout_vertx;
    pthread_once(&libraries_once, init_libraries);
    if (!rc && !make_mark(s))
        rc = weir_fail(err, WEIR_EIO, "redis: no random numbers: %s", strerror(errno));
    if (!rc)
        rc = start(s, err);
    if (rc)
        redis_close(&s->base);
    else
        *out = &s->base;
    return rc;
}

#define STORE_OPS(scheme, known)                                                                  \
    { .name = (scheme), .version = WEIR_STORE_OPS_VERSION, .options = (known),                     \
      .open = redis_open, .close = redis_close, .run = weir__redis_run,                           \
      .join = weir__redis_join, .leave = weir__redis_leave, .post = weir__redis_post,             \
      .silent_ends = true, .lanes = REDIS_LANES, .remote = true }

const weir_store_ops weir__redis_store = STORE_OPS("redis", weir__redis_options);
const weir_store_ops weir__kue_store = STORE_OPS("redis+kue", weir__kue_options);
