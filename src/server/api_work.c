/* api_work.c - remote workers: POST /v1/take, /v1/finish, /v1/renew.
 *
 * A delivery of a job is known by its id and delivery number, and nothing of it is kept here: any
 * server of the same store can be asked next, and a restart is not noticed. Jobs that were taken
 * for a client that has gone meanwhile are given back at once. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/job.h"
#include "server/body.h"
#include "server/inner.h"
#include "server/poll.h"
#include "server/workers.h"

/* ---- what is asked for ---- */

typedef struct wish {
    weir_texts  types;
    int64_t     n, wait_ms, lease_ms;
    const char *worker;
} wish;

#define AT(member) offsetof(wish, member)
#define WISH_FIELDS                                                                              \
    WEIR_FIELD("types", weir__as_texts, AT(types), .needed = true, .min = 1,                     \
               .max = WEIR_MAX_TAKE_TYPES),                                                      \
    WEIR_FIELD("n", weir__as_int, AT(n), .min = 1, .max = WEIR_MAX_PAGE),                        \
    WEIR_FIELD("lease", weir__as_ms, AT(lease_ms), .min = WEIR_MIN_LEASE_MS, .max = WEIR_MAX_MS), \
    WEIR_FIELD("worker", weir__as_text, AT(worker), .min = 1, .max = WEIR_MAX_WORKER)

static const weir_field take_fields[] = {
    WISH_FIELDS,
    WEIR_FIELD("wait", weir__as_ms, AT(wait_ms), .max = SRV_MAX_WAIT_MS),
    { 0 }
};
static const weir_field next_fields[] = { WISH_FIELDS, { 0 } };
#undef AT

/* Jobs on their way to a worker. */
typedef struct taking {
    srv_poll     poll;              /* first: it is found by it */
    srv_request *r;
    weir_taking  what;
    weir_job   **jobs;
    size_t       n_jobs;
    bool         polls;             /* it waits until jobs come */
    bool         rests;             /* and does nothing else just now */
    bool         over;              /* but no longer */
} taking;

/* False: it was answered. */
static bool taking_init(taking *t, srv_request *r, wish *w)
{
    for (size_t i = 0; i < w->types.n; i++) {
        weir_error err;
        char       field[32];
        snprintf(field, sizeof field, "types[%zu]", i);
        if (weir__type_check(w->types.text[i], field, &err)) {
            srv_reply_error(r, &err, field);
            return false;
        }
        if (!srv_allow(r, SRV_WORK, w->types.text[i]))
            return false;
    }
    const char *worker = w->worker ? w->worker : srv_worker_name(r);
    t->r = r;
    t->jobs = srv_alloc(r, (size_t)w->n * sizeof(weir_job *));
    if (!t->jobs || !worker) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return false;
    }
    t->what = (weir_taking){ .types = w->types.text, .n = (size_t)w->n, .lease_ms = w->lease_ms,
                             .worker = worker };
    srv_workers_seen(r->server->workers, worker, t->what.types, weir_now(srv_queue(r)));
    return true;
}

/* ---- what is given ---- */

static void given_back(srv_request *r, weir_code code, const weir_error *err)
{
    (void)code, (void)err;          /* if it failed, the leases run out */
    srv_reply_empty(r, 204);        /* to nobody */
}

/* The client is gone: others shall have the jobs, and not only when the leases are over. */
static void give_back(taking *t)
{
    srv_request *r = t->r;
    weir_ending *endings = srv_alloc(r, t->n_jobs * sizeof *endings);
    weir_future *f = NULL;
    weir_error   err = { 0 };
    weir_code    rc = endings ? WEIR_OK : WEIR_ENOMEM;
    for (size_t i = 0; i < t->n_jobs; i++) {
        if (endings)
            endings[i] = (weir_ending){ .id = t->jobs[i]->id, .delivery = t->jobs[i]->delivery,
                                        .outcome = WEIR_OUTCOME_RELEASE };
        weir_job_release(t->jobs[i]);
    }
    if (!rc)
        rc = weir_finish_async(srv_queue(r), endings, t->n_jobs, NULL, &f, &err);
    atomic_fetch_add(&r->server->counters.jobs_returned, t->n_jobs);
    srv_await(r, rc, &err, f, given_back);
}

/* Answer with the jobs, as the last member of what is in `out`. */
static void give(taking *t, int status, weir_buf *out)
{
    srv_request *r = t->r;
    if (srv_gone(r) && t->n_jobs) {
        weir__buf_fini(out);
        give_back(t);
        return;
    }
    weir__buf_str(out, "\"jobs\":[");
    for (size_t i = 0; i < t->n_jobs; i++) {
        if (i)
            weir__buf_char(out, ',');
        weir__job_json(out, t->jobs[i]);
        weir_job_release(t->jobs[i]);
    }
    weir__buf_str(out, "]}");
    atomic_fetch_add(&r->server->counters.jobs_taken, t->n_jobs);
    srv_reply_json(r, status, out);
}

/* ---- POST /v1/take ---- */

static void look(taking *t);

static void leave(taking *t, size_t got)
{
    if (!t->polls)
        return;
    t->polls = false;
    srv_poll_leave(&t->poll, got);
    srv_workers_wait(t->r->server->workers, t->what.worker, -1, weir_now(srv_queue(t->r)));
}

static void answer_take(taking *t)
{
    weir_buf out = { 0 };
    weir__buf_char(&out, '{');
    give(t, 200, &out);
}

static void looked(srv_request *r, weir_code code, const weir_error *err)
{
    taking *t = r->state;
    if (code) {
        leave(t, SRV_POLL_FAILED);
        srv_reply_error(r, err, NULL);
        return;
    }
    if (!t->n_jobs && t->polls && !t->over) {
        t->rests = srv_poll_rest(&t->poll);
        if (!t->rests)
            look(t);
        return;
    }
    leave(t, t->n_jobs);
    answer_take(t);
}

static void look(taking *t)
{
    weir_future *f = NULL;
    weir_error   err = { 0 };
    t->rests = false;
    weir_code rc = weir_take_for_async(srv_queue(t->r), &t->what, t->jobs, &t->n_jobs, &f, &err);
    srv_await(t->r, rc, &err, f, looked);
}

static void look_again(srv_poll *p)
{
    look((taking *)p);
}

/* The time is up, the client is gone, or the server stops. */
static void wait_no_longer(srv_request *r)
{
    taking *t = r->state;
    t->over = true;
    if (!t->rests)
        return;                 /* what it finds is answered */
    leave(t, 0);
    answer_take(t);
}

static void handle_take(srv_request *r)
{
    wish    w = { .n = 1 };
    taking *t = srv_alloc(r, sizeof *t);
    if (!t) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    r->state = t;
    if (!srv_body(r, take_fields, &w) || !taking_init(t, r, &w))
        return;
    if (w.wait_ms) {
        t->poll = (srv_poll){ .loop = r->loop, .types = t->what.types, .n = t->what.n,
                              .look = look_again };
        t->polls = srv_poll_enter(r->server->polls, &t->poll);
        if (!t->polls) {
            srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
            return;
        }
        srv_workers_wait(r->server->workers, t->what.worker, 1, weir_now(srv_queue(r)));
        r->hurry = wait_no_longer;
        srv_after(r, w.wait_ms, wait_no_longer);
    }
    look(t);
}

/* ---- tokens of one type ---- */

/* One delivery in a body, and what is to become of it. */
typedef struct item {
    uint64_t        id;
    uint32_t        delivery;
    bool            release;
    bool            foreign;        /* not of the token's type */
    weir_json_piece result;
    const char     *error;
} item;

enum { CHECKED_AT_ONCE = 64 };

/* A token that is bound to a type must not touch other jobs, whose type nothing but the job can
 * tell. A job never changes its type, so that looking first is enough. */
typedef struct checking {
    item        *items;
    size_t       n, done, now;
    srv_handler *then;
    weir_job    *job[CHECKED_AT_ONCE];
    weir_error   err[CHECKED_AT_ONCE];
} checking;

static void check_some(srv_request *r, checking *c);

static void checked_some(srv_request *r, weir_code code, const weir_error *none)
{
    (void)code, (void)none;
    checking  *c = *(checking **)r->state;
    weir_error trouble = { 0 };
    for (size_t i = 0; i < c->now; i++) {
        const weir_job *job = c->job[i];
        c->items[c->done + i].foreign = !job || strcmp(job->type, r->who.type) != 0;
        if (c->err[i].code && c->err[i].code != WEIR_ENOENT)
            trouble = c->err[i];
        weir_job_release(c->job[i]);
    }
    c->done += c->now;
    if (trouble.code)
        srv_reply_error(r, &trouble, NULL);
    else
        check_some(r, c);
}

static void check_some(srv_request *r, checking *c)
{
    size_t left = c->n - c->done;
    if (!left) {
        c->then(r);
        return;
    }
    c->now = left < CHECKED_AT_ONCE ? left : CHECKED_AT_ONCE;
    memset(c->job, 0, sizeof c->job);
    memset(c->err, 0, sizeof c->err);
    srv_gather(r, checked_some);
    for (size_t i = 0; i < c->now; i++) {
        weir_future *f = NULL;
        weir_code    rc = weir_get_async(srv_queue(r), c->items[c->done + i].id, &c->job[i], &f,
                                         &c->err[i]);
        srv_join(r, rc, f, &c->err[i]);
    }
    srv_gathered(r);
}

/* Mark the items that are not of the token's type, then go on. The handler's state begins with the
 * pointer that is `to`. */
static void check_types(srv_request *r, checking **to, weir_items all, srv_handler *then)
{
    if (!*r->who.type) {
        then(r);
        return;
    }
    checking *c = *to = srv_alloc(r, sizeof *c);
    if (!c) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    *c = (checking){ .items = all.item, .n = all.n, .then = then };
    check_some(r, c);
}

/* ---- results ---- */

/* {"id":1,"error":{..}} */
static void add_refused(weir_buf *out, const item *it, const weir_error *err)
{
    weir__buf_printf(out, "{\"id\":%" PRIu64 ",\"error\":", it->id);
    srv_error_json(out, err, NULL);
    weir__buf_char(out, '}');
}

static void add_foreign(weir_buf *out, const item *it)
{
    weir_error err;
    weir_fail(&err, WEIR_ENOENT, "job %" PRIu64 " is not there", it->id);
    add_refused(out, it, &err);
}

static void saw(srv_request *r, const char *worker)
{
    if (worker)
        srv_workers_seen(r->server->workers, worker, NULL, weir_now(srv_queue(r)));
}

/* ---- POST /v1/finish ---- */

typedef struct finishing {
    checking    *check;             /* first: see check_types() */
    weir_items   items;
    weir_ended  *ended;             /* of those that are not foreign */
    size_t       n_ended;
    const char  *worker;
    wish         wish;
    bool         takes;
    taking       next;
} finishing;

#define AT(member) offsetof(item, member)
static const weir_field ending_fields[] = {
    WEIR_FIELD("id", weir__as_id, AT(id), .needed = true),
    WEIR_FIELD("delivery", weir__as_delivery, AT(delivery), .needed = true),
    WEIR_FIELD("result", weir__as_raw, AT(result)),
    WEIR_FIELD("error", weir__as_text, AT(error)),
    WEIR_FIELD("release", weir__as_bool, AT(release)),
    { 0 }
};
static const weir_field lease_fields[] = {
    WEIR_FIELD("id", weir__as_id, AT(id), .needed = true),
    WEIR_FIELD("delivery", weir__as_delivery, AT(delivery), .needed = true),
    { 0 }
};
#undef AT

#define AT(member) offsetof(finishing, member)
static const weir_field finish_fields[] = {
    WEIR_FIELD("jobs", weir__as_list, AT(items), .needed = true, .min = 1, .max = WEIR_MAX_ADD,
               .fields = ending_fields, .size = sizeof(item)),
    WEIR_FIELD("take", weir__as_object, AT(wish), .fields = next_fields, .given = AT(takes)),
    WEIR_FIELD("worker", weir__as_text, AT(worker), .min = 1, .max = WEIR_MAX_WORKER),
    { 0 }
};
#undef AT

/* False: it was answered. */
static bool one_outcome_each(srv_request *r, const item *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const item *it = &items[i];
        char        field[32];
        if ((it->result.text != NULL) + (it->error != NULL) + it->release <= 1)
            continue;
        snprintf(field, sizeof field, "jobs[%zu]", i);
        srv_reply_fail(r, WEIR_EINVAL, field,
                       "%s: only one of result, error and release can be what became of it", field);
        return false;
    }
    return true;
}

static void add_results(weir_buf *out, const finishing *fin, srv_counters *count, size_t *refused)
{
    const weir_ended *e = fin->ended;
    uint64_t          stale = 0, n = 0;
    weir__buf_str(out, "{\"results\":[");
    for (size_t i = 0; i < fin->items.n; i++) {
        const item *it = (const item *)fin->items.item + i;
        if (i)
            weir__buf_char(out, ',');
        if (it->foreign) {
            add_foreign(out, it);
            continue;
        }
        stale += e->err.code == WEIR_ESTALE;
        n += !e->err.code;
        if (e->err.code) {
            add_refused(out, it, &e->err);
        } else {
            weir__buf_printf(out, "{\"id\":%" PRIu64 ",\"state\":", it->id);
            if (e->state == WEIR_ANY)
                weir__buf_str(out, "null}");        /* it is gone */
            else
                weir__buf_printf(out, "\"%s\"}", weir_state_name(e->state));
        }
        e++;
    }
    weir__buf_str(out, "],");
    *refused = fin->items.n - n;
    atomic_fetch_add(&count->jobs_ended, n);
    atomic_fetch_add(&count->jobs_stale, stale);
}

static void answer_finish(srv_request *r, weir_code code, const weir_error *err)
{
    (void)code, (void)err;          /* of the take: the results are told all the same */
    finishing *fin = r->state;
    weir_buf   out = { 0 };
    size_t     refused;
    weir__buf_reserve(&out, 64 + fin->items.n * 48);
    add_results(&out, fin, &r->server->counters, &refused);
    give(&fin->next, refused ? 207 : 200, &out);
}

/* The store could do none of it. */
static const weir_error *trouble_of_all(const finishing *fin)
{
    for (size_t i = 0; i < fin->n_ended; i++)
        if (weir_code_http(fin->ended[i].err.code) < 500)
            return NULL;
    return fin->n_ended ? &fin->ended[0].err : NULL;
}

/* The next jobs were taken with the last that was ended; when that was refused, they are taken on
 * their own. */
static void finished(srv_request *r, weir_code code, const weir_error *err)
{
    finishing        *fin = r->state;
    const weir_error *trouble = code ? err : trouble_of_all(fin);
    if (trouble) {
        srv_reply_error(r, trouble, NULL);
        return;
    }
    const weir_ended *last = fin->n_ended ? &fin->ended[fin->n_ended - 1] : NULL;
    if (last && !last->err.code)
        fin->next.n_jobs = last->n_jobs;
    if (!fin->takes || (last && !last->err.code)) {
        answer_finish(r, WEIR_OK, NULL);
        return;
    }
    weir_future *f = NULL;
    weir_error   why = { 0 };
    weir_code    rc = weir_take_for_async(srv_queue(r), &fin->next.what, fin->next.jobs,
                                          &fin->next.n_jobs, &f, &why);
    srv_await(r, rc, &why, f, answer_finish);
}

static weir_ending ending_of(const item *it)
{
    weir_ending e = { .id = it->id, .delivery = it->delivery };
    if (it->error) {
        e.outcome = WEIR_OUTCOME_FAIL;
        e.text = it->error;
    } else if (it->release) {
        e.outcome = WEIR_OUTCOME_RELEASE;
    } else {
        e.outcome = WEIR_OUTCOME_DONE;
        e.text = it->result.text;
        e.len = it->result.len;
    }
    return e;
}

static void finish(srv_request *r)
{
    finishing   *fin = r->state;
    weir_ending *endings = srv_alloc(r, fin->items.n * sizeof *endings);
    weir_future *f = NULL;
    weir_error   err = { 0 };
    fin->ended = srv_alloc(r, fin->items.n * sizeof *fin->ended);
    if (!endings || !fin->ended) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    for (size_t i = 0; i < fin->items.n; i++) {
        const item *it = (const item *)fin->items.item + i;
        if (!it->foreign)
            endings[fin->n_ended++] = ending_of(it);
    }
    if (!fin->n_ended) {
        finished(r, WEIR_OK, NULL);
        return;
    }
    if (fin->takes) {
        endings[fin->n_ended - 1].next = &fin->next.what;
        endings[fin->n_ended - 1].jobs = fin->next.jobs;
    }
    weir_code rc = weir_finish_async(srv_queue(r), endings, fin->n_ended, fin->ended, &f, &err);
    srv_await(r, rc, &err, f, finished);
}

static void handle_finish(srv_request *r)
{
    finishing *fin = srv_alloc(r, sizeof *fin);
    if (!fin) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    r->state = fin;
    fin->wish.n = 1;
    fin->next.r = r;
    if (!srv_body(r, finish_fields, fin) || !one_outcome_each(r, fin->items.item, fin->items.n) ||
        (fin->takes && !taking_init(&fin->next, r, &fin->wish)))
        return;
    saw(r, fin->worker);
    check_types(r, &fin->check, fin->items, finish);
}

/* ---- POST /v1/renew ---- */

typedef struct renewing {
    checking   *check;              /* first: see check_types() */
    weir_items  items;
    int64_t     lease_ms;
    const char *worker;
    weir_lease *leases;             /* of those that are not foreign */
} renewing;

#define AT(member) offsetof(renewing, member)
static const weir_field renew_fields[] = {
    WEIR_FIELD("jobs", weir__as_list, AT(items), .needed = true, .min = 1, .max = WEIR_MAX_ADD,
               .fields = lease_fields, .size = sizeof(item)),
    WEIR_FIELD("lease", weir__as_ms, AT(lease_ms), .min = WEIR_MIN_LEASE_MS, .max = WEIR_MAX_MS),
    WEIR_FIELD("worker", weir__as_text, AT(worker), .min = 1, .max = WEIR_MAX_WORKER),
    { 0 }
};
#undef AT

static void add_renewal(weir_buf *out, const item *it, const weir_lease *lease)
{
    weir_error err;
    if (!lease->code) {
        weir__buf_printf(out, "{\"id\":%" PRIu64 ",\"ok\":true}", it->id);
        return;
    }
    if (lease->code == WEIR_ESTALE)
        weir_fail(&err, lease->code, "job %" PRIu64 ": delivery %" PRIu32 " is over: stop, it is "
                  "not this worker's any more (ended, cancelled, removed, or its lease was lost)",
                  it->id, it->delivery);
    else
        weir_fail(&err, lease->code, "job %" PRIu64 ": %s", it->id, weir_code_text(lease->code));
    add_refused(out, it, &err);
}

static void renewed(srv_request *r, weir_code code, const weir_error *err)
{
    renewing         *ren = r->state;
    const weir_lease *lease = ren->leases;
    weir_buf          out = { 0 };
    uint64_t          stale = 0;
    if (code) {
        srv_reply_error(r, err, NULL);
        return;
    }
    weir__buf_str(&out, "{\"results\":[");
    for (size_t i = 0; i < ren->items.n; i++) {
        const item *it = (const item *)ren->items.item + i;
        if (i)
            weir__buf_char(&out, ',');
        if (it->foreign) {
            add_foreign(&out, it);
            continue;
        }
        stale += lease->code == WEIR_ESTALE;
        add_renewal(&out, it, lease++);
    }
    weir__buf_str(&out, "]}");
    atomic_fetch_add(&r->server->counters.jobs_stale, stale);
    srv_reply_json(r, 200, &out);
}

static void renew(srv_request *r)
{
    renewing    *ren = r->state;
    size_t       n = 0;
    weir_future *f = NULL;
    weir_error   err = { 0 };
    ren->leases = srv_alloc(r, ren->items.n * sizeof *ren->leases);
    if (!ren->leases) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    for (size_t i = 0; i < ren->items.n; i++) {
        const item *it = (const item *)ren->items.item + i;
        if (!it->foreign)
            ren->leases[n++] = (weir_lease){ .id = it->id, .delivery = it->delivery,
                                             .lease_ms = ren->lease_ms };
    }
    if (!n) {
        renewed(r, WEIR_OK, NULL);
        return;
    }
    weir_code rc = weir_renew_async(srv_queue(r), ren->leases, n, &f, &err);
    srv_await(r, rc, &err, f, renewed);
}

static void handle_renew(srv_request *r)
{
    renewing *ren = srv_alloc(r, sizeof *ren);
    if (!ren) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    r->state = ren;
    if (!srv_body(r, renew_fields, ren))
        return;
    saw(r, ren->worker);
    check_types(r, &ren->check, ren->items, renew);
}

const srv_route srv_work_routes[] = {
    { "POST", "/v1/take", SRV_WORK, handle_take, SRV_MAX_SMALL_BODY, NULL, 0,
      "Take jobs; wait for some if there are none", "Take", "Taken", 200 },
    { "POST", "/v1/finish", SRV_WORK, handle_finish, SRV_MAX_BODY, NULL, 0,
      "Say what became of jobs that were taken, and take the next", "Finish", "Finished", 200 },
    { "POST", "/v1/renew", SRV_WORK, handle_renew, SRV_MAX_SMALL_BODY, NULL, 0,
      "Keep jobs that were taken for longer", "Renew", "Renewed", 200 },
    { 0 }
};
