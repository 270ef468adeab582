/* errors.c - weir_get_errors(): pages of failed jobs, the last to fail first, until there are no
 * more or enough was looked at. */
#include <string.h>

#include "core/error_mask.h"
#include "core/job.h"
#include "runtime/future.h"

typedef struct grouper {
    weir_queue         *q;
    weir_future        *future;
    weir_error_groups **out, *groups;
    weir_look           look;
    weir_ticket         ticket;
    char                type[WEIR_MAX_TYPE + 1];        /* "": all */
} grouper;

static void fill(void *ctx, bool wanted)
{
    grouper *g = ctx;
    if (wanted) {
        *g->out = g->groups;
        g->groups = NULL;
    }
}

static void end(grouper *g, const weir_error *err)
{
    weir_future *f = g->future;
    if (err->code) {
        weir_error_groups_free(g->groups);
        g->groups = NULL;
    } else {
        weir__error_groups_sort(g->groups);
    }
    weir__future_ref(f);
    weir__future_end(f, err, fill, g);
    weir_error_groups_free(g->groups);          /* the caller has given them up */
    weir__future_unref(f);
}

static void read_page(grouper *g, weir_cursor after);

static void page_read(weir_ticket *t)
{
    grouper   *g = (grouper *)((char *)t - offsetof(grouper, ticket));
    weir_page *page = t->op.u.list.page;
    bool       ok = true;
    if (t->op.err.code) {
        end(g, &t->op.err);
        return;
    }
    for (size_t i = 0; ok && i < page->n; i++) {
        weir__look_add(&g->look, page->job[i]);
        ok = weir__error_groups_add(g->groups, page->job[i]);
    }
    bool        more = page->more;
    weir_cursor next = page->next;
    weir_page_free(page);
    weir_error err = { 0 };
    if (!ok)
        weir_fail(&err, WEIR_ENOMEM, "errors: out of memory");
    g->groups->more = more && !weir__look_next(&g->look);
    if (!ok || !more || g->groups->more)
        end(g, &err);
    else
        read_page(g, next);
}

static void read_page(grouper *g, weir_cursor after)
{
    weir_query query = { .state = WEIR_STATE_FAILED, .type = *g->type ? g->type : NULL,
                         .descending = true, .after = after, .limit = weir__look_next(&g->look) };
    g->ticket = (weir_ticket){ .op = { .kind = WEIR_OP_LIST, .u.list = { .query = query } },
                               .done = page_read };
    if (weir__queue_submit(g->q, &g->ticket))
        end(g, &g->ticket.op.err);
}

weir_code weir_get_errors_async(weir_queue *q, const char *type, weir_error_groups **out,
                                weir_future **f, weir_error *err)
{
    weir_future *own;
    *out = NULL;
    *f = NULL;
    weir_code rc = type ? weir__type_check(type, "type", err) : WEIR_OK;
    if (!rc)
        rc = weir__future_create(q, &own, sizeof(grouper), NULL, err);
    if (rc)
        return rc;
    grouper *g = weir__future_bytes(own);
    *g = (grouper){ .q = q, .future = own, .out = out, .groups = weir__error_groups_create() };
    strncat(g->type, type ? type : "", WEIR_MAX_TYPE);
    *f = own;
    if (g->groups)
        read_page(g, (weir_cursor){ 0 });
    else
        end(g, &(weir_error){ .code = WEIR_ENOMEM, .msg = "errors: out of memory" });
    return WEIR_OK;
}

weir_code weir_get_errors(weir_queue *q, const char *type, weir_error_groups **out,
                          weir_error *err)
{
    weir_future *f;
    weir_code    rc = weir_get_errors_async(q, type, out, &f, err);
    if (!rc)
        rc = weir_future_wait(f, WEIR_FOREVER, err);
    weir_future_free(f);
    return rc;
}
