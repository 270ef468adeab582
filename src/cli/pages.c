/* pages.c - lists for commands that take a priority, too: the store may end a page before it is
 * full. */
#include "cli/pages.h"

weir_code cli_page_read(weir_queue *q, const weir_query *query, cli_page *out, weir_error *err)
{
    weir_query rest = *query;
    *out = (cli_page){ .more = true };
    while (out->more && out->n < query->limit) {
        weir_page *part;
        rest.limit = query->limit - out->n;
        weir_code rc = weir_list(q, &rest, &part, err);
        if (rc) {
            cli_page_release(out);
            return rc;
        }
        for (size_t i = 0; i < part->n; i++) {
            out->job[out->n++] = part->job[i];
            part->job[i] = NULL;
        }
        out->more = part->more;
        out->next = rest.after = part->next;
        weir_page_release(part);
    }
    return WEIR_OK;
}

void cli_page_release(cli_page *page)
{
    for (size_t i = 0; i < page->n; i++)
        weir_job_release(page->job[i]);
    *page = (cli_page){ 0 };
}

weir_code cli_count(weir_queue *q, const weir_query *query, uint64_t *n, weir_error *err)
{
    weir_query ids = *query;
    *n = 0;
    if (!query->by_priority)
        return weir_count(q, query->state, query->type, n, err);
    ids.ids_only = true;
    ids.limit = WEIR_MAX_PAGE;
    for (bool more = true; more;) {
        weir_page *page;
        weir_code  rc = weir_list(q, &ids, &page, err);
        if (rc)
            return rc;
        *n += page->n;
        more = page->more;
        ids.after = page->next;
        weir_page_release(page);
    }
    return WEIR_OK;
}
