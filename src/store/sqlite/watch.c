/* watch.c - receives the events of the file's present owner: the source of a feed (store/feed.h),
 * for processes that work through the owner and for processes that only read. */
#include "store/sqlite/share.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "store/sqlite/outside.h"

enum {
    CHUNK = 64 * 1024,
    FIRST_LIVE_MS = 300         /* how long weir__sq_watch() waits for the owner */
};

struct sq_watch {
    const sq_store *s;
    weir_feed      *feed;       /* of who opened it */
    int             stop;       /* an eventfd */
    uint32_t        want;
    weir_place      place;      /* the thread's: what was delivered, also by the watch before */
    weir_buf        in;
};

/* ---- frames ---- */

static void deliver(sq_inbox *b, const weir_env *env)
{
    if (b->n)
        env->emit(env->ctx, b->event, b->n);
    while (b->n)
        free(b->text[--b->n]);
}

static bool add_event(sq_inbox *b, const weir_env *env, const char *bytes, size_t len)
{
    char *text = malloc(len + 2);
    if (!text)
        return false;
    if (!weir__sq_event_get(bytes, len, text, &b->number, &b->event[b->n])) {
        free(text);
        return false;
    }
    b->text[b->n++] = text;
    if (b->n == SQ_INBOX)
        deliver(b, env);
    return true;
}

bool weir__sq_digest(weir_buf *in, const weir_env *env, uint64_t *number)
{
    sq_inbox b = { .number = *number };
    sq_head  head = { 0 };
    size_t   at = 0, size;
    bool     ok = true;
    while (ok && (size = weir__sq_frame_at(in, at, &head))) {
        ok = size != SIZE_MAX;
        if (!ok)
            break;
        const char *bytes = in->data + at + sizeof head;
        bool        has_number = head.size == sizeof b.number;
        if (head.kind == SQF_EVENT) {
            ok = add_event(&b, env, bytes, head.size);
        } else if ((head.kind == SQF_LOST || head.kind == SQF_PLACE) && has_number) {
            deliver(&b, env);
            memcpy(&b.number, bytes, sizeof b.number);
            if (head.kind == SQF_LOST && env->lost)
                env->lost(env->ctx);
        } else {
            ok = false;
        }
        at += size;
    }
    deliver(&b, env);
    *number = b.number;
    if (ok) {
        in->len -= at;
        memmove(in->data, in->data + at, in->len);
    }
    return ok;
}

/* ---- a connection ---- */

/* False: it is gone. */
static bool receive_some(sq_watch *w, int fd)
{
    if (!weir__buf_reserve(&w->in, CHUNK))
        return false;
    ssize_t n = recv(fd, w->in.data + w->in.len, CHUNK, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (!n)
        return false;
    w->in.len += (size_t)n;
    return weir__sq_digest(&w->in, &w->s->env, &w->place.number);
}

static void read_on(sq_watch *w, weir_feed *f, int fd)
{
    struct pollfd fds[2] = { { .fd = fd, .events = POLLIN }, { .fd = w->stop, .events = POLLIN } };
    while (!weir__feed_stopping(f)) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return;
        if (fds[1].revents || !fds[0].revents)
            continue;
        if (!receive_some(w, fd))
            return;
        weir__feed_reached(f, &w->place);
    }
}

/* This process is the owner, and has its events from its own commits. */
static void rest(const sq_watch *w)
{
    struct pollfd fd = { .fd = w->stop, .events = POLLIN };
    while (poll(&fd, 1, -1) < 0 && errno == EINTR)
        ;
}

/* A TICK finds the next owner, or makes this process the owner. It is asked for again as long as
 * nobody is there: the connection for calls may still be open when that for events has ended. */
static void find_next_owner(const sq_store *s, weir_feed *f)
{
    if (!weir__feed_stopping(f) && !s->env.read_only && !s->env.test_clock)
        s->env.due(s->env.ctx, s->env.now(s->env.ctx));
}

static void receive(void *ctx, weir_feed *f, weir_error *why)
{
    sq_watch       *w = ctx;
    const sq_store *s = w->s;
    sq_hello        hello = { .magic = SQ_MAGIC, .purpose = SQ_FOR_EVENTS, .want = w->want,
                              .place = w->place };
    sq_welcome      welcome;
    int fd = weir__sq_dial(s->path, &hello, w->stop, SQ_WELCOME_MS, &welcome, why);
    if (atomic_load(&s->owns)) {            /* it may even be our own socket */
        if (fd >= 0)
            close(fd);
        weir__feed_live(f);
        rest(w);
        return;
    }
    if (fd < 0) {
        find_next_owner(s, f);
        return;
    }
    weir__buf_clear(&w->in);
    w->place = welcome.place;
    weir__feed_reached(f, &w->place);
    weir__feed_live(f);
    read_on(w, f, fd);
    close(fd);
    weir_fail(why, WEIR_EUNAVAIL, "%s: its owner has gone", s->path);
    find_next_owner(s, f);
}

static void wake(void *ctx)
{
    uint64_t one = 1;
    (void)!write(((sq_watch *)ctx)->stop, &one, sizeof one);
}

static const weir_feed_source source = { .thread = "weir-watch", .receive = receive, .wake = wake,
                                         .pause_ms = 2 };

/* ---- start and stop ---- */

void weir__sq_watch_stop(sq_store *s)
{
    sq_watch *w = s->watch;
    if (!w)
        return;
    weir__feed_close(w->feed);
    if (w->stop >= 0)
        close(w->stop);
    weir__buf_fini(&w->in);
    free(w);
    s->watch = NULL;
}

static void watch_more(sq_store *s, uint32_t want)
{
    uint32_t   before = s->watch ? s->watch->want : 0;
    weir_place place = { 0 };
    if (!(want & ~before) || atomic_load(&s->owns))
        return;
    if (s->watch) {                         /* it is resumed with more kinds */
        weir__feed_close(s->watch->feed);
        s->watch->feed = NULL;
        place = s->watch->place;
        weir__sq_watch_stop(s);
    }
    sq_watch *w = calloc(1, sizeof *w);
    if (!w)
        return;
    *w = (sq_watch){ .s = s, .want = before | want, .place = place,
                     .stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
    s->watch = w;
    if (w->stop < 0 || weir__feed_open(&w->feed, &source, w, 0, NULL))
        weir__sq_watch_stop(s);
    else
        weir__feed_wait(w->feed, FIRST_LIVE_MS, NULL);
}

void weir__sq_watch(sq_store *s, uint32_t want)
{
    pthread_mutex_lock(&s->watch_lock);
    watch_more(s, want);
    pthread_mutex_unlock(&s->watch_lock);
}

void weir__sq_watch_until(sq_store *s, const weir_place *place)
{
    pthread_mutex_lock(&s->watch_lock);
    weir__feed_until(s->watch ? s->watch->feed : NULL, place);
    pthread_mutex_unlock(&s->watch_lock);
}
