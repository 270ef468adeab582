/* api_health.c - is the server there? */
#include "server/request.h"

static void get_health(srv_request *r)
{
    weir_buf body = { 0 };
    weir__buf_str(&body, "{\"ok\":true}");
    srv_reply_json(r, 200, &body);
}

const srv_route srv_health_routes[] = {
    { "GET", "/healthz", 0, get_health, 0, NULL, SRV_OPEN,
      "The process is alive and answers", NULL, "Health", 200 },
    { 0 }
};
