/* frame.h - what goes over the socket beside a SQLite file (PATH-socket): frames.
 *
 * A frame is a sq_head and as many bytes as it says. Both ends are on one machine, so numbers are
 * as the machine has them. A connection begins with the client's HELLO; the owner answers WELCOME,
 * or REFUSED and the end. Then
 *
 *     a connection for calls   client: REQUEST (a batch as JSON, op/batch.h), one at a time
 *                              owner:  ANSWER (its answer as JSON), or REFUSED (text: why), or
 *                                      LEAVING: what has no answer yet was not done
 *     a connection for         both:   ENVELOPE (sq_route, bytes): to a member, or to all others
 *     envelopes                owner:  REACHED (how many members), GONE (a member has ended), OWNER
 *                                      (a member that ends with the owner), LOST (envelopes)
 *     a connection for events  owner:  EVENT (sq_record, type, text), LOST (some are missing; the
 *                                      number that it goes on after), PLACE (the number of the
 *                                      last event, which the client does not want)
 *
 * The end of a connection says that the owner is gone, and that its lock is free. */
#ifndef WEIR_STORE_SQLITE_FRAME_H
#define WEIR_STORE_SQLITE_FRAME_H

#include "base/buf.h"
#include "store/envelope.h"
#include "store/feed.h"
#include "weir/event.h"
#include "weir/weir.h"

/* Processes of one file are of one version: what they send each other is no format that lasts. */
#define SQ_MAGIC "weir " WEIR_VERSION
enum { SQ_MAGIC_MAX = 16 };
_Static_assert(sizeof SQ_MAGIC <= SQ_MAGIC_MAX, "the version fits");

#define SQ_MAX_FRAME UINT32_C(0x7fffffff)       /* bytes: a page of the biggest jobs */

typedef enum sq_frame {
    SQF_HELLO = 1,
    SQF_WELCOME,
    SQF_REFUSED,
    SQF_REQUEST,
    SQF_ANSWER,
    SQF_LEAVING,
    SQF_EVENT,
    SQF_LOST,
    SQF_PLACE,
    SQF_ENVELOPE,
    SQF_REACHED,
    SQF_GONE,
    SQF_OWNER,
    SQF_FRAMES
} sq_frame;

typedef struct sq_head {
    uint32_t size, kind;
} sq_head;

typedef enum sq_purpose { SQ_FOR_CALLS = 1, SQ_FOR_EVENTS, SQ_FOR_ENVELOPES } sq_purpose;

typedef struct sq_hello {
    char       magic[SQ_MAGIC_MAX];
    uint32_t   purpose;
    uint32_t   want;                            /* events: bits 1u << weir_event_kind */
    weir_place place;                           /* events: resume after it; run "": from now on */
    char       process[WEIR_PROCESS];           /* envelopes: the member */
} sq_hello;

typedef struct sq_welcome {
    char       magic[SQ_MAGIC_MAX];
    uint32_t   durability;                      /* of the owner */
    uint32_t   pid;
    weir_place place;                           /* of the last event */
} sq_welcome;

typedef struct sq_record {
    uint64_t number;
    uint64_t id;
    int64_t  at;
    uint32_t kind, state;
    int32_t  attempts, progress;
    uint32_t delivery, missed;
    uint32_t has;                               /* bit 0: type, bit 1: text */
    uint32_t type_len, text_len, zero;
} sq_record;

/* Where an envelope goes and comes from; names without their NUL. */
typedef struct sq_route {
    char     to[WEIR_PROCESS - 1];              /* all zero: to all others */
    char     from[WEIR_PROCESS - 1];
    uint64_t count;                             /* not 0: the sender waits for a REACHED */
} sq_route;

/* The whole frame that is at `at`: its size with its head. 0: not all of it is there yet; SIZE_MAX:
 * it is none. */
size_t weir__sq_frame_at(const weir_buf *in, size_t at, sq_head *head);

/* Begin a frame; its bytes follow. Then its end sets its size. */
size_t weir__sq_frame_begin(weir_buf *out, sq_frame kind);
void   weir__sq_frame_end(weir_buf *out, size_t begun);
void   weir__sq_frame_put(weir_buf *out, sq_frame kind, const void *bytes, size_t len);

/* An event as a frame, and back from the bytes of one. Its strings are in `text`, which has room
 * for len + 2 bytes. False: it is none. */
void weir__sq_event_put(weir_buf *out, uint64_t number, const weir_event *e);
bool weir__sq_event_get(const char *bytes, size_t len, char *text, uint64_t *number,
                        weir_event *out);

/* Is it a HELLO, a WELCOME of this version? The texts in it end. */
bool weir__sq_hello_get(const char *bytes, size_t len, sq_hello *out);
bool weir__sq_welcome_get(const char *bytes, size_t len, sq_welcome *out);

#endif
