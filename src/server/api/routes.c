/* routes.c - all routes. The first that matches serves, so a table with a fixed word in a place
 * comes before one with an argument there. */
#include "server/http/route.h"

extern const srv_route srv_add_routes[];
extern const srv_route srv_audit_routes[];
extern const srv_route srv_batch_routes[];
extern const srv_route srv_bulk_routes[];
extern const srv_route srv_bus_routes[];
extern const srv_route srv_eventbus_routes[];
extern const srv_route srv_errors_routes[];
extern const srv_route srv_events_routes[];
extern const srv_route srv_finish_routes[];
extern const srv_route srv_health_routes[];
extern const srv_route srv_history_routes[];
extern const srv_route srv_jobs_routes[];
extern const srv_route srv_kue_routes[];
extern const srv_route srv_log_routes[];
extern const srv_route srv_metrics_routes[];
extern const srv_route srv_observe_routes[];
extern const srv_route srv_openapi_routes[];
extern const srv_route srv_push_routes[];
extern const srv_route srv_schedules_routes[];
extern const srv_route srv_server_routes[];
extern const srv_route srv_take_routes[];
extern const srv_route srv_tasks_routes[];
extern const srv_route srv_types_routes[];
extern const srv_route srv_ui_routes[];
extern const srv_route srv_vertx_routes[];
extern const srv_route srv_workers_routes[];
extern const srv_route srv_workqueues_routes[];

const srv_route *const srv_routes[] = {
    srv_add_routes,
    srv_audit_routes,
    srv_batch_routes,
    srv_bulk_routes,
    srv_bus_routes,
    srv_errors_routes,
    srv_health_routes,
    srv_history_routes,
    srv_metrics_routes,
    srv_jobs_routes,
    srv_log_routes,
    srv_openapi_routes,
    srv_push_routes,
    srv_schedules_routes,
    srv_tasks_routes,
    srv_server_routes,
    srv_events_routes,
    srv_eventbus_routes,
    srv_types_routes,
    srv_take_routes,
    srv_observe_routes,
    srv_finish_routes,
    srv_workers_routes,
    srv_workqueues_routes,
    srv_kue_routes,
    srv_vertx_routes,
    srv_ui_routes,
    NULL
};
