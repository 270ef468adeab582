/* copy.h - deep copies of what an operation borrows, made into one block.
 *
 * The copy function of an operation walks over its members twice. First the copier has no block and
 * only adds up what the copies take; then each member is copied and pointed at its copy. While the
 * copier counts, nothing but the operation itself is written to. */
#ifndef WEIR_OP_COPY_H
#define WEIR_OP_COPY_H

#include "op/op.h"

struct weir_copier {
    char  *block;       /* NULL: only count */
    size_t used;
};

/* Room for something that is filled in elsewhere; NULL while counting. */
void *weir__copy_room(weir_copier *c, size_t size);

/* A copy of an array, whose members may then be pointed at copies of theirs. While counting, the
 * array itself, which must not be written to. */
void *weir__copy_array(weir_copier *c, const void *from, size_t size);

void weir__copy_bytes(weir_copier *c, const char **member, size_t n);
void weir__copy_text(weir_copier *c, const char **member);

/* Bytes with a length, or with length 0 a text. */
void weir__copy_either(weir_copier *c, const char **member, size_t n);

#endif
