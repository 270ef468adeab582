/* file.c - which file is open, that nobody else has it, and whether it is still at its path.
 *
 * The owner locks the file itself, not only PATH-owner: whoever comes by another name, or after
 * PATH-owner was deleted, finds it locked. The lock is one of the open file description, on a byte
 * that SQLite never locks.
 *
 * POSIX drops all locks of a process on a file when the process closes any descriptor of it, and
 * SQLite relies on such locks. So a descriptor of ours stays open until the last store of this
 * process that has the file is closed: the list below counts them.
 *
 * If the file or its log is deleted, renamed or replaced while it is open, SQLite would go on
 * writing to what nobody will find. So before commits, now and then, the owner looks whether its
 * path still leads to the files that are open. From then on it refuses to write, until they are
 * back. Reading goes on.
 *
 * A file that another program has written over, as `cp backup.db jobs.db` does, is still the same
 * file. Its header differs: the schema version is another one (schema.c), the file is shorter, or
 * its change counter has gone back. The first commit of each log raises the counter (log_check.c),
 * so that an older copy has a smaller one. A checkpoint by another program only raises it. */
#include "store/sqlite/sq.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    LOCK_BYTE = 0x40001000,     /* SQLite locks 512 bytes from 0x40000000 on */
    ATTEND_BYTE = LOCK_BYTE + 1,        /* of those who work through the owner */
    GUARD_BYTE = LOCK_BYTE + 2,         /* of those who end the programs of dead workers */
    GUARD_MS = 5000,            /* how long the next owner waits for these */
    LOOK_MS = 10,               /* between two looks at the path */
    CHANGES_AT = 24, SCHEMA_AT = 40, HEADER = 44    /* big-endian; SQLite's file format */
};

typedef struct header {
    off_t    size;              /* of the file; 0: not read yet */
    uint32_t changes, schema;
} header;

struct sq_inode {
    struct sq_inode *next;
    dev_t            dev;
    ino_t            ino;
    int              fd;        /* -1: only readers so far */
    int              guard_fd;  /* with a lock on GUARD_BYTE, for a child to keep; -1: none */
    int              look_fd;   /* of readers who ask whether somebody owns it; -1: none */
    bool             owned;
    unsigned         stores;
    unsigned         attending;         /* of the stores */
    header           header;            /* as it was at the last look */
};

static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER;     /* guards what follows */
static struct sq_inode *inodes;

static const char *name_of(const sq_store *s)
{
    const char *slash = strrchr(s->path, '/');
    return slash ? slash + 1 : s->path;
}

static bool stat_log(const sq_store *s, struct stat *st)
{
    char *path = NULL;
    bool  there = asprintf(&path, "%s-wal", s->path) >= 0 && !stat(path, st);
    free(path);
    return there;
}

int64_t weir__sq_log_size(const sq_store *s)
{
    struct stat st;
    return stat_log(s, &st) ? (int64_t)st.st_size : 0;
}

weir_code weir__sq_file_look(const sq_store *s, weir_error *err)
{
    struct stat st, log;
    const char *name = name_of(s);
    bool        there = !stat(s->path, &st);
    if (there && !S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? weir__sq_file_fail(s->path, EISDIR, err)
                                   : weir_fail(err, WEIR_EINVAL, "%s: not a plain file", s->path);
    if (there && st.st_nlink > 1)
        return weir_fail(err, WEIR_EINVAL, "%s has %lu names (hard links), and each would have its "
                         "own log: delete the others, or copy the file instead", name,
                         (unsigned long)st.st_nlink);
    if ((!there || !st.st_size) && stat_log(s, &log) && log.st_size)
        return weir_fail(err, WEIR_ECORRUPT, "%s is %s, but its log %s-wal has %lld bytes: put %s "
                         "back, or move the log away to begin a new queue", name,
                         there ? "empty" : "missing", name, (long long)log.st_size, name);
    return WEIR_OK;
}

/* With the lock held. NULL: out of memory. */
static struct sq_inode *find(const struct stat *st)
{
    struct sq_inode *i = inodes;
    while (i && (i->dev != st->st_dev || i->ino != st->st_ino))
        i = i->next;
    if (i)
        return i;
    i = malloc(sizeof *i);
    if (i) {
        *i = (struct sq_inode){ .next = inodes, .dev = st->st_dev, .ino = st->st_ino, .fd = -1,
                                 .guard_fd = -1, .look_fd = -1 };
        inodes = i;
    }
    return i;
}

/* With the lock held: forget it, if no store has it. */
static void drop(struct sq_inode *i)
{
    if (i->stores)
        return;
    struct sq_inode **link = &inodes;
    while (*link != i)
        link = &(*link)->next;
    *link = i->next;
    if (i->guard_fd >= 0)
        close(i->guard_fd);
    if (i->look_fd >= 0)
        close(i->look_fd);
    if (i->fd >= 0)
        close(i->fd);
    free(i);
}

static int set_lock(int fd, short type, off_t byte)
{
    struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };
    return fcntl(fd, F_OFD_SETLK, &l);
}

/* With the lock held: make it ours. `busy`: another owner has it. */
static weir_code own(sq_store *s, struct sq_inode *i, bool *busy, weir_error *err)
{
    *busy = i->owned;
    if (*busy)
        return WEIR_EBUSY;
    if (i->fd < 0)
        i->fd = open(s->path, O_RDWR | O_CLOEXEC);
    if (i->fd < 0)
        return weir__sq_file_fail(s->path, errno, err);
    if (set_lock(i->fd, F_WRLCK, LOCK_BYTE)) {
        *busy = errno == EAGAIN || errno == EACCES;
        return *busy ? WEIR_EBUSY : weir__sq_file_fail(s->path, errno, err);
    }
    i->owned = true;
    return WEIR_OK;
}

weir_code weir__sq_file_open(sq_store *s, bool *busy, weir_error *err)
{
    struct stat st;
    weir_code   rc = weir__sq_file_look(s, err);
    *busy = false;
    if (rc)
        return rc;
    if (stat(s->path, &st))
        return weir__sq_file_fail(s->path, errno, err);
    pthread_mutex_lock(&lock);
    struct sq_inode *i = find(&st);
    if (!i)
        rc = weir_fail(err, WEIR_ENOMEM, "%s: out of memory", s->path);
    else if (!s->env.read_only)
        rc = own(s, i, busy, err);
    if (i && !rc) {
        i->stores++;
        s->file.inode = i;
    } else if (i) {
        drop(i);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

void weir__sq_file_close(sq_store *s)
{
    struct sq_inode *i = s->file.inode;
    if (!i)
        return;
    pthread_mutex_lock(&lock);
    if (!s->env.read_only) {
        set_lock(i->fd, F_UNLCK, LOCK_BYTE);
        i->owned = false;
    }
    i->stores--;
    drop(i);
    pthread_mutex_unlock(&lock);
    s->file.inode = NULL;
}

/* Best effort: without it, the next owner takes those who have jobs for dead. */
void weir__sq_file_attend(sq_store *s)
{
    struct stat st;
    if (s->file.attended || stat(s->path, &st))
        return;
    pthread_mutex_lock(&lock);
    struct sq_inode *i = find(&st);
    if (i && i->fd < 0)
        i->fd = open(s->path, O_RDWR | O_CLOEXEC);
    if (i && i->fd >= 0 && !set_lock(i->fd, F_RDLCK, ATTEND_BYTE)) {
        i->stores++;
        i->attending++;
        s->file.attended = i;
    } else if (i) {
        drop(i);
    }
    pthread_mutex_unlock(&lock);
}

void weir__sq_file_part(sq_store *s)
{
    struct sq_inode *i = s->file.attended;
    if (!i)
        return;
    pthread_mutex_lock(&lock);
    if (!--i->attending)
        set_lock(i->fd, F_UNLCK, ATTEND_BYTE);
    i->stores--;
    s->file.attended = NULL;
    drop(i);
    pthread_mutex_unlock(&lock);
}

/* Has somebody else locked this byte? */
static bool is_locked(int fd, off_t byte)
{
    struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };
    return !fcntl(fd, F_OFD_GETLK, &l) && l.l_type != F_UNLCK;
}

bool weir__sq_file_owned(const sq_store *s)
{
    struct sq_inode *i = s->file.inode;
    pthread_mutex_lock(&lock);
    if (!i->owned && i->fd < 0 && i->look_fd < 0)
        i->look_fd = open(s->path, O_RDONLY | O_CLOEXEC);
    bool owned = i->owned || is_locked(i->fd >= 0 ? i->fd : i->look_fd, LOCK_BYTE);
    pthread_mutex_unlock(&lock);
    return owned;
}

bool weir__sq_file_attended(const sq_store *s)
{
    pthread_mutex_lock(&lock);
    bool here = s->file.inode->attending > 0;
    bool there = is_locked(s->file.inode->fd, ATTEND_BYTE);
    pthread_mutex_unlock(&lock);
    return here || there;
}

int weir__sq_file_guard(sq_store *s)
{
    pthread_mutex_lock(&lock);
    struct sq_inode *i = s->file.inode ? s->file.inode : s->file.attended;
    if (i && i->guard_fd < 0)
        i->guard_fd = open(s->path, O_RDONLY | O_CLOEXEC);
    int fd = i ? i->guard_fd : -1;
    if (fd >= 0 && set_lock(fd, F_RDLCK, GUARD_BYTE))
        fd = -1;
    pthread_mutex_unlock(&lock);
    return fd;
}

void weir__sq_file_wait_guards(const sq_store *s)
{
    weir_deadline until = weir__deadline_in(GUARD_MS);
    while (s->file.inode->guard_fd < 0 && is_locked(s->file.inode->fd, GUARD_BYTE) &&
           weir__deadline_left_ms(until) > 0)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000L }, NULL);
}

/* ---- is it still the file that was opened? ---- */

static uint32_t big_endian(const unsigned char *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* False: it cannot be read just now. A file that is too short has a header of zeros. */
static bool read_header(int fd, header *out)
{
    unsigned char bytes[HEADER] = { 0 };
    struct stat   st;
    if (fstat(fd, &st) || pread(fd, bytes, sizeof bytes, 0) < 0)
        return false;
    *out = (header){ st.st_size, big_endian(bytes + CHANGES_AT), big_endian(bytes + SCHEMA_AT) };
    return true;
}

bool weir__sq_file_intact(const sq_store *s)
{
    struct sq_inode *i = s->file.inode;
    header           now;
    bool             intact = true;
    pthread_mutex_lock(&lock);
    if (read_header(i->fd, &now)) {
        const header *was = &i->header;
        intact = !was->size || (now.size >= was->size && now.schema == was->schema &&
                                (int32_t)(now.changes - was->changes) >= 0);
        if (intact)
            i->header = now;
    }
    pthread_mutex_unlock(&lock);
    return intact;
}

void weir__sq_file_ready(sq_store *s)
{
    struct stat st;
    if (!s->env.read_only) {
        s->file.inode->header = (header){ 0 };
        weir__sq_file_intact(s);
    }
    s->file.has_log = stat_log(s, &st);
    s->file.log_dev = st.st_dev;
    s->file.log_ino = st.st_ino;
}

static bool is_same(const struct stat *st, dev_t dev, ino_t ino)
{
    return st->st_dev == dev && st->st_ino == ino;
}

/* What has happened to the files, in words; NULL: they are where they were. */
static const char *what_happened(const sq_store *s)
{
    const struct sq_inode *i = s->file.inode;
    struct stat            st, open_one;
    if (fstat(i->fd, &open_one))
        return NULL;
    if (stat(s->path, &st))
        return errno != ENOENT ? NULL : open_one.st_nlink ? "was renamed" : "was deleted";
    if (!is_same(&st, i->dev, i->ino))
        return "was replaced by another file";
    if (st.st_nlink > 1)
        return "has got a second name (hard link)";
    if (!s->file.has_log)
        return NULL;
    if (!stat_log(s, &st))
        return "has lost its log (jobs since the last checkpoint are only in there)";
    return is_same(&st, s->file.log_dev, s->file.log_ino) ? NULL : "has got another log";
}

bool weir__sq_file_there(const sq_store *s)
{
    struct stat st;
    return !stat(s->path, &st) && is_same(&st, s->file.inode->dev, s->file.inode->ino);
}

weir_code weir__sq_file_check(sq_store *s, bool at_once, weir_error *err)
{
    int64_t now = weir__coarse_ms();
    if (!at_once && !s->file.gone && now < s->file.look_ms)
        return WEIR_OK;
    s->file.look_ms = now + LOOK_MS;
    const char *what = what_happened(s);
    bool        overwritten = !what && !weir__sq_file_intact(s);
    s->file.gone = what || overwritten;
    if (overwritten)
        return weir_fail(err, WEIR_EUNAVAIL, "%s was overwritten while it was in use: nothing more "
                         "is written. Stop all that use it, move %s-wal and %s-shm away, and put "
                         "the copy in place again", name_of(s), name_of(s), name_of(s));
    return !what ? WEIR_OK
                 : weir_fail(err, WEIR_EUNAVAIL, "%s %s while it was in use: nothing more is "
                             "written. Put it back as it was; until then its jobs can be read here "
                             "only", name_of(s), what);
}
