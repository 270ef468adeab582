/* exec.h - do a job with a program: data on its standard input, the result on its standard
 * output, progress and log lines on descriptor 3, the last line of standard error as the reason
 * when it fails. */
#ifndef WEIR_CLI_EXEC_H
#define WEIR_CLI_EXEC_H

#include <stdatomic.h>
#include "weir/weir.h"

struct guard;

typedef struct exec_config {
    const char *command;           /* for /bin/sh -c */
    const char *pass_env;          /* variables WEIR_* that it gets too: "A,B"; NULL: none */
    int64_t     kill_after_ms;     /* from SIGTERM to SIGKILL */
    const struct guard *guard;     /* kills what runs when this process is dead */
    atomic_bool hurry;             /* kill what runs, at once */
    atomic_int  running;           /* programs that have not been reaped */
} exec_config;

/* A weir_handler; ctx is the exec_config. SIGPIPE must be ignored in this process. */
weir_code exec_job(weir_job *job, void *ctx);

#endif
