/* ring.c - numbered messages in a ring: see ring.h. */
#include "base/ring.h"

#include <stdlib.h>

void weir__ring_unref(weir_ring_entry *e)
{
    if (atomic_fetch_sub(&e->refs, 1) == 1)
        free(e);
}

static void drop_first(weir_ring *r)
{
    weir_ring_entry *e = r->slot[r->first++ % r->count];
    r->used -= e->size;
    weir__ring_unref(e);
}

static bool is_empty(const weir_ring *r)
{
    return r->first > r->last;
}

bool weir__ring_begin(weir_ring *r, size_t count, size_t bytes)
{
    r->slot = calloc(count, sizeof(weir_ring_entry *));
    r->count = count;
    r->bytes = bytes;
    r->first = r->last + 1;
    return r->slot != NULL;
}

void weir__ring_gap(weir_ring *r)
{
    while (!is_empty(r))
        drop_first(r);
    r->last++;
    r->first = r->last + 1;
}

void weir__ring_end(weir_ring *r)
{
    if (!r->slot)
        return;
    weir__ring_gap(r);
    free(r->slot);
    r->slot = NULL;
}

void weir__ring_push(weir_ring *r, weir_ring_entry *e)
{
    while (!is_empty(r) &&
           (r->last - r->first + 1 >= r->count || r->used + e->size > r->bytes))
        drop_first(r);
    e->number = ++r->last;
    r->slot[e->number % r->count] = e;
    r->used += e->size;
}

size_t weir__ring_read(const weir_ring *r, uint64_t number, weir_ring_entry **out, size_t max,
                       size_t bytes, bool *gone)
{
    size_t n = 0, sum = 0;
    *gone = number + 1 < r->first;
    while (!*gone && n < max && number + 1 + n <= r->last) {
        weir_ring_entry *e = r->slot[(number + 1 + n) % r->count];
        sum += e->size;
        if (n && sum > bytes)
            break;
        atomic_fetch_add(&e->refs, 1);
        out[n++] = e;
    }
    return n;
}
