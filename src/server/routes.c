/* routes.c - all routes. The first that matches serves, so a table with a fixed word in a place
 * comes before one with an argument there. */
#include "server/route.h"

extern const srv_route srv_health_routes[];
extern const srv_route srv_kue_routes[];
extern const srv_route srv_metrics_routes[];
extern const srv_route srv_vertx_routes[];

const srv_route *const srv_routes[] = {
    srv_health_routes,
    srv_metrics_routes,
    srv_kue_routes,
    srv_vertx_routes,
    NULL
};
