/* map.h - a hash table from a non-zero 64-bit key to a pointer. {0} is empty. Not thread-safe. */
#ifndef WEIR_BASE_MAP_H
#define WEIR_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct weir_map {
    struct weir_map_slot *slot;
    size_t                n, cap, used;   /* used: with those removed */
} weir_map;

void  weir__map_fini(weir_map *m);                             /* not what the pointers point at */
void *weir__map_get(const weir_map *m, uint64_t key);          /* NULL: not there */
bool  weir__map_put(weir_map *m, uint64_t key, void *value);   /* replaces; false: out of memory */
void *weir__map_remove(weir_map *m, uint64_t key);             /* what was there, or NULL */
/* Walk: start with *pos = 0; false at the end. Removing the entry just seen is fine. */
bool  weir__map_next(const weir_map *m, size_t *pos, uint64_t *key, void **value);

#endif
