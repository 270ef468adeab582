/* notify.c - see notify.h. The protocol is one datagram of text, which libsystemd would be a large
 * thing to depend on for. */
#include "cli/notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify(const char *fmt, ...)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    const char        *path = getenv("NOTIFY_SOCKET");
    size_t             len = path ? strlen(path) : 0;
    if ((len && *path != '/' && *path != '@') || len < 2 || len >= sizeof to.sun_path)
        return;
    memcpy(to.sun_path, path, len);
    if (*path == '@')           /* a name that is in no directory */
        to.sun_path[0] = 0;
    char    text[1000];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    ssize_t n = sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to,
                       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    (void)n;                    /* without a manager there is nobody to report to */
    close(fd);
}
