/* push_work.c - jobs on their way to a target: taking them, sending them, and sending the store
 * what became of them.
 *
 *     take ──► request ──► outcome to the store ──► gone
 *                 ├── could not be reached, or asks for peace: returned, the target backs off
 *                 └── the connection broke: lost, as with any worker that dies; it backs off, too
 *
 * A target is a worker that may die with what it has, so that suspects are posted alone: see
 * srv_workers_enter(). Jobs that it has accepted for later count, too.
 *
 * No more jobs are taken for a target than it has room for requests, so that none waits here with
 * its lease running. `woken` says that there may be jobs for it: an event sets it, asking clears
 * it, and an answer with as many jobs as were asked for sets it again. So nothing is polled.
 *
 * The lease of a job is longer than its request may take by PUSH_MARGIN_MS, which is the time for
 * what comes before and after it. */
#include <stdio.h>
#include <stdlib.h>

#include "core/job.h"
#include "server/push/push_inner.h"

/* A job from its taking to its end. */
struct push_delivery {
    weir_inbox_task task;               /* first */
    srv_push       *p;
    push_target    *target;             /* while the request is under way */
    push_delivery  *next, **link;
    weir_job       *job;
    push_request    request;
    push_verdict    verdict;
    int64_t         later_ms;
    weir_future    *future;             /* of the outcome ... */
    weir_error      err;                /* ... and its answers */
    weir_ended      ended;
    weir_renewed    renewed;
};

/* A question for jobs. */
typedef struct asking {
    weir_inbox_task task;                  /* first */
    srv_push    *p;
    push_target *target;
    weir_future *future;
    weir_error   err;
    int64_t      asked_ms;
    weir_pass    pass;
    bool         waits;                 /* a suspect does */
    size_t       n, n_out;
    weir_job    *jobs[SRV_PUSH_MAX_CONCURRENCY];
} asking;

enum { WORKER_NAME = sizeof "push:" + SRV_PUSH_MAX_NAME };

static const char *worker_name(const push_target *t, char out[WORKER_NAME])
{
    snprintf(out, WORKER_NAME, "push:%s", t->is->name);
    return out;
}

static void link_in(push_delivery **list, push_delivery *d)
{
    d->next = *list;
    if (d->next)
        d->next->link = &d->next;
    d->link = list;
    *list = d;
}

static void unlink_from(push_delivery *d)
{
    *d->link = d->next;
    if (d->next)
        d->next->link = d->link;
}

/* ---- what becomes of the target ---- */

/* Not before `ms` have passed; 0: longer each time. Requests that were under way when one failed,
 * and fail too, are the same failure. */
static void back_off(srv_push *p, push_target *t, int64_t ms, const weir_error *why)
{
    int64_t now = weir__monotonic_ms();
    if (now >= t->ready_ms) {
        int64_t longer = t->failures < 16 ? (int64_t)PUSH_BACKOFF_MS << t->failures : INT64_MAX;
        if (!ms)
            ms = longer < PUSH_MAX_BACKOFF_MS ? longer : PUSH_MAX_BACKOFF_MS;
        t->failures++;
    }
    if (now + ms > t->ready_ms)
        t->ready_ms = now + ms;
    t->why = *why;
    t->why_at = weir_now(p->q);
}

static void is_fine(push_target *t)
{
    if (weir__monotonic_ms() < t->ready_ms)
        return;                         /* another request has found out otherwise meanwhile */
    t->failures = 0;
    t->why.code = WEIR_OK;
}

static void affect(srv_push *p, push_target *t, const push_verdict *v)
{
    if (v->effect == PUSH_FINE)
        is_fine(t);
    else if (v->effect == PUSH_BACK_OFF)
        back_off(p, t, v->wait_ms, &v->why);
    else
        push_pause(p, t, &v->why);
}

/* ---- what becomes of the job ---- */

static void delivery_free(push_delivery *d)
{
    push_request_fini(&d->request);
    weir__buf_fini(&d->verdict.text);
    weir_job_free(d->job);
    free(d);
}

/* The store has the outcome. */
static void note_settled(srv_push *p, const push_delivery *d)
{
    if (d->verdict.fate == PUSH_LATER)
        srv_workers_renewed(p->workers, d->job->id, d->job->delivery, d->later_ms);
    else
        srv_workers_ended(p->workers, d->job->id, d->job->delivery);
}

static void on_settled(weir_code code, const weir_error *err, void *ctx)
{
    push_delivery *d = ctx;
    if (code)
        d->err = *err;
    push_post(d->p, &d->task);
}

/* Also when it is not known whether it came there: if it did, the answer is WEIR_ESTALE. When
 * nothing helps, the job runs again once its lease is over. */
static void settled(weir_inbox_task *task)
{
    push_delivery *d = (push_delivery *)task;
    srv_push      *p = d->p;
    weir_code      code = d->err.code                      ? d->err.code
                          : d->verdict.fate == PUSH_LATER  ? d->renewed.err.code
                                                           : d->ended.err.code;
    p->calls--;
    weir_future_free(d->future);
    d->future = NULL;
    if (p->drain_ms || (!weir_code_may_retry(code) && code != WEIR_EUNKNOWN)) {
        note_settled(p, d);
        delivery_free(d);
        return;
    }
    link_in(&p->again, d);
    p->again_ms = weir__monotonic_ms() + PUSH_RETRY_MS;
}

static weir_code send_outcome(srv_push *p, push_delivery *d)
{
    static const weir_outcome outcomes[] = {
        [PUSH_DONE] = WEIR_OUTCOME_DONE,
        [PUSH_FAIL] = WEIR_OUTCOME_FAIL,
        [PUSH_RETURN] = WEIR_OUTCOME_RETURN,
        [PUSH_LOST] = WEIR_OUTCOME_LOST,
    };
    const push_verdict *v = &d->verdict;
    if (v->fate == PUSH_LATER) {
        weir_lease lease = { .id = d->job->id, .delivery = d->job->delivery,
                             .lease_ms = d->later_ms };
        return weir_renew_async(p->q, &lease, 1, &d->renewed, &d->future, &d->err);
    }
    weir_ending ending = { .id = d->job->id, .delivery = d->job->delivery,
                           .outcome = outcomes[v->fate],
                           .text = v->text.len ? v->text.data : NULL, .len = v->text.len };
    return weir_finish_async(p->q, &ending, 1, &d->ended, &d->future, &d->err);
}

/* Report the end to the store. */
static void settle(srv_push *p, push_delivery *d)
{
    d->err = (weir_error){ 0 };
    d->task.run = settled;
    p->calls++;
    if (send_outcome(p, d))
        settled(&d->task);
    else
        weir_future_then(d->future, on_settled, d);
}

void push_settle_again(srv_push *p)
{
    push_delivery *d = p->again, *next;
    if (!d || (weir__monotonic_ms() < p->again_ms && !p->drain_ms))
        return;
    p->again = NULL;
    for (; d; d = next) {
        next = d->next;
        settle(p, d);
    }
}

/* ---- requests ---- */

static void request_over(srv_push *p, push_delivery *d)
{
    unlink_from(d);
    weir__curl.multi_remove_handle(p->multi, d->request.easy);
    d->target->running--;
}

void push_look_at_requests(srv_push *p)
{
    int            n;
    const CURLMsg *m;
    weir__curl.multi_perform(p->multi, &n);
    while ((m = weir__curl.multi_info_read(p->multi, &n))) {
        char    *request = NULL;
        CURLcode rc = m->data.result;
        weir__curl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &request);
        push_delivery *d = (push_delivery *)(void *)(request - offsetof(push_delivery, request));
        push_judge(&d->request, rc, &d->verdict);
        request_over(p, d);                     /* `m` is gone with it */
        affect(p, d->target, &d->verdict);
        settle(p, d);
    }
}

void push_break_off(srv_push *p)
{
    push_delivery *d;
    while ((d = p->under_way)) {
        request_over(p, d);
        d->verdict.fate = PUSH_RETURN;
        settle(p, d);
    }
}

/* A job has come, `late_ms` or less after its lease began. */
static void deliver(srv_push *p, push_target *t, weir_job *job, int64_t late_ms)
{
    push_delivery *d = calloc(1, sizeof *d);
    if (!d) {                                   /* the end of its lease gives it back */
        weir_job_free(job);
        t->running--;
        return;
    }
    *d = (push_delivery){ .p = p, .target = t, .job = job, .later_ms = t->is->later_ms };
    bool wanted = !p->drain_ms && !t->removed && !t->is->paused;
    if (wanted && late_ms < PUSH_MARGIN_MS / 2 &&
        push_request_init(&d->request, t->is, job, weir_now(p->q), !p->opt->push_private) &&
        !weir__curl.multi_add_handle(p->multi, d->request.easy)) {
        link_in(&p->under_way, d);
        return;
    }
    t->running--;
    d->verdict.fate = PUSH_RETURN;
    settle(p, d);
}

/* ---- taking ---- */

static void wake(srv_push *p, push_target *t)
{
    pthread_mutex_lock(&p->lock);
    t->woken = true;
    pthread_mutex_unlock(&p->lock);
}

static bool was_woken(srv_push *p, push_target *t)
{
    pthread_mutex_lock(&p->lock);
    bool woken = t->woken;
    t->woken = false;
    pthread_mutex_unlock(&p->lock);
    return woken;
}

static int64_t lease_of(const push_target *t)
{
    return t->is->timeout_ms + PUSH_MARGIN_MS;
}

static void taken(weir_inbox_task *task)
{
    asking      *a = (asking *)task;
    srv_push    *p = a->p;
    push_target *t = a->target;
    char         worker[WORKER_NAME];
    p->calls--;
    srv_workers_took(p->workers, worker_name(t, worker),
                     &(srv_taken){ .pass = a->pass, .failed = a->err.code != WEIR_OK,
                                   .waits = a->waits, .jobs = a->jobs, .n = a->n_out,
                                   .lease_ms = lease_of(t) });
    t->asking = false;
    t->running -= a->n - a->n_out;
    weir_future_free(a->future);
    if (a->err.code)
        back_off(p, t, 0, &a->err);
    bool alone = a->pass == WEIR__PASS_ALONE && a->n_out;
    if (a->waits && !a->n_out)
        t->refused_ms = weir__monotonic_ms() + PUSH_REFUSED_MS;
    bool more = a->n_out == a->n || weir__jobs_fill_take(a->jobs, a->n_out);
    if (a->err.code || more || a->waits || alone)
        wake(p, t);
    for (size_t i = 0; i < a->n_out; i++)
        deliver(p, t, a->jobs[i], weir__monotonic_ms() - a->asked_ms);
    free(a);
}

static void on_taken(weir_code code, const weir_error *err, void *ctx)
{
    asking *a = ctx;
    if (code)
        a->err = *err;
    push_post(a->p, &a->task);
}

/* Its worker's gate may be closed: then it is asked again soon. */
static weir_pass enter(srv_push *p, push_target *t, const char *worker)
{
    srv_workers_seen(p->workers, worker, t->is->types.text, weir_now(p->q));
    weir_pass pass = srv_workers_enter(p->workers, worker, false, NULL);
    if (!pass) {
        t->refused_ms = weir__monotonic_ms() + PUSH_REFUSED_MS;
        wake(p, t);
    }
    return pass;
}

static void take(srv_push *p, push_target *t, size_t n)
{
    char      worker[WORKER_NAME];
    weir_pass pass = enter(p, t, worker_name(t, worker));
    if (!pass)
        return;
    asking *a = calloc(1, sizeof *a);
    if (!a) {
        srv_workers_took(p->workers, worker, &(srv_taken){ .pass = pass, .failed = true });
        back_off(p, t, 0, &(weir_error){ .code = WEIR_ENOMEM, .msg = "out of memory" });
        wake(p, t);
        return;
    }
    *a = (asking){ .task.run = taken, .p = p, .target = t, .pass = pass, .n = n,
                   .asked_ms = weir__monotonic_ms() };
    weir_taking what = { .remote = true, .types = t->is->types.text, .n = n, .worker = worker,
                         .lease_ms = lease_of(t), .busy = pass != WEIR__PASS_ALONE,
                         .suspect_waits = &a->waits };
    t->asking = true;
    t->running += n;
    p->calls++;
    if (weir_take_async(p->q, &what, a->jobs, &a->n_out, &a->future, &a->err))
        taken(&a->task);
    else
        weir_future_then(a->future, on_taken, a);
}

/* A target that failed is tried with a single job. */
size_t push_room(const srv_push *p, const push_target *t)
{
    size_t most = t->failures ? 1 : (size_t)t->is->concurrency;
    bool   can = !p->drain_ms && !t->removed && !t->is->paused && !t->asking;
    return can && t->running < most ? most - t->running : 0;
}

void push_look_at_targets(srv_push *p)
{
    int64_t now = weir__monotonic_ms();
    for (push_target *t = p->targets; t; t = t->next) {
        size_t n = now >= t->ready_ms && now >= t->refused_ms ? push_room(p, t) : 0;
        if (n && was_woken(p, t))
            take(p, t, n);
    }
}
