/* url.c - the target of a request, "/v1/jobs/12/log?after=3", cut into decoded parts.
 *
 * Segments are split before they are decoded, so a %2F is part of a name and never a separator.
 * Nothing is normalised: "." and "..", bytes that are no UTF-8 and control characters are refused,
 * so two different ways of writing a path never mean the same by accident. */
#include <string.h>

#include "server/http/inner.h"

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decode in place. NULL, or why not. */
static const char *decode(char *text, bool plus)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (c == '%') {
            int high = hex(at[1]), low = high < 0 ? -1 : hex(at[2]);
            if (low < 0)
                return "a % in the target is not followed by two hexadecimal digits";
            c = (unsigned char)(high << 4 | low);
            at += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        if (c < 0x20 || c == 0x7f)
            return "the target has a control character in it";
        *to++ = (char)c;
    }
    *to = '\0';
    return weir__utf8_valid(text, (size_t)(to - text)) ? NULL : "the target is not UTF-8";
}

static int refuse(const char **why, int status, const char *text)
{
    *why = text;
    return status;
}

/* "http://host/path", as a proxy is asked. It must name the host that the header Host names, and
 * the scheme of this connection: else somebody on the way has read another request than we do. */
static int read_absolute(srv_exchange *x, char *at, bool https, char **path, const char **why)
{
    size_t len = strcspn(at, "/?");
    if (!srv_http1_is_host(at, len))
        return refuse(why, 400, "the target has no valid host behind its scheme");
    if (x->host && (strlen(x->host) != len || strncasecmp(x->host, at, len) != 0))
        return refuse(why, 400, "the target and the header Host name different hosts");
    if (https != (x->r.server->tls != NULL))
        return refuse(why, 421, https ? "the target says https, but this is plain HTTP"
                                      : "the target says http, but this connection has TLS");
    x->host = srv_strndup(&x->r, at, len);
    if (!x->host)
        return refuse(why, 503, "out of memory");
    *path = at + len;
    if (**path != '/')
        *--*path = '/';     /* "http://host?q" is "/?q" there; the host has been copied */
    return 0;
}

/* The path and query of a target in one of its four forms. */
static int read_form(srv_exchange *x, char *target, char **path, const char **why)
{
    *path = target;
    if (*target == '/')
        return 0;
    if (!strncasecmp(target, "http://", 7))
        return read_absolute(x, target + 7, false, path, why);
    if (!strncasecmp(target, "https://", 8))
        return read_absolute(x, target + 8, true, path, why);
    if (!strcmp(target, "*") && !strcmp(x->r.method, "OPTIONS"))
        return refuse(why, 501, "OPTIONS * is not possible; ask for a path");
    return refuse(why, 400, "the target must be a path that starts with /");
}

static const char *read_query(srv_request *r, char *query)
{
    while (query && *query) {
        char *next = strchr(query, '&');
        if (next)
            *next++ = '\0';
        if (*query) {
            if (r->n_query == SRV_MAX_QUERY)
                return "more than 32 parameters in the query (SRV_MAX_QUERY)";
            char *value = strchr(query, '=');
            if (value)
                *value++ = '\0';
            else
                value = query + strlen(query);
            const char *why = decode(query, true);
            if (!why && *value)
                why = decode(value, true);
            if (why)
                return why;
            r->query[r->n_query++] = (srv_pair){ query, value };
        }
        query = next;
    }
    return NULL;
}
_Static_assert(SRV_MAX_QUERY == 32, "the text above says so");

static int read_path(srv_request *r, char *path, char **segments, size_t *n, const char **why)
{
    r->path = srv_strndup(r, path, strlen(path));
    if (!r->path)
        return refuse(why, 503, "out of memory");
    for (char *at = path; at && *n <= SRV_MAX_SEGMENTS;) {
        char *segment = at + 1;
        at = strchr(segment, '/');
        if (at)
            *at = '\0';
        *why = decode(segment, false);
        if (*why)
            return 400;
        if (!strcmp(segment, ".") || !strcmp(segment, ".."))
            return refuse(why, 400, "the target has . or .. in its path");
        if (*n < SRV_MAX_SEGMENTS)
            segments[*n] = segment;
        ++*n;
    }
    return 0;
}

int srv_url_read(srv_exchange *x, char **segments, size_t *n_segments, const char **why)
{
    char *path, *text = x->head.text.data;
    *n_segments = 0;
    if (x->head.host)
        x->host = text + x->head.host;
    int status = read_form(x, text + x->head.target, &path, why);
    if (status)
        return status;
    char *query = strchr(path, '?');
    if (query)
        *query++ = '\0';
    status = read_path(&x->r, path, segments, n_segments, why);
    if (status)
        return status;
    *why = read_query(&x->r, query);
    return *why ? 400 : 0;
}
