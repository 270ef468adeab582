/* sorted.c - see sorted.h. */
#include "base/sorted.h"

size_t weir__sorted_place(const void *key, const void *array, size_t n, size_t size,
                          weir_compare_fn *compare)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(key, (const char *)array + middle * size) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
