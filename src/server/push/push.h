/* push.h - HTTP push workers: jobs of some types are taken and posted to a URL, and what the
 * receiver answers is how they end (docs/http-push.md has the rules).
 *
 * One thread does all of it with libcurl's multi interface, and owns the targets. Requests about
 * targets are posted to it, and so is every answer of the library. */
#ifndef WEIR_SERVER_PUSH_H
#define WEIR_SERVER_PUSH_H

#include "server/http/loop.h"
#include "server/push/push_targets.h"
#include "server/server.h"

typedef struct srv_push srv_push;

/* Read the targets (push.json in opt->data_dir; without one they are kept in memory) and begin.
 * `opt` and `q` stay the caller's and must last. On success *out belongs to the caller:
 * srv_push_stop(), then srv_push_destroy(). Errors: as the file, which they name. */
struct srv_workers;
weir_code srv_push_start(srv_push **out, weir_queue *q, struct srv_workers *workers,
                         const srv_options *opt, weir_error *err);

/* Take no more jobs; returns at once. Requests under way have SRV_DRAIN_MS from here. */
void srv_push_drain(srv_push *p);

/* The same, and wait for them. Requests that are not answered by then are broken off and their jobs
 * returned; the receiver may have done them, and gets them again. */
void srv_push_stop(srv_push *p);
void srv_push_destroy(srv_push *p);             /* NULL is fine */

/* ---- what is asked of it ---- */

typedef struct srv_push_ask srv_push_ask;
struct srv_push_ask {
    weir_inbox_task task;         /* first; this and the next are srv_push_post()'s */
    srv_push     *push;
    void        (*run)(srv_push *p, srv_push_ask *ask);     /* one of the three below */
    const char   *name;         /* remove */
    const srv_push_target *target;                          /* put */
    srv_loop     *loop;         /* where `done` runs when it was done */
    weir_inbox_task done;
    weir_error    err;          /* out; code WEIR_OK: it was done */
    bool          made;         /* out, put: there was none of this name */
    weir_buf      json;         /* out: all targets, or the one; weir__buf_fini() */
};

void srv_push_list(srv_push *p, srv_push_ask *ask);
/* As a new target, or in place of the target with its name, whose secret stays if none is given.
 * Ends a pause, and what it was waiting for. Errors: WEIR_EINVAL, WEIR_ELIMIT, and those of the
 * file. */
void srv_push_put(srv_push *p, srv_push_ask *ask);
/* Error: WEIR_ENOENT, and those of the file. Requests under way are waited for. */
void srv_push_remove(srv_push *p, srv_push_ask *ask);

/* Have it done. Any thread. */
void srv_push_post(srv_push *p, srv_push_ask *ask);

#endif
