/* guard.c - see guard.h. The guard is forked from a process with threads: it uses nothing but
 * system calls. */
#include "cli/exec/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "cli/exec/group.h"

enum {
    HIGH_FD  = 10,               /* the pipe stays clear of the descriptors of programs */
    LOOK_MS  = 2,
    WAIT_MS  = 3000              /* for killed groups to go */
};

/* ---- the guard's process ---- */

/* Groups that run: at most one for each thread of the worker. */
typedef struct list {
    pid_t group[WEIR_MAX_THREADS];
    int   n;
} list;

static int find(const list *l, pid_t group)
{
    int i = 0;
    while (i < l->n && l->group[i] != group)
        i++;
    return i;
}

/* A positive number comes from a program that begins, a negative one from the worker. */
static void take_message(list *l, pid_t message)
{
    int i = find(l, message < 0 ? -message : message);
    if (message > 0 && i == l->n && l->n < WEIR_MAX_THREADS)
        l->group[l->n++] = message;
    if (message < 0 && i < l->n)
        l->group[i] = l->group[--l->n];
}

/* Until nobody has the other end. */
static void receive(int fd, list *l)
{
    pid_t message;
    for (;;) {
        ssize_t n = read(fd, &message, sizeof message);
        if (n == (ssize_t)sizeof message)
            take_message(l, message);
        else if (n >= 0 || errno != EINTR)
            return;
    }
}

/* Kill the groups until nothing of them runs any more. */
static void kill_all(list *l)
{
    for (int waited = 0; l->n && waited < WAIT_MS; waited += LOOK_MS) {
        for (int i = l->n - 1; i >= 0; i--)
            if (kill(-l->group[i], SIGKILL) && errno == ESRCH)
                l->group[i] = l->group[--l->n];
        l->n = group_running(l->group, l->n);
        if (l->n)
            nanosleep(&(struct timespec){ .tv_nsec = LOOK_MS * 1000000L }, NULL);
    }
}

/* A session of its own: what is typed at the terminal, or sent to the worker's group, is not for
 * the guard. Descriptors of the worker must not stay open here, but for that of weir_guard_fd(). */
static _Noreturn void run_guard(int fd, int lock)
{
    static list l;
    setsid();
    prctl(PR_SET_NAME, "weir-guard");
    dup2(fd, 0);
    if (lock < 0)
        close(1);
    else
        dup2(lock, 1);
    close_range(2, ~0u, 0);
    receive(0, &l);
    kill_all(&l);
    _exit(0);
}

/* ---- the worker's side ---- */

weir_code guard_start(guard *g, weir_queue *q, weir_error *err)
{
    int ends[2], lock = weir_guard_fd(q);
    *g = (guard){ .pid = -1, .fd = -1 };
    if (pipe2(ends, O_CLOEXEC))
        return weir_fail(err, WEIR_EIO, "cannot make a pipe: %s", strerror(errno));
    g->fd = fcntl(ends[1], F_DUPFD_CLOEXEC, HIGH_FD);
    close(ends[1]);
    g->pid = g->fd < 0 ? -1 : fork();
    if (g->pid == 0)
        run_guard(ends[0], lock);
    int why = errno;
    close(ends[0]);
    if (g->pid > 0)
        return WEIR_OK;
    guard_stop(g);
    return weir_fail(err, WEIR_EIO, "cannot start a process: %s", strerror(why));
}

void guard_stop(guard *g)
{
    if (g->fd >= 0)
        close(g->fd);
    while (g->pid > 0 && waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    *g = (guard){ .pid = -1, .fd = -1 };
}

static void send_message(const guard *g, pid_t message)
{
    while (write(g->fd, &message, sizeof message) < 0 && errno == EINTR)
        continue;
}

void guard_add(const guard *g)
{
    send_message(g, getpid());
}

void guard_remove(const guard *g, pid_t group)
{
    send_message(g, -group);
}
