/* job_call.h - the inside of the job service: one call of an action, from its message to its reply.
 * job_service.c has the table of actions, job_lists.c the actions that read many jobs, and
 * job_work.c the actions of workers. job_ends.c has the messages that end a job by its address. */
#ifndef WEIR_SERVER_JOB_CALL_H
#define WEIR_SERVER_JOB_CALL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "base/named.h"
#include "server/bus/job_service.h"
#include "server/http/loop.h"
#include "server/kue/kue.h"
#include "weir/remote.h"

struct srv_job_service {
    weir_bus        *bus;
    weir_queue      *q;
    weir_mailbox    *mb;
    srv_loop        *loop;              /* its thread handles the messages */
    weir_service    *service;
    weir_consumer   *ends;              /* done and done_fail */
    weir_consumer   *others;            /* messages of other servers; NULL: no others */
    weir_inbox_task  task;              /* runs the mailbox on the loop ... */
    atomic_bool      posted, closing;   /* ... soon */
    pthread_mutex_t  lock;              /* guards what follows */
    pthread_cond_t   changed;
    size_t           calls;             /* that wait for the store or for another server */
    weir_names       taken;
    weir_dlist       oldest;
    size_t           n_taken;
    weir_dlist       asks;              /* calls that wait for another server; the thread's own */
};

/* A job that was taken through the service: by its address it can be ended. */
typedef struct taken {
    weir_named named;
    weir_link  link;
    uint64_t   id;
    uint32_t   delivery;
    char       address[SRV_MAX_ADDRESS + 1];
} taken;

/* Arguments of all actions, by their names; members of "job" are read, too. */
typedef struct job_args {
    int64_t         id, from, to, complete, total, lease_ms;
    uint32_t        delivery;
    const char     *type, *state, *order, *message, *worker;
    weir_json_piece job, data, result;
    bool            has_id, has_from, has_to;
} job_args;

typedef struct job_call job_call;
struct job_call {
    srv_job_service *s;
    weir_queue      *q;
    weir_message    *m;
    job_args         args;
    weir_arena       arena;
    void           (*done)(job_call *c);    /* writes the reply to `out`; err.code is 0 */
    weir_future     *future;
    weir_error       err;
    weir_buf         out;
    weir_state       state;                 /* of args.state */
    /* what the store returns */
    weir_job        *job;
    weir_stats      *stats;
    weir_added       added;
    weir_ending      ending;
    weir_ended       ended;
    weir_renewed     renewed;
    uint64_t         count;
    size_t           n;
    bool             exists;
};

enum { JOB_CALL_FAILED = -1, JOB_CALL_WRONG = 500 };    /* failure codes, as Vert.x Kue has them */

/* Begin a call. NULL: out of memory, and the message was answered. */
job_call *job_call_open(srv_job_service *s, weir_message *m);
/* Read the arguments; `needs` is for job_service.c, else 0. False: the call has failed. */
bool job_call_read_args(job_call *c, unsigned needs);
/* Reply with c->out, or with a failure, and release the call. */
void job_call_reply(job_call *c);
void job_call_fail(job_call *c, int code, const char *fmt, ...) WEIR_PRINTF(3, 4);
void job_call_reply_null(job_call *c);
/* Has the call of the store failed? Then so has the action. */
bool job_call_failed(job_call *c);
/* When the call of the store is done: c->done(c), then the reply. */
void job_call_await(job_call *c, weir_code started, void (*done)(job_call *c));

/* job_lists.c */
void job_call_log(job_call *c);
void job_call_ids(job_call *c);
void job_call_range(job_call *c);           /* all */
void job_call_state_range(job_call *c);
void job_call_type_range(job_call *c);

/* job_work.c */
void job_call_take(job_call *c);
void job_call_renew(job_call *c);
void job_call_progress(job_call *c);
void job_call_done(job_call *c);
void job_call_done_fail(job_call *c);
/* Set id and delivery of the job with this address, and forget it. False: it is unknown. */
bool job_taken_find(job_call *c, const char *address);
void job_taken_fini(srv_job_service *s);

/* job_ends.c */
weir_code job_ends_open(srv_job_service *s, weir_error *err);
void job_ends_close(srv_job_service *s);
void job_ends_drop(srv_job_service *s);     /* calls that wait, once the thread has ended */

#endif
