/* member.c - this process exchanges envelopes with the others that use the queue: by pub/sub, over
 * connections of its own. Envelopes to all go to the channel PREFIX:bus, those to one process to
 * PREFIX:bus:PROCESS. A thread publishes what was posted, so that post() never waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/thread.h"
#include "store/redis/engine/engine.h"

enum {
    AT_ONCE = 64,                           /* envelopes in one pipeline */
    MAX_UNSENT = 64 * 1024 * 1024,          /* bytes that wait to be published */
    CHANNEL = WEIR_REDIS_MAX_PREFIX + 8 + WEIR_PROCESS
};

typedef struct posted {
    weir_link  link;
    redis_call call;                        /* PUBLISH or SPUBLISH */
    size_t     size;
    bool       count;
    char       to[WEIR_PROCESS];            /* "": to all */
} posted;

struct redis_member {
    weir_member       is;
    const char       *prefix;
    bool              sharded;              /* a cluster: SPUBLISH, by slot */
    char              all[CHANNEL], own[CHANNEL];
    redis_subscriber *subscriber;
    redis_link       *link;                 /* the thread's */
    pthread_t         thread;
    bool              started;
    pthread_mutex_t   lock;                 /* guards what follows */
    pthread_cond_t    changed;
    weir_dlist        posted;
    size_t            bytes;
    bool              stop;
};

/* ---- posting ---- */

static void free_posted(posted *p)
{
    weir__call_fini(&p->call);
    free(p);
}

static posted *make_posted(const redis_member *m, const weir_envelope *e)
{
    char    name[CHANNEL];
    posted *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    if (e->to)
        snprintf(p->to, sizeof p->to, "%s", e->to);
    if (e->to)
        snprintf(name, sizeof name, "%s:bus:%s", m->prefix, p->to);
    else
        snprintf(name, sizeof name, "%s", m->all);
    p->size = e->len;
    p->count = e->count;
    p->call.slot = weir__redis_slot(name, strlen(name));
    weir__resp_array(&p->call.command, 3);
    weir__resp_text(&p->call.command, m->sharded ? "SPUBLISH" : "PUBLISH");
    weir__resp_text(&p->call.command, name);
    weir__resp_bytes(&p->call.command, e->bytes, e->len);
    if (!p->call.command.failed)
        return p;
    free_posted(p);
    return NULL;
}

weir_code weir__redis_post(weir_store *base, const weir_envelope *e, weir_error *err)
{
    redis_member *m = ((redis_store *)base)->member;
    posted       *p = make_posted(m, e);
    if (!p)
        return weir_fail(err, WEIR_ENOMEM, "bus: out of memory");
    pthread_mutex_lock(&m->lock);
    bool room = m->bytes <= MAX_UNSENT;
    if (room) {
        if (!m->posted.first)
            pthread_cond_signal(&m->changed);
        weir__list_append(&m->posted, &p->link);
        m->bytes += p->size;
    }
    pthread_mutex_unlock(&m->lock);
    if (room)
        return WEIR_OK;
    free_posted(p);
    return weir_fail(err, WEIR_EFULL, "bus: %d bytes wait to be sent to Redis", MAX_UNSENT);
}

/* ---- the thread ---- */

/* Wait for envelopes; 0: the end. */
static size_t take_posted(redis_member *m, posted **out)
{
    size_t n = 0;
    pthread_mutex_lock(&m->lock);
    while (!m->posted.first && !m->stop)
        pthread_cond_wait(&m->changed, &m->lock);
    while (n < AT_ONCE && m->posted.first) {
        posted *p = out[n++] = WEIR_OF(m->posted.first, posted, link);
        weir__list_remove(&m->posted, &p->link);
        m->bytes -= p->size;
    }
    pthread_mutex_unlock(&m->lock);
    return n;
}

/* Redis says how many subscribers the channel has: none, and the process is gone. */
static void look_at_reply(redis_member *m, const posted *p)
{
    const redisReply *r = p->call.reply;
    if (p->call.err.code || !r || r->type != REDIS_REPLY_INTEGER)
        return;
    if (*p->to && !r->integer)
        m->is.gone(m->is.ctx, p->to);
    if (p->count)
        m->is.reached(m->is.ctx, r->integer > 0 ? (size_t)r->integer - 1 : 0);
}

static bool is_stopping(redis_member *m)
{
    pthread_mutex_lock(&m->lock);
    bool stop = m->stop;
    pthread_mutex_unlock(&m->lock);
    return stop;
}

static void *publish(void *arg)
{
    redis_member *m = arg;
    posted       *some[AT_ONCE];
    redis_call   *calls[AT_ONCE];
    bool          failed = false;
    for (size_t n; (n = take_posted(m, some));) {
        for (size_t i = 0; i < n; i++)
            calls[i] = &some[i]->call;
        if (!failed || !is_stopping(m))     /* the end does not wait for a Redis that is gone */
            weir__link_run(m->link, calls, n);
        for (size_t i = 0; i < n; i++) {
            failed = some[i]->call.err.code;
            look_at_reply(m, some[i]);
            free_posted(some[i]);
        }
    }
    return NULL;
}

/* ---- what comes ---- */

static void on_message(void *ctx, size_t channel, const char *message, size_t len)
{
    redis_member *m = ctx;
    (void)channel;
    m->is.arrived(m->is.ctx, message, len);
}

static void on_lost(void *ctx, size_t channel)
{
    redis_member *m = ctx;
    (void)channel;
    m->is.lost(m->is.ctx);
}

/* ---- joining and leaving ---- */

void weir__redis_leave(weir_store *base)
{
    redis_store  *s = (redis_store *)base;
    redis_member *m = s->member;
    if (!m)
        return;
    weir__subscriber_close(m->subscriber);
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_cond_signal(&m->changed);
    pthread_mutex_unlock(&m->lock);
    if (m->started)
        pthread_join(m->thread, NULL);
    WEIR_EACH(posted, p, &m->posted, link)
        free_posted(p);
    weir__link_close(m->link);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    free(m);
    s->member = NULL;
}

weir_code weir__redis_join(weir_store *base, const weir_member *is, weir_error *err)
{
    redis_store  *s = (redis_store *)base;
    redis_member *m = s->member = calloc(1, sizeof *m);
    if (!m)
        return weir_fail(err, WEIR_ENOMEM, "bus: out of memory");
    m->is = *is;
    m->prefix = s->url.prefix;
    m->sharded = s->url.way == REDIS_CLUSTER;
    snprintf(m->all, sizeof m->all, "%s:bus", m->prefix);
    snprintf(m->own, sizeof m->own, "%s:bus:%s", m->prefix, is->process);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    weir_code rc = weir__link_create(&m->link, &s->url, err);
    if (!rc)
        rc = weir__thread_start(&m->thread, publish, m, "weir-publish", err);
    m->started = !rc;
    redis_channel channels[] = { { m->all, m->sharded }, { m->own, m->sharded } };
    if (!rc)
        rc = weir__subscriber_open(&m->subscriber, &s->url, channels, 2, on_message, on_lost, m,
                                   err);
    if (rc)
        weir__redis_leave(base);
    return rc;
}
