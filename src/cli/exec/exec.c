/* exec.c - one program for one job. All its pipes are served by one poll loop, so that a program
 * that reads and writes much at the same time cannot get stuck. */
#include "cli/exec/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/cli.h"
#include "cli/exec/exec_lines.h"
#include "cli/exec/guard.h"

#define TRACEPARENT "TRACEPARENT"

extern char **environ;

enum {
    LOOK_MS = 50,              /* how often a running program's job is asked whether it goes on */
    CHUNK = 64 * 1024,
    MAX_TURNS = 64,            /* chunks read at once: more than a pipe holds */
    EXIT_NOT_STARTED = 127,    /* as the shell's: no such program */
    EXIT_NOT_EXECUTABLE = 126,
    FIRST_FREE_FD = 10         /* our ends of pipes stay clear of the descriptors of the child */
};

enum { IN, OUT, ERR, CTL, PIPES };

typedef struct child {
    weir_job    *job;
    exec_config *config;
    pid_t        pid;
    uint64_t     mark;
    int          pidfd;            /* -1: the kernel has none; then we look now and then */
    int          fd[PIPES];        /* our ends; -1 when closed */
    size_t       sent;             /* of the data */
    text         out;
    text         line[2];          /* what is not a whole line yet: of ERR and CTL */
    char         reason[200];      /* the last line of ERR that was not blank */
    char         error[400];       /* the job's, if it has failed; "": not noted */
    bool         too_much;         /* more output than a result may have */
    bool         term_sent;        /* SIGTERM was sent ... */
    bool         killed;           /* ... and SIGKILL */
    bool         reaped;
    int64_t      term_sent_at;
    int          status;
} child;

/* ---- start ---- */

/* A pipe whose ends are closed by exec and have high numbers. */
static bool make_pipe(int ends[2])
{
    int low[2];
    if (pipe2(low, O_CLOEXEC))
        return false;
    ends[0] = fcntl(low[0], F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    ends[1] = fcntl(low[1], F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    int why = errno;
    close(low[0]);
    close(low[1]);
    errno = why;
    return ends[0] >= 0 && ends[1] >= 0;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Is `name` one of the names in `list`, which have commas between them? */
static bool is_listed(const char *list, const char *name, size_t len)
{
    while (list && *list) {
        size_t n = strcspn(list, ",");
        if (n == len && !memcmp(list, name, len))
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

/* Our own variables may hold a token, or a store with its password: a program gets only the
 * variables that were asked for. */
static bool is_passed_on(const char *variable, const char *pass_env)
{
    if (strncmp(variable, TRACEPARENT "=", sizeof TRACEPARENT) == 0)
        return false;
    return strncmp(variable, "WEIR_", 5) != 0 ||
           (strncmp(variable, "WEIR_JOB_", 9) != 0 &&
            strncmp(variable, GROUP_MARK "=", sizeof GROUP_MARK) != 0 &&
            is_listed(pass_env, variable, strcspn(variable, "=")));
}

/* The environment of this process with the job's variables; one block, free(). */
static char **make_environment(const weir_job *job, const char *pass_env, uint64_t mark)
{
    enum { OURS = 7, ROOM = WEIR_MAX_TYPE + 40 };
    size_t n = 0;
    while (environ[n])
        n++;
    char **env = malloc((n + OURS + 1) * sizeof *env + OURS * ROOM);
    if (!env)
        return NULL;
    char  *at = (char *)(env + n + OURS + 1);
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (is_passed_on(environ[i], pass_env))
            env[k++] = environ[i];
    snprintf(env[k++] = at, ROOM, "WEIR_JOB_ID=%llu", (unsigned long long)job->id);
    snprintf(env[k++] = at + ROOM, ROOM, "WEIR_JOB_TYPE=%s", job->type);
    snprintf(env[k++] = at + 2 * ROOM, ROOM, "WEIR_JOB_ATTEMPT=%ld", (long)job->attempts + 1);
    snprintf(env[k++] = at + 3 * ROOM, ROOM, "WEIR_JOB_MAX_ATTEMPTS=%ld", (long)job->max_attempts);
    snprintf(env[k++] = at + 4 * ROOM, ROOM, "WEIR_JOB_DELIVERY=%lu", (unsigned long)job->delivery);
    snprintf(env[k++] = at + 5 * ROOM, ROOM, GROUP_MARK "=%016llx", (unsigned long long)mark);
    char trace[WEIR_TRACEPARENT_LEN + 1];
    if (weir_job_trace(job, trace))
        snprintf(env[k++] = at + 6 * ROOM, ROOM, TRACEPARENT "=%s", trace);
    env[k] = NULL;
    return env;
}

/* In the child: nothing but system calls, since other threads do not exist here. A process group of
 * its own, on the guard's list; no signal blocked or ignored. Should the guard be dead too, the
 * kernel kills at least this process with its worker: it was forked by the thread that waits for
 * it. */
static _Noreturn void become_program(const child *ch, const int theirs[PIPES], char **env,
                                     pid_t worker)
{
    char    *argv[] = { "sh", "-c", (char *)ch->config->command, NULL };
    sigset_t none;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != worker)
        _exit(EXIT_NOT_STARTED);
    guard_add(ch->config->guard, ch->mark);
    for (int i = 0; i < PIPES; i++)
        if (dup2(theirs[i], i) < 0)
            _exit(EXIT_NOT_STARTED);
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (ch->config->argv)
        execvpe(ch->config->argv[0], ch->config->argv, env);
    else
        execve("/bin/sh", argv, env);
    int               why = errno;
    static const char message[] = "cannot start the program\n";
    (void)!write(STDERR_FILENO, message, sizeof message - 1);
    _exit(why == ENOENT ? EXIT_NOT_STARTED : EXIT_NOT_EXECUTABLE);
}

static int spawn(child *ch, const int theirs[PIPES], char **env)
{
    pid_t worker = getpid();
    ch->pid = fork();
    if (ch->pid == 0)
        become_program(ch, theirs, env, worker);
    if (ch->pid < 0)
        return errno;
    setpgid(ch->pid, ch->pid);          /* whoever comes first: signals go to the group */
    return 0;
}

static int start(child *ch)
{
    int    theirs[PIPES] = { -1, -1, -1, -1 };
    int    rc = 0;
    ch->mark = ch->config->guard->marks + atomic_fetch_add(&ch->config->started, 1);
    char **env = make_environment(ch->job, ch->config->pass_env, ch->mark);
    if (!env)
        return ENOMEM;
    for (int i = 0; i < PIPES && !rc; i++) {
        int ends[2] = { -1, -1 };
        if (!make_pipe(ends))
            rc = errno;
        ch->fd[i] = ends[i == IN];
        theirs[i] = ends[i != IN];
    }
    if (!rc)
        rc = spawn(ch, theirs, env);
    for (int i = 0; i < PIPES; i++) {
        close_fd(&theirs[i]);
        if (ch->fd[i] >= 0)
            fcntl(ch->fd[i], F_SETFL, O_NONBLOCK);
    }
    free(env);
    if (!rc)
        ch->pidfd = pidfd_open(ch->pid, 0);
    return rc;
}

/* ---- what it says ---- */

static void control_line(void *ctx, const char *line)
{
    child *ch = ctx;
    said   s = said_on_fd3(line);
    if (s.kind == SAID_PROGRESS) {
        weir_code rc = weir_job_progress(ch->job, s.done, s.total, s.text, 0, NULL);
        if (rc != WEIR_EINVAL && rc != WEIR_ELIMIT)
            return;
        s.kind = SAID_OTHER;
    }
    if (s.kind == SAID_LOG)
        weir_job_log(ch->job, "%s", s.text);
    else if (s.kind == SAID_OTHER)
        weir_job_log(ch->job, "fd 3 | %s", line);
}

static void error_line(void *ctx, const char *line)
{
    child *ch = ctx;
    if (ch->config->log)
        cli_log_write(ch->config->log, &(log_line){ .text = line, .job = ch->job });
    while (*line == ' ' || *line == '\t')
        line++;
    if (*line)
        snprintf(ch->reason, sizeof ch->reason, "%s", line);
}

static void pass_on(const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t w = write(STDERR_FILENO, bytes, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return;
        bytes += w;
        n -= (size_t)w;
    }
}

static void got(child *ch, int which, const char *bytes, size_t n)
{
    if (which == OUT) {
        /* Two more than allowed, for the line's end (CR LF) that is not part of the result. */
        if (ch->out.len + n > WEIR_MAX_DATA + 2 || !text_add(&ch->out, bytes, n))
            ch->too_much = true;
        return;
    }
    if (which == ERR && !ch->config->log)
        pass_on(bytes, n);
    lines_add(&ch->line[which == CTL], bytes, n, which == CTL ? control_line : error_line, ch);
}

/* Read what is there. */
static void receive(child *ch, int which)
{
    char buf[CHUNK];
    for (int turn = 0; ch->fd[which] >= 0 && turn < MAX_TURNS; turn++) {
        ssize_t n = read(ch->fd[which], buf, sizeof buf);
        if (n > 0) {
            got(ch, which, buf, (size_t)n);
            if ((size_t)n < sizeof buf && !ch->reaped)
                return;
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && errno == EAGAIN) {
            return;
        } else {
            close_fd(&ch->fd[which]);
        }
    }
}

static void send_data(child *ch)
{
    while (ch->sent < ch->job->data_len) {
        ssize_t n = write(ch->fd[IN], ch->job->data + ch->sent, ch->job->data_len - ch->sent);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            break;                  /* it need not read its input */
        ch->sent += (size_t)n;
    }
    close_fd(&ch->fd[IN]);
}

/* ---- while it runs ---- */

/* While the leader of the group has ended but was not waited for, nobody else can have its number.
 * That is when a program that SIGTERM was sent to is killed, and when the guard forgets it. */
static void reap(child *ch)
{
    siginfo_t info = { 0 };
    pid_t     got_pid;
    if (waitid(P_PID, (id_t)ch->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid != ch->pid)
        return;
    if (ch->term_sent)
        group_kill(&(group){ .id = ch->pid, .mark = ch->mark }, 1);
    guard_remove(ch->config->guard, ch->mark);
    do
        got_pid = waitpid(ch->pid, &ch->status, WNOHANG);
    while (got_pid < 0 && errno == EINTR);
    ch->reaped = got_pid == ch->pid || got_pid < 0;
}

static void signal_all(const child *ch, int sig)
{
    group_signal(&(group){ .id = ch->pid, .mark = ch->mark }, 1, sig);
}

/* SIGTERM first, SIGKILL when that did not help; to all processes of the program. */
static void end_it(child *ch)
{
    int64_t now = cli_clock_ms();
    bool    at_once = atomic_load(&ch->config->kill_now);
    if (!ch->term_sent && !at_once && !weir_job_cancelled(ch->job) && !ch->too_much)
        return;
    if (!ch->term_sent) {
        ch->term_sent = true;
        ch->term_sent_at = now;
        signal_all(ch, SIGTERM);
    }
    if (!ch->killed && (at_once || now - ch->term_sent_at >= ch->config->kill_after_ms)) {
        ch->killed = true;
        signal_all(ch, SIGKILL);
    }
}

static void serve(child *ch)
{
    while (!ch->reaped) {
        struct pollfd p[PIPES + 1];
        for (int i = 0; i < PIPES; i++)
            p[i] = (struct pollfd){ .fd = ch->fd[i], .events = i == IN ? POLLOUT : POLLIN };
        p[PIPES] = (struct pollfd){ .fd = ch->pidfd, .events = POLLIN };
        poll(p, PIPES + 1, LOOK_MS);
        if (p[IN].revents)
            send_data(ch);
        for (int i = OUT; i < PIPES; i++)
            if (p[i].revents)
                receive(ch, i);
        end_it(ch);
        if (ch->pidfd < 0 || p[PIPES].revents)
            reap(ch);
    }
    /* Its output is in the pipes. We do not wait for their end: something it left
     * running may still hold them. */
    for (int i = OUT; i < PIPES; i++)
        receive(ch, i);
    lines_end(&ch->line[0], error_line, ch);
    lines_end(&ch->line[1], control_line, ch);
}

/* ---- the outcome ---- */

/* Note that the job has failed. */
static __attribute__((format(printf, 2, 3))) weir_code fail(child *ch, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(ch->error, sizeof ch->error, fmt, args);
    va_end(args);
    return weir_job_fail(ch->job, "%s", ch->error);
}

/* JSON as it is, other text as a string. */
static weir_code done(child *ch)
{
    text *t = &ch->out;
    while (t->len && (t->bytes[t->len - 1] == '\n' || t->bytes[t->len - 1] == '\r'))
        t->bytes[--t->len] = 0;
    if (t->len == 0)
        return weir_job_done(ch->job, NULL, 0, NULL);
    weir_code rc = WEIR_EINVAL;
    if (!memchr(t->bytes, 0, t->len))
        rc = weir_job_done(ch->job, t->bytes, 0, NULL);
    if (rc == WEIR_EINVAL) {
        char  *string = NULL;
        size_t len = 0;
        FILE  *f = open_memstream(&string, &len);
        if (!f)
            return fail(ch, "out of memory");
        jw_string(f, t->bytes, t->len);
        fclose(f);
        rc = weir_job_done(ch->job, string, 0, NULL);
        free(string);
    }
    if (rc == WEIR_ELIMIT)
        return fail(ch, "the output is too long for a result: over %d bytes", WEIR_MAX_DATA);
    return rc;
}

/* The job is not to blame: it waits again, and the worker stops. What the pool says of this
 * delivery afterwards is stale. */
static weir_code give_back(exec_config *config, weir_job *job, int why)
{
    weir_ending end = { .id = job->id, .delivery = job->delivery, .outcome = WEIR_OUTCOME_RETURN };
    weir_ended  out;
    atomic_store(&config->cannot, why);
    eventfd_write(config->changed, 1);
    while (!atomic_load(&config->stopping))         /* else this pool would take it again */
        poll(NULL, 0, LOOK_MS);
    weir_finish(config->q, &end, 1, &out, NULL);
    return weir_job_fail(job, "cannot run the program");
}

static bool is_no_program(int status)
{
    return WIFEXITED(status) && (WEXITSTATUS(status) == EXIT_NOT_STARTED ||
                                 WEXITSTATUS(status) == EXIT_NOT_EXECUTABLE);
}

/* End the failed job before its handler returns. What the pool says of this delivery afterwards is
 * stale. */
static bool end_now(const child *ch)
{
    weir_ending end = { .id = ch->job->id, .delivery = ch->job->delivery,
                        .outcome = WEIR_OUTCOME_FAIL, .text = ch->error };
    weir_ended  out;
    return *ch->error && !weir_finish(ch->config->q, &end, 1, &out, NULL) && !out.err.code;
}

/* When all jobs fail, something is wrong that is not theirs. A thread then ends its job, and waits
 * for a while before it takes another. */
static void slow_down(const child *ch, bool failed)
{
    exec_config *config = ch->config;
    int streak = failed ? atomic_fetch_add(&config->streak, 1) + 1 : 0;
    if (!failed)
        atomic_store(&config->streak, 0);
    if (streak < EXEC_STREAK)
        return;
    if (streak == EXEC_STREAK) {
        atomic_store(&config->slow_delivery, ch->job->delivery);
        atomic_store(&config->slow_id, ch->job->id);
    }
    if (!end_now(ch) && streak == EXEC_STREAK)
        eventfd_write(config->changed, 1);
    int     doubled = streak - EXEC_STREAK < 10 ? streak - EXEC_STREAK : 10;
    int64_t ms = (int64_t)EXEC_SLOW_MS << doubled;
    int64_t end = cli_clock_ms() + (ms > EXEC_SLOWEST_MS ? EXEC_SLOWEST_MS : ms);
    while (cli_clock_ms() < end && !atomic_load(&config->stopping))
        poll(NULL, 0, LOOK_MS);
}

static weir_code outcome(child *ch)
{
    const char *colon = *ch->reason ? ": " : "";
    if (atomic_load(&ch->config->kill_now) && ch->killed)
        return fail(ch, "Shutdown");
    if (ch->too_much)
        return fail(ch, "the output is too long for a result: over %d bytes", WEIR_MAX_DATA);
    if (WIFSIGNALED(ch->status)) {
        int sig = WTERMSIG(ch->status);
        return fail(ch, "killed by signal %d (%s)%s%s", sig, sigdescr_np(sig), colon, ch->reason);
    }
    if (is_no_program(ch->status))
        return give_back(ch->config, ch->job, WEXITSTATUS(ch->status));
    if (WEXITSTATUS(ch->status) != 0)
        return fail(ch, "exit status %d%s%s", WEXITSTATUS(ch->status), colon, ch->reason);
    return done(ch);
}

weir_code exec_job(weir_job *job, void *ctx)
{
    exec_config *config = ctx;
    child        ch = { .job = job, .config = config, .pidfd = -1, .fd = { -1, -1, -1, -1 } };
    weir_code    rc;
    atomic_fetch_add(&config->running, 1);
    int why = start(&ch);
    if (why) {
        rc = give_back(config, job, why);
    } else {
        serve(&ch);
        rc = outcome(&ch);
        slow_down(&ch, rc == WEIR_EJOB);
    }
    for (int i = 0; i < PIPES; i++)
        close_fd(&ch.fd[i]);
    close_fd(&ch.pidfd);
    free(ch.out.bytes);
    free(ch.line[0].bytes);
    free(ch.line[1].bytes);
    atomic_fetch_sub(&config->running, 1);
    return rc;
}
