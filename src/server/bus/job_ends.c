/* job_ends.c - the worker protocol of Vert.x Kue: a message to done.ADDRESS_ID has the job, whose
 * result is taken; one to done_fail.ADDRESS_ID has the error. Both end the job with this address.
 *
 * A server remembers the addresses of the jobs that were taken through it. If it does not have the
 * address, it asks the other servers of the bus, one after the other. Each consumes weir.ends.NAME
 * with the name of its process, and answers ENDS_UNKNOWN if it does not have the address either.
 * The answer of the server that has it goes to the sender. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus/process.h"
#include "bus/watch.h"
#include "server/bus/job_call.h"

enum {
    ASK_MS = 10 * 1000,                 /* for another server to answer */
    ENDS_UNKNOWN = 404              /* a failure code between servers */
};

static const char ends_prefix[] = "vertx.kue.handler.workers.done";
static const char address_header[] = "weir-address";    /* where the message was sent */

/* ---- ending ---- */

/* The text behind the prefix: ".ADDRESS_ID" or "_fail.ADDRESS_ID". NULL: it is none of these. */
static const char *read_ending(const char *address, bool *fails)
{
    const char *rest = address + strlen(ends_prefix);
    *fails = strncmp(rest, "_fail.", 6) == 0;
    return *fails ? rest + 6 : *rest == '.' ? rest + 1 : NULL;
}

static void end_done(job_call *c)
{
    int64_t  id = c->args.id;
    uint32_t delivery = c->args.delivery;
    if (!job_call_read_args(c, 0))
        return;
    c->args.id = id ? id : c->args.id;
    c->args.delivery = id ? delivery : c->args.delivery;
    job_call_done(c);
}

static void end_failed(job_call *c)
{
    size_t      len;
    const char *body = weir_message_body(c->m, &len);
    char       *text = weir__arena_alloc(&c->arena, len + 1);
    if (text && !(*body == '"' && weir__json_text((weir_json_piece){ body, len }, text, &len)))
        memcpy(text, body, len);
    c->args.message = text;
    job_call_done_fail(c);
}

static void end(job_call *c, bool fails)
{
    if (fails)
        end_failed(c);
    else
        end_done(c);
}

/* ---- asking other servers ---- */

/* The names of servers that may have the address, each with its NUL. */
typedef struct asking {
    weir_link link;                     /* of asks */
    job_call *call;
    bool      fails;
    weir_buf  names;
    size_t    at;
} asking;

static void add_name(void *ctx, const char *process)
{
    weir__buf_add(ctx, process, strlen(process) + 1);
}

static void free_asking(asking *a)
{
    weir__list_remove(&a->call->s->asks, &a->link);
    weir__buf_fini(&a->names);
    free(a);
}

static void ask_next(asking *a);

static void answered(const weir_reply *reply, void *ctx)
{
    asking     *a = ctx;
    job_call   *c = a->call;
    size_t      len;
    const char *body;
    if (reply->failure && (reply->failure != WEIR_FAILURE_RECIPIENT_FAILURE ||
                           reply->code == ENDS_UNKNOWN)) {
        ask_next(a);                    /* it does not have the address, or is gone */
        return;
    }
    free_asking(a);
    if (reply->failure) {
        job_call_fail(c, reply->code, "%s", reply->text);
        return;
    }
    body = weir_message_body(reply->message, &len);
    weir__buf_add(&c->out, body, len);
    job_call_reply(c);
}

/* No server has it: the message itself may say which job it means. */
static void ask_next(asking *a)
{
    job_call   *c = a->call;
    size_t      len;
    weir_header sent = { address_header, weir_message_address(c->m) };
    const char *body = weir_message_body(c->m, &len);
    weir_expect e = { .fn = answered, .ctx = a, .mailbox = c->s->mb, .timeout_ms = ASK_MS };
    while (!a->names.failed && a->at < a->names.len) {
        char to[sizeof SRV_JOB_ENDS + 64];
        snprintf(to, sizeof to, SRV_JOB_ENDS "%s", a->names.data + a->at);
        a->at += strlen(a->names.data + a->at) + 1;
        if (weir_bus_request_async(c->s->bus, to, &(weir_content){ .body = body, .body_len = len,
                                   .headers = &sent, .n_headers = 1 }, &e, NULL) == WEIR_OK)
            return;
    }
    bool fails = a->fails;
    free_asking(a);
    end(c, fails);
}

static void ask_others(job_call *c, bool fails)
{
    asking *a = calloc(1, sizeof *a);
    if (!a) {
        job_call_fail(c, JOB_CALL_FAILED, "out of memory");
        return;
    }
    a->call = c;
    a->fails = fails;
    weir__list_append(&c->s->asks, &a->link);
    weir__bus_processes(c->s->bus, SRV_JOB_SERVICE, add_name, &a->names);
    ask_next(a);
}

/* ---- messages ---- */

static void end_by_address(weir_message *m, void *ctx)
{
    bool        fails;
    const char *id = read_ending(weir_message_address(m), &fails);
    job_call   *c = id ? job_call_open(ctx, m) : NULL;
    if (!c)
        return;
    if (job_taken_find(c, id))
        end(c, fails);
    else
        ask_others(c, fails);
}

/* From another server. */
static void end_for_another(weir_message *m, void *ctx)
{
    bool        fails;
    const char *address = weir_message_header(m, address_header);
    bool        ours = address && strncmp(address, ends_prefix, strlen(ends_prefix)) == 0;
    const char *id = ours ? read_ending(address, &fails) : NULL;
    job_call   *c = id ? job_call_open(ctx, m) : NULL;
    if (c && job_taken_find(c, id))
        end(c, fails);
    else if (c)
        job_call_fail(c, ENDS_UNKNOWN, "unknown address");
}

/* ---- the beginning and the end ---- */

weir_code job_ends_open(srv_job_service *s, weir_error *err)
{
    char        own[sizeof SRV_JOB_ENDS + 64];
    const char *process = weir__bus_process(s->bus);
    weir_code   rc = weir__bus_consume_prefix(&s->ends, s->bus, &(weir_consumer_config){
        .address = ends_prefix, .handler = end_by_address, .ctx = s, .mailbox = s->mb }, err);
    if (rc || !process)
        return rc;
    snprintf(own, sizeof own, SRV_JOB_ENDS "%s", process);
    return weir_bus_consume(&s->others, s->bus, &(weir_consumer_config){
        .address = own, .handler = end_for_another, .ctx = s, .mailbox = s->mb }, err);
}

void job_ends_close(srv_job_service *s)
{
    weir_consumer_close(s->ends);
    weir_consumer_close(s->others);
}

void job_ends_drop(srv_job_service *s)
{
    WEIR_EACH(asking, a, &s->asks, link) {
        job_call *c = a->call;
        free_asking(a);
        job_call_fail(c, JOB_CALL_FAILED, "the server ends");
    }
}
