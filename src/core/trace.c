/* trace.c - the W3C trace context. See trace.h. */
#include "core/trace.h"

#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/json.h"

/* Where the parts of a traceparent are: "00-TRACE-SPAN-FLAGS". */
enum { TRACE_AT = 3, SPAN_AT = 36, FLAGS_AT = 53, SAMPLED = 1 };

/* Upper case is not allowed. */
static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* False: it is not hexadecimal. */
static bool read_hex(uint8_t *out, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static void write_hex(char *out, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
    uint8_t any = 0;
    for (size_t i = 0; i < n; i++)
        any |= bytes[i];
    return !any;
}

bool weir__trace_parse(weir_trace *out, const char *text, size_t len)
{
    uint8_t version, flags;
    *out = (weir_trace){ 0 };
    if (len < WEIR_TRACEPARENT_LEN || text[TRACE_AT - 1] != '-' || text[SPAN_AT - 1] != '-' ||
        text[FLAGS_AT - 1] != '-' || !read_hex(&version, 1, text) || version == 0xff)
        return false;
    if (len > WEIR_TRACEPARENT_LEN && (version == 0 || text[WEIR_TRACEPARENT_LEN] != '-'))
        return false;
    weir_trace t;
    if (!read_hex(t.trace, sizeof t.trace, text + TRACE_AT) || is_zero(t.trace, sizeof t.trace) ||
        !read_hex(t.span, sizeof t.span, text + SPAN_AT) || is_zero(t.span, sizeof t.span) ||
        !read_hex(&flags, 1, text + FLAGS_AT))
        return false;
    t.sampled = flags & SAMPLED;
    *out = t;
    return true;
}

void weir__trace_format(const weir_trace *t, char out[WEIR_TRACEPARENT_LEN + 1])
{
    memcpy(out, "00-", TRACE_AT);
    write_hex(out + TRACE_AT, t->trace, sizeof t->trace);
    out[SPAN_AT - 1] = '-';
    write_hex(out + SPAN_AT, t->span, sizeof t->span);
    memcpy(out + FLAGS_AT - 1, t->sampled ? "-01" : "-00", 4);
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Random bytes that are not all 0. Without a generator, the clock must do: ids need no secrecy. */
static void fill(uint8_t *out, size_t n)
{
    while (getrandom(out, n, 0) != (ssize_t)n || is_zero(out, n)) {
        uint64_t x = mix((uint64_t)weir__monotonic_ns()) | 1;
        for (size_t i = 0; i < n; i++)
            out[i] = (uint8_t)(x >> 8 * (i % 8));
        return;
    }
}

weir_trace weir__trace_new(const weir_trace *parent)
{
    weir_trace t = *parent;
    if (!weir__trace_is_set(parent)) {
        fill(t.trace, sizeof t.trace);
        t.sampled = true;
    }
    fill(t.span, sizeof t.span);
    return t;
}

bool weir__trace_of_values(weir_trace *out, const char *values, size_t len)
{
    static const char name[] = "\"" WEIR_TRACEPARENT "\"";
    weir_json_walk  w;
    weir_json_piece key, value;
    *out = (weir_trace){ 0 };
    if (!values || !weir__json_open(&w, (weir_json_piece){ values, len }))
        return false;
    while (weir__json_next(&w, &key, &value))
        if (key.len == sizeof name - 1 && memcmp(key.text, name, key.len) == 0)
            return value.len > 2 && weir__trace_parse(out, value.text + 1, value.len - 2);
    return false;
}

weir_trace weir__trace_of_execution(const weir_trace *parent, uint64_t id, uint32_t delivery)
{
    weir_trace t = *parent;
    uint64_t   seed = 0;
    for (size_t i = 0; i < sizeof t.span; i++)
        seed = seed << 8 | parent->span[i];
    uint64_t x = mix(mix(seed ^ mix(id)) + delivery);
    if (!x)
        x = 1;
    for (size_t i = 0; i < sizeof t.span; i++)
        t.span[i] = (uint8_t)(x >> 8 * i);
    return t;
}
