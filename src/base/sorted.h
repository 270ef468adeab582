/* sorted.h - arrays in an order. */
#ifndef WEIR_BASE_SORTED_H
#define WEIR_BASE_SORTED_H

#include <stddef.h>

/* As for bsearch(): below 0 when the key comes before the element. */
typedef int weir_compare_fn(const void *key, const void *element);

/* The place of the first element that does not come before the key; n: all of them do. */
size_t weir__sorted_place(const void *key, const void *array, size_t n, size_t size,
                          weir_compare_fn *compare);

#endif
