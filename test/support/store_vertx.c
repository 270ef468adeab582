/* store_vertx.c - the addresses of jobs in the layout of Vert.x Kue, left out of its answers. */
#include "support/store_fixture.h"

#include <string.h>

bool has_addresses(const char *url)
{
    return strstr(url, "profile=vertx") != NULL;
}

/* Of an object in the form that stores keep; an address has no escapes. */
static void drop_address(weir_job *j)
{
    char *values = (char *)(uintptr_t)j->values, *from = values ? strstr(values, "\"address_id\":")
                                                                : NULL;
    if (!from)
        return;
    char *to = strchr(from + strlen("\"address_id\":\""), '"') + 1;
    if (*to == ',')
        to++;
    else if (from[-1] == ',')
        from--;
    memmove(from, to, strlen(to) + 1);
    j->values_len = strlen(values);
    if (j->values_len == 2) {
        j->values = NULL;
        j->values_len = 0;
    }
}

static void drop_all(weir_job **jobs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        drop_address(jobs[i]);
}

void drop_addresses(weir_op *op)
{
    if (op->err.code)
        return;
    if (op->kind == WEIR_OP_TAKE)
        drop_all(op->u.take.jobs, op->u.take.n_jobs);
    else if (op->kind == WEIR_OP_FINISH)
        drop_all(op->u.finish.next.jobs, op->u.finish.next.n_jobs);
    else if (op->kind == WEIR_OP_GET)
        drop_all(&op->u.get.job, 1);
    else if (op->kind == WEIR_OP_LIST)
        drop_all(op->u.list.page->job, op->u.list.page->n);
}
