/* guard.c - see guard.h. The guard is forked from a process with threads: it uses nothing but
 * system calls. */
#include "cli/exec/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HIGH_FD = 10 };           /* the pipe stays clear of the descriptors of programs */

/* Shorter than PIPE_BUF: comes as a whole. */
typedef struct message {
    group program;
    bool  ends;                  /* else it begins */
} message;

/* ---- the guard's process ---- */

/* Programs that run: at most one for each thread of the worker. */
typedef struct list {
    group program[WEIR_MAX_THREADS];
    int   n;
} list;

static int find(const list *l, uint64_t mark)
{
    int i = 0;
    while (i < l->n && l->program[i].mark != mark)
        i++;
    return i;
}

static void take_message(list *l, const message *m)
{
    int i = find(l, m->program.mark);
    if (!m->ends && i == l->n && l->n < WEIR_MAX_THREADS)
        l->program[l->n++] = m->program;
    if (m->ends && i < l->n)
        l->program[i] = l->program[--l->n];
}

/* Until nobody has the other end. */
static void receive(int fd, list *l)
{
    message m;
    for (;;) {
        ssize_t n = read(fd, &m, sizeof m);
        if (n == (ssize_t)sizeof m)
            take_message(l, &m);
        else if (n >= 0 || errno != EINTR)
            return;
    }
}

/* If the worker itself is part of a program, its guard is not: it has to outlive that program. */
static void drop_mark(void)
{
    char *mark = getenv(GROUP_MARK);
    if (mark)
        memset(mark, 0, strlen(mark));
}

/* A session of its own: what is typed at the terminal, or sent to the worker's group, is not for
 * the guard. Descriptors of the worker must not stay open here, except weir_guard_fd(). */
static _Noreturn void run_guard(int fd, int lock)
{
    static list l;
    setsid();
    drop_mark();
    prctl(PR_SET_NAME, "weir-guard");
    dup2(fd, 0);
    if (lock < 0)
        close(1);
    else
        dup2(lock, 1);
    close_range(2, ~0u, 0);
    receive(0, &l);
    group_kill(l.program, l.n);
    _exit(0);
}

/* ---- the worker's side ---- */

weir_code guard_start(guard *g, weir_queue *q, weir_error *err)
{
    int ends[2], lock = weir_guard_fd(q);
    *g = (guard){ .pid = -1, .fd = -1 };
    if (getrandom(&g->marks, sizeof g->marks, 0) != (ssize_t)sizeof g->marks)
        return weir_fail(err, WEIR_EIO, "cannot get a random number: %s", strerror(errno));
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

static void send_message(const guard *g, message m)
{
    while (write(g->fd, &m, sizeof m) < 0 && errno == EINTR)
        continue;
}

void guard_add(const guard *g, uint64_t mark)
{
    send_message(g, (message){ .program = { .id = getpid(), .mark = mark } });
}

void guard_remove(const guard *g, uint64_t mark)
{
    send_message(g, (message){ .program.mark = mark, .ends = true });
}
