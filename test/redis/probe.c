/* probe.c - calls whose order, loss and repetition can be told: see probe.h. */
#include "redis/probe.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/redis/link/net.h"
#include "support/redis_rig.h"

/* The answer: the number itself when it was carried out, now or when it came before; else the last
 * number that was. There are two lanes, as there are two calls under way: what is in neither of
 * them and is not the next one either is an old call that comes once more. */
static const char source[] =
    "redis.register_function(NAME, function(KEYS, ARGV)\n"
    "local n, last = tonumber(ARGV[1]), tonumber(redis.call('HGET', KEYS[1], 'n') or 0)\n"
    "local lane = 'lane' .. n % 2\n"
    "if redis.call('HGET', KEYS[1], lane) == ARGV[1] then return n end\n"
    "if n <= last then redis.call('HINCRBY', KEYS[1], 'stale', 1) end\n"
    "if n ~= last + 1 then return last end\n"
    "redis.call('HSET', KEYS[1], 'n', n, lane, n)\n"
    "return n\n"
    "end)\n";

redis_url probe_url(const char *text)
{
    static weir_url u;
    redis_url       out;
    weir_error      err = { 0 };
    u = (weir_url){ 0 };
    snprintf(u.text, sizeof u.text, "%s", text);
    u.scheme = strtok(u.text, ":");
    u.rest = strtok(NULL, "?");
    for (char *name; (name = strtok(NULL, "=&"));) {
        u.option[u.n_options].name = name;
        u.option[u.n_options++].value = strtok(NULL, "&");
    }
    if (weir__redis_url(&u, &out, &err))
        fail_msg("%s: %s", text, err.msg);
    return out;
}

void probe_open(probe *p, const redis_url *url, size_t n_keys)
{
    weir_error err = { 0 };
    *p = (probe){ .n = n_keys };
    p->library = (redis_library){ .label = "probe", .source = source, .len = sizeof source - 1 };
    weir__library_init(&p->library);
    if (weir__link_open(&p->link, url, &err))
        fail_msg("open: %s", err.msg);
    for (size_t i = 0; i < n_keys; i++) {
        probe_key *k = &p->key[i];
        snprintf(k->name, sizeof k->name, "{probe:%zu}", i);
        k->slot = weir__redis_slot(k->name, strlen(k->name));
    }
}

/* No call was carried out, or tried, after its repetition. */
static void check_stale(probe *p, const probe_key *k)
{
    weir_error        err = { 0 };
    const char *const argv[] = { "HGET", k->name, "stale" };
    redisReply       *r = weir__link_ask(p->link, k->slot, &err, 3, argv, NULL);
    if (r && r->type == REDIS_REPLY_STRING)
        fail_msg("%s: %s old calls came once more", k->name, r->str);
    if (r)
        freeReplyObject(r);
}

void probe_close(probe *p)
{
    for (size_t i = 0; i < p->n && !p->lost; i++)
        check_stale(p, &p->key[i]);
    for (size_t i = 0; i < p->n; i++) {
        for (size_t d = 0; d < PROBE_DEPTH; d++)
            weir__call_fini(&p->key[i].call[d]);
    }
    weir__link_close(p->link);
}

static void make_call(probe *p, probe_key *k, size_t d)
{
    redis_call *c = &k->call[d];
    weir__call_reset(c);
    c->slot = k->slot;
    c->library = &p->library;
    c->repeatable = true;
    weir__resp_array(&c->command, 5);
    weir__resp_text(&c->command, "FCALL");
    weir__resp_text(&c->command, p->library.name);
    weir__resp_int(&c->command, 1);
    weir__resp_text(&c->command, k->name);
    weir__resp_int(&c->command, k->number + 1 + (int64_t)d);
}

/* False: it was not carried out. */
static bool check_call(probe *p, probe_key *k, const redis_call *c, int64_t number)
{
    if (!c->err.code && c->reply->integer == number)
        return true;
    if (!c->err.code && c->reply->integer < number) {   /* Redis has forgotten some */
        p->lost += (size_t)(number - 1 - c->reply->integer);
        k->number = c->reply->integer;
        return false;
    }
    if (!c->err.code)
        fail_msg("%s: %lld came after %lld", k->name, (long long)number, c->reply->integer);
    if (c->err.code != WEIR_EUNAVAIL && c->err.code != WEIR_EUNKNOWN)
        fail_msg("%s: %s: %s", k->name, weir_code_name(c->err.code), c->err.msg);
    p->unavailable += c->err.code == WEIR_EUNAVAIL;
    p->unknown += c->err.code == WEIR_EUNKNOWN;
    return false;
}

void probe_step(probe *p)
{
    redis_call *calls[PROBE_MAX_KEYS * PROBE_DEPTH];
    size_t      n = 0;
    for (size_t i = 0; i < p->n; i++) {
        for (size_t d = 0; d < PROBE_DEPTH; d++) {
            make_call(p, &p->key[i], d);
            calls[n++] = &p->key[i].call[d];
        }
    }
    weir__link_run(p->link, calls, n);
    for (size_t i = 0; i < p->n; i++) {
        probe_key *k = &p->key[i];
        int64_t    first = k->number + 1;
        size_t     d = 0;
        while (d < PROBE_DEPTH && check_call(p, k, &k->call[d], first + (int64_t)d)) {
            k->number = first + (int64_t)d;
            d++;
        }
    }
}

void probe_steps(probe *p, int n)
{
    while (n-- > 0)
        probe_step(p);
}

void probe_until(probe *p, bool (*done)(void *ctx), void *ctx)
{
    int64_t end = weir__monotonic_ms() + RIG_PATIENCE_MS;
    while (!done(ctx)) {
        if (weir__monotonic_ms() > end)
            fail_msg("not done within %d ms", RIG_PATIENCE_MS);
        probe_step(p);
    }
}

/* ---- a subscriber that counts ---- */

static void on_message(void *ctx, size_t channel, const char *message, size_t len)
{
    probe_subscriber *e = ctx;
    pthread_mutex_lock(&e->lock);
    e->messages[channel]++;
    snprintf(e->last[channel], sizeof e->last[channel], "%.*s", (int)len, message);
    pthread_cond_broadcast(&e->came);
    pthread_mutex_unlock(&e->lock);
}

static void on_lost(void *ctx, size_t channel)
{
    probe_subscriber *e = ctx;
    pthread_mutex_lock(&e->lock);
    e->lost[channel]++;
    pthread_cond_broadcast(&e->came);
    pthread_mutex_unlock(&e->lock);
}

void probe_subscribe(probe_subscriber *e, const redis_url *url, size_t n,
                     const redis_channel *channels)
{
    weir_error err = { 0 };
    *e = (probe_subscriber){ .n = n };
    memcpy(e->channel, channels, n * sizeof *channels);
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->came, NULL);
    if (weir__subscriber_open(&e->subscriber, url, e->channel, n, on_message, on_lost, e, &err))
        fail_msg("listen: %s", err.msg);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(e->lost[i], 1);
}

void probe_unsubscribe(probe_subscriber *e)
{
    weir__subscriber_close(e->subscriber);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->came);
}

static struct timespec after(int64_t ms)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    ts.tv_sec += ms / 1000;
    ts.tv_nsec += ms % 1000 * 1000000;
    ts.tv_sec += ts.tv_nsec / 1000000000;
    ts.tv_nsec %= 1000000000;
    return ts;
}

void probe_wait_lost(probe_subscriber *e, size_t channel, size_t times)
{
    struct timespec until = after(RIG_PATIENCE_MS);
    int             late = 0;
    pthread_mutex_lock(&e->lock);
    while (e->lost[channel] < times && !late)
        late = pthread_cond_timedwait(&e->came, &e->lock, &until);
    size_t n = e->lost[channel];
    pthread_mutex_unlock(&e->lock);
    if (n < times)
        fail_msg("channel %zu was listened to %zu times, not %zu", channel, n, times);
}

static bool was_received(probe_subscriber *e, size_t channel, const char *message, int64_t wait_ms)
{
    struct timespec until = after(wait_ms);
    int             late = 0;
    pthread_mutex_lock(&e->lock);
    while (strcmp(e->last[channel], message) != 0 && !late)
        late = pthread_cond_timedwait(&e->came, &e->lock, &until);
    bool received = !strcmp(e->last[channel], message);
    pthread_mutex_unlock(&e->lock);
    return received;
}

void probe_tell(probe_subscriber *e, probe *p, size_t channel, const char *message)
{
    const redis_channel *c = &e->channel[channel];
    const char *const    argv[] = { c->sharded ? "SPUBLISH" : "PUBLISH", c->name, message };
    int64_t              end = weir__monotonic_ms() + RIG_PATIENCE_MS;
    do {
        weir_error  err = { 0 };
        redisReply *r = weir__link_ask(p->link, weir__redis_slot(c->name, strlen(c->name)), &err, 3,
                                       argv, NULL);
        if (r)
            freeReplyObject(r);
        if (weir__monotonic_ms() > end)
            fail_msg("\"%s\" was not received; %s", message, err.msg);
    } while (!was_received(e, channel, message, 100));
}
