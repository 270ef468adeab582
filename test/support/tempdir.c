/* tempdir.c - making and removing directories for tests. */
#include "support/tempdir.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool tempdir_make(char path[TEMPDIR_MAX])
{
    const char *base = getenv("TMPDIR");
    int n = snprintf(path, TEMPDIR_MAX, "%s/weir-test-XXXXXX", base && *base ? base : "/tmp");
    return n > 0 && n < TEMPDIR_MAX && mkdtemp(path);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void tempdir_remove(const char *path)
{
    if (path && *path)
        nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
