/* store.c - which store a URL means. */
#include "store/store.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* X(scheme, its store, how an error of an unknown scheme shows it) */
#define STORES(X)                                                                                 \
    X("sqlite", sqlite, "sqlite:FILE")                                                            \
    X("redis", redis, ", redis://HOST")                                                           \
    X("redis+unix", redis, "")                                                                    \
    X("redis+sentinel", redis, "")                                                                \
    X("rediss", redis, ", rediss://HOST")                                                         \
    X("rediss+sentinel", redis, "")                                                               \
    X("redis+kue", kue, ", redis+kue://HOST")                                                     \
    X("redis+kue+unix", kue, "")                                                                  \
    X("redis+kue+sentinel", kue, "")                                                              \
    X("rediss+kue", kue, "")                                                                      \
    X("rediss+kue+sentinel", kue, "")                                                             \
    X("http", http, ", http://HOST:7340")                                                         \
    X("https", http, "")                                                                          \
    X("mem", mem, " and mem:")

static const struct {
    const char           *scheme;
    const weir_store_ops *ops;
} stores[] = {
#define X(scheme, store, shown) { scheme, &weir__##store##_store },
    STORES(X)
#undef X
};
#define SHOWN(scheme, store, shown) shown
#define KNOWN "known are " STORES(SHOWN)

static const weir_store_ops *find_store(const char *scheme)
{
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
        if (!strcmp(stores[i].scheme, scheme))
            return stores[i].ops;
    }
    return NULL;
}

/* ---- options ---- */

const char *weir__url_option(const weir_url *url, const char *name)
{
    for (size_t i = 0; i < url->n_options; i++) {
        if (!strcmp(url->option[i].name, name))
            return url->option[i].value;
    }
    return NULL;
}

static weir_code set_durability(weir_url *u, const char *value, weir_error *err)
{
    if (!strcmp(value, "disk"))
        u->durability = WEIR_DURABILITY_DISK;
    else if (!strcmp(value, "os"))
        u->durability = WEIR_DURABILITY_OS;
    else
        return weir_fail(err, WEIR_EINVAL, "store URL: durability=%.40s, must be disk or os",
                         value);
    return WEIR_OK;
}

static weir_code unknown_option(const weir_url *u, const char *name, weir_error *err)
{
    char   list[200] = "durability=disk|os";
    size_t len = strlen(list);
    for (const char *const *o = u->ops->options; o && *o && len < sizeof list; o++)
        len += (size_t)snprintf(list + len, sizeof list - len, ", %s", *o);
    return weir_fail(err, WEIR_EINVAL, "store URL: unknown option \"%.60s\"; %s: accepts %s", name,
                     u->scheme, list);
}

/* Turn "%2f" into "/", in place. False: not two hex digits, or a zero byte. */
static bool percent_decode(char *text)
{
    char *to = text;
    for (; *text; text++) {
        if (*text != '%') {
            *to++ = *text;
            continue;
        }
        unsigned byte;
        if (!isxdigit((unsigned char)text[1]) || !isxdigit((unsigned char)text[2]) ||
            sscanf(text + 1, "%2x", &byte) != 1 || !byte)
            return false;
        *to++ = (char)byte;
        text += 2;
    }
    *to = '\0';
    return true;
}

static weir_code parse_option(weir_url *u, char *text, weir_error *err)
{
    char *equals = strchr(text, '=');
    if (!equals)
        return weir_fail(err, WEIR_EINVAL, "store URL: option \"%.60s\" has no value (NAME=VALUE)",
                         text);
    *equals = '\0';
    char *value = equals + 1;
    if (!percent_decode(value))
        return weir_fail(err, WEIR_EINVAL, "store URL: option %.60s: %% must be followed by two "
                                           "hex digits, not 00", text);
    if (!strcmp(text, "durability"))
        return set_durability(u, value, err);
    const char *const *known = u->ops->options;
    while (known && *known && strcmp(*known, text) != 0)
        known++;
    if (!known || !*known)
        return unknown_option(u, text, err);
    if (weir__url_option(u, text))
        return weir_fail(err, WEIR_EINVAL, "store URL: option %s is given twice", text);
    if (u->n_options == WEIR_MAX_URL_OPTIONS)
        return weir_fail(err, WEIR_EINVAL, "store URL: more than %d options",
                         WEIR_MAX_URL_OPTIONS);
    u->option[u->n_options].name = text;
    u->option[u->n_options++].value = value;
    return WEIR_OK;
}

static weir_code parse_query(weir_url *u, char *query, weir_error *err)
{
    for (char *next; query && *query; query = next) {
        next = strchr(query, '&');
        if (next)
            *next++ = '\0';
        weir_code rc = parse_option(u, query, err);
        if (rc)
            return rc;
    }
    return WEIR_OK;
}

/* ---- open ---- */

weir_code weir__url_parse(const char *url, weir_url *out, weir_error *err)
{
    *out = (weir_url){ 0 };
    size_t len = strnlen(url, WEIR_MAX_URL + 1), scheme_len = strcspn(url, ":?/");
    if (len > WEIR_MAX_URL)
        return weir_fail(err, WEIR_EINVAL, "store URL: more than %d bytes", WEIR_MAX_URL);
    if (!*url)
        return weir_fail(err, WEIR_EINVAL, "store URL: empty; " KNOWN);
    if (url[scheme_len] != ':')
        return weir_fail(err, WEIR_EINVAL, "store URL \"%.80s\" has no scheme; for a file write "
                                           "sqlite:%.80s", url, url);
    memcpy(out->text, url, len + 1);
    out->text[scheme_len] = '\0';
    char *query = strchr(out->text + scheme_len + 1, '?');
    if (query)
        *query++ = '\0';
    out->scheme = out->text;
    out->rest = out->text + scheme_len + 1;
    out->ops = find_store(out->scheme);
    if (!out->ops)
        return weir_fail(err, WEIR_EINVAL, "store URL: unknown scheme \"%.40s\"; " KNOWN,
                         out->scheme);         /* and nothing else: there may be a password */
    if (out->ops->absent)
        return weir_fail(err, WEIR_EINVAL, "store URL: %s: this weir was built without %s",
                         out->scheme, out->ops->absent);
    if (out->ops->version != WEIR_STORE_OPS_VERSION)
        return weir_fail(err, WEIR_EVERSION, "store %s: made for version %u of the interface, "
                                             "this is %d", out->ops->name, out->ops->version,
                         WEIR_STORE_OPS_VERSION);
    return parse_query(out, query, err);
}

weir_code weir__store_open(weir_store **out, const char *url, const weir_env *env, weir_error *err)
{
    weir_error mine;
    *out = NULL;
    if (!err)
        err = &mine;
    if (!url)
        return weir_fail(err, WEIR_EINVAL, "store URL: missing; " KNOWN);
    weir_url  u;
    weir_code rc = weir__url_parse(url, &u, err);
    if (rc)
        return rc;

    weir_env e = *env;
    if (e.durability == WEIR_DURABILITY_DEFAULT)
        e.durability = u.durability;
    if (e.durability > WEIR_DURABILITY_OS)
        return weir_fail(err, WEIR_EINVAL, "durability: %s, must be disk or os",
                         weir_durability_name(e.durability));
    if (e.wait_owner_ms < 0)
        return weir_fail(err, WEIR_EINVAL, "wait_owner_ms: %lld, must not be negative",
                         (long long)e.wait_owner_ms);
    return u.ops->open(out, &u, &e, err);
}
