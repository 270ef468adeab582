/* workers.h - the workers this server has seen: who takes jobs of which types, since when, and who
 * waits for some now. Remote workers call this server; of all others, in this process and
 * elsewhere, the `start` events are used. Any thread.
 *
 * A remote worker is a process of its own, with a gate (core/gate.h): a job whose worker died is
 * given to it alone. Its jobs are the jobs that it took here and has not ended here, as long as
 * their leases last. */
#ifndef WEIR_SERVER_WORKERS_H
#define WEIR_SERVER_WORKERS_H

#include "base/buf.h"
#include "core/gate.h"
#include "server/live/longpoll.h"
#include "server/http/request.h"
#include "weir/remote.h"

enum {
    SRV_MAX_WORKERS      = 4096,            /* then who was not seen longest is forgotten */
    SRV_WORKER_FORGET_MS = 3600 * 1000,     /* a worker not seen for this long is forgotten, too */
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

/* ---- gates ---- */

/* May it take now, and as what? only_alone: see weir__gate_enter(). `poll` (NULL: none) is woken
 * once it may after all, until srv_workers_unwait(). Out of memory: as if it had nothing. */
weir_pass srv_workers_enter(srv_workers *ws, const char *name, bool only_alone, srv_longpoll *poll);
void srv_workers_unwait(srv_workers *ws, srv_longpoll *poll);
/* Must it finish what it has first? */
bool srv_workers_closed(srv_workers *ws, const char *name);

/* The answer to its take. */
typedef struct srv_taken {
    weir_pass        pass;
    bool             failed, waits;
    weir_job *const *jobs;
    size_t           n;
    int64_t          lease_ms;
} srv_taken;
void srv_workers_took(srv_workers *ws, const char *name, const srv_taken *t);

/* A delivery has ended, or was given back; or has a new lease. */
void srv_workers_ended(srv_workers *ws, uint64_t id, uint32_t delivery);
void srv_workers_renewed(srv_workers *ws, uint64_t id, uint32_t delivery, int64_t lease_ms);

/* Called for each, last seen last, with the lock held. */
typedef struct srv_worker {
    const char        *name;
    const char *const *types;               /* NULL at the end */
    int64_t            first_seen_at, last_seen_at;
    int                waiting;             /* calls that wait */
} srv_worker;
void srv_workers_each(srv_workers *ws, int64_t now, void (*fn)(const srv_worker *w, void *ctx),
                      void *ctx);

/* The name of a worker that gave none: "token@address". */
const char *srv_worker_name(srv_request *r);

#endif
