/* sha1.c - SHA-1 as FIPS 180-4 describes it. */
#include "store/redis/link/sha1.h"

#include <stdint.h>
#include <string.h>

enum { BLOCK = 64 };

static uint32_t turn(uint32_t x, int bits)
{
    return x << bits | x >> (32 - bits);
}

static uint32_t mix(int round, uint32_t b, uint32_t c, uint32_t d)
{
    switch (round / 20) {
    case 0:
        return ((b & c) | (~b & d)) + 0x5a827999;
    case 1:
        return (b ^ c ^ d) + 0x6ed9eba1;
    case 2:
        return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    default:
        return (b ^ c ^ d) + 0xca62c1d6;
    }
}

static void take_block(uint32_t h[5], const unsigned char *p)
{
    uint32_t w[80];
    for (int i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int i = 16; i < 80; i++)
        w[i] = turn(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);

    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 80; i++) {
        uint32_t next = turn(a, 5) + mix(i, b, c, d) + e + w[i];
        e = d;
        d = c;
        c = turn(b, 30);
        b = a;
        a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void weir__sha1_hex(const void *data, size_t len, char out[41])
{
    uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
    const unsigned char *p = data;
    size_t left = len;
    for (; left >= BLOCK; left -= BLOCK, p += BLOCK)
        take_block(h, p);

    /* The rest, a 1 bit, zeros, and the length in bits at the end of the last block. */
    unsigned char last[2 * BLOCK] = { 0 };
    size_t        total = left + 9 > BLOCK ? 2 * BLOCK : BLOCK;
    if (left)
        memcpy(last, p, left);
    last[left] = 0x80;
    uint64_t bits = (uint64_t)len * 8;
    for (int i = 0; i < 8; i++)
        last[total - 1 - (size_t)i] = (unsigned char)(bits >> (8 * i));
    for (size_t at = 0; at < total; at += BLOCK)
        take_block(h, last + at);

    for (int i = 0; i < 40; i++)
        out[i] = "0123456789abcdef"[h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    out[40] = '\0';
}
