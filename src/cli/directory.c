/* directory.c - directories of this user alone. */
#include "cli/directory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

weir_code cli_make_directory(const char *dir, weir_error *err)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/", dir) >= (int)sizeof path)
        return weir_fail(err, WEIR_EINVAL, "the path of the data directory is too long");
    for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = 0;
        if (mkdir(path, 0700) && errno != EEXIST)
            return weir_fail(err, errno == EACCES || errno == EROFS ? WEIR_EREADONLY : WEIR_EIO,
                             "cannot make %s: %s", path, strerror(errno));
        *p = '/';
    }
    return WEIR_OK;
}
