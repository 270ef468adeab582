/* topology.c - which servers are primaries: the map of a cluster, or the server that the sentinels
 * name.
 *
 * The probe asks one server after the other until one of them returns the topology. It is started
 * when an answer or a lost connection puts the topology in doubt, with pauses in between. */
#include "store/redis/link/net.h"

#include <stdlib.h>
#include <string.h>

enum {
    NO_OWNER = 0xffff,
    CALM_MS  = 5000,            /* after this long without probing there is no pause */
    POLL_MS  = 1000             /* sentinels are asked this often, though nothing is in doubt */
};

/* ---- what is known ---- */

redis_node *weir__net_owner(redis_net *net, uint32_t slot)
{
    if (!net->owner && net->located)
        return net->node[0];
    if (net->owner && net->owner[slot % WEIR_REDIS_SLOTS] != NO_OWNER)
        return net->node[net->owner[slot % WEIR_REDIS_SLOTS]];
    weir__net_rediscover(net);
    return NULL;
}

static size_t index_of(const redis_net *net, const redis_node *n)
{
    size_t i = 0;
    while (i < net->n_nodes && net->node[i] != n)
        i++;
    return i;
}

bool weir__net_owns(const redis_net *net, const redis_node *n)
{
    if (!net->owner)
        return n == net->node[0];
    size_t index = index_of(net, n);
    for (size_t i = 0; i < WEIR_REDIS_SLOTS; i++) {
        if (net->owner[i] == index)
            return true;
    }
    return false;
}

void weir__net_close_unowned(redis_net *net, bool (*is_used)(void *ctx, redis_node *n))
{
    for (size_t i = 0; i < net->n_nodes; i++) {
        redis_node *n = net->node[i];
        if (n->state == NODE_READY && !is_used(net->ctx, n) && !weir__net_owns(net, n))
            weir__node_close(n);
    }
}

void weir__net_set_owner(redis_net *net, uint32_t slot, const redis_node *n)
{
    if (net->owner)
        net->owner[slot] = (uint16_t)index_of(net, n);
}

redis_node *weir__net_redirect(redis_net *net, const redis_node *from, const char *text,
                               uint32_t *slot)
{
    char          *end;
    unsigned long  number = strtoul(text, &end, 10);
    const char    *colon = strrchr(text, ':');
    redis_place    place = { .port = colon ? atoi(colon + 1) : 0 };
    if (end == text || *end != ' ' || number >= WEIR_REDIS_SLOTS || !colon || colon < end ||
        place.port <= 0 || place.port > 65535 || (size_t)(colon - end) > sizeof place.host)
        return NULL;
    *slot = (uint32_t)number;
    memcpy(place.host, end + 1, (size_t)(colon - end - 1));
    if (!*place.host)           /* it does not know its own address: the one we know */
        memcpy(place.host, from->place.host, sizeof place.host);
    return weir__net_node(net, &place);
}

/* ---- probing ---- */

void weir__net_rediscover(redis_net *net)
{
    if (net->url.way != REDIS_CLUSTER && net->url.way != REDIS_SENTINEL)
        return;
    net->located = false;
    if (net->probing)
        return;
    int64_t now = weir__monotonic_ms();
    if (now - net->probed_ms > CALM_MS)
        net->probe_pause_ms = 0;
    net->probing = true;
    net->candidate = 0;
    net->probe_ms = net->probed_ms + net->probe_pause_ms;
}

int64_t weir__net_poll_sentinels(redis_net *net)
{
    if (net->url.way != REDIS_SENTINEL || net->probing || !net->located)
        return INT64_MAX;
    if (weir__monotonic_ms() - net->probed_ms < POLL_MS)
        return net->probed_ms + POLL_MS;
    net->probing = net->polling = true;
    net->candidate = 0;
    net->probe_ms = 0;
    return INT64_MAX;
}

static void pause_longer(redis_net *net)
{
    net->probe_pause_ms = weir__pause_after(net->probe_pause_ms);
    net->probed_ms = weir__monotonic_ms();
}

/* The server to ask. Cluster: first the connected servers, then the servers of the URL, then the
 * others. Sentinels: in the order of the URL, from the last one that answered. */
static bool find_candidate(const redis_net *net, redis_place *out)
{
    size_t n = net->candidate, n_places = net->url.n_places;
    if (net->url.way == REDIS_SENTINEL) {
        *out = net->url.place[(net->good + n) % n_places];
        return n < n_places;
    }
    for (int connected = 1; connected >= 0; connected--) {
        for (size_t i = 0; i < net->n_nodes; i++) {
            if ((net->node[i]->state == NODE_READY) == connected && n-- == 0) {
                *out = net->node[i]->place;
                return true;
            }
        }
        if (connected && n < n_places) {
            *out = net->url.place[n];
            return true;
        }
        n -= connected ? n_places : 0;
    }
    return false;
}

void weir__net_probe(redis_net *net, int64_t now)
{
    /* Candidates that fail at once are followed by the next one at once. */
    while (net->probing && net->probe.state == NODE_CLOSED && net->probe_ms <= now) {
        if (find_candidate(net, &net->probe.place)) {
            weir__node_connect(&net->probe);
            continue;
        }
        net->rounds++;
        net->candidate = 0;
        pause_longer(net);
        net->probe_ms = net->probed_ms + net->probe_pause_ms;
        return;
    }
}

void weir__probe_failed(redis_net *net)
{
    net->candidate++;
}

/* ---- answers ---- */

static void found(redis_net *net)
{
    net->probing = false;
    net->located = net->known = true;
    net->probe.why = (weir_error){ 0 };
    if (net->url.way == REDIS_SENTINEL)
        net->good = (net->good + net->candidate) % net->url.n_places;
    net->rounds = 0;
    if (net->polling)
        net->probed_ms = weir__monotonic_ms();
    else
        pause_longer(net);
    net->polling = false;
    net->ops->found(net->ctx);
}

/* [host, port] */
static weir_code take_primary(redis_net *net, const redisReply *r, weir_error *err)
{
    if (r->type != REDIS_REPLY_ARRAY || r->elements != 2 || !r->element[0]->str ||
        !r->element[1]->str || r->element[0]->len >= sizeof net->node[0]->place.host)
        return weir_fail(err, r->type == REDIS_REPLY_NIL ? WEIR_EINVAL : WEIR_EUNAVAIL,
                         "unknown primary %s: the sentinel does not watch it", net->url.primary);
    redis_node *n = net->node[0];
    redis_place place = { .port = atoi(r->element[1]->str) };
    strcpy(place.host, r->element[0]->str);
    if (place.port <= 0 || place.port > 65535)
        return weir_fail(err, WEIR_EUNAVAIL, "the sentinel returned no port of %s",
                         net->url.primary);
    bool same = n->place.port == place.port && !strcmp(n->place.host, place.host);
    if (!same && n->state != NODE_CLOSED)
        weir__node_disconnect(n, WEIR_EUNAVAIL, "the sentinels name another primary");
    if (!same)
        n->try_ms = n->pause_ms = 0;
    n->place = place;
    return WEIR_OK;
}

/* [first, last, [host, port, ...], replicas...] */
static weir_code take_range(redis_net *net, const redisReply *r, uint16_t *owner)
{
    if (r->type != REDIS_REPLY_ARRAY || r->elements < 3)
        return WEIR_EUNAVAIL;
    const redisReply *first = r->element[0], *last = r->element[1], *at = r->element[2];
    redis_place       place = net->probe.place;
    if (first->integer < 0 || last->integer >= WEIR_REDIS_SLOTS || at->type != REDIS_REPLY_ARRAY ||
        at->elements < 2 || at->element[1]->integer <= 0 || at->element[1]->integer > 65535 ||
        at->element[0]->len >= sizeof place.host)
        return WEIR_EUNAVAIL;
    if (at->element[0]->len)    /* else it has no own address: use ours */
        strcpy(place.host, at->element[0]->str);
    place.port = (int)at->element[1]->integer;
    redis_node *n = weir__net_node(net, &place);
    if (!n)
        return WEIR_ENOMEM;
    size_t index = index_of(net, n);
    for (long long slot = first->integer; slot <= last->integer; slot++)
        owner[slot] = (uint16_t)index;
    return WEIR_OK;
}

static weir_code take_map(redis_net *net, const redisReply *r, weir_error *err)
{
    if (r->type != REDIS_REPLY_ARRAY || !r->elements)
        return weir_fail(err, WEIR_EUNAVAIL, "no slots are assigned; create the cluster first");
    uint16_t *owner = malloc(WEIR_REDIS_SLOTS * sizeof *owner);
    if (!owner)
        return weir_fail(err, WEIR_ENOMEM, "no memory for the map of the cluster");
    memset(owner, 0xff, WEIR_REDIS_SLOTS * sizeof *owner);
    weir_code rc = WEIR_OK;
    for (size_t i = 0; !rc && i < r->elements; i++)
        rc = take_range(net, r->element[i], owner);
    if (rc) {
        free(owner);
        return weir_fail(err, rc, rc == WEIR_ENOMEM ? "more than %d servers, or no memory for them"
                                                    : "its map of the cluster is not understood",
                         REDIS_MAX_KNOWN);
    }
    free(net->owner);
    net->owner = owner;
    return WEIR_OK;
}

weir_code weir__probe_answer(redis_node *probe, const redisReply *r, weir_error *err)
{
    redis_net *net = probe->net;
    weir_code  rc = net->url.way == REDIS_CLUSTER ? take_map(net, r, err)
                                                  : take_primary(net, r, err);
    if (!rc)
        found(net);
    return rc;
}
