/* bus_call.c - ask the server about its bus: see bus_call.h. */
#include "cli/bus_call.h"

#include <stdlib.h>

#include "cli/say.h"
#include "cli/store.h"

enum { CALL_MS = 10 * 1000 };

/* The first code with this HTTP status: the exit status is the same for all of them. */
static weir_code code_of_status(int status)
{
    for (weir_code code = WEIR_OK; code < WEIR_CODE_COUNT; code++)
        if (weir_code_http(code) == status)
            return code;
    return WEIR_EREPLY;
}

static weir_code call(cli *c, weir_bus *b, const char *action, const char *args, weir_reply *reply)
{
    /* where several servers share a store, the one of --store http:// answers itself */
    weir_header  headers[] = { { "action", action }, { "localOnly", "true" } };
    weir_content content = { .body = args, .headers = headers, .n_headers = 2 };
    weir_code    rc = weir_bus_request(b, "weir.bus", &content, CALL_MS, reply, &c->err);
    if (rc == WEIR_ENOENT)
        weir_fail(&c->err, WEIR_EUNAVAIL, "no server has this store open; start one: weir serve");
    else if (rc == WEIR_EREPLY)
        weir_fail(&c->err, code_of_status(reply->code), "%s", reply->text);
    else if (rc == WEIR_EREADONLY)
        weir_fail(&c->err, rc, "the server does not permit this: it needs an admin's token");
    return rc;
}

int cli_bus_call(cli *c, const char *action, json_t *args, json_t **out)
{
    weir_queue *q = NULL;
    weir_bus   *b = NULL;
    weir_reply  reply = { 0 };
    char       *body = args ? json_dumps(args, JSON_COMPACT) : NULL;
    json_decref(args);
    *out = NULL;
    weir_code rc = cli_open(c, CLI_CHANGE, &q);
    if (!rc)
        rc = weir_bus_open(&b, q, &c->err);
    if (!rc)
        rc = call(c, b, action, body ? body : "{}", &reply);
    if (!rc)
        *out = json_loads(weir_message_body(reply.message, NULL), JSON_DECODE_ANY, NULL);
    if (!rc && !*out)
        rc = weir_fail(&c->err, WEIR_EREPLY, "the server answered with something that is not JSON");
    weir_message_free(reply.message);
    weir_bus_close(b);
    weir_close(q);
    free(body);
    return rc ? cli_fail(c) : 0;
}
