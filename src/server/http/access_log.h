/* access_log.h - a line of JSON for each request that was answered. A line has only the path of the
 * target, and only the name of the caller's token: no secrets. */
#ifndef WEIR_SERVER_ACCESS_LOG_H
#define WEIR_SERVER_ACCESS_LOG_H

#include <stddef.h>
#include <stdint.h>
#include "weir/error.h"

typedef struct srv_access_log srv_access_log;

/* The contents of a line. NULL: not known, because the request was not read so far. */
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

/* Any thread. Lines that can not be written are lost: a full disk must not stop the server. */
void srv_access_log_write(srv_access_log *l, const srv_access *a);

#endif
