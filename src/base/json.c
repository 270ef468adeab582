/* json.c - checking, taking apart and writing JSON.
 *
 * The check runs for every job that is added, so it is one pass without recursion or allocation.
 * Strings go eight bytes at a time until something needs a closer look. An open object or array is
 * one bit a level. */
#include "base/json.h"

#include <endian.h>
#include <string.h>

const char weir__json_too_deep[] = "nested too deeply";

enum { MAX_LEVELS = 1024 };

typedef struct parser {
    const unsigned char *at, *end;
    const char          *why;
} parser;

static bool bad(parser *p, const unsigned char *at, const char *why)
{
    p->at = at;
    p->why = p->at == p->end ? "the text ends too early" : why;
    return false;
}

/* How long is the UTF-8 character (beyond ASCII) at `s`? 0: it is none. */
static size_t utf8_len(const unsigned char *s, const unsigned char *end)
{
    size_t        left = (size_t)(end - s);
    unsigned char c = s[0], lowest = 0x80, highest = 0xbf;
    size_t        len = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c < 0xc2 || c > 0xf4 || left < len)
        return 0;
    if (c == 0xe0)          /* else it would fit in two bytes */
        lowest = 0xa0;
    else if (c == 0xed)     /* surrogates */
        highest = 0x9f;
    else if (c == 0xf0)     /* would fit in three */
        lowest = 0x90;
    else if (c == 0xf4)     /* beyond U+10FFFF */
        highest = 0x8f;
    if (s[1] < lowest || s[1] > highest)
        return 0;
    for (size_t i = 2; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    return len;
}

/* The first in the lowest place. */
static inline uint64_t eight_bytes(const void *s)
{
    uint64_t x;
    memcpy(&x, s, sizeof x);
    return le64toh(x);
}

/* The first byte from `s` that does not stand for itself in a string: not ASCII, a control
 * character, '"' or '\'. Eight bytes at a time while there are eight.
 *
 * With x the eight bytes, the first in the lowest place, x - 0x01.. sets the high bit of a byte
 * that is 0, and x - 0x20.. the high bit of a byte below 0x20. Borrowing only spoils bytes behind
 * the first one found, so the lowest bit set is right. */
static inline const unsigned char *skip_plain(const unsigned char *s, const unsigned char *end)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones * 0x80;
    while (end - s >= 8) {
        uint64_t x = eight_bytes(s);
        uint64_t quote = x ^ ones * '"', slash = x ^ ones * '\\';
        uint64_t found = (x | (x - ones * 0x20) | (quote - ones) | (slash - ones)) & highs;
        if (found)
            return s + __builtin_ctzll(found) / 8;
        s += 8;
    }
    while (s < end && *s >= 0x20 && *s < 0x80 && *s != '"' && *s != '\\')
        s++;
    return s;
}

static int hex4(const unsigned char *s, const unsigned char *end, const unsigned char **where)
{
    int n = 0;
    for (int i = 0; i < 4; i++, s++) {
        *where = s;
        if (s == end)
            return -1;
        int c = *s | 0x20;
        if (*s >= '0' && *s <= '9')
            n = n * 16 + *s - '0';
        else if (c >= 'a' && c <= 'f')
            n = n * 16 + c - 'a' + 10;
        else
            return -1;
    }
    return n;
}

/* Behind a '\'. Half a surrogate pair is refused: RFC 8259 leaves it open, and no reader that
 * works with UTF-8 can give it back. */
static bool escape(parser *p)
{
    const unsigned char *s = p->at, *where;
    if (s == p->end)
        return bad(p, s, "");
    switch (*s) {
    case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
        p->at = s + 1;
        return true;
    case 'u':
        break;
    default:
        return bad(p, s, "unknown escape");
    }
    int n = hex4(s + 1, p->end, &where);
    if (n < 0)
        return bad(p, where, "four hexadecimal digits expected");
    p->at = s + 5;
    if (n < 0xd800 || n > 0xdfff)
        return true;
    if (n > 0xdbff)
        return bad(p, s - 1, "half a surrogate pair");
    if (p->end - p->at < 2 || p->at[0] != '\\' || p->at[1] != 'u')
        return bad(p, s - 1, "half a surrogate pair");
    n = hex4(p->at + 2, p->end, &where);
    if (n < 0xdc00 || n > 0xdfff)
        return bad(p, s - 1, "half a surrogate pair");
    p->at += 6;
    return true;
}

/* Behind the opening quote. */
static bool string(parser *p)
{
    const unsigned char *s = p->at;
    for (;;) {
        s = skip_plain(s, p->end);
        if (s == p->end)
            return bad(p, s, "");
        unsigned char c = *s;
        if (c == '"') {
            p->at = s + 1;
            return true;
        }
        if (c == '\\') {
            p->at = s + 1;
            if (!escape(p))
                return false;
            s = p->at;
        } else if (c < 0x20) {
            return bad(p, s, "control character in a string");
        } else {
            size_t len = utf8_len(s, p->end);
            if (!len)
                return bad(p, s, "invalid UTF-8");
            s += len;
        }
    }
}

static const unsigned char *digits(const unsigned char *s, const unsigned char *end)
{
    while (s < end && *s >= '0' && *s <= '9')
        s++;
    return s;
}

static bool number(parser *p)
{
    const unsigned char *s = p->at, *end = p->end, *from;
    if (*s == '-')
        s++;
    from = s;
    s = digits(s, end);
    if (s == from)
        return bad(p, s, "digit expected");
    if (*from == '0' && s - from > 1)
        return bad(p, from, "number with a leading zero");
    if (s < end && *s == '.') {
        from = ++s;
        s = digits(s, end);
        if (s == from)
            return bad(p, s, "digit expected");
    }
    if (s < end && (*s == 'e' || *s == 'E')) {
        s++;
        if (s < end && (*s == '+' || *s == '-'))
            s++;
        from = s;
        s = digits(s, end);
        if (s == from)
            return bad(p, s, "digit expected");
    }
    p->at = s;
    return true;
}

static bool word(parser *p, const char *text, size_t len)
{
    if ((size_t)(p->end - p->at) < len || memcmp(p->at, text, len))
        return bad(p, p->at, "value expected");
    p->at += len;
    return true;
}

static inline void skip_space(parser *p)
{
    const unsigned char *s = p->at;
    while (s < p->end && (*s == ' ' || *s == '\n' || *s == '\r' || *s == '\t'))
        s++;
    p->at = s;
}

/* A value that is neither object nor array. */
static bool scalar(parser *p)
{
    switch (*p->at) {
    case '"':
        p->at++;
        return string(p);
    case 't':
        return word(p, "true", 4);
    case 'f':
        return word(p, "false", 5);
    case 'n':
        return word(p, "null", 4);
    case '-': case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7':
    case '8': case '9':
        return number(p);
    default:
        return bad(p, p->at, "value expected");
    }
}

/* A name and its colon, in an object. */
static bool name(parser *p)
{
    skip_space(p);
    if (p->at == p->end || *p->at != '"')
        return bad(p, p->at, "name in quotes expected");
    p->at++;
    if (!string(p))
        return false;
    skip_space(p);
    if (p->at == p->end || *p->at != ':')
        return bad(p, p->at, "':' expected");
    p->at++;
    return true;
}

/* One value, down to its last bracket. */
static bool value(parser *p, int depth)
{
    uint64_t in_object[MAX_LEVELS / 64];    /* bit of level n: what is open there is an object */
    int      level = 0;
    if (depth > MAX_LEVELS)
        depth = MAX_LEVELS;
    for (;;) {
        skip_space(p);
        if (p->at == p->end)
            return bad(p, p->at, "");
        unsigned char c = *p->at;
        if (c == '{' || c == '[') {
            if (level >= depth)
                return bad(p, p->at, weir__json_too_deep);
            uint64_t bit = UINT64_C(1) << level % 64, *bits = &in_object[level / 64];
            if (level % 64 == 0)
                *bits = 0;
            *bits = c == '{' ? *bits | bit : *bits & ~bit;
            level++;
            p->at++;
            skip_space(p);
            if (p->at == p->end)
                return bad(p, p->at, "");
            if (*p->at != (c == '{' ? '}' : ']')) {
                if (c == '{' && !name(p))
                    return false;
                continue;
            }
            p->at++;
            level--;
        } else if (!scalar(p)) {
            return false;
        }
        /* A value has ended: close what ends with it, or go on behind a comma. */
        for (;;) {
            if (!level)
                return true;
            skip_space(p);
            bool object = in_object[(level - 1) / 64] >> (level - 1) % 64 & 1;
            if (p->at == p->end)
                return bad(p, p->at, "");
            c = *p->at;
            if (c == ',') {
                p->at++;
                if (object && !name(p))
                    return false;
                break;
            }
            if (c != (object ? '}' : ']'))
                return bad(p, p->at, object ? "',' or '}' expected" : "',' or ']' expected");
            p->at++;
            level--;
        }
    }
}

bool weir__json_valid(const char *text, size_t len, int depth, size_t *where, const char **why)
{
    const unsigned char *start = (const unsigned char *)text;
    parser               p = { .at = start, .end = start + len };
    bool                 ok = value(&p, depth);
    if (ok) {
        skip_space(&p);
        if (p.at != p.end) {
            ok = false;
            p.why = "more text behind the value";
        }
    }
    if (where)
        *where = ok ? 0 : (size_t)(p.at - start);
    if (why)
        *why = ok ? "" : p.why;
    return ok;
}

/* ---- taking apart what is valid ---- */

static const char *skip_blanks(const char *s, const char *end)
{
    while (s < end && (*s == ' ' || *s == '\n' || *s == '\r' || *s == '\t'))
        s++;
    return s;
}

/* The first '"' or '\\' from `s` on: as skip_plain(), but nothing else needs a look. */
static inline const char *to_mark(const char *s, const char *end)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones * 0x80;
    while (end - s >= 8) {
        uint64_t x = eight_bytes(s);
        uint64_t quote = x ^ ones * '"', slash = x ^ ones * '\\';
        uint64_t found = (((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & highs;
        if (found)
            return s + __builtin_ctzll(found) / 8;
        s += 8;
    }
    while (s < end && *s != '"' && *s != '\\')
        s++;
    return s;
}

static const char *skip_string(const char *s, const char *end)
{
    s = to_mark(s + 1, end);
    while (s < end && *s == '\\')
        s = to_mark(s + 2, end);
    return s + 1;
}

/* The bytes that stop a walk over the inside of an object or array. */
enum { PLAIN, QUOTE, OPEN, CLOSE };
static const unsigned char stops[256] = {
    ['"'] = QUOTE, ['{'] = OPEN, ['['] = OPEN, ['}'] = CLOSE, [']'] = CLOSE,
};

static const char *skip_brackets(const char *s, const char *end)
{
    for (size_t level = 0; s < end;) {
        switch (stops[(unsigned char)*s]) {
        case QUOTE:
            s = skip_string(s, end);
            continue;
        case OPEN:
            level++;
            break;
        case CLOSE:
            if (!--level)
                return s + 1;
            break;
        }
        s++;
    }
    return s;
}

static const char *skip_value(const char *s, const char *end)
{
    if (s < end && *s == '"')
        return skip_string(s, end);
    if (s < end && stops[(unsigned char)*s] == OPEN)
        return skip_brackets(s, end);
    while (s < end && *s > ' ' && *s != ',' && *s != '}' && *s != ']')
        s++;
    return s;
}

const char *weir__json_end(weir_json_piece value)
{
    return skip_value(value.text, value.text + value.len);
}

bool weir__json_open(weir_json_walk *w, weir_json_piece value)
{
    const char *s = skip_blanks(value.text, value.text + value.len);
    *w = (weir_json_walk){ .at = s, .end = value.text + value.len };
    if (s == w->end || (*s != '{' && *s != '['))
        return false;
    w->object = *s == '{';
    w->at++;
    return true;
}

bool weir__json_begin(weir_json_walk *w, weir_json_piece *name, weir_json_piece *value)
{
    const char *s = skip_blanks(w->at, w->end);
    if (s < w->end && *s == ',')
        s = skip_blanks(s + 1, w->end);
    *name = (weir_json_piece){ .text = s };
    if (s == w->end || *s == '}' || *s == ']')
        return false;
    if (w->object) {
        name->len = (size_t)(skip_string(s, w->end) - s);
        s = skip_blanks(s + name->len, w->end);
        s = skip_blanks(s + 1, w->end);          /* behind the ':' */
    }
    w->at = s;
    *value = (weir_json_piece){ s, (size_t)(w->end - s) };
    return true;
}

bool weir__json_next(weir_json_walk *w, weir_json_piece *name, weir_json_piece *value)
{
    if (!weir__json_begin(w, name, value))
        return false;
    w->at = weir__json_end(*value);
    value->len = (size_t)(w->at - value->text);
    return true;
}

/* A character as UTF-8. */
static char *put_utf8(char *to, unsigned c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *to++ = (char)(0xe0 | c >> 12);
        } else {
            *to++ = (char)(0xf0 | c >> 18);
            *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        }
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (c & 0x3f));
    return to;
}

/* The character behind a '\\', written to *to. Where it ends. */
static const unsigned char *unescape(const unsigned char *s, const unsigned char *end, char **to)
{
    static const char short_form[] = "b\bf\fn\nr\rt\t";
    const unsigned char *where;
    if (*s != 'u') {
        const char *f = short_form;
        while (*f && *f != (char)*s)
            f += 2;
        *(*to)++ = *f ? f[1] : (char)*s;
        return s + 1;
    }
    unsigned c = (unsigned)hex4(s + 1, end, &where);
    s += 5;
    if (c >= 0xd800 && c < 0xdc00) {            /* the other half is there: the text is valid */
        c = 0x10000 + ((c - 0xd800) << 10) + ((unsigned)hex4(s + 2, end, &where) - 0xdc00);
        s += 6;
    }
    *to = put_utf8(*to, c);
    return s;
}

bool weir__json_text(weir_json_piece string, char *to, size_t *len)
{
    const unsigned char *s = (const unsigned char *)string.text + 1, *end = s + string.len - 2;
    char                *at = to;
    bool                 zero = false;
    while (s < end) {
        const unsigned char *slash = memchr(s, '\\', (size_t)(end - s));
        size_t               plain = (size_t)((slash ? slash : end) - s);
        memcpy(at, s, plain);
        at += plain;
        s += plain;
        if (s < end) {
            char *from = at;
            s = unescape(s + 1, end, &at);
            zero = zero || !*from;
        }
    }
    *at = '\0';
    *len = (size_t)(at - to);
    return !zero;
}

bool weir__utf8_valid(const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text, *end = s + len;
    while (s < end) {
        size_t n = *s < 0x80 ? *s != 0 : utf8_len(s, end);
        if (!n)
            return false;
        s += n;
    }
    return true;
}

static void blank_out(char *from, const char *end, char c)
{
    while ((from = memchr(from, c, (size_t)(end - from))))
        *from++ = ' ';
}

void weir__json_line(weir_buf *out, const char *json, size_t len)
{
    size_t from = out->len;
    weir__buf_add(out, json, len);
    if (out->len == from)
        return;
    blank_out(out->data + from, out->data + out->len, '\n');
    blank_out(out->data + from, out->data + out->len, '\r');
}

static void escaped(weir_buf *out, unsigned char c)
{
    static const char short_form[] = "\bb\ff\nn\rr\tt\"\"\\\\";
    for (const char *f = short_form; *f; f += 2) {
        if ((unsigned char)f[0] == c) {
            char pair[2] = { '\\', f[1] };
            weir__buf_add(out, pair, 2);
            return;
        }
    }
    weir__buf_printf(out, "\\u%04x", c);
}

void weir__json_string(weir_buf *out, const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text, *end = s + len, *from = s;
    weir__buf_char(out, '"');
    while (s < end) {
        s = skip_plain(s, end);
        if (s == end)
            break;
        size_t n = *s < 0x80 ? 1 : utf8_len(s, end);
        if (n > 1) {
            s += n;
            continue;
        }
        weir__buf_add(out, from, (size_t)(s - from));
        if (n)
            escaped(out, *s);
        else
            weir__buf_str(out, "\xef\xbf\xbd");     /* U+FFFD */
        from = ++s;
    }
    weir__buf_add(out, from, (size_t)(s - from));
    weir__buf_char(out, '"');
}

void weir__json_text_or_null(weir_buf *out, const char *text)
{
    if (text)
        weir__json_string(out, text, strlen(text));
    else
        weir__buf_str(out, "null");
}
