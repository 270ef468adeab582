/* op_trend_put.c - TREND_PUT: records of what happened in a minute or an hour. */
#include <string.h>

#include "core/job.h"
#include "op/row.h"

static weir_code check_row(const weir_trend_row *row, weir_error *err)
{
    weir_trend t;
    if (!row->type || !row->record)
        return weir__fail_field(err, WEIR_EINVAL, row->type ? "record" : "type", "missing");
    weir_code rc = *row->type ? weir__type_check(row->type, "type", err) : WEIR_OK;
    if (!rc)
        rc = weir__check_number(row->step, WEIR_TREND_STEPS, "step", err);
    if (!rc && row->slot < 0)
        rc = weir__fail_field(err, WEIR_EINVAL, "slot", "below 0");
    return rc ? rc : weir__trend_read(&t, row->record, err);
}

static weir_code check(weir_op *op, weir_error *err)
{
    const weir_op_trend_put *o = &op->u.trend_put;
    if (o->n > WEIR_MAX_TREND_PUT)
        return weir__fail_field(err, WEIR_ELIMIT, "rows", "%zu, at most %d", o->n,
                                WEIR_MAX_TREND_PUT);
    for (size_t i = 0; i < o->n; i++)
        if (check_row(&o->rows[i], err))
            return weir__fail_inside(err, err ? err->code : WEIR_EINVAL, "rows[%zu]", i);
    return WEIR_OK;
}

static void copy(weir_copier *c, weir_op *op)
{
    weir_op_trend_put *o = &op->u.trend_put;
    weir_trend_row    *rows = weir__copy_array(c, o->rows, o->n * sizeof *rows);
    for (size_t i = 0; i < o->n; i++) {
        const char *type = rows[i].type, *record = rows[i].record;
        weir__copy_text(c, &type);
        weir__copy_text(c, &record);
        if (c->block) {
            rows[i].type = type;
            rows[i].record = record;
        }
    }
    o->rows = rows;
}

/* ---- as JSON ---- */

static size_t size(const weir_op *op)
{
    size_t sum = WEIR__OP_SIZE;
    for (size_t i = 0; i < op->u.trend_put.n; i++)
        sum += WEIR__OP_SIZE + strlen(op->u.trend_put.rows[i].record);
    return sum;
}

static void write_request(weir_buf *b, const weir_op *op)
{
    weir__trend_put_rows(b, op->u.trend_put.rows, op->u.trend_put.n);
}

static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("rows", weir__as_list, REQUEST(items), .fields = weir__trend_row_fields,
               .size = sizeof(op_trend_row), .needed = true, .max = WEIR_MAX_TREND_PUT),
    { 0 }
};

static weir_code read_request(weir_reader *in, op_request *r)
{
    const op_trend_row *from = r->items.item;
    weir_trend_row     *rows = weir__read_room(in, r->items.n, sizeof *rows);
    for (size_t i = 0; rows && i < r->items.n; i++)
        if (weir__trend_read_row(in, &from[i], &rows[i]))
            return in->err.code;
    r->op.u.trend_put.rows = rows;
    r->op.u.trend_put.n = r->items.n;
    return rows ? WEIR_OK : in->err.code;
}

const weir_op_row weir__row_trend_put = WEIR_OP_ROW(
    "trend_put", WEIR_LANE_OTHER, WEIR_SCOPE_QUEUE, /* slow */ false, weir__role_admin,
    /* writes */ weir__op_always, weir__op_no_steps, weir__op_no_action, weir__op_no_detail,
    weir__op_no_job, /* each */ false, weir__op_no_type, weir__op_no_data, weir__op_no_token,
    weir__repeat_always, weir__op_no_take, weir__op_no_jobs, weir__op_no_result,
    weir__op_no_cut, check, copy, weir__op_no_output, weir__op_no_output, size, write_request,
    request, read_request, weir__op_no_members, weir__op_no_answer, weir__op_answered);
