/* file.h - small files of settings that hold secrets: read whole, and replaced whole or not at all.
 * They block: not for the loops of connections. */
#ifndef WEIR_SERVER_FILE_H
#define WEIR_SERVER_FILE_H

#include "base/buf.h"

enum { SRV_MAX_FILE = 16 * 1024 * 1024 };

/* Open it for reading. A file that others may write to, or of another user, is refused: a user who
 * writes to such a file gives out rights. Root's files are fine, and root reads everybody's.
 * `link`: the path may be a symbolic link. -1: WEIR_ENOENT, WEIR_EINVAL (with the remedy),
 * WEIR_EREADONLY, WEIR_EIO; they name the file. */
int srv_file_open(const char *path, bool link, weir_error *err);

/* Append what is in the file, opened as above. Errors: as above, WEIR_ELIMIT,
 * WEIR_ENOMEM. */
weir_code srv_file_read(const char *path, weir_buf *out, weir_error *err);

/* Put `bytes` in its place, for the owner alone to read. After a crash there is the old file or the
 * new one. Errors: WEIR_EFULL, WEIR_EIO, WEIR_EREADONLY; they name the file. */
weir_code srv_file_replace(const char *path, const char *bytes, size_t len, weir_error *err);

/* The same without waiting for the disk: after a power cut it may be the old one, or empty. */
weir_code srv_file_replace_soon(const char *path, const char *bytes, size_t len, weir_error *err);

#endif
