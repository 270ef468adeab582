/* msgpack.h - the part of MessagePack that we and cmsgpack (inside Redis) exchange: flat arrays of
 * integers, strings and false. Written as short as cmsgpack writes it, so that equal things are
 * equal bytes. */
#ifndef WEIR_STORE_REDIS_MSGPACK_H
#define WEIR_STORE_REDIS_MSGPACK_H

#include "base/buf.h"

void weir__mp_array(weir_buf *b, size_t n);
void weir__mp_int(weir_buf *b, int64_t n);
void weir__mp_text(weir_buf *b, const char *text, size_t len);     /* NULL: false */

/* Reading never goes beyond the end; whatever is not as expected sets `bad`, and then everything
 * reads as nothing. */
typedef struct mp_reader {
    const unsigned char *at, *end;
    bool                 bad;
} mp_reader;

typedef struct mp_slice {           /* points into what is read; not ended by a NUL */
    const char *at;                 /* NULL: false or nil */
    size_t      len;
} mp_slice;

/* The bytes of a buffer; valid until it is changed. */
static inline mp_slice weir__buf_slice(const weir_buf *b)
{
    return b->len ? (mp_slice){ b->data, b->len } : (mp_slice){ "", 0 };
}

mp_reader weir__mp_reader(const char *bytes, size_t len);
size_t    weir__mp_read_array(mp_reader *r);
int64_t   weir__mp_read_int(mp_reader *r);
bool      weir__mp_is_text(const mp_reader *r);      /* what comes next */
mp_slice  weir__mp_read_text(mp_reader *r);

#endif
