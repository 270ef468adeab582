/* sendbuf.c - see sendbuf.h. */
#include "base/sendbuf.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { KEPT_ROOM = 1024 * 1024 };      /* of a buffer that is empty */

weir_code weir__sendbuf_init(weir_sendbuf *b, weir_error *err)
{
    *b = (weir_sendbuf){ .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
    if (b->wake < 0)
        return weir_fail(err, WEIR_ENOMEM, "bus: %s", strerror(errno));
    pthread_mutex_init(&b->lock, NULL);
    return WEIR_OK;
}

void weir__sendbuf_fini(weir_sendbuf *b)
{
    close(b->wake);
    weir__buf_fini(&b->posted);
    weir__buf_fini(&b->out);
    pthread_mutex_destroy(&b->lock);
}

void weir__sendbuf_set_live(weir_sendbuf *b, bool live)
{
    pthread_mutex_lock(&b->lock);
    b->live = live;
    weir__buf_clear(&b->posted);
    pthread_mutex_unlock(&b->lock);
    weir__buf_clear(&b->out);
    b->sent = 0;
}

weir_code weir__sendbuf_begin(weir_sendbuf *b, weir_buf **out, const char *to,
                              const char *unavailable, weir_error *err)
{
    weir_code rc = WEIR_OK;
    pthread_mutex_lock(&b->lock);
    if (!b->live)
        rc = weir_fail(err, WEIR_EUNAVAIL, "%s: %s", to, unavailable);
    else if (b->posted.len > WEIR__MAX_UNSENT)
        rc = weir_fail(err, WEIR_EFULL, "bus: %d bytes wait to be sent to %s", WEIR__MAX_UNSENT,
                       to);
    b->first = !b->posted.len;
    *out = &b->posted;
    if (rc)
        pthread_mutex_unlock(&b->lock);
    return rc;
}

weir_code weir__sendbuf_end(weir_sendbuf *b, weir_error *err)
{
    weir_code rc = WEIR_OK;
    if (b->posted.failed) {
        rc = weir_fail(err, WEIR_ENOMEM, "bus: out of memory");
        weir__buf_fini(&b->posted);
    }
    bool first = b->first;
    pthread_mutex_unlock(&b->lock);
    if (!rc && first)
        weir__sendbuf_wake(b);
    return rc;
}

void weir__sendbuf_wake(weir_sendbuf *b)
{
    eventfd_write(b->wake, 1);
}

void weir__sendbuf_woken(weir_sendbuf *b)
{
    eventfd_t count;
    eventfd_read(b->wake, &count);
}

/* `out` has been sent: take what was posted meanwhile in its place. */
static void take_posted(weir_sendbuf *b)
{
    if (b->out.cap > KEPT_ROOM)
        weir__buf_fini(&b->out);
    weir__buf_clear(&b->out);
    b->sent = 0;
    pthread_mutex_lock(&b->lock);
    weir_buf empty = b->out;
    b->out = b->posted;
    b->posted = empty;
    pthread_mutex_unlock(&b->lock);
}

bool weir__sendbuf_send(weir_sendbuf *b, weir_send_fn *send, void *ctx)
{
    for (;;) {
        size_t n = 0;
        if (b->sent == b->out.len)
            take_posted(b);
        if (b->sent == b->out.len)
            return true;
        if (!send(ctx, b->out.data + b->sent, b->out.len - b->sent, &n))
            return false;
        b->sent += n;
        if (!n)
            return true;
    }
}

bool weir__sendbuf_waits(const weir_sendbuf *b)
{
    return b->sent < b->out.len;
}
