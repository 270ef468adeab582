/* ops_schedule.c - SCHEDULE and SCHEDULES in the sqlite store: the table `schedule`. */
#include "store/sqlite/sq.h"

#include <string.h>

#include "store/answers.h"

weir_code weir__sq_op_schedule(sq_store *s, weir_op *op)
{
    weir_op_schedule *o = &op->u.schedule;
    sqlite3_stmt     *st = weir__sq_stmt(s, SQ_SCHEDULE);
    uint64_t          version = 0;
    weir__sq_string(st, 1, o->name);
    if (weir__sq_row(s, st)) {
        version = (uint64_t)sqlite3_column_int64(st, 1);
        sqlite3_reset(st);
    }
    if (s->broken)
        return s->error.code;
    if (!weir__schedule_may_change(o, version, &op->err))
        return op->err.code;
    st = weir__sq_stmt(s, o->record ? SQ_SCHEDULE_PUT : SQ_SCHEDULE_REMOVE);
    weir__sq_string(st, 1, o->name);
    if (!o->record)
        return weir__sq_do(s, st);
    if (o->due_at == INT64_MAX)
        sqlite3_bind_null(st, 2);
    else
        weir__sq_int(st, 2, o->due_at);
    sqlite3_bind_text(st, 3, o->record, (int)o->len, SQLITE_STATIC);
    if (o->due_at != INT64_MAX)
        weir__agenda_want(&s->agenda, WEIR_DUE_SCHEDULES, o->due_at);
    if (weir__sq_do(s, st))
        return s->error.code;
    o->new_version = (uint64_t)sqlite3_last_insert_rowid(s->db);
    return WEIR_OK;
}

static bool add_row(weir_schedule_rows *rows, sqlite3_stmt *st)
{
    weir_schedule_row row = { .name = (const char *)sqlite3_column_text(st, 0),
                              .version = (uint64_t)sqlite3_column_int64(st, 1),
                              .due_at = sqlite3_column_type(st, 2) == SQLITE_NULL
                                            ? INT64_MAX
                                            : sqlite3_column_int64(st, 2),
                              .record = (const char *)sqlite3_column_text(st, 3),
                              .len = (size_t)sqlite3_column_bytes(st, 3) };
    return row.name && row.record && weir__rows_add(rows, &row, strlen(row.name));
}

weir_code weir__sq_op_schedules(sq_store *s, weir_op *op)
{
    weir_op_schedules *o = &op->u.schedules;
    sqlite3_stmt      *st = weir__sq_stmt(s, o->name  ? SQ_SCHEDULE
                                             : o->due ? SQ_SCHEDULES_DUE
                                                      : SQ_SCHEDULES);
    bool               ok = (o->rows = weir__rows_create(o->limit)) != NULL;
    if (o->due && !o->name)
        weir__sq_int(st, 1, op->now_ms);
    else
        weir__sq_string(st, 1, o->name ? o->name : o->after ? o->after : "");
    if (!o->name)
        weir__sq_int(st, 2, (int64_t)o->limit);
    while (ok && weir__sq_row(s, st))
        ok = add_row(o->rows, st);
    sqlite3_reset(st);
    if (ok && !s->broken)
        return WEIR_OK;
    weir__rows_free(o->rows);
    o->rows = NULL;
    return s->broken ? s->error.code : weir__sq_no_memory(s);
}
