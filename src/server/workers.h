/* workers.h - the workers this server has seen: who takes jobs of which types, since when, and who
 * waits for some now. Remote ones call; of all others, in this process and elsewhere, the events
 * tell when they start a job. What a worker holds is not kept here, since the store knows. Any
 * thread. */
#ifndef WEIR_SERVER_WORKERS_H
#define WEIR_SERVER_WORKERS_H

#include "base/buf.h"
#include "server/request.h"
#include "weir/queue.h"

enum {
    SRV_MAX_WORKERS      = 4096,            /* then who was not seen longest is forgotten */
    SRV_WORKER_FORGET_MS = 3600 * 1000,     /* who was not seen for so long, too */
    SRV_WORKER_TYPES     = 64               /* types that are learned of a worker from events */
};

typedef struct srv_workers srv_workers;

/* `q` must outlive it. On success *out belongs to the caller: srv_workers_destroy(). */
weir_code srv_workers_create(srv_workers **out, weir_queue *q, weir_error *err);
void srv_workers_destroy(srv_workers *ws);      /* NULL is fine; not on the callback thread */

/* It has called, at `now`. `types` (NULL at the end) are those it takes; NULL: it did not say. */
void srv_workers_seen(srv_workers *ws, const char *name, const char *const *types, int64_t now);

/* It begins (+1) or ends (-1) to wait for jobs. */
void srv_workers_wait(srv_workers *ws, const char *name, int by, int64_t now);

/* Called for each, last seen last, with the lock held. */
typedef struct srv_worker {
    const char        *name;
    const char *const *types;               /* NULL at the end */
    int64_t            first_seen_at, last_seen_at;
    int                waiting;             /* calls that wait */
} srv_worker;
void srv_workers_each(srv_workers *ws, int64_t now, void (*fn)(const srv_worker *w, void *ctx),
                      void *ctx);

/* What a worker that has not said its name is called: "token@address". */
const char *srv_worker_name(srv_request *r);

#endif
