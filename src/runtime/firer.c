/* firer.c - firing schedules that are due: see firer.h. */
#include "runtime/firer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "core/firing.h"
#include "op/schedule.h"
#include "runtime/future.h"
#include "runtime/ops.h"
#include "runtime/schedules.h"

enum { AT_ONCE = WEIR_MAX_PAGE,     /* schedules that are fired together */
       REFUSED_MS = 60000 };        /* an unreadable schedule is read again after this */

/* One schedule on its way; its operation is in an array beside it. */
typedef struct firing {
    const char *name;
    weir_kept   k;
    char        by[WEIR_MAX_BY + 1];
    bool        stale;              /* somebody else has changed it */
    weir_state  last;               /* of the last job */
    weir_plan   plan;
    char        key[WEIR_MAX_TOKEN + 1];
    weir_token  token;
    weir_spec   spec;
    weir_added  added;
    weir_firing done;
    weir_error  trouble;            /* it is still due, for this reason */
    weir_buf    values, record;
} firing;

/* The schedules that are fired together. */
typedef struct round {
    weir_queue *q;
    size_t      n;
    firing     *f;
    weir_op    *ops;                /* of f[i]; one whose error is set is left out */
    int64_t     now;
    weir_arena  arena;
    weir_error *err;
} round;

static weir_op none(void)
{
    return (weir_op){ .kind = WEIR_OP_STATS, .err.code = WEIR_ESTATE };
}

/* Run what make() gives for each schedule. */
static weir_code run_all(round *r, weir_op (*make)(round *r, size_t i))
{
    weir_future *future;
    size_t       n = 0;
    for (size_t i = 0; i < r->n; i++) {
        r->ops[i] = make(r, i);
        n += !r->ops[i].err.code;
    }
    if (!n)
        return WEIR_OK;
    weir_code rc = weir__ops_run_async(r->q, r->ops, r->n, &future, r->err);
    if (!rc)
        rc = weir_future_wait(future, WEIR_FOREVER, r->err);
    weir_future_free(future);
    return rc;
}

/* ---- what became of the last jobs, where that matters ---- */

static weir_op op_get_last(round *r, size_t i)
{
    const weir_schedule *s = &r->f[i].k.s;
    if (r->f[i].k.err.code || s->overlap == WEIR_OVERLAP_ALLOW || !s->last_job)
        return none();
    return (weir_op){ .kind = WEIR_OP_GET, .u.get = { .id = s->last_job } };
}

static weir_code look_at_last(round *r)
{
    weir_code rc = run_all(r, op_get_last);
    for (size_t i = 0; !rc && i < r->n; i++) {
        weir_op *op = &r->ops[i];
        r->f[i].last = WEIR_STATE_ANY;
        if (op->kind != WEIR_OP_GET)
            continue;
        if (!op->err.code)
            r->f[i].last = op->u.get.job->state;
        else if (op->err.code != WEIR_ENOENT)
            r->f[i].trouble = op->err;
        weir__op_free(op);
    }
    return rc;
}

/* ---- deciding and adding ---- */

static bool is_on_its_way(const firing *f)
{
    return !f->k.err.code && !f->trouble.code;
}

static void decide(round *r, const weir_schedule_rows *rows)
{
    for (size_t i = 0; i < r->n; i++) {
        firing        *f = &r->f[i];
        weir_schedule *s = &f->k.s;
        int64_t        due = rows->row[i].due_at;   /* the store's clock may be ahead of ours */
        if (!is_on_its_way(f))
            continue;
        f->plan = weir__schedule_decide(s, &f->k.cron, f->last, r->now > due ? r->now : due);
        f->token = weir__schedule_token(s, f->plan.turn, f->key);
        f->done = (weir_firing){ .at = f->plan.at, .done_at = r->now, .outcome = f->plan.outcome };
        weir__schedule_spec(s, f->plan.at, &f->values, &f->spec, &f->trouble);
    }
}

static weir_op op_cancel_last(round *r, size_t i)
{
    firing *f = &r->f[i];
    if (!is_on_its_way(f) || !f->plan.cancel)
        return none();
    snprintf(f->by, sizeof f->by, "the schedule %s", f->name);
    return (weir_op){ .kind = WEIR_OP_UPDATE,
                      .u.update = { .id = f->k.s.last_job,
                                    .change = { .state = WEIR_STATE_CANCELLED, .by = f->by } } };
}

/* Add the job; or no job, if the firing is left out, so that nobody else can add one. */
static weir_op op_add(round *r, size_t i)
{
    firing *f = &r->f[i];
    if (!is_on_its_way(f) || f->added.id)
        return none();
    return (weir_op){ .kind = WEIR_OP_ADD,
                      .u.add = { .specs = &f->spec, .n = f->done.outcome == WEIR_FIRING_DONE,
                                 .out = &f->added, .token = &f->token } };
}

/* The answers of op_add(). False: some firings that were to be left out have added their job
 * before, and are to be added again, which says which. */
static bool take_answers(round *r)
{
    bool all = true;
    for (size_t i = 0; i < r->n; i++) {
        firing        *f = &r->f[i];
        const weir_op *op = &r->ops[i];
        weir_code      rc = op->err.code;
        if (op->kind != WEIR_OP_ADD)
            continue;
        if (!rc) {
            f->done.job = op->u.add.n ? f->added.id : 0;
        } else if (weir_code_may_retry(rc) || rc == WEIR_ECLOSED) {
            f->trouble = op->err;
        } else if (rc == WEIR_EINVAL && !op->u.add.n) {
            f->done.outcome = WEIR_FIRING_DONE;
            all = false;
        } else {
            f->done.outcome = WEIR_FIRING_REFUSED;
        }
    }
    return all;
}

static weir_code add_jobs(round *r)
{
    weir_code rc = run_all(r, op_cancel_last);      /* one may have ended meanwhile */
    if (!rc)
        rc = run_all(r, op_add);
    if (!rc && !take_answers(r))
        rc = run_all(r, op_add);
    if (!rc)
        take_answers(r);
    return rc;
}

/* ---- moving on ---- */

static weir_op op_move_on(round *r, size_t i)
{
    firing        *f = &r->f[i];
    weir_schedule *s = &f->k.s;
    if (f->k.err.code && s->name)
        return weir__schedule_op_put(s, f->k.version, r->now + REFUSED_MS, &f->record);
    if (!is_on_its_way(f))
        return none();
    weir__schedule_note(s, f->done);
    return weir__schedule_op_put(s, f->k.version, weir__schedule_due(s), &f->record);
}

/* ---- schedules that somebody else has changed since they were read ---- */

static weir_op op_read_again(round *r, size_t i)
{
    if (!r->f[i].stale)
        return none();
    return (weir_op){ .kind = WEIR_OP_SCHEDULES,
                      .u.schedules = { .name = r->f[i].name, .limit = 1 } };
}

/* Is the firing to be noted in the schedule as it is now? In most cases another process has moved
 * it on and has noted the firing. If the schedule is in the same turn, it is still due; if it is of
 * another series, it is another schedule. */
static bool is_missing(const firing *f, const weir_kept *now)
{
    return now->s.name && !now->err.code && now->s.series == f->k.s.series &&
           now->s.turn != f->plan.turn && !weir__schedule_has_noted(&now->s, f->done);
}

static void got_again(round *r, size_t i)
{
    firing            *f = &r->f[i];
    weir_op_schedules *op = &r->ops[i].u.schedules;
    weir_kept          now = { 0 };
    if (r->ops[i].err.code) {
        f->trouble = r->ops[i].err;
    } else if (op->rows->n) {
        weir_schedule_row row = op->rows->row[0];
        char             *copy = weir__arena_alloc(&r->arena, row.len + 1);
        if (copy) {
            row.record = memcpy(copy, row.record, row.len);
            weir__schedule_load(&row, &r->arena, &now);
        }
    }
    f->stale = is_missing(f, &now);
    if (f->stale)
        f->k = now;
    weir__op_free(&r->ops[i]);
}

static weir_op op_note(round *r, size_t i)
{
    firing *f = &r->f[i];
    if (!f->stale)
        return none();
    weir__schedule_note(&f->k.s, f->done);
    return weir__schedule_op_put(&f->k.s, f->k.version, weir__schedule_due(&f->k.s), &f->record);
}

/* Answers of puts. True: one of them has to be read again. */
static bool some_stale(round *r)
{
    bool some = false;
    for (size_t i = 0; i < r->n; i++) {
        firing   *f = &r->f[i];
        weir_code code = r->ops[i].kind == WEIR_OP_SCHEDULE ? r->ops[i].err.code : WEIR_OK;
        f->stale = code == WEIR_ESTALE && f->done.job;
        some |= f->stale;
        if (code && code != WEIR_ESTALE && code != WEIR_ENOENT)
            f->trouble = r->ops[i].err;
    }
    return some;
}

static weir_code move_on(round *r)
{
    weir_code rc = run_all(r, op_move_on);
    while (!rc && some_stale(r)) {
        rc = run_all(r, op_read_again);
        for (size_t i = 0; !rc && i < r->n; i++)
            if (r->f[i].stale)
                got_again(r, i);
        if (!rc)
            rc = run_all(r, op_note);
    }
    return rc;
}

/* ---- rounds ---- */

/* Fire the schedules of these rows. The first error of one of them is the result. */
static weir_code fire_rows(round *r, const weir_schedule_rows *rows)
{
    for (size_t i = 0; i < r->n; i++) {
        r->f[i].name = rows->row[i].name;
        weir__schedule_load(&rows->row[i], &r->arena, &r->f[i].k);
    }
    weir_code rc = look_at_last(r);
    if (!rc) {
        decide(r, rows);
        rc = add_jobs(r);
    }
    if (!rc)
        rc = move_on(r);
    for (size_t i = 0; i < r->n; i++) {
        firing *f = &r->f[i];
        if (!rc && (f->trouble.code || (f->k.err.code && !f->k.s.name))) {
            *r->err = f->trouble.code ? f->trouble : f->k.err;
            rc = r->err->code;
        }
        weir__buf_fini(&f->values);
        weir__buf_fini(&f->record);
    }
    return rc;
}

static weir_code fire_some(weir_queue *q, const weir_schedule_rows *rows, weir_error *err)
{
    round     r = { .q = q, .n = rows->n, .now = weir_now(q), .err = err };
    weir_code rc = WEIR_OK;
    r.f = calloc(r.n, sizeof *r.f);
    r.ops = calloc(r.n, sizeof *r.ops);
    rc = r.f && r.ops ? fire_rows(&r, rows)
                      : weir_fail(err, WEIR_ENOMEM, "schedules: out of memory");
    weir__arena_free(&r.arena);
    free(r.f);
    free(r.ops);
    return rc;
}

static bool is_closed(weir_firer *f)
{
    pthread_mutex_lock(&f->lock);
    bool closed = f->closed;
    pthread_mutex_unlock(&f->lock);
    return closed;
}

static weir_code read_due(weir_queue *q, weir_schedule_rows **out, weir_error *err)
{
    weir_ticket t = { .op = { .kind = WEIR_OP_SCHEDULES,
                              .u.schedules = { .due = true, .limit = AT_ONCE } } };
    weir_code   rc = weir__queue_run(q, &t, err);
    *out = rc ? NULL : t.op.u.schedules.rows;
    return rc;
}

/* Fire what is due. WEIR_OK: nothing is due any more, or others have fired it. */
static weir_code fire_all(weir_queue *q, weir_error *err)
{
    weir_code rc = WEIR_OK;
    for (size_t n = 1; !rc && n > 0 && !is_closed(&q->firer);) {
        weir_schedule_rows *rows;
        rc = read_due(q, &rows, err);
        n = rc ? 0 : rows->n;
        if (n)
            rc = fire_some(q, rows, err);
        weir__rows_free(rows);
    }
    return rc;
}

/* ---- the thread ---- */

static void *firer_main(void *arg)
{
    weir_queue *q = arg;
    weir_firer *f = &q->firer;
    pthread_mutex_lock(&f->lock);
    while (!f->closed) {
        if (!f->wanted) {
            pthread_cond_wait(&f->work, &f->lock);
            continue;
        }
        weir_error err;
        f->wanted = false;
        pthread_mutex_unlock(&f->lock);
        weir_code rc = fire_all(q, &err);
        if (!rc) {              /* the TICK that said so has left out when others are due */
            weir__timer_set(&q->timer, &q->tick, INT64_MIN);
        } else if (rc != WEIR_ECLOSED) {
            weir__events_trouble(&q->events, weir_now(q), &err);
            weir__timer_set(&q->timer, &q->tick, weir__queue_steady(q) + WEIR_TICK_RETRY_MS);
        }
        pthread_mutex_lock(&f->lock);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

void weir__firer_init(weir_firer *f)
{
    *f = (weir_firer){ 0 };
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->work, NULL);
}

weir_code weir__firer_wake(weir_queue *q, weir_error *err)
{
    weir_firer *f = &q->firer;
    weir_code   rc = WEIR_OK;
    pthread_mutex_lock(&f->lock);
    if (!f->started && !f->closed) {
        rc = weir__thread_start(&f->thread, firer_main, q, "weir-firer", err);
        f->started = !rc;
    }
    f->wanted = true;
    pthread_cond_signal(&f->work);
    pthread_mutex_unlock(&f->lock);
    return rc;
}

void weir__firer_close(weir_firer *f)
{
    pthread_mutex_lock(&f->lock);
    f->closed = true;
    bool started = f->started;
    f->started = false;
    pthread_cond_signal(&f->work);
    pthread_mutex_unlock(&f->lock);
    if (started)
        pthread_join(f->thread, NULL);
}

void weir__firer_fini(weir_firer *f)
{
    pthread_cond_destroy(&f->work);
    pthread_mutex_destroy(&f->lock);
}
