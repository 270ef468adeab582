/* service.c - a service: a consumer whose messages name an action. */
#include "weir/bus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

struct weir_service {
    weir_consumer     *consumer;
    const weir_action *actions;
    void              *ctx;
};

enum { DISPATCH_FAILURE = 500 };        /* as the service proxies of Vert.x have it */

static void dispatch(weir_message *m, void *ctx)
{
    const weir_service *s = ctx;
    const char         *action = weir_message_header(m, "action");
    char                text[WEIR_MAX_BUS_ADDRESS + 20];
    if (!action) {
        weir_message_fail(m, DISPATCH_FAILURE, "action not specified", NULL);
        return;
    }
    for (const weir_action *a = s->actions; a->name; a++)
        if (strcmp(a->name, action) == 0) {
            a->run(m, s->ctx);
            return;
        }
    snprintf(text, sizeof text, "Invalid action: %.*s", WEIR_MAX_BUS_ADDRESS, action);
    weir_message_fail(m, DISPATCH_FAILURE, text, NULL);
}

static weir_code check_actions(const weir_action *a, weir_error *err)
{
    weir_code rc = WEIR_OK;
    for (; !rc && a->name; a++)
        rc = WEIR__CHECK_RESERVED(a, err);
    return rc;
}

weir_code weir_service_publish(weir_service **out, weir_bus *b, const weir_service_config *config,
                               weir_error *err)
{
    *out = NULL;
    if (WEIR__CHECK_RESERVED(config, err) || check_actions(config->actions, err))
        return WEIR_EINVAL;
    weir_service *s = *out = calloc(1, sizeof *s);
    if (!s)
        return weir_fail(err, WEIR_ENOMEM, "service: out of memory");
    s->actions = config->actions;
    s->ctx = config->ctx;
    weir_consumer_config c = { .address = config->name, .handler = dispatch, .ctx = s,
                               .mailbox = config->mailbox };
    weir_code rc = weir_bus_consume(&s->consumer, b, &c, err);
    if (rc) {
        free(s);
        *out = NULL;
    }
    return rc;
}

void weir_service_close(weir_service *s)
{
    if (!s)
        return;
    weir_consumer_close(s->consumer);
    free(s);
}

weir_code weir_service_call(weir_bus *b, const char *service, const char *action, const char *args,
                            int64_t timeout_ms, weir_reply *out, weir_error *err)
{
    weir_header  header = { "action", action };
    weir_content c = { .body = args ? args : "{}", .headers = &header, .n_headers = 1 };
    return weir_bus_request(b, service, &c, timeout_ms, out, err);
}
