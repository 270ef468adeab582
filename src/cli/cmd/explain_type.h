/* explain_type.h - weir explain TYPE: why its jobs run, or do not. */
#ifndef WEIR_CLI_CMD_EXPLAIN_TYPE_H
#define WEIR_CLI_CMD_EXPLAIN_TYPE_H

#include "cli/cli.h"

/* Print it. WEIR_ENOENT: no such type. */
weir_code explain_type(cli *c, weir_queue *q, const char *name);

#endif
