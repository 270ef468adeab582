/* notify.h - report the state of the service to its manager (sd_notify(3), Type=notify). */
#ifndef WEIR_CLI_NOTIFY_H
#define WEIR_CLI_NOTIFY_H

#include "weir/error.h"

/* Send "READY=1" and the like. Does nothing without $NOTIFY_SOCKET. */
void notify(const char *fmt, ...) WEIR_PRINTF(1, 2);

#endif
