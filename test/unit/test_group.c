/* test_group.c - which process groups have a process that runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/exec/group.h"

/* A child in a group of its own, which runs until it is killed. Its name is hard to read. */
static pid_t start(pid_t group)
{
    int up[2];
    assert_int_equal(pipe(up), 0);
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "a) Z 1 (b");
        setpgid(0, group);
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
    pid_t group[] = { none, a, b };
    assert_int_equal(group_running(group, 3), 2);
    assert_true((group[0] == a && group[1] == b) || (group[0] == b && group[1] == a));
    end(a);
    end(b);                                 /* its leader, but not all of it */
    group[0] = a;
    group[1] = b;
    assert_int_equal(group_running(group, 2), 1);
    assert_int_equal(group[0], b);
    end(b2);
    assert_int_equal(group_running(group, 1), 0);
    assert_int_equal(group_running(group, 0), 0);
    while (wait(NULL) > 0)
        ;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(zombies_do_not_run) };
    return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
