/* work_slot.c - the registrations of processors: a slot each. See work.h.
 *
 * A slot ends when its processor unregisters it, or when its address has no consumer any more. If
 * the process that consumed the address was lost, it is perhaps only cut off, and its processors
 * would not register again. So the slot is away until the process consumes the address again. */
#include "bus/work.h"

#include <stdlib.h>
#include <string.h>

#include "bus/process.h"

slot *weir__work_make_slot(weir_workqueue *q, const char *address)
{
    slot *s = calloc(1, sizeof *s + strlen(address) + 1);
    if (!s)
        return NULL;
    strcpy(s->address, address);
    if (weir__vanish_add(q->bus, &q->vanish, address))
        return s;
    free(s);
    return NULL;
}

void weir__work_free_slot(weir_workqueue *q, slot *s)
{
    weir__vanish_drop(q->bus, &q->vanish, s->address);
    free(s);
}

void weir__work_add_slot(weir_workqueue *q, slot *s)
{
    weir__list_append(&q->idle, &s->link);
    WORK_COUNT(q, idle, 1);
}

static void remove_idle(weir_workqueue *q, slot *s)
{
    weir__list_remove(&q->idle, &s->link);
    WORK_COUNT(q, idle, (size_t)-1);
}

void weir__work_put_away(weir_workqueue *q, slot *s)
{
    weir__list_append(&q->away, &s->link);
    q->n_away++;
}

static void remove_away(weir_workqueue *q, slot *s)
{
    weir__list_remove(&q->away, &s->link);
    q->n_away--;
}

void weir__work_end_slot(weir_workqueue *q, slot *s)
{
    weir__work_publish_slot(q, false, s->address);
    weir__work_free_slot(q, s);
}

/* A busy slot finishes, and gets no more. */
static void end_busy(weir_workqueue *q, slot *s)
{
    s->leaves = true;
    weir__work_publish_slot(q, false, s->address);
}

static slot *find(weir_dlist *list, const char *address)
{
    WEIR_EACH(slot, s, list, link)
        if (!s->leaves && strcmp(s->address, address) == 0)
            return s;
    return NULL;
}

void weir__work_remove_slot(weir_workqueue *q, const char *address)
{
    slot *s;
    if ((s = find(&q->idle, address))) {
        remove_idle(q, s);
        weir__work_end_slot(q, s);
    } else if ((s = find(&q->busy, address))) {
        end_busy(q, s);
    } else if ((s = find(&q->away, address))) {
        remove_away(q, s);
        weir__work_end_slot(q, s);
    }
}

bool weir__work_room_for_slot(weir_workqueue *q)
{
    slot *oldest = WEIR_OF(q->away.first, slot, link);
    if (q->stats.idle + q->stats.busy + q->n_away < WEIR_WORK_SLOTS)
        return true;
    if (!oldest)
        return false;
    remove_away(q, oldest);
    weir__work_end_slot(q, oldest);
    return true;
}

/* ---- processors that vanish, and come back ---- */

void weir__work_vanished(void *ctx, const char *address, const char *process)
{
    weir_workqueue *q = ctx;
    slot           *s;
    if (!weir__leader_leads(q->leader))
        return;                             /* the leader reports what becomes of the slot */
    while ((s = find(&q->idle, address))) {
        remove_idle(q, s);
        if (*process) {
            strcpy(s->process, process);
            weir__work_put_away(q, s);
        } else {
            weir__work_end_slot(q, s);
        }
    }
    WEIR_EACH(slot, b, &q->busy, link) {
        if (b->leaves || strcmp(b->address, address) != 0)
            continue;
        if (*process)
            strcpy(b->process, process);    /* it is put away when its work has come back */
        else
            end_busy(q, b);
    }
    weir__work_dispatch(q);
}

typedef struct search {
    const char *process;
    bool        found;
} search;

static void see_process(void *ctx, const char *process)
{
    search *s = ctx;
    s->found |= strcmp(process, s->process) == 0;
}

void weir__work_look_away(weir_workqueue *q)
{
    bool some = false;
    WEIR_EACH(slot, s, &q->away, link) {
        search in = { .process = s->process, .found = !*s->process &&
                                                      weir__bus_count(q->bus, s->address) };
        if (*s->process)
            weir__bus_processes(q->bus, s->address, see_process, &in);
        if (!in.found)
            continue;
        remove_away(q, s);
        *s->process = '\0';
        weir__work_add_slot(q, s);
        some = true;
    }
    if (some)
        weir__work_dispatch(q);
}
