/* op_progress.c - PROGRESS: how far a worker has come with a job. */
#include <inttypes.h>

#include "op/row.h"

static uint64_t *job(weir_op *op, size_t i)
{
    return i ? NULL : &op->u.progress.id;
}

static weir_code check(weir_op *op, weir_error *err)
{
    weir_op_progress *p = &op->u.progress;
    if (p->percent < 0 || p->percent > 100)
        return weir__fail_field(err, WEIR_EINVAL, "progress", "%" PRId32 " percent, must be 0 to "
                                "100", p->percent);
    return weir__check_json(p->data, &p->len, "progress data", err);
}

static void copy(weir_copier *c, weir_op *op)
{
    weir__copy_bytes(c, &op->u.progress.data, op->u.progress.len);
}

/* ---- as JSON ---- */

static void write_request(weir_buf *b, const weir_op *op)
{
    const weir_op_progress *p = &op->u.progress;
    weir__put_id(b, ",\"id\":", p->id);
    weir__put_int(b, ",\"delivery\":", p->delivery);
    weir__put_int(b, ",\"percent\":", p->percent);
    if (p->data)
        weir__put_raw(b, ",\"data\":", p->data, p->len);
}

static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("id", weir__as_number, REQUEST_OP(progress.id), .needed = true),
    WEIR_FIELD("delivery", weir__as_any_delivery, REQUEST_OP(progress.delivery), .needed = true),
    WEIR_FIELD("percent", weir__as_int32, REQUEST_OP(progress.percent), .needed = true),
    WEIR_FIELD("data", weir__as_raw, REQUEST(raw)),
    { 0 }
};

static weir_code read_request(weir_reader *in, op_request *r)
{
    (void)in;
    r->op.u.progress.data = r->raw.text;
    r->op.u.progress.len = r->raw.len;
    return WEIR_OK;
}

const weir_op_row weir__row_progress = WEIR_OP_ROW(
    "progress", WEIR_LANE_WORK, WEIR_SCOPE_NAMED, /* slow */ false, weir__role_work,
    /* writes */ weir__op_always, weir__op_no_steps, weir__op_no_action, weir__op_no_detail, job,
    /* each */ false, weir__op_no_type, weir__op_no_data, weir__op_no_token, weir__repeat_always,
    weir__op_no_take, weir__op_no_jobs, weir__op_no_result, weir__op_no_cut, check, copy,
    weir__op_no_output, weir__op_no_output, weir__op_with_bytes, write_request, request,
    read_request, weir__op_no_members, weir__op_no_answer, weir__op_answered);
