/* bus.c - the event bus of a server: see bus.h. */
#include "server/bus/bus.h"

#include <stdlib.h>
#include <unistd.h>

static weir_code open_listener(srv_bus *b, weir_error *err)
{
    const char *address = b->server->opt.bus.listen;
    if (!address)
        return WEIR_OK;
    weir_code        rc = srv_listener_open(&b->listener, address, err);
    srv_token_counts tokens;
    srv_guard_count_tokens(b->server->guard, &tokens);
    if (!rc && !b->listener.loopback && !tokens.valid)
        rc = weir_fail(err, WEIR_EINVAL, "bus: %s can be reached from other machines, so callers "
                       "need an access token; create one: weir token add NAME --role "
                       "admin", address);
    return rc;
}

weir_code srv_bus_create(srv_bus **out, srv_server *s, weir_error *err)
{
    const srv_bus_options *opt = &s->opt.bus;
    srv_bus               *b = *out = calloc(1, sizeof *b);
    if (!b)
        return weir_fail(err, WEIR_ENOMEM, "bus: out of memory");
    b->server = s;
    b->listener = (srv_listener){ .server = s, .fd = -1, .setting = "bus",
                                  .take_in = srv_bus_take_in };
    weir_code rc = weir_bus_open(&b->bus, s->q, err);
    if (!rc)
        rc = srv_permits_create(&b->inbound, "bus: inbound", opt->inbound, err);
    if (!rc)
        rc = srv_permits_create(&b->outbound, "bus: outbound", opt->outbound, err);
    if (!rc)
        rc = srv_job_events_create(&b->events, b->bus, s->q, err);
    if (!rc)
        rc = srv_job_service_create(&b->jobs, b->bus, s->q, err);
    if (!rc)
        rc = srv_workqueues_create(&b->workqueues, b->bus, s->q, &s->opt, err);
    if (!rc)
        rc = srv_workqueue_servers_create(&b->workqueue_servers, b->bus, b->workqueues, err);
    if (!rc)
        rc = srv_bus_service_create(&b->service, b->bus, b->workqueues, b->workqueue_servers, err);
    return rc ? rc : open_listener(b, err);         /* what was made is for srv_bus_destroy() */
}

void srv_bus_destroy(srv_bus *b)
{
    if (!b)
        return;
    srv_listener_close(&b->listener);
    srv_bus_service_destroy(b->service);
    srv_workqueue_servers_destroy(b->workqueue_servers);
    srv_workqueues_destroy(b->workqueues);
    srv_job_service_destroy(b->jobs);
    srv_job_events_stop(b->events);
    weir_bus_close(b->bus);
    srv_job_events_destroy(b->events);
    srv_permits_destroy(b->inbound);
    srv_permits_destroy(b->outbound);
    free(b);
}
