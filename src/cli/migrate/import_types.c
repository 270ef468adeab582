/* import_types.c - reading what the first line of an export says of types. */
#include "cli/migrate/import_types.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, MAX_TYPES = 100000 };

bool import_is_types(const char *line, size_t len)
{
    static const char start[] = "{\"weir\":";
    return len >= sizeof start - 1 && !memcmp(line, start, sizeof start - 1);
}

static weir_code wrong(weir_error *err, size_t i, const char *name, const char *what)
{
    return weir_fail(err, WEIR_EINVAL, "types[%zu].%s: is not %s", i, name, what);
}

static weir_code read_number(const json_t *v, size_t i, const char *name, int64_t *out,
                             weir_error *err)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return wrong(err, i, name, "a whole number from 0 on");
    *out = json_integer_value(v);
    return WEIR_OK;
}

static weir_code read_flag(const json_t *v, size_t i, const char *name, bool *out, weir_error *err)
{
    *out = json_is_true(v);
    return json_is_boolean(v) ? WEIR_OK : wrong(err, i, name, "true or false");
}

static weir_code read_keep(json_t *v, size_t i, const char *name, weir_keep *out, weir_error *err)
{
    const char *key;
    json_t     *one;
    weir_code   rc = WEIR_OK;
    if (!json_is_object(v))
        return wrong(err, i, name, "an object");
    json_object_foreach(v, key, one) {
        if (!strcmp(key, "age"))
            rc = read_number(one, i, name, &out->age_ms, err);
        else if (!strcmp(key, "count"))
            rc = read_number(one, i, name, &out->count, err);
        else
            rc = weir_fail(err, WEIR_EINVAL, "types[%zu].%s: unknown member \"%.60s\"", i, name,
                           key);
        if (rc)
            break;
    }
    if (!out->age_ms && !out->count)        /* no limit */
        out->age_ms = WEIR_FOREVER;
    return rc;
}

static weir_code read_member(json_t *v, size_t i, const char *key, import_type *t, weir_error *err)
{
    if (!strcmp(key, "type")) {
        const char *name = json_string_value(v);
        if (!name || !*name || strlen(name) > WEIR_MAX_TYPE)
            return wrong(err, i, key, "the name of a type");
        strcpy(t->type, name);
        return WEIR_OK;
    }
    if (!strcmp(key, "paused"))
        return read_flag(v, i, key, &t->paused, err);
    t->set = true;
    if (!strcmp(key, "keep_complete"))
        return read_keep(v, i, key, &t->settings.keep_complete, err);
    if (!strcmp(key, "keep_failed"))
        return read_keep(v, i, key, &t->settings.keep_failed, err);
    if (!strcmp(key, "search"))
        return read_flag(v, i, key, &t->settings.search, err);
    return weir_fail(err, WEIR_EINVAL, "types[%zu]: unknown member \"%.60s\"", i, key);
}

static weir_code read_type(json_t *v, size_t i, import_type *t, weir_error *err)
{
    const char *key;
    json_t     *one;
    if (!json_is_object(v))
        return weir_fail(err, WEIR_EINVAL, "types[%zu]: is not an object", i);
    json_object_foreach(v, key, one) {
        weir_code rc = read_member(one, i, key, t, err);
        if (rc)
            return rc;
    }
    return *t->type ? WEIR_OK : weir_fail(err, WEIR_EINVAL, "types[%zu].type: missing", i);
}

static weir_code read_types(json_t *types, import_type **out, size_t *n, weir_error *err)
{
    size_t size = json_array_size(types);
    if (types && !json_is_array(types))
        return weir_fail(err, WEIR_EINVAL, "types: is not an array");
    if (size > MAX_TYPES)
        return weir_fail(err, WEIR_ELIMIT, "types: %zu, at most %d", size, MAX_TYPES);
    *out = calloc(size ? size : 1, sizeof **out);
    if (!*out)
        return weir_fail(err, WEIR_ENOMEM, "types: out of memory");
    weir_code rc = WEIR_OK;
    for (; !rc && *n < size; ++*n)
        rc = read_type(json_array_get(types, *n), *n, &(*out)[*n], err);
    return rc;
}

weir_code import_types(const char *line, size_t len, import_type **out, size_t *n, weir_error *err)
{
    json_error_t why;
    json_t      *v = json_loadb(line, len, JSON_REJECT_DUPLICATES, &why);
    weir_code    rc = WEIR_OK;
    *out = NULL;
    *n = 0;
    if (!v)
        return weir_fail(err, WEIR_EINVAL, "not JSON at byte %d: %s", why.position, why.text);
    const char *what = json_string_value(json_object_get(v, "weir"));
    json_int_t  version = json_integer_value(json_object_get(v, "version"));
    if (!what || strcmp(what, "export") != 0)
        rc = weir_fail(err, WEIR_EINVAL, "weir: is not \"export\"");
    else if (version != VERSION)
        rc = weir_fail(err, version > VERSION ? WEIR_EVERSION : WEIR_EINVAL,
                       "version: %lld, but this weir reads %d", (long long)version, VERSION);
    else
        rc = read_types(json_object_get(v, "types"), out, n, err);
    json_decref(v);
    if (rc) {
        free(*out);
        *out = NULL;
        *n = 0;
    }
    return rc;
}
