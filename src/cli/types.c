/* types.c - see types.h. */
#include "cli/types.h"

#include <string.h>
#include "cli/near.h"
#include "cli/say.h"
#include "weir/condition.h"

static weir_code take(cli *c, cli_types *out, const char *name)
{
    if (out->n == WEIR_MAX_TAKE_TYPES)
        return weir_fail(&c->err, WEIR_ELIMIT, "more than %d types", WEIR_MAX_TAKE_TYPES);
    if (!*name)
        return weir_fail(&c->err, WEIR_EINVAL, "TYPE: is empty");
    if (!cli_types_have(out, name))
        out->name[out->n++] = name;
    return WEIR_OK;
}

weir_code cli_types_take(cli *c, const opt_texts *option, cli_types *out)
{
    weir_code rc = WEIR_OK;
    *out = (cli_types){ 0 };
    for (int i = 0; !rc && i < c->n_args; i++)
        rc = take(c, out, c->args[i]);
    for (size_t i = 0; !rc && option && i < option->n; i++)
        rc = take(c, out, option->text[i]);
    return rc;
}

bool cli_types_have(const cli_types *types, const char *type)
{
    for (size_t i = 0; i < types->n; i++)
        if (strcmp(types->name[i], type) == 0)
            return true;
    return false;
}

static weir_code check_one(cli *c, const weir_stats *s, const char *name)
{
    char hint[WEIR_MAX_TYPE + 40];
    weir_near guess = { .typed = name };
    if (strcmp(name, "*") == 0)
        return WEIR_OK;
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->type[i].type, name) == 0)
            return WEIR_OK;
        weir__near_try(&guess, s->type[i].type);
    }
    return weir_fail(&c->err, WEIR_ENOENT, "no such type '%s'%s", name,
                     near_hint(hint, sizeof hint, &guess, ""));
}

weir_code cli_types_check(cli *c, weir_queue *q, const cli_types *types)
{
    weir_stats *s;
    if (types->n == 0)
        return WEIR_OK;
    weir_code rc = weir_get_stats(q, &s, &c->err);
    for (size_t i = 0; !rc && i < types->n; i++)
        rc = check_one(c, s, types->name[i]);
    weir_stats_free(s);
    return rc;
}

void cli_types_note(cli *c, weir_queue *q, const cli_types *types, const char *what)
{
    if (cli_types_check(c, q, types) == WEIR_ENOENT)
        cli_note(c, "%s (%s)", c->err.msg, what);
    c->err = (weir_error){ 0 };
}

weir_code cli_when_check(cli *c, const char *when)
{
    weir_condition *condition = NULL;
    weir_code       rc = when ? weir_condition_parse(&condition, when, &c->err) : WEIR_OK;
    weir_condition_free(condition);
    return rc;
}
