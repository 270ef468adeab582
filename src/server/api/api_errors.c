/* api_errors.c - GET /v1/errors: failed jobs in groups of the same error. The jobs of a group are
 * listed by GET /v1/jobs with `error`, and changed by POST /v1/jobs/bulk with filter.error. */
#include "core/error_mask.h"
#include "server/api/api.h"

typedef struct grouping {
    weir_error_groups *groups;
} grouping;

static void grouped(srv_request *r, weir_code code, const weir_error *err)
{
    weir_error_groups *groups = ((grouping *)r->state)->groups;
    weir_buf           body = { 0 };
    if (srv_failed(r, code, err))
        return;
    weir__error_groups_write(&body, groups);
    weir_error_groups_free(groups);
    srv_reply_json(r, 200, &body);
}

static void get_errors(srv_request *r)
{
    const char  *type = srv_query(r, "type");
    weir_error   err = { 0 };
    weir_future *f = NULL;
    grouping    *g;
    if (!srv_allow_scope(r, WEIR_ROLE_READ, &type) || !SRV_STATE(r, g))
        return;
    weir_code rc = weir_get_errors_async(srv_queue(r), type, &g->groups, &f, &err);
    srv_await(r, rc, &err, f, grouped);
}

static const srv_param errors_query[] = {
    { "type", SRV_P_TEXT, "failed jobs of this type alone" },
    { 0 }
};

const srv_route srv_errors_routes[] = {
    { "GET", "/v1/errors", WEIR_ROLE_READ, get_errors, 0, errors_query, 0,
      "Failed jobs in groups of the same error, the largest first", NULL, "ErrorGroups", 200 },
    { 0 }
};
