/* peer.c - a process that works through the owner of the file: see share.h. The thread that runs a
 * batch sends it and waits for the answer; no other thread is needed. */
#include "store/sqlite/share.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "store/remote/attempt.h"

enum { CHUNK = 64 * 1024, KEPT_ROOM = 1024 * 1024 };

struct sq_peer {
    int         fd;                 /* -1: not connected */
    uint32_t    pid;                /* of the owner, as it is there ... */
    int64_t     pid_here;           /* ... and here; -1: it is of another process space */
    int64_t     timeout_ms;         /* to send and to be answered */
    weir_caller caller;
    weir_buf    out, in;
};

/* The outcome of one try. */
typedef enum outcome {
    ANSWERED,       /* the operations have their answers */
    REFUSED,        /* not done, and trying again is of no use */
    NOT_DONE,       /* not done, and another owner may do it */
    LOST            /* perhaps done: no answer came */
} outcome;

weir_code weir__sq_peer_create(sq_peer **out, weir_error *err)
{
    sq_peer *p = *out = calloc(1, sizeof *p);
    if (!p)
        return weir_fail(err, WEIR_ENOMEM, "sqlite store");
    p->fd = -1;
    return weir__caller_init(&p->caller, err);
}

static void disconnect(sq_peer *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

void weir__sq_peer_destroy(sq_peer *p)
{
    if (!p)
        return;
    disconnect(p);
    weir__caller_fini(&p->caller);
    weir__buf_fini(&p->out);
    weir__buf_fini(&p->in);
    free(p);
}

static int64_t find_pid(int fd)
{
    struct ucred who;
    socklen_t    len = sizeof who;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) && who.pid > 0 ? who.pid : -1;
}

weir_code weir__sq_peer_connect(sq_store *s, weir_error *err)
{
    sq_peer   *p = s->peer;
    sq_hello   hello = { .magic = SQ_MAGIC, .purpose = SQ_FOR_CALLS };
    sq_welcome welcome;
    weir_error why = { 0 };
    disconnect(p);
    p->fd = weir__sq_dial(s->path, &hello, -1, SQ_WELCOME_MS, &welcome, &why);
    if (p->fd < 0) {
        if (err)
            *err = why;
        return why.code;
    }
    p->pid = welcome.pid;
    p->pid_here = find_pid(p->fd);
    p->timeout_ms = 0;
    if (s->asked_durability == WEIR_DURABILITY_DISK && welcome.durability != WEIR_DURABILITY_DISK) {
        disconnect(p);
        return weir_fail(err, WEIR_EINVAL, "%s: durability: disk was asked for, but process %u, "
                         "which owns it, runs with os", s->path, p->pid);
    }
    s->env.durability = (weir_durability)welcome.durability;
    return WEIR_OK;
}

bool weir__sq_peer_connected(const sq_store *s)
{
    char    byte;
    ssize_t n = s->peer->fd < 0 ? 0 : recv(s->peer->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

/* ---- one try ---- */

static void set_timeout(sq_peer *p, int64_t ms)
{
    struct timeval t = { .tv_sec = (time_t)(ms / 1000) };
    if (ms == p->timeout_ms)
        return;
    setsockopt(p->fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
    p->timeout_ms = ms;
}

/* False: the owner cannot have got all of it. */
static bool send_all(const sq_peer *p)
{
    for (size_t sent = 0; sent < p->out.len;) {
        ssize_t n = send(p->fd, p->out.data + sent, p->out.len - sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return false;
        sent += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Not in recv(): the kernel would wake the thread for nothing when the owner has read the request,
 * too. */
static bool wait_for_bytes(const sq_peer *p)
{
    struct pollfd fd = { .fd = p->fd, .events = POLLIN };
    int           n;
    do
        n = poll(&fd, 1, (int)p->timeout_ms);
    while (n < 0 && errno == EINTR);
    return n > 0;
}

static bool receive_frame(sq_peer *p, sq_head *head)
{
    size_t size;
    weir__buf_clear(&p->in);
    while (!(size = weir__sq_frame_at(&p->in, 0, head))) {
        size_t want = p->in.len < sizeof *head ? CHUNK : head->size + sizeof *head - p->in.len;
        if (!weir__buf_reserve(&p->in, want < CHUNK ? CHUNK : want))
            return false;
        if (!wait_for_bytes(p))
            return false;
        ssize_t n = recv(p->fd, p->in.data + p->in.len, p->in.cap - p->in.len - 1, 0);
        if (!n || (n < 0 && errno != EINTR))
            return false;
        p->in.len += n > 0 ? (size_t)n : 0;
    }
    return size == p->in.len;
}

static outcome take_answer(sq_store *s, weir_attempt *a, const sq_head *head)
{
    weir_batch_head got;
    const char     *text = s->peer->in.data + sizeof *head;
    if (head->kind == SQF_LEAVING)
        return NOT_DONE;
    if (head->kind == SQF_REFUSED) {
        weir_fail(&a->err, WEIR_EINVAL, "%s: process %u refuses: %.*s", s->path, s->peer->pid,
                  (int)head->size, text);
        return REFUSED;
    }
    if (head->kind != SQF_ANSWER ||
        weir__batch_read_answers(text, head->size, &got, a->ops, a->n, &a->err))
        return LOST;
    if (s->env.test_clock || weir__attempt_gone(a)) {
        weir_place place = { .number = got.event };
        memcpy(place.run, got.run, sizeof got.run);
        weir__sq_watch_until(s, &place);
    }
    return ANSWERED;
}

static outcome try_once(sq_store *s, weir_attempt *a)
{
    sq_peer *p = s->peer;
    sq_head  head;
    if (p->out.cap > KEPT_ROOM)
        weir__buf_fini(&p->out);
    weir__buf_clear(&p->out);
    size_t begun = weir__sq_frame_begin(&p->out, SQF_REQUEST);
    weir__attempt_write(a, "", &p->out);
    weir__sq_frame_end(&p->out, begun);
    if (p->out.failed) {
        weir_fail(&a->err, WEIR_ENOMEM, "%s: no memory for a request", s->path);
        return REFUSED;
    }
    set_timeout(p, a->slow ? SQ_SLOW_ANSWER_MS : SQ_ANSWER_MS);
    if (!send_all(p))
        return NOT_DONE;
    if (!receive_frame(p, &head))
        return LOST;
    outcome got = take_answer(s, a, &head);
    if (p->in.cap > KEPT_ROOM)
        weir__buf_fini(&p->in);
    return got;
}

/* ---- until it is over ---- */

/* The owner has counted this process among its peers, and says its own number. */
static void adapt_info(const sq_peer *p, const weir_attempt *a)
{
    for (size_t i = 0; i < a->n; i++) {
        const weir_op *op = a->ops[i];
        if (op->kind != WEIR_OP_INFO || op->err.code)
            continue;
        weir_info *info = op->u.info.info;
        info->owner_pid = p->pid_here;
        info->peers -= info->peers > 0;
    }
}

static void run_attempt(sq_store *s, weir_attempt *a)
{
    while (a->n) {
        if (s->peer->fd < 0 && weir__sq_find_owner(s, &a->err)) {
            weir__attempt_fail(a);
            return;
        }
        if (!s->peer) {                     /* this process has become the owner */
            weir__sq_run_here(s, a->ops, a->n);
            return;
        }
        outcome got = try_once(s, a);
        if (got == ANSWERED) {
            adapt_info(s->peer, a);
            return;
        }
        if (got == REFUSED) {
            weir__attempt_fail(a);
            return;
        }
        disconnect(s->peer);
        if (got == LOST)
            weir__attempt_forget(a, "the process that owned the file is gone");
    }
}

/* Operations that need no owner: its queue does what is due, so a TICK only makes sure that an
 * owner is there. With a test clock, ticks are sent. True: op is done. */
static bool done_here(sq_store *s, weir_op *op)
{
    weir__op_clear(op);
    if (op->kind != WEIR_OP_TICK || s->env.test_clock)
        return false;
    if (!weir__sq_peer_connected(s)) {
        disconnect(s->peer);
        return false;
    }
    op->u.tick.changed = 0;
    op->u.tick.next_at = INT64_MAX;
    return true;
}

/* A TICK that goes to another owner after all has no answer that matters here. */
static void forget_ticks(const sq_store *s, weir_op *const *ops, size_t n)
{
    for (size_t i = 0; s->peer && !s->env.test_clock && i < n; i++)
        if (ops[i]->kind == WEIR_OP_TICK && !ops[i]->err.code)
            ops[i]->u.tick.next_at = INT64_MAX;
}

/* By now this process may be the owner. */
static void settle_doubts(sq_store *s, const weir_attempt *a)
{
    weir_doubts *d = weir__doubts_create(a);
    if (d && s->peer)
        weir__sq_peer_run(s, d->asked, d->n);
    else if (d)
        weir__sq_run_here(s, d->asked, d->n);
    weir__doubts_settle(d);
}

void weir__sq_peer_run(sq_store *s, weir_op **ops, size_t n)
{
    weir_op *some[WEIR_BATCH_MAX_OPS];
    for (size_t i = 0; i < n;) {
        size_t fit = weir__attempt_fit(ops + i, n - i), kept = 0;
        if (!s->peer) {                     /* as of the last part of this batch */
            weir__sq_run_here(s, ops + i, n - i);
            return;
        }
        for (size_t k = 0; k < fit; k++, i++)
            if (!done_here(s, ops[i]))
                some[kept++] = ops[i];
        if (!kept)
            continue;
        weir_attempt a;
        sq_peer     *p = s->peer;           /* taking over leaves it for us */
        weir__attempt_begin(&a, &p->caller, some, kept);
        run_attempt(s, &a);
        weir__attempt_end(&a);
        if (!s->peer)
            weir__sq_peer_destroy(p);
        settle_doubts(s, &a);
        forget_ticks(s, ops, n);
    }
}
