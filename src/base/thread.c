/* thread.c - starting a thread: see thread.h. */
#include "base/thread.h"

#include <signal.h>
#include <string.h>

weir_code weir__thread_start(pthread_t *out, void *(*main)(void *), void *arg, const char *name,
                             weir_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);   /* inherited by the thread */
    int rc = pthread_create(out, NULL, main, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc)
        return weir_fail(err, WEIR_ENOMEM, "cannot start a thread: %s", strerror(rc));
    pthread_setname_np(*out, name);
    return WEIR_OK;
}
