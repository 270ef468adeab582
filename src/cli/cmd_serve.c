/* cmd_serve.c - `weir serve`: the queue over HTTP, until SIGTERM. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/cli.h"
#include "server/server.h"

typedef struct serve_values {
    const char *listen;
} serve_values;
CLI_VALUES_FIT(serve_values);

const option_entry serve_options[] = {
    { "listen", 0, OPT_TEXT, offsetof(serve_values, listen), "ADDRESS:PORT",
      "where to listen (127.0.0.1:7340); port 0: any that is free", 0, 0, NULL },
    { 0 }
};

int cmd_serve(cli *c, const void *values)
{
    const serve_values *v = values;
    weir_queue         *q;
    srv_server         *s;
    struct signalfd_siginfo got;
    int signals = cli_signals(SIGTERM, SIGINT, 0);
    if (signals < 0 || cli_open(c, CLI_CHANGE, &q))
        return cli_fail(c);
    if (srv_start(&s, q, &(srv_options){ .listen = v->listen, .store_url = c->store }, &c->err)) {
        weir_close(q);
        return cli_fail(c);
    }
    printf("weir: serving %s at %s\n", c->store, srv_address(s));
    fflush(stdout);
    while (read(signals, &got, sizeof got) < 0)
        ;
    srv_stop(s);
    srv_destroy(s);
    weir_close(q);
    return 0;
}
