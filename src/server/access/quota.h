/* quota.h - how much of the server one caller uses: a table of tokens and addresses, each with what
 * it has of every share and how fast it asks. Any thread.
 *
 * An address is an IPv4 address or the /64 of an IPv6 one, which is what a customer gets. Loopback
 * has no quota: everybody behind a proxy on this machine comes from there. The table has
 * SRV_MAX_QUOTAS places. Callers that use nothing give theirs to others; if all are in use, the
 * callers that come then share one. */
#ifndef WEIR_SERVER_QUOTA_H
#define WEIR_SERVER_QUOTA_H

#include "server/server.h"

typedef struct srv_quotas srv_quotas;
typedef struct srv_quota srv_quota;

/* `limit` is borrowed. On success *out belongs to the caller: srv_quotas_destroy(), when nobody
 * refers to a quota any more. */
weir_code srv_quotas_create(srv_quotas **out, const int64_t limit[SRV_SHARES], weir_error *err);
void srv_quotas_destroy(srv_quotas *qs);            /* NULL is fine */

/* With a reference: srv_quota_unref(). NULL stands for no limit, and is fine for all that follow.
 * `peer` is "10.0.0.1:51234" or "[2001:db8::1]:51234". */
srv_quota *srv_quota_of_address(srv_quotas *qs, const char *peer);
srv_quota *srv_quota_of_token(srv_quotas *qs, const char *name);
srv_quota *srv_quota_ref(srv_quota *q);
void srv_quota_unref(srv_quota *q);

bool srv_quota_is_token(const srv_quota *q, const char *name);

/* Take n of a share. False: that would be over the limit, and nothing was taken. */
bool srv_quota_take(srv_quota *q, srv_share share, int64_t n);
/* The same without a limit; n may be negative, to give back. */
void srv_quota_add(srv_quota *q, srv_share share, int64_t n);
int64_t srv_quota_used(const srv_quota *q, srv_share share);

/* One more request. 0, or the milliseconds until it would be allowed. */
int64_t srv_quota_request(srv_quota *q, int64_t now_ms);

/* "the address 10.0.0.1 is over its share (caller-rate: 100)". The answer is `out`. */
char *srv_quota_text(const srv_quota *q, srv_share share, char *out, size_t size);

/* "caller-rate": the name of the setting. */
const char *srv_share_name(srv_share share);

#endif
