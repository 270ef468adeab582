/* msgpack.c - see msgpack.h. */
#include "store/redis/link/msgpack.h"

#include <string.h>

/* ---- writing ---- */

/* A byte that says what follows, and n in the given number of bytes, the highest first. */
static void put(weir_buf *b, int tag, uint64_t n, int bytes)
{
    char out[9] = { (char)tag };
    for (int i = bytes; i > 0; i--, n >>= 8)
        out[i] = (char)(n & 0xff);
    weir__buf_add(b, out, (size_t)bytes + 1);
}

void weir__mp_array(weir_buf *b, size_t n)
{
    if (n <= 15)
        put(b, 0x90 | (int)n, 0, 0);
    else if (n <= UINT16_MAX)
        put(b, 0xdc, n, 2);
    else
        put(b, 0xdd, n, 4);
}

static void put_negative(weir_buf *b, int64_t n)
{
    if (n >= -32)
        put(b, (int)(n & 0xff), 0, 0);
    else if (n >= INT8_MIN)
        put(b, 0xd0, (uint64_t)n, 1);
    else if (n >= INT16_MIN)
        put(b, 0xd1, (uint64_t)n, 2);
    else if (n >= INT32_MIN)
        put(b, 0xd2, (uint64_t)n, 4);
    else
        put(b, 0xd3, (uint64_t)n, 8);
}

void weir__mp_int(weir_buf *b, int64_t n)
{
    if (n < 0)
        put_negative(b, n);
    else if (n <= 127)
        put(b, (int)n, 0, 0);
    else if (n <= UINT8_MAX)
        put(b, 0xcc, (uint64_t)n, 1);
    else if (n <= UINT16_MAX)
        put(b, 0xcd, (uint64_t)n, 2);
    else if (n <= UINT32_MAX)
        put(b, 0xce, (uint64_t)n, 4);
    else
        put(b, 0xcf, (uint64_t)n, 8);
}

void weir__mp_text(weir_buf *b, const char *text, size_t len)
{
    if (!text) {
        put(b, 0xc2, 0, 0);
        return;
    }
    if (len < 32)
        put(b, 0xa0 | (int)len, 0, 0);
    else if (len <= UINT8_MAX)
        put(b, 0xd9, len, 1);
    else if (len <= UINT16_MAX)
        put(b, 0xda, len, 2);
    else
        put(b, 0xdb, len, 4);
    weir__buf_add(b, text, len);
}

/* ---- reading ---- */

mp_reader weir__mp_reader(const char *bytes, size_t len)
{
    const unsigned char *at = (const unsigned char *)bytes;
    return (mp_reader){ at, at + len, false };
}

static uint64_t take(mp_reader *r, size_t bytes)
{
    uint64_t n = 0;
    if (r->bad || (size_t)(r->end - r->at) < bytes) {
        r->bad = true;
        return 0;
    }
    for (; bytes > 0; bytes--)
        n = n << 8 | *r->at++;
    return n;
}

static int64_t wrong(mp_reader *r)
{
    r->bad = true;
    return 0;
}

size_t weir__mp_read_array(mp_reader *r)
{
    unsigned tag = (unsigned)take(r, 1);
    if (!r->bad && (tag & 0xf0) == 0x90)
        return tag & 0x0f;
    if (tag == 0xdc || tag == 0xdd)
        return (size_t)take(r, tag == 0xdc ? 2 : 4);
    return (size_t)wrong(r);
}

/* Lua has only doubles: a whole number may come as a double. */
static int64_t from_double(mp_reader *r)
{
    uint64_t bits = take(r, 8);
    double   d;
    memcpy(&d, &bits, sizeof d);
    if (!(d >= -9007199254740992.0 && d <= 9007199254740992.0) || d != (double)(int64_t)d)
        return wrong(r);
    return (int64_t)d;
}

int64_t weir__mp_read_int(mp_reader *r)
{
    unsigned tag = (unsigned)take(r, 1);
    if (r->bad || tag <= 0x7f)
        return (int64_t)tag;
    if (tag >= 0xe0)
        return (int64_t)tag - 256;
    switch (tag) {
    case 0xc2: return 0;                                /* false */
    case 0xc3: return 1;
    case 0xcb: return from_double(r);
    case 0xcc: return (int64_t)take(r, 1);
    case 0xcd: return (int64_t)take(r, 2);
    case 0xce: return (int64_t)take(r, 4);
    case 0xcf: return (int64_t)take(r, 8);
    case 0xd0: return (int8_t)take(r, 1);
    case 0xd1: return (int16_t)take(r, 2);
    case 0xd2: return (int32_t)take(r, 4);
    case 0xd3: return (int64_t)take(r, 8);
    default:   return wrong(r);
    }
}

bool weir__mp_is_text(const mp_reader *r)
{
    return r->at < r->end && ((*r->at & 0xe0) == 0xa0 || (*r->at >= 0xd9 && *r->at <= 0xdb));
}

mp_slice weir__mp_read_text(mp_reader *r)
{
    unsigned tag = (unsigned)take(r, 1);
    size_t   len = 0;
    if (r->bad || tag == 0xc0 || tag == 0xc2)
        return (mp_slice){ NULL, 0 };
    if ((tag & 0xe0) == 0xa0)
        len = tag & 0x1f;
    else if (tag >= 0xd9 && tag <= 0xdb)
        len = (size_t)take(r, (size_t)1 << (tag - 0xd9));
    else
        r->bad = true;
    if (r->bad || (size_t)(r->end - r->at) < len) {
        r->bad = true;
        return (mp_slice){ NULL, 0 };
    }
    const char *at = (const char *)r->at;
    r->at += len;
    return (mp_slice){ at, len };
}
