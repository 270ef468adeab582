/* error.h - the one error type of weir, and the table that gives every code its meaning.
 * Everything here is safe from any thread. */
#ifndef WEIR_ERROR_H
#define WEIR_ERROR_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEIR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define WEIR_API __attribute__((visibility("default")))
#else
#define WEIR_PRINTF(fmt, args)
#define WEIR_API
#endif

/* name, HTTP status, exit status, may a retry help, text */
#define WEIR_CODES(X)                                                              \
    X(OK,        200,  0, false, "success")                                        \
    X(LATER,     202,  0, false, "the outcome comes later")                        \
    X(EJOB,      500,  1, false, "the job failed")                                 \
    X(EINVAL,    400,  2, false, "invalid argument")                               \
    X(ELIMIT,    413,  2, false, "over a limit")                                   \
    X(ENOENT,    404,  3, false, "not found")                                      \
    X(ESTALE,    409,  4, false, "the job has moved on")                           \
    X(ESTATE,    409,  4, false, "the life cycle does not allow this")             \
    X(EBUSY,     423,  5, true,  "the store belongs to another process")           \
    X(EREADONLY, 403,  5, false, "the store is open for reading only")             \
    X(EUNAVAIL,  503,  6, true,  "the store cannot be reached")                    \
    X(ENOMEM,    503,  7, true,  "out of memory")                                  \
    X(EFULL,     507,  8, true,  "no space left")                                  \
    X(EIO,       503,  9, true,  "input or output error")                          \
    X(ECORRUPT,  500, 10, false, "the store is damaged or not weir's")             \
    X(EVERSION,  500, 11, false, "the store is of another version of weir")       \
    X(ETIMEOUT,  504, 12, true,  "timed out")                                      \
    X(ECLOSED,   503, 13, false, "the queue is closed")                            \
    X(EUNKNOWN,  503, 14, false, "not known whether it was done")                  \
    X(EREPLY,    502, 15, false, "the recipient answered with a failure")          \
    X(ELOST,     502, 16, true,  "the recipient was lost before it replied")

/* Members `reserved` of public structs, see weir.h. */
enum { WEIR_RESERVED = 4 };

typedef enum weir_code {
#define X(name, http, status, retry, text) WEIR_##name,
    WEIR_CODES(X)
#undef X
    WEIR_CODE_COUNT
} weir_code;

/* The bit of an enumerator in a set of them, such as weir_filter.events. */
#define WEIR_BIT(n) (1u << (n))

enum { WEIR_ERROR_MAX = 240, WEIR_FIELD_MAX = 96 };

typedef struct weir_error {
    weir_code code;
    char      msg[WEIR_ERROR_MAX];   /* one line, complete enough to show as it is */
    char      field[WEIR_FIELD_MAX]; /* the field that is wrong: "priority", "backoff.delay_ms",
                                        "jobs[3].type"; "": none */
} weir_error;

/* Write `code` and a message into `err` (may be NULL) and return `code`. A message that is too
 * long is cut. Control characters are replaced, so that the message stays one line. No field is
 * named. */
WEIR_API weir_code weir_fail(weir_error *err, weir_code code, const char *fmt, ...)
    WEIR_PRINTF(3, 4);

/* Print "PROGRAM: MESSAGE" to standard error, with the name by which the calling program was
 * started, and return the exit status of err->code: the last line of a main(). */
WEIR_API int weir_complain(const weir_error *err);

WEIR_API const char *weir_code_name(weir_code code);      /* "EINVAL" */
WEIR_API const char *weir_code_text(weir_code code);      /* "invalid argument" */
WEIR_API int         weir_code_http(weir_code code);      /* 400 */
WEIR_API int         weir_code_exit(weir_code code);      /* 2 */
WEIR_API bool        weir_code_may_retry(weir_code code);

#ifdef __cplusplus
}
#endif
#endif
