/* follow.c - tasks are followed while a command works. */
#include "cli/follow.h"

#include <string.h>

weir_code cli_follow(cli *c, weir_queue *q, const char *record, weir_tasks **out)
{
    *out = NULL;
    if (!record && strncmp(c->store, "http", 4) == 0)
        return WEIR_OK;                 /* the server follows them */
    weir_code rc = weir_tasks_open(out, q, &(weir_tasks_config){ .table = record }, &c->err);
    return rc ? rc : weir_tasks_follow(*out, &c->err);
}
