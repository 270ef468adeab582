/* serve.c - the owner of a file serves the other processes: see share.h and frame.h.
 *
 * One thread. In a round it reads the requests of all connections, runs all operations together,
 * and answers. env->run() gives them one commit with the operations of this process. Later requests
 * are the next round, which waits a short time for the processes that were answered in the last
 * rounds.
 *
 * The socket listens from open() on, without the thread: who has connected waits in its backlog.
 * The thread starts when the queue is open (weir__sq_serve_start()), not before: it runs
 * operations by the queue. If a commit before that finds somebody waiting, its events are kept for
 * them. Events are written once, into a ring (base/ring.h). From there the thread sends each
 * connection the kinds that it asked for. A connection that does not keep up loses events and gets
 * a LOST frame; nobody waits for it. */
#include "store/sqlite/share.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/list.h"
#include "base/ring.h"
#include "base/thread.h"
#include "op/batch.h"

enum {
    SELF_CHANGES = IN_MOVE_SELF | IN_DELETE_SELF | IN_ATTRIB | IN_CLOSE_WRITE,
    BACKLOG = 256,
    AT_ONCE = 64,                           /* connections looked at in one round */
    CHUNK = 64 * 1024,                      /* bytes read at a time */
    KEPT_ROOM = 1024 * 1024,                /* bytes of a connection's memory that is kept */
    MAX_UNSENT = 256 * 1024,                /* bytes; a connection that has more gets no events */
    RING_EVENTS = 16384,
    RING_BYTES = 16 * 1024 * 1024,
    LAST_MS = 200,                          /* to send the last events before the end */
    ACTIVE_ROUNDS = 2,                      /* without a request, and a connection counts as idle */
    GATHER_PART = 4,                        /* of a round's time: see gather() */
    LONGEST_ROUND_NS = 1000000,             /* ... which counts as no more than this */
    MOVED_MS = 20                           /* after the file was moved: file.c does not look at it
                                               again at once */
};

/* An event as it is sent. */
typedef struct news {
    weir_ring_entry entry;                  /* first */
    weir_event_kind kind;
    size_t          len;
    char            bytes[];
} news;

typedef struct connection {
    weir_link link;
    int       fd;
    weir_buf  in, out;
    size_t    sent;                         /* of out */
    sq_purpose purpose;                     /* 0: no HELLO yet */
    uint32_t  want;
    uint64_t  at;                           /* it has the events up to this number */
    uint64_t  asked;                        /* the round of its last request; 0: none yet */
    bool      blocked;                      /* epoll says when more can be sent */
    bool      gone;
    bool      early;                        /* it waited before there was a thread */
} connection;

typedef struct request {
    connection *c;
    size_t      size;                       /* of its frame */
    weir_batch  batch;
} request;

struct sq_server {
    char           *path;                   /* of the database */
    const weir_env *env;
    weir_durability durability;
    atomic_bool    *used;                   /* set when a process connects */
    char            run[17];
    int             listener, wake, epoll;
    int             moves;                  /* an inotify: the file was moved, deleted,
                                               linked or written over */
    atomic_bool     stop, woken;
    atomic_uint     peers;                  /* connections for calls */
    atomic_uint     wanted;                 /* kinds of events that some connection asked for */
    pthread_mutex_t lock;                   /* guards what follows */
    weir_ring       ring;
    pthread_t       thread;
    atomic_bool     started;                /* the thread; set with the lock */

    weir_dlist      connections;            /* the thread's, as all that follows */
    size_t          n;
    request         round[AT_ONCE];
    size_t          n_round;
    uint64_t        rounds;                 /* so far, with this one */
    int64_t         took_ns;                /* the last round */
    weir_op       **ops;                    /* of the round */
    size_t          cap_ops;
    sq_exchange    *exchange;               /* NULL: nobody has joined yet */
};

/* ---- events ---- */

static void wake(sq_server *v)
{
    uint64_t one = 1;
    if (!atomic_exchange(&v->woken, true))
        (void)!write(v->wake, &one, sizeof one);
}

static bool somebody_waits(const sq_server *v)
{
    struct pollfd fd = { .fd = v->listener, .events = POLLIN };
    return poll(&fd, 1, 0) > 0;
}

/* Lock held. */
static void push_event(sq_server *v, weir_buf *text, const weir_event *e)
{
    weir__buf_clear(text);
    weir__sq_event_put(text, v->ring.last + 1, e);
    news *n = text->failed ? NULL : malloc(sizeof *n + text->len);
    if (!n) {
        weir__ring_gap(&v->ring);
        return;
    }
    *n = (news){ .entry = { .refs = 1, .size = text->len }, .kind = e->kind, .len = text->len };
    memcpy(n->bytes, text->data, text->len);
    weir__ring_push(&v->ring, &n->entry);
}

void weir__sq_serve_events(sq_server *v, const weir_event *events, size_t n)
{
    if (!v)
        return;
    uint32_t wanted = atomic_load(&v->wanted);
    bool     newcomer = !atomic_load(&v->started) && somebody_waits(v);
    if (!wanted && !newcomer)
        return;
    weir_buf text = { 0 };
    pthread_mutex_lock(&v->lock);
    if (newcomer) {
        wanted = UINT32_MAX;            /* the kinds that it asks for are unknown yet */
        if (!v->ring.slot)
            weir__ring_begin(&v->ring, RING_EVENTS, RING_BYTES);
    }
    for (size_t i = 0; i < n && v->ring.slot; i++)
        if (wanted & WEIR_BIT(events[i].kind))
            push_event(v, &text, &events[i]);
    pthread_mutex_unlock(&v->lock);
    weir__buf_fini(&text);
    wake(v);
}

/* ---- connections ---- */

static void set_wanted(sq_server *v)
{
    uint32_t wanted = 0;
    WEIR_EACH(connection, c, &v->connections, link)
        wanted |= c->gone ? 0 : c->want;
    atomic_store(&v->wanted, wanted);
}

static void close_connection(sq_server *v, connection *c)
{
    weir__list_remove(&v->connections, &c->link);
    v->n--;
    if (c->purpose == SQ_FOR_CALLS)
        atomic_fetch_sub(&v->peers, 1);
    /* A child between fork() and exec() still has the socket open: close() alone would leave it
     * in the epoll set. */
    if (c->fd >= 0) {
        epoll_ctl(v->epoll, EPOLL_CTL_DEL, c->fd, NULL);
        close(c->fd);
    }
    weir__buf_fini(&c->in);
    weir__buf_fini(&c->out);
    free(c);
}

static void close_gone(sq_server *v)
{
    bool some = false;
    WEIR_EACH(connection, c, &v->connections, link)
        if (c->gone) {
            close_connection(v, c);
            some = true;
        }
    if (some)
        set_wanted(v);
}

static void watch_for(sq_server *v, connection *c, bool blocked)
{
    struct epoll_event e = { .events = EPOLLIN | (blocked ? EPOLLOUT : 0), .data.ptr = c };
    if (blocked != c->blocked && epoll_ctl(v->epoll, EPOLL_CTL_MOD, c->fd, &e))
        c->gone = true;
    c->blocked = blocked;
}

/* Send what can be sent. */
static void flush(sq_server *v, connection *c)
{
    if (c->out.failed)
        c->gone = true;
    while (!c->gone && c->sent < c->out.len) {
        ssize_t n = send(c->fd, c->out.data + c->sent, c->out.len - c->sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n < 0)
            c->gone = true;
        else
            c->sent += (size_t)n;
    }
    if (c->sent == c->out.len) {
        if (c->out.cap > KEPT_ROOM)
            weir__buf_fini(&c->out);
        weir__buf_clear(&c->out);
        c->sent = 0;
    }
    watch_for(v, c, c->sent < c->out.len);
}

/* Send it the events that it asked for and does not have. */
static void send_events(sq_server *v, connection *c)
{
    weir_ring_entry *some[AT_ONCE];
    bool             gone = false;
    size_t           n = 1;
    while (n && !c->gone && c->out.len - c->sent < MAX_UNSENT) {
        pthread_mutex_lock(&v->lock);
        n = weir__ring_read(&v->ring, c->at, some, AT_ONCE, MAX_UNSENT, &gone);
        if (gone)
            c->at = v->ring.last;
        pthread_mutex_unlock(&v->lock);
        if (gone)
            weir__sq_frame_put(&c->out, SQF_LOST, &c->at, sizeof c->at);
        for (size_t i = 0; i < n; i++) {
            const news *e = (const news *)some[i];
            bool        wanted = c->want & WEIR_BIT(e->kind);
            c->at = e->entry.number;
            if (wanted)
                weir__buf_add(&c->out, e->bytes, e->len);
            else if (i + 1 == n)
                weir__sq_frame_put(&c->out, SQF_PLACE, &c->at, sizeof c->at);
            weir__ring_unref(some[i]);
        }
        flush(v, c);
    }
}

/* There are as many as can be. It is said at once: the other side would wait for its welcome. */
static void turn_away(int fd)
{
    static const char why[] = "its owner has too many connections";
    weir_buf          out = { 0 };
    weir__sq_frame_put(&out, SQF_REFUSED, why, sizeof why - 1);
    if (!out.failed)
        (void)!send(fd, out.data, out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    weir__buf_fini(&out);
}

static void accept_all(sq_server *v, bool early)
{
    int fd;
    while ((fd = accept4(v->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        bool        admitted = weir__sq_admits(fd), full = v->n >= SQ_MAX_CONNECTIONS;
        connection *c = admitted && !full ? calloc(1, sizeof *c) : NULL;
        if (admitted && full)
            turn_away(fd);
        struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };
        if (!c || epoll_ctl(v->epoll, EPOLL_CTL_ADD, fd, &e)) {
            free(c);
            close(fd);
            continue;
        }
        c->fd = fd;
        c->early = early;
        weir__list_append(&v->connections, &c->link);
        v->n++;
        atomic_store(v->used, true);
    }
}

/* ---- what comes ---- */

static void refuse(connection *c, const char *why)
{
    weir__sq_frame_put(&c->out, SQF_REFUSED, why, strlen(why));
}

/* A connection that waited before this process had a thread gets what was committed since then. */
static void set_place(sq_server *v, connection *c, const sq_hello *hello)
{
    pthread_mutex_lock(&v->lock);
    if (!v->ring.slot)
        weir__ring_begin(&v->ring, RING_EVENTS, RING_BYTES);
    bool known = !strcmp(hello->place.run, v->run) && hello->place.number <= v->ring.last;
    c->at = known ? hello->place.number : c->early ? v->ring.first - 1 : v->ring.last;
    pthread_mutex_unlock(&v->lock);
    if (!known && *hello->place.run)
        weir__sq_frame_put(&c->out, SQF_LOST, &c->at, sizeof c->at);
}

/* The rest of this connection is the exchange's. */
static void hand_over(sq_server *v, connection *c, const char *process)
{
    flush(v, c);
    if (!v->exchange)
        v->exchange = weir__sq_exchange_create();
    if (!c->gone && !c->blocked) {
        epoll_ctl(v->epoll, EPOLL_CTL_DEL, c->fd, NULL);
        if (weir__sq_exchange_add(v->exchange, c->fd, process))
            c->fd = -1;
    }
    c->gone = true;
}

static void welcome_client(sq_server *v, connection *c, const char *bytes, size_t len)
{
    sq_hello hello;
    sq_welcome welcome = { .magic = SQ_MAGIC, .durability = v->durability,
                           .pid = (uint32_t)getpid() };
    memcpy(welcome.place.run, v->run, sizeof v->run);
    if (!weir__sq_hello_get(bytes, len, &hello)) {      /* it sees that the version is another */
        weir__sq_frame_put(&c->out, SQF_WELCOME, &welcome, sizeof welcome);
        flush(v, c);
        c->gone = true;
        return;
    }
    c->purpose = hello.purpose;
    if (c->purpose == SQ_FOR_CALLS)
        atomic_fetch_add(&v->peers, 1);
    if (hello.purpose == SQ_FOR_EVENTS) {
        c->want = hello.want;
        atomic_fetch_or(&v->wanted, c->want);
        size_t place = c->out.len;
        weir__sq_frame_put(&c->out, SQF_WELCOME, &welcome, sizeof welcome);
        set_place(v, c, &hello);
        welcome.place.number = c->at;
        if (!c->out.failed)
            memcpy(c->out.data + place + sizeof(sq_head), &welcome, sizeof welcome);
    } else if (hello.purpose == SQ_FOR_ENVELOPES) {
        weir__sq_frame_put(&c->out, SQF_WELCOME, &welcome, sizeof welcome);
        hand_over(v, c, hello.process);
    } else if (v->env->run) {
        weir__sq_frame_put(&c->out, SQF_WELCOME, &welcome, sizeof welcome);
    } else {
        refuse(c, "its owner serves no other processes");
    }
}

/* Read what is there. */
static void receive(connection *c)
{
    ssize_t n;
    do {
        if (!weir__buf_reserve(&c->in, CHUNK)) {
            c->gone = true;
            return;
        }
        n = recv(c->fd, c->in.data + c->in.len, CHUNK, MSG_DONTWAIT);
        c->in.len += n > 0 ? (size_t)n : 0;
    } while (n == CHUNK || (n < 0 && errno == EINTR));
    if (!n || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK))
        c->gone = true;
}

static void drop_input(connection *c, size_t n)
{
    c->in.len -= n;
    memmove(c->in.data, c->in.data + n, c->in.len);
    if (!c->in.len && c->in.cap > KEPT_ROOM)
        weir__buf_fini(&c->in);
}

/* Look at the frame that begins what it sent. A request waits for the round: it stays in c->in. */
static void take_frame(sq_server *v, connection *c)
{
    sq_head head = { 0 };
    size_t  size = weir__sq_frame_at(&c->in, 0, &head);
    if (!size)
        return;
    if (size != SIZE_MAX && head.kind == SQF_HELLO && !c->purpose) {
        welcome_client(v, c, c->in.data + sizeof head, head.size);
        drop_input(c, size);
        flush(v, c);
        if (c->want)
            send_events(v, c);
    } else if (size != SIZE_MAX && head.kind == SQF_REQUEST && c->purpose == SQ_FOR_CALLS) {
        c->asked = v->rounds;
        v->round[v->n_round++] = (request){ .c = c, .size = size };
    } else {
        c->gone = true;
    }
}

/* ---- a round ---- */

static size_t count_ops(const sq_server *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n_round; i++)
        n += v->round[i].batch.n;
    return n;
}

static bool reserve_ops(sq_server *v, size_t n)
{
    if (n > v->cap_ops) {
        weir_op **more = realloc(v->ops, n * sizeof *more);
        if (!more)
            return false;
        v->ops = more;
        v->cap_ops = n;
    }
    return true;
}

/* Their operations, as the thing they borrow from stays. A malformed one is refused. */
static void read_requests(sq_server *v, weir_arena *arena)
{
    for (size_t i = 0; i < v->n_round; i++) {
        request    *r = &v->round[i];
        weir_reader in = { .alloc = weir__arena_alloc, .ctx = arena };
        if (weir__batch_read(&in, r->c->in.data + sizeof(sq_head), r->size - sizeof(sq_head),
                             &r->batch)) {
            refuse(r->c, in.err.msg);
            r->batch.n = 0;
            r->batch.op = NULL;
        }
    }
}

static bool was_closed(const request *r)
{
    for (size_t i = 0; i < r->batch.n; i++)
        if (r->batch.op[i].err.code == WEIR_ECLOSED)
            return true;
    return false;
}

static void answer(sq_server *v, request *r, uint64_t event)
{
    weir_batch_head head = { .event = event };
    connection     *c = r->c;
    if (r->batch.op && was_closed(r)) {
        weir__sq_frame_put(&c->out, SQF_LEAVING, NULL, 0);
    } else if (r->batch.op) {
        memcpy(head.run, v->run, sizeof v->run);
        size_t begun = weir__sq_frame_begin(&c->out, SQF_ANSWER);
        weir__batch_answer_begin(&c->out, &head);
        for (size_t i = 0; i < r->batch.n; i++)
            weir__batch_answer(&c->out, &r->batch.op[i]);
        weir__batch_answer_end(&c->out);
        weir__sq_frame_end(&c->out, begun);
    }
    for (size_t i = 0; i < r->batch.n; i++)
        weir__op_free(&r->batch.op[i]);
    drop_input(c, r->size);
    flush(v, c);
}

static void run_round(sq_server *v)
{
    weir_arena arena = { 0 };
    read_requests(v, &arena);
    size_t n = count_ops(v), at = 0;
    bool   ok = reserve_ops(v, n);
    for (size_t i = 0; i < v->n_round; i++)
        for (size_t k = 0; k < v->round[i].batch.n; k++) {
            weir_op *op = &v->round[i].batch.op[k];
            if (ok)
                v->ops[at++] = op;
            else
                weir_fail(&op->err, WEIR_ENOMEM, "out of memory");
        }
    if (at)
        v->env->run(v->env->ctx, v->ops, at);
    pthread_mutex_lock(&v->lock);
    uint64_t event = v->ring.last;
    pthread_mutex_unlock(&v->lock);
    for (size_t i = 0; i < v->n_round; i++)
        answer(v, &v->round[i], event);
    v->n_round = 0;
    v->rounds++;
    weir__arena_free(&arena);
}

/* ---- the thread ---- */

static void send_all_events(sq_server *v)
{
    WEIR_EACH(connection, c, &v->connections, link)
        if (c->want && !c->gone && !c->blocked)
            send_events(v, c);
}

/* A TICK looks where the file is, and says so if it is gone. */
static void look_at_file(sq_server *v)
{
    char events[1024];
    while (read(v->moves, events, sizeof events) > 0)
        continue;
    if (!v->env->test_clock)
        v->env->due(v->env->ctx, v->env->now(v->env->ctx) + MOVED_MS);
}

static void look_at(sq_server *v, const struct epoll_event *got, int n)
{
    for (int i = 0; i < n; i++) {
        connection *c = got[i].data.ptr;
        uint64_t    count;
        if (got[i].data.ptr == &v->wake) {
            (void)!read(v->wake, &count, sizeof count);
        } else if (got[i].data.ptr == &v->listener) {
            accept_all(v, false);
        } else if (got[i].data.ptr == &v->moves) {
            look_at_file(v);
        } else {
            if (got[i].events & EPOLLOUT)
                flush(v, c);
            if (got[i].events & ~(uint32_t)EPOLLOUT)
                receive(c);
            if (!c->gone)
                take_frame(v, c);
        }
    }
}

static size_t count_active(const sq_server *v)
{
    size_t n = 0;
    WEIR_EACH(connection, c, &v->connections, link)
        n += c->asked && v->rounds - c->asked <= ACTIVE_ROUNDS;
    return n;
}

/* Processes that were just answered soon send the next request. Wait for them, so that one commit
 * is for all, but only for a part of the time that a round takes. */
static void gather(sq_server *v)
{
    struct epoll_event got[AT_ONCE];
    int64_t            until = weir__monotonic_ns() + v->took_ns / GATHER_PART, left;
    size_t             active = count_active(v);
    while (v->n_round < active && v->n_round < AT_ONCE &&
           (left = until - weir__monotonic_ns()) > 0) {
        struct timespec rest = { .tv_nsec = left };
        look_at(v, got, epoll_pwait2(v->epoll, got, (int)(AT_ONCE - v->n_round), &rest, NULL));
    }
}

static void *serve(void *arg)
{
    sq_server         *v = arg;
    struct epoll_event got[AT_ONCE];
    accept_all(v, true);
    while (!atomic_load(&v->stop)) {
        int n = epoll_wait(v->epoll, got, AT_ONCE, -1);
        atomic_store(&v->woken, true);              /* events go out at the end of the round */
        look_at(v, got, n);
        if (v->n_round) {
            gather(v);
            int64_t start = weir__monotonic_ns();
            run_round(v);
            int64_t took = weir__monotonic_ns() - start;
            v->took_ns = took < LONGEST_ROUND_NS ? took : LONGEST_ROUND_NS;
        }
        atomic_store(&v->woken, false);
        send_all_events(v);
        close_gone(v);
    }
    return NULL;
}

void weir__sq_serve_start(sq_server *v)
{
    if (!v)
        return;
    pthread_mutex_lock(&v->lock);
    if (!atomic_load(&v->started))
        atomic_store(&v->started,
                     !weir__thread_start(&v->thread, serve, v, "weir-share", NULL));
    pthread_mutex_unlock(&v->lock);
}

/* ---- start and stop ---- */

/* The lock on the file is ours, so a socket that is there is left over. */
static int listen_at(const char *path)
{
    struct sockaddr_un at;
    int                dir, fd = -1;
    if (weir__sq_address(path, &at, &dir))
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        unlink(at.sun_path);
        /* the socket is made with its final mode: nobody else can connect, ever */
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

static bool add_fd(sq_server *v, int *fd)
{
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = fd };
    return !epoll_ctl(v->epoll, EPOLL_CTL_ADD, *fd, &e);
}

/* If the system has none to give, the next change of the queue notices it. */
static void watch_file(sq_server *v)
{
    v->moves = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (v->moves >= 0 &&
        inotify_add_watch(v->moves, v->path, SELF_CHANGES) >= 0)
        add_fd(v, &v->moves);
}

static bool set_up(sq_server *v)
{
    uint64_t run;
    if (!v->path || v->epoll < 0 || v->wake < 0 || getrandom(&run, sizeof run, 0) != sizeof run)
        return false;
    snprintf(v->run, sizeof v->run, "%016llx", (unsigned long long)run);
    v->listener = listen_at(v->path);
    watch_file(v);
    return v->listener >= 0 && add_fd(v, &v->listener) && add_fd(v, &v->wake);
}

void weir__sq_serve(sq_server **out, const char *path, const weir_env *env,
                    weir_durability durability, atomic_bool *used)
{
    *out = NULL;
    sq_server *v = calloc(1, sizeof *v);
    if (!v)
        return;
    pthread_mutex_init(&v->lock, NULL);
    v->env = env;
    v->durability = durability;
    v->used = used;
    v->ring.first = 1;
    v->rounds = 1;
    v->listener = v->moves = -1;
    v->path = strdup(path);
    v->epoll = epoll_create1(EPOLL_CLOEXEC);
    v->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (set_up(v))
        *out = v;
    else
        weir__sq_serve_end(v);
}

static void remove_socket(sq_server *v)
{
    struct sockaddr_un at;
    int                dir;
    if (weir__sq_address(v->path, &at, &dir))
        unlink(at.sun_path);
    if (dir >= 0)
        close(dir);
}

uint32_t weir__sq_serve_peers(const sq_server *v)
{
    return v ? atomic_load(&v->peers) : 0;
}

void weir__sq_serve_leave(sq_server *v)
{
    if (!v)
        return;
    atomic_store(&v->stop, true);
    atomic_store(&v->woken, false);
    wake(v);
    if (atomic_load(&v->started))       /* nobody starts it any more: the store is being closed */
        pthread_join(v->thread, NULL);
    remove_socket(v);
    weir_deadline until = weir__deadline_in(LAST_MS);
    accept_all(v, true);
    WEIR_EACH(connection, c, &v->connections, link) {
        if (!c->purpose) {                      /* it may still get the last events */
            receive(c);
            take_frame(v, c);
        }
        if (c->purpose == SQ_FOR_CALLS)
            weir__sq_frame_put(&c->out, SQF_LEAVING, NULL, 0);
        do {
            flush(v, c);
            if (c->want)
                send_events(v, c);
        } while (!c->gone && c->blocked && weir__deadline_left_ms(until) > 0 &&
                 poll(&(struct pollfd){ .fd = c->fd, .events = POLLOUT }, 1,
                      (int)weir__deadline_left_ms(until)) > 0);
    }
    close(v->listener);
    v->listener = -1;
}

void weir__sq_serve_end(sq_server *v)
{
    if (!v)
        return;
    weir__sq_exchange_destroy(v->exchange);
    WEIR_EACH(connection, c, &v->connections, link)
        close_connection(v, c);
    if (v->listener >= 0)
        close(v->listener);
    if (v->moves >= 0)
        close(v->moves);
    if (v->wake >= 0)
        close(v->wake);
    if (v->epoll >= 0)
        close(v->epoll);
    weir__ring_end(&v->ring);
    pthread_mutex_destroy(&v->lock);
    free(v->ops);
    free(v->path);
    free(v);
}
