/* api.h - what the handlers of API v1 share: who may touch which job, and how jobs are answered. */
#ifndef WEIR_SERVER_API_H
#define WEIR_SERVER_API_H

#include "core/job.h"
#include "op/op.h"
#include "server/http/request.h"

/* May the caller do this to jobs of its own types, or to all if its token is bound to none? False:
 * it was answered with 403. */
bool srv_allow_own(srv_request *r, unsigned role);

/* The same for what can be done to one type or to all, `*type` NULL. A token of one type means that
 * type; with a token of several, the caller has to name one. False: it was answered with 403. */
bool srv_allow_scope(srv_request *r, unsigned role, const char **type);

/* Leave the types of the caller's token alone in *stats, with their sum. False: out of memory. */
bool srv_own_stats(const srv_request *r, weir_stats **stats);
/* The same for the answer of an operation that worked. */
bool srv_own_answer(const srv_request *r, weir_op *op);

/* The job {id} of the path, which the caller must be allowed to touch: then(r, id) runs. A token
 * that is bound to types does not see other jobs (404), so for it the job is looked at first. */
void srv_on_job(srv_request *r, unsigned role, void (*then)(srv_request *r, uint64_t id));

/* The handler of a route that is about the job {id}. */
#define SRV_ON_JOB(handler, role, then)                                                           \
    static void handler(srv_request *r)                                                           \
    {                                                                                             \
        srv_on_job(r, role, then);                                                                \
    }

/* Answer with the error of a call. False: none. */
bool srv_failed(srv_request *r, weir_code code, const weir_error *err);

/* The same for an answer in parts: if some were sent, it is cut off. */
bool srv_part_failed(srv_request *r, weir_code code, const weir_error *err);
/* A call without an answer has ended: 204, or its error. */
srv_then srv_reply_done;

/* Answer with a job, and release it. */
void srv_reply_job(srv_request *r, int status, weir_job *job);
/* Look at a job and answer with it: whoever may do that was asked before. */
void srv_reply_job_now(srv_request *r, int status, uint64_t id);

/* Wait until the job has ended, at most `ms`: 200 with the job, or 202 with the job as it is. If
 * the job was removed, gone(r) answers; NULL: 404. */
void srv_reply_ended(srv_request *r, uint64_t id, int64_t ms, srv_handler *gone);

/* {"code":"forbidden","message":"...","field":"..."}: a part of an answer, as srv_error_json(). */
void srv_forbidden_json(weir_buf *out, const char *message, const char *field);

/* {"id":7,"state":"inactive" -- the end is up to the caller. */
void srv_id_state_json(weir_buf *out, uint64_t id, weir_state state);

/* Where a page ends, as text: "RANK.ID", when it is written in quotes. False: no such text. */
void srv_cursor_write(weir_buf *out, const weir_cursor *c);
bool srv_cursor_read(const char *text, weir_cursor *out);

/* The data that a handler keeps until its answer. False: out of memory, and it was answered. */
#define SRV_STATE(r, st) srv_state(r, (void **)&(st), sizeof *(st))
bool srv_state(srv_request *r, void **st, size_t size);

#endif
