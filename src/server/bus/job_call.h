/* job_call.h - the inside of the job service: one call of an action, from its message to its reply.
 * job_service.c has the table of actions, job_lists.c those that read many jobs. */
#ifndef WEIR_SERVER_JOB_CALL_H
#define WEIR_SERVER_JOB_CALL_H

#include "base/named.h"
#include "server/bus/job_service.h"
#include "server/kue/kue.h"
#include "weir/remote.h"

/* Arguments of all actions, by their names; those of "job" are read, too. */
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

/* Reply with c->out, or with a failure, and release the call. */
void job_call_reply(job_call *c);
void job_call_fail(job_call *c, int code, const char *fmt, ...) WEIR_PRINTF(3, 4);
/* When the call of the store is done: c->done(c), then the reply. */
void job_call_await(job_call *c, weir_code started, void (*done)(job_call *c));

/* job_lists.c */
void job_call_log(job_call *c);
void job_call_ids(job_call *c);
void job_call_range(job_call *c);           /* all */
void job_call_state_range(job_call *c);
void job_call_type_range(job_call *c);

#endif
