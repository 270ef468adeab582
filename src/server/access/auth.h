/* auth.h - who calls, and what they may do.
 *
 * A role is a set of bits, WEIR_ROLE_... `read` looks; `produce` adds, and looks; `work` takes and
 * ends jobs, and looks; `admin` may do everything. A token may be bound to some types of jobs. */
#ifndef WEIR_SERVER_AUTH_H
#define WEIR_SERVER_AUTH_H

#include "op/role.h"
#include "weir/job.h"

typedef struct srv_role {
    const char *name;                       /* NULL ends the table */
    unsigned    bit, all;                   /* all: with what it includes */
} srv_role;
extern const srv_role srv_role_table[];

enum {
    SRV_MAX_TOKEN_TYPES = 16,               /* that one token is bound to, in ... */
    SRV_TYPES_TEXT      = 1024              /* ... bytes, with a NUL behind each and one more */
};

typedef struct srv_caller {
    unsigned roles;
    char     name[64];                      /* of the token; "" on loopback without one */
    int64_t  expires_at;                    /* 0: never */
    char     types[SRV_TYPES_TEXT];         /* jobs of these types alone: names one behind the
                                               other, then an empty one; "": all types */
} srv_caller;

/* For each name of a caller's types: for (const char *t = who->types; *t; t = srv_next_type(t)) */
static inline const char *srv_next_type(const char *type)
{
    while (*type++)
        ;
    return type;
}

/* Add a type to its list. False: there are SRV_MAX_TOKEN_TYPES, or there is no room. */
bool srv_caller_add_type(srv_caller *who, const char *type);
/* Add the types of "mail,sms". WEIR_EINVAL: one is no name of a type; WEIR_ELIMIT: too many. */
weir_code srv_caller_add_types(srv_caller *who, const char *text, weir_error *err);
/* Is it bound to types of which `type` is none? */
bool srv_caller_lacks(const srv_caller *who, const char *type);
/* The type, if it is bound to one alone; else NULL. */
const char *srv_caller_only_type(const srv_caller *who);
/* "mail, sms", cut if it is too long. The answer is `out`. */
char *srv_caller_types_text(const srv_caller *who, char *out, size_t size);

/* May it do this to jobs of `type`? NULL: of all types. */
bool srv_caller_may(const srv_caller *who, unsigned role, const char *type);

/* "produce,work" to bits, with all that a role includes; false: no such role. */
bool srv_roles_parse(const char *text, unsigned *out);
/* The way back, without what is included: "admin", "produce,work", "read". The answer is `out`. */
char *srv_roles_text(unsigned roles, char *out, size_t size);

#endif
