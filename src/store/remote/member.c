/* member.c - see member.h. */
#include "store/remote/member.h"

#include <string.h>

enum { KEPT_ROOM = 1024 * 1024 };

weir_code weir__member_start(weir_remote_member *m, const weir_member *is,
                             const weir_feed_source *source, int64_t wait_ms, weir_error *err)
{
    m->is = *is;
    weir_code rc = weir__sendbuf_init(&m->out, err);
    if (rc)
        return rc;
    rc = weir__feed_open(&m->feed, source, m, wait_ms, err);
    if (rc) {
        m->feed = NULL;
        weir__sendbuf_fini(&m->out);
        weir__buf_fini(&m->in);
    }
    return rc;
}

void weir__member_stop(weir_remote_member *m)
{
    if (!m->feed)
        return;
    weir__feed_close(m->feed);
    weir__sendbuf_fini(&m->out);
    weir__buf_fini(&m->in);
}

void weir__member_wake(void *ctx)
{
    weir__sendbuf_wake(&((weir_remote_member *)ctx)->out);
}

void weir__member_consume(weir_remote_member *m, size_t n)
{
    m->in.len -= n;
    memmove(m->in.data, m->in.data + n, m->in.len);
    if (!m->in.len && m->in.cap > KEPT_ROOM)
        weir__buf_fini(&m->in);
}
