/* near.c - see near.h. */
#include "cli/near.h"

#include <stdio.h>
#include <string.h>

const char *near_hint(char *out, size_t size, const weir_near *n, const char *before)
{
    *out = 0;
    if (n->best)
        snprintf(out, size, "; did you mean '%s%s'?", before, n->best);
    return out;
}

const char *near_words(char *out, size_t size, const char *typed, const char *words)
{
    char list[256], *rest = NULL;
    weir_near guess = { .typed = typed };
    snprintf(list, sizeof list, "%s", words);
    for (char *w = strtok_r(list, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
        weir__near_try(&guess, w);
    return near_hint(out, size, &guess, "");
}
