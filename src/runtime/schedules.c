/* schedules.c - firing schedules that are due, and the calls of schedule.h. */
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

typedef struct kept {
    weir_schedule s;
    weir_cron     cron;
    uint64_t      version;
    weir_error    err;              /* it cannot be read, or not be understood any more */
} kept;

static void read_row(const weir_schedule_row *row, weir_arena *arena, kept *out)
{
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = arena };
    *out = (kept){ .version = row->version };
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

/* The schedule as an operation that puts it; its record is in `record`. */
static weir_op op_put(const weir_schedule *s, uint64_t version, int64_t due_at, weir_buf *record)
{
    weir__buf_clear(record);
    weir__schedule_write(record, s);
    return (weir_op){ .kind = WEIR_OP_SCHEDULE,
                      .u.schedule = { .name = s->name, .record = record->data,
                                      .len = record->len, .due_at = due_at,
                                      .version = version } };
}

/* What a firing adds. The values of the job are in `values`. */
static weir_code make_spec(const weir_schedule *s, int64_t at, weir_buf *values, weir_spec *out,
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
    kept       k;
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
    if (make_spec(s, f->plan.at, &f->values, &f->spec, &f->k.err))
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
        return op_put(s, f->k.version, now + REFUSED_MS, &f->record);
    if (add->kind == WEIR_OP_ADD && !add->err.code)
        done.job = f->added.id;
    else if (add->kind == WEIR_OP_ADD && weir_code_may_retry(add->err.code))
        return none();                          /* it is still due */
    else if (add->kind == WEIR_OP_ADD)
        done.outcome = WEIR_FIRING_REFUSED;
    weir__schedule_note(s, done);
    return op_put(s, f->k.version, weir__schedule_due(s), &f->record);
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
        read_row(&rows->row[i], &arena, &f[i].k);
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

/* ---- the calls ---- */

/* Read a schedule; WEIR_ENOENT: there is none. */
static weir_code find(weir_queue *q, const char *name, weir_arena *arena, kept *out,
                      weir_error *err)
{
    weir_schedule_rows *rows;
    weir_code           rc = weir__schedule_name_check(name, err);
    if (!rc)
        rc = read_rows(q, (weir_op_schedules){ .name = name, .limit = 1 }, &rows, err);
    if (rc)
        return rc;
    if (!rows->n) {
        rc = weir_fail(err, WEIR_ENOENT, "there is no schedule %s", name);
    } else {
        weir_schedule_row *row = &rows->row[0];
        char              *copy = weir__arena_alloc(arena, row->len + 1);   /* texts are in it */
        if (copy) {
            memcpy(copy, row->record, row->len);
            row->record = copy;
            read_row(row, arena, out);
        }
        rc = copy ? out->err.code : weir_fail(err, WEIR_ENOMEM, "schedule: out of memory");
        if (copy && rc && err)
            *err = out->err;
        row->record = NULL;
    }
    weir__rows_free(rows);
    return rc;
}

static weir_code put(weir_queue *q, const weir_schedule *s, uint64_t version, weir_error *err)
{
    weir_buf    record = { 0 };
    weir_ticket t = { .op = op_put(s, version, weir__schedule_due(s), &record) };
    weir_code   rc = record.failed ? weir_fail(err, WEIR_ENOMEM, "schedule: out of memory")
                                   : weir__queue_run(q, &t, err);
    weir__buf_fini(&record);
    return rc;
}

/* Read a schedule, change it, put it, until nobody else has changed it meanwhile. */
static weir_code change(weir_queue *q, const char *name,
                        weir_code (*how)(weir_queue *q, kept *k, const void *ctx, weir_error *err),
                        const void *ctx, weir_error *err)
{
    weir_code rc = WEIR_ESTALE;
    while (rc == WEIR_ESTALE) {
        weir_arena arena = { 0 };
        kept       k = { 0 };
        rc = find(q, name, &arena, &k, err);
        if (!rc)
            rc = how(q, &k, ctx, err);
        if (!rc)
            rc = put(q, &k.s, k.version, err);
        weir__arena_free(&arena);
    }
    return rc;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Would it fire at other times? */
static bool same_times(const weir_schedule *a, const weir_schedule *b)
{
    return same_text(a->when, b->when) && same_text(a->zone, b->zone) &&
           same_text(a->except, b->except) && a->day_or_weekday == b->day_or_weekday &&
           a->start_at == b->start_at && a->end_at == b->end_at && a->paused == b->paused;
}

weir_code weir_schedule_put(weir_queue *q, const weir_schedule *s, weir_error *err)
{
    weir_cron c;
    weir_code rc = weir__schedule_check(s, err);
    if (!rc)
        rc = weir__schedule_parse(&c, s, err);
    while (!rc) {
        weir_arena    arena = { 0 };
        kept          old = { 0 };
        weir_schedule own = *s;
        rc = find(q, s->name, &arena, &old, err);
        bool known = !rc;
        own.created_at = known ? old.s.created_at : weir_now(q);
        own.last_at = old.s.last_at;
        own.last_job = old.s.last_job;
        own.fired = old.s.fired;
        own.caught_up = 0;
        own.n_history = old.s.n_history;
        memcpy(own.history, old.s.history, sizeof own.history);
        own.next_at = known && same_times(s, &old.s) ? old.s.next_at
                                                      : weir__schedule_after(&own, &c, weir_now(q));
        if (!rc || rc == WEIR_ENOENT)
            rc = put(q, &own, known ? old.version : 0, err);
        weir__arena_free(&arena);
        if (rc != WEIR_ESTALE)
            break;
        rc = WEIR_OK;
    }
    return rc;
}

weir_code weir_schedule_remove(weir_queue *q, const char *name, weir_error *err)
{
    weir_ticket t = { .op = { .kind = WEIR_OP_SCHEDULE,
                              .u.schedule = { .name = name, .due_at = INT64_MAX,
                                              .version = WEIR_ANY_VERSION } } };
    return weir__queue_run(q, &t, err);
}

static weir_code pause_it(weir_queue *q, kept *k, const void *ctx, weir_error *err)
{
    bool paused = *(const bool *)ctx;
    (void)err;
    if (k->s.paused && !paused)
        k->s.next_at = weir__schedule_after(&k->s, &k->cron, weir_now(q));
    k->s.paused = paused;
    return WEIR_OK;
}

weir_code weir_schedule_pause(weir_queue *q, const char *name, bool paused, weir_error *err)
{
    return change(q, name, pause_it, &paused, err);
}

/* ---- by hand ---- */

typedef struct by_hand {
    const int64_t    *at;
    const weir_added *added;
    size_t            n;
} by_hand;

static weir_code note_by_hand(weir_queue *q, kept *k, const void *ctx, weir_error *err)
{
    const by_hand *b = ctx;
    int64_t        now = weir_now(q);
    (void)err;
    for (size_t i = b->n > WEIR_MAX_FIRED ? b->n - WEIR_MAX_FIRED : 0; i < b->n; i++)
        weir__schedule_note(&k->s, (weir_firing){ .at = b->at[i], .done_at = now,
                                                  .outcome = WEIR_FIRING_BY_HAND,
                                                  .job = b->added[i].id });
    return WEIR_OK;
}

/* Add a job for each of n firings, and say so in the history. */
static weir_code add_by_hand(weir_queue *q, const weir_schedule *s, const int64_t *at, size_t n,
                             weir_added *added, weir_error *err)
{
    weir_spec *specs = calloc(n, sizeof *specs);
    weir_buf  *values = calloc(n, sizeof *values);
    weir_code  rc = specs && values ? WEIR_OK
                                    : weir_fail(err, WEIR_ENOMEM, "schedule: out of memory");
    for (size_t i = 0; !rc && i < n; i++)
        rc = make_spec(s, at[i], &values[i], &specs[i], err);
    if (!rc)
        rc = weir_add_many(q, specs, n, added, err);
    for (size_t i = 0; values && i < n; i++)
        weir__buf_fini(&values[i]);
    free(values);
    free(specs);
    if (rc)
        return rc;
    by_hand b = { at, added, n };
    rc = change(q, s->name, note_by_hand, &b, err);
    return rc == WEIR_ENOENT ? WEIR_OK : rc;            /* it was removed meanwhile */
}

weir_code weir_schedule_fire(weir_queue *q, const char *name, uint64_t *id, weir_error *err)
{
    weir_arena arena = { 0 };
    kept       k = { 0 };
    weir_added added = { 0 };
    int64_t    now = weir_now(q);
    weir_code  rc = find(q, name, &arena, &k, err);
    if (!rc)
        rc = add_by_hand(q, &k.s, &now, 1, &added, err);
    weir__arena_free(&arena);
    if (id)
        *id = added.id;
    return rc;
}

weir_code weir_schedule_backfill(weir_queue *q, const char *name, int64_t from_at, int64_t to_at,
                                 size_t *n, weir_error *err)
{
    enum { ROOM = WEIR_MAX_FIRINGS + 1 };
    weir_arena  arena = { 0 };
    kept        k = { 0 };
    int64_t    *at = malloc(ROOM * sizeof *at);
    weir_added *added = malloc(ROOM * sizeof *added);
    weir_code   rc = find(q, name, &arena, &k, err);
    size_t      found = 0;
    *n = 0;
    if (!rc && (!at || !added))
        rc = weir_fail(err, WEIR_ENOMEM, "backfill: out of memory");
    if (!rc) {
        int64_t after = weir__schedule_after(&k.s, &k.cron, from_at > 0 ? from_at - 1 : 0);
        for (; after && after < to_at && found < ROOM;
             after = weir__schedule_after(&k.s, &k.cron, after))
            at[found++] = after;
        if (found == ROOM)
            rc = weir_fail(err, WEIR_ELIMIT, "backfill: more than %d firings in this span",
                           WEIR_MAX_FIRINGS);
    }
    if (!rc && found)
        rc = add_by_hand(q, &k.s, at, found, added, err);
    if (!rc)
        *n = found;
    free(at);
    free(added);
    weir__arena_free(&arena);
    return rc;
}

/* ---- reading ---- */

typedef struct list {
    weir_schedules head;            /* first: it is what the caller has */
    weir_arena     arena;
} list;

void weir_schedules_free(weir_schedules *s)
{
    list *l = (list *)s;
    if (!l)
        return;
    weir__arena_free(&l->arena);
    free(l);
}

static weir_code read_list(weir_queue *q, weir_op_schedules what, weir_schedules **out,
                           weir_error *err)
{
    weir_schedule_rows *rows;
    *out = NULL;
    weir_code rc = read_rows(q, what, &rows, err);
    if (rc)
        return rc;
    list *l = calloc(1, sizeof *l);
    bool  ok = l && (l->head.schedule = weir__arena_alloc(&l->arena, (rows->n + 1) *
                                                          sizeof(weir_schedule)));
    for (size_t i = 0; ok && i < rows->n; i++) {
        char *copy = weir__arena_alloc(&l->arena, rows->row[i].len + 1);
        kept  k;
        ok = copy != NULL;
        if (!ok)
            break;
        memcpy(copy, rows->row[i].record, rows->row[i].len);
        read_row(&(weir_schedule_row){ .record = copy, .len = rows->row[i].len }, &l->arena, &k);
        ok = k.err.code != WEIR_ENOMEM;
        if (ok && k.s.name)
            l->head.schedule[l->head.n++] = k.s;
    }
    if (ok)
        l->head.more = what.limit && rows->n == what.limit;
    weir__rows_free(rows);
    if (ok) {
        *out = &l->head;
        return WEIR_OK;
    }
    weir_schedules_free(l ? &l->head : NULL);
    return weir_fail(err, WEIR_ENOMEM, "schedules: out of memory");
}

weir_code weir_schedules_list(weir_queue *q, const char *after, size_t limit,
                              weir_schedules **out, weir_error *err)
{
    if (!limit)
        limit = WEIR_MAX_PAGE;
    return read_list(q, (weir_op_schedules){ .after = after, .limit = limit }, out, err);
}

weir_code weir_schedule_get(weir_queue *q, const char *name, weir_schedules **out, weir_error *err)
{
    *out = NULL;
    weir_code rc = weir__schedule_name_check(name, err);
    if (!rc)
        rc = read_list(q, (weir_op_schedules){ .name = name, .limit = 1 }, out, err);
    if (rc || (*out)->n)
        return rc;
    weir_schedules_free(*out);
    *out = NULL;
    return weir_fail(err, WEIR_ENOENT, "there is no schedule %s", name);
}
