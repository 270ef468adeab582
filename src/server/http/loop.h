/* loop.h - an event loop with a thread of its own. A connection lives on one loop, and everything
 * about it happens on that thread, so nothing about it needs a lock. */
#ifndef WEIR_SERVER_LOOP_H
#define WEIR_SERVER_LOOP_H

#include <event2/event.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/inbox.h"
#include "weir/error.h"

typedef struct srv_loop srv_loop;

weir_code srv_loop_create(srv_loop **out, const char *name, weir_error *err);
struct event_base *srv_loop_base(srv_loop *l);

/* Have `task` (base/inbox.h) run on the loop's thread, in the order of posting. Any thread, also
 * the loop's own (then: soon, not at once). */
void srv_loop_post(srv_loop *l, weir_inbox_task *task);

bool srv_loop_here(const srv_loop *l);          /* is this the loop's thread? */
int64_t srv_loop_ms(void);                      /* monotonic, a few milliseconds coarse */

/* Have fn(ctx) run on the loop's thread and wait for it. Not from a loop. */
void srv_loop_call(srv_loop *l, void (*fn)(void *ctx), void *ctx);

/* A one-shot timer, set and unset on the loop's thread; {0} is unset. Setting it again replaces it;
 * unset, it does not run. */
typedef struct srv_timer {
    struct event *event;
    void        (*run)(void *ctx);
    void         *ctx;
} srv_timer;
weir_code srv_timer_set(srv_timer *t, srv_loop *l, int64_t ms, void (*run)(void *ctx), void *ctx);
void srv_timer_unset(srv_timer *t);

/* Stop the thread once what was posted has run, and release it. NULL is fine. */
void srv_loop_destroy(srv_loop *l);

#endif
