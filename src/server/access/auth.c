/* auth.c - roles and callers: see auth.h. */
#include "server/access/auth.h"

#include <stdio.h>
#include <string.h>

#include "core/job.h"
#include "server/access/guard.h"
#include "server/http/inner.h"

const srv_role srv_role_table[] = {
    { "read", WEIR_ROLE_READ, WEIR_ROLE_READ },
    { "produce", WEIR_ROLE_PRODUCE, WEIR_ROLE_PRODUCE | WEIR_ROLE_READ },
    { "work", WEIR_ROLE_WORK, WEIR_ROLE_WORK | WEIR_ROLE_READ },
    { "admin", WEIR_ROLE_ADMIN, WEIR_ROLE_ALL },
    { 0 }
};
enum { N_ROLES = sizeof srv_role_table / sizeof *srv_role_table - 1 };

bool srv_caller_lacks(const srv_caller *who, const char *type)
{
    if (!*who->types)
        return false;
    for (const char *t = who->types; *t; t = srv_next_type(t))
        if (strcmp(t, type) == 0)
            return false;
    return true;
}

bool srv_caller_may(const srv_caller *who, unsigned role, const char *type)
{
    return (who->roles & role) && (!*who->types || (type && !srv_caller_lacks(who, type)));
}

bool srv_caller_add_type(srv_caller *who, const char *type)
{
    size_t      n = 0, len = strlen(type);
    const char *end = who->types;
    for (; *end; end = srv_next_type(end))
        n++;
    size_t at = (size_t)(end - who->types);
    if (!len || n == SRV_MAX_TOKEN_TYPES || at + len + 2 > sizeof who->types)
        return false;
    memcpy(who->types + at, type, len + 1);
    who->types[at + len + 1] = 0;
    return true;
}

weir_code srv_caller_add_types(srv_caller *who, const char *text, weir_error *err)
{
    for (const char *at = text;; at++) {
        char   name[WEIR_MAX_TYPE + 1];
        size_t len = strcspn(at, ",");
        if (len > WEIR_MAX_TYPE)
            return weir_fail(err, WEIR_EINVAL, "%zu bytes, at most %d (WEIR_MAX_TYPE)", len,
                             WEIR_MAX_TYPE);
        memcpy(name, at, len);
        name[len] = 0;
        weir_code rc = weir__type_check(name, "", err);
        if (!rc && !srv_caller_add_type(who, name))
            rc = weir_fail(err, WEIR_ELIMIT, "more than %d types or %d bytes of their names",
                           SRV_MAX_TOKEN_TYPES, SRV_TYPES_TEXT);
        at += len;
        if (rc || !*at)
            return rc;
    }
}

const char *srv_caller_only_type(const srv_caller *who)
{
    return *who->types && !*srv_next_type(who->types) ? who->types : NULL;
}

char *srv_caller_types_text(const srv_caller *who, char *out, size_t size)
{
    size_t n = 0;
    *out = 0;
    for (const char *t = who->types; *t && n < size; t = srv_next_type(t))
        n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "", t);
    return out;
}

bool srv_roles_parse(const char *text, unsigned *out)
{
    *out = 0;
    for (const char *at = text;; at++) {
        size_t   len = strcspn(at, ",");
        unsigned found = 0;
        for (size_t i = 0; i < N_ROLES; i++)
            if (strlen(srv_role_table[i].name) == len &&
                memcmp(srv_role_table[i].name, at, len) == 0)
                found = srv_role_table[i].all;
        if (!found)
            return false;
        *out |= found;
        at += len;
        if (!*at)
            return true;
    }
}

char *srv_roles_text(unsigned roles, char *out, size_t size)
{
    unsigned named = 0;
    *out = 0;
    for (size_t i = N_ROLES, n = 0; i-- > 0;) {
        if (!(roles & srv_role_table[i].bit) || (named & srv_role_table[i].bit) || n >= size)
            continue;
        n += (size_t)snprintf(out + n, size - n, "%s%s", n ? "," : "", srv_role_table[i].name);
        named |= srv_role_table[i].all;
    }
    return out;
}

srv_head srv_auth_head(const srv_request *r)
{
    const srv_exchange *x = (const srv_exchange *)r;
    return (srv_head){
        .route = r->route, .method = r->method, .peer = r->conn ? r->conn->peer : "",
        .host = x->host, .origin = srv_header(r, "Origin"),
        .fetch_site = srv_header(r, "Sec-Fetch-Site"),
        .authorization = srv_header(r, "Authorization")
    };
}

static bool same_types(const srv_caller *a, const srv_caller *b)
{
    const char *s = a->types, *t = b->types;
    for (; *s && !strcmp(s, t); s = srv_next_type(s))
        t = srv_next_type(t);
    return !*s && !*t;
}

bool srv_auth_again(srv_request *r)
{
    srv_exchange *x = (srv_exchange *)r;
    srv_head      head = srv_auth_head(r);
    srv_caller    who;
    srv_refusal   no;
    if (r->revoked)
        return false;
    if (srv_guard_admit(r->server->guard, &head, srv_loop_ms(), &who, &no) &&
        who.roles == r->who.roles && same_types(&who, &r->who))
        return true;
    r->revoked = true;
    x->keep_alive = false;
    atomic_fetch_add(&r->server->counters.callers_revoked, 1);
    return false;
}

bool srv_auth(srv_exchange *x, char *why, size_t size, int *status)
{
    srv_request *r = &x->r;
    srv_refusal  no;
    srv_head     head = srv_auth_head(r);
    srv_share_with_page(x);
    if (srv_guard_admit(r->server->guard, &head, srv_loop_ms(), &r->who, &no))
        return true;
    if (no.status == 401)
        srv_reply_header(r, "WWW-Authenticate", "Bearer realm=\"weir\"");
    if (no.retry_after) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%d", no.retry_after);
        srv_reply_header(r, "Retry-After", seconds);
    }
    snprintf(why, size, "%s", no.why);
    *status = no.status;
    return false;
}
