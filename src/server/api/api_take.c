/* api_take.c - POST /v1/take: jobs for remote workers, who may wait for some.
 *
 * A delivery of a job is identified by its id and delivery number, and nothing of it is kept here.
 * So a worker can ask any server of the same store next, and a restart is not noticed. Jobs that
 * were taken for a client that has gone meanwhile are given back at once. */
#include <stdio.h>
#include <string.h>

#include "core/job.h"
#include "server/access/audit.h"
#include "server/api/api.h"
#include "server/http/body.h"
#include "server/http/inner.h"
#include "server/api/take.h"
#include "server/live/workers.h"

/* ---- what is asked for ---- */

#define AT(member) offsetof(srv_take_request, member)
#define TAKE_FIELDS                                                                              \
    WEIR_FIELD("types", weir__as_texts, AT(types), .needed = true, .min = 1,                     \
               .max = WEIR_MAX_TAKE_TYPES),                                                      \
    WEIR_FIELD("n", weir__as_int, AT(n), .min = 1, .max = WEIR_MAX_PAGE),                        \
    WEIR_FIELD("lease", weir__as_ms, AT(lease_ms), .min = WEIR_MIN_LEASE_MS, .max = WEIR_MAX_MS), \
    WEIR_FIELD("worker", weir__as_text, AT(worker), .min = 1, .max = WEIR_MAX_WORKER),            \
    WEIR_FIELD("when", weir__as_text, AT(when), .min = 1),                                        \
    WEIR_FIELD("busy", weir__as_bool, AT(busy))

static const weir_field take_fields[] = {
    TAKE_FIELDS,
    WEIR_FIELD("wait", weir__as_ms, AT(wait_ms), .max = SRV_MAX_WAIT_MS),
    { 0 }
};
const weir_field srv_next_fields[] = { TAKE_FIELDS, { 0 } };
#undef AT

bool srv_taking_init(srv_taking *t, srv_request *r, srv_take_request *w)
{
    for (size_t i = 0; i < w->types.n; i++) {
        weir_error err;
        char       field[32];
        snprintf(field, sizeof field, "types[%zu]", i);
        if (weir__take_type_check(w->types.text[i], field, &err)) {
            srv_reply_error(r, &err);
            return false;
        }
        if (!srv_allow(r, WEIR_ROLE_WORK, w->types.text[i]))
            return false;
    }
    const char *worker = w->worker ? w->worker : srv_worker_name(r);
    t->r = r;
    t->jobs = srv_alloc(r, (size_t)w->n * sizeof(weir_job *));
    if (!t->jobs || !worker) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return false;
    }
    t->busy = w->busy;
    t->what = (weir_taking){ .remote = true,
                             .types = w->types.text,
                             .n = (size_t)w->n,
                             .lease_ms = w->lease_ms,
                             .worker = worker,
                             .when = w->when,
                             .suspect_waits = &t->waits };
    srv_workers_seen(r->server->workers, worker, t->what.types, weir_now(srv_queue(r)));
    return true;
}

bool srv_taking_enter(srv_taking *t, bool only_alone)
{
    t->pass = srv_workers_enter(t->r->server->workers, t->what.worker, only_alone,
                                t->polls ? &t->poll : NULL);
    t->what.busy = t->busy || t->pass != WEIR__PASS_ALONE;
    t->n_jobs = 0;
    t->waits = false;
    return t->pass != WEIR__PASS_NONE;
}

void srv_taking_took(srv_taking *t, bool failed)
{
    int64_t lease_ms = t->what.lease_ms ? t->what.lease_ms : WEIR_DEFAULT_LEASE_MS;
    srv_workers_took(t->r->server->workers, t->what.worker,
                     &(srv_taken){ .pass = t->pass, .failed = failed, .waits = t->waits,
                                   .jobs = t->jobs, .n = t->n_jobs, .lease_ms = lease_ms });
}

/* ---- what is given ---- */

static void release_jobs(srv_taking *t)
{
    for (size_t i = 0; i < t->n_jobs; i++)
        weir_job_free(t->jobs[i]);
    t->n_jobs = 0;
}

/* Others shall have the jobs, and not only when the leases are over (but then, if this fails). */
static void give_back(srv_taking *t, srv_then *then)
{
    srv_request *r = t->r;
    weir_ending *endings = srv_alloc(r, t->n_jobs * sizeof *endings);
    weir_future *f = NULL;
    weir_error   err = { 0 };
    weir_code    rc = WEIR_ENOMEM;
    for (size_t i = 0; i < t->n_jobs; i++)
        srv_workers_ended(r->server->workers, t->jobs[i]->id, t->jobs[i]->delivery);
    for (size_t i = 0; endings && i < t->n_jobs; i++)
        endings[i] = (weir_ending){ .id = t->jobs[i]->id, .delivery = t->jobs[i]->delivery,
                                    .outcome = WEIR_OUTCOME_RETURN };
    if (endings)
        rc = weir_finish_async(srv_queue(r), endings, t->n_jobs, NULL, &f, &err);
    atomic_fetch_add(&r->server->counters.jobs_returned, t->n_jobs);
    release_jobs(t);
    srv_await(r, rc, &err, f, then);
}

void srv_taken_json(weir_buf *out, const weir_job *job)
{
    char trace[WEIR_TRACEPARENT_LEN + 1];
    weir__job_json(out, job);
    if (!weir_job_trace(job, trace) || out->failed)
        return;
    out->len--;                         /* its bracket */
    weir__buf_printf(out, ",\"" WEIR_TRACEPARENT "\":\"%s\"}", trace);
}

static void add_jobs(const srv_taking *t, weir_buf *out)
{
    weir__buf_str(out, "\"jobs\":[");
    for (size_t i = 0; i < t->n_jobs; i++) {
        if (i)
            weir__buf_char(out, ',');
        srv_taken_json(out, t->jobs[i]);
    }
    weir__buf_str(out, "]}");
}

void srv_taking_give(srv_taking *t, int status, weir_buf *out, srv_then *again)
{
    srv_request *r = t->r;
    add_jobs(t, out);
    if (t->n_jobs && (srv_gone(r) || r->revoked || out->failed)) {
        weir__buf_fini(out);
        give_back(t, again);
        return;
    }
    for (size_t i = 0; i < t->n_jobs && srv_audited(r); i++)
        srv_audit_id(r, t->jobs[i]->id);
    atomic_fetch_add(&r->server->counters.jobs_taken, t->n_jobs);
    release_jobs(t);
    srv_reply_json(r, status, out);
}

/* ---- POST /v1/take ---- */

static void look(srv_taking *t);

static void leave(srv_taking *t, size_t got)
{
    if (!t->polls)
        return;
    t->polls = false;
    srv_workers_unwait(t->r->server->workers, &t->poll);
    srv_longpoll_leave(&t->poll, got);
    srv_share_give(t->r, SRV_SHARE_WAITS);
    srv_workers_wait(t->r->server->workers, t->what.worker, -1, weir_now(srv_queue(t->r)));
}

static void answer_take(srv_request *r, weir_code code, const weir_error *err)
{
    (void)code, (void)err;
    srv_taking *t = r->state;
    weir_buf    out = { 0 };
    if (r->revoked && !t->n_jobs) {
        srv_reply_status(r, 401, "unauthorized", "the token is not valid any more");
        return;
    }
    weir__buf_char(&out, '{');
    srv_taking_give(t, 200, &out, answer_take);
}

/* Nothing was found, or nothing may be taken now. */
static void rest(srv_taking *t, bool aside)
{
    if (!t->polls || t->over) {
        leave(t, 0);
        answer_take(t->r, WEIR_OK, NULL);
        return;
    }
    t->rests = aside ? srv_longpoll_stand_aside(&t->poll) : srv_longpoll_rest(&t->poll);
    if (!t->rests)
        look(t);
}

static void ask(srv_taking *t);

static void looked(srv_request *r, weir_code code, const weir_error *err)
{
    srv_taking *t = r->state;
    srv_taking_took(t, code != WEIR_OK);
    if (code) {
        leave(t, SRV_LONGPOLL_FAILED);
        srv_reply_error(r, err);
        return;
    }
    if (t->n_jobs) {
        leave(t, weir__jobs_fill_take(t->jobs, t->n_jobs) ? SRV_LONGPOLL_FAILED : t->n_jobs);
        answer_take(r, WEIR_OK, NULL);
    } else if (!t->waits) {
        rest(t, false);
    } else if (!t->busy && srv_taking_enter(t, true)) {
        ask(t);                 /* it has nothing else: it gets the suspect */
    } else {
        rest(t, srv_workers_closed(r->server->workers, t->what.worker));
    }
}

static void ask(srv_taking *t)
{
    weir_future *f = NULL;
    weir_error   err = { 0 };
    weir_code    rc = weir_take_async(srv_queue(t->r), &t->what, t->jobs, &t->n_jobs, &f, &err);
    srv_await(t->r, rc, &err, f, looked);
}

static void look(srv_taking *t)
{
    t->rests = false;
    if (srv_taking_enter(t, false))
        ask(t);
    else
        rest(t, true);
}

/* A worker whose token is gone meanwhile gets no jobs; who waits behind it does. */
static void look_again(srv_longpoll *p)
{
    srv_taking *t = (srv_taking *)p;
    if (srv_auth_again(t->r)) {
        look(t);
        return;
    }
    leave(t, SRV_LONGPOLL_FAILED);
    answer_take(t->r, WEIR_OK, NULL);
}

/* The time is up, the client or its token is gone, or the server stops. */
static void wait_no_longer(srv_request *r)
{
    srv_taking *t = r->state;
    t->over = true;
    if (!t->rests)
        return;                 /* what it finds is answered */
    leave(t, 0);
    answer_take(r, WEIR_OK, NULL);
}

static void handle_take(srv_request *r)
{
    srv_take_request    w = { .n = 1 };
    srv_taking *t;
    if (!SRV_STATE(r, t) || !srv_body(r, take_fields, &w) || !srv_taking_init(t, r, &w))
        return;
    if (w.wait_ms && !srv_share_take(r, SRV_SHARE_WAITS))
        return;
    if (w.wait_ms) {
        t->poll = (srv_longpoll){ .loop = r->loop, .types = t->what.types, .n = t->what.n,
                                  .picky = w.when != NULL, .look = look_again };
        t->polls = srv_longpoll_enter(r->server->polls, &t->poll);
        if (!t->polls) {
            srv_share_give(r, SRV_SHARE_WAITS);
            srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
            return;
        }
        srv_workers_wait(r->server->workers, t->what.worker, 1, weir_now(srv_queue(r)));
        r->cancel = wait_no_longer;
        srv_after(r, w.wait_ms, wait_no_longer);
    }
    look(t);
}

const srv_route srv_take_routes[] = {
    { "POST", "/v1/take", WEIR_ROLE_WORK, handle_take, SRV_MAX_SMALL_BODY, NULL, 0,
      "Take jobs; wait for some if there are none", "Take", "Taken", 200 },
    { 0 }
};
