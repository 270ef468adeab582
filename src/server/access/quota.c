/* quota.c - what one caller uses: see quota.h. */
#include "server/access/quota.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1024, KEY = 80 };
#define BURST_NS INT64_C(1000000000)        /* of requests: the requests of a second may come at
                                               once */

struct srv_quota {
    srv_quotas      *all;
    srv_quota       *next;              /* in its bucket */
    srv_quota       *prev_idle, *next_idle;
    bool             idle;              /* in the list of entries without references */
    _Atomic uint32_t refs;
    _Atomic int64_t  used[SRV_SHARES];
    _Atomic int64_t  paid_ns;           /* requests until now are paid for up to this moment */
    char             key[KEY];          /* "token NAME" or "address 10.0.0.1" */
};

struct srv_quotas {
    const int64_t  *limit;
    srv_quota       rest;               /* of those who found no place */
    pthread_mutex_t lock;               /* guards what follows, and the links of quotas */
    srv_quota      *bucket[BUCKETS];
    srv_quota      *first_idle, *last_idle;     /* longest idle first */
    size_t          n;
};

/* ---- the table ---- */

static srv_quota **bucket_of(srv_quotas *qs, const char *key)
{
    uint32_t hash = 2166136261u;
    for (const char *p = key; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619u;
    return &qs->bucket[hash % BUCKETS];
}

static void idle_remove(srv_quotas *qs, srv_quota *q)
{
    *(q->prev_idle ? &q->prev_idle->next_idle : &qs->first_idle) = q->next_idle;
    *(q->next_idle ? &q->next_idle->prev_idle : &qs->last_idle) = q->prev_idle;
    q->idle = false;
}

static void idle_add(srv_quotas *qs, srv_quota *q)
{
    q->prev_idle = qs->last_idle;
    q->next_idle = NULL;
    *(q->prev_idle ? &q->prev_idle->next_idle : &qs->first_idle) = q;
    qs->last_idle = q;
    q->idle = true;
}

/* Memory for one more: new, or of the entry that is idle longest. NULL: no entry. */
static srv_quota *find_place(srv_quotas *qs)
{
    srv_quota *q = qs->first_idle;
    if (qs->n < SRV_MAX_QUOTAS) {
        q = malloc(sizeof *q);
        qs->n += q != NULL;
        return q;
    }
    if (!q)
        return NULL;
    srv_quota **link = bucket_of(qs, q->key);
    while (*link != q)
        link = &(*link)->next;
    *link = q->next;
    idle_remove(qs, q);
    return q;
}

static srv_quota *get(srv_quotas *qs, const char *key)
{
    srv_quota **bucket = bucket_of(qs, key), *q;
    pthread_mutex_lock(&qs->lock);
    for (q = *bucket; q && strcmp(q->key, key) != 0;)
        q = q->next;
    if (!q && (q = find_place(qs))) {
        *q = (srv_quota){ .all = qs, .next = *bucket };
        strcpy(q->key, key);
        *bucket = q;
    }
    if (!q)
        q = &qs->rest;
    if (q->idle)
        idle_remove(qs, q);
    atomic_fetch_add(&q->refs, 1);
    pthread_mutex_unlock(&qs->lock);
    return q;
}

srv_quota *srv_quota_ref(srv_quota *q)
{
    if (q)
        atomic_fetch_add(&q->refs, 1);
    return q;
}

void srv_quota_unref(srv_quota *q)
{
    if (!q || atomic_fetch_sub(&q->refs, 1) != 1 || q == &q->all->rest)
        return;
    pthread_mutex_lock(&q->all->lock);
    if (!atomic_load(&q->refs) && !q->idle)
        idle_add(q->all, q);
    pthread_mutex_unlock(&q->all->lock);
}

/* ---- callers ---- */

/* False: it is loopback, or no address of the internet. */
static bool address_key(const char *peer, char *out, size_t size)
{
    char            host[INET6_ADDRSTRLEN + 1], text[INET6_ADDRSTRLEN];
    struct in6_addr six;
    struct in_addr  four;
    const char     *colon = strrchr(peer, ':');
    bool            bracket = *peer == '[';
    int             len = colon ? (int)(colon - peer) - 2 * bracket : 0;
    snprintf(host, sizeof host, "%.*s", len < 0 ? 0 : len, peer + bracket);
    if (!bracket && inet_pton(AF_INET, host, &four) == 1) {
        snprintf(out, size, "address %s", host);
        return ntohl(four.s_addr) >> 24 != 127;
    }
    if (!bracket || inet_pton(AF_INET6, host, &six) != 1 || IN6_IS_ADDR_LOOPBACK(&six))
        return false;
    if (IN6_IS_ADDR_V4MAPPED(&six)) {
        inet_ntop(AF_INET, six.s6_addr + 12, text, sizeof text);
        snprintf(out, size, "address %s", text);
        return six.s6_addr[12] != 127;
    }
    memset(six.s6_addr + 8, 0, 8);
    inet_ntop(AF_INET6, &six, text, sizeof text);
    snprintf(out, size, "address %s/64", text);
    return true;
}

srv_quota *srv_quota_of_address(srv_quotas *qs, const char *peer)
{
    char key[KEY];
    return address_key(peer, key, sizeof key) ? get(qs, key) : NULL;
}

srv_quota *srv_quota_of_token(srv_quotas *qs, const char *name)
{
    char key[KEY];
    if (!*name)
        return NULL;
    snprintf(key, sizeof key, "token %.70s", name);
    return get(qs, key);
}

bool srv_quota_is_token(const srv_quota *q, const char *name)
{
    return q ? !strncmp(q->key, "token ", 6) && !strcmp(q->key + 6, name) : !*name;
}

/* ---- shares ---- */

static const char *const names[SRV_SHARES] = {
    [SRV_SHARE_RATE] = "caller-rate",
    [SRV_SHARE_CONNECTIONS] = "caller-connections",
    [SRV_SHARE_LISTENERS] = "caller-listeners",
    [SRV_SHARE_WAITS] = "caller-waits",
    [SRV_SHARE_BODIES] = "caller-bodies",
    [SRV_SHARE_ANSWERS] = "caller-answers",
};

const char *srv_share_name(srv_share share)
{
    return names[share];
}

bool srv_quota_take(srv_quota *q, srv_share share, int64_t n)
{
    if (!q || atomic_fetch_add(&q->used[share], n) + n <= q->all->limit[share])
        return true;
    atomic_fetch_sub(&q->used[share], n);
    return false;
}

void srv_quota_add(srv_quota *q, srv_share share, int64_t n)
{
    if (q)
        atomic_fetch_add(&q->used[share], n);
}

int64_t srv_quota_used(const srv_quota *q, srv_share share)
{
    return q ? atomic_load(&q->used[share]) : 0;
}

/* Each request pays for the time until the next one at this rate; a second may be paid ahead. */
int64_t srv_quota_request(srv_quota *q, int64_t now_ms)
{
    int64_t now = now_ms * 1000000;
    if (!q)
        return 0;
    int64_t paid = atomic_load(&q->paid_ns), from;
    do {
        from = paid > now ? paid : now;
        if (from - now >= BURST_NS)
            return (from - now - BURST_NS) / 1000000 + 1;
    } while (!atomic_compare_exchange_weak(&q->paid_ns, &paid,
                                           from + BURST_NS / q->all->limit[SRV_SHARE_RATE]));
    return 0;
}

char *srv_quota_text(const srv_quota *q, srv_share share, char *out, size_t size)
{
    int64_t limit = q->all->limit[share];
    bool    bytes = share == SRV_SHARE_BODIES || share == SRV_SHARE_ANSWERS;
    snprintf(out, size, "the %.90s is over its share of this server (%s: %" PRId64 "%s); try again "
             "later", *q->key ? q->key : "address", names[share],
             bytes ? limit / (1024 * 1024) : limit, bytes ? " MiB" : "");
    return out;
}

/* ---- making them ---- */

weir_code srv_quotas_create(srv_quotas **out, const int64_t limit[SRV_SHARES], weir_error *err)
{
    srv_quotas *qs = *out = calloc(1, sizeof *qs);
    if (!qs)
        return weir_fail(err, WEIR_ENOMEM, "server: out of memory");
    qs->limit = limit;
    qs->rest.all = qs;
    pthread_mutex_init(&qs->lock, NULL);
    return WEIR_OK;
}

void srv_quotas_destroy(srv_quotas *qs)
{
    if (!qs)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        for (srv_quota *q = qs->bucket[i]; q;) {
            srv_quota *next = q->next;
            free(q);
            q = next;
        }
    pthread_mutex_destroy(&qs->lock);
    free(qs);
}
