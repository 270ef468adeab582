/* tasks.c - threads that call the library for tasks. */
#include "server/tasks.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

enum { THREADS = 4 };

struct srv_tasks {
    weir_tasks        *tasks;
    srv_loop          *loop[THREADS];
    _Atomic unsigned   next;
};

weir_code srv_tasks_create(srv_tasks **out, weir_queue *q, const char *table, weir_error *err)
{
    *out = NULL;
    srv_tasks *t = calloc(1, sizeof *t);
    if (!t)
        return weir_fail(err, WEIR_ENOMEM, "server: out of memory");
    weir_code rc = weir_tasks_open(&t->tasks, q, &(weir_tasks_config){ .table = table }, err);
    if (!rc)
        rc = weir_tasks_follow(t->tasks, err);
    for (int i = 0; i < THREADS && !rc; i++)
        rc = srv_loop_create(&t->loop[i], "weir-tasks", err);
    if (rc)
        srv_tasks_destroy(t);
    else
        *out = t;
    return rc;
}

void srv_tasks_destroy(srv_tasks *t)
{
    if (!t)
        return;
    for (int i = 0; i < THREADS; i++)
        srv_loop_destroy(t->loop[i]);
    weir_tasks_close(t->tasks);
    free(t);
}

static void run_ask(weir_inbox_task *task)
{
    srv_task_ask *ask = (srv_task_ask *)(void *)((char *)task - offsetof(srv_task_ask, task));
    ask->run(ask->tasks, ask);
    srv_loop_post(ask->loop, &ask->done);
}

void srv_tasks_post(srv_tasks *t, srv_task_ask *ask)
{
    ask->tasks = t->tasks;
    ask->task.run = run_ask;
    srv_loop_post(t->loop[atomic_fetch_add(&t->next, 1) % THREADS], &ask->task);
}
