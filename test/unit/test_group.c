/* test_group.c - which programs have a process that runs, and signals to all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/exec/group.h"

/* A child in a group of its own, which runs until it is killed. Its name is hard to read. */
static pid_t start(pid_t leader)
{
    int up[2];
    assert_int_equal(pipe(up), 0);
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "a) Z 1 (b");
        setpgid(0, leader);
        (void)!write(up[1], "x", 1);
        for (;;)
            pause();
    }
    char byte;
    assert_int_equal(read(up[0], &byte, 1), 1);
    close(up[0]);
    close(up[1]);
    return pid;
}

/* It is a zombie when this returns. */
static void end(pid_t pid)
{
    siginfo_t info;
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void zombies_do_not_run(void **state)
{
    (void)state;
    pid_t a = start(0), b = start(0), b2 = start(b), none = 0x7ffffff0;
    group g[] = { { .id = none }, { .id = a }, { .id = b } };
    assert_int_equal(group_signal(g, 3, 0), 2);
    assert_true((g[0].id == a && g[1].id == b) || (g[0].id == b && g[1].id == a));
    end(a);
    end(b);                                 /* its leader, but not all of it */
    g[0].id = a;
    g[1].id = b;
    assert_int_equal(group_signal(g, 2, 0), 1);
    assert_int_equal(g[0].id, b);
    end(b2);
    assert_int_equal(group_signal(g, 1, 0), 0);
    assert_int_equal(group_signal(g, 0, 0), 0);
    while (wait(NULL) > 0)
        ;
}

/* A process with this environment, in a session of its own; it runs until it is killed. */
static pid_t start_with(char **env)
{
    int   up[2];
    char  byte;
    char *argv[] = { "sleep", "600", NULL };
    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setsid();
        execve("/bin/sleep", argv, env);
        _exit(127);
    }
    close(up[1]);
    assert_int_equal(read(up[0], &byte, 1), 0);     /* closed by exec */
    close(up[0]);
    return pid;
}

static bool was_killed(pid_t pid, int options)
{
    int status;
    return waitpid(pid, &status, options) == pid && WIFSIGNALED(status);
}

/* The mark is found wherever it is in an environment that is read in parts. */
static void those_that_left_are_found_by_their_mark(void **state)
{
    (void)state;
    enum { PART = 16 * 1024, AROUND = 40 };
    static char filler[PART + AROUND];
    char        mark[] = GROUP_MARK "=00000000deadbeef";
    char        near[] = "X" GROUP_MARK "=00000000deadbeef";
    char       *other[] = { near, GROUP_MARK "=00000000deadbeee", NULL };
    pid_t       neighbour = start_with(other);
    for (size_t len = PART - AROUND; len < PART + 4; len++) {
        memset(filler, 'x', len);
        filler[1] = '=';
        filler[len] = 0;
        char *env[] = { filler, mark, NULL };
        pid_t pid = start_with(env);
        group g = { .id = 0x7ffffff0, .mark = 0xdeadbeef };
        assert_int_equal(group_signal(&g, 1, 0), 1);
        group_kill(&g, 1);
        assert_true(was_killed(pid, 0));
        assert_int_equal(group_signal(&g, 1, 0), 0);
    }
    assert_false(was_killed(neighbour, WNOHANG));
    end(neighbour);
    while (wait(NULL) > 0)
        ;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zombies_do_not_run),
        cmocka_unit_test(those_that_left_are_found_by_their_mark),
    };
    return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
