/* op_trend_get.c - TREND_GET: records of trends, of one type or of each. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "core/job.h"
#include "op/row.h"

/* ---- rows ---- */

weir_trend_rows *weir__trend_rows_create(void)
{
    return calloc(1, sizeof(weir_trend_rows));
}

bool weir__trend_rows_add(weir_trend_rows *rows, const weir_trend_row *row)
{
    char       record[WEIR_TREND_MAX_BYTES];
    weir_trend t;
    if (weir__trend_read(&t, row->record, NULL))
        return true;
    size_t record_len = weir__trend_write(&t, record) + 1, type_len = strlen(row->type) + 1;
    if (!weir__grow(&rows->row, &rows->cap, rows->n + 1, sizeof *rows->row))
        return false;
    char *block = malloc(type_len + record_len);
    if (!block)
        return false;
    rows->row[rows->n++] = (weir_trend_row){
        .type = memcpy(block, row->type, type_len),
        .record = memcpy(block + type_len, record, record_len),
        .step = row->step, .slot = row->slot };
    return true;
}

void weir__trend_rows_free(weir_trend_rows *rows)
{
    for (size_t i = 0; rows && i < rows->n; i++)
        free((char *)rows->row[i].type);
    if (rows)
        free(rows->row);
    free(rows);
}

/* ---- rows as JSON: also of TREND_PUT ---- */

void weir__trend_put_rows(weir_buf *b, const weir_trend_row *rows, size_t n)
{
    weir__buf_str(b, ",\"rows\":[");
    for (size_t i = 0; i < n; i++) {
        weir__put_next(b, i);
        weir__buf_printf(b, "{\"step\":\"%s\"", weir__trend_step_name(rows[i].step));
        weir__put_int(b, ",\"slot\":", rows[i].slot);
        weir__put_text(b, ",\"type\":", rows[i].type, strlen(rows[i].type));
        weir__put_text(b, ",\"record\":", rows[i].record, strlen(rows[i].record));
        weir__buf_char(b, '}');
    }
    weir__buf_char(b, ']');
}

#define ROW(member) offsetof(op_trend_row, member)
const weir_field weir__trend_row_fields[] = {
    WEIR_FIELD("step", weir__as_text, ROW(step), .needed = true),
    WEIR_FIELD("slot", weir__as_int, ROW(row.slot), .needed = true, .min = 0, .max = INT64_MAX),
    WEIR_FIELD("type", weir__as_text, ROW(row.type), .needed = true),
    WEIR_FIELD("record", weir__as_text, ROW(row.record), .needed = true,
               .max = WEIR_TREND_MAX_BYTES),
    { 0 }
};
#undef ROW

static weir_code read_step(weir_reader *in, const char *name, weir_trend_step *out)
{
    *out = weir__trend_step_named(name, strlen(name));
    if (*out < WEIR_TREND_STEPS)
        return WEIR_OK;
    weir_fail(&in->err, WEIR_EINVAL, "unknown step \"%.20s\", must be 1m or 1h", name);
    strcpy(in->err.field, "step");
    return WEIR_EINVAL;
}

weir_code weir__trend_read_row(weir_reader *in, const op_trend_row *from, weir_trend_row *out)
{
    *out = from->row;
    return read_step(in, from->step, &out->step);
}

/* ---- the operation ---- */

static weir_code check(weir_op *op, weir_error *err)
{
    weir_op_trend_get *o = &op->u.trend_get;
    size_t             most = o->type ? WEIR_MAX_TREND_SLOTS : WEIR_MAX_TREND_TOGETHER;
    weir_code          rc = o->type && *o->type ? weir__type_check(o->type, "type", err) : WEIR_OK;
    if (!rc)
        rc = weir__check_number(o->step, WEIR_TREND_STEPS, "step", err);
    if (!rc && (o->from < 0 || o->from > INT64_MAX / 2))
        rc = weir__fail_field(err, WEIR_EINVAL, "from", "%lld is not a slot", (long long)o->from);
    if (!rc && (!o->n || o->n > most))
        rc = weir__fail_field(err, WEIR_ELIMIT, "n", "%zu slots; from 1 to %zu", o->n, most);
    return rc;
}

static void copy(weir_copier *c, weir_op *op)
{
    if (op->u.trend_get.type)
        weir__copy_text(c, &op->u.trend_get.type);
}

static void clear(weir_op *op)
{
    op->u.trend_get.rows = NULL;
}

static void release(weir_op *op)
{
    weir__trend_rows_free(op->u.trend_get.rows);
    clear(op);
}

/* ---- in steps: its items are slots, each with any number of rows ---- */

static size_t *limit(weir_op *op)
{
    return &op->u.trend_get.n;
}

static void *create(size_t n)
{
    (void)n;
    return weir__trend_rows_create();
}

static bool gather(weir_op *op, weir_gathered *g)
{
    weir_op_trend_get *o = &op->u.trend_get;
    bool               ok = true;
    for (size_t i = 0; ok && i < o->rows->n; i++) {
        ok = weir__trend_rows_add(g->items, &o->rows->row[i]);
        g->bytes += sizeof *o->rows->row + strlen(o->rows->row[i].record);
    }
    g->n += o->n;
    g->more = true;
    o->from += (int64_t)o->n;
    return ok;
}

static void give(weir_op *op, void *items)
{
    op->u.trend_get.rows = items;
}

static const weir_steps steps[] = { { limit, false, create, gather, give } };

/* ---- as JSON ---- */

static void write_request(weir_buf *b, const weir_op *op)
{
    const weir_op_trend_get *o = &op->u.trend_get;
    if (o->type)
        weir__put_text(b, ",\"type\":", o->type, strlen(o->type));
    weir__buf_printf(b, ",\"step\":\"%s\"", weir__trend_step_name(o->step));
    weir__put_int(b, ",\"from\":", o->from);
    weir__put_int(b, ",\"n\":", (int64_t)o->n);
}

static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("type", weir__as_text, REQUEST_OP(trend_get.type)),
    WEIR_FIELD("step", weir__as_text, REQUEST(text), .needed = true),
    WEIR_FIELD("from", weir__as_int, REQUEST_OP(trend_get.from), .needed = true),
    WEIR_FIELD("n", weir__as_int, REQUEST(limit), .needed = true, .min = 1,
               .max = WEIR_MAX_TREND_SLOTS),
    { 0 }
};

static weir_code read_request(weir_reader *in, op_request *r)
{
    r->op.u.trend_get.n = (size_t)r->limit;
    return read_step(in, r->text, &r->op.u.trend_get.step);
}

static void write_answer(weir_buf *b, const weir_op *op)
{
    weir__trend_put_rows(b, op->u.trend_get.rows->row, op->u.trend_get.rows->n);
}

static const weir_field answer[] = {
    FIELD_ERROR,
    WEIR_FIELD("rows", weir__as_list, ANSWER(items), .fields = weir__trend_row_fields,
               .size = sizeof(op_trend_row)),
    { 0 }
};

static weir_code read_answer(weir_reader *in, op_answer *a)
{
    const op_trend_row *from = a->items.item;
    weir_trend_rows    *rows = weir__trend_rows_create();
    weir_trend_row      row;
    weir_code           rc = rows ? WEIR_OK : weir__read_no_memory(in);
    for (size_t i = 0; !rc && i < a->items.n; i++) {
        rc = weir__trend_read_row(in, &from[i], &row);
        if (!rc && !weir__trend_rows_add(rows, &row))
            rc = weir__read_no_memory(in);
    }
    if (rc)
        weir__trend_rows_free(rows);
    a->op->u.trend_get.rows = rc ? NULL : rows;
    return rc;
}

const weir_op_row weir__row_trend_get = WEIR_OP_ROW(
    "trend_get", WEIR_LANE_OTHER, WEIR_SCOPE_QUEUE, /* slow */ false, weir__role_read,
    /* writes */ weir__op_never, steps, weir__op_no_action, weir__op_no_detail, weir__op_no_job,
    /* each */ false, weir__op_no_type, weir__op_no_data, weir__op_no_token,
    weir__repeat_always, weir__op_no_take, weir__op_no_jobs, weir__op_no_result,
    weir__op_no_cut, check, copy, clear, release, weir__op_small, write_request, request,
    read_request, write_answer, answer, read_answer);
