/* copy.c - deep copies into one block: see copy.h. */
#include "op/copy.h"

#include <stdalign.h>
#include <string.h>

static size_t aligned(size_t n)
{
    return (n + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
}

void *weir__copy_room(weir_copier *c, size_t size)
{
    c->used = aligned(c->used);
    void *p = c->block ? c->block + c->used : NULL;
    c->used += size;
    return p;
}

void *weir__copy_array(weir_copier *c, const void *from, size_t size)
{
    void *p = weir__copy_room(c, size);
    return p && size ? memcpy(p, from, size) : (void *)(uintptr_t)from;
}

void weir__copy_bytes(weir_copier *c, const char **member, size_t n)
{
    if (!*member)
        return;
    if (c->block)
        *member = memcpy(c->block + c->used, *member, n);
    c->used += n;
}

void weir__copy_text(weir_copier *c, const char **member)
{
    if (*member)
        weir__copy_bytes(c, member, strlen(*member) + 1);
}

void weir__copy_either(weir_copier *c, const char **member, size_t n)
{
    if (n)
        weir__copy_bytes(c, member, n);
    else
        weir__copy_text(c, member);
}

static size_t walk(char *block, weir_op *op)
{
    weir_copier c = { .block = block };
    weir__op_row(op)->copy(&c, op);
    return aligned(c.used);
}

size_t weir__op_copy_size(const weir_op *op)
{
    weir_op twin = *op;
    return walk(NULL, &twin);
}

size_t weir__op_copy(weir_op *op, void *block)
{
    return walk(block, op);
}
