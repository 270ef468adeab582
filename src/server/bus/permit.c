/* permit.c - addresses that are permitted: see permit.h. */
#include "server/bus/permit.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

struct srv_permits {
    size_t  n;
    regex_t regex[];
};

weir_code srv_permits_create(srv_permits **out, const char *what, const char *const *patterns,
                             weir_error *err)
{
    size_t n = 0;
    while (patterns && patterns[n])
        n++;
    srv_permits *p = *out = calloc(1, sizeof *p + n * sizeof *p->regex);
    if (!p)
        return weir_fail(err, WEIR_ENOMEM, "%s: out of memory", what);
    for (; p->n < n; p->n++) {
        char *whole = NULL, why[100];
        int   rc = asprintf(&whole, "^(%s)$", patterns[p->n]) < 0
                       ? REG_ESPACE
                       : regcomp(&p->regex[p->n], whole, REG_EXTENDED | REG_NOSUB);
        free(whole);
        if (!rc)
            continue;
        regerror(rc, NULL, why, sizeof why);
        weir_fail(err, rc == REG_ESPACE ? WEIR_ENOMEM : WEIR_EINVAL, "%s: \"%s\" is not a regular "
                  "expression: %s", what, patterns[p->n], why);
        srv_permits_destroy(p);
        *out = NULL;
        return rc == REG_ESPACE ? WEIR_ENOMEM : WEIR_EINVAL;
    }
    return WEIR_OK;
}

void srv_permits_destroy(srv_permits *p)
{
    for (size_t i = 0; p && i < p->n; i++)
        regfree(&p->regex[i]);
    free(p);
}

bool srv_permits_match(const srv_permits *p, const char *address)
{
    for (size_t i = 0; i < p->n; i++)
        if (regexec(&p->regex[i], address, 0, NULL, 0) == 0)
            return true;
    return false;
}
