/* ear.c - a thread that hears what is published. It subscribes each channel at the node that has it
 * and, whatever happens to that, subscribes again: see link.h. */
#include "store/redis/link.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/thread.h"
#include "store/redis/net.h"

enum { PING_MS = 10000 };       /* of silence, then the server is asked whether it is there */

typedef enum ear_state { DEAF, ASKED, HEARS } ear_state;

typedef struct ear_channel {
    redis_channel what;
    uint32_t      slot;
    ear_state     state;
    bool          known;        /* to weir__ear_open(), as one that was heard */
    redis_node   *node;         /* where it was asked for or is heard; else NULL */
} ear_channel;

struct redis_ear {
    redis_net      net;         /* the thread's */
    ear_channel   *channel;     /* the thread's */
    size_t         n;
    redis_hear_fn *hear;
    redis_lost_fn *lost;
    void          *ctx;
    atomic_bool    stop;
    pthread_t      thread;
    bool           running;

    pthread_mutex_t lock;       /* of what follows, for whoever waits in weir__ear_open() */
    pthread_cond_t  told;
    size_t          n_deaf;     /* channels that were never heard */
    weir_error      why;        /* of the last trouble */
};

/* ---- telling weir__ear_open() ---- */

static void tell_heard(redis_ear *e, ear_channel *c)
{
    if (c->known)
        return;
    c->known = true;
    pthread_mutex_lock(&e->lock);
    e->n_deaf--;
    pthread_cond_signal(&e->told);
    pthread_mutex_unlock(&e->lock);
}

static void tell_trouble(redis_ear *e, const weir_error *why)
{
    pthread_mutex_lock(&e->lock);
    e->why = *why;
    pthread_cond_signal(&e->told);
    pthread_mutex_unlock(&e->lock);
}

/* ---- channels ---- */

static bool is_sharded(const redis_ear *e, const ear_channel *c)
{
    return c->what.sharded || e->net.url.way == REDIS_CLUSTER;
}

static ear_channel *find_channel(redis_ear *e, const redis_node *n, const redisReply *name)
{
    for (size_t i = 0; i < e->n; i++) {
        ear_channel *c = &e->channel[i];
        if (c->node == n && name->str && strlen(c->what.name) == name->len &&
            !memcmp(c->what.name, name->str, name->len))
            return c;
    }
    return NULL;
}

static void say(redis_ear *e, redis_node *n, const char *command, const char *channel)
{
    if (!weir__node_room(n, 64 + (channel ? strlen(channel) : 0))) {
        weir__node_lose(n, WEIR_ENOMEM, "no memory to listen");
        return;
    }
    weir__resp_array(&n->out, channel ? 2 : 1);
    weir__resp_text(&n->out, command);
    if (channel)
        weir__resp_text(&n->out, channel);
    weir__node_await(n, e->net.url.timeout_ms);
    weir__node_flush(n);
}

/* Ask for the channels that are not heard, where that is possible now. */
static void subscribe(redis_ear *e)
{
    for (size_t i = 0; i < e->n; i++) {
        ear_channel *c = &e->channel[i];
        redis_node  *n = c->state == DEAF ? weir__net_owner(&e->net, c->slot) : NULL;
        if (!n)
            continue;
        if (n->state != NODE_READY) {
            n->wanted = true;
            continue;
        }
        c->state = ASKED;
        c->node = n;
        say(e, n, is_sharded(e, c) ? "SSUBSCRIBE" : "SUBSCRIBE", c->what.name);
    }
}

static void set_deaf(ear_channel *c)
{
    c->state = DEAF;
    c->node = NULL;
}

/* ---- what comes ---- */

static void take_error(redis_ear *e, redis_node *n, const char *text)
{
    weir_code     code;
    redis_refusal what = weir__refusal(text, false, &code);
    uint32_t      slot = 0;
    redis_node   *to = what == REFUSED_MOVED
                           ? weir__net_redirect(&e->net, n, weir__refusal_rest(text), &slot)
                           : NULL;
    if (!to) {
        weir__node_lose(n, code == WEIR_EREADONLY ? code : WEIR_EUNAVAIL, "%s", text);
        return;
    }
    weir__net_set_owner(&e->net, slot, to);
    weir__net_seek(&e->net);
    for (size_t i = 0; i < e->n; i++) {
        if (e->channel[i].node == n && e->channel[i].slot == slot)
            set_deaf(&e->channel[i]);
    }
}

static void take_subscribed(redis_ear *e, redis_node *n, ear_channel *c)
{
    c->state = HEARS;
    n->pause_ms = 0;
    e->lost(e->ctx, (size_t)(c - e->channel));
    tell_heard(e, c);
}

static void take_message(redis_ear *e, redis_node *n, const redisReply *r)
{
    if (r->type == REDIS_REPLY_ERROR) {
        take_error(e, n, r->str);
        return;
    }
    if (r->type != REDIS_REPLY_ARRAY || r->elements != 3 || !r->element[0]->str)
        return;                 /* the answer to PING */
    const char  *kind = r->element[0]->str;
    ear_channel *c = find_channel(e, n, r->element[1]);
    if (!c)
        return;                 /* of one that is heard elsewhere by now */
    if (!strcmp(kind, "message") || !strcmp(kind, "smessage")) {
        e->hear(e->ctx, (size_t)(c - e->channel), r->element[2]->str, r->element[2]->len);
    } else if (!strcmp(kind, "subscribe") || !strcmp(kind, "ssubscribe")) {
        take_subscribed(e, n, c);
    } else if (!strcmp(kind, "unsubscribe") || !strcmp(kind, "sunsubscribe")) {
        set_deaf(c);            /* its slot went to another node */
        weir__net_seek(&e->net);
    }
}

static void on_reply(void *ctx, redis_node *n, redisReply *r)
{
    n->patience_ms = 0;
    take_message(ctx, n, r);
    freeReplyObject(r);
    redis_ear *e = ctx;
    for (size_t i = 0; i < e->n && !n->patience_ms && n->state == NODE_READY; i++) {
        if (e->channel[i].node == n && e->channel[i].state == ASKED)
            weir__node_await(n, e->net.url.timeout_ms);
    }
}

static void on_ready(void *ctx, redis_node *n)
{
    (void)ctx;
    (void)n;
}

static void on_lost(void *ctx, redis_node *n)
{
    redis_ear *e = ctx;
    for (size_t i = 0; i < e->n; i++) {
        if (e->channel[i].node == n)
            set_deaf(&e->channel[i]);
    }
}

static bool is_used(const redis_ear *e, const redis_node *n)
{
    for (size_t i = 0; i < e->n; i++) {
        if (e->channel[i].node == n)
            return true;
    }
    return false;
}

/* Go where the slots are now. */
static void on_found(void *ctx)
{
    redis_ear *e = ctx;
    for (size_t i = 0; i < e->n; i++) {
        ear_channel *c = &e->channel[i];
        redis_node  *from = c->node, *to = weir__net_owner(&e->net, c->slot);
        if (!from || from == to)
            continue;
        set_deaf(c);
        say(e, from, is_sharded(e, c) ? "SUNSUBSCRIBE" : "UNSUBSCRIBE", c->what.name);
    }
    for (size_t i = 0; i < e->net.n_nodes; i++) {
        redis_node *n = e->net.node[i];
        if (n->state == NODE_READY && !is_used(e, n) && !weir__net_owns(&e->net, n))
            weir__node_close(n);
    }
}

static const redis_net_ops ear_ops = {
    .ready = on_ready,
    .reply = on_reply,
    .lost = on_lost,
    .found = on_found,
};

/* ---- the thread ---- */

/* Ask nodes that were silent for long whether they are there. When is the next one to be asked? */
static int64_t ping(redis_ear *e)
{
    int64_t now = weir__monotonic_ms(), until = INT64_MAX;
    for (size_t i = 0; i < e->net.n_nodes; i++) {
        redis_node *n = e->net.node[i];
        if (n->state != NODE_READY || n->patience_ms)
            continue;
        if (n->heard_ms + PING_MS <= now)
            say(e, n, "PING", NULL);
        else if (n->heard_ms + PING_MS < until)
            until = n->heard_ms + PING_MS;
    }
    return until;
}

/* What ails it, if anything does. */
static void look_for_trouble(redis_ear *e)
{
    const weir_error *why = &e->net.scout.why;
    for (size_t i = 0; i < e->net.n_nodes && !why->code; i++)
        why = &e->net.node[i]->why;
    if (why->code)
        tell_trouble(e, why);
}

static void *listen_on(void *arg)
{
    redis_ear *e = arg;
    while (!atomic_load(&e->stop)) {
        subscribe(e);
        int64_t look_ms = weir__net_look(&e->net), ping_ms = ping(e);
        weir__net_turn(&e->net, look_ms < ping_ms ? look_ms : ping_ms);
        if (e->net.stirred)
            look_for_trouble(e);
    }
    return NULL;
}

/* ---- open and close ---- */

static weir_code set_up(redis_ear *e, const redis_url *url, const redis_channel *channels,
                        weir_error *err)
{
    weir_code rc = weir__net_init(&e->net, url, &ear_ops, e, err);
    if (rc)
        return rc;
    e->channel = calloc(e->n + 1, sizeof *e->channel);
    e->net.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!e->channel || e->net.wake_fd < 0)
        return weir_fail(err, WEIR_ENOMEM, "redis: no memory to listen");
    for (size_t i = 0; i < e->n; i++) {
        e->channel[i].what = channels[i];
        e->channel[i].slot = weir__redis_slot(channels[i].name, strlen(channels[i].name));
    }
    rc = weir__thread_start(&e->thread, listen_on, e, "weir-redis", err);
    e->running = !rc;
    return rc;
}

/* Until all channels are heard. Trouble that time does not cure ends it at once. */
static weir_code wait_until_heard(redis_ear *e, weir_error *err)
{
    weir_deadline until = weir__deadline_in(e->net.url.timeout_ms);  /* never changes: no lock */
    bool          late = false;
    pthread_mutex_lock(&e->lock);
    while (e->n_deaf && !late && e->why.code != WEIR_EINVAL && e->why.code != WEIR_EREADONLY)
        late = !weir__cond_wait_until(&e->told, &e->lock, until);
    weir_code rc = WEIR_OK;
    if (e->n_deaf)
        rc = weir_fail(err, e->why.code ? e->why.code : WEIR_EUNAVAIL, "%s",
                       e->why.code ? e->why.msg : "redis: no subscription within the timeout");
    pthread_mutex_unlock(&e->lock);
    return rc;
}

weir_code weir__ear_open(redis_ear **out, const redis_url *url, const redis_channel *channels,
                         size_t n, redis_hear_fn *hear, redis_lost_fn *lost, void *ctx,
                         weir_error *err)
{
    *out = NULL;
    redis_ear *e = calloc(1, sizeof *e);
    if (!e)
        return weir_fail(err, WEIR_ENOMEM, "redis: no memory to listen");
    e->n = e->n_deaf = n;
    e->hear = hear;
    e->lost = lost;
    e->ctx = ctx;
    e->net.wake_fd = -1;
    pthread_mutex_init(&e->lock, NULL);
    weir__cond_init(&e->told);
    weir_code rc = set_up(e, url, channels, err);
    if (!rc)
        rc = wait_until_heard(e, err);
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
    if (e->running) {
        atomic_store(&e->stop, true);
        eventfd_write(e->net.wake_fd, 1);
        pthread_join(e->thread, NULL);
    }
    if (e->net.wake_fd >= 0)
        close(e->net.wake_fd);
    weir__net_fini(&e->net);
    pthread_cond_destroy(&e->told);
    pthread_mutex_destroy(&e->lock);
    free(e->channel);
    free(e);
}
