/* permit.c - addresses that are permitted: see permit.h. */
#include "server/bus/permit.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct srv_permits {
    size_t  n;
    regex_t regex[];
};

/* POSIX leaves open what a backslash before a letter or digit means: \d is a "d" in glibc. NULL:
 * none; else *instead has the text to write. */
static const char *find_escape(const char *pattern, const char **instead)
{
    static const struct { char letter; const char *instead; } classes[] = {
        { 'd', "write [0-9]" },           { 'D', "write [^0-9]" },
        { 'w', "write [A-Za-z0-9_]" },    { 'W', "write [^A-Za-z0-9_]" },
        { 's', "write [[:space:]]" },     { 'S', "write [^[:space:]]" },
    };
    for (const char *at = pattern; (at = strchr(at, '\\')) && at[1]; at += 2) {
        if (!isalnum((unsigned char)at[1]))
            continue;
        *instead = "write the character alone";
        for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
            if (classes[i].letter == at[1])
                *instead = classes[i].instead;
        return at;
    }
    return NULL;
}

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
        char        why[100];
        const char *instead, *escape = find_escape(patterns[p->n], &instead);
        int         rc = escape ? REG_BADPAT
                                : regcomp(&p->regex[p->n], patterns[p->n], REG_EXTENDED);
        if (!rc)
            continue;
        if (escape)
            snprintf(why, sizeof why, "POSIX has no %.2s; %s", escape, instead);
        else
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

/* A match is the leftmost, and the longest of these: if the whole address matches, that is it. */
bool srv_permits_match(const srv_permits *p, const char *address)
{
    regmatch_t where;
    for (size_t i = 0; i < p->n; i++)
        if (regexec(&p->regex[i], address, 1, &where, 0) == 0 && where.rm_so == 0 &&
            address[where.rm_eo] == '\0')
            return true;
    return false;
}

bool srv_permits_all_to(const char *peer)
{
    return strncmp(peer, "127.", 4) == 0 || strncmp(peer, "[::1]:", 6) == 0;
}
