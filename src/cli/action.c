/* action.c - see action.h. */
#include "cli/action.h"

#include <stdio.h>
#include <string.h>

#include "cli/near.h"
#include "cli/say.h"

/* unknown action 'lsit'; expected add, list or rm; did you mean 'list'? */
static int unknown(const cli *c, const char *first, size_t n, size_t size)
{
    char      known[200] = "", hint[80];
    weir_near guess = { .typed = c->args[0] };
    const char *synonym = near_synonym(c->args[0]), *meant = NULL;
    for (size_t i = 0, len = 0; i < n && len < sizeof known; i++) {
        const cli_action *a = (const cli_action *)(const void *)(first + i * size);
        weir__near_try(&guess, a->name);
        if (synonym && strcmp(a->name, synonym) == 0)
            meant = a->name;
        len += (size_t)snprintf(known + len, sizeof known - len, "%s%s",
                                !i ? "" : i + 1 < n ? ", " : " or ", a->name);
    }
    if (meant)
        guess.best = meant;
    return cli_usage(c, "unknown action '%s'; expected %s%s", c->args[0], known,
                     near_hint(hint, sizeof hint, &guess, ""));
}

static int check_args(const cli *c, const cli_action *a)
{
    if (c->n_args < a->min_args)
        return cli_usage(c, "%s: an argument is missing; expected %s", a->name, a->args);
    if (c->n_args > a->max_args)
        return cli_usage(c, "%s: '%s' is one argument too many; expected %s", a->name,
                         c->args[a->max_args], a->args);
    return 0;
}

int cli_find_action(const cli *c, const void *actions, size_t n, size_t size, int *status)
{
    for (size_t i = 0; i < n; i++) {
        const cli_action *a = (const cli_action *)(const void *)((const char *)actions + i * size);
        if (strcmp(c->args[0], a->name) != 0)
            continue;
        *status = check_args(c, a);
        return *status ? -1 : (int)i;
    }
    *status = unknown(c, actions, n, size);
    return -1;
}
