/* group.c - see group.h. The kernel has no call that says which processes of a group are zombies,
 * so this reads /proc/PID/stat: "PID (NAME) STATE PPID GROUP SESSION TTY TPGID FLAGS ...". Marks
 * are in /proc/PID/environ: "NAME=VALUE" with a NUL behind each. */
#include "cli/exec/group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    EXITING = 0x4,              /* in FLAGS: PF_EXITING of the kernel */
    STAT_BYTES = 512,           /* enough for the fields above */
    ENV_BYTES = 16 * 1024,      /* of an environment, at a time */
    LIST_BYTES = 16 * 1024,
    DIGITS = 16,
    LOOK_MS = 2
};

/* A file of /proc/PID; -1: the process is gone, or somebody else's. */
static int open_file(int proc, const char *pid, const char *file)
{
    char   name[64];
    size_t len = strlen(pid), more = strlen(file) + 1;
    if (len + more > sizeof name)
        return -1;
    memcpy(name, pid, len);
    memcpy(name + len, file, more);
    return openat(proc, name, O_RDONLY | O_CLOEXEC);
}

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
    char    text[STAT_BYTES];
    int     fd = open_file(proc, pid, "/stat");
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *at = strrchr(text, ')');
    if (!at || strlen(at) < 4 || at[2] == 'Z' || at[2] == 'X')
        return 0;
    at += 4;
    next_number(&at);                           /* of its parent */
    pid_t id = (pid_t)next_number(&at);
    for (int skipped = 0; skipped < 3; skipped++)
        next_number(&at);
    return next_number(&at) & EXITING ? 0 : id;
}

static uint64_t mark_at(const char *digits)
{
    uint64_t mark = 0;
    for (int i = 0; i < DIGITS; i++) {
        char c = digits[i];
        mark = mark * 16 + (uint64_t)(c >= 'a' ? c - 'a' + 10 : c - '0');
    }
    return mark;
}

/* The mark of a process; 0: it has none. A variable may go over the end of what was read at once:
 * then it is moved to the front. */
static uint64_t mark_of(int proc, const char *pid)
{
    static const char variable[] = "\0" GROUP_MARK "=";
    enum { NAME = sizeof variable - 1, WHOLE = NAME + DIGITS };
    char     text[1 + ENV_BYTES] = { 0 };
    size_t   have = 1;                          /* the first variable has a NUL before it, too */
    uint64_t mark = 0;
    ssize_t  n;
    int      fd = open_file(proc, pid, "/environ");
    while (fd >= 0 && !mark && (n = read(fd, text + have, sizeof text - have)) > 0) {
        have += (size_t)n;
        const char *found = memmem(text, have, variable, NAME);
        size_t      keep = found ? (size_t)(text + have - found) : NAME - 1;
        if (found && keep >= WHOLE)
            mark = mark_at(found + NAME);
        keep = keep < have ? keep : have;
        memmove(text, text + have - keep, keep);
        have = keep;
    }
    if (fd >= 0)
        close(fd);
    return mark;
}

/* Which of the programs is the process of? -1: of none. */
static int find(const group *g, int n, int proc, const char *pid, bool *has_left)
{
    pid_t id = group_of(proc, pid);
    for (int i = 0; id && i < n; i++)
        if (g[i].id == id)
            return i;
    uint64_t mark = id ? mark_of(proc, pid) : 0;
    *has_left = true;
    for (int i = 0; mark && i < n; i++)
        if (g[i].mark == mark)
            return i;
    return -1;
}

/* Once a group is gone, somebody else may get its number. */
static void signal_groups(group *g, int n, int sig)
{
    for (int i = 0; sig && i < n; i++)
        if (g[i].id && kill(-g[i].id, sig) && errno == ESRCH)
            g[i].id = 0;
}

static void signal_process(const char *pid, int sig)
{
    kill((pid_t)next_number(&pid), sig);
}

int group_signal(group *g, int n, int sig)
{
    _Alignas(struct dirent64) char list[LIST_BYTES];
    ssize_t got;
    int     kept = 0, proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    signal_groups(g, n, sig);
    if (proc < 0)
        return n;
    while ((sig || kept < n) && (got = getdents64(proc, list, sizeof list)) > 0) {
        const struct dirent64 *d;
        for (ssize_t at = 0; at < got; at += d->d_reclen) {
            d = (const struct dirent64 *)(list + at);
            bool has_left = false;
            bool is_pid = d->d_name[0] >= '1' && d->d_name[0] <= '9';
            int  i = is_pid ? find(g, n, proc, d->d_name, &has_left) : -1;
            if (sig && i >= 0 && has_left)
                signal_process(d->d_name, sig);
            if (i >= kept) {
                group found = g[i];
                g[i] = g[kept];
                g[kept++] = found;
            }
        }
    }
    close(proc);
    return kept;
}

void group_kill(group *g, int n)
{
    for (int waited = 0; waited < GROUP_WAIT_MS; waited += LOOK_MS) {
        n = group_signal(g, n, SIGKILL);
        if (!n)
            return;
        nanosleep(&(struct timespec){ .tv_nsec = LOOK_MS * 1000000L }, NULL);
    }
}
