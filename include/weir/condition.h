/* condition.h - may this job run now? A condition is a text, which is parsed once:
 *
 *     data.region = "eu" and (now.hour < 6 or job.priority < 0)
 *
 * It compares values and does nothing else: no code of a job or of a condition is evaluated. It is
 * part of the take: weir_pool_config.when, weir_observing.when, weir_taking.when. The store gives a
 * consumer only jobs for which its condition is true. The others stay where they are, at once free
 * for other consumers, and do not block those behind them; see docs/time.md.
 *
 * A take looks at WEIR_MAX_LOOK waiting jobs at most, best first. A pool or stream looks again when
 * a job comes, when the clock can have changed its condition, and each WEIR_CONDITION_MS.
 *
 * These functions are for programs that check a text, or ask by themselves. Not included by
 * weir.h. */
#ifndef WEIR_CONDITION_H
#define WEIR_CONDITION_H

#include "weir/job.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WEIR_MAX_CONDITION       = 1023,        /* bytes of its text */
    WEIR_MAX_CONDITION_DEPTH = 32,          /* of parentheses and "not" */
    WEIR_MAX_CONDITION_PARTS = 64,          /* comparisons */
    WEIR_CONDITION_MS        = 600000       /* between two looks, if no job comes */
};

typedef struct weir_condition weir_condition;

/* Parse a text; docs/time.md has the grammar. *out belongs to the caller: weir_condition_free(). It
 * may be used by any thread. Errors: WEIR_EINVAL and WEIR_ELIMIT, which name the column,
 * WEIR_ENOMEM. */
WEIR_API weir_code weir_condition_parse(weir_condition **out, const char *text, weir_error *err);
WEIR_API void weir_condition_free(weir_condition *c);       /* NULL is fine */

/* When the condition is true for this job: now_ms (since 1970), if it is. Else the first minute,
 * hour or day (the shortest that it names) in which the clock makes it true, of the next day, week
 * or year; else now_ms + WEIR_CONDITION_MS. */
WEIR_API int64_t weir_condition_when(const weir_condition *c, weir_job *job, int64_t now_ms);

#ifdef __cplusplus
}
#endif
#endif
