/* heap.h - what is due next: a binary heap of nodes that are part of the things in it. {0} is
 * empty. Not thread-safe. */
#ifndef WEIR_BASE_HEAP_H
#define WEIR_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct weir_heap_node {
    int64_t due;                        /* the owner sets it before weir__heap_put() */
    size_t  at;                         /* its place, from 1; 0: it is in no heap */
} weir_heap_node;

typedef struct weir_heap {
    weir_heap_node **node;
    size_t           n, cap;
} weir_heap;

void weir__heap_fini(weir_heap *h);                             /* not the nodes */
bool weir__heap_put(weir_heap *h, weir_heap_node *n);           /* false: out of memory */
weir_heap_node *weir__heap_first(const weir_heap *h);           /* the least due; NULL: empty */
void weir__heap_remove(weir_heap *h, weir_heap_node *n);        /* an entry in no heap is fine */

#endif
