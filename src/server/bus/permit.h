/* permit.h - which addresses clients of the bridges may use: regular expressions (POSIX extended),
 * each matched against the whole address. A list without entries permits nothing. */
#ifndef WEIR_SERVER_PERMIT_H
#define WEIR_SERVER_PERMIT_H

#include "weir/error.h"

typedef struct srv_permits srv_permits;

/* `patterns` ends with NULL; NULL itself is an empty list. On success *out belongs to the caller:
 * srv_permits_destroy(). Errors: WEIR_EINVAL (names the pattern), WEIR_ENOMEM. */
weir_code srv_permits_create(srv_permits **out, const char *what, const char *const *patterns,
                             weir_error *err);
void srv_permits_destroy(srv_permits *p);                       /* NULL is fine */
bool srv_permits_match(const srv_permits *p, const char *address);     /* any thread */

/* May an admin at this peer ("127.0.0.1:51234", "[::1]:51234") use every address? On loopback. */
bool srv_permits_all_to(const char *peer);

#endif
