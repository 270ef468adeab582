/* audit_request.c - what of requests goes to the audit log: see audit.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "server/access/audit.h"
#include "server/http/inner.h"

/* Beside a request that is recorded, once it has something to say. */
typedef struct srv_audit_note {
    uint64_t ids[SRV_AUDIT_IDS];
    size_t   n_ids;
    uint64_t count;
    int      failed;            /* the status to record; 0: the answer's */
    bool     skip;
    char     detail[SRV_AUDIT_TEXT];
} note;

/* ---- names ---- */

static const struct {
    const char *method, *path, *action;
} actions[] = {
    { "PATCH", "/v1/jobs/{id}", "job.change" },
    { "DELETE", "/v1/jobs/{id}", "job.delete" },
    { "POST", "/v1/jobs/{id}/retry", "job.retry" },
    { "POST", "/v1/jobs/{id}/promote", "job.promote" },
    { "POST", "/v1/jobs/{id}/cancel", "job.cancel" },
    { "POST", "/v1/jobs/bulk", "job.bulk" },
    { "PUT", "/job/{id}/state/{state}", "job.state" },
    { "PUT", "/job/{id}/priority/{priority}", "job.change" },
    { "DELETE", "/job/{id}", "job.delete" },
    { "POST", "/inactive/{id}", "job.state" },
    { "GET", "/inactive/{id}", "job.state" },
    { "PATCH", "/v1/types/{type}", "type.settings" },
    { "POST", "/v1/types/{type}/pause", "type.pause" },
    { "POST", "/v1/types/{type}/resume", "type.resume" },
    { "PUT", "/v1/schedules/{name}", "schedule.put" },
    { "DELETE", "/v1/schedules/{name}", "schedule.remove" },
    { "POST", "/v1/schedules/{name}/pause", "schedule.pause" },
    { "POST", "/v1/schedules/{name}/resume", "schedule.resume" },
    { "POST", "/v1/schedules/{name}/fire", "schedule.fire" },
    { "POST", "/v1/schedules/{name}/backfill", "schedule.backfill" },
    { "PUT", "/v1/push/{name}", "push.set" },
    { "DELETE", "/v1/push/{name}", "push.delete" },
    { "POST", "/v1/bus", "bus.message" },
    { "PUT", "/v1/workqueues/{address}", "workqueue.add" },
    { "DELETE", "/v1/workqueues/{address}", "workqueue.delete" },
    { "POST", "/v1/tasks", "task.submit" },
    { "PUT", "/v1/tasks/{id}", "task.put" },
    { "POST", "/v1/tasks/{id}/fire", "task.fire" },
    { "POST", "/v1/tasks/cancel", "task.cancel" },
    { "POST", "/v1/tasks/initialize", "task.initialize" },
    { "POST", "/v1/check", "store.check" },
    { "POST", "/v1/jobs", "job.add" },
    { "POST", "/job", "job.add" },
    { "PUT", "/job", "job.add" },
    { "POST", "/v1/take", "job.take" },
    { "POST", "/v1/observe", "job.observe" },
    { "POST", "/v1/finish", "job.finish" },
    { "POST", "/v1/renew", "job.renew" },
    { "POST", "/v1/jobs/{id}/log", "job.log" },
    { "POST", "/v1/jobs/{id}/progress", "job.progress" },
    { "POST", "/v1/jobs/{id}/values", "job.values" },
};

static const char *name_of(const srv_route *route)
{
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (!strcmp(actions[i].method, route->method) && !strcmp(actions[i].path, route->path))
            return actions[i].action;
    return route->path;
}

/* A route whose role is admin alone is administrative. A batch records its operations itself. */
const char *srv_audit_action(const srv_route *route, srv_audit_mode mode, bool kue_get)
{
    if (mode == SRV_AUDIT_OFF || (route->flags & SRV_OPEN) || route->roles == WEIR_ROLE_ALL ||
        (mode == SRV_AUDIT_ADMIN && route->roles != WEIR_ROLE_ADMIN))
        return NULL;
    if (!strcmp(route->method, "GET") && !(kue_get && !strcmp(route->path, "/inactive/{id}")))
        return NULL;
    return name_of(route);
}

/* ---- what a handler says ---- */

static const char *action_of(const srv_request *r)
{
    const srv_options *opt = &r->server->opt;
    return r->server->audit && r->route ? srv_audit_action(r->route, opt->audit, opt->kue_get)
                                        : NULL;
}

bool srv_audited(const srv_request *r)
{
    return action_of(r) != NULL;
}

/* NULL: it is not recorded, or out of memory. */
static note *note_of(srv_request *r)
{
    srv_exchange *x = (srv_exchange *)r;
    if (!x->note && srv_audited(r))
        x->note = srv_alloc(r, sizeof *x->note);
    return x->note;
}

void srv_audit_id(srv_request *r, uint64_t id)
{
    note *n = note_of(r);
    if (!n)
        return;
    if (n->n_ids < SRV_AUDIT_IDS)
        n->ids[n->n_ids++] = id;
    n->count++;
}

void srv_audit_detail(srv_request *r, const char *fmt, ...)
{
    note   *n = note_of(r);
    if (!n)
        return;
    WEIR__FORMAT(n->detail, fmt);
}

void srv_audit_failed(srv_request *r, int status)
{
    note *n = note_of(r);
    if (n && !n->failed)
        n->failed = status;
}

void srv_audit_skip(srv_request *r)
{
    note *n = note_of(r);
    if (n)
        n->skip = true;
}

/* ---- recording ---- */

void srv_audit_also(srv_request *r, srv_audit_item *item)
{
    item->at = weir__wall_ms();
    item->token = r->who.name;
    item->address = r->conn ? r->conn->peer : NULL;
    item->path = r->path;
    if (item->status >= 400)
        item->count = 0;
    srv_audit_record(r->server->audit, item);
}

/* The job of the path, where there is one and the handler named none. */
static void add_path_id(const srv_request *r, srv_audit_item *item, uint64_t *id)
{
    if (item->n_ids || !strstr(r->route->path, "{id}"))
        return;
    *id = strtoull(r->arg[0] ? r->arg[0] : "", NULL, 10);
    item->ids = id;
    item->n_ids = item->count = *id != 0;
}

/* Somebody has tried to look into the audit log itself, and may not. */
static bool is_refused_look(const srv_request *r, int status)
{
    return status == 403 && r->route && !strcmp(r->route->method, "GET") &&
           !strcmp(r->route->path, "/v1/audit");
}

/* A caller that is not known (401, 429) did nothing; the access log has it. */
void srv_audit_answered(srv_request *r, int status)
{
    const srv_exchange *x = (const srv_exchange *)r;
    const note         *n = x->note;
    const char         *action = r->who.roles ? action_of(r) : NULL;
    uint64_t            id;
    if (r->who.roles && is_refused_look(r, status))
        action = "audit.read";
    if (!action || (n && n->skip))
        return;
    srv_audit_item item = { .action = action, .status = status };
    if (n) {
        item.ids = n->ids;
        item.n_ids = n->n_ids;
        item.count = n->count;
        item.detail = *n->detail ? n->detail : NULL;
        item.status = n->failed ? n->failed : status;
    }
    add_path_id(r, &item, &id);
    srv_audit_also(r, &item);
}
