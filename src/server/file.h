/* file.h - small files of settings that hold secrets: read whole, and replaced whole or not at all.
 * They block: not for the loops of connections. */
#ifndef WEIR_SERVER_FILE_H
#define WEIR_SERVER_FILE_H

#include "base/buf.h"

enum { SRV_MAX_FILE = 16 * 1024 * 1024 };

/* Append what is in the file. Errors: WEIR_ENOENT, WEIR_EREADONLY (no permission), WEIR_ELIMIT,
 * WEIR_EIO, WEIR_ENOMEM; they name the file. */
weir_code srv_file_read(const char *path, weir_buf *out, weir_error *err);

/* Put `bytes` in its place, for the owner alone to read. After a crash there is the old file or the
 * new one. Errors: WEIR_EFULL, WEIR_EIO, WEIR_EREADONLY; they name the file. */
weir_code srv_file_replace(const char *path, const char *bytes, size_t len, weir_error *err);

#endif
