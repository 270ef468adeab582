/* auth.c - roles and callers: see auth.h. */
#include "server/auth.h"

#include <stdio.h>
#include <string.h>

#include "server/guard.h"
#include "server/inner.h"

const srv_role srv_role_table[] = {
    { "read", SRV_READ, SRV_READ },
    { "produce", SRV_PRODUCE, SRV_PRODUCE | SRV_READ },
    { "work", SRV_WORK, SRV_WORK | SRV_READ },
    { "admin", SRV_ADMIN, SRV_ALL },
    { 0 }
};
enum { N_ROLES = sizeof srv_role_table / sizeof *srv_role_table - 1 };

bool srv_caller_may(const srv_caller *who, unsigned role, const char *type)
{
    return (who->roles & role) && (!*who->type || (type && strcmp(who->type, type) == 0));
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
    unsigned told = 0;
    *out = 0;
    for (size_t i = N_ROLES, n = 0; i-- > 0;) {
        if (!(roles & srv_role_table[i].bit) || (told & srv_role_table[i].bit) || n >= size)
            continue;
        n += (size_t)snprintf(out + n, size - n, "%s%s", n ? "," : "", srv_role_table[i].name);
        told |= srv_role_table[i].all;
    }
    return out;
}

bool srv_auth(srv_exchange *x, char *why, size_t size, int *status)
{
    srv_request *r = &x->r;
    srv_refusal  no;
    srv_head     head = {
        .route = r->route, .method = r->method, .peer = r->conn->peer,
        .host = srv_header(r, "Host"), .origin = srv_header(r, "Origin"),
        .fetch_site = srv_header(r, "Sec-Fetch-Site"),
        .authorization = srv_header(r, "Authorization")
    };
    srv_share(x);
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
