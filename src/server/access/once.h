/* once.h - idempotency keys of callers. A key belongs to the token that sent it, on every route:
 * what the store gets names the route and the token too, so no caller uses up another's key. */
#ifndef WEIR_SERVER_ONCE_H
#define WEIR_SERVER_ONCE_H

#include "server/http/request.h"

/* The store's key for `key` of this caller; `route` keeps the keys of routes apart. The result is
 * UTF-8 also when `key` is not. False: out of memory. */
bool srv_once_key(const srv_request *r, const char *route, const char *key,
                  char out[WEIR_MAX_TOKEN + 1]);

/* The digest of a body, for weir_token.digest: never 0. False: out of memory. */
bool srv_once_digest(const char *body, size_t len, uint64_t *out);

#endif
