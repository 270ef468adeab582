/* guard.c - the door: see guard.h. */
#include "server/access/guard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "server/access/tokens.h"

static const int64_t LONG_AGO = INT64_MIN / 2;

/* Wrong tokens from one address, in the window of time that began at since_ms. */
typedef struct wrong {
    char    peer[48];
    int64_t since_ms;
    int     count;
} wrong;

struct srv_guard {
    const srv_options *opt;
    char               path[4096];      /* of the tokens; "": nowhere */
    char               host[256];       /* of the address, without the port */
    bool               loopback;
    _Atomic int64_t    looked_ms;       /* when the file was last looked at */
    _Atomic int64_t    noted_ms;        /* when uses of tokens were last written */
    atomic_bool        unnoted;         /* there are some to be written */
    _Atomic uint64_t   version;         /* how often tokens were read, or one expired */
    _Atomic int64_t    next_expiry;     /* of a token; INT64_MAX: none expires */
    _Atomic uint64_t   failures;        /* and how often they could not be */
    void             (*changed)(void *ctx, const char *action, const char *name);
    void              *ctx;             /* of `changed`, which may be NULL */

    pthread_rwlock_t   lock;            /* guards what follows */
    srv_tokens         tokens;
    bool               closed;          /* there were tokens once: callers need one from then on */
    struct stat        seen;            /* the file as it was read; st_ino 0: none */

    pthread_mutex_t    wrong_lock;      /* guards what follows */
    wrong              wrong[SRV_MAX_PEERS];
};

static bool refuse(srv_refusal *no, int status, const char *fmt, ...) WEIR_PRINTF(3, 4);
static bool refuse(srv_refusal *no, int status, const char *fmt, ...)
{
    *no = (srv_refusal){ .status = status };
    WEIR__FORMAT(no->why, fmt);
    return false;
}

/* ---- tokens ---- */

/* Uses that were not written yet stay known. */
static void keep_uses(srv_tokens *fresh, const srv_tokens *old)
{
    for (size_t i = 0; i < fresh->n; i++)
        for (size_t k = 0; k < old->n; k++)
            if (memcmp(fresh->token[i].hash, old->token[k].hash, SRV_TOKEN_HASH) == 0 &&
                old->token[k].used_at > fresh->token[i].used_at)
                fresh->token[i].used_at = old->token[k].used_at;
}

void srv_guard_on_change(srv_guard *g,
                         void (*changed)(void *ctx, const char *action, const char *name),
                         void *ctx)
{
    g->changed = changed;
    g->ctx = ctx;
}

/* Those of `a` that are not in `b`. Lock held. */
static void report_missing(const srv_guard *g, const srv_tokens *a, const srv_tokens *b,
                         const char *action)
{
    for (size_t i = 0; g->changed && i < a->n; i++) {
        bool there = false;
        for (size_t k = 0; k < b->n && !there; k++)
            there = memcmp(a->token[i].hash, b->token[k].hash, SRV_TOKEN_HASH) == 0;
        if (!there)
            g->changed(g->ctx, action, a->token[i].who.name);
    }
}

/* Lock held. */
static void find_next_expiry(srv_guard *g)
{
    int64_t now = weir__wall_ms(), next = INT64_MAX;
    for (size_t i = 0; i < g->tokens.n; i++) {
        int64_t at = g->tokens.token[i].who.expires_at;
        if (at > now && at < next)
            next = at;
    }
    g->next_expiry = next;
}

/* Callers whose token has expired meanwhile are to be checked again. */
static void look_for_expiry(srv_guard *g)
{
    int64_t next = g->next_expiry;
    if (next == INT64_MAX || weir__wall_ms() < next ||
        !atomic_compare_exchange_strong(&g->next_expiry, &next, INT64_MAX))
        return;
    pthread_rwlock_wrlock(&g->lock);
    find_next_expiry(g);
    pthread_rwlock_unlock(&g->lock);
    atomic_fetch_add(&g->version, 1);
}

weir_code srv_guard_reload(srv_guard *g, weir_error *err)
{
    if (!*g->path)
        return WEIR_OK;
    /* Looked at before it is read: what changes in between is seen the next time. */
    srv_tokens  fresh, old;
    struct stat st;
    if (stat(g->path, &st))
        st = (struct stat){ 0 };
    weir_code rc = srv_tokens_read(&fresh, g->path, err);
    if (!rc)
        srv_tokens_read_uses(&fresh, g->path);
    pthread_rwlock_wrlock(&g->lock);
    g->seen = st;
    old = rc ? fresh : g->tokens;
    if (!rc) {
        keep_uses(&fresh, &g->tokens);
        report_missing(g, &g->tokens, &fresh, "token.remove");
        report_missing(g, &fresh, &g->tokens, "token.add");
        g->tokens = fresh;
        find_next_expiry(g);
    }
    g->closed = g->closed || g->tokens.n;
    pthread_rwlock_unlock(&g->lock);
    srv_tokens_fini(&old);
    atomic_fetch_add(rc ? &g->failures : &g->version, 1);
    return rc;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* `weir token add` needs no signal. One thread looks, at most every SRV_TOKENS_MS. */
static void look_for_changes(srv_guard *g, int64_t now_ms)
{
    int64_t looked = atomic_load(&g->looked_ms);
    if (!*g->path || now_ms - looked < SRV_TOKENS_MS ||
        !atomic_compare_exchange_strong(&g->looked_ms, &looked, now_ms))
        return;
    struct stat st;
    if (stat(g->path, &st))
        st = (struct stat){ 0 };
    pthread_rwlock_rdlock(&g->lock);
    bool same = same_file(&st, &g->seen);
    pthread_rwlock_unlock(&g->lock);
    weir_error err;
    char       text[WEIR_ERROR_MAX + 80];
    if (same || !srv_guard_reload(g, &err) || !g->opt->notice)
        return;
    snprintf(text, sizeof text, "the tokens were not read again, those from before stay valid: %s",
             err.msg);
    g->opt->notice(text, g->opt->notice_ctx);
}

uint64_t srv_guard_watch(srv_guard *g, int64_t now_ms)
{
    look_for_changes(g, now_ms);
    look_for_expiry(g);
    return atomic_load(&g->version);
}

uint64_t srv_guard_failures(const srv_guard *g)
{
    return atomic_load(&g->failures);
}

static bool needs_token(srv_guard *g)
{
    pthread_rwlock_rdlock(&g->lock);
    bool closed = g->closed;
    pthread_rwlock_unlock(&g->lock);
    return closed || !g->loopback;
}

/* Its last use is kept to SRV_USE_MS, so most requests only compare. The first use is noted at
 * once: `weir token list` shows whether a token is in use. */
static bool find_caller(srv_guard *g, const char *text, int64_t now, srv_caller *who)
{
    pthread_rwlock_rdlock(&g->lock);
    srv_token *t = srv_tokens_find(&g->tokens, text);
    if (t) {
        *who = t->who;
        int64_t used_at = t->used_at;
        if (now - used_at >= SRV_USE_MS) {
            t->used_at = now;
            if (!used_at)
                g->noted_ms = LONG_AGO;
            g->unnoted = true;
        }
    }
    pthread_rwlock_unlock(&g->lock);
    return t != NULL;
}

/* At most every SRV_USE_MS, by one thread. A directory that cannot be written to costs the note. */
static void note_uses(srv_guard *g, int64_t now_ms)
{
    int64_t noted = g->noted_ms;
    if (!g->unnoted || now_ms - noted < SRV_USE_MS ||
        !atomic_compare_exchange_strong(&g->noted_ms, &noted, now_ms))
        return;
    g->unnoted = false;
    pthread_rwlock_rdlock(&g->lock);
    srv_tokens_write_uses(&g->tokens, g->path, NULL);
    pthread_rwlock_unlock(&g->lock);
}

void srv_guard_count_tokens(srv_guard *g, srv_token_counts *out)
{
    int64_t now = weir__wall_ms(), next = INT64_MAX;
    *out = (srv_token_counts){ 0 };
    pthread_rwlock_rdlock(&g->lock);
    for (size_t i = 0; i < g->tokens.n; i++) {
        const srv_caller *who = &g->tokens.token[i].who;
        bool              over = who->expires_at && who->expires_at <= now;
        bool soon = !over && who->expires_at && who->expires_at - now < SRV_EXPIRES_SOON_MS;
        out->expired += over;
        out->valid += !over;
        out->soon += soon;
        if (soon && who->expires_at < next) {
            next = who->expires_at;
            strcpy(out->next, who->name);
        }
    }
    pthread_rwlock_unlock(&g->lock);
}

static bool refuse_expired(srv_refusal *no, const srv_caller *who)
{
    time_t    at = (time_t)(who->expires_at / 1000);
    struct tm tm;
    char      text[32];
    gmtime_r(&at, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return refuse(no, 401, "the token '%s' expired at %s (weir token rotate makes a new one)",
                  who->name, text);
}

/* ---- wrong tokens ----
 *
 * Nobody guesses 256 bits: this is against clients that try forever with a token that is gone. So a
 * right token passes always, whatever came from that address before; behind a proxy one broken
 * client would lock out all others otherwise. */

/* The address without the port; of IPv6 the half that is a customer's. */
static void peer_key(const char *peer, char *out, size_t size)
{
    const char *colon = strrchr(peer, ':');
    size_t      len = colon ? (size_t)(colon - peer) : strlen(peer);
    if (*peer == '[')
        for (size_t i = 0, colons = 0; i < len; i++)
            if (peer[i] == ':' && ++colons == 4)
                len = i;
    snprintf(out, size, "%.*s", (int)len, peer);
}

/* Count one more; 0: go on, else the seconds to wait. Addresses with the same hash share a slot,
 * which the newer one takes: so memory is bounded, and at worst a count is too low. */
static int count_wrong(srv_guard *g, const char *peer, int64_t now_ms)
{
    char     key[sizeof g->wrong->peer];
    uint32_t hash = 2166136261u;
    peer_key(peer, key, sizeof key);
    for (const char *p = key; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619u;
    pthread_mutex_lock(&g->wrong_lock);
    wrong *w = &g->wrong[hash % SRV_MAX_PEERS];
    if (strcmp(w->peer, key) != 0 || now_ms - w->since_ms >= SRV_WRONG_MS) {
        *w = (wrong){ .since_ms = now_ms };
        strcpy(w->peer, key);
    }
    int wait = 0;
    if (++w->count > SRV_MAX_WRONG)
        wait = (int)((w->since_ms + SRV_WRONG_MS - now_ms + 999) / 1000);
    pthread_mutex_unlock(&g->wrong_lock);
    return wait;
}

static bool check_token(srv_guard *g, const srv_head *h, int64_t now_ms, srv_caller *who,
                        srv_refusal *no)
{
    static const char scheme[] = "Bearer ";
    if (!h->authorization)
        return refuse(no, 401, "a token is needed: Authorization: Bearer wtk_... (weir "
                      "token add makes one)");
    if (strncasecmp(h->authorization, scheme, sizeof scheme - 1) != 0)
        return refuse(no, 401, "Authorization: only 'Bearer TOKEN' is supported");
    const char *text = h->authorization + sizeof scheme - 1;
    text += strspn(text, " ");
    int64_t now = weir__wall_ms();
    if (find_caller(g, text, now, who)) {
        note_uses(g, now_ms);
        return !who->expires_at || who->expires_at > now || refuse_expired(no, who);
    }
    int wait = count_wrong(g, h->peer, now_ms);
    if (!wait)
        return refuse(no, 401, "unknown token");
    refuse(no, 429, "more than %d wrong tokens from this address (SRV_MAX_WRONG)",
           SRV_MAX_WRONG);
    no->retry_after = wait;
    return false;
}

/* ---- pages of others ---- */

/* Is `text` the name of a host, with any port or none? Names of hosts have no case. */
static bool names_host(const char *text, const char *host)
{
    size_t len = strlen(host);
    return len && strncasecmp(text, host, len) == 0 && (text[len] == 0 || text[len] == ':');
}

bool srv_guard_shares(const srv_guard *g, const char *origin)
{
    for (const char *const *o = g->opt->origins; origin && o && *o; o++)
        if (strcasecmp(*o, origin) == 0)
            return true;
    return false;
}

/* A page somewhere can have its name lead to 127.0.0.1 and so be of the same origin as we are (DNS
 * rebinding). But then the request says that name. */
static bool host_is_ours(const srv_guard *g, const char *host)
{
    if (!host)
        return true;            /* HTTP/1.0: no browser */
    if (names_host(host, "localhost") || names_host(host, "127.0.0.1") ||
        names_host(host, "[::1]") || names_host(host, g->host))
        return true;
    for (const char *const *o = g->opt->origins; o && *o; o++)
        if (names_host(host, strstr(*o, "://") + 3))
            return true;
    return false;
}

/* Does the origin say the host that was asked for? The scheme may differ: a proxy has the TLS. */
static bool is_own_origin(const char *origin, const char *host)
{
    const char *at = strstr(origin, "://");
    return at && host && strcasecmp(at + 3, host) == 0;
}

/* Pages of others have no business here, not even to look: an open server shows them nothing, and
 * costs nothing when they open a thousand streams. */
static bool check_page(const srv_guard *g, const srv_head *h, srv_refusal *no)
{
    if (srv_guard_shares(g, h->origin))
        return true;
    bool other = h->fetch_site ? strcmp(h->fetch_site, "same-origin") != 0 &&
                                     strcmp(h->fetch_site, "none") != 0
                               : h->origin && !is_own_origin(h->origin, h->host);
    if (other)
        return refuse(no, 403, "a page of another site may not call this server; weir serve "
                               "--origin ORIGIN permits the pages of a site");
    return true;
}

/* The caller of an open route: with roles, which may show more, or a stranger. */
static void identify(srv_guard *g, const srv_head *h, int64_t now_ms, srv_caller *who)
{
    srv_refusal no;
    if (!needs_token(g))
        who->roles = host_is_ours(g, h->host) && check_page(g, h, &no) ? WEIR_ROLE_ALL : 0;
    else if (!h->authorization || !check_token(g, h, now_ms, who, &no))
        *who = (srv_caller){ 0 };
}

bool srv_guard_admit(srv_guard *g, const srv_head *h, int64_t now_ms, srv_caller *who,
                     srv_refusal *no)
{
    *who = (srv_caller){ 0 };
    look_for_changes(g, now_ms);
    if (h->route->flags & SRV_OPEN) {
        identify(g, h, now_ms, who);
        return true;
    }
    bool open = !needs_token(g);
    if (open && !host_is_ours(g, h->host))
        return refuse(no, 403, "Host: '%.80s' is not a name of this server; if it is, start it "
                      "with --origin http://%.80s", h->host, h->host);
    if (!check_page(g, h, no))
        return false;
    if (open)
        who->roles = WEIR_ROLE_ALL;
    else if (!check_token(g, h, now_ms, who, no))
        return false;
    if (!(who->roles & h->route->roles)) {
        char has[64], needs[64];
        return refuse(no, 403, "the token '%s' may not do this: its role is %s, needed is %s",
                      who->name, srv_roles_text(who->roles, has, sizeof has),
                      srv_roles_text(h->route->roles, needs, sizeof needs));
    }
    return true;
}

/* ---- making one ---- */

weir_code srv_guard_create(srv_guard **out, const srv_options *opt, const char *address,
                           bool loopback, weir_error *err)
{
    *out = NULL;
    srv_guard *g = calloc(1, sizeof *g);
    if (!g)
        return weir_fail(err, WEIR_ENOMEM, "server: out of memory");
    const char *colon = strrchr(address, ':');
    g->opt = opt;
    g->loopback = loopback;
    g->looked_ms = INT64_MIN / 2;
    g->noted_ms = LONG_AGO;
    g->next_expiry = INT64_MAX;
    pthread_rwlock_init(&g->lock, NULL);
    pthread_mutex_init(&g->wrong_lock, NULL);
    snprintf(g->host, sizeof g->host, "%.*s", colon ? (int)(colon - address) : 0, address);
    if (opt->tokens_file)
        snprintf(g->path, sizeof g->path, "%s", opt->tokens_file);
    else if (opt->data_dir)
        snprintf(g->path, sizeof g->path, "%s/tokens.json", opt->data_dir);
    weir_code rc = srv_guard_reload(g, err);
    if (!rc && !loopback && !g->tokens.n)
        rc = weir_fail(err, WEIR_EINVAL, "%s can be reached from other machines, so callers need "
                       "an access token; create one: weir token add NAME --role "
                       "admin%s%s", address, opt->data_dir ? " --data " : "",
                       !opt->data_dir       ? ""
                       : opt->data_vanishes ? "DIR, and serve with --data DIR" : opt->data_dir);
    if (rc)
        srv_guard_destroy(g);
    else
        *out = g;
    return rc;
}

void srv_guard_destroy(srv_guard *g)
{
    if (!g)
        return;
    if (g->unnoted)
        srv_tokens_write_uses(&g->tokens, g->path, NULL);
    srv_tokens_fini(&g->tokens);
    pthread_rwlock_destroy(&g->lock);
    pthread_mutex_destroy(&g->wrong_lock);
    free(g);
}
