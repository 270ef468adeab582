/* api_finish.c - POST /v1/finish and /v1/renew: what became of jobs that remote workers have taken.
 * Each is named by its id and delivery number, so that a late worker changes nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/api/api.h"
#include "server/access/audit.h"
#include "server/http/body.h"
#include "server/http/inner.h"
#include "server/api/take.h"
#include "server/live/holds.h"
#include "server/live/workers.h"

/* ---- tokens of one type ---- */

/* One delivery in a body, and what is to become of it. */
typedef struct item {
    uint64_t        id;
    uint32_t        delivery;
    bool            final;          /* with an error: not tried again */
    bool            returned;
    int64_t         delay_ms;       /* of a return */
    bool            foreign;        /* not of the token's type */
    weir_json_piece result;
    const char     *error;
} item;

/* The first step of finish and renew. */
typedef struct deliveries {
    weir_items       items;
    const char      *worker;        /* who says so; NULL: unknown */
    struct checking *check;
} deliveries;

enum { CHECKED_AT_ONCE = 64 };

/* An access token that is bound to types must not end jobs of other types. The type is read from
 * the job first; it never changes. */
typedef struct checking {
    size_t       done, now;
    srv_handler *then;
    weir_job    *job[CHECKED_AT_ONCE];
    weir_error   err[CHECKED_AT_ONCE];
} checking;

static void check_some(srv_request *r);

static void checked_some(srv_request *r, weir_code code, const weir_error *none)
{
    (void)code, (void)none;
    deliveries *d = r->state;
    checking   *c = d->check;
    item       *it = (item *)d->items.item + c->done;
    weir_error  trouble = { 0 };
    for (size_t i = 0; i < c->now; i++) {
        it[i].foreign = !c->job[i] || srv_caller_lacks(&r->who, c->job[i]->type);
        if (c->err[i].code && c->err[i].code != WEIR_ENOENT)
            trouble = c->err[i];
        weir_job_free(c->job[i]);
    }
    c->done += c->now;
    if (trouble.code)
        srv_reply_error(r, &trouble);
    else
        check_some(r);
}

static void check_some(srv_request *r)
{
    deliveries *d = r->state;
    checking   *c = d->check;
    const item *it = (const item *)d->items.item + c->done;
    size_t      left = d->items.n - c->done;
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
        weir_code    rc = weir_get_async(srv_queue(r), it[i].id, &c->job[i], &f, &c->err[i]);
        srv_join(r, rc, f, &c->err[i]);
    }
    srv_gathered(r);
}

/* Note who it is, and mark the items that are not of the token's type; then go on. */
static void check(srv_request *r, deliveries *d, srv_handler *then)
{
    for (size_t i = 0; i < d->items.n && srv_audited(r); i++)
        srv_audit_id(r, ((const item *)d->items.item)[i].id);
    if (d->worker)
        srv_workers_seen(r->server->workers, d->worker, NULL, weir_now(srv_queue(r)));
    if (!*r->who.types) {
        then(r);
        return;
    }
    d->check = srv_alloc(r, sizeof *d->check);
    if (!d->check) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    d->check->then = then;
    check_some(r);
}

/* ---- results ---- */

/* {"id":1,"error":{..}} */
static void add_refused(weir_buf *out, const item *it, const weir_error *err)
{
    weir__buf_printf(out, "{\"id\":%" PRIu64 ",\"error\":", it->id);
    srv_error_json(out, err);
    weir__buf_char(out, '}');
}

static void add_foreign(weir_buf *out, const item *it)
{
    weir_error err;
    weir_fail(&err, WEIR_ENOENT, "there is no job %" PRIu64, it->id);
    add_refused(out, it, &err);
}

/* ---- POST /v1/finish ---- */

typedef struct finishing {
    deliveries   all;               /* first */
    weir_ended  *ended;             /* of the jobs that are not foreign */
    size_t       n_ended;
    int          status;
    srv_take_request next_take;
    bool         takes;
    srv_taking   next;
} finishing;

#define AT(member) offsetof(item, member)
static const weir_field ending_fields[] = {
    WEIR_FIELD("id", weir__as_id, AT(id), .needed = true),
    WEIR_FIELD("delivery", weir__as_delivery, AT(delivery), .needed = true),
    WEIR_FIELD("result", weir__as_raw, AT(result)),
    WEIR_FIELD("error", weir__as_text, AT(error)),
    WEIR_FIELD("final", weir__as_bool, AT(final)),
    WEIR_FIELD("return", weir__as_bool, AT(returned)),
    WEIR_FIELD("delay", weir__as_ms, AT(delay_ms), .max = WEIR_MAX_MS),
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
    WEIR_FIELD("jobs", weir__as_list, AT(all.items), .needed = true, .min = 1, .max = WEIR_MAX_ADD,
               .fields = ending_fields, .size = sizeof(item)),
    WEIR_FIELD("take", weir__as_object, AT(next_take), .fields = srv_next_fields,
               .given = AT(takes)),
    WEIR_FIELD("worker", weir__as_text, AT(all.worker), .min = 1, .max = WEIR_MAX_WORKER),
    { 0 }
};
#undef AT

/* False: it was answered. */
static bool one_outcome_each(srv_request *r, weir_items items)
{
    for (size_t i = 0; i < items.n; i++) {
        const item *it = (const item *)items.item + i;
        char        field[32];
        snprintf(field, sizeof field, "jobs[%zu]", i);
        if (it->final && !it->error) {
            srv_reply_fail(r, WEIR_EINVAL, field,
                           "%s.final: only a job with an error can have it", field);
            return false;
        }
        if (it->delay_ms && !it->returned) {
            srv_reply_fail(r, WEIR_EINVAL, field,
                           "%s.delay: only a job that is returned can have one", field);
            return false;
        }
        if ((it->result.text != NULL) + (it->error != NULL) + it->returned <= 1)
            continue;
        srv_reply_fail(r, WEIR_EINVAL, field,
                       "%s: only one of result, error and return can be what became of it", field);
        return false;
    }
    return true;
}

static void add_results(weir_buf *out, const finishing *fin)
{
    const weir_ended *e = fin->ended;
    weir__buf_str(out, "{\"results\":[");
    for (size_t i = 0; i < fin->all.items.n; i++) {
        const item *it = (const item *)fin->all.items.item + i;
        if (i)
            weir__buf_char(out, ',');
        if (it->foreign) {
            add_foreign(out, it);
            continue;
        }
        if (e->err.code) {
            add_refused(out, it, &e->err);
        } else {
            weir__buf_printf(out, "{\"id\":%" PRIu64 ",\"state\":", it->id);
            if (e->state == WEIR_STATE_ANY)
                weir__buf_str(out, "null}");        /* it is gone */
            else
                weir__buf_printf(out, "\"%s\"}", weir_state_name(e->state));
        }
        e++;
    }
    weir__buf_str(out, "],");
}

/* How many have ended. */
static size_t count_endings(const finishing *fin, srv_counters *count)
{
    size_t stale = 0, n = 0;
    for (size_t i = 0; i < fin->n_ended; i++) {
        stale += fin->ended[i].err.code == WEIR_ESTALE;
        n += !fin->ended[i].err.code;
    }
    atomic_fetch_add(&count->jobs_ended, n);
    atomic_fetch_add(&count->jobs_stale, stale);
    return n;
}

static void answer_finish(srv_request *r, weir_code code, const weir_error *err)
{
    (void)code, (void)err;          /* of the take: the results are answered all the same */
    finishing *fin = r->state;
    weir_buf   out = { 0 };
    weir__buf_reserve(&out, 64 + fin->all.items.n * 48);
    add_results(&out, fin);
    srv_taking_give(&fin->next, fin->status, &out, answer_finish);
}

static void take_next(srv_request *r, bool only_alone);

/* The store could do none of it. */
static const weir_error *trouble_of_all(const finishing *fin)
{
    for (size_t i = 0; i < fin->n_ended; i++)
        if (weir_code_http(fin->ended[i].err.code) < 500)
            return NULL;
    return fin->n_ended ? &fin->ended[0].err : NULL;
}

/* The worker has these no longer. */
static void note_ended(srv_request *r, const finishing *fin)
{
    const weir_ended *e = fin->ended;
    for (size_t i = 0; i < fin->all.items.n; i++) {
        const item *it = (const item *)fin->all.items.item + i;
        if (it->foreign)
            continue;
        if (!e->err.code || e->err.code == WEIR_ESTALE) {
            srv_workers_ended(r->server->workers, it->id, it->delivery);
            srv_holds_ended(r->server->holds, it->id, it->delivery);
        }
        e++;
    }
}

static void took(srv_request *r, weir_code code, const weir_error *err)
{
    finishing *fin = r->state;
    srv_taking_took(&fin->next, code != WEIR_OK);
    if (!code && !fin->next.n_jobs && fin->next.waits && !fin->next.busy)
        take_next(r, true);
    else
        answer_finish(r, code, err);
}

/* only_alone: of the jobs that wait, just a suspect is left for it. */
static void take_next(srv_request *r, bool only_alone)
{
    finishing   *fin = r->state;
    weir_future *f = NULL;
    weir_error   why = { 0 };
    if (!fin->takes || !srv_taking_enter(&fin->next, only_alone)) {
        answer_finish(r, WEIR_OK, NULL);
        return;
    }
    weir_code rc = weir_take_async(srv_queue(r), &fin->next.what, fin->next.jobs,
                                       &fin->next.n_jobs, &f, &why);
    srv_await(r, rc, &why, f, took);
}

/* The next jobs were taken with the last that was ended; when that was refused, or they could not
 * be taken then, they are taken on their own. */
static void finished(srv_request *r, weir_code code, const weir_error *err)
{
    finishing        *fin = r->state;
    const weir_error *trouble = code ? err : trouble_of_all(fin);
    const weir_ended *last = fin->n_ended ? &fin->ended[fin->n_ended - 1] : NULL;
    bool              tried = fin->next.pass != WEIR__PASS_NONE;
    bool              worked = tried && !trouble && last && !last->err.code;
    if (worked) {
        fin->next.n_jobs = last->n_jobs;
        fin->next.waits = last->suspect_waits;
    }
    if (tried)
        srv_taking_took(&fin->next, !worked);
    if (trouble) {
        srv_reply_error(r, trouble);
        return;
    }
    if (fin->n_ended)
        note_ended(r, fin);
    fin->status = count_endings(fin, &r->server->counters) < fin->all.items.n ? 207 : 200;
    if (worked && (fin->next.n_jobs || !fin->next.waits || fin->next.busy))
        answer_finish(r, WEIR_OK, NULL);
    else
        take_next(r, worked);
}

static weir_ending ending_of(const item *it)
{
    weir_ending e = { .id = it->id, .delivery = it->delivery };
    if (it->error) {
        e.outcome = it->final ? WEIR_OUTCOME_GIVE_UP : WEIR_OUTCOME_FAIL;
        e.text = it->error;
    } else if (it->returned) {
        e.outcome = WEIR_OUTCOME_RETURN;
        e.delay_ms = it->delay_ms;
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
    weir_ending *endings = srv_alloc(r, fin->all.items.n * sizeof *endings);
    weir_future *f = NULL;
    weir_error   err = { 0 };
    fin->ended = srv_alloc(r, fin->all.items.n * sizeof *fin->ended);
    if (!endings || !fin->ended) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    for (size_t i = 0; i < fin->all.items.n; i++) {
        const item *it = (const item *)fin->all.items.item + i;
        if (!it->foreign)
            endings[fin->n_ended++] = ending_of(it);
    }
    if (!fin->n_ended) {
        finished(r, WEIR_OK, NULL);
        return;
    }
    if (fin->takes && srv_taking_enter(&fin->next, false)) {
        endings[fin->n_ended - 1].next = &fin->next.what;
        endings[fin->n_ended - 1].jobs = fin->next.jobs;
    }
    weir_code rc = weir_finish_async(srv_queue(r), endings, fin->n_ended, fin->ended, &f, &err);
    srv_await(r, rc, &err, f, finished);
}

static void handle_finish(srv_request *r)
{
    finishing *fin;
    if (!SRV_STATE(r, fin))
        return;
    fin->next_take.n = 1;
    fin->next.r = r;
    if (srv_body(r, finish_fields, fin) && one_outcome_each(r, fin->all.items) &&
        (!fin->takes || srv_taking_init(&fin->next, r, &fin->next_take)))
        check(r, &fin->all, finish);
}

/* ---- POST /v1/renew ---- */

typedef struct renewing {
    deliveries    all;              /* first */
    int64_t       lease_ms;
    weir_lease   *leases;           /* of the jobs that are not foreign ... */
    weir_renewed *renewed;          /* ... and the answers */
} renewing;

#define AT(member) offsetof(renewing, member)
static const weir_field renew_fields[] = {
    WEIR_FIELD("jobs", weir__as_list, AT(all.items), .needed = true, .min = 1, .max = WEIR_MAX_ADD,
               .fields = lease_fields, .size = sizeof(item)),
    WEIR_FIELD("lease", weir__as_ms, AT(lease_ms), .min = WEIR_MIN_LEASE_MS, .max = WEIR_MAX_MS),
    WEIR_FIELD("worker", weir__as_text, AT(all.worker), .min = 1, .max = WEIR_MAX_WORKER),
    { 0 }
};
#undef AT

static void add_renewal(weir_buf *out, const item *it, weir_code code)
{
    weir_error err;
    if (!code) {
        weir__buf_printf(out, "{\"id\":%" PRIu64 ",\"ok\":true}", it->id);
        return;
    }
    if (code == WEIR_ESTALE)
        weir_fail(&err, code, "job %" PRIu64 ": delivery %" PRIu32 " is over: stop, it is "
                  "not this worker's any more (ended, cancelled, removed, or its lease was lost)",
                  it->id, it->delivery);
    else
        weir_fail(&err, code, "job %" PRIu64 ": %s", it->id, weir_code_text(code));
    add_refused(out, it, &err);
}

static void note_renewal(srv_request *r, const weir_lease *l, weir_code code)
{
    srv_workers *ws = r->server->workers;
    if (!code)
        srv_workers_renewed(ws, l->id, l->delivery,
                            l->lease_ms ? l->lease_ms : WEIR_DEFAULT_LEASE_MS);
    else if (code == WEIR_ESTALE)
        srv_workers_ended(ws, l->id, l->delivery);
}

static void renewed(srv_request *r, weir_code code, const weir_error *err)
{
    renewing *ren = r->state;
    weir_buf  out = { 0 };
    uint64_t  stale = 0;
    size_t    at = 0;
    if (code) {
        srv_reply_error(r, err);
        return;
    }
    weir__buf_str(&out, "{\"results\":[");
    for (size_t i = 0; i < ren->all.items.n; i++) {
        const item *it = (const item *)ren->all.items.item + i;
        if (i)
            weir__buf_char(&out, ',');
        if (it->foreign) {
            add_foreign(&out, it);
            continue;
        }
        weir_code each = ren->renewed[at].err.code;
        stale += each == WEIR_ESTALE;
        note_renewal(r, &ren->leases[at++], each);
        add_renewal(&out, it, each);
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
    ren->leases = srv_alloc(r, ren->all.items.n * sizeof *ren->leases);
    ren->renewed = srv_alloc(r, ren->all.items.n * sizeof *ren->renewed);
    if (!ren->leases || !ren->renewed) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    for (size_t i = 0; i < ren->all.items.n; i++) {
        const item *it = (const item *)ren->all.items.item + i;
        if (!it->foreign)
            ren->leases[n++] = (weir_lease){ .id = it->id, .delivery = it->delivery,
                                             .lease_ms = ren->lease_ms };
    }
    if (!n) {
        renewed(r, WEIR_OK, NULL);
        return;
    }
    weir_code rc = weir_renew_async(srv_queue(r), ren->leases, n, ren->renewed, &f, &err);
    srv_await(r, rc, &err, f, renewed);
}

static void handle_renew(srv_request *r)
{
    renewing *ren;
    if (SRV_STATE(r, ren) && srv_body(r, renew_fields, ren))
        check(r, &ren->all, renew);
}

const srv_route srv_finish_routes[] = {
    { "POST", "/v1/finish", WEIR_ROLE_WORK, handle_finish, SRV_MAX_BODY, NULL, 0,
      "Say what became of jobs that were taken, and take the next", "Finish", "Finished", 200 },
    { "POST", "/v1/renew", WEIR_ROLE_WORK, handle_renew, SRV_MAX_SMALL_BODY, NULL, 0,
      "Keep jobs that were taken for longer", "Renew", "Renewed", 200 },
    { 0 }
};
