/* scratch.h - a store that nobody keeps. */
#ifndef WEIR_CLI_SCRATCH_H
#define WEIR_CLI_SCRATCH_H

#include "weir/weir.h"

/* A new directory for it; the path of its jobs.db goes to `url` as a store URL. */
weir_code cli_scratch_make(char *dir, size_t dir_size, char *url, size_t url_size, weir_error *err);

/* Remove the directory with all that is in it. */
void cli_scratch_remove(const char *dir);

#endif
