/* permit.c - who may use a SQLite file, and on which file systems it can be: see share.h.
 *
 * An owner runs the operations of everybody whom it lets in with its own rights. So it lets in its
 * own user, and root, who can do everything anyway. A process that works through an owner gives it
 * its jobs and believes its answers. So it trusts its own user and root; root also trusts the user
 * to whom the file belongs, whose jobs these are. Nobody else, though a directory that many can
 * write to lets others make a socket. */
#include "store/sqlite/share.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "store/sqlite/outside.h"

enum { USER_MAX = 80, LINE_MAX_BYTES = 4096 };

/* ---- users ---- */

static bool peer_user(int fd, uid_t *out)
{
    struct ucred who;
    socklen_t    len = sizeof who;
    bool         ok = !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len);
    *out = ok ? who.uid : (uid_t)-1;
    return ok;
}

bool weir__sq_admits(int fd)
{
    uid_t user;
    return peer_user(fd, &user) && (user == geteuid() || user == 0);
}

bool weir__sq_trusts(int fd, const char *path)
{
    struct stat st;
    uid_t       user;
    return peer_user(fd, &user) && (user == geteuid() || user == 0 ||
                                    (geteuid() == 0 && !stat(path, &st) && user == st.st_uid));
}

/* "user ann", "user 1234" */
static const char *user_text(uid_t uid, char out[USER_MAX])
{
    char           room[2048];
    struct passwd  entry, *found = NULL;
    getpwuid_r(uid, &entry, room, sizeof room, &found);
    if (found)
        snprintf(out, USER_MAX, "user %.60s", found->pw_name);
    else
        snprintf(out, USER_MAX, "user %lu", (unsigned long)uid);
    return out;
}

weir_code weir__sq_foreign_owner(int fd, const char *path, weir_error *err)
{
    char               user[USER_MAX] = "another user";
    struct sockaddr_un at;
    struct stat        st;
    uid_t              uid;
    int                dir = -1;
    if (fd >= 0 && peer_user(fd, &uid))
        user_text(uid, user);
    else if (weir__sq_address(path, &at, &dir) && !stat(at.sun_path, &st))
        user_text(st.st_uid, user);
    if (dir >= 0)
        close(dir);
    return weir_fail(err, WEIR_EREADONLY, "%s: its owner is a process of another user (%s), which "
                     "serves its own user and root only: run this as that user, or open "
                     "the URL of a server; reading works", weir__sq_file_name(path), user);
}

void weir__sq_say_owner(const char *path, char *out, size_t size)
{
    char               user[USER_MAX], *mark = NULL;
    struct sockaddr_un at;
    struct stat        st;
    int                dir = -1;
    bool               there = weir__sq_address(path, &at, &dir) && !stat(at.sun_path, &st);
    if (dir >= 0)
        close(dir);
    if (!there && asprintf(&mark, "%s-owner", path) >= 0) {
        there = !stat(mark, &st);
        free(mark);
    }
    snprintf(out, size, "a process of %s", there ? user_text(st.st_uid, user) : "this machine");
}

/* The directory of the path, with its slash: how many bytes. */
static int folder_len(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

weir_code weir__sq_permission_fail(const char *path, int e, weir_error *err)
{
    char        folder[LINE_MAX_BYTES], user[USER_MAX];
    struct stat st;
    if (e == EROFS)
        return weir_fail(err, WEIR_EREADONLY, "%s: its file system is read-only: only reading "
                         "works", path);
    snprintf(folder, sizeof folder, "%.*s.", folder_len(path), path);
    bool there = !stat(path, &st);
    if (!there && (errno != ENOENT || stat(folder, &st)))
        return weir_fail(err, WEIR_EREADONLY, "%s: no permission to enter its directory", path);
    const char *what = there ? "it" : "and its directory";
    if (st.st_uid == geteuid())
        return weir_fail(err, WEIR_EREADONLY, "%s: no permission, though %s belongs to you: chmod "
                         "u+rw%s", path, there ? "it" : "its directory", there ? "" : "x");
    return weir_fail(err, WEIR_EREADONLY, "%s: no permission, %s belongs to %s: run this as that "
                     "user, or open the URL of a server that does", path, what,
                     user_text(st.st_uid, user));
}

/* The owner of a file makes PATH-owner beside it. */
weir_code weir__sq_may_write(const char *path, weir_error *err)
{
    char folder[LINE_MAX_BYTES], *mark;
    if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) && errno != ENOENT)
        return weir__sq_file_fail(path, errno, err);
    if (asprintf(&mark, "%s-owner", path) < 0)
        return weir_fail(err, WEIR_ENOMEM, "%s: out of memory", path);
    snprintf(folder, sizeof folder, "%.*s.", folder_len(path), path);
    weir_code rc = WEIR_OK;
    if (faccessat(AT_FDCWD, mark, R_OK | W_OK, AT_EACCESS) &&
        (errno != ENOENT || faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS)))
        rc = weir__sq_file_fail(mark, errno, err);
    free(mark);
    return rc;
}

/* ---- file systems ---- */

const char *weir__sq_network(unsigned long magic, const char *fuse)
{
    static const struct { unsigned long magic; const char *name; } by_magic[] = {
        { 0x6969, "nfs" },       { 0x517b, "smb" },       { 0xff534d42, "cifs" },
        { 0xfe534d42, "smb2" },  { 0x01021997, "9p" },    { 0x00c36400, "ceph" },
        { 0x5346414f, "afs" },   { 0x6b414653, "afs" },   { 0x73757245, "coda" },
        { 0x0bd00bd0, "lustre" },
    };
    static const char *const by_name[] = { "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs",
                                           "fuse.rclone", "fuse.ceph-fuse", "fuse.curlftpfs" };
    for (size_t i = 0; i < sizeof by_magic / sizeof *by_magic; i++)
        if (by_magic[i].magic == magic)
            return by_magic[i].name;
    for (size_t i = 0; magic == SQ_FUSE_MAGIC && i < sizeof by_name / sizeof *by_name; i++)
        if (!strcmp(by_name[i], fuse))
            return by_name[i];
    return NULL;
}

bool weir__sq_mount_type(const char *line, unsigned long dev, char *out, size_t size)
{
    unsigned    high, low;
    const char *type = strstr(line, " - ");
    if (sscanf(line, "%*u %*u %u:%u", &high, &low) != 2 || makedev(high, low) != dev || !type)
        return false;
    snprintf(out, size, "%.*s", (int)strcspn(type + 3, " "), type + 3);
    return true;
}

/* The kernel has one number for all FUSE file systems; their names are in the list of mounts. */
static void find_mount_type(const char *folder, char *out, size_t size)
{
    char        line[LINE_MAX_BYTES];
    struct stat st;
    FILE       *f = stat(folder, &st) ? NULL : fopen("/proc/self/mountinfo", "re");
    *out = 0;
    while (f && fgets(line, sizeof line, f))
        if (weir__sq_mount_type(line, st.st_dev, out, size))
            break;
    if (f)
        fclose(f);
}

weir_code weir__sq_place_check(const char *path, weir_error *err)
{
    char          folder[LINE_MAX_BYTES], fuse[64] = "";
    struct statfs fs;
    snprintf(folder, sizeof folder, "%.*s.", folder_len(path), path);
    if (statfs(folder, &fs))
        return WEIR_OK;                 /* opening the file says what is wrong */
    unsigned long magic = (unsigned long)fs.f_type & 0xffffffff;
    if (magic == SQ_FUSE_MAGIC)
        find_mount_type(folder, fuse, sizeof fuse);
    const char *network = weir__sq_network(magic, fuse);
    if (!network)
        return WEIR_OK;
    return weir_fail(err, WEIR_EINVAL, "%s is on a network file system (%s), where the locks and "
                     "the shared memory of SQLite do not reach all machines: put it on a local "
                     "disk; other machines use a server, or Redis", weir__sq_file_name(path),
                     network);
}
