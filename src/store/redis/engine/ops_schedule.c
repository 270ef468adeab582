/* ops_schedule.c - SCHEDULE and SCHEDULES: steps H and h, in the first partition. */
#include <string.h>

#include "store/answers.h"
#include "store/redis/engine/engine.h"

void weir__redis_schedule_act(redis_lane *s, redis_task *t)
{
    const weir_op_schedule *o = &t->op->u.schedule;
    weir_buf               *b = weir__step(s, t, 0, 'H', 4);
    weir__resp_text(b, o->name);
    if (o->version == WEIR_ANY_VERSION)
        weir__resp_text(b, "*");
    else
        weir__resp_int(b, (int64_t)o->version);
    if (o->record && o->due_at != INT64_MAX)
        weir__resp_int(b, o->due_at);
    else
        weir__resp_text(b, "");
    weir__resp_bytes(b, o->record ? o->record : "", o->len);
}

void weir__redis_schedule_end(redis_lane *s, redis_task *t)
{
    weir_op_schedule *o = &t->op->u.schedule;
    const redisReply *r = weir__step_answer(s, t, 0, &t->op->err);
    t->over = true;
    if (!r)
        return;
    int64_t answer = weir__reply_int(r);
    if (answer == -1)
        weir__schedule_may_change(o, 0, &t->op->err);
    else if (answer == 0)
        weir__schedule_may_change(o, o->version + 1, &t->op->err);
    else
        o->new_version = answer > 0 ? (uint64_t)answer : 0;
}

void weir__redis_schedules_act(redis_lane *s, redis_task *t)
{
    const weir_op_schedules *o = &t->op->u.schedules;
    weir_buf                *b = weir__step(s, t, 0, 'h', 4);
    weir__resp_text(b, o->name ? o->name : "");
    weir__resp_text(b, o->due ? "1" : "0");
    weir__resp_text(b, o->after ? o->after : "");
    weir__resp_int(b, (int64_t)o->limit);
}

void weir__redis_schedules_end(redis_lane *s, redis_task *t)
{
    weir_op_schedules *o = &t->op->u.schedules;
    const redisReply  *r = weir__step_answer(s, t, 0, &t->op->err);
    t->over = true;
    if (!r)
        return;
    bool ok = (o->rows = weir__rows_create(o->limit)) != NULL;
    for (size_t i = 0; ok && i + 3 < r->elements && o->rows->n < o->limit; i += 4) {
        mp_slice          name = weir__reply_text(r->element[i]);
        mp_slice          record = weir__reply_text(r->element[i + 3]);
        bool              due = r->element[i + 2]->type == REDIS_REPLY_INTEGER;
        weir_schedule_row row = { .name = name.at, .record = record.at, .len = record.len,
                                  .version = (uint64_t)weir__reply_int(r->element[i + 1]),
                                  .due_at = due ? weir__reply_int(r->element[i + 2])
                                                : INT64_MAX };
        ok = weir__rows_add(o->rows, &row, name.len);
    }
    if (ok)
        return;
    weir__rows_free(o->rows);
    o->rows = NULL;
    weir_fail(&t->op->err, WEIR_ENOMEM, "schedules: out of memory");
}
