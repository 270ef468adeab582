/* wal.c - writes to SQLite's write-ahead log, gathered.
 *
 * SQLite writes every page of a commit with two calls: a header of 24 bytes, then the page. A batch
 * of jobs touches about ten pages, and these twenty calls cost as much as the work itself. This VFS
 * stands before the system's and keeps bytes that are appended to the log until the commit is
 * whole. A header says whether its page is the last of a commit; with that page everything is
 * written in one call. So it is in the file, or the error is returned, before SQLite counts it as
 * committed. A sync, a cut or a look at the size first writes the kept bytes. Nothing is promised
 * less: an unfinished commit in the log has never counted.
 *
 * Appended is what begins where the last write ended. All other writes go to the file at once. If a
 * transaction is larger than the cache, SQLite changes pages that are in the log already. It writes
 * their headers anew, without the pages, before the commit counts.
 *
 * Kept bytes that cannot be written are dropped, and the call that wrote them returns the error. It
 * is a write, or a sync, of their own transaction, which SQLite then can only roll back. A read
 * never returns that error: it is answered from the kept bytes.
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
    sqlite3_int64 next;       /* where the last write ended, kept or not; -1: it failed */
    bool          last;       /* the frame being written is the last of its commit */
    bool          gathers;
    sqlite3_file *real;       /* the system's file, in the memory behind this */
} wal;

static wal *of(sqlite3_file *f)
{
    return (wal *)f;
}

static int write_now(wal *w, const void *bytes, int n, sqlite3_int64 at)
{
    int rc = w->real->pMethods->xWrite(w->real, bytes, n, at);
    if (rc)
        w->next = -1;
    return rc;
}

static int write_kept(wal *w)
{
    int len = w->len;
    w->len = 0;
    return len ? write_now(w, w->kept, len, w->at) : SQLITE_OK;
}

static int wal_write(sqlite3_file *f, const void *bytes, int n, sqlite3_int64 at)
{
    wal *w = of(f);
    bool appends = w->gathers && at == w->next && n <= KEPT;
    if (!appends || n > KEPT - w->len) {
        int rc = write_kept(w);
        if (rc)
            return rc;
    }
    w->next = at + n;
    if (n == HEADER) {
        const unsigned char *pages = (const unsigned char *)bytes + 4;
        w->last = pages[0] || pages[1] || pages[2] || pages[3];
    }
    if (!appends)
        return write_now(w, bytes, n, at);
    if (!w->len)
        w->at = at;
    memcpy(w->kept + w->len, bytes, (size_t)n);
    w->len += n;
    return w->last && n != HEADER ? write_kept(w) : SQLITE_OK;
}

static int wal_read(sqlite3_file *f, void *bytes, int n, sqlite3_int64 at)
{
    wal          *w = of(f);
    sqlite3_int64 end = w->at + w->len;
    if (w->len && at >= w->at && at + n <= end) {
        memcpy(bytes, w->kept + (at - w->at), (size_t)n);
        return SQLITE_OK;
    }
    int rc = w->len && at < end && at + n > w->at ? write_kept(w) : SQLITE_OK;
    return rc ? rc : w->real->pMethods->xRead(w->real, bytes, n, at);
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
    free(w->kept);            /* if anything is in there: no commit followed it */
    return w->real->pMethods->xClose(w->real);
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
    w->next = -1;
    /* If a write may damage its neighbours, SQLite repeats the last frame up to the end of a
     * sector. It may cut the frame anywhere, so that a page looks like a header. */
    w->gathers = wal_device(f) & SQLITE_IOCAP_POWERSAFE_OVERWRITE;
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
