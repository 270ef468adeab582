/* guard.h - the door: which requests are let in, and as whom. Asked once the head of a request has
 * been read, before anything is done for it or its body is taken.
 *
 * A server on loopback without any token is open to everybody on the machine. What a browser does
 * for a page of somebody else's is kept out even then: such a page can not choose the headers Host,
 * Origin and Sec-Fetch-Site. As soon as there is one token, or on any other address, every caller
 * needs one; also when the last one is taken away or their file is lost, until a restart. */
#ifndef WEIR_SERVER_GUARD_H
#define WEIR_SERVER_GUARD_H

#include "server/auth.h"
#include "server/route.h"
#include "server/server.h"

typedef struct srv_guard srv_guard;

enum {
    SRV_MAX_WRONG  = 20,                /* wrong tokens from one address, in ... */
    SRV_WRONG_MS   = 60 * 1000,         /* ... this time; then they are told to slow down */
    SRV_MAX_PEERS  = 1024,              /* addresses whose wrong tokens are counted */
    SRV_TOKENS_MS  = 1000               /* how often to see whether the file of tokens changed */
};

/* What the guard looks at. NULL: that header was not sent. */
typedef struct srv_head {
    const srv_route *route;
    const char      *method;
    const char      *peer;              /* "127.0.0.1:51234", "[::1]:51234" */
    const char      *host, *origin, *fetch_site, *authorization;
} srv_head;

/* How it was refused. */
typedef struct srv_refusal {
    int         status;                 /* 401, 403, 429 */
    char        why[200];
    int         retry_after;            /* seconds; 0: no such header */
} srv_refusal;

/* `address` is where the server listens, "127.0.0.1:7340". Reads the tokens. Errors: those of
 * srv_tokens_read(); WEIR_EINVAL when an address that is not loopback has no token, with the
 * remedy. `opt` is borrowed as long as the guard lives. On success *out belongs to the caller:
 * srv_guard_destroy(). */
weir_code srv_guard_create(srv_guard **out, const srv_options *opt, const char *address,
                           bool loopback, weir_error *err);
void srv_guard_destroy(srv_guard *g);           /* NULL is fine */

/* Read the tokens again; on failure the old ones stay. Any thread. */
weir_code srv_guard_reload(srv_guard *g, weir_error *err);

/* True: *who is the caller. Any thread; now_ms is monotonic. */
bool srv_guard_admit(srv_guard *g, const srv_head *head, int64_t now_ms, srv_caller *who,
                     srv_refusal *no);

/* May a page of this origin read our answers? Then they carry Access-Control-Allow-Origin. */
bool srv_guard_shares(const srv_guard *g, const char *origin);

#endif
