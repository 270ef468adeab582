/* exchange.c - the owner of a file passes on the envelopes of the processes that have joined: see
 * share.h. The exchange has a thread of its own, so that envelopes do not wait for commits.
 *
 * A process that does not read its envelopes as fast as they come loses some beyond MAX_UNSENT, and
 * gets a LOST frame; nobody waits for it. The end of its connection says that it is gone. */
#include "store/sqlite/share.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "base/named.h"
#include "base/thread.h"

enum {
    AT_ONCE = 64,                           /* connections looked at in one round */
    CHUNK = 64 * 1024,                      /* bytes read at a time */
    KEPT_ROOM = 1024 * 1024,                /* bytes of a connection's memory that is kept */
    MAX_UNSENT = 64 * 1024 * 1024           /* bytes */
};

/* The connection of a member. */
typedef struct seat {
    weir_named named;                       /* by process */
    weir_link  link;
    int        fd;
    char       process[WEIR_PROCESS];
    bool       own;                         /* a member of this very process */
    weir_buf   in, out;
    size_t     sent;                        /* of out */
    bool       blocked;                     /* epoll says when more can be sent */
    bool       lossy;                       /* envelopes were dropped, and LOST was not sent */
    bool       gone;
} seat;

struct sq_exchange {
    int             epoll, wake;
    pthread_t       thread;
    bool            started;
    atomic_bool     stop;
    pthread_mutex_t lock;                   /* guards what follows */
    weir_dlist      newcomers;              /* of seats */

    weir_dlist      seats;                  /* the thread's, as what follows */
    weir_names      by_process;
};

/* ---- sending ---- */

static void watch_for(sq_exchange *x, seat *s, bool blocked)
{
    struct epoll_event e = { .events = EPOLLIN | (blocked ? EPOLLOUT : 0), .data.ptr = s };
    if (blocked != s->blocked && epoll_ctl(x->epoll, EPOLL_CTL_MOD, s->fd, &e))
        s->gone = true;
    s->blocked = blocked;
}

static void flush(sq_exchange *x, seat *s)
{
    s->gone = s->gone || s->out.failed;
    while (!s->gone && s->sent < s->out.len) {
        ssize_t n = send(s->fd, s->out.data + s->sent, s->out.len - s->sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n < 0 && errno != EINTR)
            s->gone = true;
        s->sent += n > 0 ? (size_t)n : 0;
    }
    if (s->sent == s->out.len) {
        if (s->out.cap > KEPT_ROOM)
            weir__buf_fini(&s->out);
        weir__buf_clear(&s->out);
        s->sent = 0;
    }
    watch_for(x, s, s->sent < s->out.len);
}

static void put_frame(seat *s, sq_frame kind, const void *bytes, size_t len)
{
    if (s->out.len - s->sent + len > MAX_UNSENT && s->out.len > s->sent) {
        s->lossy = true;
        return;
    }
    if (s->lossy)
        weir__sq_frame_put(&s->out, SQF_LOST, &(uint64_t){ 0 }, sizeof(uint64_t));
    s->lossy = false;
    weir__sq_frame_put(&s->out, kind, bytes, len);
}

static void put_to_others(sq_exchange *x, const seat *from, sq_frame kind, const void *bytes,
                          size_t len)
{
    WEIR_EACH(seat, s, &x->seats, link)
        if (s != from && !s->gone)
            put_frame(s, kind, bytes, len);
}

/* ---- what comes ---- */

static void route(sq_exchange *x, seat *from, const char *bytes, size_t len)
{
    sq_route r;
    char     to[WEIR_PROCESS] = "";
    memcpy(&r, bytes, sizeof r);
    memcpy(to, r.to, sizeof r.to);
    if (*to) {
        seat *s = weir__names_get(&x->by_process, to);
        if (s && !s->gone)
            put_frame(s, SQF_ENVELOPE, bytes, len);
        else
            put_frame(from, SQF_GONE, r.to, sizeof r.to);
        return;
    }
    put_to_others(x, from, SQF_ENVELOPE, bytes, len);
    if (r.count) {
        uint64_t others = x->by_process.n - 1;
        put_frame(from, SQF_REACHED, &others, sizeof others);
    }
}

static void take_frames(sq_exchange *x, seat *s)
{
    sq_head head = { 0 };
    size_t  at = 0, size;
    while ((size = weir__sq_frame_at(&s->in, at, &head))) {
        if (size == SIZE_MAX || head.kind != SQF_ENVELOPE || head.size < sizeof(sq_route)) {
            s->gone = true;
            return;
        }
        route(x, s, s->in.data + at + sizeof head, head.size);
        at += size;
    }
    if (s->in.len - at >= sizeof head && head.size > sizeof(sq_route) + WEIR_MAX_ENVELOPE)
        s->gone = true;
    s->in.len -= at;
    memmove(s->in.data, s->in.data + at, s->in.len);
    if (!s->in.len && s->in.cap > KEPT_ROOM)
        weir__buf_fini(&s->in);
}

static void receive(sq_exchange *x, seat *s)
{
    ssize_t n = -1;
    if (!weir__buf_reserve(&s->in, CHUNK)) {
        s->gone = true;
        return;
    }
    do
        n = recv(s->fd, s->in.data + s->in.len, CHUNK, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (!n || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK))
        s->gone = true;
    if (n <= 0)
        return;
    s->in.len += (size_t)n;
    take_frames(x, s);
}

/* ---- connections ---- */

static void free_seat(seat *s)
{
    close(s->fd);
    weir__buf_fini(&s->in);
    weir__buf_fini(&s->out);
    free(s);
}

/* A process that is connected to this one receives the members that end with it. */
static void introduce(sq_exchange *x, seat *s)
{
    if (s->own)
        put_to_others(x, s, SQF_OWNER, s->process, WEIR_PROCESS - 1);
    WEIR_EACH(seat, other, &x->seats, link)
        if (other->own && other != s)
            put_frame(s, SQF_OWNER, other->process, WEIR_PROCESS - 1);
}

static void seat_newcomers(sq_exchange *x)
{
    pthread_mutex_lock(&x->lock);
    weir_dlist some = x->newcomers;
    x->newcomers = (weir_dlist){ 0 };
    pthread_mutex_unlock(&x->lock);
    WEIR_EACH(seat, s, &some, link) {
        struct epoll_event e = { .events = EPOLLIN, .data.ptr = s };
        seat              *before = weir__names_get(&x->by_process, s->process);
        s->link = (weir_link){ 0 };
        if (before || epoll_ctl(x->epoll, EPOLL_CTL_ADD, s->fd, &e)) {
            free_seat(s);                   /* it connects again when its old one is gone */
            continue;
        }
        if (!weir__names_put(&x->by_process, &s->named, s->process)) {
            free_seat(s);
            continue;
        }
        weir__list_append(&x->seats, &s->link);
        introduce(x, s);
    }
}

static void close_gone(sq_exchange *x)
{
    WEIR_EACH(seat, s, &x->seats, link) {
        if (!s->gone)
            continue;
        weir__list_remove(&x->seats, &s->link);
        weir__names_remove(&x->by_process, &s->named);
        put_to_others(x, NULL, SQF_GONE, s->process, WEIR_PROCESS - 1);
        epoll_ctl(x->epoll, EPOLL_CTL_DEL, s->fd, NULL);    /* a child may have the socket open */
        free_seat(s);
    }
}

static void flush_all(sq_exchange *x)
{
    WEIR_EACH(seat, s, &x->seats, link)
        if (!s->gone && !s->blocked && s->out.len > s->sent)
            flush(x, s);
}

static void *exchange_main(void *arg)
{
    sq_exchange       *x = arg;
    struct epoll_event got[AT_ONCE];
    while (!atomic_load(&x->stop)) {
        int n = epoll_wait(x->epoll, got, AT_ONCE, -1);
        for (int i = 0; i < n; i++) {
            seat    *s = got[i].data.ptr;
            uint64_t count;
            if (!s) {
                (void)!read(x->wake, &count, sizeof count);
                seat_newcomers(x);
                continue;
            }
            if (got[i].events & EPOLLOUT)
                flush(x, s);
            if (got[i].events & ~(uint32_t)EPOLLOUT)
                receive(x, s);
        }
        close_gone(x);
        flush_all(x);
    }
    return NULL;
}

/* ---- start and stop ---- */

sq_exchange *weir__sq_exchange_create(void)
{
    sq_exchange       *x = calloc(1, sizeof *x);
    struct epoll_event e = { .events = EPOLLIN };
    if (!x)
        return NULL;
    pthread_mutex_init(&x->lock, NULL);
    x->epoll = epoll_create1(EPOLL_CLOEXEC);
    x->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    x->started = x->epoll >= 0 && x->wake >= 0 &&
                 !epoll_ctl(x->epoll, EPOLL_CTL_ADD, x->wake, &e) &&
                 !weir__thread_start(&x->thread, exchange_main, x, "weir-exchange", NULL);
    if (x->started)
        return x;
    weir__sq_exchange_destroy(x);
    return NULL;
}

static bool is_own(int fd)
{
    struct ucred who;
    socklen_t    len = sizeof who;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) && who.pid == getpid();
}

bool weir__sq_exchange_add(sq_exchange *x, int fd, const char *process)
{
    uint64_t one = 1;
    seat    *s = x ? calloc(1, sizeof *s) : NULL;
    if (!s)
        return false;
    s->fd = fd;
    s->own = is_own(fd);
    memcpy(s->process, process, sizeof s->process);
    pthread_mutex_lock(&x->lock);
    weir__list_append(&x->newcomers, &s->link);
    pthread_mutex_unlock(&x->lock);
    (void)!write(x->wake, &one, sizeof one);
    return true;
}

void weir__sq_exchange_destroy(sq_exchange *x)
{
    uint64_t one = 1;
    if (!x)
        return;
    atomic_store(&x->stop, true);
    if (x->started) {
        (void)!write(x->wake, &one, sizeof one);
        pthread_join(x->thread, NULL);
    }
    WEIR_EACH(seat, s, &x->seats, link)
        free_seat(s);
    WEIR_EACH(seat, s, &x->newcomers, link)
        free_seat(s);
    weir__names_fini(&x->by_process);
    if (x->wake >= 0)
        close(x->wake);
    if (x->epoll >= 0)
        close(x->epoll);
    pthread_mutex_destroy(&x->lock);
    free(x);
}
