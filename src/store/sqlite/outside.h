/* outside.h - bytes that another process wrote, and how they are read: they may be anything. */
#ifndef WEIR_STORE_SQLITE_OUTSIDE_H
#define WEIR_STORE_SQLITE_OUTSIDE_H

#include "base/buf.h"
#include "store/store.h"

/* Events on their way to env->emit(). */
enum { SQ_INBOX = 256 };
typedef struct sq_inbox {
    weir_event event[SQ_INBOX];
    char      *text[SQ_INBOX];
    size_t     n;
    uint64_t   number;                          /* of the last */
} sq_inbox;

/* Give all whole frames of events in `in` to *env, and take them out; *number: of the last event.
 * False: it is not what an owner sends. */
bool weir__sq_digest(weir_buf *in, const weir_env *env, uint64_t *number);

/* WEIR_EBUSY with who has the file at `path`, as far as the bytes of its PATH-owner say. */
weir_code weir__sq_taken(const char *bytes, size_t n, const char *path, weir_error *err);

/* The name of a network file system, by the number of statfs() and, for FUSE, by its type in the
 * list of mounts; NULL: another. */
#define SQ_FUSE_MAGIC 0x65735546UL
const char *weir__sq_network(unsigned long magic, const char *fuse);
/* The type in a line of /proc/self/mountinfo, if it is about this device. */
bool weir__sq_mount_type(const char *line, unsigned long dev, char *out, size_t size);

#endif
