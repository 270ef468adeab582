/* net.c - the set of nodes, and the one place where a thread waits for them. */
#include "store/redis/link/net.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

int64_t weir__pause_after(int64_t pause_ms)
{
    int64_t ms = pause_ms ? pause_ms * 2 : REDIS_PAUSE_MS;
    return ms < REDIS_MAX_PAUSE_MS ? ms : REDIS_MAX_PAUSE_MS;
}

int64_t weir__pause_ms(int tries)
{
    int64_t ms = REDIS_PAUSE_MS;
    for (int i = 1; i < tries && ms < REDIS_MAX_PAUSE_MS; i++)
        ms = weir__pause_after(ms);
    return ms;
}

/* ---- nodes ---- */

static redis_node *find_node(const redis_net *net, const redis_place *place)
{
    for (size_t i = 0; i < net->n_nodes; i++) {
        redis_node *n = net->node[i];
        if (n->place.port == place->port && !strcmp(n->place.host, place->host))
            return n;
    }
    return NULL;
}

/* A node that is not needed any more, of a cluster whose addresses have changed often. */
static redis_node *reuse_node(redis_net *net, const redis_place *place)
{
    for (size_t i = 0; i < net->n_nodes; i++) {
        redis_node *n = net->node[i];
        if (n->state == NODE_CLOSED && !n->wanted && !weir__net_owns(net, n)) {
            weir__node_fini(n);
            weir__node_init(n, net, place);
            return n;
        }
    }
    return NULL;
}

redis_node *weir__net_node(redis_net *net, const redis_place *place)
{
    redis_node *n = find_node(net, place);
    if (n)
        return n;
    if (net->n_nodes == REDIS_MAX_KNOWN)
        return reuse_node(net, place);
    redis_node   **node = realloc(net->node, (net->n_nodes + 1) * sizeof *node);
    struct pollfd *room = realloc(net->poll, (net->n_nodes + 3) * sizeof *room);
    if (node)
        net->node = node;
    if (room)
        net->poll = room;
    n = node && room ? malloc(sizeof *n) : NULL;
    if (!n)
        return NULL;
    weir__node_init(n, net, place);
    net->node[net->n_nodes++] = n;
    return n;
}

weir_code weir__net_init(redis_net *net, const redis_url *url, const redis_net_ops *ops, void *ctx,
                         weir_error *err)
{
    *net = (redis_net){ .url = *url, .wake_fd = -1 };
    weir_code rc = url->tls ? weir__tls_create(&net->tls, url, err) : WEIR_OK;
    if (rc)
        return rc;
    net->ops = ops;
    net->ctx = ctx;
    weir__node_init(&net->probe, net, &url->place[0]);
    net->probe.probe = true;
    net->poll = calloc(2, sizeof *net->poll);
    bool fine = net->poll != NULL;
    if (url->way == REDIS_CLUSTER) {
        net->owner = malloc(WEIR_REDIS_SLOTS * sizeof *net->owner);
        if (net->owner)
            memset(net->owner, 0xff, WEIR_REDIS_SLOTS * sizeof *net->owner);
        fine = fine && net->owner;
    } else {
        fine = fine && weir__net_node(net, &url->place[0]);
        net->located = net->known = url->way != REDIS_SENTINEL;
    }
    if (!fine) {
        weir__net_fini(net);
        return weir_fail(err, WEIR_ENOMEM, "redis: no memory for the connection");
    }
    return WEIR_OK;
}

void weir__net_fini(redis_net *net)
{
    if (!net->ops)
        return;
    for (size_t i = 0; i < net->n_nodes; i++) {
        weir__node_fini(net->node[i]);
        free(net->node[i]);
    }
    weir__node_fini(&net->probe);
    free(net->node);
    free(net->poll);
    free(net->owner);
    SSL_CTX_free(net->tls);
    *net = (redis_net){ 0 };
}

/* ---- a turn ---- */

/* Connect wanted nodes and the probe. Returns when something is to be done next. */
static int64_t begin(redis_net *net, int64_t now, int64_t until)
{
    weir__net_probe(net, now);
    if (net->probing && net->probe.state == NODE_CLOSED && net->probe_ms < until)
        until = net->probe_ms;
    if (weir__node_due(&net->probe) < until)
        until = weir__node_due(&net->probe);
    for (size_t i = 0; i < net->n_nodes; i++) {
        redis_node *n = net->node[i];
        if (n->state == NODE_CLOSED && n->wanted && n->try_ms <= now)
            weir__node_connect(n);
        if (n->state == NODE_CLOSED && n->wanted && n->try_ms < until)
            until = n->try_ms;
        if (weir__node_due(n) < until)
            until = weir__node_due(n);
    }
    return until;
}

static struct pollfd ask_about(const redis_node *n)
{
    bool writes = n->state == NODE_CONNECTING || n->tls_writes ||
                  (n->state != NODE_SECURING && n->out_at < n->out.len);
    bool reads = n->state != NODE_CONNECTING;
    return (struct pollfd){ .fd = n->fd,
                            .events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)) };
}

/* Disconnect a node whose answer is late. Called after reading, so that an answer that has come
 * counts however late this thread is. */
static void check_due(redis_node *n, int64_t now)
{
    if (weir__node_due(n) <= now)
        weir__node_disconnect(n, WEIR_EUNAVAIL, "%s for %lld ms",
                              n->state == NODE_CONNECTING ? "no connection"
                              : n->state == NODE_SECURING
                                  ? "no TLS handshake (is it a port without TLS?)"
                                  : "no answer",
                              (long long)n->timeout_ms);
}

void weir__net_turn(redis_net *net, int64_t until_ms)
{
    bool disconnected = net->disconnected;      /* the user has to look at it before we wait */
    net->disconnected = false;
    int64_t now = weir__monotonic_ms(), until = begin(net, now, until_ms);
    size_t  n = net->n_nodes;           /* more may be added below, at the end */
    for (size_t i = 0; i < n; i++)
        net->poll[i] = ask_about(net->node[i]);
    net->poll[n] = ask_about(&net->probe);
    net->poll[n + 1] = (struct pollfd){ .fd = net->wake_fd, .events = POLLIN };

    int64_t wait = until - now;
    bool    at_once = wait <= 0 || disconnected || net->disconnected;
    int     ms = at_once ? 0 : wait > 3600000 ? 3600000 : (int)wait;
    if (poll(net->poll, (nfds_t)(n + 2), ms) < 0)
        return;
    for (size_t i = 0; i <= n; i++) {
        redis_node *node = i < n ? net->node[i] : &net->probe;
        /* An event before this one may have closed it. */
        if (net->poll[i].revents && node->fd == net->poll[i].fd)
            weir__node_io(node, net->poll[i].revents);
    }
    now = weir__monotonic_ms();
    for (size_t i = 0; i < net->n_nodes; i++)
        check_due(net->node[i], now);
    check_due(&net->probe, now);
}

/* ---- all of it ---- */

/* Are all primaries known and connected? The others become wanted. *failed: a node that could not
 * be connected. */
static bool all_ready(redis_net *net, const redis_node **failed)
{
    bool all = net->located;
    for (size_t i = 0; i < net->n_nodes; i++) {
        redis_node *n = net->node[i];
        if (n->state == NODE_READY || !weir__net_owns(net, n))
            continue;
        all = false;
        if (n->state == NODE_CLOSED && n->why.code)
            *failed = n;
        n->wanted = net->located;
    }
    if (!net->located)
        weir__net_rediscover(net);
    return all;
}

weir_code weir__net_open(redis_net *net, weir_error *err)
{
    int64_t until = weir__monotonic_ms() + net->url.timeout_ms;
    for (;;) {
        const redis_node *failed = NULL;
        if (all_ready(net, &failed))
            return WEIR_OK;
        bool waits = net->url.way == REDIS_CLUSTER || net->url.way == REDIS_SENTINEL;
        bool late = weir__monotonic_ms() >= until, last = late || !waits;
        if (failed && (last || failed->why.code == WEIR_EINVAL))
            return weir_fail(err, failed->why.code, "%s", failed->why.msg);
        if (net->rounds && (late || !net->known))
            return weir_fail(err, net->probe.why.code, "%s", net->probe.why.msg);
        if (late)
            return weir_fail(err, WEIR_EUNAVAIL, "redis: no primary within %lld ms",
                             (long long)net->url.timeout_ms);
        weir__net_turn(net, until);
    }
}
