/* guard.h - the door: which requests are let in, and as whom. Asked once the head of a request has
 * been read, before anything is done for it or its body is taken.
 *
 * A server on loopback without any token is open to everybody on the machine. Requests of a browser
 * for another site's page are refused even then: such a page can not choose the headers Host,
 * Origin and Sec-Fetch-Site. If a token exists, or on any other address, every caller needs a
 * token. Until a restart, this holds even if the last token is removed or the file is lost. */
#ifndef WEIR_SERVER_GUARD_H
#define WEIR_SERVER_GUARD_H

#include "server/access/auth.h"
#include "server/http/route.h"
#include "server/server.h"

typedef struct srv_guard srv_guard;

enum {
    SRV_MAX_WRONG  = 20,                /* wrong tokens from one address, in ... */
    SRV_WRONG_MS   = 60 * 1000,         /* ... this time; then the answer is 429 */
    SRV_MAX_PEERS  = 1024,              /* addresses whose wrong tokens are counted */
    SRV_TOKENS_MS  = 1000               /* how often to see whether the file of tokens changed */
};

/* The headers that the guard examines. NULL: that header was not sent. */
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

/* `address` is where the server listens, "127.0.0.1:7340". Reads the tokens. Errors: as
 * srv_tokens_read(); WEIR_EINVAL when an address that is not loopback has no token, with the
 * remedy. `opt` is borrowed as long as the guard lives. On success *out belongs to the caller:
 * srv_guard_destroy(). */
weir_code srv_guard_create(srv_guard **out, const srv_options *opt, const char *address,
                           bool loopback, weir_error *err);
void srv_guard_destroy(srv_guard *g);           /* NULL is fine */

/* Read the tokens again; on failure the old ones stay. Any thread. */
weir_code srv_guard_reload(srv_guard *g, weir_error *err);

/* Read the tokens again if their file has changed, looking at most every SRV_TOKENS_MS. A failure
 * goes to opt->notice. Returns how often tokens were read or one expired: callers who were let in
 * before that must be checked again when it changes. Any thread. */
uint64_t srv_guard_watch(srv_guard *g, int64_t now_ms);

uint64_t srv_guard_failures(const srv_guard *g);        /* reloads that failed */

/* From now on: `changed` is called for each token that came or went with a reload, with "token.add"
 * or "token.remove". Before the first request. */
void srv_guard_on_change(srv_guard *g,
                         void (*changed)(void *ctx, const char *action, const char *name),
                         void *ctx);

/* True: *who is the caller; for routes that are open to all, a stranger without any role unless it
 * can be known better. Any thread; now_ms is monotonic. */
bool srv_guard_admit(srv_guard *g, const srv_head *head, int64_t now_ms, srv_caller *who,
                     srv_refusal *no);

/* How many tokens are valid, expire within SRV_EXPIRES_SOON_MS, and are expired. Any thread. */
typedef struct srv_token_counts {
    size_t valid, soon, expired;        /* `valid` includes `soon` */
    char   next[64];                    /* the name of the next to expire; "": none does soon */
} srv_token_counts;
void srv_guard_count_tokens(srv_guard *g, srv_token_counts *out);

/* May a page of this origin read our answers? Then they carry Access-Control-Allow-Origin. */
bool srv_guard_shares(const srv_guard *g, const char *origin);

#endif
