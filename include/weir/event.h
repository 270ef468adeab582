/* event.h - what happens to jobs: listeners are called after the store has committed. */
#ifndef WEIR_EVENT_H
#define WEIR_EVENT_H

#include "weir/job.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_queue weir_queue;

/* name, and what `text` holds. Append only: these numbers are in Redis and on sockets, in the order
 * of this list from 0 on. */
#define WEIR_EVENTS(X)                                                                        \
    X(ENQUEUE,        "enqueue")         /* it waits for a worker now */                      \
    X(PROMOTION,      "promotion")       /* its delay is over; enqueue follows */             \
    X(START,          "start")           /* text: the worker */                               \
    X(PROGRESS,       "progress")        /* progress; text: progress data */                  \
    X(FAILED_ATTEMPT, "failed_attempt")  /* it will be tried again; text: the error */        \
    X(FAILED,         "failed")          /* for good; text: the error */                      \
    X(COMPLETE,       "complete")        /* text: the result */                               \
    X(CANCELLED,      "cancelled")                                                            \
    X(STALLED,        "stalled")         /* its worker died; enqueue or failed follows */     \
    X(TTL_EXCEEDED,   "ttl_exceeded")    /* failed_attempt or failed follows */               \
    X(REMOVE,         "remove")                                                               \
    X(PAUSE,          "pause")           /* of a type; id 0 */                                \
    X(RESUME,         "resume")          /* of a type; id 0 */                                \
    X(ERROR,          "error")           /* trouble of the queue itself; id 0; text: what */

typedef enum weir_event_kind {
#define X(name, text) WEIR_EVENT_##name,
    WEIR_EVENTS(X)
#undef X
    WEIR_EVENT_COUNT
} weir_event_kind;

WEIR_API const char *weir_event_name(weir_event_kind kind);               /* "failed_attempt" */
WEIR_API bool weir_event_parse(const char *text, weir_event_kind *out);   /* or "failed attempt" */

typedef struct weir_event {
    weir_event_kind kind;
    weir_state      state;      /* the job's, after the event; WEIR_STATE_ANY when it is gone */
    uint64_t        id;         /* 0: of the queue or a type, not of one job */
    const char     *type;       /* NULL: of the whole queue */
    int64_t         at;
    int32_t         attempts;
    int32_t         progress;
    uint32_t        delivery;
    uint32_t        missed;     /* events this listener lost just before, because it was too slow */
    const char     *text;       /* see WEIR_EVENTS; NULL when there is none */
    size_t          text_len;
} weir_event;

/* The events to listen to; {0}: all. */
typedef struct weir_filter {
    uint64_t    id;             /* 0: all jobs */
    const char *type;           /* NULL: all types; borrowed for the call */
    uint32_t    events;         /* bits WEIR_BIT(weir_event_kind); 0: all */
    void       *reserved[WEIR_RESERVED];
} weir_filter;

typedef struct weir_listener weir_listener;

/* Called on the queue's one callback thread, in the order in which things happened, with no lock
 * held; it may call anything but weir_close(). The event is borrowed for the call. A listener
 * that is more than WEIR_MAX_BACKLOG events behind loses the oldest (see `missed`). */
typedef void weir_event_fn(const weir_event *event, void *ctx);
enum { WEIR_MAX_BACKLOG = 65536 };

/* Listen. On success *out belongs to the caller: weir_unlisten(). Safe from any thread. */
WEIR_API weir_code weir_listen(weir_queue *q, const weir_filter *filter, weir_event_fn *fn,
                               void *ctx, weir_listener **out, weir_error *err);

/* Stop listening and free the listener. When it returns, the function is not running and will not
 * be called again, unless it is called from inside that function. NULL is fine. */
WEIR_API void weir_unlisten(weir_listener *l);

#ifdef __cplusplus
}
#endif
#endif
