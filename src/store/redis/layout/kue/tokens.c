/* tokens.c - idle workers beside Vert.x Kue. It publishes nothing in Redis when it queues a job,
 * but puts a token on the list of its type. So if a take found too few jobs of a type, a thread
 * with a connection of its own waits at that type's list. It then makes a TICK look for the job.
 *
 * It waits with BLMOVE, from the list to the same list: no token is lost, whatever dies when. When
 * a token was seen, the next take that finds too little starts the waiting again. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"
#include "store/redis/engine/engine.h"
#include "store/redis/link/net.h"

enum {
    MAX_WATCHES = 64,           /* types; jobs of others are found once a second */
    BLOCK_S     = 10            /* then it asks again, so that a server that is gone is noticed */
};

struct redis_watch {
    redis_net    net;           /* the thread's, and what follows */
    redis_store *top;
    uint32_t     slot;
    bool         asked;         /* an answer is to come */
    bool         seen;          /* a token was; that a TICK is to look is being noted */
    atomic_bool  armed, stop;
    pthread_t    thread;
    bool         running;
    redis_watch *next;
    char         type[WEIR_MAX_TYPE + 1];
};

/* ---- the thread ---- */

static void send_command(redis_watch *w, redis_node *n, int argc, const char *const *argv,
                         int64_t timeout_ms)
{
    size_t len = 64;
    for (int i = 0; i < argc; i++)
        len += strlen(argv[i]) + 32;
    if (!weir__node_room(n, len)) {
        weir__node_disconnect(n, WEIR_ENOMEM, "no memory to wait for tokens");
        return;
    }
    weir__resp_array(&n->out, (size_t)argc);
    for (int i = 0; i < argc; i++)
        weir__resp_text(&n->out, argv[i]);
    w->asked = true;
    weir__node_await(n, timeout_ms);
    weir__node_flush(n);
}

static void wait_for_token(redis_watch *w)
{
    redis_node *n = w->asked || !atomic_load(&w->armed) ? NULL
                                                        : weir__net_owner(&w->net, w->slot);
    char        key[WEIR_REDIS_MAX_PREFIX + WEIR_MAX_TYPE + 8], seconds[8];
    if (!n)
        return;
    if (n->state != NODE_READY) {
        n->wanted = true;
        return;
    }
    snprintf(key, sizeof key, "%s:%s:jobs", w->net.url.prefix, w->type);
    snprintf(seconds, sizeof seconds, "%d", BLOCK_S);
    const char *argv[] = { "BLMOVE", key, key, "LEFT", "LEFT", seconds };
    send_command(w, n, 6, argv, w->net.url.timeout_ms + BLOCK_S * 1000);
}

/* The next TICK looks for jobs without an event, and not only once a second. */
static void note_seen(redis_watch *w, redis_node *n)
{
    char key[WEIR_REDIS_MAX_PREFIX + 32];
    snprintf(key, sizeof key, "%s%s", w->net.url.prefix, w->top->layout->meta);
    const char *argv[] = { "HDEL", key, "house" };
    atomic_store(&w->armed, false);
    w->seen = true;
    send_command(w, n, 3, argv, w->net.url.timeout_ms);
}

static void on_reply(void *ctx, redis_node *n, redisReply *r)
{
    redis_watch *w = ctx;
    bool         noted = w->seen;
    w->asked = w->seen = false;
    n->timeout_ms = 0;
    n->pause_ms = 0;
    if (r->type == REDIS_REPLY_ERROR)
        weir__node_disconnect(n, WEIR_EUNAVAIL, "%s", r->str);
    else if (noted)
        weir__due_announce(w->top, INT64_MIN);
    else if (r->type == REDIS_REPLY_STRING)
        note_seen(w, n);
    freeReplyObject(r);
}

static void on_ready(void *ctx, redis_node *n)
{
    (void)ctx;
    (void)n;
}

/* Whether there was a token is not known: a take will ask again, or the TICK of each second. */
static void on_lost(void *ctx, redis_node *n)
{
    redis_watch *w = ctx;
    (void)n;
    w->asked = w->seen = false;
}

static void on_found(void *ctx)
{
    (void)ctx;
}

static const redis_net_ops watch_ops = {
    .ready = on_ready,
    .reply = on_reply,
    .lost = on_lost,
    .found = on_found,
};

static void *watch(void *arg)
{
    redis_watch *w = arg;
    eventfd_t    n;
    while (!atomic_load(&w->stop)) {
        eventfd_read(w->net.wake_fd, &n);
        wait_for_token(w);
        weir__net_turn(&w->net, weir__net_poll_sentinels(&w->net));
    }
    return NULL;
}

/* ---- from outside ---- */

static void destroy(redis_watch *w)
{
    if (w->running) {
        atomic_store(&w->stop, true);
        eventfd_write(w->net.wake_fd, 1);
        pthread_join(w->thread, NULL);
    }
    if (w->net.wake_fd >= 0)
        close(w->net.wake_fd);
    weir__net_fini(&w->net);
    free(w);
}

static redis_watch *create(redis_store *s, const char *type)
{
    redis_watch *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->top = s;
    w->slot = s->part[0].slot;
    snprintf(w->type, sizeof w->type, "%s", type);
    bool ready = !weir__net_init(&w->net, &s->url, &watch_ops, w, NULL);
    w->net.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ready && w->net.wake_fd >= 0)
        w->running = !weir__thread_start(&w->thread, watch, w, "weir-tokens", NULL);
    if (w->running)
        return w;
    destroy(w);
    return NULL;
}

/* The watch of a type; NULL: no such entry, and no room for one. Lock held. */
static redis_watch *find(redis_store *s, const char *type)
{
    for (redis_watch *w = s->tokens.first; w; w = w->next) {
        if (!strcmp(w->type, type))
            return w;
    }
    redis_watch *w = s->tokens.n < MAX_WATCHES ? create(s, type) : NULL;
    if (w) {
        w->next = s->tokens.first;
        s->tokens.first = w;
        s->tokens.n++;
    }
    return w;
}

void weir__tokens_watch(redis_store *s, const char *const *types, size_t n)
{
    if (s->layout != &weir__layout_vertx || s->env.test_clock)
        return;
    pthread_mutex_lock(&s->tokens.lock);
    for (size_t i = 0; i < n; i++) {
        redis_watch *w = find(s, types[i]);
        if (w && !atomic_exchange(&w->armed, true))
            eventfd_write(w->net.wake_fd, 1);
    }
    pthread_mutex_unlock(&s->tokens.lock);
}

void weir__tokens_close(redis_store *s)
{
    while (s->tokens.first) {
        redis_watch *w = s->tokens.first;
        s->tokens.first = w->next;
        destroy(w);
    }
    pthread_mutex_destroy(&s->tokens.lock);
}
