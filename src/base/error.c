/* error.c - writing a weir_error, and the table of codes. */
#include "base/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

static const struct code_info {
    const char *name, *text;
    int         http, status;
    bool        retry;
} codes[] = {
#define X(name, http, status, retry, text) { #name, text, http, status, retry },
    WEIR_CODES(X)
#undef X
};

static const struct code_info *info(weir_code code)
{
    static const struct code_info unknown = { "UNKNOWN", "unknown code", 500, 1, false };
    return (unsigned)code < WEIR_CODE_COUNT ? &codes[code] : &unknown;
}

const char *weir_code_name(weir_code code)
{
    return info(code)->name;
}

const char *weir_code_text(weir_code code)
{
    return info(code)->text;
}

int weir_code_http(weir_code code)
{
    return info(code)->http;
}

int weir_code_exit(weir_code code)
{
    return info(code)->status;
}

bool weir_code_may_retry(weir_code code)
{
    return info(code)->retry;
}

/* Copy a text to `out` as one line, cut between characters. */
static void put_line(char *out, size_t size, const char *text)
{
    size_t len = strlen(text);
    if (len >= size)
        len = weir__utf8_cut(text, len, size - 1);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        out[i] = c < 0x20 || c == 0x7f ? '?' : text[i];
    }
    out[len] = '\0';
}

enum { ROOM = 2 * WEIR_ERROR_MAX };     /* apart from err: its old texts may be arguments */

weir_code weir_fail(weir_error *err, weir_code code, const char *fmt, ...)
{
    if (!err)
        return code;
    char    msg[ROOM];
    va_list args;
    va_start(args, fmt);
    int n = fmt ? vsnprintf(msg, sizeof msg, fmt, args) : 0;
    va_end(args);
    put_line(err->msg, sizeof err->msg, n > 0 ? msg : weir_code_text(code));
    err->field[0] = '\0';
    err->code = code;
    return code;
}

weir_code weir__fail_field(weir_error *err, weir_code code, const char *field, const char *fmt, ...)
{
    if (!err)
        return code;
    char msg[ROOM], name[WEIR_FIELD_MAX];
    WEIR__FORMAT(msg, fmt);
    put_line(name, sizeof name, field);
    weir_fail(err, code, "%s%s%s", field, *field ? ": " : "", msg);
    strcpy(err->field, name);
    return code;
}

weir_code weir__fail_inside(weir_error *err, weir_code code, const char *fmt, ...)
{
    if (!err)
        return code;
    char of[WEIR_FIELD_MAX], name[2 * WEIR_FIELD_MAX + 1];
    WEIR__FORMAT(of, fmt);
    const char *dot = !*err->field ? "" : *err->field == '[' ? "" : ".";
    snprintf(name, sizeof name, "%s%s%s", of, dot, err->field);
    weir_fail(err, code, "%s%s%s", of, *err->field ? dot : ": ", err->msg);
    put_line(err->field, sizeof err->field, name);
    return code;
}

int weir_complain(const weir_error *err)
{
    if (!err)
        return 1;
    fprintf(stderr, "%s: %s\n", program_invocation_short_name,
            err->msg[0] ? err->msg : weir_code_text(err->code));
    return weir_code_exit(err->code);
}

weir_code weir__check_number(unsigned number, unsigned count, const char *field, weir_error *err)
{
    if (number < count)
        return WEIR_OK;
    return weir__fail_field(err, WEIR_EINVAL, field, "unknown number %d, must be 0 to %u",
                            (int)number, count - 1);
}

weir_code weir__check_reserved(void *const *reserved, size_t n, weir_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (reserved[i])
            return weir__fail_field(err, WEIR_EINVAL, "reserved", "not NULL: begin with { 0 }, or "
                                    "use the library of the version of the headers");
    return WEIR_OK;
}
