/* op_get.c - GET: one job. */
#include "core/job.h"
#include "op/row.h"

static uint64_t *job(weir_op *op, size_t i)
{
    return i ? NULL : &op->u.get.id;
}

static void clear(weir_op *op)
{
    op->u.get.job = NULL;
}

static void release(weir_op *op)
{
    weir_job_free(op->u.get.job);
}

/* ---- as JSON ---- */

static void write_request(weir_buf *b, const weir_op *op)
{
    weir__put_id(b, ",\"id\":", op->u.get.id);
}

static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("id", weir__as_number, REQUEST_OP(get.id), .needed = true),
    { 0 }
};

static void write_answer(weir_buf *b, const weir_op *op)
{
    weir__buf_str(b, ",\"job\":");
    weir__job_json(b, op->u.get.job);
}

static const weir_field answer[] = {
    FIELD_ERROR,
    WEIR_FIELD("job", weir__as_object, ANSWER(job), .fields = weir__job_fields),
    { 0 }
};

static weir_code read_answer(weir_reader *in, op_answer *a)
{
    if (!a->job.job.type)
        return weir__read_nonsense(in, "no job");
    weir__read_job_defaults(&a->job.job);
    a->op->u.get.job = weir__job_copy(&a->job.job);
    return a->op->u.get.job ? WEIR_OK : weir__read_no_memory(in);
}

const weir_op_row weir__row_get = WEIR_OP_ROW(
    "get", WEIR_LANE_OTHER, WEIR_SCOPE_NAMED, /* slow */ false, weir__role_read,
    /* writes */ weir__op_never, weir__op_no_steps, weir__op_no_action, weir__op_no_detail, job,
    /* each */ false, weir__op_no_type, weir__op_no_data, weir__op_no_token,
    weir__repeat_always, weir__op_no_take, weir__op_no_jobs, weir__op_no_result,
    weir__op_no_cut, weir__op_no_check, weir__op_no_copy, clear, release, weir__op_small,
    write_request, request, weir__op_read, write_answer, answer, read_answer);
