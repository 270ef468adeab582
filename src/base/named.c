/* named.c - things found by their name. Those with the same hash, which hardly ever are two, hang
 * on one another. */
#include "base/named.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_of(const char *name)
{
    uint64_t h = UINT64_C(14695981039346656037);        /* FNV-1a */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return h ? h : 1;
}

void weir__names_fini(weir_names *m)
{
    weir__map_fini(m);
}

void *weir__names_get(const weir_names *m, const char *name)
{
    weir_named *t = weir__map_get(m, hash_of(name));
    while (t && strcmp(t->name, name) != 0)
        t = t->same_hash;
    return t;
}

bool weir__names_put(weir_names *m, weir_named *thing, const char *name)
{
    uint64_t hash = hash_of(name);
    *thing = (weir_named){ .same_hash = weir__map_get(m, hash), .hash = hash, .name = name };
    return weir__map_put(m, hash, thing);
}

void *weir__named_new(size_t size, size_t offset, const char *name)
{
    size_t len = strlen(name) + 1;
    char  *thing = calloc(1, size + len);
    if (thing)
        memcpy(thing + offset, name, len);
    return thing;
}

void *weir__names_add(weir_names *m, size_t size, size_t offset, const char *name)
{
    char *thing = weir__named_new(size, offset, name);
    if (thing && weir__names_put(m, (weir_named *)thing, thing + offset))
        return thing;
    free(thing);
    return NULL;
}

void weir__names_remove(weir_names *m, weir_named *thing)
{
    weir_named *first = weir__map_get(m, thing->hash);
    if (first != thing) {
        while (first->same_hash != thing)
            first = first->same_hash;
        first->same_hash = thing->same_hash;
    } else if (thing->same_hash) {
        weir__map_put(m, thing->hash, thing->same_hash);       /* replaces: needs no memory */
    } else {
        weir__map_remove(m, thing->hash);
    }
}

void *weir__names_next(const weir_names *m, size_t *pos, void *at)
{
    weir_named *t = at;
    uint64_t    hash;
    void       *value = NULL;
    if (t && t->same_hash)
        return t->same_hash;
    return weir__map_next(m, pos, &hash, &value) ? value : NULL;
}
