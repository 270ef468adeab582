/* route.h - the routes as tables: what serves them, documents them (/v1/openapi.json) and checks
 * what is asked comes from the same entries. */
#ifndef WEIR_SERVER_ROUTE_H
#define WEIR_SERVER_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

struct srv_request;
typedef void srv_handler(struct srv_request *r);

typedef enum srv_param_kind {
    SRV_P_TEXT, SRV_P_INT, SRV_P_BOOL, SRV_P_MS, SRV_P_STATES, SRV_P_PRIORITY, SRV_P_LIST
} srv_param_kind;

/* A parameter of the query. SRV_P_MS is a length of time, "3s". */
typedef struct srv_param {
    const char    *name;            /* NULL ends the table */
    srv_param_kind kind;
    const char    *about;
} srv_param;

enum {
    SRV_ANY_QUERY = 1,      /* parameters that are not in the table are let pass (Kue's routes) */
    SRV_OPEN      = 2,      /* no token is asked for (/healthz) */
    SRV_KUE       = 4,      /* with --api kue only */
    SRV_VERTX     = 8,      /* with --api vertx only */
    SRV_PLAIN     = 16,     /* not in the OpenAPI document */
    SRV_ANY_TYPE  = 32      /* the body need not be said to be JSON */
};

typedef struct srv_route {
    const char      *method;        /* NULL ends the table; "GET" serves HEAD too */
    const char      *path;          /* "/v1/jobs/{id}/log"; also "/jobs/{from}..{to}" */
    unsigned         roles;         /* one of these bits is needed (auth.h) */
    srv_handler     *handle;
    size_t           max_body;      /* 0: it has none */
    const srv_param *query;         /* NULL: no parameters */
    unsigned         flags;
    const char      *about;         /* one line */
    const char      *body;          /* schema of the body: a name in openapi.c; NULL: none */
    const char      *answer;        /* schema of the answer; NULL: none */
    int              status;        /* when it worked */
} srv_route;

/* All tables, NULL at the end (routes.c). */
extern const srv_route *const srv_routes[];

/* Serves addresses without a route to browsers, with status 404 (api/ui.c). */
extern const srv_route srv_missing_page;

#endif
