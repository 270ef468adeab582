/* store.c - which store a URL means, and the table of operations. */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

const weir_op_info weir__op_info[WEIR_OP_KINDS] = {
#define X(kind, member, writes) { #member, writes },
    WEIR_OPS(X)
#undef X
};

#define KNOWN "known are sqlite:FILE and mem:"
enum { MAX_URL = 4096 };

/* By scheme; KNOWN says the same in words. */
static const weir_store_ops *const stores[] = { &weir__sqlite_store, &weir__mem_store };

static const weir_store_ops *find_store(const char *scheme, size_t len)
{
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
        if (strlen(stores[i]->scheme) == len && !memcmp(stores[i]->scheme, scheme, len))
            return stores[i];
    }
    return NULL;
}

static bool is(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && !memcmp(text, word, len);
}

/* ---- options in the query ---- */

static weir_code set_durability(weir_url *u, const char *value, size_t len, weir_error *err)
{
    if (is(value, len, "disk"))
        u->durability = WEIR_DURABLE_DISK;
    else if (is(value, len, "os"))
        u->durability = WEIR_DURABLE_OS;
    else
        return weir_fail(err, WEIR_EINVAL, "store URL: durability=%.*s, must be disk or os",
                         (int)(len < 40 ? len : 40), value);
    return WEIR_OK;
}

static const struct {
    const char *name;
    weir_code (*set)(weir_url *u, const char *value, size_t len, weir_error *err);
} known_options[] = {
    { "durability", set_durability },
};
#define KNOWN_OPTIONS "known is durability=disk|os"

static weir_code parse_option(weir_url *u, const char *text, size_t len, weir_error *err)
{
    const char *equals = memchr(text, '=', len);
    size_t      name_len = equals ? (size_t)(equals - text) : len;
    for (size_t i = 0; equals && i < sizeof known_options / sizeof *known_options; i++) {
        if (is(text, name_len, known_options[i].name))
            return known_options[i].set(u, equals + 1, len - name_len - 1, err);
    }
    return weir_fail(err, WEIR_EINVAL, "store URL: unknown option \"%.*s\", " KNOWN_OPTIONS,
                     (int)(len < 60 ? len : 60), text);
}

static weir_code parse_query(weir_url *u, const char *query, weir_error *err)
{
    while (*query) {
        size_t    len = strcspn(query, "&");
        weir_code rc = parse_option(u, query, len, err);
        if (rc)
            return rc;
        query += len;
        query += *query == '&';
    }
    return WEIR_OK;
}

/* ---- open ---- */

weir_code weir__url_parse(const char *url, weir_url *out, weir_error *err)
{
    *out = (weir_url){ 0 };
    size_t scheme_len = strcspn(url, ":?/");
    if (strnlen(url, MAX_URL + 1) > MAX_URL)
        return weir_fail(err, WEIR_EINVAL, "store URL: more than %d bytes", MAX_URL);
    if (!*url)
        return weir_fail(err, WEIR_EINVAL, "store URL: empty; " KNOWN);
    if (url[scheme_len] != ':')
        return weir_fail(err, WEIR_EINVAL, "store URL \"%.80s\" has no scheme; for a file write "
                                           "sqlite:%.80s", url, url);
    const weir_store_ops *ops = find_store(url, scheme_len);
    if (!ops)
        return weir_fail(err, WEIR_EINVAL, "store URL \"%.80s\": unknown scheme; " KNOWN, url);
    if (ops->version != WEIR_STORE_OPS_VERSION)
        return weir_fail(err, WEIR_EVERSION, "store %s: made for version %u of the interface, "
                                             "this is %d", ops->scheme, ops->version,
                         WEIR_STORE_OPS_VERSION);
    out->ops = ops;
    out->rest = url + scheme_len + 1;
    out->rest_len = strcspn(out->rest, "?");
    const char *query = out->rest + out->rest_len;
    return parse_query(out, *query ? query + 1 : query, err);
}

weir_code weir__store_open(weir_store **out, const char *url, const weir_env *env, weir_error *err)
{
    *out = NULL;
    if (!url)
        return weir_fail(err, WEIR_EINVAL, "store URL: missing; " KNOWN);
    weir_url  u;
    weir_code rc = weir__url_parse(url, &u, err);
    if (rc)
        return rc;

    weir_env e = *env;
    if (e.durability == WEIR_DURABLE_DEFAULT)
        e.durability = u.durability ? u.durability : WEIR_DURABLE_DISK;
    if (e.durability != WEIR_DURABLE_DISK && e.durability != WEIR_DURABLE_OS)
        return weir_fail(err, WEIR_EINVAL, "durability: %s, must be disk or os",
                         weir_durability_name(e.durability));
    if (e.wait_owner_ms < 0)
        return weir_fail(err, WEIR_EINVAL, "wait_owner_ms: %lld, must not be negative",
                         (long long)e.wait_owner_ms);
    char *copy = strndup(u.rest, u.rest_len);
    if (!copy)
        return weir_fail(err, WEIR_ENOMEM, "store URL");
    rc = u.ops->open(out, copy, &e, err);
    free(copy);
    return rc;
}
