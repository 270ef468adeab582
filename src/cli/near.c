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

const char *near_synonym(const char *typed)
{
    static const struct { const char *typed, *ours; } table[] = {
        { "ls", "list" },     { "delete", "rm" }, { "remove", "rm" },  { "del", "rm" },
        { "show", "get" },    { "cat", "get" },   { "ps", "workers" }, { "push", "add" },
        { "enqueue", "add" }, { "run", "work" },  { "info", "status" }
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].typed, typed) == 0)
            return table[i].ours;
    return NULL;
}

const char *near_words(char *out, size_t size, const char *typed, const char *words)
{
    char list[256], *rest = NULL;
    weir_near guess = { .typed = typed };
    snprintf(list, sizeof list, "%s", words);
    const char *synonym = near_synonym(typed), *meant = NULL;
    for (char *w = strtok_r(list, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
        weir__near_try(&guess, w);
        if (synonym && strcmp(w, synonym) == 0)
            meant = w;
    }
    if (meant)
        guess.best = meant;
    return near_hint(out, size, &guess, "");
}
