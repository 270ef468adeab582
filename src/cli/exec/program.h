/* program.h - can the program of a worker run at all? Asked before the first job, so that a slip of
 * the pen does not fail a whole queue. The error says whether it is missing, and which program may
 * be meant, or what else is wrong with it. */
#ifndef WEIR_CLI_PROGRAM_H
#define WEIR_CLI_PROGRAM_H

#include "weir/error.h"

/* For a command of /bin/sh the first word is looked up, if it is a plain one; of `argv` (NULL:
 * `command` counts) the first. WEIR_ENOENT names it. */
weir_code program_check(const char *command, char *const *argv, weir_error *err);

#endif
