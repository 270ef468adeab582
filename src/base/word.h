/* word.h - the words of an enum that is made from a list of X(ID, "word"). */
#ifndef WEIR_BASE_WORD_H
#define WEIR_BASE_WORD_H

#define WEIR__WORD_OF(id, word) word,

/* The word of number `n`, or `other` if the enum does not have it. */
#define WEIR__WORD(list, count, n, other) \
    ((unsigned)(n) < (count) ? ((const char *const[]){ list(WEIR__WORD_OF) })[n] : (other))

#endif
