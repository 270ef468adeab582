/* op_touch.c - TOUCH: is there a job with this id? */
#include "op/row.h"

static uint64_t *job(weir_op *op, size_t i)
{
    return i ? NULL : &op->u.touch.id;
}

static void write_request(weir_buf *b, const weir_op *op)
{
    weir__put_id(b, ",\"id\":", op->u.touch.id);
}

static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("id", weir__as_number, REQUEST_OP(touch.id), .needed = true),
    { 0 }
};

const weir_op_row weir__row_touch = WEIR_OP_ROW(
    "touch", WEIR_LANE_OTHER, WEIR_SCOPE_NAMED, /* slow */ false, weir__role_read,
    /* writes */ weir__op_never, weir__op_no_steps, weir__op_no_action, weir__op_no_detail, job,
    /* each */ false, weir__op_no_type, weir__op_no_data, weir__op_no_token,
    weir__repeat_always, weir__op_no_take, weir__op_no_jobs, weir__op_no_result,
    weir__op_no_cut, weir__op_no_check, weir__op_no_copy, weir__op_no_output,
    weir__op_no_output, weir__op_small, write_request, request, weir__op_read,
    weir__op_no_members, weir__op_no_answer, weir__op_answered);
