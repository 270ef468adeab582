/* search.h - which text of a job is searched, and what a query asks for. Pure functions. */
#ifndef WEIR_CORE_SEARCH_H
#define WEIR_CORE_SEARCH_H

#include "base/buf.h"
#include "weir/job.h"

/* Append the text to index for `data` (valid JSON), separated by spaces: all string, number and
 * boolean values in it and the names of its members. With `keys` ("to, customer.name"), only the
 * values at these paths. False: out of memory. */
bool weir__search_text(weir_buf *out, const char *data, size_t len, const char *keys);

/* The next word of `text` from *pos: a run of ASCII letters and digits and bytes beyond ASCII.
 * False at the end. This is how both queries and texts are cut. */
bool weir__search_word(const char *text, size_t len, size_t *pos, size_t *word, size_t *word_len);

/* Is every word of `query` in `text`, ignoring ASCII case? A word followed by * is the start of
 * one. A query without words matches nothing. */
bool weir__search_match(const char *query, const char *text, size_t len);

#endif
