/* values.h - the values of a job: a JSON object of few, small members that programs keep with it.
 *
 * Stores keep them in one form, so that they agree: members in the order of their names, no space
 * outside of values, strings written as weir__json_string() writes them. No values at all is NULL.
 * Pure: no lock, any thread. */
#ifndef WEIR_CORE_VALUES_H
#define WEIR_CORE_VALUES_H

#include "core/job.h"

/* Vert.x Kue gives every job an address. It is a value of this name, does not count for the limits,
 * and has one of its own. */
#define WEIR__ADDRESS "address_id"
enum { WEIR__MAX_ADDRESS = 256, WEIR__VALUES = WEIR_MAX_VALUES + 1 };

/* Can these be set? With `removing`, null is allowed: it removes a value. An error names the value:
 * "values.color: ...". */
weir_code weir__values_check(const char *json, size_t len, bool removing, weir_error *err);

/* Append to `out` the object that sets one value: `value` is JSON, NULL removes it. Only whether it
 * is one value is checked here. */
weir_code weir__values_one(weir_buf *out, const char *name, const char *value, weir_error *err);

/* Append to `out`, which is empty: `old` (may be NULL) with the values of `change`. Both have
 * passed the check. `out` stays empty when none is left. WEIR_ELIMIT: that would be too many, or
 * too much; WEIR_ENOMEM. */
weir_code weir__values_merge(weir_buf *out, const char *old, size_t old_len, const char *change,
                             size_t change_len, weir_error *err);

/* Bring the values of a job from outside into the form that stores keep: j->values then points into
 * `room`, which is empty before. False: out of memory. */
bool weir__job_values(weir_job *j, weir_buf *room);

/* ---- one by one, for stores that keep them as single texts ---- */

/* Kue's processes see a value as plain text: a string without quotes, everything else as JSON. A
 * string that would be taken for JSON ("5", "[1]") keeps its quotes; null is never JSON here. */
typedef struct weir_value {
    const char *name, *text;
    size_t      name_len, len;
} weir_value;

/* The values of an object in the form that stores keep, at most WEIR__VALUES. Names are where
 * they are in `json`, texts in `room`, which is empty before. False: out of memory. */
bool weir__values_split(const char *json, size_t len, weir_value out[], size_t *n, weir_buf *room);

/* Append their object; nothing for none. Brings them into the order of their names. */
void weir__values_join(weir_buf *out, weir_value *values, size_t n);

#endif
