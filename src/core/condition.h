/* condition.h - the inside of weir/condition.h: parsing and asking, as pure functions.
 *
 *     or       = and { "or" and }
 *     and      = not { "and" not }
 *     not      = "not" not | "(" or ")" | value [ compare value ]
 *     compare  = "=" "!=" "<" "<=" ">" ">="
 *     value    = "text" | number | true | false | null | data.PATH | values.NAME | now.FIELD
 *              | job.FIELD
 */
#ifndef WEIR_CORE_CONDITION_H
#define WEIR_CORE_CONDITION_H

#include "weir/condition.h"

/* Is it true for this job now? Any number of threads may ask for the same job. */
bool weir__condition_holds(const weir_condition *c, const weir_job *job, int64_t now_ms);

/* The time for which jobs need not be checked again for which it was not true. It ends when the
 * clock can change that, and after at most WEIR_CONDITION_MS, since a job's values may change
 * unseen. */
int64_t weir__condition_rest_ms(const weir_condition *c, int64_t now_ms);

/* The byte of a path of data.h that cannot be; SIZE_MAX: it is right. In data.c. */
size_t weir__path_wrong(const char *path);

#endif
