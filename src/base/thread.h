/* thread.h - the library's own threads: named, and with signals blocked, which belong to the
 * program. */
#ifndef WEIR_BASE_THREAD_H
#define WEIR_BASE_THREAD_H

#include <pthread.h>
#include "weir/error.h"

weir_code weir__thread_start(pthread_t *out, void *(*main)(void *), void *arg, const char *name,
                             weir_error *err);

#endif
