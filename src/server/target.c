/* target.c - the target of a request, "/v1/jobs/12/log?after=3", cut into decoded parts.
 *
 * Segments are split before they are decoded, so a %2F is part of a name and never a separator.
 * Nothing is normalised: "." and "..", bytes that are no UTF-8 and control characters are refused,
 * so two different ways of writing a path never mean the same by accident. */
#include <string.h>

#include "server/inner.h"

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

/* Behind "http://host" of a target in absolute form; the text itself otherwise. */
static char *path_of(char *target)
{
    char *at = !strncmp(target, "http://", 7)    ? target + 7
               : !strncmp(target, "https://", 8) ? target + 8 : NULL;
    if (!at)
        return target;
    at += strcspn(at, "/?");
    if (*at == '/')
        return at;
    *--at = '/';        /* "http://host?q" is "/?q" there */
    return at;
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

const char *srv_target_read(srv_exchange *x, char *target, char **segments, size_t *n_segments)
{
    srv_request *r = &x->r;
    *n_segments = 0;
    for (const char *c = target; *c; c++)
        if (*c <= 0x20 || *c >= 0x7f || *c == '#')
            return "the target has a character in it that must be written as %XX";
    char *path = path_of(target);
    if (*path != '/')
        return "the target must be a path that starts with /";
    char *query = strchr(path, '?');
    if (query)
        *query++ = '\0';
    r->path = srv_strndup(r, path, strlen(path));
    if (!r->path)
        return "out of memory";
    for (char *at = path; at && *n_segments <= SRV_MAX_SEGMENTS;) {
        char *segment = at + 1;
        at = strchr(segment, '/');
        if (at)
            *at = '\0';
        const char *why = decode(segment, false);
        if (why)
            return why;
        if (!strcmp(segment, ".") || !strcmp(segment, ".."))
            return "the target has . or .. in its path";
        if (*n_segments < SRV_MAX_SEGMENTS)
            segments[*n_segments] = segment;
        ++*n_segments;
    }
    return read_query(r, query);
}
