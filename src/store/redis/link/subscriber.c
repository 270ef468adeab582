/* subscriber.c - a feed (store/feed.h) of published messages: see link.h. It subscribes to each
 * channel at the node that has the channel's slot, and again whenever node or connection changes.
 *
 *   UNSUBSCRIBED -> ASKED -> SUBSCRIBED
 *
 * and back to UNSUBSCRIBED when the connection is lost, the slot moves or the server refuses. */
#include "store/redis/link/link.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "store/feed.h"
#include "store/redis/link/net.h"

enum { PING_MS = 10000 };       /* of silence, then PING is sent */

typedef enum subscription { UNSUBSCRIBED, ASKED, SUBSCRIBED } subscription;

typedef struct channel_state {
    redis_channel what;
    uint32_t      slot;
    subscription  state;
    redis_node   *node;         /* ASKED, SUBSCRIBED: at this node; else NULL */
} channel_state;

struct redis_subscriber {
    weir_feed        *feed;         /* the rest is its thread's */
    redis_net         net;
    channel_state    *channel;
    size_t            n, n_subscribed;
    redis_message_fn *on_message;
    redis_lost_fn    *lost;
    void             *ctx;
};

/* ---- channels ---- */

static bool is_sharded(const redis_subscriber *e, const channel_state *c)
{
    return c->what.sharded || e->net.url.way == REDIS_CLUSTER;
}

static channel_state *find_channel(redis_subscriber *e, const redis_node *n, const redisReply *name)
{
    for (size_t i = 0; i < e->n; i++) {
        channel_state *c = &e->channel[i];
        if (c->node == n && name->str && strlen(c->what.name) == name->len &&
            !memcmp(c->what.name, name->str, name->len))
            return c;
    }
    return NULL;
}

static void say(redis_subscriber *e, redis_node *n, const char *command, const char *channel)
{
    if (!weir__node_room(n, 64 + (channel ? strlen(channel) : 0))) {
        weir__node_disconnect(n, WEIR_ENOMEM, "no memory for a subscription");
        return;
    }
    weir__resp_array(&n->out, channel ? 2 : 1);
    weir__resp_text(&n->out, command);
    if (channel)
        weir__resp_text(&n->out, channel);
    weir__node_await(n, e->net.url.timeout_ms);
    weir__node_flush(n);
}

/* Subscribe to the channels that are not, if the node of their slot is connected. */
static void subscribe(redis_subscriber *e)
{
    for (size_t i = 0; i < e->n; i++) {
        channel_state *c = &e->channel[i];
        redis_node  *n = c->state == UNSUBSCRIBED ? weir__net_owner(&e->net, c->slot) : NULL;
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

static void set_unsubscribed(redis_subscriber *e, channel_state *c)
{
    e->n_subscribed -= c->state == SUBSCRIBED;
    c->state = UNSUBSCRIBED;
    c->node = NULL;
}

/* ---- messages and answers ---- */

static void take_error(redis_subscriber *e, redis_node *n, const char *text)
{
    weir_code     code;
    redis_refusal what = weir__refusal(text, false, &code);
    uint32_t      slot = 0;
    redis_node   *to = what == REFUSED_MOVED
                           ? weir__net_redirect(&e->net, n, weir__refusal_rest(text), &slot)
                           : NULL;
    if (!to) {
        weir__node_disconnect(n, code == WEIR_EREADONLY ? code : WEIR_EUNAVAIL, "%s", text);
        return;
    }
    weir__net_set_owner(&e->net, slot, to);
    weir__net_rediscover(&e->net);
    for (size_t i = 0; i < e->n; i++) {
        if (e->channel[i].node == n && e->channel[i].slot == slot)
            set_unsubscribed(e, &e->channel[i]);
    }
}

static void take_subscribed(redis_subscriber *e, redis_node *n, channel_state *c)
{
    e->n_subscribed += c->state != SUBSCRIBED;
    c->state = SUBSCRIBED;
    n->pause_ms = 0;
    e->lost(e->ctx, (size_t)(c - e->channel));
}

static void take_message(redis_subscriber *e, redis_node *n, const redisReply *r)
{
    if (r->type == REDIS_REPLY_ERROR) {
        take_error(e, n, r->str);
        return;
    }
    if (r->type != REDIS_REPLY_ARRAY || r->elements != 3 || !r->element[0]->str)
        return;                 /* the answer to PING */
    const char  *kind = r->element[0]->str;
    channel_state *c = find_channel(e, n, r->element[1]);
    if (!c)
        return;                 /* a channel that is subscribed at another node by now */
    if (!strcmp(kind, "message") || !strcmp(kind, "smessage")) {
        e->on_message(e->ctx, (size_t)(c - e->channel), r->element[2]->str, r->element[2]->len);
    } else if (!strcmp(kind, "subscribe") || !strcmp(kind, "ssubscribe")) {
        take_subscribed(e, n, c);
    } else if (!strcmp(kind, "unsubscribe") || !strcmp(kind, "sunsubscribe")) {
        set_unsubscribed(e, c);    /* its slot went to another node */
        weir__net_rediscover(&e->net);
    }
}

static void on_reply(void *ctx, redis_node *n, redisReply *r)
{
    n->timeout_ms = 0;
    take_message(ctx, n, r);
    freeReplyObject(r);
    redis_subscriber *e = ctx;
    for (size_t i = 0; i < e->n && !n->timeout_ms && n->state == NODE_READY; i++) {
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
    redis_subscriber *e = ctx;
    for (size_t i = 0; i < e->n; i++) {
        if (e->channel[i].node == n)
            set_unsubscribed(e, &e->channel[i]);
    }
}

static bool is_used(void *ctx, redis_node *n)
{
    const redis_subscriber *e = ctx;
    for (size_t i = 0; i < e->n; i++) {
        if (e->channel[i].node == n)
            return true;
    }
    return false;
}

/* The map of slots changed: leave nodes that do not have the slot any more. */
static void on_found(void *ctx)
{
    redis_subscriber *e = ctx;
    for (size_t i = 0; i < e->n; i++) {
        channel_state *c = &e->channel[i];
        redis_node  *from = c->node, *to = weir__net_owner(&e->net, c->slot);
        if (!from || from == to)
            continue;
        set_unsubscribed(e, c);
        say(e, from, is_sharded(e, c) ? "SUNSUBSCRIBE" : "UNSUBSCRIBE", c->what.name);
    }
    weir__net_close_unowned(&e->net, is_used);
}

static const redis_net_ops subscriber_ops = {
    .ready = on_ready,
    .reply = on_reply,
    .lost = on_lost,
    .found = on_found,
};

/* ---- the thread ---- */

/* Send PING to nodes that were silent for PING_MS. Returns when the next one is due. */
static int64_t ping(redis_subscriber *e)
{
    int64_t now = weir__monotonic_ms(), until = INT64_MAX;
    for (size_t i = 0; i < e->net.n_nodes; i++) {
        redis_node *n = e->net.node[i];
        if (n->state != NODE_READY || n->timeout_ms)
            continue;
        if (n->read_ms + PING_MS <= now)
            say(e, n, "PING", NULL);
        else if (n->read_ms + PING_MS < until)
            until = n->read_ms + PING_MS;
    }
    return until;
}

/* Why no connection can be made, or one was lost; NULL: none was. */
static const weir_error *find_error(const redis_subscriber *e)
{
    const weir_error *why = &e->net.probe.why;
    for (size_t i = 0; i < e->net.n_nodes && !why->code; i++)
        why = &e->net.node[i]->why;
    return why->code ? why : NULL;
}

/* The net connects again by itself, to each server on its own: this returns only at the end. */
static void receive(void *ctx, weir_feed *f, weir_error *why)
{
    redis_subscriber *e = ctx;
    bool              live = false;
    (void)why;
    while (!weir__feed_stopping(f)) {
        subscribe(e);
        int64_t poll_ms = weir__net_poll_sentinels(&e->net), ping_ms = ping(e);
        const weir_error *error = e->net.disconnected ? find_error(e) : NULL;
        if (error)
            weir__feed_down(f, error);
        else if (!live && e->n_subscribed == e->n)
            weir__feed_live(f);
        live = !error && e->n_subscribed == e->n;
        weir__net_turn(&e->net, poll_ms < ping_ms ? poll_ms : ping_ms);
    }
}

static void wake(void *ctx)
{
    redis_subscriber *e = ctx;
    eventfd_write(e->net.wake_fd, 1);
}

static const weir_feed_source source = {
    .thread = "weir-redis",
    .receive = receive,
    .wake = wake,
};

/* ---- open and close ---- */

static weir_code set_up(redis_subscriber *e, const redis_url *url, const redis_channel *channels,
                        weir_error *err)
{
    weir_code rc = weir__net_init(&e->net, url, &subscriber_ops, e, err);
    if (rc)
        return rc;
    e->channel = calloc(e->n + 1, sizeof *e->channel);
    e->net.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!e->channel || e->net.wake_fd < 0)
        return weir_fail(err, WEIR_ENOMEM, "redis: no memory for a subscription");
    for (size_t i = 0; i < e->n; i++) {
        e->channel[i].what = channels[i];
        e->channel[i].slot = weir__redis_slot(channels[i].name, strlen(channels[i].name));
    }
    return weir__feed_open(&e->feed, &source, e, url->timeout_ms, err);
}

weir_code weir__subscriber_open(redis_subscriber **out, const redis_url *url,
                                const redis_channel *channels, size_t n,
                                redis_message_fn *on_message, redis_lost_fn *lost, void *ctx,
                                weir_error *err)
{
    *out = NULL;
    redis_subscriber *e = calloc(1, sizeof *e);
    if (!e)
        return weir_fail(err, WEIR_ENOMEM, "redis: no memory for a subscription");
    e->n = n;
    e->on_message = on_message;
    e->lost = lost;
    e->ctx = ctx;
    e->net.wake_fd = -1;
    weir_code rc = set_up(e, url, channels, err);
    if (rc) {
        weir__subscriber_close(e);
        return rc;
    }
    *out = e;
    return WEIR_OK;
}

void weir__subscriber_close(redis_subscriber *e)
{
    if (!e)
        return;
    weir__feed_close(e->feed);
    if (e->net.wake_fd >= 0)
        close(e->net.wake_fd);
    weir__net_fini(&e->net);
    free(e->channel);
    free(e);
}
