/* grow.c - see grow.h. */
#include "base/grow.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 16 };

bool weir__grow(void *array, size_t *cap, size_t n, size_t size)
{
    void  *old, *more;
    size_t want = *cap > n / 2 ? 2 * *cap : n;
    if (n <= *cap)
        return true;
    if (want < FIRST_CAP)
        want = FIRST_CAP;
    if (want > SIZE_MAX / size)
        return false;
    memcpy(&old, array, sizeof old);        /* a pointer of any type */
    more = realloc(old, want * size);
    if (!more)
        return false;
    memcpy(array, &more, sizeof more);
    *cap = want;
    return true;
}
