/* op_take.c - TAKE: jobs for a worker. FINISH may take the next ones: it uses weir__take_...() */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "core/condition.h"
#include "core/job.h"
#include "op/row.h"

static const char *action(const weir_op *op)
{
    (void)op;
    return "job.take";
}

static const weir_op_take *take(const weir_op *op)
{
    return &op->u.take;
}

static const char **type(weir_op *op, size_t i)
{
    weir_op_take *t = &op->u.take;
    return i < t->n_types ? &((const char **)(uintptr_t)t->types)[i] : NULL;
}

static size_t most(const weir_op *op)
{
    return op->u.take.n;
}

static bool result(const weir_op *op, size_t i, uint64_t *id)
{
    *id = i < op->u.take.n_jobs ? op->u.take.jobs[i]->id : 0;
    return i < op->u.take.n_jobs;
}

/* ---- check, copy, release ---- */

static weir_code check_condition(const char *when, weir_error *err)
{
    weir_condition *c;
    weir_code       rc = weir_condition_parse(&c, when, err);
    weir_condition_free(c);
    return rc;
}

weir_code weir__take_check(weir_op_take *t, weir_error *err)
{
    if (!t->n)
        return weir__fail_field(err, WEIR_EINVAL, "n", "0, must be at least 1");
    if (!t->n_types || !t->types)
        return weir__fail_field(err, WEIR_EINVAL, "types", "none given");
    if (t->n_types > WEIR_MAX_TAKE_TYPES)
        return weir__fail_field(err, WEIR_ELIMIT, "types", "%zu, at most %d (WEIR_MAX_TAKE_TYPES)",
                                t->n_types, WEIR_MAX_TAKE_TYPES);
    weir_code rc = weir__check_worker(t->worker, err);
    for (size_t i = 0; !rc && i < t->n_types; i++) {
        char field[32];
        snprintf(field, sizeof field, "types[%zu]", i);
        rc = weir__take_type_check(t->types[i], field, err);
    }
    if (!rc && t->when)
        rc = check_condition(t->when, err);
    if (!rc)
        rc = weir__check_limit(&t->n, 1, "n", err);
    return rc ? rc : weir__check_lease(&t->lease_ms, err);
}

static weir_code check(weir_op *op, weir_error *err)
{
    return weir__take_check(&op->u.take, err);
}

void weir__take_copy(weir_copier *c, weir_op_take *t)
{
    const char **types = weir__copy_array(c, t->types, t->n_types * sizeof *types);
    for (size_t i = 0; i < t->n_types; i++)
        weir__copy_text(c, &types[i]);
    t->types = types;
    weir__copy_text(c, &t->worker);
    weir__copy_text(c, &t->when);
    t->jobs = weir__copy_room(c, t->n * sizeof *t->jobs);
}

static void copy(weir_copier *c, weir_op *op)
{
    weir__take_copy(c, &op->u.take);
}

static void clear(weir_op *op)
{
    op->u.take.n_jobs = 0;
}

void weir__take_free(weir_op_take *t)
{
    for (size_t i = 0; i < t->n_jobs; i++) {
        weir_job_free(t->jobs[i]);
        t->jobs[i] = NULL;
    }
}

static void release(weir_op *op)
{
    weir__take_free(&op->u.take);
}

/* ---- as JSON ---- */

void weir__take_write(weir_buf *b, const weir_op_take *t)
{
    weir__put_int(b, "\"n\":", (int64_t)t->n);
    weir__put_int(b, ",\"lease\":", t->lease_ms);
    weir__put_text(b, ",\"worker\":", t->worker, strlen(t->worker));
    if (t->when)
        weir__put_text(b, ",\"when\":", t->when, strlen(t->when));
    weir__buf_str(b, ",\"types\":[");
    for (size_t i = 0; i < t->n_types; i++) {
        weir__put_next(b, i);
        weir__json_string(b, t->types[i], strlen(t->types[i]));
    }
    weir__buf_char(b, ']');
    weir__put_flag(b, ",\"busy\":", t->busy);
}

static void write_request(weir_buf *b, const weir_op *op)
{
    weir__buf_char(b, ',');
    weir__take_write(b, &op->u.take);
}

static const weir_field request[] = { FIELD_OP, WEIR__TAKE_REQUEST(REQUEST(take)), { 0 } };

weir_code weir__take_read(weir_reader *in, const op_take_request *from, weir_op_take *to)
{
    to->types = from->types.text;
    to->n_types = from->types.n;
    to->n = from->n ? (size_t)from->n : 1;
    to->lease_ms = from->lease_ms;
    to->worker = from->worker;
    to->when = from->when;
    to->busy = from->busy;
    to->jobs = weir__read_room(in, to->n, sizeof *to->jobs);
    return in->err.code;
}

static weir_code read_request(weir_reader *in, op_request *r)
{
    return weir__take_read(in, &r->take, &r->op.u.take);
}

void weir__take_write_answer(weir_buf *b, const weir_op_take *t)
{
    weir__put_jobs(b, t->jobs, t->n_jobs);
    weir__put_flag(b, ",\"suspect_waits\":", t->suspect_waits);
}

static void write_answer(weir_buf *b, const weir_op *op)
{
    weir__take_write_answer(b, &op->u.take);
}

static const weir_field answer[] = { FIELD_ERROR, WEIR__TAKE_ANSWER, { 0 } };

/* The jobs go from the page to their place. */
void weir__take_read_answer(op_answer *a, weir_op_take *to)
{
    to->n_jobs = a->page ? a->page->n : 0;
    if (to->n_jobs)
        memcpy(to->jobs, a->page->job, to->n_jobs * sizeof *to->jobs);
    if (a->page)
        a->page->n = 0;
    to->suspect_waits = a->suspect_waits;
    to->partial = weir__jobs_fill_take(to->jobs, to->n_jobs);
}

static weir_code read_answer(weir_reader *in, op_answer *a)
{
    (void)in;
    weir__take_read_answer(a, &a->op->u.take);
    return WEIR_OK;
}

const weir_op_row weir__row_take = WEIR_OP_ROW(
    "take", WEIR_LANE_WORK, WEIR_SCOPE_NAMED, /* slow */ false, weir__role_work,
    /* writes */ weir__op_always, weir__op_no_steps, action, weir__op_no_detail,
    weir__op_no_job, /* each */ false, type, weir__op_no_data, weir__op_no_token,
    weir__repeat_always, take, most, result, weir__op_no_cut, check, copy, clear, release,
    weir__op_small, write_request, request, read_request, write_answer, answer, read_answer);
