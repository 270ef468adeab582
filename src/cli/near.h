/* near.h - "did you mean" in the words of the command line: see base/near.h. */
#ifndef WEIR_CLI_NEAR_H
#define WEIR_CLI_NEAR_H

#include "base/near.h"

/* "; did you mean '--state'?", or "" if no word is near. `before` stands in front of the word. The
 * answer is `out`. */
const char *near_hint(char *out, size_t size, const weir_near *n, const char *before);

/* The command or action that other programs have under this name: "list" for "ls"; NULL: none. */
const char *near_synonym(const char *typed);

/* The same for a list of words with blanks between them. */
const char *near_words(char *out, size_t size, const char *typed, const char *words);

#endif
