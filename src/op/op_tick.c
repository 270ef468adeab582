/* op_tick.c - TICK: whatever is due by now. */
#include "op/row.h"

static weir_code check(weir_op *op, weir_error *err)
{
    return weir__check_limit(&op->u.tick.limit, WEIR_MAX_PAGE, "limit", err);
}

/* ---- as JSON ---- */

static void write_request(weir_buf *b, const weir_op *op)
{
    weir__put_int(b, ",\"limit\":", (int64_t)op->u.tick.limit);
}

static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("limit", weir__as_int, REQUEST(limit), .min = 0, .max = WEIR_MAX_PAGE),
    { 0 }
};

static weir_code read_request(weir_reader *in, op_request *r)
{
    (void)in;
    r->op.u.tick.limit = (size_t)r->limit;
    return WEIR_OK;
}

static void write_answer(weir_buf *b, const weir_op *op)
{
    weir__put_int(b, ",\"changed\":", (int64_t)op->u.tick.changed);
    weir__put_int(b, ",\"next_at\":", op->u.tick.next_at);
    weir__put_flag(b, ",\"schedules_due\":", op->u.tick.schedules_due);
}

static const weir_field answer[] = {
    FIELD_ERROR,
    WEIR_FIELD("changed", weir__as_int, ANSWER(changed), .min = 0, .max = INT64_MAX),
    WEIR_FIELD("next_at", weir__as_int, ANSWER(next_at)),
    WEIR_FIELD("schedules_due", weir__as_bool, ANSWER(more)),
    { 0 }
};

static weir_code read_answer(weir_reader *in, op_answer *a)
{
    (void)in;
    a->op->u.tick.changed = (size_t)a->changed;
    a->op->u.tick.next_at = a->next_at;
    a->op->u.tick.schedules_due = a->more;
    return WEIR_OK;
}

/* A tick is a queue's own clock, no action of anybody. */
const weir_op_row weir__row_tick = WEIR_OP_ROW(
    "tick", WEIR_LANE_OTHER, WEIR_SCOPE_QUEUE, /* slow */ false, weir__role_admin,
    /* writes */ weir__op_always, weir__op_no_steps, weir__op_no_action, weir__op_no_detail,
    weir__op_no_job, /* each */ false, weir__op_no_type, weir__op_no_data, weir__op_no_token,
    weir__repeat_always, weir__op_no_take, weir__op_no_jobs, weir__op_no_result,
    weir__op_no_cut, check, weir__op_no_copy, weir__op_no_output, weir__op_no_output,
    weir__op_small, write_request, request, read_request, write_answer, answer, read_answer);
