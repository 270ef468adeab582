/* out_json.c - a small JSON writer. */
#include "cli/out_json.h"

#include <stdlib.h>
#include <string.h>
#include "cli/term.h"
#include "weir/weir.h"

static void begin(jw *w, const char *name)
{
    if (w->comma)
        fputc(',', w->out);
    w->comma = true;
    if (name) {
        jw_string(w->out, name, strlen(name));
        fputc(':', w->out);
    }
}

void jw_object(jw *w, const char *name)
{
    begin(w, name);
    fputc('{', w->out);
    w->comma = false;
    w->depth++;
}

void jw_array(jw *w, const char *name)
{
    begin(w, name);
    fputc('[', w->out);
    w->comma = false;
    w->depth++;
}

void jw_end(jw *w, char bracket)
{
    fputc(bracket, w->out);
    w->comma = true;
    if (--w->depth == 0) {
        fputc('\n', w->out);
        w->comma = false;
    }
}

void jw_text(jw *w, const char *name, const char *text)
{
    begin(w, name);
    if (text)
        jw_string(w->out, text, strlen(text));
    else
        fputs("null", w->out);
}

void jw_int(jw *w, const char *name, int64_t n)
{
    begin(w, name);
    fprintf(w->out, "%lld", (long long)n);
}

void jw_real(jw *w, const char *name, double n)
{
    begin(w, name);
    fprintf(w->out, "%.3f", n);
}

void jw_bool(jw *w, const char *name, bool b)
{
    begin(w, name);
    fputs(b ? "true" : "false", w->out);
}

/* Length of the UTF-8 character at s[0..len), 0 if it is none (RFC 3629: no surrogates, nothing
 * overlong, nothing beyond U+10FFFF). */
static size_t utf8(const unsigned char *s, size_t len)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3
               : s[0] < 0xf5 ? 4 : 0;
    if (n > len)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

/* Characters beyond U+FFFF are two escapes. */
static void write_escape(FILE *out, uint32_t c)
{
    if (c > 0xffff) {
        fprintf(out, "\\u%04x", (unsigned)(0xd800 + ((c - 0x10000) >> 10)));
        c = 0xdc00 + ((c - 0x10000) & 0x3ff);
    }
    fprintf(out, "\\u%04x", (unsigned)c);
}

/* The character of n bytes. */
static uint32_t code_point(const unsigned char *s, size_t n)
{
    uint32_t c = n == 1 ? *s : *s & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (s[i] & 0x3f);
    return c;
}

/* Is there a byte that may belong to a hidden character? Controls below 0x20 are never inside a
 * string of JSON, and outside of it they are white space. */
static bool may_hide(const unsigned char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (s[i] >= 0x7f)
            return true;
    return false;
}

/* A character of n bytes, for a terminal or not. */
static void write_character(FILE *out, const unsigned char *s, size_t n, bool terminal)
{
    uint32_t c = terminal ? code_point(s, n) : 0;
    if (c >= 0x7f && weir_is_hidden(c))
        write_escape(out, c);
    else
        fwrite(s, 1, n, out);
}

/* Characters other than ASCII occur only inside strings, so an escape is always valid there. */
void jw_json(FILE *out, const char *json, size_t len)
{
    const unsigned char *s = (const unsigned char *)json;
    if (!may_hide(s, len) || !term_is_tty(out)) {
        fwrite(json, 1, len, out);
        return;
    }
    for (size_t i = 0, n; i < len; i += n ? n : 1) {
        n = utf8(s + i, len - i);
        if (n)
            write_character(out, s + i, n, true);
        else
            write_escape(out, 0xfffd);
    }
}

void jw_raw(jw *w, const char *name, const char *json, size_t len)
{
    begin(w, name);
    if (!json)
        fputs("null", w->out);
    for (size_t i = 0, n; json && i < len; i += n) {    /* a line break in JSON is white space */
        for (n = 0; i + n < len && json[i + n] != '\n' && json[i + n] != '\r'; n++)
            ;
        jw_json(w->out, json + i, n);
        if (i + n < len) {
            fputc(' ', w->out);
            n++;
        }
    }
}

void jw_string(FILE *out, const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;
    bool                 terminal = may_hide(s, len) && term_is_tty(out);
    fputc('"', out);
    for (size_t i = 0; i < len;) {
        size_t n = utf8(s + i, len - i);
        if (n == 0 || s[i] == 0)
            fputs("\\ufffd", out);
        else if (s[i] == '"' || s[i] == '\\')
            fprintf(out, "\\%c", s[i]);
        else if (s[i] == '\n')
            fputs("\\n", out);
        else if (s[i] < 0x20 || s[i] == 0x7f)
            fprintf(out, "\\u%04x", s[i]);
        else
            write_character(out, s + i, n, terminal);
        i += n ? n : 1;
    }
    fputc('"', out);
}

/* `text` is freed. */
static weir_code write_line(FILE *out, char *text, weir_error *err)
{
    if (!text)
        return weir_fail(err, WEIR_ENOMEM, "out of memory");
    jw_json(out, text, strlen(text));
    fputc('\n', out);
    free(text);
    return WEIR_OK;
}

weir_code jw_job(FILE *out, const weir_job *job, weir_error *err)
{
    return write_line(out, weir_job_json(job, NULL), err);
}

weir_code jw_stats(FILE *out, const weir_stats *stats, weir_error *err)
{
    return write_line(out, weir_stats_json(stats, NULL), err);
}

weir_code jw_errors(FILE *out, const weir_error_groups *groups, weir_error *err)
{
    return write_line(out, weir_error_groups_json(groups, NULL), err);
}

weir_code jw_type(FILE *out, const weir_type_stats *type, weir_error *err)
{
    return write_line(out, weir_type_json(type, NULL), err);
}
