/* announce.c - where the server of this user is: see announce.h. */
#include "cli/announce.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/directory.h"

enum { MAX_FILE = 4096 };

/* False: there is no place for it. */
static bool path_of(char *out, size_t size)
{
    static const struct {
        const char *variable, *rest;
    } places[] = {
        { "WEIR_DATA", "" },
        { "XDG_RUNTIME_DIR", "/weir" },
        { "XDG_DATA_HOME", "/weir" },
        { "HOME", "/.local/share/weir" },
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *dir = getenv(places[i].variable);
        if (!dir || *dir != '/')
            continue;
        int n = snprintf(out, size, "%s%s/server.json", dir, places[i].rest);
        return n > 0 && (size_t)n < size;
    }
    return false;
}

static weir_code trouble(const char *path, weir_error *err)
{
    return weir_fail(err, errno == EACCES || errno == EROFS ? WEIR_EREADONLY : WEIR_EIO, "%s: %s",
                     path, strerror(errno));
}

static weir_code write_all(const announcement *a, const char *address, weir_error *err)
{
    char text[MAX_FILE];
    int  n = snprintf(text, sizeof text, "{\"address\":\"%s\",\"pid\":%d}\n", address,
                      (int)getpid());
    if (n < 0 || (size_t)n >= sizeof text)
        return weir_fail(err, WEIR_EINVAL, "the address of the server is too long");
    if (ftruncate(a->fd, 0) || pwrite(a->fd, text, (size_t)n, 0) != n)
        return trouble(a->path, err);
    return WEIR_OK;
}

weir_code announce_begin(announcement *a, const char *address, weir_error *err)
{
    weir_error mine;
    if (!err)
        err = &mine;
    *a = (announcement){ .fd = -1 };
    if (!path_of(a->path, sizeof a->path))
        return weir_fail(err, WEIR_EINVAL, "neither XDG_RUNTIME_DIR nor HOME is set: other "
                                           "programs will not find the server by themselves");
    char dir[sizeof a->path];
    strcpy(dir, a->path);
    *strrchr(dir, '/') = 0;
    weir_code rc = cli_make_directory(dir, err);
    if (rc)
        return rc;
    a->fd = open(a->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (a->fd < 0)
        return trouble(a->path, err);
    if (flock(a->fd, LOCK_EX | LOCK_NB))
        rc = weir_fail(err, WEIR_EBUSY, "another server of yours is there already: see %s",
                       a->path);
    else
        rc = write_all(a, address, err);
    if (rc) {
        close(a->fd);
        a->fd = -1;
    }
    return rc;
}

void announce_end(announcement *a)
{
    if (a->fd < 0)
        return;
    unlink(a->path);
    close(a->fd);
    a->fd = -1;
}

bool announce_find(char *url, size_t size)
{
    char path[4096], text[MAX_FILE];
    if (!path_of(path, sizeof path))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    struct stat st;
    bool        alive = !fstat(fd, &st) && st.st_uid == geteuid() &&
                 flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
    ssize_t     n = alive ? read(fd, text, sizeof text) : 0;
    close(fd);
    if (n <= 0)
        return false;
    json_t     *file = json_loadb(text, (size_t)n, 0, NULL);
    const char *address = json_string_value(json_object_get(file, "address"));
    int         len = address ? snprintf(url, size, "%s", address) : 0;
    json_decref(file);
    return len > 0 && (size_t)len < size;
}
