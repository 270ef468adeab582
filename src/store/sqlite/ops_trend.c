/* ops_trend.c - TREND_PUT and TREND_GET in the sqlite store: the table `trend`. */
#include "store/sqlite/sq.h"

#include <string.h>

static void bind_place(sqlite3_stmt *st, weir_trend_step step, int64_t slot)
{
    weir__sq_int(st, 1, step);
    weir__sq_int(st, 2, slot);
}

/* How many types have a record in this slot. */
static int64_t types_in(sq_store *s, const weir_trend_row *row)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_TREND_TYPES);
    bind_place(st, row->step, row->slot);
    int64_t n = weir__sq_row(s, st) ? sqlite3_column_int64(st, 0) : 0;
    sqlite3_reset(st);
    return n;
}

static weir_code put(sq_store *s, const weir_trend_row *row)
{
    char          record[WEIR_TREND_MAX_BYTES];
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_TREND);
    bind_place(st, row->step, row->slot);
    weir__sq_string(st, 3, row->type);
    bool        found = weir__sq_row(s, st);
    const char *old = found ? (const char *)sqlite3_column_text(st, 2) : NULL;
    weir__trend_join_texts(old ? old : "", row->record, record);
    sqlite3_reset(st);
    if (!found && types_in(s, row) >= WEIR_TREND_TYPES)
        return WEIR_OK;
    st = weir__sq_stmt(s, SQ_TREND_PUT);
    bind_place(st, row->step, row->slot);
    weir__sq_string(st, 3, row->type);
    weir__sq_string(st, 4, record);
    return weir__sq_do(s, st);
}

weir_code weir__sq_op_trend_put(sq_store *s, weir_op *op)
{
    const weir_op_trend_put *o = &op->u.trend_put;
    weir_code                rc = WEIR_OK;
    for (int step = 0; !rc && step < WEIR_TREND_STEPS; step++) {
        sqlite3_stmt *st = weir__sq_stmt(s, SQ_TREND_SWEEP);
        bind_place(st, (weir_trend_step)step,
                   weir__trend_first_kept((weir_trend_step)step, op->now_ms));
        rc = weir__sq_do(s, st);
    }
    for (size_t i = 0; !rc && i < o->n; i++)
        if (weir__trend_row_is_kept(&o->rows[i], op->now_ms))
            rc = put(s, &o->rows[i]);
    return rc;
}

static bool add_row(weir_trend_rows *rows, weir_trend_step step, sqlite3_stmt *st)
{
    weir_trend_row row = { .type = (const char *)sqlite3_column_text(st, 0), .step = step,
                           .slot = sqlite3_column_int64(st, 1),
                           .record = (const char *)sqlite3_column_text(st, 2) };
    return row.type && row.record && weir__trend_rows_add(rows, &row);
}

/* If one type is asked for, each slot is looked up: records of other types are between its
 * records. */
static bool read_one(sq_store *s, const weir_op_trend_get *o, int64_t slot)
{
    bool          ok = true;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_TREND);
    bind_place(st, o->step, slot);
    weir__sq_string(st, 3, o->type);
    if (weir__sq_row(s, st))
        ok = add_row(o->rows, o->step, st);
    sqlite3_reset(st);
    return ok;
}

static bool read_each(sq_store *s, const weir_op_trend_get *o, int64_t from, int64_t end)
{
    bool          ok = true;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_TRENDS);
    bind_place(st, o->step, from);
    weir__sq_int(st, 3, end);
    while (ok && weir__sq_row(s, st))
        ok = add_row(o->rows, o->step, st);
    sqlite3_reset(st);
    return ok;
}

weir_code weir__sq_op_trend_get(sq_store *s, weir_op *op)
{
    weir_op_trend_get *o = &op->u.trend_get;
    bool               ok = (o->rows = weir__trend_rows_create()) != NULL;
    int64_t            from, end;
    weir__trend_range(o, op->now_ms, &from, &end);
    if (!o->type)
        ok = ok && read_each(s, o, from, end);
    for (int64_t slot = from; ok && o->type && slot < end && !s->broken; slot++)
        ok = read_one(s, o, slot);
    if (ok && !s->broken)
        return WEIR_OK;
    weir__trend_rows_free(o->rows);
    o->rows = NULL;
    return s->broken ? s->error.code : weir__sq_no_memory(s);
}
