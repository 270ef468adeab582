/* table.h - a hash table of links inside the things it finds. Adding cannot fail: when there is no
 * memory for more buckets the chains just get longer. */
#ifndef WEIR_STORE_MEM_TABLE_H
#define WEIR_STORE_MEM_TABLE_H

#include <stddef.h>
#include <stdint.h>

typedef struct table_link {
    struct table_link *next;
    uint64_t           hash;
} table_link;

enum { TABLE_SMALL = 16 };

typedef struct table {              /* {0} is empty; do not copy it */
    table_link **bucket;            /* NULL: small */
    size_t       mask, n;
    table_link  *small[TABLE_SMALL];
} table;

void        weir__table_fini(table *t);                            /* not what the links are in */
void        weir__table_add(table *t, table_link *link, uint64_t hash);
void        weir__table_remove(table *t, table_link *link);
/* The first link with this hash, and the next one with the same; NULL: no more. */
table_link *weir__table_find(const table *t, uint64_t hash);
table_link *weir__table_more(const table_link *link);
/* Walk all of them: NULL starts. Slow for one step, fine for all. */
table_link *weir__table_next(const table *t, const table_link *link);

uint64_t weir__table_hash(uint64_t seed, const char *text);

#endif
