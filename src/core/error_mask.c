/* error_mask.c - see error_mask.h and weir/errors.h. The text is read once from left to right. At
 * each place the first entry of `masks` that matches consumes what varies. Failing entries look
 * ahead a bounded way, and the mask is short, so the work is bounded however long the error is. */
#include "core/error_mask.h"

#include <string.h>

#include "base/buf.h"

enum {
    MAX_QUOTED = 1024, MAX_SCHEME = 16, MAX_LOCAL_PART = 64, MAX_IPV6 = 45,     /* bytes */
    MIN_HEX = 8, MIN_ID = 16,
    /* digits and letters in turn: this many turns, or one fewer among this many digits */
    MIN_TURNS = 3, MIN_MIXED_DIGITS = 3
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_alnum(char c)
{
    return is_digit(c) || is_letter(c) || (unsigned char)c >= 0x80;
}

/* ---- what varies: how many bytes of it begin at s, 0: none. `kept` of them stay ---- */

/* An apostrophe is a quote only between words. */
static size_t quoted(const char *s, size_t len, size_t *kept)
{
    if (*s != '"' && *s != '\'' && *s != '`')
        return 0;
    *kept = 1;
    for (size_t i = 1; i < len && i < MAX_QUOTED; i++) {
        if (s[i] == '\\' && i + 1 < len)
            i++;
        else if (s[i] == *s && (*s != '\'' || i + 1 == len || !is_alnum(s[i + 1])))
            return i;
    }
    return 0;
}

static size_t url(const char *s, size_t len, size_t *kept)
{
    size_t i = 0;
    while (i < len && i < MAX_SCHEME && (is_letter(s[i]) || (i && s[i] == '+')))
        i++;
    if (!i || len - i < 4 || memcmp(s + i, "://", 3) != 0)
        return 0;
    *kept = i += 3;
    while (i < len && (unsigned char)s[i] > ' ' && !strchr("\"'`<>(){}[],;", s[i]))
        i++;
    while (i > *kept && strchr(".:!?", s[i - 1]))
        i--;
    return i > *kept ? i : 0;
}

static size_t mail(const char *s, size_t len, size_t *kept)
{
    size_t i = 0, at;
    (void)kept;
    while (i < len && i < MAX_LOCAL_PART && (is_alnum(s[i]) || (i && strchr("._%+-", s[i]))))
        i++;
    if (!i || i == len || s[i] != '@')
        return 0;
    for (at = ++i; i < len && (is_alnum(s[i]) || s[i] == '.' || s[i] == '-');)
        i++;
    while (i > at && (s[i - 1] == '.' || s[i - 1] == '-'))
        i--;
    return i > at ? i : 0;
}

static size_t uuid(const char *s, size_t len, size_t *kept)
{
    enum { LENGTH = 36 };
    (void)kept;
    for (size_t i = 0; i < LENGTH; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (i == len || (dash ? s[i] != '-' : !is_hex(s[i])))
            return 0;
    }
    return len == LENGTH || !is_alnum(s[LENGTH]) ? LENGTH : 0;
}

static size_t ipv6(const char *s, size_t len, size_t *kept)
{
    size_t i = 0, colons = 0, digits = 0;
    (void)kept;
    for (; i < len && i < MAX_IPV6 && (is_hex(s[i]) || s[i] == ':'); i++) {
        colons += s[i] == ':';
        digits += is_digit(s[i]);
    }
    while (i > 2 && s[i - 1] == ':' && s[i - 2] != ':') {      /* "fe80::1: refused" */
        i--;
        colons--;
    }
    return colons > 1 && digits && (i == len || !is_alnum(s[i])) ? i : 0;
}

/* "7f3a418", but neither "sha256" and "30000ms" nor "k8s". */
static bool is_mixed(size_t turns, size_t digits)
{
    return turns >= MIN_TURNS || (turns == MIN_TURNS - 1 && digits >= MIN_MIXED_DIGITS);
}

/* A hexadecimal number, or an id. */
static size_t id(const char *s, size_t len, size_t *kept)
{
    size_t i = 0, digits = 0, hex = 0, turns = 0;
    bool   prefix = len > 2 && *s == '0' && (s[1] == 'x' || s[1] == 'X') && is_hex(s[2]);
    (void)kept;
    for (i = prefix ? 2 : 0; i < len && is_alnum(s[i]); i++) {
        digits += is_digit(s[i]);
        hex += is_hex(s[i]);
        turns += i && is_digit(s[i]) != is_digit(s[i - 1]);
    }
    bool number = prefix ? hex == i - 2 : hex == i && i >= MIN_HEX;
    if (prefix && number)
        return i;
    return digits && (number || i >= MIN_ID || is_mixed(turns, digits)) ? i : 0;
}

/* Also an address of IPv4, a date, a time, a share: "3/7". */
static size_t number(const char *s, size_t len, size_t *kept)
{
    size_t i = 0;
    (void)kept;
    while (i < len && (is_digit(s[i]) || (i && i + 1 < len && strchr(".,:-/T", s[i]) &&
                                          is_digit(s[i + 1]))))
        i++;
    return i;
}

static const struct {
    size_t (*length)(const char *s, size_t len, size_t *kept);
    bool     inside;            /* also within a word */
} masks[] = {
    { quoted, false }, { url, false }, { mail, false }, { uuid, false }, { ipv6, false },
    { id, false }, { number, true },
};

/* ---- the mask ---- */

static const char *first_line(const char *text, size_t *len)
{
    text += strspn(text, " \t\r\n");
    *len = strcspn(text, "\r\n");
    while (*len && (text[*len - 1] == ' ' || text[*len - 1] == '\t'))
        --*len;
    return text;
}

static size_t put(char *out, size_t n, const char *s, size_t len)
{
    size_t room = WEIR_MAX_ERROR_MASK + 1 - n;          /* one over: then it is cut */
    len = len < room ? len : room;
    memcpy(out + n, s, len);
    return n + len;
}

size_t weir_mask_error(const char *error, char out[WEIR_MAX_ERROR_MASK + 1])
{
    char        buf[WEIR_MAX_ERROR_MASK + 2];
    size_t      len, n = 0;
    const char *s = first_line(error ? error : "", &len);
    for (size_t i = 0; i < len && n <= WEIR_MAX_ERROR_MASK;) {
        bool   inside = i && is_alnum(s[i - 1]);
        size_t taken = 0, kept = 0;
        for (size_t k = 0; !taken && k < sizeof masks / sizeof *masks; k++) {
            kept = 0;
            if (!inside || masks[k].inside)
                taken = masks[k].length(s + i, len - i, &kept);
        }
        n = put(buf, n, s + i, taken ? kept : 1);
        if (taken)
            n = put(buf, n, "*", 1);
        i += taken ? taken : 1;
    }
    n = weir__utf8_cut(buf, n, WEIR_MAX_ERROR_MASK);
    memcpy(out, buf, n);
    out[n] = '\0';
    return n;
}

bool weir__error_is(const weir_job *job, const char *error)
{
    char mask[WEIR_MAX_ERROR_MASK + 1];
    weir_mask_error(job->error, mask);
    return strcmp(mask, error) == 0;
}
