/* pages.h - full pages of lists, and counts, also by priority. */
#ifndef WEIR_CLI_PAGES_H
#define WEIR_CLI_PAGES_H

#include "weir/weir.h"

/* {0} is empty. */
typedef struct cli_page {
    weir_job   *job[WEIR_MAX_PAGE];
    size_t      n;
    bool        more;
    weir_cursor next;
} cli_page;

/* As many jobs as query->limit (not 0) says, unless these are the last: cli_page_release(). */
weir_code cli_page_read(weir_queue *q, const weir_query *query, cli_page *out, weir_error *err);
void      cli_page_release(cli_page *page);

/* How many jobs of the state, type and priority of the query there are. Those of a priority are
 * listed to count them. */
weir_code cli_count(weir_queue *q, const weir_query *query, uint64_t *n, weir_error *err);

#endif
