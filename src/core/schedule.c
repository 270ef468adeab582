/* schedule.c - the firings of a schedule, and its plain words: see weir/schedule.h. */
#include "core/firing.h"

weir_code weir_schedule_next(const weir_schedule *s, int64_t after_ms, int64_t *out, size_t max,
                             size_t *n, weir_error *err)
{
    weir_cron     c;
    weir_schedule own = *s;
    *n = 0;
    weir_code rc = weir__schedule_parse(&c, s, err);
    if (rc)
        return rc;
    if (max > WEIR_MAX_FIRINGS)
        return weir_fail(err, WEIR_ELIMIT, "%zu firings are too many; at most 1000 "
                         "(WEIR_MAX_FIRINGS)", max);
    if (!own.created_at)
        own.created_at = after_ms;
    for (; *n < max; (*n)++) {
        after_ms = weir__schedule_after(&own, &c, after_ms);
        if (!after_ms)
            break;
        out[*n] = after_ms;
    }
    return WEIR_OK;
}

weir_code weir_schedule_words(const weir_schedule *s, char **out, weir_error *err)
{
    weir_cron c;
    weir_buf  words = { 0 };
    *out = NULL;
    weir_code rc = weir__schedule_parse(&c, s, err);
    if (rc)
        return rc;
    weir__cron_words(&c, &words);
    *out = weir__buf_steal(&words, NULL);
    return *out ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "schedule: out of memory");
}
