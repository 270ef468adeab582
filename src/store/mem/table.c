/* table.c - chained hashing; a power of two of buckets, about one link in each. */
#include "store/mem/table.h"

#include <stdlib.h>

static table_link *const *buckets(const table *t, size_t *mask)
{
    *mask = t->bucket ? t->mask : TABLE_SMALL - 1;
    return t->bucket ? t->bucket : t->small;
}

static table_link **place(table *t, uint64_t hash)
{
    size_t              mask;
    table_link *const *b = buckets(t, &mask);
    return (table_link **)&b[hash & mask];
}

void weir__table_fini(table *t)
{
    free(t->bucket);
    *t = (table){ 0 };
}

static void grow(table *t)
{
    size_t              mask;
    table_link *const *old = buckets(t, &mask);
    size_t              size = (mask + 1) * 2;
    table_link        **fresh = calloc(size, sizeof *fresh);
    if (!fresh)
        return;
    for (size_t i = 0; i <= mask; i++) {
        for (table_link *l = old[i], *next; l; l = next) {
            next = l->next;
            l->next = fresh[l->hash & (size - 1)];
            fresh[l->hash & (size - 1)] = l;
        }
    }
    free(t->bucket);
    t->bucket = fresh;
    t->mask = size - 1;
}

void weir__table_add(table *t, table_link *link, uint64_t hash)
{
    size_t mask;
    buckets(t, &mask);
    if (t->n > mask)
        grow(t);
    table_link **b = place(t, hash);
    link->hash = hash;
    link->next = *b;
    *b = link;
    t->n++;
}

void weir__table_remove(table *t, table_link *link)
{
    for (table_link **at = place(t, link->hash); *at; at = &(*at)->next) {
        if (*at == link) {
            *at = link->next;
            t->n--;
            return;
        }
    }
}

table_link *weir__table_more(const table_link *link)
{
    table_link *l = link->next;
    while (l && l->hash != link->hash)
        l = l->next;
    return l;
}

table_link *weir__table_find(const table *t, uint64_t hash)
{
    size_t      mask;
    table_link *l = buckets(t, &mask)[hash & mask];
    while (l && l->hash != hash)
        l = l->next;
    return l;
}

table_link *weir__table_next(const table *t, const table_link *link)
{
    size_t              mask, i = 0;
    table_link *const *b = buckets(t, &mask);
    if (link) {
        if (link->next)
            return link->next;
        i = (link->hash & mask) + 1;
    }
    for (; i <= mask; i++) {
        if (b[i])
            return b[i];
    }
    return NULL;
}

uint64_t weir__table_hash(uint64_t seed, const char *text)
{
    uint64_t h = seed ^ 0xcbf29ce484222325u;      /* FNV-1a, then mixed for the low bits */
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h ^ (h >> 32);
}
