/* heap.c - a binary heap: see heap.h. The children of place i are 2i and 2i + 1. */
#include "base/heap.h"

#include <stdlib.h>

#include "base/grow.h"

static void set(weir_heap *h, size_t at, weir_heap_node *n)
{
    h->node[at] = n;
    n->at = at;
}

static void sift_up(weir_heap *h, weir_heap_node *n, size_t at)
{
    for (; at > 1 && h->node[at / 2]->due > n->due; at /= 2)
        set(h, at, h->node[at / 2]);
    set(h, at, n);
}

static void sift_down(weir_heap *h, weir_heap_node *n, size_t at)
{
    for (size_t child; (child = at * 2) <= h->n; at = child) {
        if (child < h->n && h->node[child + 1]->due < h->node[child]->due)
            child++;
        if (h->node[child]->due >= n->due)
            break;
        set(h, at, h->node[child]);
    }
    set(h, at, n);
}

void weir__heap_fini(weir_heap *h)
{
    free(h->node);
    *h = (weir_heap){ 0 };
}

bool weir__heap_put(weir_heap *h, weir_heap_node *n)
{
    if (!weir__grow(&h->node, &h->cap, h->n + 2, sizeof *h->node))
        return false;
    sift_up(h, n, ++h->n);
    return true;
}

weir_heap_node *weir__heap_first(const weir_heap *h)
{
    return h->n ? h->node[1] : NULL;
}

void weir__heap_remove(weir_heap *h, weir_heap_node *n)
{
    if (!n->at)
        return;
    size_t          at = n->at;
    weir_heap_node *last = h->node[h->n--];
    n->at = 0;
    if (last == n)
        return;
    if (at > 1 && h->node[at / 2]->due > last->due)
        sift_up(h, last, at);
    else
        sift_down(h, last, at);
}
