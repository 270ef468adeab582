/* crc32c.h - checksums of what is kept (CRC-32C, Castagnoli). Any thread. */
#ifndef WEIR_BASE_CRC32C_H
#define WEIR_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Go on with `crc` (any number to start with) over n bytes. Numbers that differ in up to 32 bits
 * next to each other never have the same checksum. There is no final inversion. */
uint32_t weir__crc32c(uint32_t crc, const void *bytes, size_t n);
/* The same over whole words, each as 8 bytes with the lowest first. */
uint32_t weir__crc32c_words(uint32_t crc, const uint64_t *words, size_t n);

/* The same with tables, as on machines without the instruction: for tests. */
uint32_t weir__crc32c_slow(uint32_t crc, const void *bytes, size_t n);

#endif
