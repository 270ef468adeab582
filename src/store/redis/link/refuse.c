/* refuse.c - what the errors of Redis mean to a call. A call that is repeated has done nothing:
 * Redis says them before it begins, or before the first write of a function. */
#include "store/redis/link/net.h"

#include <string.h>

static const struct {
    const char   *word;
    redis_refusal what;
    weir_code     code;
} words[] = {
    { "MOVED", REFUSED_MOVED, WEIR_EUNAVAIL },
    { "ASK", REFUSED_ASK, WEIR_EUNAVAIL },
    { "TRYAGAIN", REFUSED_WAIT, WEIR_EUNAVAIL },        /* keys of a slot are here and there */
    { "LOADING", REFUSED_WAIT, WEIR_EUNAVAIL },         /* its data from the disk */
    { "BUSY", REFUSED_WAIT, WEIR_EUNAVAIL },            /* a function runs for long */
    { "UNKILLABLE", REFUSED_WAIT, WEIR_EUNAVAIL },
    { "NOREPLICAS", REFUSED_WAIT, WEIR_EUNAVAIL },      /* fewer than min-replicas-to-write */
    { "CLUSTERDOWN", REFUSED_ELSEWHERE, WEIR_EUNAVAIL },
    { "MASTERDOWN", REFUSED_STALE, WEIR_EUNAVAIL },     /* a replica without its primary */
    { "READONLY", REFUSED_STALE, WEIR_EUNAVAIL },       /* it has become a replica */
    { "NOAUTH", REFUSED_STALE, WEIR_EUNAVAIL },         /* there is a password now */
    { "OOM", REFUSED, WEIR_EFULL },
    { "MISCONF", REFUSED, WEIR_EFULL },                 /* it cannot write to its disk */
    { "NOPERM", REFUSED, WEIR_EREADONLY },              /* and see below */
    { "WRONGTYPE", REFUSED, WEIR_ECORRUPT },
};

/* The text of NOPERM inside a function, and the error for an unknown function. */
static const char script_noperm[] = "ERR The user executing the script can't";
static const char missing[] = "ERR Function not found";

const char *weir__refusal_rest(const char *text)
{
    text += strcspn(text, " ");
    return text + strspn(text, " ");
}

redis_refusal weir__refusal(const char *text, bool script, weir_code *code)
{
    size_t len = strcspn(text, " ");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i].word) == len && !memcmp(words[i].word, text, len)) {
            *code = words[i].code;
            return words[i].what;
        }
    }
    if (script && !strcmp(text, missing)) {
        *code = WEIR_EUNAVAIL;
        return REFUSED_MISSING;
    }
    *code = script ? WEIR_ECORRUPT : WEIR_EUNAVAIL;
    if (!strncmp(text, script_noperm, sizeof script_noperm - 1))
        *code = WEIR_EREADONLY;
    return REFUSED;
}
