/* workqueues.h - the work queues of a server: from its settings, and made while it served. The
 * latter are kept in workqueues.json in the data directory and start with the server.
 *
 * To start or stop a work queue may wait for the store. So the server starts and stops work queues
 * on a thread of their own, and reports back to the loop of the request. */
#ifndef WEIR_SERVER_WORKQUEUES_H
#define WEIR_SERVER_WORKQUEUES_H

#include "base/buf.h"
#include "core/fields.h"
#include "server/http/loop.h"
#include "server/server.h"
#include "weir/workqueue.h"

enum {
    SRV_MAX_WORKQUEUES = 100,
    SRV_MAX_PROCESS_TIMEOUT_MS = 7 * 24 * 3600 * 1000
};

typedef struct srv_workqueues srv_workqueues;

/* Start the work queues of opt->bus and of the file. `bus`, `q` and `opt` must stay until
 * srv_workqueues_destroy(). On success *out belongs to the caller. Errors: those of
 * weir_workqueue_open() and of the file. */
weir_code srv_workqueues_create(srv_workqueues **out, weir_bus *bus, weir_queue *q,
                                const srv_options *opt, weir_error *err);
/* Stop them all. Waits for the store. NULL is fine. */
void srv_workqueues_destroy(srv_workqueues *w);

/* ---- questions and changes ---- */

typedef struct srv_workqueue_ask srv_workqueue_ask;
struct srv_workqueue_servers;
typedef void srv_workqueue_fn(srv_workqueues *w, srv_workqueue_ask *ask);
struct srv_workqueue_ask {
    weir_inbox_task   task;         /* first; the module's own */
    srv_workqueues   *all;          /* the module's own, as the next two */
    struct srv_workqueue_servers *servers;
    weir_buf          others;       /* what other servers have: see workqueue_servers.h */
    srv_workqueue_fn *run;          /* one of those below */
    srv_workqueue     is;           /* put: the settings; get, remove: the address alone */
    srv_loop         *loop;         /* where `done` runs afterwards; NULL: on the same thread */
    weir_inbox_task   done;
    weir_error        err;          /* out; code WEIR_OK: it was done */
    bool              made;         /* out, put: there was none at this address */
    weir_buf          json;         /* out; weir__buf_fini() */
};

/* All of them, {"work_queues":[...]}, or one: settings and numbers of each. Errors: WEIR_ENOENT,
 * those of the store, which has the numbers of persistent ones. */
srv_workqueue_fn srv_workqueues_list, srv_workqueues_get;
/* Start one. If it runs already with these settings, nothing changes. Errors: WEIR_EINVAL (a
 * collection, but not persistent), WEIR_ESTATE (it runs with other settings), WEIR_ELIMIT
 * (SRV_MAX_WORKQUEUES), those of weir_workqueue_open() and of the file. */
srv_workqueue_fn srv_workqueues_put;
/* Stop one. Errors: WEIR_ENOENT, WEIR_ESTATE (it is in the settings of the server), those of the
 * file. */
srv_workqueue_fn srv_workqueues_remove;

/* Have it done, by this server alone: workqueue_servers.h asks all. Any thread. */
void srv_workqueues_post(srv_workqueues *w, srv_workqueue_ask *ask);
void srv_workqueues_finish(srv_workqueue_ask *ask);     /* it is done: run `done` on its loop */

weir_code srv_workqueue_unknown(const char *address, weir_error *err);      /* WEIR_ENOENT */
weir_code srv_workqueue_in_settings(weir_error *err);                       /* WEIR_ESTATE */

/* ---- their settings (workqueue_file.c) ---- */

extern const weir_field srv_workqueue_fields[];         /* into srv_workqueue; without address */
extern const weir_field srv_workqueue_args[];           /* with the address, which is needed */

/* Read {"work_queues":[...]} with memory of `arena`. Beside the names of the API the seed's
 * `persistor_address` is known: whatever it is, the work queue is persistent. Errors: WEIR_EINVAL,
 * WEIR_ELIMIT, WEIR_ENOMEM; they name the member. */
weir_code srv_workqueues_parse(const char *text, size_t len, weir_arena *arena,
                               srv_workqueue **out, size_t *n, weir_error *err);
/* Append the settings as members of an object, without a comma at the end. */
void srv_workqueue_write(weir_buf *out, const srv_workqueue *is);
bool srv_workqueue_equal(const srv_workqueue *a, const srv_workqueue *b);

#endif
