/* op_logs.c - LOGS: lines of the log of a job. */
#include <string.h>

#include "core/results.h"
#include "op/row.h"

static uint64_t *job(weir_op *op, size_t i)
{
    return i ? NULL : &op->u.logs.id;
}

static weir_code check(weir_op *op, weir_error *err)
{
    return weir__check_limit(&op->u.logs.limit, WEIR_MAX_PAGE, "limit", err);
}

static void clear(weir_op *op)
{
    op->u.logs.lines = NULL;
}

static void release(weir_op *op)
{
    weir_lines_free(op->u.logs.lines);
}

/* ---- in steps ---- */

static size_t *limit(weir_op *op)
{
    return &op->u.logs.limit;
}

static void *create(size_t n)
{
    (void)n;
    return weir__lines_create();
}

static bool gather(weir_op *op, weir_gathered *g)
{
    weir_op_logs *l = &op->u.logs;
    bool          ok = true;
    for (size_t i = 0; ok && i < l->lines->n; i++) {
        const weir_line *line = &l->lines->line[i];
        size_t           len = strlen(line->text);
        ok = weir__lines_add(g->items, line->n, line->at, line->text, len);
        g->bytes += sizeof *line + len;
        l->after = line->n;
    }
    g->n += l->lines->n;
    g->more = l->lines->n == l->limit;
    return ok;
}

static void give(weir_op *op, void *items)
{
    op->u.logs.lines = items;
}

static const weir_steps steps[] = { { limit, false, create, gather, give } };

/* ---- as JSON ---- */

static void write_request(weir_buf *b, const weir_op *op)
{
    weir__put_id(b, ",\"id\":", op->u.logs.id);
    weir__put_id(b, ",\"after\":", op->u.logs.after);
    weir__put_int(b, ",\"limit\":", (int64_t)op->u.logs.limit);
}

static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("id", weir__as_number, REQUEST_OP(logs.id), .needed = true),
    WEIR_FIELD("after", weir__as_number, REQUEST_OP(logs.after)),
    WEIR_FIELD("limit", weir__as_int, REQUEST(limit), .min = 0, .max = WEIR_MAX_PAGE),
    { 0 }
};

static weir_code read_request(weir_reader *in, op_request *r)
{
    (void)in;
    r->op.u.logs.limit = (size_t)r->limit;
    return WEIR_OK;
}

static void write_answer(weir_buf *b, const weir_op *op)
{
    weir__put_lines(b, ",\"lines\":", op->u.logs.lines->line, op->u.logs.lines->n);
}

static const weir_field answer[] = {
    FIELD_ERROR,
    WEIR_FIELD("lines", weir__as_list, ANSWER(items), .fields = weir__line_fields,
               .size = sizeof(weir_line)),
    { 0 }
};

static weir_code read_answer(weir_reader *in, op_answer *a)
{
    const weir_line *from = a->items.item;
    weir_lines      *lines = weir__lines_create();
    bool             ok = lines != NULL;
    for (size_t i = 0; ok && i < a->items.n; i++)
        ok = weir__lines_add(lines, from[i].n, from[i].at, from[i].text, strlen(from[i].text));
    if (!ok) {
        weir_lines_free(lines);
        return weir__read_no_memory(in);
    }
    a->op->u.logs.lines = lines;
    return WEIR_OK;
}

const weir_op_row weir__row_logs = WEIR_OP_ROW(
    "logs", WEIR_LANE_OTHER, WEIR_SCOPE_NAMED, /* slow */ false, weir__role_read,
    /* writes */ weir__op_never, steps, weir__op_no_action, weir__op_no_detail, job,
    /* each */ false, weir__op_no_type, weir__op_no_data, weir__op_no_token,
    weir__repeat_always, weir__op_no_take, weir__op_no_jobs, weir__op_no_result,
    weir__op_no_cut, check, weir__op_no_copy, clear, release, weir__op_small, write_request,
    request, read_request, write_answer, answer, read_answer);
