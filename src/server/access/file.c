/* file.c - see file.h. */
#include "server/access/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static weir_code trouble(const char *path, weir_error *err)
{
    bool full = errno == ENOSPC || errno == EDQUOT;
    bool closed = errno == EACCES || errno == EPERM || errno == EROFS;
    return weir_fail(err, full ? WEIR_EFULL : closed ? WEIR_EREADONLY : WEIR_EIO, "%s: %s", path,
                     strerror(errno));
}

/* May this user say what is in the file at `path`? This process's own, and root. For root also the
 * owner of the directory, who could put another file in its place anyway: root makes tokens for the
 * user that the server runs as. */
static bool may_own(const char *path, uid_t owner)
{
    uid_t       us = geteuid();
    struct stat st;
    if (owner == us || owner == 0 || us != 0)
        return owner == us || owner == 0;
    const char *slash = strrchr(path, '/');
    char       *dir = !slash ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    bool        may = dir && !stat(dir, &st) && st.st_uid == owner;
    free(dir);
    return may;
}

static weir_code check_owner(const char *path, int fd, weir_error *err)
{
    struct stat st;
    if (fstat(fd, &st))
        return trouble(path, err);
    if (!S_ISREG(st.st_mode))
        return weir_fail(err, WEIR_EINVAL, "%s: is not a regular file", path);
    if (!may_own(path, st.st_uid))
        return weir_fail(err, WEIR_EINVAL, "%s: belongs to another user (%u); it must be this "
                         "user's or root's", path, (unsigned)st.st_uid);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return weir_fail(err, WEIR_EINVAL, "%s: others may write to it; chmod go-w %s", path, path);
    return WEIR_OK;
}

int srv_file_open(const char *path, bool link, weir_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (link ? 0 : O_NOFOLLOW));
    if (fd < 0 && errno == ENOENT)
        weir_fail(err, WEIR_ENOENT, "%s: %s", path, strerror(errno));
    else if (fd < 0)
        trouble(path, err);
    else if (check_owner(path, fd, err)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

weir_code srv_file_read(const char *path, weir_buf *out, weir_error *err)
{
    enum { PIECE = 64 * 1024 };
    weir_error why = { 0 };
    int        fd = srv_file_open(path, false, &why);
    if (fd < 0)
        return weir_fail(err, why.code, "%s", why.msg);
    weir_code rc = WEIR_OK;
    ssize_t   n = 1;
    while (!rc && n > 0) {
        if (!weir__buf_reserve(out, PIECE))
            rc = weir_fail(err, WEIR_ENOMEM, "%s: out of memory", path);
        else if ((n = read(fd, out->data + out->len, PIECE)) < 0 && errno != EINTR)
            rc = trouble(path, err);
        else if (n > 0)
            out->len += (size_t)n;
        else if (n < 0)
            n = 1;
        if (!rc && out->len > SRV_MAX_FILE)
            rc = weir_fail(err, WEIR_ELIMIT, "%s: more than %d bytes", path, SRV_MAX_FILE);
    }
    close(fd);
    if (!rc)
        out->data[out->len] = '\0';
    return rc;
}

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        }
    }
    return true;
}

/* The directory that the file is in. */
static int open_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    char       *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int         fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    free(dir);
    return fd;
}

/* A file that root makes is given to the owner of the directory, the user that the server runs
 * as. */
static bool give_to_owner(int fd, int dir)
{
    struct stat st;
    return geteuid() != 0 || (!fstat(dir, &st) && !fchown(fd, st.st_uid, st.st_gid));
}

static weir_code replace(const char *path, const char *bytes, size_t len, bool sync,
                         weir_error *err)
{
    char *fresh;
    if (asprintf(&fresh, "%s.new", path) < 0)
        return weir_fail(err, WEIR_ENOMEM, "%s: out of memory", path);
    unlink(fresh);                      /* of a crash; and its rights may have been others */
    int       dir = open_directory(path);
    int       fd = dir < 0 ? -1 : open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    weir_code rc = WEIR_OK;
    /* the name of a file is safe on the disk when its directory is */
    if (fd < 0 || !give_to_owner(fd, dir) || !write_all(fd, bytes, len) || (sync && fsync(fd)) ||
        rename(fresh, path) || (sync && fsync(dir))) {
        rc = trouble(path, err);
        unlink(fresh);
    }
    if (fd >= 0)
        close(fd);
    if (dir >= 0)
        close(dir);
    free(fresh);
    return rc;
}

weir_code srv_file_replace(const char *path, const char *bytes, size_t len, weir_error *err)
{
    return replace(path, bytes, len, true, err);
}

weir_code srv_file_replace_soon(const char *path, const char *bytes, size_t len, weir_error *err)
{
    return replace(path, bytes, len, false, err);
}
