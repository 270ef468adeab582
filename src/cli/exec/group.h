/* group.h - does anything of a process group still run? System calls only: for a process that was
 * forked from one with threads. */
#ifndef WEIR_CLI_GROUP_H
#define WEIR_CLI_GROUP_H

#include <sys/types.h>

/* Keep those of the n groups in which a process runs, at the front: how many. A process that has
 * exited does not run, also if nobody has waited for it yet (a zombie). Without /proc all are
 * kept. */
int group_running(pid_t *group, int n);

#endif
