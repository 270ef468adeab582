/* owner.c - one process owns a file: it holds a lock on PATH-owner, which names the process.
 *
 * flock() belongs to the open file, so two queues of one process exclude each other too. The lock
 * ends with the process, however that ends. The file is deleted by a clean close, so a process that
 * gets the lock checks that it locked the present file. */
#include "store/sqlite/share.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/sqlite/outside.h"

enum { MARK_MAX = 256, MAX_DIGITS = 10, SHOWN_MAX = 60 };

/* The mark of an owner: its pid and its program's name. False: torn, or not an owner's. */
static bool read_mark(const char *bytes, size_t n, char mark[MARK_MAX], char **name)
{
    memset(mark, 0, MARK_MAX);
    memcpy(mark, bytes, n < MARK_MAX ? n : MARK_MAX - 1);
    size_t digits = strspn(mark, "0123456789");
    if (!digits || digits > MAX_DIGITS || mark[digits] != '\n')
        return false;
    mark[digits] = 0;
    *name = mark + digits + 1;
    (*name)[weir__utf8_cut(*name, strcspn(*name, "\n"), SHOWN_MAX)] = 0;
    return true;
}

static weir_code fail_taken(const char *bytes, size_t n, const char *path, const char *advice,
                            weir_error *err)
{
    char        mark[MARK_MAX], *name;
    const char *file = weir__sq_file_name(path);
    if (!read_mark(bytes, n, mark, &name))
        return weir_fail(err, WEIR_EBUSY, "%s belongs to another process%s", file, advice);
    return weir_fail(err, WEIR_EBUSY, "%s belongs to process %s (%s)%s; reading works meanwhile",
                     file, mark, *name ? name : "?", advice);
}

weir_code weir__sq_taken(const char *bytes, size_t n, const char *path, weir_error *err)
{
    return fail_taken(bytes, n, path, ": stop it or wait for it", err);
}

static ssize_t read_bytes(const char *path, char bytes[MARK_MAX])
{
    char *file;
    if (asprintf(&file, "%s-owner", path) < 0)
        return -1;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    free(file);
    if (fd < 0)
        return -1;
    ssize_t n = pread(fd, bytes, MARK_MAX - 1, 0);
    close(fd);
    return n;
}

weir_code weir__sq_silent(const char *path, weir_error *err)
{
    char    bytes[MARK_MAX], advice[80];
    ssize_t n = read_bytes(path, bytes);
    snprintf(advice, sizeof advice, ", which has not answered for %d s: end it, or let it go on",
             SQ_WELCOME_MS / 1000);
    return fail_taken(bytes, n > 0 ? (size_t)n : 0, path, advice, err);
}

/* The lock on PATH-owner is not tried: a process that is to own the file would find it taken. The
 * lock on the file itself can be queried, and the mark that a killed process left proves nothing.
 * The mark may be unreadable (another user's), or name a process of another process space. */
void weir__sq_find_out_owner(const sq_store *s, weir_info *info)
{
    char    mark[MARK_MAX], bytes[MARK_MAX], *name;
    ssize_t n;
    if (!weir__sq_file_owned(s))
        return;
    info->owner_pid = -1;
    if ((n = read_bytes(s->path, bytes)) <= 0 || !read_mark(bytes, (size_t)n, mark, &name)) {
        weir__sq_say_owner(s->path, info->owner, sizeof info->owner);
        return;
    }
    pid_t pid = (pid_t)atol(mark);
    if (pid > 0 && (!kill(pid, 0) || errno != ESRCH))
        info->owner_pid = pid;
    snprintf(info->owner, sizeof info->owner, "%s", name);
}

#define ALONE "alone\n"        /* the last line of an owner that serves no others */

static weir_code taken(int fd, const char *path, bool *alone, weir_error *err)
{
    char    mark[MARK_MAX];
    ssize_t n = pread(fd, mark, sizeof mark - 1, 0);
    size_t  len = n > 0 ? (size_t)n : 0, end = sizeof ALONE - 1;
    *alone = len > end && !memcmp(mark + len - end, ALONE, end);
    return weir__sq_taken(mark, len, path, err);
}

static bool write_mark(int fd, const char *name, bool shares)
{
    char mark[MARK_MAX];
    int  n = snprintf(mark, sizeof mark, "%ld\n%.200s\n%s", (long)getpid(), name ? name : "",
                      shares ? "" : ALONE);
    return !ftruncate(fd, 0) && pwrite(fd, mark, (size_t)n, 0) == n;
}

/* If root makes a file beside another user's file, it gives that user the ownership, as SQLite
 * does. A killed process of root would else leave it behind, and nobody else could own the file. */
static void give_away(int fd, const char *path)
{
    struct stat st;
    if (geteuid() == 0 && !stat(path, &st) && st.st_uid != 0)
        (void)!fchown(fd, st.st_uid, st.st_gid);
}

/* Lock the file that is at o->path now: it may be another one by the time the lock is ours. */
static weir_code lock(sq_owner *o, const char *path, bool *alone, bool *again, weir_error *err)
{
    *again = false;
    o->fd = open(o->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (o->fd >= 0) {
        give_away(o->fd, path);
    } else if (errno == EEXIST) {
        o->fd = open(o->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        *again = o->fd < 0 && errno == ENOENT;          /* it was deleted meanwhile */
    }
    if (o->fd < 0)
        return *again ? WEIR_OK : weir__sq_file_fail(o->path, errno, err);
    weir_code rc = WEIR_OK;
    if (flock(o->fd, LOCK_EX | LOCK_NB)) {
        bool held = errno == EWOULDBLOCK;
        *again = errno == EINTR;
        if (!*again)
            rc = held ? taken(o->fd, path, alone, err) : weir__sq_file_fail(o->path, errno, err);
    } else {
        struct stat ours, there;
        *again = fstat(o->fd, &ours) || stat(o->path, &there) || ours.st_ino != there.st_ino ||
                 ours.st_dev != there.st_dev;
        if (!*again)
            return WEIR_OK;
    }
    close(o->fd);
    o->fd = -1;
    return rc;
}

weir_code weir__sq_lock_owner(sq_owner *o, const char *path, const char *name, bool shares,
                              bool *alone, weir_error *err)
{
    *alone = false;
    *o = (sq_owner){ .fd = -1 };
    if (asprintf(&o->path, "%s-owner", path) < 0) {
        o->path = NULL;
        return weir_fail(err, WEIR_ENOMEM, "%s: out of memory", path);
    }
    bool      again;
    weir_code rc;
    do
        rc = lock(o, path, alone, &again, err);
    while (again);
    if (!rc)    /* on a full disk there is no room for the name, but the lock holds without it */
        (void)!write_mark(o->fd, name, shares);
    else
        weir__sq_disown(o);
    return rc;
}

void weir__sq_disown(sq_owner *o)
{
    if (o->fd >= 0) {
        unlink(o->path);
        close(o->fd);
    }
    free(o->path);
    *o = (sq_owner){ .fd = -1 };
}
