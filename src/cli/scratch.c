/* scratch.c - see scratch.h. */
#include "cli/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

weir_code cli_scratch_make(char *dir, size_t dir_size, char *url, size_t url_size, weir_error *err)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, dir_size, "%s/weir-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return weir_fail(err, WEIR_EIO, "%s: %s", dir, strerror(errno));
    snprintf(url, url_size, "sqlite:%s/jobs.db", dir);
    return WEIR_OK;
}

void cli_scratch_remove(const char *dir)
{
    DIR *d = opendir(dir);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    rmdir(dir);
}
