/* member.c - this process exchanges envelopes with the others that have the file open, through the
 * exchange of its owner (exchange.c), also when that is this process itself: see share.h. */
#include "store/sqlite/share.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/remote/member.h"
#include "store/sqlite/outside.h"

enum {
    MAX_OWNERS = 4,                     /* members of the owner's process that are known */
    FIRST_LIVE_MS = 300,                /* how long join() waits for the owner */
    LAST_MS = 200                       /* to send the last envelopes */
};

struct sq_member {
    weir_remote_member base;            /* first: see member.h */
    const sq_store    *s;
    char               owner[MAX_OWNERS][WEIR_PROCESS];     /* the thread's */
};

/* ---- posting ---- */

weir_code weir__sq_post(sq_member *m, const weir_envelope *e, weir_error *err)
{
    weir_buf *out;
    sq_route  r = { .count = e->count };
    memcpy(r.from, m->base.is.process, sizeof r.from);
    if (e->to)
        memcpy(r.to, e->to, sizeof r.to);
    weir_code rc = weir__sendbuf_begin(&m->base.out, &out, m->s->path,
                                       "its owner has gone, and there is no other yet", err);
    if (rc)
        return rc;
    size_t begun = weir__sq_frame_begin(out, SQF_ENVELOPE);
    weir__buf_add(out, &r, sizeof r);
    weir__buf_add(out, e->bytes, e->len);
    weir__sq_frame_end(out, begun);
    return weir__sendbuf_end(&m->base.out, err);
}

static bool send_bytes(void *ctx, const char *bytes, size_t len, size_t *n)
{
    ssize_t did;
    do
        did = send(*(const int *)ctx, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (did < 0 && errno == EINTR);
    *n = did > 0 ? (size_t)did : 0;
    return did >= 0 || errno == EAGAIN || errno == EWOULDBLOCK;
}

/* Send what can be sent. False: the connection is gone. */
static bool send_some(sq_member *m, int fd)
{
    return weir__sendbuf_send(&m->base.out, send_bytes, &fd);
}

/* ---- what comes ---- */

static bool get_process(const char *bytes, size_t len, char out[WEIR_PROCESS])
{
    if (len != WEIR_PROCESS - 1)
        return false;
    memcpy(out, bytes, len);
    out[len] = '\0';
    return strlen(out) == len;
}

static void note_owner(sq_member *m, const char *process)
{
    for (int i = 0; i < MAX_OWNERS; i++)
        if (!*m->owner[i] || !strcmp(m->owner[i], process)) {
            memcpy(m->owner[i], process, WEIR_PROCESS);
            return;
        }
}

static bool take_frame(sq_member *m, const sq_head *head, const char *bytes)
{
    const weir_member *is = &m->base.is;
    char               process[WEIR_PROCESS];
    uint64_t           number;
    switch (head->kind) {
    case SQF_ENVELOPE:
        if (head->size < sizeof(sq_route))
            return false;
        is->arrived(is->ctx, bytes + sizeof(sq_route), head->size - sizeof(sq_route));
        return true;
    case SQF_REACHED:
        if (head->size != sizeof number)
            return false;
        memcpy(&number, bytes, sizeof number);
        is->reached(is->ctx, (size_t)number);
        return true;
    case SQF_LOST:
        is->lost(is->ctx);
        return true;
    case SQF_OWNER:
    case SQF_GONE:
        if (!get_process(bytes, head->size, process))
            return false;
        if (head->kind == SQF_OWNER)
            note_owner(m, process);
        else
            is->gone(is->ctx, process);
        return true;
    default:
        return false;
    }
}

/* False: the connection is gone. */
static bool receive_some(sq_member *m, int fd)
{
    sq_head head = { 0 };
    size_t  at = 0, size;
    if (!weir__buf_reserve(&m->base.in, WEIR_MEMBER_CHUNK))
        return false;
    ssize_t n = recv(fd, m->base.in.data + m->base.in.len, WEIR_MEMBER_CHUNK, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (!n)
        return false;
    m->base.in.len += (size_t)n;
    while ((size = weir__sq_frame_at(&m->base.in, at, &head))) {
        if (size == SIZE_MAX || !take_frame(m, &head, m->base.in.data + at + sizeof head))
            return false;
        at += size;
    }
    weir__member_consume(&m->base, at);
    return true;
}

/* ---- the thread ---- */

static void set_live(sq_member *m, bool live)
{
    weir__sendbuf_set_live(&m->base.out, live);
    weir__buf_clear(&m->base.in);
}

/* Until the connection or the feed ends. */
static void run_connection(sq_member *m, weir_feed *f, int fd)
{
    struct pollfd fds[2] = { { .fd = fd }, { .fd = m->base.out.wake, .events = POLLIN } };
    bool          ok = true;
    while (ok && !weir__feed_stopping(f)) {
        fds[0].events = POLLIN | (weir__sendbuf_waits(&m->base.out) ? POLLOUT : 0);
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return;
        if (fds[1].revents)
            weir__sendbuf_woken(&m->base.out);
        ok = send_some(m, fd);
        if (ok && fds[0].revents & ~POLLOUT)
            ok = receive_some(m, fd);
    }
    weir_deadline until = weir__deadline_in(LAST_MS);
    while (ok && (ok = send_some(m, fd)) && weir__sendbuf_waits(&m->base.out)) {
        struct pollfd last = { .fd = fd, .events = POLLOUT };
        ok = poll(&last, 1, (int)weir__deadline_left_ms(until)) > 0;
    }
}

/* The owner's process is gone, and its members with it. */
static void lose_owner(sq_member *m)
{
    for (int i = 0; i < MAX_OWNERS && *m->owner[i]; i++) {
        if (strcmp(m->owner[i], m->base.is.process) != 0)
            m->base.is.gone(m->base.is.ctx, m->owner[i]);
        *m->owner[i] = '\0';
    }
}

static void receive(void *ctx, weir_feed *f, weir_error *why)
{
    sq_member      *m = ctx;
    const sq_store *s = m->s;
    sq_hello        hello = { .magic = SQ_MAGIC, .purpose = SQ_FOR_ENVELOPES };
    sq_welcome      welcome;
    memcpy(hello.process, m->base.is.process, WEIR_PROCESS);
    weir__sendbuf_woken(&m->base.out);      /* what is left of the last connection */
    if (weir__feed_stopping(f))
        return;
    int fd = weir__sq_dial(s->path, &hello, m->base.out.wake, SQ_WELCOME_MS, &welcome, why);
    if (fd >= 0) {
        set_live(m, true);
        weir__feed_live(f);
        m->base.is.lost(m->base.is.ctx);
        run_connection(m, f, fd);
        set_live(m, false);
        close(fd);
        weir_fail(why, WEIR_EUNAVAIL, "%s: its owner has gone", s->path);
        if (!weir__feed_stopping(f))
            lose_owner(m);
    }
    if (!weir__feed_stopping(f) && !s->env.read_only && !s->env.test_clock &&
        !atomic_load(&s->owns))
        s->env.due(s->env.ctx, s->env.now(s->env.ctx));     /* a TICK finds the next owner */
}

static const weir_feed_source source = { .thread = "weir-member", .receive = receive,
                                         .wake = weir__member_wake, .pause_ms = 2 };

/* ---- joining and leaving ---- */

void weir__sq_leave(sq_member *m)
{
    if (!m)
        return;
    weir__member_stop(&m->base);
    free(m);
}

weir_code weir__sq_join(sq_member **out, const sq_store *s, const weir_member *is, weir_error *err)
{
    sq_member *m = *out = calloc(1, sizeof *m);
    if (!m)
        return weir_fail(err, WEIR_ENOMEM, "bus: out of memory");
    m->s = s;
    weir_code rc = weir__member_start(&m->base, is, &source, 0, err);
    if (!rc && (rc = weir__feed_wait(m->base.feed, FIRST_LIVE_MS, err)) == WEIR_EUNAVAIL)
        rc = WEIR_OK;                       /* it goes on trying */
    if (rc) {
        weir__sq_leave(m);
        *out = NULL;
    }
    return rc;
}
