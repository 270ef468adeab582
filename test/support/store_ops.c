/* store_ops.c - one short function for each operation of a store, for tests. */
#include "support/store_fixture.h"

#include <stdlib.h>
#include <string.h>

static void hold(fixture *f, void *thing, void (*release)(void *))
{
    if (f->n_held == f->cap_held) {
        f->cap_held = f->cap_held ? f->cap_held * 2 : 64;
        f->held = realloc(f->held, f->cap_held * sizeof *f->held);
    }
    f->held[f->n_held].thing = thing;
    f->held[f->n_held++].release = release;
}

#define RELEASE(name) \
    static void drop_##name(void *thing) { weir_##name##_free(thing); }
RELEASE(job)
RELEASE(page)
RELEASE(lines)
RELEASE(stats)
RELEASE(report)

/* ---- running ---- */

weir_code run_batch(fixture *f, weir_op **ops, size_t n)
{
    for (size_t i = 0; f->partitions && i < n; i++)
        ids_to_store(f, ops[i]);
    weir_code rc = f->store->ops->run(f->store, ops, n, &f->err);
    for (size_t i = 0; f->partitions && !rc && i < n; i++)
        ids_from_store(f, ops[i]);
    for (size_t i = 0; !rc && has_addresses(f->url) && i < n; i++)
        drop_addresses(ops[i]);
    return rc;
}

weir_code run(fixture *f, weir_op *op)
{
    f->err = (weir_error){ 0 };
    op->now_ms = f->now;
    op->steady_ms = f->now - f->stepped;
    weir_code rc = weir__op_check(op, &f->err);
    if (rc)
        return rc;
    rc = run_batch(f, &op, 1);
    if (!rc) {
        rc = op->err.code;
        f->err = op->err;
    }
    return rc;
}

/* ---- add ---- */

weir_code add_many(fixture *f, const weir_spec *specs, size_t n, weir_added *out)
{
    weir_op op = { .kind = WEIR_OP_ADD, .u.add = { .specs = specs, .n = n, .out = out } };
    return run(f, &op);
}

weir_code try_add(fixture *f, const weir_spec *spec, weir_added *out)
{
    weir_added own;
    return add_many(f, spec, 1, out ? out : &own);
}

uint64_t add_spec(fixture *f, const weir_spec *spec)
{
    weir_added out = { 0 };
    weir_code  rc = try_add(f, spec, &out);
    if (rc)
        print_error("add: %s\n", f->err.msg);
    assert_int_equal(rc, WEIR_OK);
    assert_false(out.existed);
    return out.id;
}

uint64_t add(fixture *f, const char *type)
{
    return add_spec(f, &(weir_spec){ .type = type });
}

/* ---- take and finish ---- */

static size_t take_op(fixture *f, weir_op_take *take, const weir_job **out)
{
    weir_job *jobs[WEIR_MAX_PAGE] = { 0 };
    weir_op   op = { .kind = WEIR_OP_TAKE, .u.take = *take };
    op.u.take.jobs = jobs;
    while (op.u.take.types[op.u.take.n_types])
        op.u.take.n_types++;
    assert_int_equal(run(f, &op), WEIR_OK);
    for (size_t i = 0; i < op.u.take.n_jobs; i++) {
        hold(f, jobs[i], drop_job);
        out[i] = jobs[i];
    }
    *take = op.u.take;
    return take->n_jobs;
}

const weir_job *take_as(fixture *f, const char *type, const char *worker, int64_t lease_ms)
{
    const weir_job *job = NULL;
    take_op(f, &(weir_op_take){ .types = (const char *[]){ type, NULL }, .n = 1, .worker = worker,
                                .lease_ms = lease_ms }, &job);
    return job;
}

const weir_job *take(fixture *f, const char *type)
{
    return take_as(f, type, WORKER, LEASE_MS);
}

size_t take_some(fixture *f, const char *const *types, size_t n, const weir_job **out)
{
    return take_op(f, &(weir_op_take){ .types = types, .n = n, .worker = WORKER,
                                       .lease_ms = LEASE_MS }, out);
}

size_t take_when(fixture *f, const char *const *types, size_t n, const char *when,
                 const weir_job **out)
{
    return take_op(f, &(weir_op_take){ .types = types, .n = n, .worker = WORKER, .when = when,
                                       .lease_ms = LEASE_MS }, out);
}

size_t take_busy(fixture *f, const char *const *types, size_t n, const weir_job **out, bool *waits)
{
    weir_op_take take = { .types = types, .n = n, .worker = WORKER, .lease_ms = LEASE_MS,
                          .busy = true };
    take_op(f, &take, out);
    *waits = take.suspect_waits;
    return take.n_jobs;
}

size_t take_idle(fixture *f, const char *const *types, size_t n, const weir_job **out, bool *waits)
{
    weir_op_take take = { .types = types, .n = n, .worker = WORKER, .lease_ms = LEASE_MS };
    take_op(f, &take, out);
    *waits = take.suspect_waits;
    return take.n_jobs;
}

static weir_code finish_op(fixture *f, const weir_job *job, weir_outcome outcome, const char *text)
{
    weir_op op = { .kind = WEIR_OP_FINISH,
                   .u.finish = { .id = job->id, .delivery = job->delivery, .outcome = outcome,
                                 .text = text, .len = text ? strlen(text) : 0 } };
    return run(f, &op);
}

weir_code finish(fixture *f, const weir_job *job)
{
    return finish_op(f, job, WEIR_OUTCOME_DONE, NULL);
}

weir_code finish_with(fixture *f, const weir_job *job, const char *result)
{
    return finish_op(f, job, WEIR_OUTCOME_DONE, result);
}

weir_code fail_job(fixture *f, const weir_job *job, const char *text)
{
    return finish_op(f, job, WEIR_OUTCOME_FAIL, text);
}

weir_code give_up(fixture *f, const weir_job *job, const char *text)
{
    return finish_op(f, job, WEIR_OUTCOME_GIVE_UP, text);
}

weir_code give_back(fixture *f, const weir_job *job)
{
    return finish_op(f, job, WEIR_OUTCOME_RETURN, NULL);
}

weir_code give_back_for(fixture *f, const weir_job *job, int64_t delay_ms)
{
    weir_op op = { .kind = WEIR_OP_FINISH,
                   .u.finish = { .id = job->id, .delivery = job->delivery,
                                 .outcome = WEIR_OUTCOME_RETURN, .delay_ms = delay_ms } };
    return run(f, &op);
}

weir_code lose(fixture *f, const weir_job *job)
{
    return finish_op(f, job, WEIR_OUTCOME_LOST, NULL);
}

weir_code finish_and_take(fixture *f, const weir_job *job, const char *type, const weir_job **next)
{
    weir_job *got = NULL;
    weir_op   op = { .kind = WEIR_OP_FINISH,
                     .u.finish = { .id = job->id, .delivery = job->delivery,
                                   .next = { .types = &type, .n_types = 1, .n = 1,
                                             .lease_ms = LEASE_MS, .worker = WORKER,
                                             .jobs = &got } } };
    weir_code rc = run(f, &op);
    *next = NULL;
    if (!rc && op.u.finish.next.n_jobs) {
        hold(f, got, drop_job);
        *next = got;
    }
    return rc;
}

weir_code renew(fixture *f, const weir_job *job, int64_t lease_ms)
{
    weir_renewal item = { .id = job->id, .delivery = job->delivery, .lease_ms = lease_ms };
    weir_op    op = { .kind = WEIR_OP_RENEW, .u.renew = { .items = &item, .n = 1 } };
    weir_code  rc = run(f, &op);
    return rc ? rc : item.code;
}

weir_code progress(fixture *f, const weir_job *job, int32_t percent, const char *data)
{
    weir_op op = { .kind = WEIR_OP_PROGRESS,
                   .u.progress = { .id = job->id, .delivery = job->delivery, .percent = percent,
                                   .data = data, .len = data ? strlen(data) : 0 } };
    return run(f, &op);
}

static weir_code log_op(fixture *f, uint64_t id, uint32_t delivery, const char *text)
{
    weir_op op = { .kind = WEIR_OP_LOG,
                   .u.log = { .id = id, .delivery = delivery, .text = text, .len = strlen(text) } };
    return run(f, &op);
}

weir_code log_from(fixture *f, const weir_job *job, const char *text)
{
    return log_op(f, job->id, job->delivery, text);
}

weir_code log_line(fixture *f, uint64_t id, const char *text)
{
    return log_op(f, id, 0, text);
}

/* ---- time ---- */

size_t tick_some(fixture *f, size_t limit, int64_t *next_at)
{
    weir_op op = { .kind = WEIR_OP_TICK, .u.tick = { .limit = limit } };
    f->due = INT64_MAX;
    assert_int_equal(run(f, &op), WEIR_OK);
    if (next_at)
        *next_at = op.u.tick.next_at;
    return op.u.tick.changed;
}

size_t tick(fixture *f)
{
    return tick_some(f, WEIR_MAX_PAGE, NULL);
}

void set_clock(fixture *f, int64_t ms)
{
    f->now += ms;
    f->stepped += ms;
    later(f, 0);
}

void later(fixture *f, int64_t ms)
{
    int64_t next;
    f->now += ms;
    do
        tick_some(f, WEIR_MAX_PAGE, &next);
    while (next <= f->now);
}

/* ---- by hand ---- */

static weir_code update_op(fixture *f, uint64_t id, uint32_t from, const weir_change *change)
{
    weir_op op = { .kind = WEIR_OP_UPDATE,
                   .u.update = { .id = id, .from = from, .change = *change } };
    return run(f, &op);
}

weir_code update(fixture *f, uint64_t id, const weir_change *change)
{
    return update_op(f, id, 0, change);
}

weir_code retry_job(fixture *f, uint64_t id)
{
    return update_op(f, id, WEIR_BIT(WEIR_STATE_COMPLETE) | WEIR_BIT(WEIR_STATE_FAILED) |
                     WEIR_BIT(WEIR_STATE_CANCELLED),
                     &(weir_change){ .state = WEIR_STATE_INACTIVE });
}

weir_code promote_job(fixture *f, uint64_t id)
{
    return update_op(f, id, WEIR_BIT(WEIR_STATE_DELAYED),
                     &(weir_change){ .state = WEIR_STATE_INACTIVE });
}

weir_code cancel_job(fixture *f, uint64_t id)
{
    return update_op(f, id, 0, &(weir_change){ .state = WEIR_STATE_CANCELLED });
}

weir_code remove_job(fixture *f, uint64_t id)
{
    weir_op op = { .kind = WEIR_OP_REMOVE, .u.remove = { .id = id } };
    return run(f, &op);
}

weir_code set_paused(fixture *f, const char *type, bool paused)
{
    weir_op op = { .kind = WEIR_OP_CONFIGURE,
                   .u.configure = { .type = type, .set_paused = true, .paused = paused } };
    return run(f, &op);
}

weir_code configure(fixture *f, const char *type, const weir_settings *settings)
{
    weir_op op = { .kind = WEIR_OP_CONFIGURE,
                   .u.configure = { .type = type, .settings = settings } };
    return run(f, &op);
}

weir_code import_many(fixture *f, const weir_incoming *jobs, size_t n, weir_imported *out)
{
    weir_op op = { .kind = WEIR_OP_IMPORT, .u.import = { .jobs = jobs, .n = n, .out = out } };
    return run(f, &op);
}

weir_imported import_job(fixture *f, const weir_job *job)
{
    weir_imported out;
    if (import_many(f, &(weir_incoming){ .job = job }, 1, &out))
        fail_msg("import: %s", f->err.msg);
    return out;
}

/* ---- looking ---- */

const weir_job *get(fixture *f, uint64_t id)
{
    weir_op   op = { .kind = WEIR_OP_GET, .u.get = { .id = id } };
    weir_code rc = run(f, &op);
    assert_true(rc == WEIR_OK || rc == WEIR_ENOENT);
    if (rc)
        return NULL;
    hold(f, op.u.get.job, drop_job);
    return op.u.get.job;
}

weir_state state_of(fixture *f, uint64_t id)
{
    const weir_job *job = get(f, id);
    return job ? job->state : WEIR_STATE_ANY;
}

const weir_page *list(fixture *f, const weir_query *query)
{
    weir_op op = { .kind = WEIR_OP_LIST, .u.list = { .query = *query } };
    if (run(f, &op))
        return NULL;
    hold(f, op.u.list.page, drop_page);
    return op.u.list.page;
}

const weir_lines *logs(fixture *f, uint64_t id, uint64_t after, size_t limit)
{
    weir_op op = { .kind = WEIR_OP_LOGS, .u.logs = { .id = id, .after = after, .limit = limit } };
    if (run(f, &op))
        return NULL;
    hold(f, op.u.logs.lines, drop_lines);
    return op.u.logs.lines;
}

const weir_stats *stats(fixture *f)
{
    weir_op op = { .kind = WEIR_OP_STATS };
    if (run(f, &op))
        return NULL;
    hold(f, op.u.stats.stats, drop_stats);
    return op.u.stats.stats;
}

const weir_type_stats *stats_of(fixture *f, const char *type)
{
    const weir_stats *s = stats(f);
    assert_non_null(s);
    for (size_t i = 0; i < s->n; i++) {
        if (!strcmp(s->type[i].type, type))
            return &s->type[i];
    }
    return NULL;
}

uint64_t count(fixture *f, weir_state state, const char *type)
{
    if (!type)
        return stats(f)->all.count[state];
    const weir_type_stats *t = stats_of(f, type);
    return t ? t->count[state] : 0;
}

const weir_report *check(fixture *f, bool mend)
{
    weir_op op = { .kind = WEIR_OP_CHECK, .u.check = { .mend = mend } };
    if (run(f, &op))
        return NULL;
    hold(f, op.u.check.report, drop_report);
    return op.u.check.report;
}
