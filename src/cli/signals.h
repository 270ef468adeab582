/* signals.h - signals as a descriptor, and waiting for it. */
#ifndef WEIR_CLI_SIGNALS_H
#define WEIR_CLI_SIGNALS_H

#include <stdint.h>

/* A descriptor that becomes readable with one of these signals (0 at the end), which are blocked
 * from here on, also in threads started later. -1 on trouble. */
int cli_signals(int first, ...);

/* poll() that goes on when the program was stopped and continued; timeout_ms < 0: no limit. */
struct pollfd;
int cli_poll(struct pollfd *fds, unsigned n, int64_t timeout_ms);

#endif
