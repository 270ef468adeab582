/* outside.h - bytes that another process wrote, and how they are read: they may be anything. */
#ifndef WEIR_STORE_SQLITE_OUTSIDE_H
#define WEIR_STORE_SQLITE_OUTSIDE_H

#include "base/buf.h"
#include "store/store.h"

/* What came from an owner's socket and is not told yet. {0} is a new connection. */
typedef struct sq_stream {
    weir_buf in;
    bool     greeted;
} sq_stream;

/* Tell env->emit of all whole records in `in`, and take them out. False: it is not an owner's. */
bool weir__sq_digest(sq_stream *s, const weir_env *env);

/* WEIR_EBUSY with who has the file at `path`, as far as the bytes of its PATH-owner say. */
weir_code weir__sq_taken(const char *bytes, size_t n, const char *path, weir_error *err);

#endif
