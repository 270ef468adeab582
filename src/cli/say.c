/* say.c - see say.h. */
#include "cli/say.h"

#include <stdarg.h>
#include <string.h>

enum { MAX_MESSAGE = 1000 };

static void say(const cli *c, log_level level, const char *text)
{
    cli_log_write(&c->log, &(log_line){ .level = level, .text = text });
}

int cli_usage(const cli *c, const char *fmt, ...)
{
    char    text[MAX_MESSAGE], all[MAX_MESSAGE + 100];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const char *name = c->command ? c->command->name : NULL;
    snprintf(all, sizeof all, "%s%s%s (see `weir help%s%s`)", name ? name : "", name ? ": " : "",
             text, name ? " " : "", name ? name : "");
    say(c, LEVEL_ERROR, all);
    return weir_code_exit(WEIR_EINVAL);
}

int cli_fail(const cli *c)
{
    char        text[MAX_MESSAGE];
    const char *what = c->err.msg[0] ? c->err.msg : weir_code_text(c->err.code);
    /* a file that is missing, or not weir's, cannot be mended */
    bool        mendable = c->opened || !strcmp(c->err.field, "without_log");
    snprintf(text, sizeof text, "%s%s", what,
             c->err.code == WEIR_ECORRUPT && mendable
                 ? " (`weir check` lists the damage, `weir check --mend` mends it)" : "");
    say(c, LEVEL_ERROR, text);
    return weir_code_exit(c->err.code);
}

static void remark(const cli *c, log_level level, const char *fmt, va_list args)
{
    char text[MAX_MESSAGE];
    if (c->quiet)
        return;
    vsnprintf(text, sizeof text, fmt, args);
    say(c, level, text);
}

void cli_note(const cli *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    remark(c, LEVEL_INFO, fmt, args);
    va_end(args);
}

void cli_warn(const cli *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    remark(c, LEVEL_WARNING, fmt, args);
    va_end(args);
}

void cli_done(const cli *c, const char *fmt, ...)
{
    char    text[MAX_MESSAGE];
    va_list args;
    if (c->quiet || c->json || !term_is_tty(stdout))
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    term_wrap(stdout, text, 0, term_width(stdout), true);
}
