/* near.h - "did you mean": the word of a list that is nearest to what was written. Pure.
 *
 *     weir_near guess = { .typed = "mial" };
 *     weir__near_try(&guess, "mail");             for each word; then guess.best is "mail"
 */
#ifndef WEIR_BASE_NEAR_H
#define WEIR_BASE_NEAR_H

#include <stddef.h>

typedef struct weir_near {
    const char *typed;
    const char *best;       /* the nearest word so far; NULL: none is near. Borrowed */
    size_t      least;      /* its distance */
} weir_near;

/* Is `word` nearer than those before? It is near if at most WEIR_NEAR_MAX letters differ, and fewer
 * than half of what was typed; or if it begins with what was typed. */
enum { WEIR_NEAR_MAX = 2 };
void weir__near_try(weir_near *n, const char *word);

#endif
