/* firer.h - a thread that fires schedules. The timer wakes it after a TICK that says that some are
 * due: the timer itself must not wait, since it renews leases. The thread starts with the first
 * schedule that is due.
 *
 * However many processes fire at once, each firing adds one job. It has a number, the schedule's
 * turn, and its add carries a token with that number; a firing that is left out carries one, too,
 * with no job. Then the schedule is moved on to its next turn, if nobody has changed it since it
 * was read. A process that dies between the two leaves a schedule that is still due; the next
 * process repeats the add, which the store recognises. */
#ifndef WEIR_RUNTIME_FIRER_H
#define WEIR_RUNTIME_FIRER_H

#include <pthread.h>
#include <stdbool.h>
#include "weir/error.h"

struct weir_queue;

typedef struct weir_firer {
    pthread_mutex_t lock;           /* guards what follows */
    pthread_cond_t  work;
    pthread_t       thread;
    bool            started;        /* the thread */
    bool            wanted;         /* schedules are due */
    bool            closed;
} weir_firer;

void weir__firer_init(weir_firer *f);

/* Schedules are due. Any thread. WEIR_ENOMEM: there is no thread for it. */
weir_code weir__firer_wake(struct weir_queue *q, weir_error *err);

/* Wait for the round that is running, and stop the thread. */
void weir__firer_close(weir_firer *f);
void weir__firer_fini(weir_firer *f);

#endif
