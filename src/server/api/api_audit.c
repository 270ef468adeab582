/* api_audit.c - GET /v1/audit: who changed what. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/access/audit.h"
#include "server/http/inner.h"

enum { PAGE = 100, MAX_PAGE = 1000 };

static const char *const modes[] = { [SRV_AUDIT_ADMIN] = "admin", [SRV_AUDIT_ALL] = "all",
                                     [SRV_AUDIT_OFF] = "off" };

static void get_audit(srv_request *r)
{
    srv_audit_query q = { .token = srv_query(r, "token"), .action = srv_query(r, "action") };
    int64_t         id = 0, after = 0, limit = PAGE;
    weir_buf        body = { 0 };
    uint64_t        next = 0;
    if (!srv_allow(r, WEIR_ROLE_ADMIN, NULL) || !srv_query_int(r, "id", 1, INT64_MAX, &id) ||
        !srv_query_int(r, "after", 1, INT64_MAX, &after) ||
        !srv_query_int(r, "since", 0, INT64_MAX, &q.since) ||
        !srv_query_int(r, "limit", 1, MAX_PAGE, &limit))
        return;
    q.id = (uint64_t)id;
    q.before = (uint64_t)after;
    q.limit = (size_t)limit;
    weir__buf_str(&body, "{\"entries\":[");
    if (r->server->audit)
        next = srv_audit_list(r->server->audit, &q, &body);
    weir__buf_printf(&body, "],\"mode\":\"%s\",\"next\":", modes[r->server->opt.audit]);
    if (next)
        weir__buf_printf(&body, "\"%llu\"}", (unsigned long long)next);
    else
        weir__buf_str(&body, "null}");
    srv_reply_json(r, 200, &body);
}

static const srv_param audit_query[] = {
    { "token", SRV_P_TEXT, "actions of the token of this name; empty: of callers without one" },
    { "action", SRV_P_TEXT, "these actions alone: job.retry, or all that begin with job" },
    { "id", SRV_P_INT, "actions on this job alone" },
    { "since", SRV_P_INT, "not before this moment" },
    { "limit", SRV_P_INT, "entries in the page, 1 to 1000 (100)" },
    { "after", SRV_P_INT, "\"next\" of the page before" },
    { 0 }
};

const srv_route srv_audit_routes[] = {
    { "GET", "/v1/audit", WEIR_ROLE_ADMIN, get_audit, 0, audit_query, 0,
      "Who changed what, the newest first", NULL, "Audit", 200 },
    { 0 }
};
