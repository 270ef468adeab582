/* role.h - who may submit an operation through a server. Roles are bits. */
#ifndef WEIR_OP_ROLE_H
#define WEIR_OP_ROLE_H

enum {
    WEIR_ROLE_READ    = 1,          /* looks at jobs */
    WEIR_ROLE_PRODUCE = 2,          /* adds jobs */
    WEIR_ROLE_WORK    = 4,          /* takes jobs, and ends the taken ones */
    WEIR_ROLE_ADMIN   = 8,          /* everything */
    WEIR_ROLE_ALL     = WEIR_ROLE_READ | WEIR_ROLE_PRODUCE | WEIR_ROLE_WORK | WEIR_ROLE_ADMIN
};

#endif
