/* grow.h - arrays that grow. */
#ifndef WEIR_BASE_GROW_H
#define WEIR_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>

/* Room for at least n elements of `size` bytes. The pointer at `array` (NULL: none yet) leads to
 * the array, which has room for *cap: it at least doubles. False: out of memory; nothing has
 * changed. */
bool weir__grow(void *array, size_t *cap, size_t n, size_t size);

#endif
