/* list.h - a doubly linked list whose links are members of its entries. So adding never fails and
 * removing takes no search. {0} is an empty list, and a link that is in no list. The caller guards
 * the list; whatever is in it must stay until it is removed. */
#ifndef WEIR_BASE_LIST_H
#define WEIR_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct weir_link {
    struct weir_link *prev, *next;      /* NULL: it is the first, the last */
} weir_link;

typedef struct weir_dlist {
    weir_link *first, *last;            /* NULL: it is empty */
} weir_dlist;

/* The struct that a link is a member of; NULL for NULL. */
#define WEIR_OF(link, type, member)                                              \
    ((type *)weir__list_owner((link), offsetof(type, member)))

/* Walk the list. The body may remove `at` from the list, but not the one after it. */
#define WEIR_EACH(type, at, list, member)                                        \
    for (type *at = WEIR_OF((list)->first, type, member), *at##_next;            \
         at && (at##_next = WEIR_OF(at->member.next, type, member), true);       \
         at = at##_next)

static inline void *weir__list_owner(weir_link *link, size_t offset)
{
    return link ? (char *)link - offset : NULL;
}

/* Behind `before`, which is in the list; NULL: at the front. */
static inline void weir__list_insert(weir_dlist *l, weir_link *before, weir_link *link)
{
    link->prev = before;
    link->next = before ? before->next : l->first;
    *(before ? &before->next : &l->first) = link;
    *(link->next ? &link->next->prev : &l->last) = link;
}

static inline void weir__list_append(weir_dlist *l, weir_link *link)
{
    weir__list_insert(l, l->last, link);
}

/* The link is in this list; afterwards it is in none. */
static inline void weir__list_remove(weir_dlist *l, weir_link *link)
{
    *(link->prev ? &link->prev->next : &l->first) = link->next;
    *(link->next ? &link->next->prev : &l->last) = link->prev;
    *link = (weir_link){ NULL, NULL };
}

#endif
