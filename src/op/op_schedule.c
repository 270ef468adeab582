/* op_schedule.c - SCHEDULE: put or remove a schedule. */
#include <string.h>

#include "op/row.h"
#include "op/schedule.h"

static const char *action(const weir_op *op)
{
    return op->u.schedule.record ? "schedule.put" : "schedule.remove";
}

static weir_code check(weir_op *op, weir_error *err)
{
    weir_op_schedule *o = &op->u.schedule;
    weir_code         rc = weir__schedule_name_check(o->name, err);
    if (rc || !o->record)
        return rc;
    if (!o->len)
        o->len = strlen(o->record);
    return weir__schedule_record_check(o->name, o->record, o->len, err);
}

static void copy(weir_copier *c, weir_op *op)
{
    weir__copy_text(c, &op->u.schedule.name);
    if (op->u.schedule.record)
        weir__copy_bytes(c, &op->u.schedule.record, op->u.schedule.len);
}

static void clear(weir_op *op)
{
    op->u.schedule.new_version = 0;
}

/* ---- sent again: a version is used once, so nothing can be done twice ---- */

static void ask(const weir_op *op, weir_op *question)
{
    *question = (weir_op){ .kind = WEIR_OP_SCHEDULES,
                           .u.schedules = { .name = op->u.schedule.name, .limit = 1 } };
}

static weir_recall recall(weir_op *op, const weir_op *answer)
{
    weir_op_schedule         *o = &op->u.schedule;
    const weir_schedule_rows *rows = answer->u.schedules.rows;
    if (answer->err.code || !rows)
        return WEIR_RECALL_UNKNOWN;
    if (!o->record)
        return rows->n ? WEIR_RECALL_NOT_DONE : WEIR_RECALL_DONE;
    if (!rows->n || rows->row->len != o->len || rows->row->due_at != o->due_at ||
        memcmp(rows->row->record, o->record, o->len) != 0)
        return WEIR_RECALL_UNKNOWN;         /* done and changed since, or refused */
    o->new_version = rows->row->version;
    return WEIR_RECALL_DONE;
}

static const weir_repeat repeat[] = { { weir__op_always, ask, recall } };

/* ---- as JSON ---- */

static void write_request(weir_buf *b, const weir_op *op)
{
    const weir_op_schedule *o = &op->u.schedule;
    weir__put_text(b, ",\"name\":", o->name, strlen(o->name));
    if (o->record)
        weir__put_raw(b, ",\"schedule\":", o->record, o->len);
    if (o->due_at != INT64_MAX)
        weir__put_int(b, ",\"due_at\":", o->due_at);
    if (o->version != WEIR_ANY_VERSION)
        weir__put_id(b, ",\"version\":", o->version);
}

static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("name", weir__as_text, REQUEST_OP(schedule.name), .needed = true),
    WEIR_FIELD("schedule", weir__as_raw, REQUEST(raw)),
    WEIR_FIELD("due_at", weir__as_int, REQUEST_OP(schedule.due_at), .given = REQUEST(has_due)),
    WEIR_FIELD("version", weir__as_number, REQUEST_OP(schedule.version),
               .given = REQUEST(has_version)),
    { 0 }
};

static weir_code read_request(weir_reader *in, op_request *r)
{
    weir_op_schedule *o = &r->op.u.schedule;
    (void)in;
    o->record = r->raw.text;
    o->len = r->raw.len;
    if (!r->has_due)
        o->due_at = INT64_MAX;
    if (!r->has_version)
        o->version = WEIR_ANY_VERSION;
    return WEIR_OK;
}

static void write_answer(weir_buf *b, const weir_op *op)
{
    weir__put_id(b, ",\"version\":", op->u.schedule.new_version);
}

static const weir_field answer[] = {
    FIELD_ERROR,
    WEIR_FIELD("version", weir__as_number, ANSWER(version)),
    { 0 }
};

static weir_code read_answer(weir_reader *in, op_answer *a)
{
    (void)in;
    a->op->u.schedule.new_version = a->version;
    return WEIR_OK;
}

const weir_op_row weir__row_schedule = WEIR_OP_ROW(
    "schedule", WEIR_LANE_OTHER, WEIR_SCOPE_QUEUE, /* slow */ false, weir__role_admin,
    /* writes */ weir__op_always, weir__op_no_steps, action, weir__op_no_detail, weir__op_no_job,
    /* each */ false, weir__op_no_type, weir__op_no_data, weir__op_no_token, repeat,
    weir__op_no_take, weir__op_no_jobs, weir__op_no_result, weir__op_no_cut, check, copy, clear,
    clear, weir__op_with_bytes, write_request, request, read_request, write_answer, answer,
    read_answer);
