/* fail.h - errors that name the field of a struct or JSON object that is wrong. Any thread. */
#ifndef WEIR_BASE_FAIL_H
#define WEIR_BASE_FAIL_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "weir/error.h"

/* The text of a variadic function, by its last parameter `fmt`: printed into an array, ... */
#define WEIR__FORMAT(array, fmt)                                                                  \
    do {                                                                                          \
        va_list args_;                                                                            \
        va_start(args_, fmt);                                                                     \
        vsnprintf(array, sizeof (array), fmt, args_);                                             \
        va_end(args_);                                                                            \
    } while (0)
/* ... or as long as it is: `text` is freed with free(), `len` an int. NULL, -1: out of memory. */
#define WEIR__FORMAT_NEW(text, len, fmt)                                                          \
    do {                                                                                          \
        va_list args_;                                                                            \
        va_start(args_, fmt);                                                                     \
        (len) = vasprintf(&(text), fmt, args_);                                                   \
        va_end(args_);                                                                            \
        if ((len) < 0)                                                                            \
            (text) = NULL;                                                                        \
    } while (0)

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
