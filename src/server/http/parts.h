/* parts.h - long answers (lists, logs) that are made and sent part by part. The next part is made
 * when the client has read the last one, so a client that does not read costs one part.
 *
 * A handler calls srv_parts_begin(), then more() again and again: more() reads a few items from the
 * store, appends them to `body`, and calls srv_parts_go_on(), srv_parts_end() or
 * srv_parts_failed(). Between these steps the handler holds memory of the request only, since the
 * request may end there. An answer that fits into one part is sent as a whole, with its length. */
#ifndef WEIR_SERVER_PARTS_H
#define WEIR_SERVER_PARTS_H

#include "server/http/request.h"

typedef struct srv_parts {
    const char *type;                   /* of the content */
    void      (*more)(srv_request *r);
    weir_buf    body;                   /* made, and not sent yet */
    bool        has_room;               /* a part is counted for what is being made */
    bool        streams;                /* the first part was sent */
    bool        unread;                 /* waits for the client to read the last part */
    bool        no_room;                /* waits for room for the next part, ... */
    int         looks;                  /* ... and the number of its looks */
} srv_parts;

/* Starts the answer: `p` is memory of the request, zeroed. False: there is no room for another
 * unread answer (SRV_MAX_ANSWERS, or the caller's share), and the request was answered. */
bool srv_parts_begin(srv_request *r, srv_parts *p, const char *type, void (*more)(srv_request *r));
/* `body` has grown: send it if it is a part, and call more(). */
void srv_parts_go_on(srv_request *r);
/* `body` has the end of the answer. */
void srv_parts_end(srv_request *r);
/* more() cannot go on. True: parts were sent, so the answer is cut off and the request has ended;
 * false: nothing was sent, the handler answers with its error. */
bool srv_parts_failed(srv_request *r);

/* How many items make a part, if they are as large as the `n` before, which had `bytes`. */
size_t srv_parts_items(size_t n, size_t bytes);

#endif
