/* member.h - the connection of an event bus to another process, through a feed: what the members of
 * the http and the sqlite store share. */
#ifndef WEIR_STORE_REMOTE_MEMBER_H
#define WEIR_STORE_REMOTE_MEMBER_H

#include "base/buf.h"
#include "base/sendbuf.h"
#include "store/envelope.h"
#include "store/feed.h"

enum { WEIR_MEMBER_CHUNK = 64 * 1024 };     /* bytes that are read at once */

/* First member of a store's own, which is the context of the feed's source. */
typedef struct weir_remote_member {
    weir_member  is;
    weir_feed   *feed;              /* NULL: not started */
    weir_sendbuf out;
    weir_buf     in;                /* the thread's of the feed */
} weir_remote_member;

/* The rest is zero. On failure it is as if it had not been started. */
weir_code weir__member_start(weir_remote_member *m, const weir_member *is,
                             const weir_feed_source *source, int64_t wait_ms, weir_error *err);
/* Waits for the thread. A member that was not started is fine. */
void      weir__member_stop(weir_remote_member *m);

/* weir_feed_source.wake. */
void      weir__member_wake(void *ctx);

/* The first n bytes of m->in were handed in. */
void      weir__member_consume(weir_remote_member *m, size_t n);

#endif
