/* error_mask.h - errors that differ only in numbers, ids, quoted strings and addresses are the same
 * trouble: their masks are equal. Groups of failed jobs by type and mask. Pure functions: no clock,
 * no shared state, any thread. */
#ifndef WEIR_CORE_ERROR_MASK_H
#define WEIR_CORE_ERROR_MASK_H

#include "base/buf.h"
#include "weir/errors.h"

/* Has this job the mask `error` (weir_mask_error())? */
bool weir__error_is(const weir_job *job, const char *error);

/* ---- a bounded look at failed jobs ---- */

/* Jobs may be large, so a look is bounded by their number and by their bytes. {0} is its start. */
typedef struct weir_look {
    size_t jobs, bytes;
} weir_look;

/* How many jobs the next page should have; 0: the look is over, enough was looked at. */
size_t weir__look_next(const weir_look *l);
void   weir__look_add(weir_look *l, const weir_job *job);

/* ---- groups ---- */

/* NULL: no memory. */
weir_error_groups *weir__error_groups_create(void);
/* Count a failed job in its group. Jobs come in any order. False: no memory. */
bool weir__error_groups_add(weir_error_groups *g, const weir_job *job);
/* The largest groups first; of equal ones that with the latest job. */
void weir__error_groups_sort(weir_error_groups *g);
/* As GET /v1/errors answers. */
void weir__error_groups_write(weir_buf *b, const weir_error_groups *g);

#endif
