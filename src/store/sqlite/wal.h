/* wal.h - a VFS for the owner's connection that writes a commit to the log in one piece. */
#ifndef WEIR_STORE_SQLITE_WAL_H
#define WEIR_STORE_SQLITE_WAL_H

/* The name to open a database with, or NULL (then the default will do): see wal.c. Any thread. */
const char *weir__wal_vfs(void);

#endif
