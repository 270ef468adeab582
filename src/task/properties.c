/* properties.c - delayqueue.properties: its text, and what it means for the URLs of weir. */
#include "task/properties.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fail.h"

typedef struct reader {
    const char *at, *end;
    int         line, pair;         /* of `at`, and of the pair that was read, from 1 */
    weir_buf    name, value;
} reader;

/* ---- text ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

static bool is_end(char c)
{
    return c == '\n' || c == '\r';
}

static void skip_space(reader *r)
{
    while (r->at < r->end && is_space(*r->at))
        r->at++;
}

/* "\r\n" is one. */
static void skip_end(reader *r)
{
    if (r->at == r->end)
        return;
    r->at += *r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n' ? 2 : 1;
    r->line++;
}

/* Behind "\u": four digits, or the letter itself. Halves of a pair are not joined: "?". */
static void add_code(reader *r, weir_buf *to)
{
    unsigned code = 0;
    int      n = 0;
    for (; n < 4 && r->at + n < r->end && isxdigit((unsigned char)r->at[n]); n++) {
        char c = (char)tolower((unsigned char)r->at[n]);
        code = code * 16 + (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    if (n < 4) {
        weir__buf_char(to, 'u');
        return;
    }
    r->at += 4;
    if (code < 0x80) {
        weir__buf_char(to, (char)code);
    } else if (code < 0x800) {
        weir__buf_char(to, (char)(0xc0 | code >> 6));
        weir__buf_char(to, (char)(0x80 | (code & 0x3f)));
    } else if (code >= 0xd800 && code < 0xe000) {
        weir__buf_char(to, '?');
    } else {
        weir__buf_char(to, (char)(0xe0 | code >> 12));
        weir__buf_char(to, (char)(0x80 | (code >> 6 & 0x3f)));
        weir__buf_char(to, (char)(0x80 | (code & 0x3f)));
    }
}

/* Behind a backslash. At the end of a line, that goes on with the next one, without its blanks. */
static void add_escape(reader *r, weir_buf *to)
{
    static const char letters[] = "tnrf", means[] = "\t\n\r\f";
    if (r->at == r->end)
        return;
    if (is_end(*r->at)) {
        skip_end(r);
        skip_space(r);
        return;
    }
    char        c = *r->at++;
    const char *letter = c ? strchr(letters, c) : NULL;
    if (c == 'u')
        add_code(r, to);
    else
        weir__buf_char(to, letter ? means[letter - letters] : c);
}

/* A name ends at "=", ":" or a blank, a value at the end of its line. */
static void read_part(reader *r, weir_buf *to, bool name)
{
    weir__buf_clear(to);
    while (r->at < r->end && !is_end(*r->at)) {
        char c = *r->at;
        if (name && (c == '=' || c == ':' || is_space(c)))
            return;
        r->at++;
        if (c == '\\')
            add_escape(r, to);
        else
            weir__buf_char(to, c);
    }
}

/* False: there are no more. */
static bool read_pair(reader *r)
{
    for (; r->at < r->end; skip_end(r)) {
        skip_space(r);
        if (r->at == r->end || (*r->at != '#' && *r->at != '!' && !is_end(*r->at)))
            break;
        while (r->at < r->end && !is_end(*r->at))
            r->at++;
    }
    if (r->at == r->end)
        return false;
    r->pair = r->line;
    read_part(r, &r->name, true);
    skip_space(r);
    if (r->at < r->end && (*r->at == '=' || *r->at == ':')) {
        r->at++;
        skip_space(r);
    }
    read_part(r, &r->value, false);
    return true;
}

/* ---- values ---- */

static bool is_name(const char *text, size_t len)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return len && len <= WEIR_MAX_TASK_TEXT && strspn(text, letters) == len && !isdigit(*text);
}

/* As a prefix in a URL. */
static bool is_key(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~' || strchr("?&#%{}", text[i]))
            return false;
    return len && len <= WEIR_MAX_TASK_TEXT;
}

static weir_code wrong(int line, const char *name, const char *expected, weir_error *err)
{
    return weir_fail(err, WEIR_EINVAL, "properties, line %d, %s: expected %s", line, name,
                     expected);
}

static weir_code take(weir_task_properties *p, const reader *r, weir_error *err)
{
    const char *name = r->name.data ? r->name.data : "", *value = r->value.data;
    size_t      len = r->value.len;
    while (len && is_space(value[len - 1]))
        len--;
    char text[WEIR_MAX_TASK_TEXT + 2];
    len = len < sizeof text ? len : sizeof text - 1;
    snprintf(text, sizeof text, "%.*s", (int)len, value ? value : "");
    len = strlen(text);             /* one more than may be, if it is longer */
    if (strcmp(name, "QueueKey") == 0) {
        if (!is_key(text, len))
            return wrong(r->pair, name, "visible ASCII without ? & # % { }, at most 100 "
                         "(WEIR_MAX_TASK_TEXT)", err);
        memcpy(p->queue_key, text, len + 1);
    } else if (strcmp(name, "TaskTableName") == 0) {
        if (!is_name(text, len))
            return wrong(r->pair, name, "letters, digits and \"_\", a letter first, at most 100 "
                         "(WEIR_MAX_TASK_TEXT)", err);
        memcpy(p->table, text, len + 1);
    } else if (strcmp(name, "DailyQueueKey") == 0) {
        p->daily_keys = strcasecmp(text, "true") == 0;
    }
    return WEIR_OK;
}

weir_code weir__properties_parse(weir_task_properties *out, const char *text, size_t len,
                                 weir_error *err)
{
    reader    r = { .at = text, .end = text + len, .line = 1 };
    weir_code rc = WEIR_OK;
    *out = (weir_task_properties){ 0 };
    while (!rc && read_pair(&r)) {
        if (r.name.failed || r.value.failed)
            rc = weir_fail(err, WEIR_ENOMEM, "properties: out of memory");
        else
            rc = take(out, &r, err);
    }
    weir__buf_fini(&r.name);
    weir__buf_fini(&r.value);
    if (rc)
        *out = (weir_task_properties){ 0 };
    return rc;
}

weir_code weir_task_properties_read(const char *file, weir_task_properties *out, weir_error *err)
{
    *out = (weir_task_properties){ 0 };
    FILE *f = fopen(file, "re");
    char *text = f ? malloc(WEIR_PROPERTIES_MAX + 1) : NULL;
    if (!f)
        return weir_fail(err, WEIR_ENOENT, "properties: cannot read %.150s", file);
    size_t    n = text ? fread(text, 1, WEIR_PROPERTIES_MAX + 1, f) : 0;
    weir_code rc = !text       ? weir_fail(err, WEIR_ENOMEM, "properties: out of memory")
                   : ferror(f) ? weir_fail(err, WEIR_EIO, "properties: cannot read %.150s", file)
                   : n > WEIR_PROPERTIES_MAX
                       ? weir_fail(err, WEIR_ELIMIT, "properties: more than %d bytes in %.150s",
                                   WEIR_PROPERTIES_MAX, file)
                       : weir__properties_parse(out, text, n, err);
    free(text);
    fclose(f);
    return rc;
}

/* ---- URLs ---- */

/* With "NAME=VALUE", unless a value is there or none is to be set. */
static weir_code with(const char *url, const char *name, const char *value, char **out,
                      weir_error *err)
{
    char        word[20];
    const char *query = strchr(url, '?');
    bool        there = false;
    snprintf(word, sizeof word, "%s=", name);
    for (const char *at = query; at && !there; at = strchr(at + 1, '&'))
        there = strncmp(at + 1, word, strlen(word)) == 0;
    weir_buf b = { 0 };
    weir__buf_str(&b, url);
    if (*value && !there)
        weir__buf_printf(&b, "%c%s=%s", query ? '&' : '?', name, value);
    *out = weir__buf_steal(&b, NULL);
    return *out ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "properties: out of memory");
}

weir_code weir_task_properties_queue(const weir_task_properties *p, const char *url, char **out,
                                     weir_error *err)
{
    bool redis = strncmp(url, "redis", 5) == 0;
    *out = NULL;
    return with(url, "prefix", redis ? p->queue_key : "", out, err);
}

weir_code weir_task_properties_table(const weir_task_properties *p, const char *url, char **out,
                                     weir_error *err)
{
    *out = NULL;
    return with(url, "table", p->table, out, err);
}
