/* run.c - one run of a task: hooks, handler, and what becomes of its job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "core/job.h"
#include "runtime/take_id.h"
#include "task/inner.h"

struct weir_task_run {
    weir_tasks *tasks;
    weir_task  *task;
    weir_job   *job;
    char       *said;               /* ours; NULL: nothing */
    weir_buf    result;             /* JSON; empty: none */
    bool        again;
    int64_t     again_ms;
    weir_error  refused;            /* why a call of the handler about its answer failed */
};

/* ---- what a handler answers ---- */

static weir_code say(weir_task_run *run, const char *text)
{
    free(run->said);
    run->said = text ? strdup(text) : NULL;
    return text && !run->said ? WEIR_ENOMEM : WEIR_OK;
}

weir_code weir_task_done(weir_task_run *run, const char *text, const char *result)
{
    size_t      len = result ? strlen(result) : 0, where;
    const char *why;
    if (len > WEIR_MAX_DATA - 1024)         /* with what is put around it */
        return weir__fail_field(&run->refused, WEIR_ELIMIT, "result", "%zu bytes, at most %d",
                                len, WEIR_MAX_DATA - 1024);
    if (result && !weir__json_valid(result, len, WEIR_MAX_DEPTH - 1, &where, &why))
        return weir__fail_field(&run->refused, WEIR_EINVAL, "result", "not JSON: %s at byte %zu",
                                why, where);
    weir__buf_clear(&run->result);
    weir__buf_add(&run->result, result ? result : "", len);
    run->again = false;
    return run->result.failed ? WEIR_ENOMEM : say(run, text);
}

weir_code weir_task_fail(weir_task_run *run, const char *fmt, ...)
{
    char *text;
    int   len;
    WEIR__FORMAT_NEW(text, len, fmt);
    if (len < 0)
        return WEIR_ENOMEM;
    free(run->said);
    run->said = text;
    return WEIR_EJOB;
}

weir_code weir_task_again(weir_task_run *run, int64_t delay_ms, const char *text)
{
    if (delay_ms < 0 || delay_ms > WEIR_MAX_MS)
        return weir__fail_field(&run->refused, WEIR_EINVAL, "delay_ms", "%lld, must be 0 to %lld "
                                "(WEIR_MAX_MS)", (long long)delay_ms, (long long)WEIR_MAX_MS);
    run->again = true;
    run->again_ms = delay_ms;
    return say(run, text);
}

/* ---- the end of a run ---- */

static weir_code end_done(weir_task_run *run)
{
    weir_buf b = { 0 };
    weir__buf_str(&b, "{\"ip\":");
    weir__json_string(&b, run->tasks->ip, strlen(run->tasks->ip));
    if (run->said) {
        size_t len = weir__utf8_cut(run->said, strlen(run->said), TASK_SAID_BYTES);
        weir__buf_str(&b, ",\"" TASK_SAID "\":");
        weir__json_string(&b, run->said, len);
    }
    if (run->result.len) {
        weir__buf_str(&b, ",\"result\":");
        weir__buf_add(&b, run->result.data, run->result.len);
    }
    weir__buf_char(&b, '}');
    weir_code rc = b.failed ? WEIR_ENOMEM : weir_job_done(run->job, b.data, b.len, NULL);
    weir__buf_fini(&b);
    return rc;
}

/* Ready again. The text is kept as a value, which a job may have in any state. */
static weir_code end_ready(weir_task_run *run, int64_t delay_ms, const char *said)
{
    weir_buf  b = { 0 };
    weir_code rc = WEIR_OK;
    if (said) {
        weir__json_string(&b, said, weir__utf8_cut(said, strlen(said), TASK_SAID_BYTES));
        rc = b.failed ? WEIR_ENOMEM : weir_job_set(run->job, TASK_SAID, b.data, NULL);
    }
    weir__buf_fini(&b);
    return rc ? rc : weir_job_return(run->job, delay_ms, NULL);
}

/* When a task with a schedule runs next: after its start, so that a run that was longer than the
 * distance of two firings is made up for once. */
static bool next_firing(const weir_task_run *run, int64_t *delay_ms)
{
    const weir_task *task = run->task;
    int64_t          next = 0, now = weir_now(run->tasks->q);
    if (!task->spec.schedule ||
        weir__task_next(&task->spec, task->created_at, task->started_at, &next, NULL) || !next)
        return false;
    *delay_ms = next > now ? next - now : 0;
    return true;
}

/* The row is written first: if the queue is lost then, the task does not run again. */
static void record_end(const weir_task_run *run, weir_task_state state, const char *said,
                       int64_t delay_ms)
{
    weir_task now = *run->task;
    int64_t   at = weir_now(run->tasks->q);
    if (weir_job_cancelled(run->job))
        return;
    if (!run->tasks->table) {
        weir__task_ended_here(run->tasks, run->job);
        return;
    }
    now.state = state;
    now.result_state = said;
    now.ended_at = state == WEIR_TASK_READY ? 0 : at;
    if (state == WEIR_TASK_READY)
        now.spec.run_at = at + delay_ms;
    if (state == WEIR_TASK_COMPLETED && run->result.len) {
        now.result = run->result.data;
        now.result_len = run->result.len;
    }
    if (!weir__record_update(run->tasks->table, &now, NULL))  /* else whoever follows writes it */
        weir__task_ended_here(run->tasks, run->job);
}

/* The text of its end: the handler's own, or why a call failed whose code it returned. */
static const char *said_of(const weir_task_run *run, weir_code outcome)
{
    if (outcome && outcome == run->refused.code)
        return run->refused.msg;
    return run->said ? run->said : outcome ? weir_code_text(outcome) : NULL;
}

static weir_code end_run(weir_task_run *run, weir_code outcome)
{
    const char *said = said_of(run, outcome);
    int64_t     delay_ms = run->again_ms;
    if ((!outcome && run->again) || next_firing(run, &delay_ms)) {
        record_end(run, WEIR_TASK_READY, said, delay_ms);
        return end_ready(run, delay_ms, said);
    }
    if (outcome && strcmp(said, WEIR__TTL_TEXT) == 0) {
        char delivery[16];
        snprintf(delivery, sizeof delivery, "%u", run->job->delivery);
        weir_job_set(run->job, TASK_FAILED, delivery, NULL);
    }
    record_end(run, outcome ? WEIR_TASK_FAILED : WEIR_TASK_COMPLETED, said, 0);
    return outcome ? weir_job_fail(run->job, "%s", said) : end_done(run);
}

/* The store has the task no longer as this run's, or it soon will not: what became of it? */
static weir_code lost_as(const weir_task_run *run, weir_code outcome)
{
    weir_job       *now;
    const weir_job *job = run->job;
    weir_code       rc = weir_get(run->tasks->q, job->id, &now, NULL);
    if (rc)
        return rc == WEIR_ENOENT || weir_job_cancelled(job) ? WEIR_ESTALE : outcome;
    if (now->state != WEIR_STATE_ACTIVE || now->delivery != job->delivery) {
        bool expired = now->delivery == job->delivery && now->error &&
                       strcmp(now->error, WEIR__TTL_TEXT) == 0;
        outcome = expired ? WEIR_ETIMEOUT : WEIR_ESTALE;
    }
    weir_job_free(now);
    return outcome;
}

/* The result of the handler, unless it comes too late. */
static weir_code outcome_of(const weir_task_run *run, weir_code returned)
{
    const weir_task *task = run->task;
    int64_t          timeout = task->spec.timeout_ms;
    bool late = timeout && weir_now(run->tasks->q) - task->started_at >= timeout;
    return late || weir_job_cancelled(run->job) ? lost_as(run, returned) : returned;
}

static weir_code call(weir_task_run *run, const weir_task_service *s)
{
    weir_code rc = s->before ? s->before(run, run->task, s->ctx) : WEIR_OK;
    if (!rc)
        rc = s->run(run, run->task, s->ctx);
    if (s->after)
        s->after(run->task, outcome_of(run, rc), s->ctx);
    return rc;
}

/* Not a task, or of a service that is not here: it fails, so that somebody sees it. */
static weir_code refuse(weir_job *job, const weir_task *task)
{
    return task ? weir_job_fail(job, "the service %s is not served here", task->spec.service)
                : weir_job_fail(job, "the data of the job is not a task: submit tasks with "
                                "weir_task_submit(), weir task or POST /v1/tasks");
}

static weir_code handle(weir_tasks *t, weir_job *job)
{
    weir_task_run     run = { .tasks = t, .job = job };
    weir_task_service service;
    if (!weir__task_of_job(job, true, &run.task))
        return weir_job_return(job, 1000, NULL);          /* out of memory: not now */
    weir_code rc;
    if (!run.task || !weir__task_served(t, run.task->spec.service, &service)) {
        rc = refuse(job, run.task);
    } else {
        run.task->taken = job;
        run.task->ip = t->ip;
        rc = t->table ? weir__record_update(t->table, run.task, NULL) : WEIR_OK;
        if (rc)
            rc = weir_job_return(job, 1000, NULL);       /* the table cannot be written: not now */
        else
            rc = end_run(&run, call(&run, &service));
    }
    weir_task_free(run.task);
    weir__buf_fini(&run.result);
    free(run.said);
    return rc;
}

weir_code weir__task_handle(weir_job *job, void *ctx)
{
    weir_tasks *t = ctx;
    pthread_mutex_lock(&t->lock);
    t->in_handler++;
    pthread_mutex_unlock(&t->lock);
    weir_code rc = handle(t, job);
    pthread_mutex_lock(&t->lock);
    if (--t->in_handler == 0)
        pthread_cond_broadcast(&t->quiet);
    pthread_mutex_unlock(&t->lock);
    return rc;
}

/* ---- fire ---- */

/* The store's answer to the late end of a run is no error of fire(). */
static weir_code fire_taken(weir_tasks *t, weir_job *job, weir_error *err)
{
    weir_code rc = weir__task_handle(job, t);
    weir_job_free(job);
    if (!rc || rc == WEIR_EJOB || rc == WEIR_ESTALE)
        return WEIR_OK;
    return weir_fail(err, rc, "the outcome of a task was not taken: %s", weir_code_text(rc));
}

weir_code weir_task_fire(weir_tasks *t, size_t max, size_t *fired, weir_error *err)
{
    char    **types;
    size_t    count = 0, n = 1;
    weir_code rc = weir__task_types(t, &types, err);
    while (!rc && n && (!max || count < max)) {
        weir_job   *job;
        weir_taking what = { .types = (const char *const *)types, .n = 1,
                             .lease_ms = WEIR_TASK_LEASE_MS,
                             .worker = *t->worker ? t->worker : NULL };
        rc = weir_take(t->q, &what, &job, &n, err);
        if (rc || !n)
            break;
        rc = fire_taken(t, job, err);
        count++;
    }
    weir__task_types_free(types);
    if (fired)
        *fired = count;
    return rc;
}

weir_code weir_task_fire_id(weir_tasks *t, const char *id, weir_error *err)
{
    weir_task        *task;
    weir_job         *job;
    weir_task_service service;
    weir_code         rc = weir_task_find(t, id, &task, err);
    if (rc)
        return rc;
    if (!weir__task_served(t, task->spec.service, &service))
        rc = weir__fail_field(err, WEIR_EINVAL, "service", "%s is not served here; "
                              "weir_task_promote() has others do it", task->spec.service);
    else
        rc = weir__take_id(t->q, task->job, WEIR_TASK_LEASE_MS, *t->worker ? t->worker : NULL,
                           &job, err);
    if (rc == WEIR_ESTATE && task->state != WEIR_TASK_READY)
        rc = weir__task_not_ready(task, err);
    weir_task_free(task);
    return rc ? rc : fire_taken(t, job, err);
}

/* ---- invoke ---- */

/* The task as it is now, which has not ended. */
static weir_code unfinished(weir_tasks *t, const char *id, weir_task **out, weir_error *err)
{
    weir_code rc = weir_task_find(t, id, out, err);
    if (!rc)
        (*out)->unfinished = (*out)->state == WEIR_TASK_READY || (*out)->state == WEIR_TASK_RUNNING;
    return rc;
}

weir_code weir_task_invoke(weir_tasks *t, const weir_task_spec *spec, int64_t timeout_ms,
                           weir_task **out, weir_error *err)
{
    weir_task_submitted added;
    weir_job           *job;
    *out = NULL;
    weir_code rc = weir_task_submit(t, spec, 1, &added, err);
    if (rc)
        return rc;
    rc = weir_wait(t->q, added.job, timeout_ms, &job, err);
    if (rc == WEIR_ETIMEOUT)
        return unfinished(t, added.id, out, err);
    if (!rc && !weir__task_of_job(job, false, out))
        rc = weir_fail(err, WEIR_ENOMEM, "task: out of memory");
    return rc;
}
