/* bus.c - the measures of the event bus. */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { IN_FLIGHT = 64 };

typedef struct asker {
    weir_bus     *bus;
    weir_mailbox *mb;
    size_t        left, done;       /* to be sent; answered */
} asker;

static void answer(weir_message *m, void *ctx)
{
    (void)ctx;
    weir_error err;
    if (weir_message_reply(m, &(weir_content){ .body = BENCH_RESULT }, &err))
        die("reply", &err);
}

static void answered(const weir_reply *reply, void *ctx);

static void ask(asker *a)
{
    weir_error err;
    a->left--;
    if (weir_bus_request_async(a->bus, "bench", &(weir_content){ .body = BENCH_RESULT },
                               &(weir_expect){ .fn = answered, .ctx = a, .mailbox = a->mb }, &err))
        die("request", &err);
}

static void answered(const weir_reply *reply, void *ctx)
{
    asker *a = ctx;
    if (reply->failure)
        die(reply->text, NULL);
    a->done++;
    if (a->left)
        ask(a);
}

/* Requests and replies a second: the consumer has a thread of its own, this one asks. */
static double request_reply(size_t n)
{
    weir_error     err;
    weir_consumer *c;
    asker          a = { .left = n };
    if (weir_bus_create(&a.bus, &err) || weir_mailbox_create(&a.mb, a.bus, NULL, &err) ||
        weir_bus_consume(&c, a.bus, &(weir_consumer_config){ .address = "bench",
                                                            .handler = answer }, &err))
        die("bus", &err);
    double began = seconds();
    for (int i = 0; i < IN_FLIGHT; i++)
        ask(&a);
    while (a.done < n)
        weir_mailbox_run(a.mb, IN_FLIGHT, WEIR_FOREVER);
    double rate = (double)n / (seconds() - began);
    weir_consumer_close(c);
    weir_mailbox_destroy(a.mb);
    weir_bus_close(a.bus);
    return rate;
}

void bus_request_reply(void)
{
    double rate[MAX_ROUNDS];
    for (int i = 0; i < rounds; i++)
        rate[i] = request_reply(scaled(1000000));
    report("bus, request and reply in one process, 64 in flight", middle(rate, rounds) / 1000,
           "k/s", true, 500);
}
