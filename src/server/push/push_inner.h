/* push_inner.h - the inside of push: push.c is the thread, push_admin.c the targets and their file,
 * push_work.c takes jobs and ends them, push_request.c is one request and its answer.
 *
 * All of it belongs to the push thread, but for what is under the lock. */
#ifndef WEIR_SERVER_PUSH_INNER_H
#define WEIR_SERVER_PUSH_INNER_H

#include <netinet/in.h>

#include "base/clock.h"
#include "base/curl.h"
#include "base/inbox.h"
#include "server/push/push.h"
#include "server/live/workers.h"

enum {
    PUSH_MARGIN_MS      = 10 * 1000,        /* by which a lease is longer than a request may be */
    PUSH_CONNECT_MS     = 10 * 1000,        /* to reach the receiver */
    PUSH_BACKOFF_MS     = 1000,             /* after it could not be reached; then twice ... */
    PUSH_MAX_BACKOFF_MS = 60 * 1000,        /* as long each time, up to this */
    PUSH_MAX_RETRY_MS   = 60 * 60 * 1000,   /* of a Retry-After */
    PUSH_RETRY_MS       = 1000,             /* after the store could not take an outcome */
    PUSH_REFUSED_MS     = 20,               /* after the gate of the target was closed */
    PUSH_MAX_LINE       = 200               /* bytes of an answer that go into a job's error */
};

/* ---- one request ---- */

/* The outcome of the job. */
typedef enum push_fate {
    PUSH_DONE,                  /* text: the result; none: without one */
    PUSH_FAIL,                  /* text: why */
    PUSH_RETURN,               /* as if it had never been taken */
    PUSH_LOST,                  /* the receiver died with it */
    PUSH_LATER                  /* the receiver will finish it */
} push_fate;

/* The next state of the target. */
typedef enum push_effect {
    PUSH_FINE,
    PUSH_BACK_OFF,              /* no more for now */
    PUSH_GONE                   /* no more at all */
} push_effect;

typedef struct push_verdict {
    push_fate   fate;
    push_effect effect;
    int64_t     wait_ms;        /* PUSH_BACK_OFF: so long; 0: longer each time */
    weir_buf    text;
    weir_error  why;            /* of an effect */
} push_verdict;

typedef struct push_request {
    CURL              *easy;
    struct curl_slist *headers;
    int64_t            timeout_ms;
    bool               guarded;         /* to public addresses alone */
    const char        *refused;         /* kind of the address that was not connected to */
    char               refused_addr[INET6_ADDRSTRLEN];
    weir_buf           body;            /* of the answer */
    bool               too_long;
    char               error[CURL_ERROR_SIZE];
} push_request;

/* Make the request ready for curl_multi_add_handle(). The job stays the caller's and must last as
 * long. False: out of memory. push_request_fini() either way. */
bool push_request_init(push_request *r, const srv_push_target *t, const weir_job *job, int64_t now,
                       bool guarded);
void push_request_fini(push_request *r);

/* It is over. *out is zero before; the caller releases out->text. */
void push_judge(push_request *r, CURLcode rc, push_verdict *out);

/* "t=1700000000,v2=HEX", with a second one of an old secret: docs/http-push.md says over what.
 * `type` is as in its header. False: out of memory. */
enum { PUSH_SIGNATURE = 192 };
bool push_sign(char out[PUSH_SIGNATURE], const srv_push_target *t, int64_t at, const char *type,
               const weir_job *job);

/* ---- all of them ---- */

typedef struct push_target {
    struct push_target *next;
    srv_push_target    *is;         /* under the lock to change */
    bool                woken;      /* under the lock: there may be jobs for it */
    bool                removed;    /* waits for its last request */
    bool                asking;     /* a take is under way */
    size_t              running;    /* requests, and jobs that are asked for */
    unsigned            failures;   /* in a row */
    int64_t             ready_ms;   /* monotonic: not before */
    int64_t             refused_ms; /* monotonic: nor before this, for a suspect's sake */
    weir_error          why;        /* of the last trouble; code WEIR_OK: none since */
    int64_t             why_at;
} push_target;

typedef struct push_delivery push_delivery;

struct srv_push {
    weir_queue        *q;
    srv_workers       *workers;     /* a target is a worker, with a gate of its own */
    const srv_options *opt;
    char              *path;        /* of the file; NULL: none */
    CURLM             *multi;
    weir_listener     *listener;    /* while there are targets */
    push_target       *targets;     /* the list under the lock to change */
    push_delivery     *under_way;   /* requests */
    push_delivery     *again;       /* outcomes that the store could not take yet */
    int64_t            again_ms;    /* monotonic: when to try those */
    size_t             calls;       /* of the library that are not done */
    int64_t            drain_ms;    /* monotonic: when requests are broken off; 0: not stopping */
    pthread_t          thread;
    bool               started;

    pthread_mutex_t    lock;        /* of all that follows */
    weir_inbox         inbox;       /* what others ask, and what the library has done */
    bool               drain, ended;
};

/* push.c */
void push_post(srv_push *p, weir_inbox_task *task);       /* any thread, while p->calls counts it */
/* Listen to events if targets exist, or will; not otherwise. */
weir_code push_listen(srv_push *p, bool needed, weir_error *err);

/* push_admin.c */
weir_code push_load(srv_push *p, weir_error *err);
void push_sweep(srv_push *p);                       /* targets that were removed and are idle */
void push_pause(srv_push *p, push_target *t, const weir_error *why);
void push_target_free(push_target *t);

/* push_work.c */
void push_look_at_targets(srv_push *p);             /* take jobs for who can have some */
void push_look_at_requests(srv_push *p);
void push_settle_again(srv_push *p);
void push_break_off(srv_push *p);                   /* all requests, at once */
size_t push_room(const srv_push *p, const push_target *t);      /* jobs that it may have now */

#endif
