/* redis_nodes.c - several Redis servers that belong together: clusters, and primaries with replicas
 * and sentinels. See redis_rig.h. */
#include "support/redis_rig.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/proxy.h"

enum { SLOTS = 16384, MOVE_AT_ONCE = 10 };

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void breathe(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
}

/* Wait until `is(c, arg)`. */
static bool until(bool (*is)(const rig_nodes *c, const void *arg), const rig_nodes *c,
                  const void *arg, const char *what)
{
    int64_t end = now_ms() + RIG_PATIENCE_MS;
    while (!is(c, arg)) {
        if (now_ms() > end) {
            fprintf(stderr, "# rig: never: %s\n", what);
            return false;
        }
        breathe();
    }
    return true;
}

static bool has_text(const rig *r, const char *text, const char *command)
{
    redisReply *reply = rig_command(r, command);
    bool        has = reply && reply->str && strstr(reply->str, text);
    freeReplyObject(reply);
    return has;
}

void rig_nodes_free(rig_nodes *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n_sentinels; i++)
        rig_free(c->sentinel[i]);
    for (size_t i = 0; i < c->n; i++)
        rig_free(c->node[i]);
    free(c);
}

/* "127.0.0.1:10001,127.0.0.1:10002" */
static size_t add_places(char *out, size_t size, rig *const *nodes, size_t n)
{
    size_t at = strlen(out);
    for (size_t i = 0; i < n && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s127.0.0.1:%d", i ? "," : "",
                               nodes[i]->port);
    return at;
}

/* ---- a cluster ---- */

static bool node_id(const rig *r, char out[64])
{
    redisReply *reply = rig_command(r, "CLUSTER MYID");
    snprintf(out, 64, "%s", reply && reply->str ? reply->str : "");
    freeReplyObject(reply);
    return *out;
}

static bool all_know_all(const rig_nodes *c, const void *arg)
{
    (void)arg;
    char known[64];
    snprintf(known, sizeof known, "cluster_known_nodes:%zu\r", c->n);
    for (size_t i = 0; i < c->n; i++)
        if (!has_text(c->node[i], known, "CLUSTER INFO"))
            return false;
    return true;
}

static bool knows(const rig_nodes *c, const void *arg)
{
    const char *id = arg;
    for (size_t i = 0; i < c->n; i++)
        if (!has_text(c->node[i], id, "CLUSTER NODES"))
            return false;
    return true;
}

static bool all_well(const rig_nodes *c, const void *arg)
{
    (void)arg;
    for (size_t i = 0; i < c->n; i++) {
        const rig *r = c->node[i];
        if (!r->pid)
            continue;
        if (!has_text(r, "cluster_state:ok", "CLUSTER INFO"))
            return false;
        if (has_text(r, "role:slave", "INFO replication") &&
            !has_text(r, "master_link_status:up", "INFO replication"))
            return false;
    }
    return true;
}

bool rig_cluster_ready(const rig_nodes *c)
{
    return until(all_well, c, NULL, "a cluster that is well");
}

static bool give_slots(const rig_nodes *c, size_t primaries)
{
    for (size_t i = 0; i < primaries; i++) {
        unsigned first = (unsigned)(SLOTS * i / primaries);
        unsigned last = (unsigned)(SLOTS * (i + 1) / primaries) - 1;
        if (!rig_do(c->node[i], "CLUSTER SET-CONFIG-EPOCH %u", (unsigned)i + 1) ||
            !rig_do(c->node[i], "CLUSTER ADDSLOTSRANGE %u %u", first, last))
            return false;
    }
    for (size_t i = primaries; i < c->n; i++)
        if (!rig_do(c->node[i], "CLUSTER SET-CONFIG-EPOCH %u", (unsigned)i + 1))
            return false;
    return true;
}

static bool join_up(const rig_nodes *c, size_t primaries)
{
    char id[64];
    for (size_t i = 1; i < c->n; i++)
        if (!rig_do(c->node[i], "CLUSTER MEET 127.0.0.1 %d", c->node[0]->port))
            return false;
    if (!until(all_know_all, c, NULL, "nodes that know each other"))
        return false;
    for (size_t i = primaries; i < c->n; i++) {
        if (!node_id(c->node[i % primaries], id) ||
            !until(knows, c, id, "nodes that know this one") ||
            !rig_do(c->node[i], "CLUSTER REPLICATE %s", id))
            return false;
    }
    return rig_cluster_ready(c);
}

rig_nodes *rig_cluster(size_t primaries, size_t replicas_each)
{
    rig_nodes *c = calloc(1, sizeof *c);
    size_t     n = primaries * (1 + replicas_each);
    while (c && c->n < n && n <= RIG_MAX_NODES) {
        rig *r = rig_start(&(rig_options){ .cluster = true });
        if (!r)
            break;
        c->node[c->n++] = r;
    }
    if (c && c->n == n && give_slots(c, primaries) && join_up(c, primaries))
        return c;
    rig_nodes_free(c);
    return NULL;
}

char *rig_cluster_url(const rig_nodes *c, const char *scheme, const char *query, char *out,
                      size_t size)
{
    snprintf(out, size, "%s://", scheme);
    size_t at = add_places(out, size, c->node, c->n);
    snprintf(out + at, size - at, "?cluster=1%s%s", query && *query ? "&" : "", query ? query : "");
    return out;
}

/* The port of the primary of a slot as `r` sees it; 0: none. */
static int port_of_slot(const rig *r, uint32_t slot)
{
    redisReply *reply = rig_command(r, "CLUSTER SLOTS");
    int         port = 0;
    for (size_t i = 0; reply && reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        redisReply *range = reply->element[i];
        if (range->element[0]->integer <= slot && slot <= range->element[1]->integer)
            port = (int)range->element[2]->element[1]->integer;
    }
    freeReplyObject(reply);
    return port;
}

rig *rig_cluster_primary(const rig_nodes *c, uint32_t slot)
{
    int port = 0;
    for (size_t i = 0; i < c->n; i++) {
        int seen = c->node[i]->pid ? port_of_slot(c->node[i], slot) : port;
        if (port && seen != port)
            return NULL;
        port = seen;
    }
    for (size_t i = 0; i < c->n; i++)
        if (c->node[i]->pid && c->node[i]->port == port)
            return c->node[i];
    return NULL;
}

typedef struct wanted {
    uint32_t   slot;
    const rig *not;
} wanted;

static bool somebody_else(const rig_nodes *c, const void *arg)
{
    const wanted *w = arg;
    const rig    *r = rig_cluster_primary(c, w->slot);
    return r && r != w->not && all_well(c, NULL);
}

rig *rig_cluster_failed_over(const rig_nodes *c, uint32_t slot, const rig *old)
{
    return until(somebody_else, c, &(wanted){ slot, old }, "a new primary")
               ? rig_cluster_primary(c, slot)
               : NULL;
}

/* Some keys of a slot, to the node at `port`. 1: there were some, 0: none, -1: it failed. */
static int move_keys(const rig *from, uint32_t slot, int port)
{
    redisReply *keys = rig_command(from, "CLUSTER GETKEYSINSLOT %u %d", slot, MOVE_AT_ONCE);
    if (!keys || keys->type != REDIS_REPLY_ARRAY) {
        freeReplyObject(keys);
        return -1;
    }
    int moved = keys->elements > 0;
    for (size_t i = 0; i < keys->elements && moved > 0; i++)
        if (!rig_do(from, "MIGRATE 127.0.0.1 %d %b 0 5000", port, keys->element[i]->str,
                    keys->element[i]->len))
            moved = -1;
    freeReplyObject(keys);
    return moved;
}

bool rig_cluster_move(const rig_nodes *c, uint32_t slot, const rig *to)
{
    rig *from = rig_cluster_primary(c, slot);
    char from_id[64], to_id[64];
    int  moved = 1;
    if (from == to)
        return true;
    if (!from || !node_id(from, from_id) || !node_id(to, to_id) ||
        !rig_do(to, "CLUSTER SETSLOT %u IMPORTING %s", slot, from_id) ||
        !rig_do(from, "CLUSTER SETSLOT %u MIGRATING %s", slot, to_id))
        return false;
    while (moved > 0)
        moved = move_keys(from, slot, to->port);
    if (moved < 0 || !rig_do(to, "CLUSTER SETSLOT %u NODE %s", slot, to_id) ||
        !rig_do(from, "CLUSTER SETSLOT %u NODE %s", slot, to_id))
        return false;
    return until(somebody_else, c, &(wanted){ slot, from }, "a slot that is moved");
}

/* ---- sentinels ---- */

char *rig_sentinel_url(const rig_nodes *c, const char *scheme, const char *query, char *out,
                       size_t size)
{
    snprintf(out, size, "%s://", scheme);
    size_t at = add_places(out, size, c->sentinel, c->n_sentinels);
    snprintf(out + at, size - at, "/mymaster%s%s", query && *query ? "?" : "", query ? query : "");
    return out;
}

static int port_of_primary(const rig *sentinel)
{
    redisReply *reply = rig_command(sentinel, "SENTINEL GET-MASTER-ADDR-BY-NAME mymaster");
    int         port = 0;
    if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2)
        port = atoi(reply->element[1]->str);
    freeReplyObject(reply);
    return port;
}

rig *rig_sentinel_primary(const rig_nodes *c)
{
    int port = port_of_primary(c->sentinel[0]);
    for (size_t i = 1; i < c->n_sentinels; i++)
        if (port_of_primary(c->sentinel[i]) != port)
            return NULL;
    for (size_t i = 0; i < c->n; i++)
        if (c->node[i]->pid && c->node[i]->port == port)
            return c->node[i];
    return NULL;
}

static bool another_primary(const rig_nodes *c, const void *arg)
{
    const rig *r = rig_sentinel_primary(c);
    return r && r != arg && has_text(r, "role:master", "INFO replication");
}

rig *rig_sentinel_failed_over(const rig_nodes *c, const rig *old)
{
    return until(another_primary, c, old, "a new primary") ? rig_sentinel_primary(c) : NULL;
}

/* Every sentinel sees the others and all replicas. */
static bool sentinels_see_all(const rig_nodes *c, const void *arg)
{
    (void)arg;
    char want[64];
    snprintf(want, sizeof want, "status=ok,address=127.0.0.1:%d,slaves=%zu,sentinels=%zu",
             c->node[0]->port, c->n - 1, c->n_sentinels);
    for (size_t i = 0; i < c->n_sentinels; i++)
        if (!has_text(c->sentinel[i], want, "INFO sentinel"))
            return false;
    return true;
}

static bool replicas_up(const rig_nodes *c, const void *arg)
{
    (void)arg;
    for (size_t i = 1; i < c->n; i++)
        if (!has_text(c->node[i], "master_link_status:up", "INFO replication"))
            return false;
    return true;
}

static bool start_sentinels(rig_nodes *c, size_t sentinels, size_t replicas)
{
    char config[512];
    for (; c->n < 1 + replicas; c->n++) {
        c->node[c->n] = rig_start(&(rig_options){ .tcp = true });
        if (!c->node[c->n] ||
            (c->n && !rig_do(c->node[c->n], "REPLICAOF 127.0.0.1 %d", c->node[0]->port)))
            return false;
    }
    snprintf(config, sizeof config,
             "sentinel monitor mymaster 127.0.0.1 %d %zu\n"
             "sentinel down-after-milliseconds mymaster %d\n"
             "sentinel failover-timeout mymaster 3000\n"
             "sentinel parallel-syncs mymaster 1\n",
             c->node[0]->port, sentinels / 2 + 1, RIG_NODE_TIMEOUT_MS);
    if (!until(replicas_up, c, NULL, "replicas that are up to date"))
        return false;
    for (; c->n_sentinels < sentinels; c->n_sentinels++) {
        c->sentinel[c->n_sentinels] = rig_start(&(rig_options){ .sentinel = true,
                                                                .config = config });
        if (!c->sentinel[c->n_sentinels])
            return false;
    }
    return until(sentinels_see_all, c, NULL, "sentinels that see each other and the replicas");
}

rig_nodes *rig_sentinels(size_t sentinels, size_t replicas)
{
    rig_nodes *c = calloc(1, sizeof *c);
    if (c && sentinels <= RIG_MAX_NODES && replicas < RIG_MAX_NODES &&
        start_sentinels(c, sentinels, replicas))
        return c;
    rig_nodes_free(c);
    return NULL;
}

/* ---- shared servers ---- */

static struct {
    rig       *one, *tcp, *tls;
    proxy     *line;                /* to `one`, and it is bad */
    rig_nodes *cluster;
    unsigned   prefixes;
    pid_t      owner;
} shared;

static void free_shared(void)
{
    if (getpid() != shared.owner)
        return;                     /* a child that was forked */
    proxy_stop(shared.line);
    rig_free(shared.one);
    rig_free(shared.tcp);
    rig_free(shared.tls);
    rig_nodes_free(shared.cluster);
}

static bool start_shared(const char *scheme)
{
    if (!shared.owner) {
        shared.owner = getpid();
        atexit(free_shared);
    }
    if (!strcmp(scheme, "cluster"))
        return shared.cluster || (shared.cluster = rig_cluster(3, 0));
    if (strstr(scheme, "+unix"))
        return shared.one || (shared.one = rig_start(NULL));
    if (!strncmp(scheme, "rediss", 6))
        return shared.tls || (shared.tls = rig_start(&(rig_options){ .tls = "IP:127.0.0.1" }));
    return shared.tcp || (shared.tcp = rig_start(&(rig_options){ .tcp = true }));
}

static const char CUT[] = "rig:cut:";

bool rig_is_cut(const char *url)
{
    return !strncmp(url, CUT, sizeof CUT - 1);
}

static bool cut_url(const char *scheme, const char *query, char *out, size_t size)
{
    enum { SEED = 1794804839, CUT_AFTER = 30000 };
    if (!start_shared("+unix"))
        return false;
    if (!shared.line) {
        shared.line = proxy_start(shared.one, SEED);
        if (shared.line)
            proxy_cut_after(shared.line, CUT_AFTER);
    }
    if (shared.line)
        snprintf(out, size, "%s://127.0.0.1:%d?timeout=60s&%s", scheme, proxy_port(shared.line),
                 query);
    return shared.line;
}

bool rig_shared_url(const char *url, char *out, size_t size)
{
    char        scheme[64], query[128];
    const char *rest = rig_is_cut(url) ? url + sizeof CUT - 1 : strchr(url, ':') + 1;
    const char *mark = strchr(rest, '?');
    snprintf(scheme, sizeof scheme, "%.*s", (int)(mark ? mark - rest : (long)strlen(rest)), rest);
    if (!rig_is_cut(url) && !start_shared(scheme))
        return false;
    snprintf(query, sizeof query, "prefix=t%u%s%s", ++shared.prefixes, mark ? "&" : "",
             mark ? mark + 1 : "");
    if (rig_is_cut(url))
        return cut_url(scheme, query, out, size);
    if (!strcmp(scheme, "cluster"))
        rig_cluster_url(shared.cluster, "redis", query, out, size);
    else
        rig_url(strstr(scheme, "+unix")          ? shared.one
                : !strncmp(scheme, "rediss", 6) ? shared.tls
                                                : shared.tcp,
                scheme, query, out, size);
    return true;
}
