/* hidden.c - characters that nobody sees: controls, marks that turn the direction of writing, and
 * others that take no room. A name with one of them looks like another name. */
#include "core/job.h"

/* Control characters, line and paragraph separators, and what Unicode calls "default ignorable":
 * first and last, in order. */
static const struct {
    uint32_t first, last;
} ranges[] = {
    { 0x0000, 0x001f },   { 0x007f, 0x009f },   { 0x00ad, 0x00ad },   { 0x034f, 0x034f },
    { 0x061c, 0x061c },   { 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },
    { 0x200b, 0x200f },   { 0x2028, 0x202e },   { 0x2060, 0x206f },   { 0x3164, 0x3164 },
    { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },   { 0xfff0, 0xfffb },
    { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
};

bool weir_is_hidden(uint32_t code_point)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code_point <= ranges[i].last)
            return code_point >= ranges[i].first;
    return false;
}

/* The character at valid UTF-8. */
static uint32_t decode(const unsigned char *s, size_t *len)
{
    *len = *s < 0x80 ? 1 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : 4;
    uint32_t c = *len == 1 ? *s : *s & (0xffu >> (*len + 1));
    for (size_t i = 1; i < *len; i++)
        c = c << 6 | (s[i] & 0x3f);
    return c;
}

bool weir__has_hidden(const char *text, size_t len, size_t *at, uint32_t *code_point)
{
    size_t n;
    for (*at = 0; *at < len; *at += n) {
        unsigned char c = (unsigned char)text[*at];
        if (c >= 0x20 && c < 0x7f) {            /* nearly all are, and none of these is hidden */
            n = 1;
            continue;
        }
        *code_point = decode((const unsigned char *)text + *at, &n);
        if (weir_is_hidden(*code_point))
            return true;
    }
    return false;
}
