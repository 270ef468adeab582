/* auth.h - who calls, and what they may do.
 *
 * A role is a set of bits. `read` looks; `produce` adds, and looks; `work` takes and ends jobs, and
 * looks; `admin` may do everything. A token may be bound to one type of jobs. */
#ifndef WEIR_SERVER_AUTH_H
#define WEIR_SERVER_AUTH_H

#include "weir/job.h"

enum {
    SRV_READ    = 1,
    SRV_PRODUCE = 2,
    SRV_WORK    = 4,
    SRV_ADMIN   = 8,
    SRV_ALL     = SRV_READ | SRV_PRODUCE | SRV_WORK | SRV_ADMIN
};

typedef struct srv_role {
    const char *name;                       /* NULL ends the table */
    unsigned    bit, all;                   /* all: with what it includes */
} srv_role;
extern const srv_role srv_role_table[];

typedef struct srv_caller {
    unsigned roles;
    char     name[64];                      /* of the token; "" on loopback without one */
    char     type[WEIR_MAX_TYPE + 1];       /* jobs of this type alone; "": all */
} srv_caller;

/* May it do this to jobs of `type`? NULL: of all types. */
bool srv_caller_may(const srv_caller *who, unsigned role, const char *type);

/* "produce,work" to bits, with all that a role includes; false: there is no such role. */
bool srv_roles_parse(const char *text, unsigned *out);
/* The way back, without what is included: "admin", "produce,work", "read". The answer is `out`. */
char *srv_roles_text(unsigned roles, char *out, size_t size);

#endif
