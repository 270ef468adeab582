/* announce.h - a server announces its address and its store to other programs of its user: `weir
 * add` and others use them when nothing else was said.
 *
 * The file is server.json in $WEIR_DATA, else in $XDG_RUNTIME_DIR/weir, else in the usual data
 * directory:
 *
 *     {"address":"http://127.0.0.1:7340","pid":4711,"store":"sqlite:/home/ann/jobs.db"}
 *
 * "store" is there if the store is a SQLite file. Commands open that file themselves, so they go on
 * when the server ends.
 *
 * The server holds a lock on server.json (flock) as long as it lives. So what a server that was
 * killed has left behind is known for what it is, whoever has its pid by now. */
#ifndef WEIR_CLI_ANNOUNCE_H
#define WEIR_CLI_ANNOUNCE_H

#include <stddef.h>
#include "weir/error.h"

/* {-1} or what announce_begin() filled in. */
typedef struct announcement {
    int  fd;
    char path[4096];
} announcement;

/* Announce a server at `address`, and `file`, the absolute path of the SQLite file that is its
 * store; NULL: its store is no file. WEIR_EBUSY: another server of this user has done so
 * before, and is still there; nothing was changed. */
weir_code announce_begin(announcement *a, const char *address, const char *file, weir_error *err);

/* The server stops. */
void announce_end(announcement *a);

typedef struct announced {
    char address[1024];
    char store[4096];       /* "": no file, or not one that this process can change */
} announced;

/* A server of this user that is alive. False: no server. */
bool announce_find(announced *out);

#endif
