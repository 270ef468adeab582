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

typedef struct options {
    weir_durability durability;     /* WEIR_DURABLE_DEFAULT: it says nothing */
} options;

static weir_code set_durability(options *o, const char *value, size_t len, weir_error *err)
{
    if (is(value, len, "disk"))
        o->durability = WEIR_DURABLE_DISK;
    else if (is(value, len, "os"))
        o->durability = WEIR_DURABLE_OS;
    else
        return weir_fail(err, WEIR_EINVAL, "store URL: durability=%.*s, must be disk or os",
                         (int)(len < 40 ? len : 40), value);
    return WEIR_OK;
}

static const struct {
    const char *name;
    weir_code (*set)(options *o, const char *value, size_t len, weir_error *err);
} known_options[] = {
    { "durability", set_durability },
};
#define KNOWN_OPTIONS "known is durability=disk|os"

static weir_code parse_option(options *o, const char *text, size_t len, weir_error *err)
{
    const char *equals = memchr(text, '=', len);
    size_t      name_len = equals ? (size_t)(equals - text) : len;
    for (size_t i = 0; equals && i < sizeof known_options / sizeof *known_options; i++) {
        if (is(text, name_len, known_options[i].name))
            return known_options[i].set(o, equals + 1, len - name_len - 1, err);
    }
    return weir_fail(err, WEIR_EINVAL, "store URL: unknown option \"%.*s\", " KNOWN_OPTIONS,
                     (int)(len < 60 ? len : 60), text);
}

static weir_code parse_query(options *o, const char *query, weir_error *err)
{
    while (*query) {
        size_t    len = strcspn(query, "&");
        weir_code rc = parse_option(o, query, len, err);
        if (rc)
            return rc;
        query += len;
        query += *query == '&';
    }
    return WEIR_OK;
}

/* ---- open ---- */

/* The store and the options of `url`; *rest is what is between them, borrowed from it. */
static weir_code parse_url(const char *url, const weir_store_ops **ops, const char **rest,
                           size_t *rest_len, options *o, weir_error *err)
{
    size_t scheme_len = strcspn(url, ":?/");
    if (strnlen(url, MAX_URL + 1) > MAX_URL)
        return weir_fail(err, WEIR_EINVAL, "store URL: more than %d bytes", MAX_URL);
    if (!*url)
        return weir_fail(err, WEIR_EINVAL, "store URL: empty; " KNOWN);
    if (url[scheme_len] != ':')
        return weir_fail(err, WEIR_EINVAL, "store URL \"%.80s\" has no scheme; for a file write "
                                           "sqlite:%.80s", url, url);
    *ops = find_store(url, scheme_len);
    if (!*ops)
        return weir_fail(err, WEIR_EINVAL, "store URL \"%.80s\": unknown scheme; " KNOWN, url);
    if ((*ops)->version != WEIR_STORE_OPS_VERSION)
        return weir_fail(err, WEIR_EVERSION, "store %s: made for version %u of the interface, "
                                             "this is %d", (*ops)->scheme, (*ops)->version,
                         WEIR_STORE_OPS_VERSION);
    *rest = url + scheme_len + 1;
    *rest_len = strcspn(*rest, "?");
    const char *query = *rest + *rest_len;
    return parse_query(o, *query ? query + 1 : query, err);
}

weir_code weir__store_open(weir_store **out, const char *url, const weir_env *env, weir_error *err)
{
    *out = NULL;
    if (!url)
        return weir_fail(err, WEIR_EINVAL, "store URL: missing; " KNOWN);
    const weir_store_ops *ops = NULL;
    const char           *rest = NULL;
    size_t                rest_len = 0;
    options               o = { 0 };
    weir_code             rc = parse_url(url, &ops, &rest, &rest_len, &o, err);
    if (rc)
        return rc;

    weir_env e = *env;
    if (e.durability == WEIR_DURABLE_DEFAULT)
        e.durability = o.durability ? o.durability : WEIR_DURABLE_DISK;
    if (e.durability != WEIR_DURABLE_DISK && e.durability != WEIR_DURABLE_OS)
        return weir_fail(err, WEIR_EINVAL, "durability: %s, must be disk or os",
                         weir_durability_name(e.durability));
    if (e.wait_owner_ms < 0)
        return weir_fail(err, WEIR_EINVAL, "wait_owner_ms: %lld, must not be negative",
                         (long long)e.wait_owner_ms);
    char *copy = strndup(rest, rest_len);
    if (!copy)
        return weir_fail(err, WEIR_ENOMEM, "store URL");
    rc = ops->open(out, copy, &e, err);
    free(copy);
    return rc;
}
