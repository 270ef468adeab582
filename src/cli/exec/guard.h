/* guard.h - programs do not outlive the worker that started them, however it ends.
 *
 * The guard is a process of its own, at the other end of a pipe. Each program puts itself on the
 * guard's list before it begins, and the worker takes it off when the program has ended. When the
 * pipe closes, the worker is dead: the guard kills what is left, all processes of each (group.h).
 * Until they have all ended, it keeps the descriptor of weir_guard_fd() open. So the next owner of
 * a SQLite file does not start their jobs beside them. A process that was there already becomes the
 * owner without waiting: it gives the dead worker's jobs to others when their leases end. */
#ifndef WEIR_CLI_GUARD_H
#define WEIR_CLI_GUARD_H

#include <sys/types.h>
#include "cli/exec/group.h"
#include "weir/weir.h"

typedef struct guard {
    pid_t    pid;
    int      fd;         /* our end of the pipe */
    uint64_t marks;      /* programs are marked with the numbers from this one on: nobody else's */
} guard;

/* Start it, with the store open. */
weir_code guard_start(guard *g, weir_queue *q, weir_error *err);

/* All programs have ended. */
void guard_stop(guard *g);

/* In the program's process, between fork() and exec(): put it on the list. */
void guard_add(const guard *g, uint64_t mark);

/* The program has ended, but has not been waited for: until then nobody else can have the number of
 * its group. */
void guard_remove(const guard *g, uint64_t mark);

#endif
