/* crc32c.c - CRC-32C: by the instruction of the machine where it has one, else by tables. */
#include "base/crc32c.h"

#include <pthread.h>
#include <string.h>

enum { SLICES = 8 };

static uint32_t       table[SLICES][256];   /* [k][b]: byte b with k zero bytes behind it */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_table(void)
{
    const uint32_t polynomial = 0x82f63b78;  /* reflected */
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ polynomial : crc >> 1;
        table[0][b] = crc;
    }
    for (int k = 1; k < SLICES; k++)
        for (int b = 0; b < 256; b++)
            table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 0xff];
}

static uint32_t slow_word(uint32_t crc, uint64_t word)
{
    word ^= crc;
    crc = 0;
    for (int k = 0; k < SLICES; k++, word >>= 8)
        crc ^= table[SLICES - 1 - k][word & 0xff];
    return crc;
}

uint32_t weir__crc32c_slow(uint32_t crc, const void *bytes, size_t n)
{
    pthread_once(&once, make_table);
    for (const unsigned char *p = bytes; n > 0; n--)
        crc = crc >> 8 ^ table[0][(crc ^ *p++) & 0xff];
    return crc;
}

static uint32_t slow_words(uint32_t crc, const uint64_t *words, size_t n)
{
    pthread_once(&once, make_table);
    while (n-- > 0)
        crc = slow_word(crc, *words++);
    return crc;
}

#if defined(__x86_64__)

#define FAST __attribute__((target("sse4.2")))

static int has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}

FAST static uint32_t fast_words(uint32_t crc, const uint64_t *words, size_t n)
{
    uint64_t c = crc;
    while (n-- > 0)
        c = __builtin_ia32_crc32di(c, *words++);
    return (uint32_t)c;
}

FAST static uint32_t fast(uint32_t crc, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint64_t             c = crc, word;
    for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        c = __builtin_ia32_crc32di(c, word);
    }
    for (; n > 0; n--)
        c = __builtin_ia32_crc32qi((uint32_t)c, *p++);
    return (uint32_t)c;
}

#else

static int has_instruction(void)
{
    return 0;
}

#define fast       weir__crc32c_slow
#define fast_words slow_words

#endif

uint32_t weir__crc32c(uint32_t crc, const void *bytes, size_t n)
{
    return has_instruction() ? fast(crc, bytes, n) : weir__crc32c_slow(crc, bytes, n);
}

uint32_t weir__crc32c_words(uint32_t crc, const uint64_t *words, size_t n)
{
    return has_instruction() ? fast_words(crc, words, n) : slow_words(crc, words, n);
}
