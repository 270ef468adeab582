/* group.c - see group.h. The kernel has no call that says which processes of a group are zombies,
 * so this reads /proc/PID/stat: "PID (NAME) STATE PPID GROUP SESSION TTY TPGID FLAGS ...". */
#include "cli/exec/group.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum {
    EXITING = 0x4,              /* in FLAGS: PF_EXITING of the kernel */
    STAT_BYTES = 512,           /* enough for the fields above */
    LIST_BYTES = 16 * 1024
};

static long next_number(const char **at)
{
    bool negative = **at == '-';
    long n = 0;
    for (*at += negative; **at >= '0' && **at <= '9'; ++*at)
        n = n * 10 + (**at - '0');
    *at += **at == ' ';
    return negative ? -n : n;
}

/* The group of a process that runs; 0: it does not. NAME may have anything in it, also ')'. */
static pid_t group_of(int proc, const char *pid)
{
    char   name[64], text[STAT_BYTES];
    size_t len = strlen(pid);
    if (len + sizeof "/stat" > sizeof name)
        return 0;
    memcpy(name, pid, len);
    memcpy(name + len, "/stat", sizeof "/stat");
    int     fd = openat(proc, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *at = strrchr(text, ')');
    if (!at || strlen(at) < 4 || at[2] == 'Z' || at[2] == 'X')
        return 0;
    at += 4;
    next_number(&at);                           /* of its parent */
    pid_t group = (pid_t)next_number(&at);
    for (int skipped = 0; skipped < 3; skipped++)
        next_number(&at);
    return next_number(&at) & EXITING ? 0 : group;
}

/* Move the group to those that were found. */
static int keep(pid_t *group, int n, int kept, pid_t found)
{
    for (int i = kept; found && i < n; i++) {
        if (group[i] == found) {
            group[i] = group[kept];
            group[kept] = found;
            return kept + 1;
        }
    }
    return kept;
}

int group_running(pid_t *group, int n)
{
    _Alignas(struct dirent64) char list[LIST_BYTES];
    ssize_t got;
    int     kept = 0, proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
        return n;
    while (kept < n && (got = getdents64(proc, list, sizeof list)) > 0) {
        const struct dirent64 *d;
        for (ssize_t at = 0; at < got; at += d->d_reclen) {
            d = (const struct dirent64 *)(list + at);
            if (d->d_name[0] >= '1' && d->d_name[0] <= '9')
                kept = keep(group, n, kept, group_of(proc, d->d_name));
        }
    }
    close(proc);
    return kept;
}
