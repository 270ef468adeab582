/* tasks.h - threads that call the library for tasks (weir/task.h): these calls wait. */
#ifndef WEIR_SERVER_TASKS_H
#define WEIR_SERVER_TASKS_H

#include "server/http/loop.h"
#include "weir/task.h"

typedef struct srv_tasks srv_tasks;

/* The queue must stay open until srv_tasks_destroy(). `table`: of record; NULL: none. On success
 * *out belongs to the caller. */
weir_code srv_tasks_create(srv_tasks **out, weir_queue *q, const char *table, weir_error *err);
void srv_tasks_destroy(srv_tasks *t);           /* NULL is fine. Nothing is asked any more */

/* Something to do. Set run, loop and done; the rest is the module's. */
typedef struct srv_task_ask srv_task_ask;
struct srv_task_ask {
    weir_inbox_task task;
    weir_tasks     *tasks;
    void          (*run)(weir_tasks *t, srv_task_ask *ask);     /* may wait */
    srv_loop       *loop;                       /* where done.run() is called afterwards */
    weir_inbox_task done;
};

/* Have it done by one of the threads. Any thread. */
void srv_tasks_post(srv_tasks *t, srv_task_ask *ask);

#endif
