/* cmd_bus.c - weir bus: messages on the event bus of the store. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/action.h"
#include "cli/bus_call.h"
#include "cli/input.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "cli/store.h"

typedef struct bus_opts {
    opt_texts headers;
    opt_num   timeout, limit, wait;
} bus_opts;
CLI_VALUES_FIT(bus_opts);

#define AT(member) offsetof(bus_opts, member)
static const option_entry bus_options[] = {
    { .name = "header", .kind = OPT_TEXTS, .at = AT(headers), .arg = "NAME=VALUE",
      .help = "publish, send, request: a header of the message; can be repeated" },
    { .name = "timeout", .kind = OPT_DURATION, .at = AT(timeout), .arg = "TIME", .min = 1,
      .help = "request: how long to wait for the reply (30s)" },
    { .name = "limit", .letter = 'n', .kind = OPT_INT, .at = AT(limit), .arg = "N", .min = 1,
      .help = "listen: end after this many messages" },
    { .name = "for", .kind = OPT_DURATION, .at = AT(wait), .arg = "TIME", .min = 1,
      .help = "listen: end after this time" },
    { 0 }
};
#undef AT

/* ---- messages ---- */

/* The body to send: the third argument, - is standard input. */
typedef struct outgoing {
    weir_content content;
    weir_header  headers[OPT_MAX_TEXTS];
    char        *names[OPT_MAX_TEXTS];      /* free() */
    char        *read;                      /* free() */
} outgoing;

static void outgoing_fini(outgoing *out)
{
    for (size_t i = 0; i < out->content.n_headers; i++)
        free(out->names[i]);
    free(out->read);
}

/* 0, or the exit status; afterwards, always: outgoing_fini(). */
static int read_outgoing(cli *c, const bus_opts *o, outgoing *out)
{
    *out = (outgoing){ 0 };
    for (size_t i = 0; i < o->headers.n; i++) {
        const char *equals = strchr(o->headers.text[i], '=');
        if (!equals || equals == o->headers.text[i])
            return cli_usage(c, "--header: '%s' is not NAME=VALUE", o->headers.text[i]);
        out->names[i] = strndup(o->headers.text[i], (size_t)(equals - o->headers.text[i]));
        out->headers[i] = (weir_header){ out->names[i], equals + 1 };
        out->content.n_headers = i + 1;
    }
    out->content.headers = out->headers;
    if (c->n_args == 2)
        return 0;
    out->content.body = c->args[2];
    if (strcmp(c->args[2], "-") != 0)
        return 0;
    out->content.body = out->read = cli_read_data(&out->content.body_len, &c->err);
    return out->read ? 0 : cli_fail(c);
}

static void print_message(const cli *c, const weir_message *m)
{
    size_t             len, n;
    const char        *body = weir_message_body(m, &len);
    const weir_header *h = weir_message_headers(m, &n);
    if (!c->json) {
        jw_json(stdout, body, len);
        putchar('\n');
        return;
    }
    jw w = { .out = stdout };
    jw_object(&w, NULL);
    jw_text(&w, "address", weir_message_address(m));
    jw_bool(&w, "sent", weir_message_sent(m));
    jw_object(&w, "headers");
    for (size_t i = 0; i < n; i++)
        jw_text(&w, h[i].name, h[i].value);
    jw_end(&w, '}');
    jw_raw(&w, "body", body, len);
    jw_end(&w, '}');
}

/* ---- actions ---- */

static int run_publish(cli *c, const bus_opts *o, weir_bus *b)
{
    outgoing out;
    int      status = read_outgoing(c, o, &out);
    if (!status && weir_bus_publish(b, c->args[1], &out.content, &c->err))
        status = cli_fail(c);
    outgoing_fini(&out);
    return status;
}

static int run_send(cli *c, const bus_opts *o, weir_bus *b)
{
    outgoing out;
    int      status = read_outgoing(c, o, &out);
    if (!status && weir_bus_send(b, c->args[1], &out.content, &c->err))
        status = cli_fail(c);
    outgoing_fini(&out);
    return status;
}

static int run_request(cli *c, const bus_opts *o, weir_bus *b)
{
    outgoing   out;
    weir_reply reply = { 0 };
    int        status = read_outgoing(c, o, &out);
    if (!status && weir_bus_request(b, c->args[1], &out.content, o->timeout.n, &reply, &c->err))
        status = cli_fail(c);
    else if (!status)
        print_message(c, reply.message);
    weir_message_free(reply.message);
    outgoing_fini(&out);
    return status;
}

/* Messages that have arrived are shown on the thread that waits. */
typedef struct listener {
    const cli *c;
    int64_t    left;                /* messages to show; -1: no limit */
    int        arrived;             /* eventfd */
} listener;

static void received(weir_message *m, void *ctx)
{
    listener *l = ctx;
    if (l->left == 0)
        return;
    print_message(l->c, m);
    if (l->left > 0)
        l->left--;
}

static void wake(void *ctx)
{
    eventfd_write(((listener *)ctx)->arrived, 1);
}

/* Until a signal comes, the time is over or all are shown. */
static void show_messages(listener *l, weir_mailbox *mb, int signals, int64_t for_ms)
{
    int64_t       end = for_ms < 0 ? -1 : cli_clock_ms() + for_ms;
    struct pollfd fds[] = { { .fd = l->arrived, .events = POLLIN },
                            { .fd = signals, .events = POLLIN } };
    while (l->left != 0 && !fds[1].revents) {
        eventfd_t n;
        int64_t   left = end < 0 ? -1 : end - cli_clock_ms();
        if (end >= 0 && left <= 0)
            return;
        if (cli_poll(fds, 2, left) > 0 && fds[0].revents)
            eventfd_read(l->arrived, &n);
        while (l->left != 0 && weir_mailbox_run(mb, 1, 0))
            fflush(stdout);
    }
}

static int run_listen(cli *c, const bus_opts *o, weir_bus *b)
{
    listener      l = { .c = c, .left = o->limit.set ? o->limit.n : -1 };
    weir_mailbox *mb = NULL;
    int           signals = cli_signals(SIGINT, SIGTERM, 0), n = c->n_args - 1;
    l.arrived = eventfd(0, EFD_CLOEXEC);
    weir_code rc = weir_mailbox_create(&mb, b, &(weir_mailbox_config){ .wake = wake, .ctx = &l },
                                       &c->err);
    for (int i = 0; !rc && i < n; i++) {
        weir_consumer *consumer;            /* the mailbox closes it */
        rc = weir_bus_consume(&consumer, b, &(weir_consumer_config){ .address = c->args[i + 1],
                              .handler = received, .ctx = &l, .mailbox = mb }, &c->err);
    }
    if (!rc)
        show_messages(&l, mb, signals, o->wait.set ? o->wait.n : -1);
    weir_mailbox_destroy(mb);
    close(l.arrived);
    close(signals);
    return rc ? cli_fail(c) : 0;
}

/* ---- services ---- */

/* At these addresses weir's processes agree with each other; nobody else can use them. */
static bool is_inner(const char *address)
{
    static const char *const prefixes[] = { "weir.group.", "weir.leads.", "weir.ends.",
                                            "weir.servers." };
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(address, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static void print_address(const cli *c, table *out, const char *address, size_t consumers)
{
    if (is_inner(address))
        return;
    if (c->json) {
        jw w = { .out = stdout };
        jw_object(&w, NULL);
        jw_text(&w, "address", address);
        jw_int(&w, "consumers", (int64_t)consumers);
        jw_end(&w, '}');
        return;
    }
    table_row(out);
    table_cell(out, 0, COLOR_BOLD, "%s", address);
    table_cell(out, 1, COLOR_NONE, "%zu", consumers);
}

/* Only the server has the list of consumers. */
static int print_server_addresses(cli *c, table *out)
{
    json_t *reply, *a;
    size_t  i;
    int     status = cli_bus_call(c, "addresses", NULL, &reply);
    if (status)
        return status;
    json_array_foreach(json_object_get(reply, "addresses"), i, a)
        print_address(c, out, json_string_value(json_object_get(a, "address")),
                      (size_t)(json_integer_value(json_object_get(a, "here")) +
                               json_integer_value(json_object_get(a, "elsewhere"))));
    json_decref(reply);
    return 0;
}

static int print_addresses(cli *c, table *out)
{
    weir_queue         *q = NULL;
    weir_bus           *b = NULL;
    weir_bus_addresses *all = NULL;
    weir_code           rc = cli_open(c, CLI_CHANGE, &q);
    if (!rc)
        rc = weir_bus_open(&b, q, &c->err);
    if (!rc)
        rc = weir_bus_list(b, &all, &c->err);
    for (size_t i = 0; !rc && i < all->n; i++)
        print_address(c, out, all->address[i].address,
                      all->address[i].here + all->address[i].elsewhere);
    weir_bus_addresses_free(all);
    weir_bus_close(b);
    weir_close(q);
    return rc ? cli_fail(c) : 0;
}

static int run_services(cli *c)
{
    static const table_column columns[] = { { "ADDRESS", false, true },
                                            { "CONSUMERS", true, false } };
    table out;
    if (cli_choose_store(c))
        return cli_fail(c);
    table_init(&out, columns, 2);
    int status = strncmp(c->store, "http", 4) == 0 ? print_server_addresses(c, &out)
                                                   : print_addresses(c, &out);
    if (!status && !c->json)
        table_print(&out, stdout, 0);
    table_fini(&out);
    return status;
}

static const struct {
    cli_action action;
    cli_mode   mode;                    /* who listens stays, and serves others a file it owns */
    int      (*run)(cli *c, const bus_opts *o, weir_bus *b);
} actions[] = {
    { { "publish", 2, 3, "ADDRESS [JSON|-]" }, CLI_CHANGE, run_publish },
    { { "send", 2, 3, "ADDRESS [JSON|-]" }, CLI_CHANGE, run_send },
    { { "request", 2, 3, "ADDRESS [JSON|-]" }, CLI_CHANGE, run_request },
    { { "listen", 2, OPT_MAX_TEXTS, "ADDRESS..." }, CLI_SERVE, run_listen },
    { { "services", 1, 1, "nothing" }, CLI_LOOK, NULL },
};

static int run_bus(cli *c, const void *values)
{
    weir_queue *q = NULL;
    weir_bus   *b = NULL;
    int         status, i = CLI_FIND_ACTION(c, actions, &status);
    if (i < 0)
        return status;
    if (!actions[i].run)
        return run_services(c);
    if (cli_open(c, actions[i].mode, &q))
        return cli_fail(c);
    status = weir_bus_open(&b, q, &c->err) ? cli_fail(c) : actions[i].run(c, values, b);
    weir_bus_close(b);
    weir_close(q);
    return status;
}

const command cmd_bus = {
    .name = "bus", .group = GROUP_MORE,
    .args = "ACTION [ADDRESS [JSON|-]]", .min_args = 1, .max_args = -1,
    .words = "publish send request listen services",
    .summary = "messages on the event bus of the store",
    .help = "`publish ADDRESS [JSON]` reaches every consumer of the address, `send` one of them, "
            "`request` one of them, whose reply is printed. `listen ADDRESS...` prints a line for "
            "each message, with --json also its address and headers. `services` lists the "
            "addresses that have consumers; of a server it needs an admin's token.\n"
            "\n"
            "All processes that have the store open share the bus; with a server as the store, its "
            "clients, too (docs/bus.md).",
    .examples = "weir bus listen news &\nweir bus publish news '{\"text\":\"hello\"}'\n"
                "weir bus request mail.count '{\"to\":\"ann\"}' --timeout 5s\n",
    .options = bus_options, .run = run_bus,
};
