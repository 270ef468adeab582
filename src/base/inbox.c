/* inbox.c - tasks that other threads leave for one thread: see inbox.h. */
#include "base/inbox.h"

#include <stddef.h>

void weir__inbox_init(weir_inbox *in)
{
    *in = (weir_inbox){ .last = &in->first };
    pthread_mutex_init(&in->lock, NULL);
}

void weir__inbox_fini(weir_inbox *in)
{
    pthread_mutex_destroy(&in->lock);
}

bool weir__inbox_post(weir_inbox *in, weir_inbox_task *task)
{
    task->next = NULL;
    pthread_mutex_lock(&in->lock);
    bool wake = !in->first && !in->awake;
    *in->last = task;
    in->last = &task->next;
    pthread_mutex_unlock(&in->lock);
    return wake;
}

/* All that waits. If nothing does, or this is the last round, the next post wakes the owner. */
static weir_inbox_task *take_all(weir_inbox *in, bool last_round)
{
    pthread_mutex_lock(&in->lock);
    weir_inbox_task *task = in->first;
    in->first = NULL;
    in->last = &in->first;
    in->awake = task && !last_round;
    pthread_mutex_unlock(&in->lock);
    return task;
}

void weir__inbox_run(weir_inbox *in, int rounds)
{
    weir_inbox_task *task;
    for (int round = 1; round <= rounds && (task = take_all(in, round == rounds)); round++)
        while (task) {
            weir_inbox_task *next = task->next;
            task->run(task);
            task = next;
        }
}

bool weir__inbox_is_empty(weir_inbox *in)
{
    pthread_mutex_lock(&in->lock);
    bool empty = !in->first;
    pthread_mutex_unlock(&in->lock);
    return empty;
}
