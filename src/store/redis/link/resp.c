/* resp.c - commands as Redis reads them, the slot of a key, and what a call owns. */
#include "store/redis/link/link.h"

#include <stdio.h>
#include <string.h>
#include "store/redis/link/sha1.h"

/* ---- commands ---- */

/* "*12\r\n", "$12\r\n": the length is written from its end, as this is where time goes. */
static void head(weir_buf *b, char sign, size_t n)
{
    char  text[24];
    char *p = text + sizeof text;
    *--p = '\n';
    *--p = '\r';
    do {
        *--p = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    *--p = sign;
    weir__buf_add(b, p, (size_t)(text + sizeof text - p));
}

void weir__resp_array(weir_buf *b, size_t n)
{
    head(b, '*', n);
}

void weir__resp_bytes(weir_buf *b, const void *data, size_t len)
{
    head(b, '$', len);
    weir__buf_add(b, data, len);
    weir__buf_add(b, "\r\n", 2);
}

void weir__resp_text(weir_buf *b, const char *text)
{
    weir__resp_bytes(b, text, strlen(text));
}

void weir__resp_parts(weir_buf *b, const void *first, size_t first_len, const void *data,
                      size_t len)
{
    head(b, '$', first_len + len);
    weir__buf_add(b, first, first_len);
    weir__buf_add(b, data, len);
    weir__buf_add(b, "\r\n", 2);
}

enum { COUNT_DIGITS = 8 };              /* always as many, so that it can be written later */

size_t weir__resp_room(weir_buf *b)
{
    weir__resp_bytes(b, "00000000", COUNT_DIGITS);
    return b->len - COUNT_DIGITS - 2;
}

void weir__resp_count(weir_buf *b, size_t at, size_t n)
{
    if (b->failed)
        return;
    for (int i = COUNT_DIGITS - 1; i >= 0; i--, n /= 10)
        b->data[at + (size_t)i] = (char)('0' + n % 10);
}

void weir__resp_int(weir_buf *b, int64_t n)
{
    char     text[24];
    char    *p = text + sizeof text;
    uint64_t rest = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    do {
        *--p = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (n < 0)
        *--p = '-';
    weir__resp_bytes(b, p, (size_t)(text + sizeof text - p));
}

void weir__call_reset(redis_call *c)
{
    if (c->reply)
        freeReplyObject(c->reply);
    c->reply = NULL;
    weir__buf_clear(&c->command);
    c->err.code = WEIR_OK;
    c->err.msg[0] = '\0';
}

void weir__call_fini(redis_call *c)
{
    weir__call_reset(c);
    weir__buf_fini(&c->command);
}

void weir__library_init(redis_library *l)
{
    char sha[41];
    weir__sha1_hex(l->source, l->len, sha);
    snprintf(l->name, sizeof l->name, "weir_%s_%.12s", l->label, sha);
    snprintf(l->head, sizeof l->head, "#!lua name=%s\nlocal NAME = '%s'\n", l->name, l->name);
}

/* ---- slots ---- */

/* CRC-16 of the XMODEM kind (polynomial 1021 hex, start 0), bit by bit: keys are short, and each
 * one is looked at once. */
static uint32_t crc16(const char *data, size_t len)
{
    uint32_t crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc ^= (uint32_t)(unsigned char)data[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x8000 ? (crc << 1 ^ 0x1021) : crc << 1;
    }
    return crc & 0xffff;
}

uint32_t weir__redis_slot(const char *key, size_t len)
{
    const char *open = memchr(key, '{', len);
    if (open) {
        const char *tag = open + 1;
        const char *close = memchr(tag, '}', len - (size_t)(tag - key));
        if (close && close > tag)
            return crc16(tag, (size_t)(close - tag)) % WEIR_REDIS_SLOTS;
    }
    return crc16(key, len) % WEIR_REDIS_SLOTS;
}
