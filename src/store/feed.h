/* feed.h - what other processes do to a store, as this process receives it: one thread, and one
 * loop that connects again whatever happens to the connection.
 *
 * A source (the socket beside a SQLite file, Redis, a weir server) connects and reads; it gives
 * what it receives to weir_env (store.h) itself. The feed has the thread, the pauses between two
 * connections, whether the connection is live, the place in the sender's numbers, and those who
 * wait for one of these.
 *
 * The socket and the server are one connection each, and the loop of the feed is the only one that
 * connects them again. Redis is many: a cluster has a connection to each of its nodes, which are
 * lost and found one by one while the others go on. So the subscriber (redis/link/subscriber.c)
 * stays in receive(). The nodes connect again by themselves (link/net.h) with the same pauses as
 * the link, and the feed is down while one channel is not subscribed.
 *
 * Promises to the user of a store: an event or message is delivered at most once. Events of one
 * sender are delivered in its order. Events may be missing if a connection was lost and the other
 * side could not resume it. The source then calls env->lost() once the connection is live again,
 * before it delivers later events. */
#ifndef WEIR_STORE_FEED_H
#define WEIR_STORE_FEED_H

#include <stdbool.h>
#include <stdint.h>
#include "weir/error.h"

/* A place in the numbered messages (base/ring.h) of one run of their sender. */
enum { WEIR_MAX_RUN = 32 };
typedef struct weir_place {
    char     run[WEIR_MAX_RUN + 1];         /* "": none yet */
    uint64_t number;
} weir_place;

typedef struct weir_feed weir_feed;

typedef struct weir_feed_source {
    const char *thread;                     /* its name */
    /* Connect and read, until the connection is over or weir__feed_stopping(). Calls
     * weir__feed_live() when nothing is missed silently from then on. *why says what ended it. On
     * the thread of the feed. */
    void      (*receive)(void *ctx, weir_feed *f, weir_error *why);
    /* The feed stops: receive() is to return. Any thread. */
    void      (*wake)(void *ctx);
    int64_t     pause_ms;                   /* before the next connection; doubles while none is
                                               live. 0: 50 */
} weir_feed_source;

/* Start the thread, and wait until the first connection is live, at most `wait_ms`; 0: do not wait.
 * An error other than WEIR_EUNAVAIL, which time does not cure, ends the wait at once. `source` and
 * `ctx` must last until the feed is closed. On failure there is no feed. */
weir_code weir__feed_open(weir_feed **out, const weir_feed_source *source, void *ctx,
                          int64_t wait_ms, weir_error *err);
void      weir__feed_close(weir_feed *f);   /* waits for the thread; NULL is fine */

/* ---- for the source, on the thread of the feed ---- */

bool weir__feed_stopping(const weir_feed *f);
void weir__feed_live(weir_feed *f);
/* Not live for the moment, because of *why, while receive() tries again by itself. */
void weir__feed_down(weir_feed *f, const weir_error *why);
/* Everything up to this place was delivered. */
void weir__feed_reached(weir_feed *f, const weir_place *place);
/* That place: where to resume. */
const weir_place *weir__feed_place(const weir_feed *f);

/* ---- for others, any thread ---- */

/* Wait until it is live, at most `wait_ms`. The same errors as weir__feed_open(); it goes on. */
weir_code weir__feed_wait(weir_feed *f, int64_t wait_ms, weir_error *err);

/* Wait until the feed has delivered everything up to `place`: not long, and not while it is not
 * live. NULL is fine. */
void weir__feed_until(weir_feed *f, const weir_place *place);

#endif
