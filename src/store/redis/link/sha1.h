/* sha1.h - SHA-1, by which a library of functions is named. Not for secrets. */
#ifndef WEIR_STORE_REDIS_SHA1_H
#define WEIR_STORE_REDIS_SHA1_H

#include <stddef.h>

/* 40 lower-case hex digits and a NUL. */
void weir__sha1_hex(const void *data, size_t len, char out[41]);

#endif
