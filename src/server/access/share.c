/* share.c - shares of the server: connections and requests use the shares of their callers
 * (quota.h) and, all together, the memory for answers. */
#include <stdio.h>
#include <string.h>

#include "server/http/inner.h"

/* ---- refusals ---- */

static void count_refusal(srv_server *s, srv_share share)
{
    atomic_fetch_add(&s->counters.over_share[share], 1);
}

static int refuse(srv_conn *c, const srv_quota *q, srv_share share)
{
    char why[WEIR_ERROR_MAX];
    count_refusal(c->server, share);
    return srv_refuse(c, 429, srv_quota_text(q, share, why, sizeof why));
}

static void reply_refused(srv_request *r, const srv_quota *q, srv_share share)
{
    char why[WEIR_ERROR_MAX];
    count_refusal(r->server, share);
    srv_reply_status(r, 429, "http", "%s", srv_quota_text(q, share, why, sizeof why));
}

/* ---- coming in ---- */

bool srv_share_token(srv_conn *c, const char *name, char why[WEIR_ERROR_MAX])
{
    if (srv_quota_is_token(c->quota[1], name))
        return true;
    srv_quota *q = srv_quota_of_token(c->server->quotas, name);
    if (!srv_quota_take(q, SRV_SHARE_CONNECTIONS, 1)) {
        count_refusal(c->server, SRV_SHARE_CONNECTIONS);
        srv_quota_text(q, SRV_SHARE_CONNECTIONS, why, WEIR_ERROR_MAX);
        srv_quota_unref(q);
        return false;
    }
    srv_quota_add(q, SRV_SHARE_ANSWERS, (int64_t)c->unsent);
    srv_share_leave(c, 1);
    c->quota[1] = q;
    return true;
}

/* The connection counts for the token of its last request. */
static int count_for_token(srv_conn *c, const char *name)
{
    char why[WEIR_ERROR_MAX];
    if (srv_share_token(c, name, why))
        return 0;
    c->now->keep_alive = false;
    return srv_refuse(c, 429, why);
}

int srv_share_admit(srv_conn *c)
{
    srv_exchange *x = c->now;
    if (count_for_token(c, x->r.who.name))
        return -1;
    for (int i = 0; i < 2; i++) {
        x->quota[i] = srv_quota_ref(c->quota[i]);
        int64_t wait = srv_quota_request(x->quota[i], srv_loop_ms());
        if (wait) {
            char seconds[24];
            snprintf(seconds, sizeof seconds, "%lld", (long long)(wait + 999) / 1000);
            srv_reply_header(&x->r, "Retry-After", seconds);
            return refuse(c, x->quota[i], SRV_SHARE_RATE);
        }
    }
    if (atomic_load(&c->server->answers) > c->server->opt.limits.answers &&
        !(x->r.route->flags & SRV_OPEN)) {
        atomic_fetch_add(&c->server->counters.answers_refused, 1);
        return srv_refuse(c, 503, SRV_NO_ROOM);
    }
    return 0;
}

/* The connection is closed, or counts for another token. */
void srv_share_leave(srv_conn *c, int i)
{
    srv_quota_add(c->quota[i], SRV_SHARE_CONNECTIONS, -1);
    srv_quota_add(c->quota[i], SRV_SHARE_ANSWERS, -(int64_t)c->unsent);
    srv_quota_unref(c->quota[i]);
    c->quota[i] = NULL;
}

/* ---- bodies ---- */

int srv_share_body(srv_conn *c, size_t more)
{
    srv_exchange *x = c->now;
    int64_t       most = c->server->opt.limits.caller[SRV_SHARE_BODIES];
    for (int i = 0; i < 2; i++)
        srv_quota_add(x->quota[i], SRV_SHARE_BODIES, (int64_t)more);
    for (int i = 0; i < 2 && x->reserved > SRV_FREE_BODY; i++)
        if (srv_quota_used(x->quota[i], SRV_SHARE_BODIES) > most)
            return refuse(c, x->quota[i], SRV_SHARE_BODIES);
    return 0;
}

void srv_share_end(srv_exchange *x)
{
    for (int i = 0; i < 2; i++) {
        srv_quota_add(x->quota[i], SRV_SHARE_BODIES, -(int64_t)x->reserved);
        srv_quota_unref(x->quota[i]);
    }
}

/* ---- listening and waiting ---- */

bool srv_share_take(srv_request *r, srv_share share)
{
    srv_exchange *x = (srv_exchange *)r;
    for (int i = 0; i < 2; i++) {
        if (srv_quota_take(x->quota[i], share, 1))
            continue;
        if (i == 1)
            srv_quota_add(x->quota[0], share, -1);
        reply_refused(r, x->quota[i], share);
        return false;
    }
    return true;
}

void srv_share_give(srv_request *r, srv_share share)
{
    srv_exchange *x = (srv_exchange *)r;
    srv_quota_add(x->quota[0], share, -1);
    srv_quota_add(x->quota[1], share, -1);
}

/* ---- answers ---- */

enum { ROOM = -1, ALL = 2 };            /* else the index of a quota */

static bool is_over(size_t used, size_t n, size_t most)
{
    return used && used + n > most;     /* a caller that is alone always gets its answer */
}

/* Whose limit has no room for n bytes more? */
static int find_lack(const srv_request *r, size_t n)
{
    const srv_exchange *x = (const srv_exchange *)r;
    const srv_limits   *l = &r->server->opt.limits;
    for (int i = 0; i < 2; i++)
        if (is_over((size_t)srv_quota_used(x->quota[i], SRV_SHARE_ANSWERS), n,
                    (size_t)l->caller[SRV_SHARE_ANSWERS]))
            return i;
    return is_over(atomic_load(&r->server->answers), n, l->answers) ? ALL : ROOM;
}

static void reply_lack(srv_request *r, int lack)
{
    if (lack != ALL) {
        reply_refused(r, ((srv_exchange *)r)->quota[lack], SRV_SHARE_ANSWERS);
        return;
    }
    atomic_fetch_add(&r->server->counters.answers_refused, 1);
    srv_reply_status(r, 503, "http", "%s", SRV_NO_ROOM);
}

bool srv_answer_fits(srv_request *r, weir_buf *body)
{
    int lack = body->len <= SRV_FREE_ANSWER || !r->conn ? ROOM : find_lack(r, body->len);
    if (lack == ROOM)
        return true;
    weir__buf_fini(body);               /* it may be memory of the request, which ends here */
    reply_lack(r, lack);
    return false;
}

static void add_room(srv_request *r, int64_t n)
{
    srv_exchange *x = (srv_exchange *)r;
    atomic_fetch_add(&r->server->answers, (size_t)n);
    srv_quota_add(x->quota[0], SRV_SHARE_ANSWERS, n);
    srv_quota_add(x->quota[1], SRV_SHARE_ANSWERS, n);
}

bool srv_share_room(srv_request *r, size_t n)
{
    bool fits = find_lack(r, n) == ROOM;
    if (fits)
        add_room(r, (int64_t)n);
    return fits;
}

bool srv_share_room_or_reply(srv_request *r, size_t n)
{
    int lack = find_lack(r, n);
    if (lack == ROOM)
        add_room(r, (int64_t)n);
    else
        reply_lack(r, lack);
    return lack == ROOM;
}

void srv_share_room_end(srv_request *r, size_t n)
{
    add_room(r, -(int64_t)n);
}

void srv_share_unsent(srv_conn *c)
{
    size_t  len = evbuffer_get_length(c->out);
    int64_t more = (int64_t)len - (int64_t)c->unsent;
    if (!more)
        return;
    atomic_fetch_add(&c->server->answers, (size_t)more);
    srv_quota_add(c->quota[0], SRV_SHARE_ANSWERS, more);
    srv_quota_add(c->quota[1], SRV_SHARE_ANSWERS, more);
    c->unsent = len;
}
