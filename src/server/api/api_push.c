/* api_push.c - push workers: /v1/push. The push thread does what is asked (push.h). */
#include "server/http/body.h"
#include "server/push/push.h"

/* A request to the push thread, in memory of the request. */
typedef struct question {
    srv_push_ask    ask;
    srv_request    *r;
    srv_push_target target;
} question;

static void answered(weir_inbox_task *task)
{
    question     *q = (question *)(void *)((char *)task - offsetof(question, ask.done));
    srv_push_ask *a = &q->ask;
    if (a->err.code)
        srv_reply_error(q->r, &a->err);
    else if (a->run == srv_push_remove)
        srv_reply_empty(q->r, 204);
    else
        srv_reply_json(q->r, a->made ? 201 : 200, &a->json);
}

/* NULL: it was answered. */
static question *begin(srv_request *r, void (*run)(srv_push *p, srv_push_ask *ask))
{
    if (!srv_allow(r, WEIR_ROLE_ADMIN, NULL))
        return NULL;
    question *q = srv_alloc(r, sizeof *q);
    if (!q) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return NULL;
    }
    q->r = r;
    q->ask = (srv_push_ask){ .run = run, .name = r->arg[0], .target = &q->target,
                             .loop = r->loop, .done.run = answered };
    return q;
}

static void get_push(srv_request *r)
{
    question *q = begin(r, srv_push_list);
    if (q)
        srv_push_post(srv_pusher(r), &q->ask);
}

static void put_push(srv_request *r)
{
    question   *q = begin(r, srv_push_put);
    weir_error err;
    if (!q)
        return;
    q->target = srv_push_defaults;
    q->target.name = r->arg[0];
    if (!srv_body(r, srv_push_fields, &q->target))
        return;
    weir_code rc = srv_push_check(&q->target, &err);
    if (!rc && !srv_settings(r)->push_private)
        rc = srv_push_check_public(&q->target, &err);
    if (rc)
        srv_reply_error(r, &err);
    else
        srv_push_post(srv_pusher(r), &q->ask);
}

static void delete_push(srv_request *r)
{
    question *q = begin(r, srv_push_remove);
    if (q)
        srv_push_post(srv_pusher(r), &q->ask);
}

const srv_route srv_push_routes[] = {
    { "GET", "/v1/push", WEIR_ROLE_ADMIN, get_push, 0, NULL, 0,
      "Where jobs are pushed to, and how that goes", NULL, "PushTargets", 200 },
    { "PUT", "/v1/push/{name}", WEIR_ROLE_ADMIN, put_push, SRV_MAX_SMALL_BODY, NULL, 0,
      "Push jobs of some types to a URL; replaces what is there under this name, and ends a pause",
      "PushPut", "PushTarget", 201 },
    { "DELETE", "/v1/push/{name}", WEIR_ROLE_ADMIN, delete_push, 0, NULL, 0,
      "Push no more; requests under way are waited for", NULL, NULL, 204 },
    { 0 }
};
