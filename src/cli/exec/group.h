/* group.h - the processes of a program: its process group, and processes that have left it (setsid)
 * and have its mark in their environment. System calls only: for a process that was forked from one
 * with threads. */
#ifndef WEIR_CLI_GROUP_H
#define WEIR_CLI_GROUP_H

#include <stdint.h>
#include <sys/types.h>

/* The variable with the mark, as 16 digits. A process that clears its environment has no mark. */
#define GROUP_MARK "WEIR_PROGRAM"

typedef struct group {
    pid_t    id;            /* the process group; its leader is the program. 0: it is gone */
    uint64_t mark;          /* nobody else has it */
} group;

/* Send a signal to all processes of these n programs (0: to none) and keep those programs of which
 * a process runs, at the front: how many. A process that has exited does not run, also if nobody
 * has waited for it yet (a zombie). Without /proc all are kept, and marks do not help. */
int group_signal(group *g, int n, int sig);

/* Kill them until nothing of them runs, but for GROUP_WAIT_MS at most. */
enum { GROUP_WAIT_MS = 3000 };
void group_kill(group *g, int n);

#endif
