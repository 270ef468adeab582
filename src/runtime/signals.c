/* signals.c - weir_run(): work until a signal says stop. */
#include <signal.h>

#include "weir/worker.h"

int weir_run(weir_queue *q, weir_error *err)
{
    sigset_t stop, before;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, &before);
    int got;
    while (sigwait(&stop, &got))
        ;
    weir_code rc = weir_stop(q, NULL, WEIR_DRAIN_MS, err);
    if (!rc)
        rc = weir_ready(q, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return weir_code_exit(rc);
}
