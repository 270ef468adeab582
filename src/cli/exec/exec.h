/* exec.h - do a job with a program. Its standard input has the data, its standard output the
 * result, descriptor 3 progress and log lines. If it fails, the last line of standard error is the
 * reason. */
#ifndef WEIR_CLI_EXEC_H
#define WEIR_CLI_EXEC_H

#include <stdatomic.h>
#include "cli/log.h"
#include "weir/weir.h"

struct guard;

/* A program that cannot run stops the worker; jobs that all fail slow it down: a thread waits when
 * its job has ended, and before it takes another. */
enum {
    EXEC_STREAK   = 10,            /* failures in a row, from which on ... */
    EXEC_SLOW_MS  = 100,           /* ... a thread waits after each: this long, then twice ... */
    EXEC_SLOWEST_MS = 30000        /* ... as long, up to this */
};

typedef struct exec_config {
    weir_queue *q;
    const char *command;           /* for /bin/sh -c */
    char      **argv;              /* or the program itself; NULL: command */
    int         changed;           /* eventfd, written when `cannot` is set, or when the end of the
                                      job `slow_id` will not be seen */
    const char *pass_env;          /* variables WEIR_* that it gets too: "A,B"; NULL: none */
    const cli_log *log;            /* has the lines of its standard error; NULL: passed on as is */
    int64_t     kill_after_ms;     /* from SIGTERM to SIGKILL */
    const struct guard *guard;     /* kills what runs when this process is dead */
    _Atomic uint64_t started;      /* programs, ever */
    atomic_bool kill_now;          /* kill what runs, at once */
    atomic_int  running;           /* programs that have not been reaped */
    atomic_bool stopping;          /* the pool is being stopped: nothing waits any more */
    atomic_int  cannot;            /* exit status or errno of a program that cannot run; 0: none */
    atomic_int  streak;            /* executions that failed, one after the other */
    _Atomic uint64_t slow_id;      /* the job that has slowed this worker down, and ... */
    _Atomic uint32_t slow_delivery;     /* ... its delivery, until that was said; 0: none */
} exec_config;

/* A weir_handler; ctx is the exec_config. SIGPIPE must be ignored in this process. */
weir_code exec_job(weir_job *job, void *ctx);

#endif
