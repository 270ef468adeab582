/* bus_service.c - the bus of a server asked about itself: see bus_service.h. */
#include "server/bus/bus_service.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bus/process.h"

struct srv_bus_service {
    weir_bus       *bus;
    srv_workqueues *own;
    srv_workqueue_servers *all;
    weir_service   *service, *for_servers;      /* NULL: there can be no others */
};

weir_code srv_bus_addresses(weir_bus *bus, weir_buf *out, weir_error *err)
{
    weir_bus_addresses *all;
    weir_code           rc = weir_bus_list(bus, &all, err);
    if (rc)
        return rc;
    weir__buf_str(out, "{\"addresses\":[");
    for (size_t i = 0; i < all->n; i++) {
        const weir_bus_address *a = &all->address[i];
        weir__buf_str(out, i ? ",{\"address\":" : "{\"address\":");
        weir__json_string(out, a->address, strlen(a->address));
        weir__buf_printf(out, ",\"here\":%zu,\"elsewhere\":%zu,\"delivered\":%" PRIu64
                         ",\"per_second\":%.1f}", a->here, a->elsewhere, a->delivered,
                         a->per_second);
    }
    weir__buf_str(out, "]}");
    weir_bus_addresses_free(all);
    return out->failed ? weir_fail(err, WEIR_ENOMEM, "bus: out of memory") : WEIR_OK;
}

/* ---- answers ---- */

static void reply(weir_message *m, weir_buf *body, const weir_error *err)
{
    if (err->code)
        weir_message_fail(m, weir_code_http(err->code), err->msg, NULL);
    else
        weir_message_reply(m, &(weir_content){ .body = body->data, .body_len = body->len }, NULL);
    weir__buf_fini(body);
}

static void addresses(weir_message *m, void *ctx)
{
    srv_bus_service *s = ctx;
    weir_buf         body = { 0 };
    weir_error       err = { 0 };
    srv_bus_addresses(s->bus, &body, &err);
    reply(m, &body, &err);
}

/* ---- work queues ---- */

/* One call, until the thread of the work queues has done it. */
typedef struct call {
    srv_workqueue_ask ask;
    weir_message     *m;
    weir_arena        arena;            /* of the arguments */
} call;

static void free_call(call *c)
{
    weir_message_free(c->m);
    weir__arena_free(&c->arena);
    free(c);
}

static void call_done(weir_inbox_task *task)
{
    call *c = (call *)(void *)((char *)task - offsetof(call, ask.done));
    reply(c->m, &c->ask.json, &c->ask.err);
    free_call(c);
}

static weir_code read_args(call *c, weir_error *err)
{
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &c->arena };
    size_t      len;
    const char *body = weir_message_body(c->m, &len);
    weir_code   rc = weir__read(&in, srv_workqueue_args, (weir_json_piece){ body, len },
                                &c->ask.is);
    return rc ? weir_fail(err, rc, "%s", in.err.msg) : WEIR_OK;
}

static void ask(weir_message *m, srv_bus_service *s, srv_workqueue_fn *run, bool args, bool all)
{
    weir_error err = { 0 };
    weir_buf   none = { 0 };
    call      *c = calloc(1, sizeof *c);
    if (!c) {
        weir_fail(&err, WEIR_ENOMEM, "out of memory");
        reply(m, &none, &err);
        return;
    }
    c->m = weir_message_keep(m);
    c->ask = (srv_workqueue_ask){ .run = run, .done.run = call_done };
    if (args && read_args(c, &err)) {
        reply(m, &none, &err);
        free_call(c);
        return;
    }
    if (all)
        srv_workqueue_servers_post(s->all, &c->ask);
    else
        srv_workqueues_post(s->own, &c->ask);
}

static void list_all(weir_message *m, void *ctx)
{
    ask(m, ctx, srv_workqueues_list, false, true);
}

static void get_one(weir_message *m, void *ctx)
{
    ask(m, ctx, srv_workqueues_get, true, true);
}

static void put_one(weir_message *m, void *ctx)
{
    ask(m, ctx, srv_workqueues_put, true, true);
}

static void remove_one(weir_message *m, void *ctx)
{
    ask(m, ctx, srv_workqueues_remove, true, true);
}

/* For other servers. */
static void list_own(weir_message *m, void *ctx)
{
    ask(m, ctx, srv_workqueues_list, false, false);
}

static void remove_own(weir_message *m, void *ctx)
{
    ask(m, ctx, srv_workqueues_remove, true, false);
}

/* ---- the beginning and the end ---- */

static const weir_action actions[] = {
    { .name = "addresses", .run = addresses },
    { .name = "workQueues", .run = list_all },
    { .name = "getWorkQueue", .run = get_one },
    { .name = "putWorkQueue", .run = put_one },
    { .name = "removeWorkQueue", .run = remove_one },
    { .name = NULL },
};

static const weir_action own_actions[] = {
    { .name = "workQueues", .run = list_own },
    { .name = "removeWorkQueue", .run = remove_own },
    { .name = NULL },
};

const char *srv_bus_service_audit(const char *action)
{
    return strcmp(action, "putWorkQueue") == 0      ? "workqueue.add"
           : strcmp(action, "removeWorkQueue") == 0 ? "workqueue.delete"
                                                    : NULL;
}

static weir_code open_for_servers(srv_bus_service *s, weir_error *err)
{
    const char *process = weir__bus_process(s->bus);
    char        name[sizeof SRV_WORKQUEUE_SERVERS + 64];
    if (!process)
        return WEIR_OK;
    snprintf(name, sizeof name, SRV_WORKQUEUE_SERVERS "%s", process);
    return weir_service_publish(&s->for_servers, s->bus, &(weir_service_config){
                                .name = name, .actions = own_actions, .ctx = s }, err);
}

weir_code srv_bus_service_create(srv_bus_service **out, weir_bus *bus, srv_workqueues *own,
                                 srv_workqueue_servers *all, weir_error *err)
{
    srv_bus_service *s = *out = calloc(1, sizeof *s);
    if (!s)
        return weir_fail(err, WEIR_ENOMEM, "bus: out of memory");
    s->bus = bus;
    s->own = own;
    s->all = all;
    weir_code rc = open_for_servers(s, err);
    if (!rc)
        rc = weir_service_publish(&s->service, bus, &(weir_service_config){
                                        .name = SRV_BUS_SERVICE, .actions = actions, .ctx = s },
                                        err);
    if (rc) {
        srv_bus_service_destroy(s);
        *out = NULL;
    }
    return rc;
}

void srv_bus_service_destroy(srv_bus_service *s)
{
    if (!s)
        return;
    weir_service_close(s->service);
    weir_service_close(s->for_servers);
    free(s);
}
