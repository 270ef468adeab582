/* api_workqueues.c - the work queues of the server: /v1/workqueues. A thread of their own does what
 * is asked (workqueues.h). */
#include <string.h>

#include "server/api/api.h"
#include "server/bus/bus.h"
#include "server/http/body.h"

/* The arguments, in memory of the request. */
typedef struct question {
    srv_workqueue_ask ask;
    srv_request      *r;
} question;

static void answered(weir_inbox_task *task)
{
    question *q = (question *)(void *)((char *)task - offsetof(question, ask.done));
    if (q->ask.err.code)
        srv_reply_error(q->r, &q->ask.err);
    else if (q->ask.run == srv_workqueues_remove)
        srv_reply_empty(q->r, 204);
    else
        srv_reply_json(q->r, q->ask.made ? 201 : 200, &q->ask.json);
}

/* NULL: it was answered. */
static question *begin(srv_request *r, unsigned role, srv_workqueue_fn *run)
{
    question *q;
    if (!srv_allow(r, role, NULL) || !SRV_STATE(r, q))
        return NULL;
    q->r = r;
    q->ask = (srv_workqueue_ask){ .run = run, .is.address = r->arg[0], .loop = r->loop,
                                  .done.run = answered };
    return q;
}

static void post(srv_request *r, unsigned role, srv_workqueue_fn *run)
{
    question *q = begin(r, role, run);
    if (q)
        srv_workqueue_servers_post(r->server->bus->workqueue_servers, &q->ask);
}

static void get_workqueues(srv_request *r)
{
    post(r, WEIR_ROLE_READ, srv_workqueues_list);
}

static void get_workqueue(srv_request *r)
{
    post(r, WEIR_ROLE_READ, srv_workqueues_get);
}

static void put_workqueue(srv_request *r)
{
    question *q = begin(r, WEIR_ROLE_ADMIN, srv_workqueues_put);
    if (q && srv_body(r, srv_workqueue_fields, &q->ask.is))
        srv_workqueue_servers_post(r->server->bus->workqueue_servers, &q->ask);
}

static void delete_workqueue(srv_request *r)
{
    post(r, WEIR_ROLE_ADMIN, srv_workqueues_remove);
}

const srv_route srv_workqueues_routes[] = {
    { "GET", "/v1/workqueues", WEIR_ROLE_READ, get_workqueues, 0, NULL, 0,
      "The work queues of the event bus: settings and numbers", NULL, "WorkQueues", 200 },
    { "GET", "/v1/workqueues/{address}", WEIR_ROLE_READ, get_workqueue, 0, NULL, 0,
      "One work queue: settings and numbers", NULL, "WorkQueue", 200 },
    { "PUT", "/v1/workqueues/{address}", WEIR_ROLE_ADMIN, put_workqueue, SRV_MAX_SMALL_BODY, NULL,
      0, "Start a work queue at an address of the event bus; it starts again with the server",
      "WorkQueuePut", "WorkQueue", 201 },
    { "DELETE", "/v1/workqueues/{address}", WEIR_ROLE_ADMIN, delete_workqueue, 0, NULL, 0,
      "Stop a work queue; the work of a persistent one stays in the store", NULL, NULL, 204 },
    { 0 }
};
