/* http1.h - reads HTTP/1.1 requests from bytes, strictly as RFC 9112 says. Knows no socket and no
 * route. Bytes may come in pieces of any size; the outcome does not depend on the pieces.
 *
 * If two readers could read a request differently, it is refused, never mended. A line ends with CR
 * LF alone, a field is on one line, a length is given once. After SRV_HTTP1_BAD nothing that
 * follows on the connection can be trusted, so the caller answers and closes it.
 *
 * Beyond the RFC: at most one empty line before a request; HTTP/1.2 and above are refused. A target
 * may have any visible ASCII but '#', since browsers send '|' and '{' as they are. Chunk sizes have
 * no blanks around them. Trailers are checked and dropped. */
#ifndef WEIR_SERVER_HTTP1_H
#define WEIR_SERVER_HTTP1_H

#include "base/buf.h"
#include "server/server.h"

enum {
    SRV_MAX_METHOD      = 16,           /* bytes; longer ones: 501 */
    SRV_MAX_CHUNK_DIGITS = 15,          /* of a chunk's size, leading zeros too */
    SRV_MAX_EXTENSIONS  = 4096          /* bytes of all chunk extensions of a request */
};

/* One header: offsets into `text` of the head, where both end with NUL. */
typedef struct srv_field {
    uint32_t name, value;
} srv_field;

/* The head of a request. {0} is empty; srv_http1_head_fini() releases it. */
typedef struct srv_http1_head {
    weir_buf  text;                     /* method, target, names and values; NUL behind each */
    uint32_t  target;                   /* offset into `text`; the method is at 0 */
    srv_field field[SRV_MAX_HEADERS];
    size_t    n_fields;
    uint32_t  host;                     /* offset of the value of Host, valid; 0: none (HTTP/1.0) */
    int       minor;                    /* HTTP/1.0 or HTTP/1.1 */
    uint64_t  length;                   /* Content-Length; 0: no body, unless it is chunked */
    bool      has_length, chunked;
    bool      close, keep;              /* what Connection says */
    bool      keep_alive;               /* may another request follow? */
} srv_http1_head;

void srv_http1_head_fini(srv_http1_head *head);

typedef enum srv_http1_event {
    SRV_HTTP1_MORE,     /* all bytes are used up, and nothing is complete */
    SRV_HTTP1_BEGIN,    /* a request begins: the caller sets `head` to an empty one */
    SRV_HTTP1_HEAD,     /* the head is complete */
    SRV_HTTP1_DATA,     /* `data` and `data_len`: the next bytes of the body */
    SRV_HTTP1_END,      /* the request is complete; the next byte is of another one */
    SRV_HTTP1_BAD       /* `status` and `why`; and so is every call from here on */
} srv_http1_event;

/* The state of one connection. {0} is ready for the first request. */
typedef struct srv_http1 {
    srv_http1_head *head;               /* borrowed from SRV_HTTP1_BEGIN to SRV_HTTP1_END */
    const char     *data;               /* within the bytes of the call */
    size_t          data_len;
    int             status;             /* 400, 413, 414, 431, 501, 503 or 505 */
    const char     *why;                /* a static text */
    uint8_t         state;
    uint8_t         known;              /* the field being read: an index; see http1.c */
    bool            after_empty;        /* an empty line came before the request */
    bool            trailers;
    int             major;
    uint32_t        count;              /* bytes of the element being read */
    uint32_t        extensions;         /* bytes of chunk extensions until now */
    size_t          kept;               /* length of the head's text, without trailers */
    uint64_t        left;               /* bytes of the body or of the chunk to come */
} srv_http1;

/* Read on from *at until something happens or `end` is reached; *at moves behind what was used.
 * Call it until it answers SRV_HTTP1_MORE: SRV_HTTP1_END may need no further byte. */
srv_http1_event srv_http1_read(srv_http1 *h, const char **at, const char *end);

/* Is it a host with or without a port, as Host and the authority of a target have it? */
bool srv_http1_is_host(const char *text, size_t len);

#endif
