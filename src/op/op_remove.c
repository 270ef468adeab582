/* op_remove.c - REMOVE: forget a job. */
#include "op/row.h"

static const char *action(const weir_op *op)
{
    (void)op;
    return "job.delete";
}

static uint64_t *job(weir_op *op, size_t i)
{
    return i ? NULL : &op->u.remove.id;
}

/* ---- sent again: a job that is gone was removed, by this or by somebody else ---- */

static void ask(const weir_op *op, weir_op *question)
{
    weir__ask_job(question, op->u.remove.id);
}

static weir_recall recall(weir_op *op, const weir_op *answer)
{
    (void)op;
    return answer->err.code == WEIR_ENOENT ? WEIR_RECALL_DONE : WEIR_RECALL_UNKNOWN;
}

static const weir_repeat repeat[] = { { weir__op_always, ask, recall } };

/* ---- as JSON ---- */

static void write_request(weir_buf *b, const weir_op *op)
{
    weir__put_id(b, ",\"id\":", op->u.remove.id);
}

static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("id", weir__as_number, REQUEST_OP(remove.id), .needed = true),
    { 0 }
};

const weir_op_row weir__row_remove = WEIR_OP_ROW(
    "remove", WEIR_LANE_OTHER, WEIR_SCOPE_NAMED, /* slow */ false, weir__role_admin,
    /* writes */ weir__op_always, weir__op_no_steps, action, weir__op_no_detail, job,
    /* each */ false, weir__op_no_type, weir__op_no_data, weir__op_no_token, repeat,
    weir__op_no_take, weir__op_no_jobs, weir__op_no_result, weir__op_no_cut, weir__op_no_check,
    weir__op_no_copy, weir__op_no_output, weir__op_no_output, weir__op_small, write_request,
    request, weir__op_read, weir__op_no_members, weir__op_no_answer, weir__op_answered);
