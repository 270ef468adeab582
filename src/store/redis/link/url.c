/* url.c - what a Redis URL says. A password is never part of an error. */
#include "store/redis/link/link.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include "weir/job.h"

#define FILES "password-file", "cacert", "cadir", "cert", "key", "servername"
const char *const weir__redis_options[] = { "prefix", "partitions", "cluster", "timeout",
                                            "allow-eviction", "replicas", FILES, NULL };
const char *const weir__kue_options[] = { "prefix", "profile", "promotion", "timeout",
                                          "allow-eviction", "replicas", FILES, NULL };

enum {
    DEFAULT_PORT          = 6379,
    DEFAULT_SENTINEL_PORT = 26379,
    MAX_DB                = 1000000,
    MAX_REPLICAS          = 64,
    MIN_TIMEOUT_MS        = 100,
    MAX_TIMEOUT_MS        = 600000,
    MIN_PROMOTION_MS      = 10,
    MAX_PROMOTION_MS      = 600000
};

/* By scheme; the first word of a URL. */
static const struct {
    const char *scheme;
    redis_way   way;
    bool        kue, tls;
} schemes[] = {
    { "redis", REDIS_ONE, false, false },
    { "redis+unix", REDIS_UNIX, false, false },
    { "redis+sentinel", REDIS_SENTINEL, false, false },
    { "redis+kue", REDIS_ONE, true, false },
    { "redis+kue+unix", REDIS_UNIX, true, false },
    { "redis+kue+sentinel", REDIS_SENTINEL, true, false },
    { "rediss", REDIS_ONE, false, true },
    { "rediss+sentinel", REDIS_SENTINEL, false, true },
    { "rediss+kue", REDIS_ONE, true, true },
    { "rediss+kue+sentinel", REDIS_SENTINEL, true, true },
};

static bool set_scheme(redis_url *u, const char *scheme)
{
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        if (!strcmp(schemes[i].scheme, scheme)) {
            u->way = schemes[i].way;
            u->kue = schemes[i].kue;
            u->tls = schemes[i].tls;
            return true;
        }
    }
    return false;
}

/* ---- parts ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Copy `len` bytes, "%2f" as "/". False: too long, not two hex digits, or a zero byte. */
static bool decode(char *to, size_t size, const char *from, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        int byte = (unsigned char)from[i];
        if (from[i] == '%') {
            int high = i + 2 < len ? hex_digit(from[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(from[i + 2]) : -1;
            byte = low >= 0 ? high * 16 + low : 0;
            i += 2;
        }
        if (!byte || n + 1 >= size)
            return false;
        to[n++] = (char)byte;
    }
    to[n] = '\0';
    return true;
}

/* "12" without sign or space, at most `max`; -1: it is not. */
static int64_t number(const char *text, size_t len, int64_t max)
{
    int64_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        n = n * 10 + (text[i] - '0');
        if (n > max)
            return -1;
    }
    return len ? n : -1;
}

/* "user:password@" or ":password@"; "user@" goes with a password-file. */
static weir_code parse_user(redis_url *u, const char *text, size_t len, weir_error *err)
{
    const char *colon = memchr(text, ':', len);
    if (!len || colon == text + len - 1)
        return weir_fail(err, WEIR_EINVAL, "store URL: the part before \"@\" must be "
                                           "USER:PASSWORD or :PASSWORD");
    size_t user_len = colon ? (size_t)(colon - text) : len;
    if (!decode(u->user, sizeof u->user, text, user_len))
        return weir_fail(err, WEIR_EINVAL, "store URL: the user must be at most %zu bytes, with "
                                           "%%XX (two hex digits, not 00) for special characters",
                         sizeof u->user - 1);
    if (colon && !decode(u->password, sizeof u->password, colon + 1, len - user_len - 1))
        return weir_fail(err, WEIR_EINVAL, "store URL: the password must be at most %zu bytes, "
                                           "with %%XX (two hex digits, not 00) for special "
                                           "characters", sizeof u->password - 1);
    return WEIR_OK;
}

/* "host", "host:port", "[::1]:port" */
static weir_code parse_place(redis_url *u, const char *text, size_t len, weir_error *err)
{
    int         shown = len > 80 ? 80 : (int)len;
    const char *host = text, *end, *limit = text + len;
    if (len && *text == '[') {
        host++;
        end = memchr(host, ']', len - 1);
        if (!end)
            return weir_fail(err, WEIR_EINVAL, "store URL: \"%.*s\": \"]\" is missing", shown,
                             text);
        limit = end + 1;
    } else {
        end = memchr(text, ':', len);
        limit = end = end ? end : text + len;
    }
    if (u->n_places == WEIR_REDIS_MAX_NODES)
        return weir_fail(err, WEIR_EINVAL, "store URL: more than %d hosts", WEIR_REDIS_MAX_NODES);
    redis_place *p = &u->place[u->n_places];
    size_t       host_len = (size_t)(end - host);
    if (!host_len || host_len >= sizeof p->host)
        return weir_fail(err, WEIR_EINVAL, "store URL: \"%.*s\": a host must have 1 to %zu bytes",
                         shown, text, sizeof p->host - 1);
    for (size_t i = 0; i < host_len; i++) {
        if (!isalnum((unsigned char)host[i]) && !strchr(".-_:%", host[i]))
            return weir_fail(err, WEIR_EINVAL, "store URL: \"%.*s\" is not a host", shown, text);
    }
    memcpy(p->host, host, host_len);
    p->host[host_len] = '\0';
    p->port = u->way == REDIS_SENTINEL ? DEFAULT_SENTINEL_PORT : DEFAULT_PORT;
    if (limit < text + len) {
        /* The value is not shown: it is a password, if the user forgot what follows it. */
        int64_t port = *limit == ':' ? number(limit + 1, (size_t)(text + len - limit - 1), 65535)
                                     : -1;
        if (port <= 0)
            return weir_fail(err, WEIR_EINVAL, "store URL: host %.80s: the port must be 1 to 65535",
                             p->host);
        p->port = (int)port;
    }
    u->n_places++;
    return WEIR_OK;
}

static weir_code parse_places(redis_url *u, const char *text, size_t len, weir_error *err)
{
    for (const char *end = text + len;;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma ? comma : end;
        weir_code   rc = parse_place(u, text, (size_t)(stop - text), err);
        if (rc || !comma)
            return rc;
        text = comma + 1;
    }
}

static weir_code parse_db(redis_url *u, const char *text, weir_error *err)
{
    int64_t db = *text ? number(text, strlen(text), MAX_DB) : 0;
    if (db < 0)
        return weir_fail(err, WEIR_EINVAL, "store URL: \"/%.40s\": the database must be a number "
                                           "from 0", text);
    u->db = (int)db;
    return WEIR_OK;
}

/* "/name-of-primary[/db]" */
static weir_code parse_primary(redis_url *u, const char *path, weir_error *err)
{
    const char *name = *path == '/' ? path + 1 : path;
    size_t      len = strcspn(name, "/");
    if (!len || !decode(u->primary, sizeof u->primary, name, len))
        return weir_fail(err, WEIR_EINVAL, "store URL: the name of the primary is missing or too "
                                           "long: %s://HOST:PORT,HOST:PORT/NAME",
                         u->kue ? "redis+kue+sentinel" : "redis+sentinel");
    return parse_db(u, name[len] ? name + len + 1 : "", err);
}

static weir_code parse_socket(redis_url *u, const char *path, weir_error *err)
{
    redis_place *p = &u->place[0];
    size_t       max = sizeof ((struct sockaddr_un *)0)->sun_path - 1;
    if (*path != '/' || !path[1])
        return weir_fail(err, WEIR_EINVAL, "store URL: the path of the socket must be absolute: "
                                           "%s:///PATH", u->kue ? "redis+kue+unix" : "redis+unix");
    if (!decode(p->host, max + 1, path, strlen(path)))
        return weir_fail(err, WEIR_EINVAL, "store URL: the path of the socket must be at most %zu "
                                           "bytes, with %%XX (two hex digits, not 00) for special "
                                           "characters", max);
    u->n_places = 1;
    return WEIR_OK;
}

/* ---- options ---- */

static weir_code parse_flag(bool *out, const char *name, const char *value, weir_error *err)
{
    if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        return weir_fail(err, WEIR_EINVAL, "store URL: %s=%.40s, must be 0 or 1", name, value);
    *out = *value == '1';
    return WEIR_OK;
}

/* Braces would make another hash tag of the keys than the one the layout has in mind; Kue's own
 * prefix may have them. */
static weir_code parse_prefix(redis_url *u, const char *value, weir_error *err)
{
    size_t len = strlen(value);
    bool   fine = len > 0 && len <= WEIR_REDIS_MAX_PREFIX;
    for (size_t i = 0; fine && i < len; i++)
        fine = isgraph((unsigned char)value[i]) && (u->kue || !strchr("{}", value[i]));
    if (!fine)
        return weir_fail(err, WEIR_EINVAL, "store URL: prefix=%.70s, must be 1 to %d visible ASCII "
                                           "characters%s", value, WEIR_REDIS_MAX_PREFIX,
                         u->kue ? "" : " without braces");
    memcpy(u->prefix, value, len + 1);
    return WEIR_OK;
}

static weir_code parse_profile(redis_url *u, const char *value, weir_error *err)
{
    if (strcmp(value, "kue") != 0 && strcmp(value, "vertx") != 0)
        return weir_fail(err, WEIR_EINVAL, "store URL: profile=%.40s, must be kue or vertx", value);
    u->vertx = *value == 'v';
    return WEIR_OK;
}

static weir_code parse_partitions(redis_url *u, const char *value, weir_error *err)
{
    int64_t n = number(value, strlen(value), WEIR_REDIS_MAX_PARTITIONS);
    if (n <= 0)
        return weir_fail(err, WEIR_EINVAL, "store URL: partitions=%.40s, must be 1 to %d", value,
                         WEIR_REDIS_MAX_PARTITIONS);
    u->partitions = (uint32_t)n;
    return WEIR_OK;
}

static weir_code parse_replicas(redis_url *u, const char *value, weir_error *err)
{
    int64_t n = number(value, strlen(value), MAX_REPLICAS);
    if (n < 0)
        return weir_fail(err, WEIR_EINVAL, "store URL: replicas=%.40s, must be 0 to %d", value,
                         MAX_REPLICAS);
    u->replicas = (uint32_t)n;
    return WEIR_OK;
}

static weir_code parse_timeout(redis_url *u, const char *value, weir_error *err)
{
    int64_t ms;
    if (weir_duration_parse(value, &ms, NULL) || ms < MIN_TIMEOUT_MS || ms > MAX_TIMEOUT_MS)
        return weir_fail(err, WEIR_EINVAL, "store URL: timeout=%.40s, must be between 100ms and "
                                           "10m, such as 5s", value);
    u->timeout_ms = ms;
    return WEIR_OK;
}

static weir_code parse_promotion(redis_url *u, const char *value, weir_error *err)
{
    int64_t ms;
    if (weir_duration_parse(value, &ms, NULL) || ms < MIN_PROMOTION_MS || ms > MAX_PROMOTION_MS)
        return weir_fail(err, WEIR_EINVAL, "store URL: promotion=%.40s, must be between 10ms and "
                                           "10m, such as 200ms", value);
    u->promotion_ms = ms;
    return WEIR_OK;
}

/* Names of files, and of a host: *out, if it is one of those. */
static bool find_text(redis_url *u, const char *name, char **out)
{
    const struct {
        const char *name;
        char       *text;
    } texts[] = {
        { "password-file", u->password_file }, { "cacert", u->cacert }, { "cadir", u->cadir },
        { "cert", u->cert }, { "key", u->key }, { "servername", u->servername },
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!strcmp(texts[i].name, name)) {
            *out = texts[i].text;
            return true;
        }
    }
    return false;
}

static weir_code parse_text(const redis_url *u, char *out, const char *name, const char *value,
                            weir_error *err)
{
    size_t len = strlen(value);
    if (!len || len >= sizeof u->cacert)
        return weir_fail(err, WEIR_EINVAL, "store URL: %s=%.40s, must be 1 to %zu bytes", name,
                         value, sizeof u->cacert - 1);
    if (!u->tls && out != u->password_file)
        return weir_fail(err, WEIR_EINVAL, "store URL: %s= needs TLS: begin with rediss", name);
    memcpy(out, value, len + 1);
    return WEIR_OK;
}

static weir_code parse_option(redis_url *u, bool *cluster, const char *name, const char *value,
                              weir_error *err)
{
    char *text;
    if (find_text(u, name, &text))
        return parse_text(u, text, name, value, err);
    if (!strcmp(name, "prefix"))
        return parse_prefix(u, value, err);
    if (!strcmp(name, "profile"))
        return parse_profile(u, value, err);
    if (!strcmp(name, "partitions"))
        return parse_partitions(u, value, err);
    if (!strcmp(name, "timeout"))
        return parse_timeout(u, value, err);
    if (!strcmp(name, "promotion"))
        return parse_promotion(u, value, err);
    if (!strcmp(name, "replicas"))
        return parse_replicas(u, value, err);
    if (!strcmp(name, "cluster"))
        return parse_flag(cluster, name, value, err);
    return parse_flag(&u->allow_eviction, name, value, err);
}

/* ---- all of it ---- */

static weir_code parse_rest(redis_url *u, const char *rest, weir_error *err)
{
    if (strncmp(rest, "//", 2) != 0)
        return weir_fail(err, WEIR_EINVAL, "store URL: \"//\" must follow the scheme, such as "
                                           "redis://localhost");
    rest += 2;
    size_t      authority = strcspn(rest, "/");
    const char *at = memrchr(rest, '@', authority);
    if (!at && u->way != REDIS_UNIX && strchr(rest, '@'))
        return weir_fail(err, WEIR_EINVAL, "store URL: \"/\" before \"@\": in a password it is "
                                           "written %%2F");
    if (at) {
        weir_code rc = parse_user(u, rest, (size_t)(at - rest), err);
        if (rc)
            return rc;
        authority -= (size_t)(at + 1 - rest);
        rest = at + 1;
    }
    if (u->way == REDIS_UNIX)
        return parse_socket(u, rest, err);
    weir_code rc = parse_places(u, rest, authority, err);
    if (rc)
        return rc;
    const char *path = rest + authority;
    return u->way == REDIS_SENTINEL ? parse_primary(u, path, err)
                                    : parse_db(u, *path ? path + 1 : path, err);
}

weir_code weir__redis_url(const weir_url *url, redis_url *out, weir_error *err)
{
    *out = (redis_url){ .timeout_ms = WEIR_REDIS_TIMEOUT_MS };
    if (!set_scheme(out, url->scheme))
        return weir_fail(err, WEIR_EINVAL, "store URL: %.40s is no scheme of Redis", url->scheme);
    weir_code rc = parse_rest(out, url->rest, err);
    bool      cluster = false;
    for (size_t i = 0; !rc && i < url->n_options; i++)
        rc = parse_option(out, &cluster, url->option[i].name, url->option[i].value, err);
    if (rc)
        return rc;

    if (!*out->prefix)
        strcpy(out->prefix, !out->kue ? "weir" : out->vertx ? "vertx_kue" : "q");
    if (cluster && out->way != REDIS_ONE)
        return weir_fail(err, WEIR_EINVAL, "store URL: cluster=1 goes with redis:// or "
                                           "rediss://, not with "
                                           "%.40s", url->scheme);
    if (*out->user && !*out->password && !*out->password_file)
        return weir_fail(err, WEIR_EINVAL, "store URL: the part before \"@\" must be USER:PASSWORD "
                                           "or :PASSWORD, or USER with password-file=");
    if (*out->password_file && *out->password)
        return weir_fail(err, WEIR_EINVAL, "store URL: a password and password-file=: leave one "
                                           "of them out");
    if (!*out->cert != !*out->key)
        return weir_fail(err, WEIR_EINVAL, "store URL: cert= and key= go together");
    if (cluster && out->db)
        return weir_fail(err, WEIR_EINVAL, "store URL: a cluster has database 0 alone, not %d",
                         out->db);
    if (!cluster && out->way == REDIS_ONE && out->n_places > 1)
        return weir_fail(err, WEIR_EINVAL, "store URL: several hosts: %s",
                         out->kue ? "redis+kue has one, or several sentinels (redis+kue+sentinel)"
                                  : "add ?cluster=1 for a cluster, or ask sentinels with "
                                    "redis+sentinel");
    if (cluster)
        out->way = REDIS_CLUSTER;
    return WEIR_OK;
}
