/* child.c - starting, hearing and ending other processes of a test: see child.h. */
#include "support/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/runtime_fixture.h"

enum { MAX_ARGS = 16 };

/* ---- in the child ---- */

const char *child_role(int argc, char **argv)
{
    return argc > 2 && !strcmp(argv[1], "--role") ? argv[2] : NULL;
}

void child_print(const char *format, ...)
{
    char    line[512];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(line, sizeof line - 1, format, ap);
    va_end(ap);
    line[n] = '\n';
    if (write(1, line, (size_t)n + 1) != n + 1)
        _exit(1);                   /* nobody is there any more */
}

bool child_told(char *line, size_t size)
{
    if (!fgets(line, (int)size, stdin))
        return false;
    line[strcspn(line, "\n")] = 0;
    return true;
}

/* ---- in the test ---- */

static void *read_lines(void *arg)
{
    child *c = arg;
    char   part[4096];
    for (;;) {
        ssize_t n = read(c->out, part, sizeof part);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return NULL;
        pthread_mutex_lock(&c->lock);
        if (c->len + (size_t)n + 1 > c->room) {
            c->room = 2 * (c->len + (size_t)n + 1);
            c->text = realloc(c->text, c->room);
            if (!c->text)
                abort();
        }
        memcpy(c->text + c->len, part, (size_t)n);
        c->len += (size_t)n;
        c->text[c->len] = 0;
        pthread_mutex_unlock(&c->lock);
    }
}

static void exec_role(char **args, pid_t parent, int in, int out)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    dup2(in, 0);
    dup2(out, 1);
    execv("/proc/self/exe", args);
    _exit(127);
}

child *child_start(const char *role, ...)
{
    char   *args[MAX_ARGS + 4] = { (char *)role, (char *)"--role", (char *)role };
    int     n = 3, to_child[2], to_us[2];
    pid_t   parent = getpid();
    va_list ap;
    va_start(ap, role);
    for (char *arg; n < MAX_ARGS + 3 && (arg = va_arg(ap, char *));)
        args[n++] = arg;
    va_end(ap);
    child *c = calloc(1, sizeof *c);
    assert_non_null(c);
    assert_int_equal(pipe2(to_child, O_CLOEXEC), 0);
    assert_int_equal(pipe2(to_us, O_CLOEXEC), 0);
    snprintf(c->name, sizeof c->name, "%s", role);
    pthread_mutex_init(&c->lock, NULL);
    c->pid = fork();
    assert_true(c->pid >= 0);
    if (c->pid == 0)
        exec_role(args, parent, to_child[0], to_us[1]);
    close(to_child[0]);
    close(to_us[1]);
    c->in = to_child[1];
    c->out = to_us[0];
    assert_int_equal(pthread_create(&c->reader, NULL, read_lines, c), 0);
    return c;
}

void child_tell(child *c, const char *line)
{
    char text[512];
    int  n = snprintf(text, sizeof text, "%s\n", line);
    assert_int_equal(write(c->in, text, (size_t)n), n);
}

void child_each(child *c, void (*each)(const char *line, void *ctx), void *ctx)
{
    char line[512];
    pthread_mutex_lock(&c->lock);
    for (size_t at = 0; at < c->len;) {
        const char *end = memchr(c->text + at, '\n', c->len - at);
        if (!end)
            break;                  /* the rest of this one has not come yet */
        size_t len = (size_t)(end - c->text) - at;
        snprintf(line, sizeof line, "%.*s", (int)len, c->text + at);
        each(line, ctx);
        at += len + 1;
    }
    pthread_mutex_unlock(&c->lock);
}

typedef struct tally {
    const char *start;
    size_t      n;
} tally;

static void tally_line(const char *line, void *ctx)
{
    tally *t = ctx;
    t->n += strncmp(line, t->start, strlen(t->start)) == 0;
}

size_t child_count(child *c, const char *start)
{
    tally t = { start, 0 };
    child_each(c, tally_line, &t);
    return t.n;
}

void child_until(child *c, const char *start, size_t n)
{
    int64_t end = rt_ms() + PATIENCE_MS;
    while (child_count(c, start) < n) {
        if (rt_ms() > end || (c->pid && kill(c->pid, 0)))
            fail_msg("%s: %zu of %zu lines \"%s\"", c->name, child_count(c, start), n, start);
        rt_breathe();
    }
}

/* Wait for the process and for the rest of its words. */
static int gather(child *c)
{
    int status = -1;
    if (c->in >= 0)
        close(c->in);
    c->in = -1;
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        ;
    c->pid = 0;
    pthread_join(c->reader, NULL);
    return status;
}

void child_kill9(child *c)
{
    if (!c->pid)
        return;
    kill(c->pid, SIGKILL);
    gather(c);
}

void child_free(child *c)
{
    if (!c)
        return;
    child_kill9(c);
    close(c->out);
    pthread_mutex_destroy(&c->lock);
    free(c->text);
    free(c);
}

void child_end(child *c)
{
    char name[sizeof c->name];
    snprintf(name, sizeof name, "%s", c->name);
    int status = c->pid ? gather(c) : 0;
    child_free(c);
    if (status)
        fail_msg("%s ended with status %d", name, status);
}
