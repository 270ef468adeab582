/* schedules.c - firing schedules that are due: see schedules.h. */
#include "runtime/schedules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/firing.h"
#include "core/values.h"
#include "op/schedule.h"
#include "runtime/future.h"
#include "runtime/ops.h"

enum { AT_ONCE = 200,               /* schedules that are fired together */
       REFUSED_MS = 60000 };        /* one that cannot be read is looked at again after this */

/* ---- a schedule that was read ---- */

void weir__schedule_load(const weir_schedule_row *row, weir_arena *arena, weir_kept *out)
{
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = arena };
    *out = (weir_kept){ .version = row->version };
    if (weir__schedule_read(&in, row->record, row->len, &out->s))
        out->err = in.err;
    else
        weir__schedule_parse(&out->cron, &out->s, &out->err);
}

static weir_code read_rows(weir_queue *q, weir_op_schedules what, weir_schedule_rows **out,
                           weir_error *err)
{
    weir_ticket t = { .op = { .kind = WEIR_OP_SCHEDULES, .u.schedules = what } };
    weir_code   rc = weir__queue_run(q, &t, err);
    *out = rc ? NULL : t.op.u.schedules.rows;
    return rc;
}

weir_op weir__schedule_op_put(const weir_schedule *s, uint64_t version, int64_t due_at,
                              weir_buf *record)
{
    weir__buf_clear(record);
    weir__schedule_write(record, s);
    return (weir_op){ .kind = WEIR_OP_SCHEDULE,
                      .u.schedule = { .name = s->name, .record = record->data,
                                      .len = record->len, .due_at = due_at,
                                      .version = version } };
}

weir_code weir__schedule_spec(const weir_schedule *s, int64_t at, weir_buf *values, weir_spec *out,
                              weir_error *err)
{
    weir_buf change = { 0 };
    *out = s->job;
    weir__buf_str(&change, "{\"schedule\":");
    weir__json_string(&change, s->name, strlen(s->name));
    weir__buf_printf(&change, ",\"scheduled_at\":%lld}", (long long)at);
    weir_code rc = change.failed ? weir_fail(err, WEIR_ENOMEM, "schedule: out of memory")
                                 : weir__values_merge(values, s->job.values, s->job.values_len,
                                                      change.data, change.len, err);
    weir__buf_fini(&change);
    out->values = values->data;
    out->values_len = values->len;
    return rc;
}

/* ---- firing ---- */

/* One schedule on its way; its operations are in arrays beside it. */
typedef struct firing {
    weir_kept  k;
    weir_plan  plan;
    char       key[WEIR_MAX_TOKEN + 1];
    weir_token token;
    weir_spec  spec;
    weir_added added;
    weir_buf   values, record;
} firing;

static weir_code run_all(weir_queue *q, weir_op *ops, size_t n, weir_error *err)
{
    weir_future *f;
    weir_code    rc = weir__ops_run_async(q, ops, n, &f, err);
    if (!rc)
        rc = weir_future_wait(f, WEIR_FOREVER, err);
    weir_future_free(f);
    return rc;
}

/* An operation that is left out of a round. */
static weir_op none(void)
{
    return (weir_op){ .kind = WEIR_OP_STATS, .err.code = WEIR_ESTATE };
}

/* What became of the last jobs, where that matters. */
static weir_code look_at_last(weir_queue *q, firing *f, weir_op *ops, size_t n, weir_state *last,
                              weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const weir_schedule *s = &f[i].k.s;
        bool asks = !f[i].k.err.code && s->overlap != WEIR_OVERLAP_ALLOW && s->last_job;
        ops[i] = asks ? (weir_op){ .kind = WEIR_OP_GET, .u.get = { .id = s->last_job } } : none();
    }
    weir_code rc = run_all(q, ops, n, err);
    for (size_t i = 0; i < n; i++) {
        last[i] = WEIR_STATE_ANY;
        if (rc || ops[i].kind != WEIR_OP_GET)
            continue;
        if (!ops[i].err.code)
            last[i] = ops[i].u.get.job->state;
        else if (ops[i].err.code != WEIR_ENOENT && !rc) {
            *err = ops[i].err;
            rc = err->code;
        }
        weir__op_free(&ops[i]);
    }
    return rc;
}

static weir_op op_add(firing *f)
{
    const weir_schedule *s = &f->k.s;
    if (f->k.err.code || f->plan.outcome != WEIR_FIRING_DONE)
        return none();
    if (weir__schedule_spec(s, f->plan.at, &f->values, &f->spec, &f->k.err))
        return none();
    snprintf(f->key, sizeof f->key, "schedule %s", s->name);
    f->token = (weir_token){ .key = f->key, .number = (uint64_t)f->plan.at };
    return (weir_op){ .kind = WEIR_OP_ADD, .u.add = { .specs = &f->spec, .n = 1, .out = &f->added,
                                                      .token = &f->token } };
}

/* The schedule as it is after the add, or after it was left out. */
static weir_op op_move_on(firing *f, const weir_op *add, int64_t now)
{
    weir_schedule *s = &f->k.s;
    if (f->k.err.code && !s->name)
        return none();                          /* a record that cannot be read stays as it is */
    weir_firing done = { .at = f->plan.at, .done_at = now, .outcome = f->plan.outcome };
    if (f->k.err.code)
        return weir__schedule_op_put(s, f->k.version, now + REFUSED_MS, &f->record);
    if (add->kind == WEIR_OP_ADD && !add->err.code)
        done.job = f->added.id;
    else if (add->kind == WEIR_OP_ADD && weir_code_may_retry(add->err.code))
        return none();                          /* it is still due */
    else if (add->kind == WEIR_OP_ADD)
        done.outcome = WEIR_FIRING_REFUSED;
    weir__schedule_note(s, done);
    return weir__schedule_op_put(s, f->k.version, weir__schedule_due(s), &f->record);
}

/* Fire the schedules of these rows: decide, add, move on. */
static weir_code fire_rows(weir_queue *q, const weir_schedule_rows *rows, firing *f, weir_op *ops,
                           weir_error *err)
{
    weir_arena arena = { 0 };
    weir_state last[AT_ONCE];
    size_t     n = rows->n;
    int64_t    now = weir_now(q);
    for (size_t i = 0; i < n; i++)
        weir__schedule_load(&rows->row[i], &arena, &f[i].k);
    weir_code rc = look_at_last(q, f, ops, n, last, err);
    for (size_t i = 0; !rc && i < n; i++) {
        firing *one = &f[i];
        int64_t due = rows->row[i].due_at;      /* the store's clock may be ahead of ours */
        if (!one->k.err.code)
            one->plan = weir__schedule_decide(&one->k.s, &one->k.cron, last[i],
                                              now > due ? now : due);
        if (one->plan.cancel)
            weir_cancel(q, one->k.s.last_job, NULL);        /* it may have ended meanwhile */
        ops[i] = op_add(one);
    }
    if (!rc)
        rc = run_all(q, ops, n, err);
    for (size_t i = 0; !rc && i < n; i++)
        ops[i] = op_move_on(&f[i], &ops[i], now);
    if (!rc)
        rc = run_all(q, ops, n, err);
    for (size_t i = 0; i < n; i++) {
        if (!rc && ops[i].err.code && ops[i].err.code != WEIR_ESTALE &&
            ops[i].err.code != WEIR_ENOENT) {
            *err = f[i].k.err.code ? f[i].k.err : ops[i].err;
            rc = err->code;
        }
        weir__buf_fini(&f[i].values);
        weir__buf_fini(&f[i].record);
    }
    weir__arena_free(&arena);
    return rc;
}

weir_code weir__schedules_fire(weir_queue *q, weir_error *err)
{
    firing   *f = malloc(AT_ONCE * sizeof *f);
    weir_op  *ops = malloc(AT_ONCE * sizeof *ops);
    weir_code rc = f && ops ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "schedules: out of memory");
    for (size_t n = AT_ONCE; !rc && n > 0;) {
        weir_schedule_rows *rows;
        weir_op_schedules   due = { .due = true, .limit = AT_ONCE };
        rc = read_rows(q, due, &rows, err);
        n = rc ? 0 : rows->n;
        if (n) {
            memset(f, 0, n * sizeof *f);
            rc = fire_rows(q, rows, f, ops, err);
        }
        weir__rows_free(rows);
    }
    free(f);
    free(ops);
    return rc;
}
