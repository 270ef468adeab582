/* watch.c - a queue that only looks gets the events of the file's owner, whoever that is just now.
 *
 * A thread reads the owner's socket and, when there is no owner, looks for the next one now and
 * then. The first connection is made by open(), so that what happens after it is not missed: the
 * owner sends the events of every commit after the connection, whenever it accepts that. */
#include "store/sqlite/sq.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/thread.h"
#include "store/sqlite/outside.h"

enum {
    RETRY_MS = 200,             /* how often to look for an owner */
    CHUNK = 64 * 1024,
    MAX_EVENTS = 256            /* told at once */
};

struct sq_client {
    char           *path;
    const weir_env *env;
    int             fd;         /* -1: not connected */
    int             stop;       /* an eventfd */
    pthread_t       thread;
    sq_stream       stream;
};

static void disconnect(sq_client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->stream.greeted = false;
    weir__buf_clear(&c->stream.in);
    c->stream.in.failed = false;
}

static void connect_to_owner(sq_client *c)
{
    struct sockaddr_un at;
    int                dir;
    if (!weir__sq_address(c->path, &at, &dir))
        return;
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd >= 0 && connect(c->fd, (struct sockaddr *)&at, sizeof at))
        disconnect(c);
    if (dir >= 0)
        close(dir);
}

/* True when the stop came instead. */
static bool wait_stop(sq_client *c, int timeout_ms)
{
    struct pollfd fds[2] = { { .fd = c->stop, .events = POLLIN },
                             { .fd = c->fd, .events = POLLIN } };
    poll(fds, 2, timeout_ms);       /* a negative fd is ignored */
    return fds[0].revents != 0;
}

/* One whole record at `at` of the buffer; its size, 0: not all there yet, SIZE_MAX: nonsense. The
 * strings end at the next record, so type and text are copied with their NULs by the caller. */
static size_t record_at(const weir_buf *in, size_t at, sq_record *r)
{
    if (in->len - at < sizeof *r)
        return 0;
    memcpy(r, in->data + at, sizeof *r);
    if (r->kind >= WEIR_EVENT_KINDS || r->state >= WEIR_STATES || r->type_len > WEIR_MAX_TYPE ||
        r->text_len > WEIR_MAX_DATA || r->attempts < 0 || r->progress < 0 || r->progress > 100)
        return SIZE_MAX;
    size_t size = sizeof *r + r->type_len + r->text_len;
    return in->len - at < size ? 0 : size;
}

typedef struct batch {
    weir_event event[MAX_EVENTS];
    char      *strings[MAX_EVENTS];
    size_t     n;
} batch;

static bool add_event(batch *b, const sq_record *r, const char *bytes)
{
    char *s = malloc((size_t)r->type_len + r->text_len + 2);
    if (!s)
        return false;
    memcpy(s, bytes, r->type_len);
    s[r->type_len] = '\0';
    char *text = s + r->type_len + 1;
    memcpy(text, bytes + r->type_len, r->text_len);
    text[r->text_len] = '\0';
    b->strings[b->n] = s;
    b->event[b->n++] = (weir_event){
        .kind = (weir_event_kind)r->kind,
        .state = (weir_state)r->state,
        .id = r->id,
        .type = r->has & 1 ? s : NULL,
        .at = r->at,
        .attempts = r->attempts,
        .progress = r->progress,
        .delivery = r->delivery,
        .missed = r->missed,
        .text = r->has & 2 ? text : NULL,
        .text_len = r->has & 2 ? r->text_len : 0,
    };
    return true;
}

static void tell(const weir_env *env, batch *b)
{
    if (b->n)
        env->emit(env->ctx, b->event, b->n);
    while (b->n)
        free(b->strings[--b->n]);
}

bool weir__sq_digest(sq_stream *s, const weir_env *env)
{
    size_t    at = 0, size = 0;
    sq_record r;
    batch     b = { .n = 0 };
    size_t    hello = sizeof SQ_HELLO - 1;
    if (!s->greeted) {
        if (s->in.len < hello)
            return true;
        if (memcmp(s->in.data, SQ_HELLO, hello) != 0)
            return false;
        s->greeted = true;
        at = hello;
    }
    while ((size = record_at(&s->in, at, &r)) && size != SIZE_MAX) {
        if (!add_event(&b, &r, s->in.data + at + sizeof r))
            break;
        at += size;
        if (b.n == MAX_EVENTS)
            tell(env, &b);
    }
    tell(env, &b);
    s->in.len -= at;
    memmove(s->in.data, s->in.data + at, s->in.len);
    return size != SIZE_MAX;
}

/* False: it is gone. */
static bool receive(sq_client *c)
{
    weir_buf *in = &c->stream.in;
    if (!weir__buf_reserve(in, CHUNK))
        return false;
    ssize_t n = recv(c->fd, in->data + in->len, CHUNK, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (!n)
        return false;
    in->len += (size_t)n;
    return weir__sq_digest(&c->stream, c->env);
}

static void *watch(void *arg)
{
    sq_client *c = arg;
    while (!wait_stop(c, c->fd < 0 ? RETRY_MS : -1)) {
        if (c->fd < 0)
            connect_to_owner(c);
        else if (!receive(c))
            disconnect(c);
    }
    return NULL;
}

static void client_free(sq_client *c)
{
    disconnect(c);
    if (c->stop >= 0)
        close(c->stop);
    weir__buf_fini(&c->stream.in);
    free(c->path);
    free(c);
}

void weir__sq_watch(sq_client **out, const char *path, const weir_env *env)
{
    *out = NULL;
    sq_client *c = calloc(1, sizeof *c);
    if (!c)
        return;
    c->env = env;
    c->fd = -1;
    c->path = strdup(path);
    c->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool ok = c->path && c->stop >= 0;
    if (ok)
        connect_to_owner(c);
    if (ok && !weir__thread_start(&c->thread, watch, c, "weir-watch", NULL))
        *out = c;
    else
        client_free(c);
}

void weir__sq_watch_stop(sq_client *c)
{
    if (!c)
        return;
    uint64_t one = 1;
    (void)!write(c->stop, &one, sizeof one);
    pthread_join(c->thread, NULL);
    client_free(c);
}
