/* take.h - jobs on their way to a remote worker: what POST /v1/take has in common with the `take`
 * of POST /v1/finish. */
#ifndef WEIR_SERVER_TAKE_H
#define WEIR_SERVER_TAKE_H

#include "core/fields.h"
#include "core/gate.h"
#include "server/live/longpoll.h"
#include "server/http/request.h"

/* The request of a worker. */
typedef struct srv_take_request {
    weir_texts  types;
    int64_t     n, wait_ms, lease_ms;
    const char *worker, *when;
    bool        busy;
} srv_take_request;
extern const weir_field srv_next_fields[];      /* all but the wait */

typedef struct srv_taking {
    srv_longpoll poll;              /* first: it is found by it */
    srv_request *r;
    weir_taking  what;
    weir_job   **jobs;
    size_t       n_jobs;
    weir_pass    pass;              /* of the worker's gate: workers.h */
    bool         waits;             /* a suspect, for which the worker was too busy */
    bool         busy;              /* the worker says so */
    bool         polls;             /* it waits until jobs come */
    bool         rests;             /* and does nothing else just now */
    bool         over;              /* but no longer */
} srv_taking;

/* May it, and is there room for the jobs? False: it was answered. */
bool srv_taking_init(srv_taking *t, srv_request *r, srv_take_request *w);

/* May its worker take now? False: not now. */
bool srv_taking_enter(srv_taking *t, bool only_alone);
/* The answer of the store is there. */
void srv_taking_took(srv_taking *t, bool failed);

/* A job, and the trace context of this execution if it has one. */
void srv_taken_json(weir_buf *out, const weir_job *job);

/* Answer with the jobs, as the last member of the object that is begun in `out`. When there is
 * nobody to give them to, or no memory, they are given back, and `again` shall answer without. */
void srv_taking_give(srv_taking *t, int status, weir_buf *out, srv_then *again);

#endif
