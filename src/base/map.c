/* map.c - a hash table from a non-zero 64-bit key to a pointer.
 *
 * Open addressing with linear probing; the capacity is a power of two and at most three quarters
 * of the slots are in use. A slot is empty (key 0, value NULL), removed (key 0, value &removed) or
 * full. Removed slots are marked and entries not shifted back, because a walk may remove the entry
 * that it has just seen. A removed slot in front of an empty one becomes empty at once, so few
 * remain. */
#include "base/map.h"

#include <assert.h>
#include <stdlib.h>

struct weir_map_slot {
    uint64_t key;
    void    *value;
};

enum { FIRST_CAP = 16 };

static char removed;

static size_t place(uint64_t key, size_t cap)
{
    key ^= key >> 32;
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(key ^ key >> 29) & (cap - 1);
}

/* The slot of `key`, or NULL. */
static struct weir_map_slot *find(const weir_map *m, uint64_t key)
{
    if (!m->cap || !key)
        return NULL;
    for (size_t i = place(key, m->cap);; i = (i + 1) & (m->cap - 1)) {
        struct weir_map_slot *s = &m->slot[i];
        if (s->key == key)
            return s;
        if (!s->key && !s->value)
            return NULL;
    }
}

void weir__map_fini(weir_map *m)
{
    free(m->slot);
    *m = (weir_map){ 0 };
}

void *weir__map_get(const weir_map *m, uint64_t key)
{
    struct weir_map_slot *s = find(m, key);
    return s ? s->value : NULL;
}

static bool resize(weir_map *m, size_t cap)
{
    struct weir_map_slot *slot = calloc(cap, sizeof *slot);
    if (!slot)
        return false;
    for (size_t i = 0; i < m->cap; i++) {
        if (!m->slot[i].key)
            continue;
        size_t to = place(m->slot[i].key, cap);
        while (slot[to].key)
            to = (to + 1) & (cap - 1);
        slot[to] = m->slot[i];
    }
    free(m->slot);
    m->slot = slot;
    m->cap = cap;
    m->used = m->n;
    return true;
}

bool weir__map_put(weir_map *m, uint64_t key, void *value)
{
    assert(key && value);
    struct weir_map_slot *s = find(m, key);
    if (s) {
        s->value = value;
        return true;
    }
    if ((m->used + 1) * 4 > m->cap * 3) {
        size_t cap = m->cap ? m->cap : FIRST_CAP;
        while ((m->n + 1) * 2 > cap)        /* half full after: no rehash soon again */
            cap *= 2;
        if (!resize(m, cap))
            return false;
    }
    size_t i = place(key, m->cap);
    while (m->slot[i].key)
        i = (i + 1) & (m->cap - 1);
    if (!m->slot[i].value)                  /* was empty, not removed */
        m->used++;
    m->slot[i] = (struct weir_map_slot){ key, value };
    m->n++;
    return true;
}

void *weir__map_remove(weir_map *m, uint64_t key)
{
    struct weir_map_slot *s = find(m, key);
    if (!s)
        return NULL;
    void  *value = s->value;
    size_t i = (size_t)(s - m->slot), mask = m->cap - 1;
    s->key = 0;
    s->value = &removed;
    m->n--;
    if (m->slot[(i + 1) & mask].key || m->slot[(i + 1) & mask].value)
        return value;
    while (!m->slot[i].key && m->slot[i].value) {
        m->slot[i].value = NULL;
        m->used--;
        i = (i - 1) & mask;
    }
    return value;
}

bool weir__map_next(const weir_map *m, size_t *pos, uint64_t *key, void **value)
{
    for (; *pos < m->cap; ++*pos) {
        const struct weir_map_slot *s = &m->slot[*pos];
        if (!s->key)
            continue;
        if (key)
            *key = s->key;
        if (value)
            *value = s->value;
        ++*pos;
        return true;
    }
    return false;
}
