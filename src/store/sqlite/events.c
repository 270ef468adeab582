/* events.c - the owner tells other processes what happened, over a unix socket beside the file.
 *
 * The socket listens from open() on, without a thread: a reader that has connected waits in its
 * backlog. After a commit, run() accepts the readers that wait there before it puts the events into
 * the buffers of all readers. So a reader gets the events of every commit after its connect(). A
 * thread sends. It starts with the first reader that run() finds, or when this process begins to
 * listen or to work (weir__sq_serve_start()); it accepts readers, too, so that those who have left
 * do not fill the backlog of an idle owner. A reader that does not keep up loses events and is told
 * how many, so nobody is ever waited for and a buffer has a bound. */
#include "store/sqlite/sq.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/thread.h"

enum { MAX_PEERS = 64, MAX_BEHIND = 2 * 1024 * 1024, BACKLOG = MAX_PEERS, WELCOME_MS = 50 };

typedef struct peer {
    int      fd;
    weir_buf out;
    size_t   sent;              /* of out */
    uint32_t missed;
} peer;

struct sq_server {
    char           *path;       /* of the database */
    int             listener, wake;
    atomic_bool     stop;
    atomic_size_t   n_peers;    /* changed with the lock held; read without */
    pthread_mutex_t lock;       /* guards what follows */
    pthread_t       thread;
    bool            started;    /* the thread */
    peer            peer[MAX_PEERS];
};

bool weir__sq_address(const char *path, struct sockaddr_un *out, int *dir)
{
    const char *slash = strrchr(path, '/');
    *out = (struct sockaddr_un){ .sun_family = AF_UNIX };
    *dir = -1;
    int n = snprintf(out->sun_path, sizeof out->sun_path, "%s-events", path);
    if (n > 0 && (size_t)n < sizeof out->sun_path)
        return true;
    if (!slash)
        return false;
    char *folder = strndup(path, (size_t)(slash - path) + 1);
    if (!folder)
        return false;
    *dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (*dir < 0)
        return false;
    n = snprintf(out->sun_path, sizeof out->sun_path, "/proc/self/fd/%d/%s-events", *dir,
                 slash + 1);
    if (n > 0 && (size_t)n < sizeof out->sun_path)
        return true;
    close(*dir);
    *dir = -1;
    return false;
}

/* ---- records ---- */

static void put_record(peer *p, const weir_event *e)
{
    size_t    type_len = e->type ? strlen(e->type) : 0;
    size_t    text_len = e->text ? e->text_len : 0;
    sq_record r = {
        .kind = (uint32_t)e->kind,
        .state = (uint32_t)e->state,
        .id = e->id,
        .at = e->at,
        .attempts = e->attempts,
        .progress = e->progress,
        .delivery = e->delivery,
        .missed = p->missed,
        .has = (e->type ? 1u : 0) | (e->text ? 2u : 0),
        .type_len = (uint32_t)type_len,
        .text_len = (uint32_t)text_len,
    };
    size_t size = sizeof r + type_len + text_len;
    bool   full = p->out.len - p->sent + size > MAX_BEHIND;
    if (full || !weir__buf_reserve(&p->out, size)) {
        p->out.failed = false;      /* what is in it is whole */
        p->missed++;
        return;
    }
    p->missed = 0;
    weir__buf_add(&p->out, &r, sizeof r);
    weir__buf_add(&p->out, e->type, type_len);
    weir__buf_add(&p->out, e->text, text_len);
}

static bool start_thread(sq_server *v);
static bool welcome(sq_server *v);

static void wake(sq_server *v)
{
    uint64_t one = 1;
    (void)!write(v->wake, &one, sizeof one);
}

static bool reader_waits(const sq_server *v)
{
    struct pollfd fd = { .fd = v->listener, .events = POLLIN };
    return poll(&fd, 1, 0) > 0;
}

void weir__sq_serve_events(sq_server *v, const weir_event *events, size_t n)
{
    bool waits = v && reader_waits(v);
    if (!v || (!waits && !atomic_load(&v->n_peers)))
        return;
    pthread_mutex_lock(&v->lock);
    if (waits && start_thread(v))
        for (int i = 0; i < BACKLOG && reader_waits(v) && welcome(v); i++)
            ;
    for (size_t p = 0; p < atomic_load(&v->n_peers); p++)
        for (size_t i = 0; i < n; i++)
            put_record(&v->peer[p], &events[i]);
    pthread_mutex_unlock(&v->lock);
    wake(v);
}

/* ---- readers; the lock is held in all of these ---- */

static void drop_peer(sq_server *v, size_t at)
{
    size_t n = atomic_load(&v->n_peers) - 1;
    close(v->peer[at].fd);
    weir__buf_fini(&v->peer[at].out);
    v->peer[at] = v->peer[n];
    atomic_store(&v->n_peers, n);
}

/* Send what can be sent. False: it is gone. */
static bool flush(peer *p)
{
    while (p->sent < p->out.len) {
        ssize_t n = send(p->fd, p->out.data + p->sent, p->out.len - p->sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        p->sent += (size_t)n;
    }
    bool gone = p->sent < p->out.len && errno != EAGAIN && errno != EWOULDBLOCK;
    if (p->sent == p->out.len) {
        weir__buf_clear(&p->out);
        p->sent = 0;
    } else if (p->sent > MAX_BEHIND / 2) {
        p->out.len -= p->sent;
        memmove(p->out.data, p->out.data + p->sent, p->out.len);
        p->sent = 0;
    }
    return !gone;
}

/* They have nothing to say: whatever comes is thrown away, its end noticed. One piece a round: who
 * talks without end must not keep the lock. */
static bool hear(peer *p)
{
    char    bytes[4096];
    ssize_t n = recv(p->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    return n > 0 ||
           (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

/* False: whoever is there has to wait, since the process has no descriptor left. */
static bool welcome(sq_server *v)
{
    int    fd = accept4(v->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    size_t n = atomic_load(&v->n_peers);
    if (fd < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNABORTED;
    if (n == MAX_PEERS) {
        close(fd);
        return true;
    }
    v->peer[n] = (peer){ .fd = fd };
    weir__buf_str(&v->peer[n].out, SQ_HELLO);
    atomic_store(&v->n_peers, n + 1);
    if (v->peer[n].out.failed || !flush(&v->peer[n]))
        drop_peer(v, n);
    return true;
}

/* ---- the thread ---- */

static void *serve(void *arg)
{
    sq_server    *v = arg;
    struct pollfd fds[MAX_PEERS + 2];
    while (!atomic_load(&v->stop)) {
        pthread_mutex_lock(&v->lock);
        size_t n = atomic_load(&v->n_peers);
        fds[0] = (struct pollfd){ .fd = v->wake, .events = POLLIN };
        fds[1] = (struct pollfd){ .fd = v->listener, .events = POLLIN };
        for (size_t i = 0; i < n; i++)
            fds[i + 2] = (struct pollfd){ .fd = v->peer[i].fd,
                                          .events = v->peer[i].out.len ? POLLIN | POLLOUT
                                                                       : POLLIN };
        pthread_mutex_unlock(&v->lock);
        if (poll(fds, (nfds_t)n + 2, -1) < 0)
            continue;
        uint64_t count;
        if (fds[0].revents)
            (void)!read(v->wake, &count, sizeof count);
        pthread_mutex_lock(&v->lock);
        for (size_t i = n; i-- > 0;) {
            bool ok = !(fds[i + 2].revents & (POLLIN | POLLHUP | POLLERR)) || hear(&v->peer[i]);
            if (!ok || !flush(&v->peer[i]))
                drop_peer(v, i);
        }
        bool again = fds[1].revents && !welcome(v);
        pthread_mutex_unlock(&v->lock);
        if (again)
            poll(fds, 1, WELCOME_MS);       /* or the loop would spin until it has one */
    }
    return NULL;
}

/* Start the thread, unless it runs. False: it cannot be; who waits goes on waiting. Lock held. */
static bool start_thread(sq_server *v)
{
    if (!v->started)
        v->started = !weir__thread_start(&v->thread, serve, v, "weir-events", NULL);
    return v->started;
}

/* ---- start and stop ---- */

/* The lock on the file is ours, so a socket that is there is left over. */
static int listen_at(const char *path)
{
    struct sockaddr_un at;
    int                dir;
    if (!weir__sq_address(path, &at, &dir))
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        unlink(at.sun_path);
        /* the mode of the socket is that of the file to be: nobody else can connect, ever */
        if (fchmod(fd, 0600) || bind(fd, (struct sockaddr *)&at, sizeof at) ||
            listen(fd, BACKLOG)) {
            close(fd);
            fd = -1;
        }
    }
    if (dir >= 0)
        close(dir);
    return fd;
}

static void server_free(sq_server *v)
{
    if (v->listener >= 0)
        close(v->listener);
    if (v->wake >= 0)
        close(v->wake);
    free(v->path);
    pthread_mutex_destroy(&v->lock);
    free(v);
}

void weir__sq_serve(sq_server **out, const char *path)
{
    *out = NULL;
    sq_server *v = calloc(1, sizeof *v);
    if (!v)
        return;
    pthread_mutex_init(&v->lock, NULL);
    v->path = strdup(path);
    v->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    v->listener = v->path && v->wake >= 0 ? listen_at(path) : -1;
    if (v->listener >= 0)
        *out = v;
    else
        server_free(v);
}

void weir__sq_serve_start(sq_server *v)
{
    if (!v)
        return;
    pthread_mutex_lock(&v->lock);
    start_thread(v);
    pthread_mutex_unlock(&v->lock);
}

void weir__sq_serve_stop(sq_server *v)
{
    if (!v)
        return;
    atomic_store(&v->stop, true);
    wake(v);
    if (v->started)             /* nobody starts it any more: the store is being closed */
        pthread_join(v->thread, NULL);
    struct sockaddr_un at;
    int                dir;
    if (weir__sq_address(v->path, &at, &dir)) {
        unlink(at.sun_path);
        if (dir >= 0)
            close(dir);
    }
    while (atomic_load(&v->n_peers)) {
        flush(&v->peer[0]);
        drop_peer(v, 0);
    }
    server_free(v);
}
