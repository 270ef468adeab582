/* dial.c - the socket beside a SQLite file: its address, and connecting to the owner. */
#include "store/sqlite/share.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

enum { MAX_WELCOME = 4096 };        /* bytes */

/* ---- where it is ---- */

static bool fits(int n, const struct sockaddr_un *at)
{
    return n > 0 && (size_t)n < sizeof at->sun_path;
}

/* A name that always fits, for files whose own name is too long. */
static uint64_t hash_name(const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return h;
}

bool weir__sq_address(const char *path, struct sockaddr_un *out, int *dir)
{
    const char *slash = strrchr(path, '/');
    *out = (struct sockaddr_un){ .sun_family = AF_UNIX };
    *dir = -1;
    if (fits(snprintf(out->sun_path, sizeof out->sun_path, "%s-socket", path), out))
        return true;
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    if (!folder)
        return false;
    *dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (*dir < 0)
        return false;
    const char *name = slash ? slash + 1 : path;
    return fits(snprintf(out->sun_path, sizeof out->sun_path, "/proc/self/fd/%d/%s-socket", *dir,
                         name), out) ||
           fits(snprintf(out->sun_path, sizeof out->sun_path, "/proc/self/fd/%d/weir-%016" PRIx64
                         "-socket", *dir, hash_name(name)), out);
}

/* ---- connecting ---- */

static int connect_to(const char *path, weir_error *err)
{
    struct sockaddr_un at;
    int                dir = -1, fd = -1, why = ENAMETOOLONG;
    if (weir__sq_address(path, &at, &dir)) {
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        why = errno;
        if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at)) {
            why = errno;
            close(fd);
            fd = -1;
        }
    }
    if (dir >= 0)
        close(dir);
    if (fd >= 0 && !weir__sq_trusts(fd, path)) {
        weir__sq_foreign_owner(fd, path, err);
        close(fd);
        fd = -1;
    } else if (fd < 0 && (why == EACCES || why == EPERM)) {
        weir__sq_foreign_owner(fd, path, err);
    } else if (fd < 0) {
        weir_fail(err, WEIR_EUNAVAIL, "%s-socket: %s", path, strerror(why));
    }
    return fd;
}

/* Wait until there is something to read. False: the time is over, or `stop_fd` is readable. */
static bool wait_input(int fd, int stop_fd, weir_deadline until)
{
    struct pollfd fds[2] = { { .fd = fd, .events = POLLIN }, { .fd = stop_fd, .events = POLLIN } };
    int           n;
    do
        n = poll(fds, 2, (int)weir__deadline_left_ms(until));
    while (n < 0 && errno == EINTR);
    return n > 0 && fds[0].revents && !fds[1].revents;
}

/* Read the owner's first frame. */
static weir_code read_welcome(int fd, int stop_fd, weir_deadline until, const char *path,
                              sq_welcome *out, weir_error *err)
{
    weir_buf in = { 0 };
    sq_head  head = { 0 };
    size_t   size;
    while (!(size = weir__sq_frame_at(&in, 0, &head))) {
        size_t  more = (in.len < sizeof head ? sizeof head : sizeof head + head.size) - in.len;
        ssize_t n = -1;                         /* no more than that: events may follow */
        if (head.size > MAX_WELCOME || !wait_input(fd, stop_fd, until) ||
            !weir__buf_reserve(&in, more) || (n = recv(fd, in.data + in.len, more, 0)) <= 0) {
            bool late = n < 0 && weir__deadline_left_ms(until) <= 0;
            weir__buf_fini(&in);
            return weir_fail(err, late ? WEIR_ETIMEOUT : WEIR_EUNAVAIL,
                             n ? "%s: its owner does not answer" : "%s: its owner has gone", path);
        }
        in.len += (size_t)n;
    }
    const char *bytes = in.data + sizeof head;
    weir_code   rc = WEIR_OK;
    if (size != SIZE_MAX && head.kind == SQF_REFUSED)
        rc = weir_fail(err, WEIR_EBUSY, "%s: %.*s", path, (int)head.size, bytes);
    else if (size == SIZE_MAX || head.kind != SQF_WELCOME ||
             !weir__sq_welcome_get(bytes, head.size, out))
        rc = weir_fail(err, WEIR_EVERSION, "%s: its owner is another version of weir: use the same "
                       "for all processes", path);
    weir__buf_fini(&in);
    return rc;
}

int weir__sq_dial(const char *path, const sq_hello *hello, int stop_fd, int64_t wait_ms,
                  sq_welcome *out, weir_error *err)
{
    weir_deadline until = weir__deadline_in(wait_ms);
    weir_buf      frame = { 0 };
    int           fd = connect_to(path, err);
    if (fd < 0)
        return -1;
    weir__sq_frame_put(&frame, SQF_HELLO, hello, sizeof *hello);
    weir_code rc = WEIR_OK;
    if (frame.failed)
        rc = weir_fail(err, WEIR_ENOMEM, "%s: out of memory", path);
    else
        (void)!send(fd, frame.data, frame.len, MSG_NOSIGNAL);   /* a refusal may be there before */
    if (!rc)
        rc = read_welcome(fd, stop_fd, until, path, out, err);
    weir__buf_fini(&frame);
    if (rc) {
        close(fd);
        return -1;
    }
    return fd;
}
