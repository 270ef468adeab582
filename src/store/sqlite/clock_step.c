/* clock_step.c - somebody set the wall clock: leases, ttls and delays last as long as they did
 * before.
 *
 * Leases and ttls are in memory and are moved at once. Delays are in the file: one UPDATE for each
 * type moves the delays that were not given as a moment, and their checksums with them (sql/sum.c).
 * If the file cannot be written, that is tried again before the next batch. */
#include "store/sqlite/sq.h"

static void move_leases(sq_store *s, int64_t step_ms)
{
    size_t   pos = 0;
    uint64_t id;
    void    *value;
    while (weir__map_next(&s->active, &pos, &id, &value)) {
        sq_active *a = value;
        weir__job_clock_set(&a->job, step_ms);
        if (a->ttl_until != INT64_MAX)
            a->ttl_until += step_ms;
    }
    weir__agenda_doubt(&s->agenda);     /* moments that were named may be due now */
}

static weir_code move_delays(sq_store *s)
{
    int64_t       of_sum = s->clock_step % SQL_SUM_MODULUS;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_LEASE_MOVE);
    weir__sq_int(st, 1, s->clock_step);
    weir_code rc = weir__sq_do(s, st);
    for (size_t i = 0; !rc && i < s->types.n; i++) {
        st = weir__sq_stmt(s, SQ_DELAY_MOVE);
        weir__sq_int(st, 1, s->types.by_id[i]->id);
        weir__sq_int(st, 2, s->clock_step);
        weir__sq_int(st, 3, of_sum < 0 ? of_sum + SQL_SUM_MODULUS : of_sum);
        weir__sq_int(st, 4, SQL_SUM_MODULUS);
        rc = weir__sq_do(s, st);
    }
    weir__agenda_doubt(&s->agenda);
    return rc;
}

void weir__sq_clock(sq_store *s, int64_t now_ms, int64_t steady_ms)
{
    int64_t step = weir__clock_step(&s->clock, now_ms, steady_ms);
    if (step) {
        move_leases(s, step);
        s->clock_step += step;
    }
    if (s->clock_step && !weir__sq_alone(s, move_delays, NULL))
        s->clock_step = 0;
}
