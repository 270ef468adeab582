/* listing.h - lists that a store does not have as one: of several states or types, between two
 * times, sorted. They are made from lists that it has, a few jobs at a time, so that the store is
 * free for others in between. */
#ifndef WEIR_RUNTIME_LISTING_H
#define WEIR_RUNTIME_LISTING_H

#include "runtime/future.h"

/* Must this query, which was checked, be made from lists of the queue's store? */
static inline bool weir__listing_needed(const weir_queue *q, const weir_query *query)
{
    return !q->lists_all && weir__listing_parts(query);
}

/* weir_list_async() of such a query. */
weir_code weir__listing_async(weir_queue *q, const weir_op_list *list, weir_page **out,
                              weir_future **f, weir_error *err);

#endif
