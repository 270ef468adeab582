/* beside.c - see beside.h. */
#include "support/beside.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *beside(const char *name, int up, char path[PATH_MAX])
{
    char    self[PATH_MAX - 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    for (int i = 0; i < up; i++) {
        char *slash = strrchr(self, '/');
        if (slash)
            *slash = '\0';
    }
    snprintf(path, PATH_MAX, "%s/%s", self, name);
    return path;
}
