/* shim.c - stands between a process and the C library (LD_PRELOAD): steps its wall clock, and fills
 * its disk. See shim.h. The monotonic clock is never touched. */
#undef _FILE_OFFSET_BITS        /* pwrite() and pwrite64() are two functions here */
#include "campaign/shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default)    /* the build hides all others */

#define REAL(name) real_function(&real_##name, #name)

static shim_page *page;

/* dlsym() returns void *, which is no function in C: callers copy the bits. */
static void *real_function(void **kept, const char *name)
{
    if (!*kept)
        *kept = dlsym(RTLD_NEXT, name);
    return *kept;
}

__attribute__((constructor)) static void map_page(void)
{
    const char *path = getenv(SHIM_PAGE_ENV);
    int         fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *map = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    page = map == MAP_FAILED ? NULL : map;
}

/* ---- the wall clock ---- */

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    static void *real_clock_gettime;
    int (*call)(clockid_t, struct timespec *);
    *(void **)&call = REAL(clock_gettime);
    int rc = call(clock, ts);
    if (!rc && page && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        ts->tv_sec += page->clock_step_s;
    return rc;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec ts;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &ts);
    *tv = (struct timeval){ ts.tv_sec, ts.tv_nsec / 1000 };
    return 0;
}

time_t time(time_t *out)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    if (out)
        *out = ts.tv_sec;
    return ts.tv_sec;
}

/* ---- the disk ---- */

/* Is this write to a file of a store, beyond its end? */
static bool no_room(int fd, off_t end)
{
    struct stat st;
    char        link[40], path[512];
    if (!page || !page->disk_full || end <= page->disk_full || fstat(fd, &st) ||
        !S_ISREG(st.st_mode) || end <= st.st_size)
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    return strstr(path, "/jobs.db") != NULL;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    static void *real_pwrite;
    ssize_t (*call)(int, const void *, size_t, off_t);
    *(void **)&call = REAL(pwrite);
    if (no_room(fd, at + (off_t)n)) {
        errno = ENOSPC;
        return -1;
    }
    return call(fd, bytes, n, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off_t at)
{
    return pwrite(fd, bytes, n, at);
}

int posix_fallocate(int fd, off_t at, off_t n)
{
    static void *real_posix_fallocate;
    int (*call)(int, off_t, off_t);
    *(void **)&call = REAL(posix_fallocate);
    return no_room(fd, at + n) ? ENOSPC : call(fd, at, n);
}
