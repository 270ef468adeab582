/* near.c - see near.h. The distance is Damerau's: a letter more, less or other, or two swapped. */
#include "base/near.h"

#include <string.h>

enum { LONGEST = 64 };

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t row[3][LONGEST + 1];         /* of i - 2, i - 1 and i, in turn */
    for (size_t j = 0; j <= m; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            now[j] = last[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = least_of(now[j], least_of(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least_of(now[j], before[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

void weir__near_try(weir_near *guess, const char *word)
{
    size_t n = strlen(guess->typed), m = strlen(word);
    if (n == 0 || n > LONGEST || m > LONGEST)
        return;
    size_t d = distance(guess->typed, n, word, m);
    if (n >= 2 && m > n && memcmp(guess->typed, word, n) == 0)
        d = least_of(d, WEIR_NEAR_MAX);
    else if (d > WEIR_NEAR_MAX || 2 * d > n)
        return;
    if (!guess->best || d < guess->least) {
        guess->best = word;
        guess->least = d;
    }
}
