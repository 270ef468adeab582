/* access_log.c - see access_log.h. Each line is one write() to a file that is open for appending,
 * so that lines of several threads do not mix. */
#include "server/http/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"

struct srv_access_log {
    int  fd;                    /* the same number for as long as the log lives */
    char path[];                /* "-": standard error */
};

static weir_code open_file(const char *path, int *out, weir_error *err)
{
    *out = strcmp(path, "-") == 0
               ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)
               : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    if (*out < 0)
        return weir_fail(err, errno == EACCES || errno == EROFS ? WEIR_EREADONLY : WEIR_EIO,
                         "access log: %s: %s", path, strerror(errno));
    return WEIR_OK;
}

weir_code srv_access_log_create(srv_access_log **out, const char *path, weir_error *err)
{
    size_t          size = strlen(path) + 1;
    srv_access_log *l = malloc(sizeof *l + size);
    *out = NULL;
    if (!l)
        return weir_fail(err, WEIR_ENOMEM, "access log: out of memory");
    memcpy(l->path, path, size);
    weir_code rc = open_file(path, &l->fd, err);
    if (rc)
        free(l);
    else
        *out = l;
    return rc;
}

weir_code srv_access_log_reopen(srv_access_log *l, weir_error *err)
{
    int       fd;
    weir_code rc = open_file(l->path, &fd, err);
    if (rc)
        return rc;
    dup3(fd, l->fd, O_CLOEXEC);         /* at once, also for those who are writing */
    close(fd);
    return WEIR_OK;
}

void srv_access_log_destroy(srv_access_log *l)
{
    if (!l)
        return;
    close(l->fd);
    free(l);
}

static void add_text(weir_buf *b, const char *name, const char *text)
{
    weir__buf_printf(b, ",\"%s\":", name);
    weir__json_text_or_null(b, text);
}

void srv_access_log_write(srv_access_log *l, const srv_access *a)
{
    int64_t   now = weir__wall_ms();
    time_t    seconds = (time_t)(now / 1000);
    struct tm tm;
    char      day[32];
    weir_buf  line = { 0 };
    gmtime_r(&seconds, &tm);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
    weir__buf_printf(&line, "{\"time\":\"%s.%03dZ\"", day, (int)(now % 1000));
    add_text(&line, "peer", a->peer);
    add_text(&line, "token", a->token && *a->token ? a->token : NULL);
    add_text(&line, "method", a->method);
    add_text(&line, "path", a->path);
    weir__buf_printf(&line, ",\"status\":%d,\"bytes\":%zu,\"ms\":%lld}\n", a->status, a->bytes,
                     (long long)a->ms);
    ssize_t n = line.failed ? 0 : write(l->fd, line.data, line.len);
    (void)n;
    weir__buf_fini(&line);
}
