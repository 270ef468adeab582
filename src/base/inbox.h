/* inbox.h - tasks that other threads leave for one thread.
 *
 * Any thread posts; the thread that owns the inbox runs what was posted, in that order. A task is
 * part of the poster's own memory, so posting cannot fail; a task is not posted again before it has
 * run. How the owner sleeps is its own matter (eventfd, curl_multi_poll()): post() says when it has
 * to be woken, which is once for all tasks that come while it is busy. */
#ifndef WEIR_BASE_INBOX_H
#define WEIR_BASE_INBOX_H

#include <pthread.h>
#include <stdbool.h>

typedef struct weir_inbox_task {
    struct weir_inbox_task *next;
    void (*run)(struct weir_inbox_task *task);      /* the task may be freed or posted in it */
} weir_inbox_task;

typedef struct weir_inbox {
    pthread_mutex_t lock;           /* guards what follows */
    weir_inbox_task *first, **last;
    bool            awake;          /* the owner looks again before it sleeps */
} weir_inbox;

void weir__inbox_init(weir_inbox *in);
void weir__inbox_fini(weir_inbox *in);

/* True: wake the owner, which may sleep. Any thread. */
bool weir__inbox_post(weir_inbox *in, weir_inbox_task *task);

/* Owner: run what was posted, and what is posted meanwhile, in at most `rounds` rounds. Tasks that
 * remain wake the owner again. */
void weir__inbox_run(weir_inbox *in, int rounds);

bool weir__inbox_is_empty(weir_inbox *in);

#endif
