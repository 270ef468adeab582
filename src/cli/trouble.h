/* trouble.h - reports on standard error that the store has stopped working under a long-running
 * command, and that it works again: once each, not with each failed attempt. */
#ifndef WEIR_CLI_TROUBLE_H
#define WEIR_CLI_TROUBLE_H

#include "cli/cli.h"

typedef struct cli_trouble {
    cli         *c;
    weir_queue  *q;
    int          wake;          /* eventfd: look again */
    weir_future *asked;         /* the store has been asked whether it works */
    weir_error   why;           /* of the trouble that was said; code WEIR_OK: none */
    int64_t      again_ms;      /* when to ask next, by cli_clock_ms(); 0: not by itself */
} cli_trouble;

void cli_trouble_init(cli_trouble *t, cli *c);
void cli_trouble_fini(cli_trouble *t);

/* An event of the queue reports trouble: make t->wake readable. Any thread. */
void cli_trouble_hint(cli_trouble *t);

/* When t->wake is readable, or the time of cli_trouble_wait() is over: ask the store, or say what
 * the store has answered. Never waits for the store. */
void cli_trouble_look(cli_trouble *t);

/* For how long cli_poll() may wait; -1: without end. */
int64_t cli_trouble_wait(const cli_trouble *t);

/* Is the trouble that was said still there? Asks the store and waits for its answer. c->err. */
weir_code cli_trouble_left(cli_trouble *t);

#endif
