/* mover_refused.c - the jobs that a target refused: a hash set, with the time until which each is
 * left alone. An entry whose time is 0 was refused once, but has moved since. */
#include "cli/migrate/mover_inner.h"

#include <stdio.h>
#include <stdlib.h>

static struct mover_slot *find(const mover_refused *r, uint64_t id)
{
    size_t i = (size_t)(id * UINT64_C(0x9e3779b97f4a7c15)) & (r->cap - 1);
    while (r->slot[i].id && r->slot[i].id != id)
        i = (i + 1) & (r->cap - 1);
    return &r->slot[i];
}

static bool grow(mover_refused *r)
{
    mover_refused old = *r;
    if (r->used * 2 < r->cap)
        return true;
    r->cap = old.cap ? old.cap * 2 : 64;
    r->slot = calloc(r->cap, sizeof *r->slot);
    if (!r->slot) {
        *r = old;
        return false;
    }
    for (size_t i = 0; i < old.cap; i++)
        if (old.slot[i].id)
            *find(r, old.slot[i].id) = old.slot[i];
    free(old.slot);
    return true;
}

bool mover_leaves(const mover_refused *r, uint64_t id, int64_t now)
{
    return r->cap && find(r, id)->until > now;
}

weir_code mover_refuse(mover_refused *r, uint64_t id, int64_t until, const char *why,
                       weir_error *err)
{
    if (!grow(r))
        return weir_fail(err, WEIR_ENOMEM, "out of memory");
    struct mover_slot *s = find(r, id);
    r->used += !s->id;
    r->n += !s->until;
    *s = (struct mover_slot){ id, until };
    size_t i = 0;
    while (i < r->n_shown && r->shown[i].id != id)
        i++;
    if (i == MOVER_SHOWN)
        return WEIR_OK;
    r->n_shown += i == r->n_shown;
    r->shown[i].id = id;
    snprintf(r->shown[i].why, sizeof r->shown[i].why, "%s", why);
    return WEIR_OK;
}

void mover_unrefuse(mover_refused *r, uint64_t id)
{
    struct mover_slot *s = r->cap ? find(r, id) : NULL;
    if (!s || !s->until)
        return;
    s->until = 0;
    r->n--;
    for (size_t i = 0; i < r->n_shown; i++)
        if (r->shown[i].id == id)
            r->shown[i--] = r->shown[--r->n_shown];
}
