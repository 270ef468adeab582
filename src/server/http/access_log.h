/* access_log.h - a line of JSON for each request that was answered. Of the target only the path is
 * written, and of the caller only the token's name: nothing secret gets there. */
#ifndef WEIR_SERVER_ACCESS_LOG_H
#define WEIR_SERVER_ACCESS_LOG_H

#include <stddef.h>
#include <stdint.h>
#include "weir/error.h"

typedef struct srv_access_log srv_access_log;

/* What a line says. NULL: not known, because the request was not read so far. */
typedef struct srv_access {
    const char *peer, *token, *method, *path;
    int         status;
    size_t      bytes;          /* of the answer's body */
    int64_t     ms;             /* from the first byte of the request to the end of the answer */
} srv_access;

/* `path` is a file to append to, for its owner alone, or "-" for standard error. On success *out
 * belongs to the caller: srv_access_log_destroy(). */
weir_code srv_access_log_create(srv_access_log **out, const char *path, weir_error *err);
void srv_access_log_destroy(srv_access_log *l);         /* NULL is fine */

/* Open the file anew: somebody has moved it away. On failure the old one stays. Any thread. */
weir_code srv_access_log_reopen(srv_access_log *l, weir_error *err);

/* Any thread. What can not be written is lost: a full disk must not stop the server. */
void srv_access_log_write(srv_access_log *l, const srv_access *a);

#endif
