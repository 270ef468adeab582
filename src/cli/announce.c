/* announce.c - where the server of this user is, and its store: see announce.h. */
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

enum { MAX_FILE = 16 * 1024 };

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

/* A URL ends at '?', and JSON is UTF-8: a path that cannot be said so is left out. */
static json_t *to_json(const char *address, const char *file)
{
    json_t *all = json_pack("{s:s, s:i}", "address", address, "pid", (int)getpid());
    if (all && file && !strchr(file, '?')) {
        json_t *store = json_sprintf("sqlite:%s", file);
        if (store)
            json_object_set_new(all, "store", store);
    }
    return all;
}

static weir_code write_all(const announcement *a, const char *address, const char *file,
                           weir_error *err)
{
    char    text[MAX_FILE];
    json_t *all = to_json(address, file);
    size_t  n = json_dumpb(all, text, sizeof text - 1, JSON_COMPACT);
    json_decref(all);
    if (!n || n >= sizeof text)
        return weir_fail(err, WEIR_EINVAL, "the address of the server is too long");
    text[n++] = '\n';
    if (ftruncate(a->fd, 0) || pwrite(a->fd, text, n, 0) != (ssize_t)n)
        return trouble(a->path, err);
    return WEIR_OK;
}

/* Is it the file that has this path now? A server that ended has removed its own file. */
static bool is_there(const announcement *a)
{
    struct stat mine, there;
    return !fstat(a->fd, &mine) && !lstat(a->path, &there) && mine.st_dev == there.st_dev &&
           mine.st_ino == there.st_ino;
}

/* Open the file, and lock it. On failure a->fd is -1. */
static weir_code lock_file(announcement *a, weir_error *err)
{
    weir_code rc = WEIR_OK;
    do {
        if (a->fd >= 0)
            close(a->fd);
        a->fd = open(a->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (a->fd < 0)
            return trouble(a->path, err);
        if (flock(a->fd, LOCK_EX | LOCK_NB))
            rc = weir_fail(err, WEIR_EBUSY, "another of your servers is running already: see %s",
                           a->path);
    } while (!rc && !is_there(a));
    if (rc) {
        close(a->fd);
        a->fd = -1;
    }
    return rc;
}

weir_code announce_begin(announcement *a, const char *address, const char *file, weir_error *err)
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
    rc = lock_file(a, err);
    if (!rc && (rc = write_all(a, address, file, err)))
        announce_end(a);
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

/* The text of the file, if the server that wrote it is alive; else 0. */
static size_t read_file(char *text, size_t size)
{
    char path[4096];
    if (!path_of(path, sizeof path))
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return 0;
    struct stat st;
    bool        alive = !fstat(fd, &st) && st.st_uid == geteuid() &&
                 flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
    ssize_t     n = alive ? read(fd, text, size) : 0;
    close(fd);
    return n > 0 ? (size_t)n : 0;
}

/* False: it is missing, or does not fit. */
static bool copy_text(char *out, size_t size, const json_t *file, const char *name)
{
    const char *text = json_string_value(json_object_get(file, name));
    int         len = text ? snprintf(out, size, "%s", text) : 0;
    bool        fits = len > 0 && (size_t)len < size;
    if (!fits)
        *out = 0;
    return fits;
}

static bool can_change(const char *store)
{
    static const char scheme[] = "sqlite:";
    size_t            len = sizeof scheme - 1;
    return !strncmp(store, scheme, len) &&
           !faccessat(AT_FDCWD, store + len, R_OK | W_OK, AT_EACCESS);
}

bool announce_find(announced *out)
{
    char    text[MAX_FILE];
    size_t  n = read_file(text, sizeof text);
    json_t *file = n ? json_loadb(text, n, 0, NULL) : NULL;
    bool    found = copy_text(out->address, sizeof out->address, file, "address");
    if (!copy_text(out->store, sizeof out->store, file, "store") || !can_change(out->store))
        *out->store = 0;
    json_decref(file);
    return found;
}
