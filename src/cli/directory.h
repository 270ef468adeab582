/* directory.h - directories of this user alone. */
#ifndef WEIR_CLI_DIRECTORY_H
#define WEIR_CLI_DIRECTORY_H

#include "weir/error.h"

/* Make the directory and its parents, for this user alone. WEIR_EREADONLY, WEIR_EIO. */
weir_code cli_make_directory(const char *dir, weir_error *err);

#endif
