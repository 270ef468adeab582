/* out_json.c - a small JSON writer. */
#include "cli/out_json.h"

#include <string.h>

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

void jw_raw(jw *w, const char *name, const char *json, size_t len)
{
    begin(w, name);
    if (!json)
        fputs("null", w->out);
    for (size_t i = 0; json && i < len; i++)        /* a line break in JSON is only white space */
        fputc(json[i] == '\n' || json[i] == '\r' ? ' ' : json[i], w->out);
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

void jw_string(FILE *out, const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;
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
            fwrite(s + i, 1, n, out);
        i += n ? n : 1;
    }
    fputc('"', out);
}
