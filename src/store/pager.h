/* pager.h - which jobs of a walk through a list go on a page, and where that page ends: for stores
 * that walk in C. The walk has checked state, type and words; the priority is looked at here. */
#ifndef WEIR_STORE_PAGER_H
#define WEIR_STORE_PAGER_H

#include "store/store.h"

typedef struct weir_pager {
    const weir_query *q;
    weir_page        *page;
    weir_cursor       last;             /* the place of the last job that was put on the page */
    weir_cursor       seen;             /* of the last job whose priority was examined */
    size_t            looked;           /* how many those are */
} weir_pager;

typedef enum { WEIR__PUT, WEIR__PASS, WEIR__OVER } weir_pager_step;

static inline weir_pager_step weir__pager_end(weir_pager *p, weir_cursor at)
{
    p->page->more = true;
    p->page->next = at;
    return WEIR__OVER;
}

/* The walk has come to a job of this priority: put it on the page, pass it by, or stop. */
static inline weir_pager_step weir__pager_add(weir_pager *p, weir_cursor at, int32_t priority)
{
    const weir_query *q = p->q;
    bool              wanted = !q->by_priority || priority == q->priority;
    if (!wanted && weir__ranked_by_priority(q))
        return WEIR__OVER;
    if (q->by_priority && p->looked++ == WEIR_MAX_LOOK)
        return weir__pager_end(p, p->seen);
    p->seen = at;
    if (!wanted)
        return WEIR__PASS;
    if (p->page->n == q->limit)
        return weir__pager_end(p, p->last);
    p->last = at;
    return WEIR__PUT;
}

#endif
