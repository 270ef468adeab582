/* op_check.c - CHECK: is everything in the store in order? */
#include <string.h>

#include "base/json.h"
#include "core/results.h"
#include "op/row.h"

static const char *action(const weir_op *op)
{
    (void)op;
    return "store.check";
}

static bool writes(const weir_op *op)
{
    return op->u.check.mend;
}

static void clear(weir_op *op)
{
    op->u.check.report = NULL;
}

static void release(weir_op *op)
{
    weir_report_free(op->u.check.report);
}

/* ---- as JSON ---- */

static void write_request(weir_buf *b, const weir_op *op)
{
    weir__put_flag(b, ",\"mend\":", op->u.check.mend);
}

static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("mend", weir__as_bool, REQUEST_OP(check.mend)),
    { 0 }
};

static void write_answer(weir_buf *b, const weir_op *op)
{
    const weir_report *r = op->u.check.report;
    weir__put_id(b, ",\"jobs\":", r->jobs);
    weir__put_int(b, ",\"mended\":", (int64_t)r->mended);
    weir__buf_str(b, ",\"lines\":[");
    for (size_t i = 0; i < r->n; i++) {
        weir__put_next(b, i);
        weir__json_string(b, r->line[i], strlen(r->line[i]));
    }
    weir__buf_char(b, ']');
}

static const weir_field answer[] = {
    FIELD_ERROR,
    WEIR_FIELD("jobs", weir__as_number, ANSWER(count)),
    WEIR_FIELD("mended", weir__as_int, ANSWER(mended), .min = 0, .max = INT64_MAX),
    WEIR_FIELD("lines", weir__as_texts, ANSWER(texts)),
    { 0 }
};

static weir_code read_answer(weir_reader *in, op_answer *a)
{
    weir_report *r = weir__report_create();
    bool         ok = r != NULL;
    for (size_t i = 0; ok && i < a->texts.n; i++)
        ok = weir__report_line(r, "%s", a->texts.text[i]);
    if (!ok) {
        weir_report_free(r);
        return weir__read_no_memory(in);
    }
    r->jobs = a->count;
    r->mended = (size_t)a->mended;
    a->op->u.check.report = r;
    return WEIR_OK;
}

const weir_op_row weir__row_check = WEIR_OP_ROW(
    "check", WEIR_LANE_OTHER, WEIR_SCOPE_QUEUE, /* slow */ true, weir__role_admin, writes,
    weir__op_no_steps, action, weir__op_no_detail, weir__op_no_job, /* each */ false,
    weir__op_no_type, weir__op_no_data, weir__op_no_token, weir__repeat_always,
    weir__op_no_take, weir__op_no_jobs, weir__op_no_result, weir__op_no_cut, weir__op_no_check,
    weir__op_no_copy, clear, release, weir__op_small, write_request, request, weir__op_read,
    write_answer, answer, read_answer);
