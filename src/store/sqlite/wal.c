/* wal.c - writes to SQLite's write-ahead log, gathered.
 *
 * SQLite writes every page of a commit with two calls: a header of 24 bytes, then the page. A batch
 * of jobs touches about ten pages, and these twenty calls cost as much as the work itself. This VFS
 * stands before the system's and keeps what is appended to the log until the commit is whole: a
 * header says whether its page is the last of a commit, and with that page everything is written in
 * one call. So it is in the file, or the error is told, before SQLite counts it as committed, and
 * whatever else is done with the log (a read, a sync, its size) writes first what was kept. Nothing
 * is promised less: an unfinished commit in the log has never counted.
 *
 * Only the log is handled so. Readers in other processes need no VFS of ours. */
#include "store/sqlite/wal.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADER = 24,              /* bytes of a frame's header; 4 to 7 are 0 but in the last one */
    KEPT   = 120 * 1024       /* bytes kept at most; SQLite's own VFS takes no more than 128 KiB */
};

typedef struct wal {
    sqlite3_file  base;
    char         *kept;
    int           len;
    sqlite3_int64 at;         /* where kept[0] belongs */
    bool          last;       /* the frame being written is the last of its commit */
    sqlite3_file *real;       /* the system's file, in the memory behind this */
} wal;

static wal *of(sqlite3_file *f)
{
    return (wal *)f;
}

static int write_kept(wal *w)
{
    int len = w->len;
    w->len = 0;
    return len ? w->real->pMethods->xWrite(w->real, w->kept, len, w->at) : SQLITE_OK;
}

static int wal_write(sqlite3_file *f, const void *bytes, int n, sqlite3_int64 at)
{
    wal *w = of(f);
    if (w->len && (at != w->at + w->len || n > KEPT - w->len)) {
        int rc = write_kept(w);
        if (rc)
            return rc;
    }
    if (n > KEPT)
        return w->real->pMethods->xWrite(w->real, bytes, n, at);
    if (!w->len)
        w->at = at;
    memcpy(w->kept + w->len, bytes, (size_t)n);
    w->len += n;
    if (n == HEADER) {
        const unsigned char *pages = (const unsigned char *)bytes + 4;
        w->last = pages[0] || pages[1] || pages[2] || pages[3];
        return SQLITE_OK;
    }
    return w->last ? write_kept(w) : SQLITE_OK;
}

static int wal_read(sqlite3_file *f, void *bytes, int n, sqlite3_int64 at)
{
    int rc = write_kept(of(f));
    return rc ? rc : of(f)->real->pMethods->xRead(of(f)->real, bytes, n, at);
}

static int wal_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    int rc = write_kept(of(f));
    return rc ? rc : of(f)->real->pMethods->xTruncate(of(f)->real, size);
}

static int wal_sync(sqlite3_file *f, int flags)
{
    int rc = write_kept(of(f));
    return rc ? rc : of(f)->real->pMethods->xSync(of(f)->real, flags);
}

static int wal_size(sqlite3_file *f, sqlite3_int64 *size)
{
    int rc = write_kept(of(f));
    return rc ? rc : of(f)->real->pMethods->xFileSize(of(f)->real, size);
}

static int wal_close(sqlite3_file *f)
{
    wal *w = of(f);
    int rc = write_kept(w), closed = w->real->pMethods->xClose(w->real);
    free(w->kept);
    return rc ? rc : closed;
}

static int wal_lock(sqlite3_file *f, int level)
{
    return of(f)->real->pMethods->xLock(of(f)->real, level);
}

static int wal_unlock(sqlite3_file *f, int level)
{
    return of(f)->real->pMethods->xUnlock(of(f)->real, level);
}

static int wal_reserved(sqlite3_file *f, int *out)
{
    return of(f)->real->pMethods->xCheckReservedLock(of(f)->real, out);
}

static int wal_control(sqlite3_file *f, int op, void *arg)
{
    return of(f)->real->pMethods->xFileControl(of(f)->real, op, arg);
}

static int wal_sector(sqlite3_file *f)
{
    return of(f)->real->pMethods->xSectorSize(of(f)->real);
}

static int wal_device(sqlite3_file *f)
{
    return of(f)->real->pMethods->xDeviceCharacteristics(of(f)->real);
}

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = wal_close,
    .xRead = wal_read,
    .xWrite = wal_write,
    .xTruncate = wal_truncate,
    .xSync = wal_sync,
    .xFileSize = wal_size,
    .xLock = wal_lock,
    .xUnlock = wal_unlock,
    .xCheckReservedLock = wal_reserved,
    .xFileControl = wal_control,
    .xSectorSize = wal_sector,
    .xDeviceCharacteristics = wal_device,
};

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out)
{
    sqlite3_vfs *system = vfs->pAppData;
    if (!(flags & SQLITE_OPEN_WAL))
        return system->xOpen(system, name, f, flags, out);
    wal *w = of(f);
    *w = (wal){ .kept = malloc(KEPT), .real = (sqlite3_file *)(w + 1) };
    if (!w->kept)
        return SQLITE_NOMEM;
    int rc = system->xOpen(system, name, w->real, flags, out);
    if (rc) {
        free(w->kept);
        return rc;
    }
    w->base.pMethods = &methods;
    return SQLITE_OK;
}

/* SQLite keeps the list of VFSs for the whole process. Ours is in it once and never changes. */
static sqlite3_vfs    gathering;
static const char    *registered;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void add_vfs(void)
{
    sqlite3_vfs *system = sqlite3_vfs_find(NULL);
    if (!system)
        return;
    gathering = *system;
    gathering.pNext = NULL;
    gathering.zName = "weir";
    gathering.pAppData = system;
    gathering.szOsFile = (int)sizeof(wal) + system->szOsFile;
    gathering.xOpen = vfs_open;
    if (!sqlite3_vfs_register(&gathering, 0))
        registered = gathering.zName;
}

const char *weir__wal_vfs(void)
{
    pthread_once(&once, add_vfs);
    return registered;
}
