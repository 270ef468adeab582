/* cluster_frame.h - what the processes of one bus send each other: frames, each in one envelope.
 *
 *     'W' 'B' version kind   sender (16 bytes)   then, by kind:
 *
 *     HELLO       own version: "send me your ADDRESSES"
 *     ADDRESSES   version, part, entries: all addresses that the sender consumes, in parts
 *     CHANGES     version, entries: addresses whose number of consumers has changed
 *     PUBLISH     address, content
 *     SEND        number, timeout, hops, address, content
 *     REPLY       to, number, timeout, content: the answer to that number of the receiver's
 *     FAIL        to, failure, code, text: likewise
 *     ALIVE       own version
 *     BYE         the sender leaves the bus
 *
 * Numbers are little-endian. A text is its length (4 bytes), its bytes and a NUL. A number of 0
 * says that no reply is expected. Content is a text (the body) and a count (4 bytes) of headers, of
 * two texts each. An entry is the number of consumers (4 bytes), a byte (1: a prefix), a text. */
#ifndef WEIR_BUS_CLUSTER_FRAME_H
#define WEIR_BUS_CLUSTER_FRAME_H

#include "base/buf.h"
#include "store/envelope.h"
#include "weir/bus.h"

enum { WEIR_FRAME_VERSION = 1 };

typedef enum bus_frame_kind {
    FRAME_HELLO = 1,
    FRAME_ADDRESSES,
    FRAME_CHANGES,
    FRAME_PUBLISH,
    FRAME_SEND,
    FRAME_REPLY,
    FRAME_FAIL,
    FRAME_ALIVE,
    FRAME_BYE,
    FRAME_KINDS
} bus_frame_kind;

enum { FRAME_FIRST = 1, FRAME_LAST = 2 };       /* of `part` */

typedef struct bus_frame {
    bus_frame_kind kind;
    char           from[WEIR_PROCESS];
    uint64_t       version;
    uint8_t        part;                /* bits FRAME_FIRST, FRAME_LAST */
    uint64_t       to, number;
    uint32_t       timeout_ms;
    uint8_t        hops;                /* times that it was passed on */
    uint32_t       failure;
    int32_t        code;
    const char    *text;                /* of the failure */
    const char    *address;
    weir_content   content;
    weir_header    headers[WEIR_MAX_BUS_HEADERS];
    const char    *entries, *end;       /* what is left of them */
} bus_frame;

typedef struct bus_entry {
    const char *address;
    uint32_t    n;
    bool        prefix;
} bus_entry;

/* Append the frame; its entries follow. */
void weir__frame_write(weir_buf *out, const bus_frame *f);
void weir__frame_write_entry(weir_buf *out, const bus_entry *e);

/* Read a frame; texts and entries point into `bytes`. False: it is none, or of another version. */
bool weir__frame_read(const char *bytes, size_t len, bus_frame *out);
/* The next entry. False: no more. */
bool weir__frame_next_entry(bus_frame *f, bus_entry *out);

#endif
