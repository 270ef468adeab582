/* ops_trend.c - TREND_PUT and TREND_GET: steps U and u, in the first partition. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/engine/engine.h"

/* "STEP SLOT ", and when the records of this slot are removed. All such times are multiples of a
 * minute; one ms more for hours keeps the two steps apart. */
static void put_slot(weir_buf *b, weir_trend_step step, int64_t slot)
{
    char    place[48];
    int64_t ms = weir__trend_step_ms(step);
    int64_t kept = step == WEIR_TREND_HOUR ? WEIR_TREND_HOURS : WEIR_TREND_MINUTES;
    snprintf(place, sizeof place, "%s %" PRId64 " ", weir__trend_step_name(step), slot);
    weir__resp_text(b, place);
    weir__resp_int(b, (slot + kept) * ms + (step == WEIR_TREND_HOUR));
}

void weir__redis_trend_put_act(redis_lane *s, redis_task *t)
{
    const weir_op_trend_put *o = &t->op->u.trend_put;
    size_t                   n = 0;
    for (size_t i = 0; i < o->n; i++)
        n += weir__trend_row_is_kept(&o->rows[i], t->op->now_ms);
    weir_buf *b = weir__step(s, t, 0, 'U', 1 + 4 * n);
    weir__resp_int(b, WEIR_TREND_TYPES);
    for (size_t i = 0; i < o->n; i++) {
        const weir_trend_row *row = &o->rows[i];
        if (!weir__trend_row_is_kept(row, t->op->now_ms))
            continue;
        put_slot(b, row->step, row->slot);
        weir__resp_text(b, row->type);
        weir__resp_text(b, row->record);
    }
}

void weir__redis_trend_put_end(redis_lane *s, redis_task *t)
{
    weir__step_answer(s, t, 0, &t->op->err);
    t->over = true;
}

void weir__redis_trend_get_act(redis_lane *s, redis_task *t)
{
    const weir_op_trend_get *o = &t->op->u.trend_get;
    int64_t                  from, end;
    weir__trend_range(o, t->op->now_ms, &from, &end);
    weir_buf *b = weir__step(s, t, 0, 'u', 2 + (from < end ? 2 * (size_t)(end - from) : 0));
    weir__resp_text(b, o->type ? "1" : "0");
    weir__resp_text(b, o->type ? o->type : "");
    for (int64_t slot = from; slot < end; slot++)
        put_slot(b, o->step, slot);
}

static int by_place(const void *a, const void *b)
{
    const weir_trend_row *one = a, *other = b;
    if (one->slot != other->slot)
        return one->slot < other->slot ? -1 : 1;
    return strcmp(one->type, other->type);
}

void weir__redis_trend_get_end(redis_lane *s, redis_task *t)
{
    weir_op_trend_get *o = &t->op->u.trend_get;
    const redisReply  *r = weir__step_answer(s, t, 0, &t->op->err);
    int64_t            from, end;
    t->over = true;
    if (!r)
        return;
    weir__trend_range(o, t->op->now_ms, &from, &end);
    bool ok = (o->rows = weir__trend_rows_create()) != NULL;
    for (size_t i = 0; ok && i + 2 < r->elements; i += 3) {
        mp_slice       type = weir__reply_text(r->element[i + 1]);
        mp_slice       record = weir__reply_text(r->element[i + 2]);
        weir_trend_row row = { .type = type.at, .record = record.at, .step = o->step,
                               .slot = from + weir__reply_int(r->element[i]) - 1 };
        ok = weir__trend_rows_add(o->rows, &row);
    }
    if (ok) {
        if (o->rows->n)
            qsort(o->rows->row, o->rows->n, sizeof *o->rows->row, by_place);
        return;
    }
    weir__trend_rows_free(o->rows);
    o->rows = NULL;
    weir_fail(&t->op->err, WEIR_ENOMEM, "trend: out of memory");
}
