/* announce.h - a server announces its address to other programs of its user: `weir add` and others
 * go to it when nothing else was said.
 *
 * The file is server.json in $WEIR_DATA, else in $XDG_RUNTIME_DIR/weir, else in the usual data
 * directory:
 *
 *     {"address":"http://127.0.0.1:7340","pid":4711}
 *
 * The server holds a lock on it (flock) as long as it lives. So what a server that was killed has
 * left behind is known for what it is, whoever has its pid by now. */
#ifndef WEIR_CLI_ANNOUNCE_H
#define WEIR_CLI_ANNOUNCE_H

#include <stddef.h>
#include "weir/error.h"

/* {-1} or what announce_begin() filled in. */
typedef struct announcement {
    int  fd;
    char path[4096];
} announcement;

/* Announce a server at `address`. WEIR_EBUSY: another server of this user has done so before,
 * and is still there; nothing was changed. */
weir_code announce_begin(announcement *a, const char *address, weir_error *err);

/* The server stops. */
void announce_end(announcement *a);

/* Where a server of this user is that is alive. False: there is none. */
bool announce_find(char *url, size_t size);

#endif
