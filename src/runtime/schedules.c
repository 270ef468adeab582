/* schedules.c - schedules as the store keeps them: see schedules.h. */
#include "runtime/schedules.h"

#include <stdio.h>
#include <string.h>

#include "core/firing.h"
#include "op/schedule.h"

void weir__schedule_load(const weir_schedule_row *row, weir_arena *arena, weir_kept *out)
{
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = arena };
    *out = (weir_kept){ .version = row->version };
    if (weir__schedule_read(&in, row->record, row->len, &out->s))
        out->err = in.err;
    else
        weir__schedule_parse(&out->cron, &out->s, &out->err);
    out->s.own = out->s.name && weir__schedule_is_own(out->s.name);
}

weir_op weir__schedule_op_put(const weir_schedule *s, uint64_t version, int64_t due_at,
                              weir_buf *record)
{
    weir__buf_clear(record);
    weir__schedule_write(record, s);
    return (weir_op){ .kind = WEIR_OP_SCHEDULE,
                      .u.schedule = { .name = s->name, .record = record->data,
                                      .len = record->len, .due_at = due_at,
                                      .version = version } };
}

weir_token weir__schedule_token(const weir_schedule *s, uint64_t turn,
                                char key[WEIR_MAX_TOKEN + 1])
{
    snprintf(key, WEIR_MAX_TOKEN + 1, "schedule %016llx %s", (unsigned long long)s->series,
             s->name);
    return (weir_token){ .key = key, .number = turn };
}
