/* url.c - which server a URL means: http[s]://HOST[:PORT][/PATH]?token=...&ca=FILE&timeout=5s */
#include "store/http/http.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const weir__http_options[] = { "token", "ca", "timeout", NULL };

enum { MIN_TIMEOUT_MS = 100, MAX_TIMEOUT_MS = 3600 * 1000 };

/* A token is part of a header: printable, without a space. Never shown. */
static weir_code set_token(http_url *u, const char *token, const char *from, weir_error *err)
{
    size_t len = strlen(token);
    if (len > WEIR_HTTP_MAX_TOKEN)
        return weir_fail(err, WEIR_EINVAL, "%s: the token has more than %d bytes", from,
                         WEIR_HTTP_MAX_TOKEN);
    for (size_t i = 0; i < len; i++) {
        if (!isgraph((unsigned char)token[i]))
            return weir_fail(err, WEIR_EINVAL, "%s: a token has neither blanks nor special "
                                               "characters", from);
    }
    memcpy(u->token, token, len + 1);
    return WEIR_OK;
}

static weir_code set_timeout(http_url *u, const char *value, weir_error *err)
{
    int64_t ms;
    if (weir_duration_parse(value, &ms, NULL) || ms < MIN_TIMEOUT_MS || ms > MAX_TIMEOUT_MS)
        return weir_fail(err, WEIR_EINVAL, "store URL: timeout=%.40s, must be between 100ms and 1h",
                         value);
    u->timeout_ms = ms;
    return WEIR_OK;
}

static weir_code set_options(http_url *u, const weir_url *url, weir_error *err)
{
    const char *token = weir__url_option(url, "token"), *ca = weir__url_option(url, "ca");
    const char *timeout = weir__url_option(url, "timeout"), *from_env = getenv("WEIR_TOKEN");
    weir_code   rc = WEIR_OK;
    if (token)
        rc = set_token(u, token, "store URL", err);
    else if (from_env)
        rc = set_token(u, from_env, "WEIR_TOKEN", err);
    if (!rc && ca && strcmp(url->scheme, "https") != 0)
        rc = weir_fail(err, WEIR_EINVAL, "store URL: ca is for https:// alone");
    if (!rc && ca && (size_t)snprintf(u->ca, sizeof u->ca, "%s", ca) >= sizeof u->ca)
        rc = weir_fail(err, WEIR_EINVAL, "store URL: ca: more than %zu bytes", sizeof u->ca - 1);
    if (!rc && timeout)
        rc = set_timeout(u, timeout, err);
    return rc;
}

/* "host", "host:port", "[::1]:port" */
static weir_code check_place(const char *text, size_t len, weir_error *err)
{
    int         shown = len > 80 ? 80 : (int)len;
    const char *end = text + len, *behind = text;
    if (len && *text == '[')
        behind = memchr(text, ']', len);
    else
        behind = memchr(text, ':', len);
    if (len && *text == '[' && !behind)
        return weir_fail(err, WEIR_EINVAL, "store URL: \"%.*s\": \"]\" is missing", shown, text);
    if (len && *text == '[')
        behind++;
    size_t host = (size_t)((behind ? behind : end) - text);
    if (!host)
        return weir_fail(err, WEIR_EINVAL, "store URL: the host is missing: http://HOST:7340");
    for (size_t i = 0; i < host; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr("-._[]:", text[i]))
            return weir_fail(err, WEIR_EINVAL, "store URL: \"%.*s\" is not the name of a host",
                             shown, text);
    }
    if (!behind || behind == end)
        return WEIR_OK;
    long port = 0;
    for (const char *s = behind + 1; s < end && port <= 65535; s++)
        port = isdigit((unsigned char)*s) ? port * 10 + (*s - '0') : 65536;
    if (*behind != ':' || port < 1 || port > 65535)
        return weir_fail(err, WEIR_EINVAL, "store URL: \"%.*s\": the port must be between 1 and "
                                           "65535", shown, text);
    return WEIR_OK;
}

weir_code weir__http_url(const weir_url *url, http_url *out, weir_error *err)
{
    *out = (http_url){ .timeout_ms = WEIR_HTTP_TIMEOUT_MS };
    const char *rest = url->rest;
    if (strncmp(rest, "//", 2) != 0)
        return weir_fail(err, WEIR_EINVAL, "store URL: write %s://HOST:7340", url->scheme);
    size_t place = strcspn(rest + 2, "/#");
    if (memchr(rest + 2, '@', place))               /* and nothing else: there may be a secret */
        return weir_fail(err, WEIR_EINVAL, "store URL: there is an \"@\" before the host; a token "
                                           "goes into WEIR_TOKEN, or ?token=");
    weir_code rc = check_place(rest + 2, place, err);
    if (rc)
        return rc;
    const char *path = rest + 2 + place;
    for (const char *s = path; *s; s++) {
        if (!isgraph((unsigned char)*s) || *s == '#')
            return weir_fail(err, WEIR_EINVAL, "store URL: blanks and special characters in the "
                                               "path are written as %%XX");
    }
    size_t len = strlen(path);
    while (len && path[len - 1] == '/')
        len--;
    int n = snprintf(out->base, sizeof out->base, "%s:%.*s%.*s", url->scheme, (int)(2 + place),
                     rest, (int)len, path);
    if (n < 0 || (size_t)n >= sizeof out->base)
        return weir_fail(err, WEIR_EINVAL, "store URL: more than %zu bytes", sizeof out->base - 1);
    return set_options(out, url, err);
}
