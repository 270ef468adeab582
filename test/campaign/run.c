/* run.c - the children of one run of the campaign. See campaign.h. */
#include "campaign/campaign.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    FINISH_MS = 300000,         /* a run that takes longer to finish has lost its jobs */
    AWAIT_MS = 30000            /* for an add that is acknowledged */
};

static void exec_child(const run *r)
{
    char from[32], to[32], poison[32];
    snprintf(from, sizeof from, "%" PRIu64, r->next_key);
    snprintf(to, sizeof to, "%" PRIu64, r->next_key + r->keys_each);
    snprintf(poison, sizeof poison, "%" PRIu64, r->poison);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!r->place.server)               /* Redis: the clock of the server counts */
        place_use_shim(&r->place);
    execl("/proc/self/exe", "campaign", "--child", from, to, r->place.url, r->ledger, poison,
          r->adds_only ? "add" : "work", (char *)NULL);
    _exit(127);
}

pid_t run_start_child(run *r)
{
    pid_t pid = fork();
    if (pid == 0)
        exec_child(r);
    r->next_key += r->keys_each;
    r->child[r->n_children++] = pid;
    return pid;
}

static void forget(run *r, int i)
{
    memmove(&r->child[i], &r->child[i + 1], (size_t)(r->n_children - i - 1) * sizeof *r->child);
    r->child[--r->n_children] = 0;
}

/* False: it was killed. One that fails by itself is trouble. */
static bool ended_well(run *r, int status)
{
    if (WIFSIGNALED(status))
        return false;
    if (WEXITSTATUS(status) && !r->trouble[0])
        snprintf(r->trouble, sizeof r->trouble, "a child failed with status %d",
                 WEXITSTATUS(status));
    return true;
}

void run_kill_oldest(run *r)
{
    int status;
    kill(r->child[0], SIGKILL);
    waitpid(r->child[0], &status, 0);
    ended_well(r, status);
    forget(r, 0);
}

bool run_ended(run *r)
{
    int status;
    waitpid(r->child[0], &status, 0);
    forget(r, 0);
    return ended_well(r, status);
}

/* Take note of children that have ended. */
static void reap(run *r)
{
    for (int i = 0, status; i < r->n_children;) {
        if (waitpid(r->child[i], &status, WNOHANG) != r->child[i]) {
            i++;
            continue;
        }
        if (!ended_well(r, status))
            snprintf(r->trouble, sizeof r->trouble, "signal %d ended a child", WTERMSIG(status));
        forget(r, i);
    }
}

void run_keep_busy(run *r)
{
    reap(r);
    while (r->n_children < r->place.kind->children)
        run_start_child(r);
}

static int64_t monotonic_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void run_finish(run *r)
{
    int64_t since = monotonic_ms();
    r->keys_each = 0;
    run_start_child(r);
    while (r->n_children && monotonic_ms() - since < FINISH_MS) {
        reap(r);
        run_pause(r, 5, 10);
    }
    if (r->n_children && !r->trouble[0])
        snprintf(r->trouble, sizeof r->trouble, "not finished after %d s", FINISH_MS / 1000);
    while (r->n_children)
        run_kill_oldest(r);
}

void run_await_acknowledged(run *r)
{
    uint64_t before = ledger_acknowledged(r->ledger);
    for (int64_t since = monotonic_ms(); monotonic_ms() - since < AWAIT_MS;) {
        run_keep_busy(r);
        if (r->trouble[0] || ledger_acknowledged(r->ledger) > before)
            return;
        run_pause(r, 2, 5);
    }
}

void run_pause(run *r, int from_ms, int to_ms)
{
    uint64_t us = ledger_random(&r->place.random) % ((uint64_t)(to_ms - from_ms) * 1000 + 1);
    us += (uint64_t)from_ms * 1000;
    nanosleep(&(struct timespec){ (time_t)(us / 1000000), (long)(us % 1000000) * 1000 }, NULL);
}
