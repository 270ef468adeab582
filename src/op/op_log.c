/* op_log.c - LOG: one more line in the log of a job. */
#include <string.h>

#include "op/row.h"

static uint64_t *job(weir_op *op, size_t i)
{
    return i ? NULL : &op->u.log.id;
}

static weir_code check(weir_op *op, weir_error *err)
{
    weir_op_log *l = &op->u.log;
    if (!l->text)
        return weir__fail_field(err, WEIR_EINVAL, "log", "no line given");
    weir__cut_text(l->text, &l->len);
    return WEIR_OK;
}

static void copy(weir_copier *c, weir_op *op)
{
    weir__copy_bytes(c, &op->u.log.text, op->u.log.len);
}

/* ---- as JSON ---- */

static void write_request(weir_buf *b, const weir_op *op)
{
    const weir_op_log *l = &op->u.log;
    weir__put_id(b, ",\"id\":", l->id);
    if (l->delivery)
        weir__put_int(b, ",\"delivery\":", l->delivery);
    weir__put_text(b, ",\"text\":", l->text, l->len);
}

static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("id", weir__as_number, REQUEST_OP(log.id), .needed = true),
    WEIR_FIELD("delivery", weir__as_any_delivery, REQUEST_OP(log.delivery)),
    WEIR_FIELD("text", weir__as_text, REQUEST(text), .needed = true),
    { 0 }
};

static weir_code read_request(weir_reader *in, op_request *r)
{
    (void)in;
    r->op.u.log.text = r->text;
    r->op.u.log.len = strlen(r->text);
    return WEIR_OK;
}

const weir_op_row weir__row_log = WEIR_OP_ROW(
    "log", WEIR_LANE_WORK, WEIR_SCOPE_NAMED, /* slow */ false, weir__role_work,
    /* writes */ weir__op_always, weir__op_no_steps, weir__op_no_action, weir__op_no_detail, job,
    /* each */ false, weir__op_no_type, weir__op_no_data, weir__op_no_token, weir__repeat_never,
    weir__op_no_take, weir__op_no_jobs, weir__op_no_result, weir__op_no_cut, check, copy,
    weir__op_no_output, weir__op_no_output, weir__op_with_bytes, write_request, request,
    read_request, weir__op_no_members, weir__op_no_answer, weir__op_answered);
