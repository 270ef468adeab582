/* near.h - "did you mean": the word of a list that is nearest to what was typed.
 *
 *     near guess = { .typed = "mial" };
 *     near_try(&guess, "mail");
 *     near_hint(text, sizeof text, &guess, "");        ; did you mean 'mail'?
 */
#ifndef WEIR_CLI_NEAR_H
#define WEIR_CLI_NEAR_H

#include <stddef.h>

typedef struct near {
    const char *typed;
    const char *best;       /* the nearest word so far; NULL: none is near. Borrowed */
    size_t      least;      /* its distance */
} near;

/* Is `word` nearer than those before? It is near if at most NEAR_MAX letters differ, and fewer than
 * half of what was typed; or if it begins with what was typed. */
enum { NEAR_MAX = 2 };
void near_try(near *n, const char *word);

/* "; did you mean '--state'?", or "" if no word is near. `before` stands in front of the word. The
 * answer is `out`. */
const char *near_hint(char *out, size_t size, const near *n, const char *before);

/* The same for a list of words with blanks between them. */
const char *near_words(char *out, size_t size, const char *typed, const char *words);

#endif
