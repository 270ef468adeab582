/* job_work.c - what a worker behind a bridge does with the job service: take, renew, progress,
 * done, failed. Jobs that were taken are remembered, so that they can be ended by their address. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/bus/job_call.h"

/* ---- jobs that were taken ---- */

static void forget_taken(srv_job_service *s, taken *t)      /* locked */
{
    weir__names_remove(&s->taken, &t->named);
    weir__list_remove(&s->oldest, &t->link);
    s->n_taken--;
    free(t);
}

static void remember_taken(srv_job_service *s, const weir_job *job)
{
    size_t      len = 0;
    const char *value = srv_vertx_address(job, &len);
    char        text[6 * SRV_MAX_ADDRESS + 3];
    taken      *t = value && *value == '"' && len < sizeof text ? calloc(1, sizeof *t) : NULL;
    if (!t || !weir__json_text((weir_json_piece){ value, len }, text, &len) ||
        len > SRV_MAX_ADDRESS) {
        free(t);
        return;
    }
    strcpy(t->address, text);
    t->id = job->id;
    t->delivery = job->delivery;
    pthread_mutex_lock(&s->lock);
    taken *old = weir__names_get(&s->taken, t->address);
    if (old)
        forget_taken(s, old);
    if (weir__names_put(&s->taken, &t->named, t->address)) {
        weir__list_append(&s->oldest, &t->link);
        if (++s->n_taken > SRV_JOBS_TAKEN)
            forget_taken(s, WEIR_OF(s->oldest.first, taken, link));
    } else {
        free(t);
    }
    pthread_mutex_unlock(&s->lock);
}

bool job_taken_find(job_call *c, const char *address)
{
    srv_job_service *s = c->s;
    pthread_mutex_lock(&s->lock);
    taken *t = weir__names_get(&s->taken, address);
    if (t) {
        c->args.id = (int64_t)t->id;
        c->args.delivery = t->delivery;
        forget_taken(s, t);
    }
    pthread_mutex_unlock(&s->lock);
    return t;
}

void job_taken_fini(srv_job_service *s)
{
    while (s->oldest.first)
        forget_taken(s, WEIR_OF(s->oldest.first, taken, link));
    weir__names_fini(&s->taken);
}

/* ---- actions ---- */

static void took(job_call *c)
{
    if (job_call_failed(c))
        return;
    if (!c->n) {
        job_call_reply_null(c);
        return;
    }
    remember_taken(c->s, c->job);
    srv_vertx_job(&c->out, c->job);
    if (!c->out.failed) {
        c->out.len--;                       /* its brace: one more member */
        weir__buf_printf(&c->out, ",\"delivery\":%" PRIu32 "}", c->job->delivery);
    }
    job_call_reply(c);
}

void job_call_take(job_call *c)
{
    const char *types[] = { c->args.type, NULL };
    weir_taking what = { .types = types, .n = 1, .remote = true, .lease_ms = c->args.lease_ms,
                         .worker = c->args.worker };
    job_call_await(c, weir_take_async(c->q, &what, &c->job, &c->n, &c->future, &c->err), took);
}

/* The delivery that the caller means: the given one, or the job's present delivery. False: it
 * failed. */
static bool find_delivery(job_call *c)
{
    weir_job *job;
    if (c->args.delivery)
        return true;
    if (c->args.id <= 0 || weir_get(c->q, (uint64_t)c->args.id, &job, &c->err)) {
        job_call_fail(c, JOB_CALL_FAILED, "%s", c->args.id <= 0 ? "job_not_exist" : c->err.msg);
        return false;
    }
    bool active = job->state == WEIR_STATE_ACTIVE;
    c->args.delivery = job->delivery;
    weir_job_free(job);
    if (!active)
        job_call_fail(c, JOB_CALL_FAILED, "job %" PRId64 " is not active", c->args.id);
    return active;
}

static void renewed(job_call *c)
{
    if (job_call_failed(c))
        return;
    if (c->renewed.err.code)
        job_call_fail(c, JOB_CALL_FAILED, "job %" PRIu64 " is no longer this worker's",
                      (uint64_t)c->args.id);
    else
        job_call_reply_null(c);
}

void job_call_renew(job_call *c)
{
    if (!find_delivery(c))
        return;
    weir_lease lease = { .id = (uint64_t)c->args.id, .delivery = c->args.delivery,
                         .lease_ms = c->args.lease_ms };
    job_call_await(c, weir_renew_async(c->q, &lease, 1, &c->renewed, &c->future, &c->err), renewed);
}

static void progressed(job_call *c)
{
    if (!job_call_failed(c))
        job_call_reply_null(c);
}

void job_call_progress(job_call *c)
{
    const job_args *a = &c->args;
    if (a->total <= 0 || a->complete < 0) {
        job_call_fail(c, JOB_CALL_WRONG, "total: must be more than 0, and complete at least 0");
        return;
    }
    if (!find_delivery(c))
        return;
    double percent = a->complete >= a->total ? 100
                                             : (double)a->complete * 100 / (double)a->total;
    job_call_await(c, weir_progress_async(c->q, (uint64_t)a->id, a->delivery, (int32_t)percent,
                                          a->data.text, a->data.len, &c->future, &c->err),
                   progressed);
}

static void ended(job_call *c)
{
    if (c->ended.err.code && !c->err.code)
        c->err = c->ended.err;
    if (job_call_failed(c))
        return;
    weir__buf_printf(&c->out, "\"%s\"", c->ended.state == WEIR_STATE_ANY
                                            ? "removed" : weir_state_name(c->ended.state));
    job_call_reply(c);
}

static void end_job(job_call *c, weir_outcome outcome, const char *text, size_t len)
{
    if (!find_delivery(c))
        return;
    c->ending = (weir_ending){ .id = (uint64_t)c->args.id, .delivery = c->args.delivery,
                               .outcome = outcome, .text = text, .len = len };
    job_call_await(c, weir_finish_async(c->q, &c->ending, 1, &c->ended, &c->future, &c->err),
                   ended);
}

void job_call_done(job_call *c)
{
    end_job(c, WEIR_OUTCOME_DONE, c->args.result.text, c->args.result.len);
}

void job_call_done_fail(job_call *c)
{
    end_job(c, WEIR_OUTCOME_FAIL, c->args.message, 0);
}

