/* op_schedules.c - SCHEDULES: one schedule, the due ones, or a page of all. */
#include <stdlib.h>
#include <string.h>

#include "op/row.h"
#include "op/schedule.h"

/* ---- rows ---- */

weir_schedule_rows *weir__rows_create(size_t cap)
{
    weir_schedule_rows *rows = calloc(1, sizeof *rows);
    if (rows && !(rows->row = calloc(cap ? cap : 1, sizeof *rows->row))) {
        free(rows);
        return NULL;
    }
    if (rows)
        rows->cap = cap;
    return rows;
}

bool weir__rows_add(weir_schedule_rows *rows, const weir_schedule_row *row, size_t name_len)
{
    char *block = rows->n < rows->cap ? malloc(name_len + row->len + 2) : NULL;
    if (!block)
        return false;
    memcpy(block, row->name, name_len);
    block[name_len] = 0;
    memcpy(block + name_len + 1, row->record, row->len);
    block[name_len + 1 + row->len] = 0;
    rows->row[rows->n] = *row;
    rows->row[rows->n].name = block;
    rows->row[rows->n++].record = block + name_len + 1;
    return true;
}

void weir__rows_free(weir_schedule_rows *rows)
{
    for (size_t i = 0; rows && i < rows->n; i++)
        free((char *)rows->row[i].name);
    if (rows)
        free(rows->row);
    free(rows);
}

/* ---- the operation ---- */

static weir_code check(weir_op *op, weir_error *err)
{
    weir_op_schedules *o = &op->u.schedules;
    weir_code          rc = o->name ? weir__schedule_name_check(o->name, err) : WEIR_OK;
    if (!rc && o->after)
        rc = weir__schedule_name_check(o->after, err);
    return rc ? rc : weir__check_limit(&o->limit, WEIR_MAX_PAGE, "limit", err);
}

static void copy(weir_copier *c, weir_op *op)
{
    if (op->u.schedules.name)
        weir__copy_text(c, &op->u.schedules.name);
    if (op->u.schedules.after)
        weir__copy_text(c, &op->u.schedules.after);
}

static void clear(weir_op *op)
{
    op->u.schedules.rows = NULL;
}

static void release(weir_op *op)
{
    weir__rows_free(op->u.schedules.rows);
    clear(op);
}

/* ---- in steps ---- */

static size_t *limit(weir_op *op)
{
    weir_op_schedules *o = &op->u.schedules;
    return o->name || o->due ? NULL : &o->limit;
}

static void *create(size_t n)
{
    return weir__rows_create(n);
}

static bool gather(weir_op *op, weir_gathered *g)
{
    weir_op_schedules  *o = &op->u.schedules;
    weir_schedule_rows *all = g->items;
    bool                ok = true;
    for (size_t i = 0; ok && i < o->rows->n; i++) {
        const weir_schedule_row *row = &o->rows->row[i];
        ok = weir__rows_add(all, row, strlen(row->name));
        g->bytes += sizeof *row + row->len;
    }
    g->n += o->rows->n;
    g->more = o->rows->n == o->limit;
    if (all->n)
        o->after = all->row[all->n - 1].name;
    return ok;
}

static void give(weir_op *op, void *items)
{
    op->u.schedules.rows = items;
}

static const weir_steps steps[] = { { limit, false, create, gather, give } };

/* ---- as JSON ---- */

static void write_request(weir_buf *b, const weir_op *op)
{
    const weir_op_schedules *o = &op->u.schedules;
    weir__put_int(b, ",\"limit\":", (int64_t)o->limit);
    if (o->name)
        weir__put_text(b, ",\"name\":", o->name, strlen(o->name));
    if (o->after)
        weir__put_text(b, ",\"after\":", o->after, strlen(o->after));
    weir__put_flag(b, ",\"due\":", o->due);
}

static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("limit", weir__as_int, REQUEST(limit), .min = 0, .max = WEIR_MAX_PAGE),
    WEIR_FIELD("name", weir__as_text, REQUEST_OP(schedules.name)),
    WEIR_FIELD("after", weir__as_text, REQUEST_OP(schedules.after)),
    WEIR_FIELD("due", weir__as_bool, REQUEST_OP(schedules.due)),
    { 0 }
};

static weir_code read_request(weir_reader *in, op_request *r)
{
    (void)in;
    r->op.u.schedules.limit = (size_t)r->limit;
    return WEIR_OK;
}

static void write_answer(weir_buf *b, const weir_op *op)
{
    const weir_schedule_rows *rows = op->u.schedules.rows;
    weir__buf_str(b, ",\"schedules\":[");
    for (size_t i = 0; i < rows->n; i++) {
        const weir_schedule_row *row = &rows->row[i];
        weir__put_next(b, i);
        weir__put_text(b, "{\"name\":", row->name, strlen(row->name));
        weir__put_id(b, ",\"version\":", row->version);
        weir__put_int(b, ",\"due_at\":", row->due_at);
        weir__put_raw(b, ",\"schedule\":", row->record, row->len);
        weir__buf_char(b, '}');
    }
    weir__buf_char(b, ']');
}

#define ROW(member) offsetof(weir_schedule_row, member)
static const weir_field row_fields[] = {
    WEIR_FIELD("name", weir__as_text, ROW(name), .needed = true),
    WEIR_FIELD("version", weir__as_number, ROW(version), .needed = true),
    WEIR_FIELD("due_at", weir__as_int, ROW(due_at), .needed = true),
    WEIR_FIELD("schedule", weir__as_raw, ROW(record), .needed = true),
    { 0 }
};
#undef ROW
_Static_assert(offsetof(weir_schedule_row, len) ==
                   offsetof(weir_schedule_row, record) + sizeof(char *),
               "weir__as_raw() sets both");

static const weir_field answer[] = {
    FIELD_ERROR,
    WEIR_FIELD("schedules", weir__as_list, ANSWER(items), .fields = row_fields,
               .size = sizeof(weir_schedule_row)),
    { 0 }
};

static weir_code read_answer(weir_reader *in, op_answer *a)
{
    const weir_schedule_row *from = a->items.item;
    weir_schedule_rows      *rows = weir__rows_create(a->items.n);
    bool                     ok = rows != NULL;
    for (size_t i = 0; ok && i < a->items.n; i++)
        ok = weir__rows_add(rows, &from[i], strlen(from[i].name));
    a->op->u.schedules.rows = ok ? rows : NULL;
    if (ok)
        return WEIR_OK;
    weir__rows_free(rows);
    return weir__read_no_memory(in);
}

const weir_op_row weir__row_schedules = WEIR_OP_ROW(
    "schedules", WEIR_LANE_OTHER, WEIR_SCOPE_QUEUE, /* slow */ false, weir__role_read,
    /* writes */ weir__op_never, steps, weir__op_no_action, weir__op_no_detail, weir__op_no_job,
    /* each */ false, weir__op_no_type, weir__op_no_data, weir__op_no_token,
    weir__repeat_always, weir__op_no_take, weir__op_no_jobs, weir__op_no_result,
    weir__op_no_cut, check, copy, clear, release, weir__op_small, write_request, request,
    read_request, write_answer, answer, read_answer);
