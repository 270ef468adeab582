/* named.h - things found by their name: a hash table whose nodes are part of the things. {0} is an
 * empty one. Not thread-safe. */
#ifndef WEIR_BASE_NAMED_H
#define WEIR_BASE_NAMED_H

#include <stddef.h>

#include "base/map.h"

/* First member of the thing. The name is the thing's own, and must stay as long as it is in. */
typedef struct weir_named {
    struct weir_named *same_hash;
    uint64_t           hash;
    const char        *name;
} weir_named;

typedef weir_map weir_names;

/* A new thing, all zero but for its last member, char name[]: a copy of `text`. It is freed with
 * free(). NULL: out of memory. The first member need not be a weir_named. */
#define WEIR__NAMED_NEW(type, text) \
    ((type *)weir__named_new(sizeof(type), offsetof(type, name), text))
void *weir__named_new(size_t size, size_t offset, const char *name);

/* The same, and put into the table, which has no such name yet. */
#define WEIR__NAMES_ADD(names, type, text) \
    ((type *)weir__names_add(names, sizeof(type), offsetof(type, name), text))
void *weir__names_add(weir_names *m, size_t size, size_t offset, const char *name);

void  weir__names_fini(weir_names *m);                          /* not the things */
void *weir__names_get(const weir_names *m, const char *name);   /* NULL: not there */
/* An entry with a new name. False: out of memory. */
bool  weir__names_put(weir_names *m, weir_named *thing, const char *name);
void  weir__names_remove(weir_names *m, weir_named *thing);
/* Walk: start with *pos = 0 and *at = NULL; NULL at the end. Nothing may be put or removed. */
void *weir__names_next(const weir_names *m, size_t *pos, void *at);

#endif
