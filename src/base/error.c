/* error.c - writing a weir_error, and the table of codes. */
#include "weir/error.h"

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

weir_code weir_fail(weir_error *err, weir_code code, const char *fmt, ...)
{
    if (!err)
        return code;
    char    msg[2 * WEIR_ERROR_MAX];    /* apart from err: its old message may be an argument */
    va_list args;
    va_start(args, fmt);
    int n = fmt ? vsnprintf(msg, sizeof msg, fmt, args) : 0;
    va_end(args);
    if (n <= 0)
        n = snprintf(msg, sizeof msg, "%s", weir_code_text(code));
    size_t len = (size_t)n < sizeof msg ? (size_t)n : sizeof msg - 1;
    if (len >= sizeof err->msg)
        len = weir__utf8_cut(msg, len, sizeof err->msg - 1);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)msg[i];
        err->msg[i] = c < 0x20 || c == 0x7f ? '?' : msg[i];
    }
    err->msg[len] = '\0';
    err->code = code;
    return code;
}

int weir_complain(const weir_error *err)
{
    if (!err)
        return 1;
    fprintf(stderr, "weir: %s\n", err->msg[0] ? err->msg : weir_code_text(err->code));
    return weir_code_exit(err->code);
}
