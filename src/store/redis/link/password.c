/* password.c - the password of a store that is in a file, not in its URL. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/redis/link/link.h"

/* The first line of the file. A line that is too long is refused, not cut. */
static weir_code take_line(redis_url *u, char *text, size_t len, weir_error *err)
{
    size_t end = 0;
    while (end < len && text[end] != '\n' && text[end] != '\r')
        end++;
    if (!end || end >= sizeof u->password || memchr(text, '\0', end))
        return weir_fail(err, WEIR_EINVAL, "password-file %s: the first line must be the password, "
                                           "1 to %zu bytes", u->password_file,
                         sizeof u->password - 1);
    memcpy(u->password, text, end);
    u->password[end] = '\0';
    return WEIR_OK;
}

weir_code weir__redis_password(redis_url *u, weir_error *err)
{
    struct stat st;
    char        text[sizeof u->password + 2];
    if (!*u->password_file)
        return WEIR_OK;
    int fd = open(u->password_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st)) {
        weir_code rc = weir_fail(err, WEIR_EINVAL, "password-file %s: %s", u->password_file,
                                 strerror(errno));
        if (fd >= 0)
            close(fd);
        return rc;
    }
    weir_code rc = WEIR_OK;
    ssize_t   len = 0;
    if (!S_ISREG(st.st_mode))
        rc = weir_fail(err, WEIR_EINVAL, "password-file %s: not a file", u->password_file);
    else if (st.st_mode & (S_IROTH | S_IWOTH))
        rc = weir_fail(err, WEIR_EINVAL, "password-file %s: every user of this machine may read or "
                                         "change it: chmod 600", u->password_file);
    else if ((len = read(fd, text, sizeof text)) < 0)
        rc = weir_fail(err, WEIR_EINVAL, "password-file %s: %s", u->password_file, strerror(errno));
    else
        rc = take_line(u, text, (size_t)len, err);
    close(fd);
    explicit_bzero(text, sizeof text);
    return rc;
}
