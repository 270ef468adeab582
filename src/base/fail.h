/* fail.h - errors that name the field of a struct or JSON object that is wrong. Any thread. */
#ifndef WEIR_BASE_FAIL_H
#define WEIR_BASE_FAIL_H

#include <stddef.h>

#include "weir/error.h"

/* weir_fail() with the message "FIELD: ..." and err->field set. The old field of err may be the
 * argument. */
weir_code weir__fail_field(weir_error *err, weir_code code, const char *field, const char *fmt, ...)
    WEIR_PRINTF(4, 5);

/* The field is a member or an element of this one ("jobs[3]"): "type: missing" becomes
 * "jobs[3].type: missing". Returns the code. `err` may be NULL. */
weir_code weir__fail_inside(weir_error *err, weir_code code, const char *fmt, ...)
    WEIR_PRINTF(3, 4);

/* WEIR_EINVAL unless it is a number of an enum that has `count` of them, from 0 on. */
weir_code weir__check_number(unsigned number, unsigned count, const char *field, weir_error *err);

/* WEIR_EINVAL unless the reserved members of a public struct are NULL: see weir.h. */
#define WEIR__CHECK_RESERVED(s, err)                                                              \
    weir__check_reserved((s)->reserved, sizeof (s)->reserved / sizeof *(s)->reserved, err)
weir_code weir__check_reserved(void *const *reserved, size_t n, weir_error *err);

#endif
