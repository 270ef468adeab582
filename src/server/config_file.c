/* config_file.c - the file of settings: its keys, and the keys of Kue and Vert.x Kue. See
 * config.h. */
#include "server/config_inner.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/near.h"
#include "server/access/file.h"

/* Vert.x Kue's names. One of its timers has a counterpart: the interval at which weir looks for
 * delayed jobs of Vert.x Kue, which publishes nothing when it adds one. The others change
 * nothing. */
#define PROMOTION_KEY "job.promotion.interval"
#define TIMER_KEYS "job.promotion.limit", "job.ttl.interval", "job.ttl.limit"
static const char *const timer_keys[] = { TIMER_KEYS };
static const char *const vertx_keys[] = {
    "redis.host", "redis.port", "http.address", "http.port", "kue.ui.title", PROMOTION_KEY,
    TIMER_KEYS
};
enum { N_VERTX = sizeof vertx_keys / sizeof *vertx_keys };

/* The one of Kue's options that is understood; false is "search": "on". */
#define KUE_SEARCH "disableSearch"

/* ---- the file ---- */

enum { N_KEYS = N_SETTINGS + N_VERTX + 2 };

static const char *nth_key(size_t i)
{
    return i < N_SETTINGS             ? srv_setting_name(i)
           : i < N_SETTINGS + N_VERTX ? vertx_keys[i - N_SETTINGS]
           : i == N_KEYS - 1          ? WORK_QUEUES : KUE_SEARCH;
}

static weir_code known_key(const config *c, const char *key, weir_error *err)
{
    weir_near guess = { .typed = key };
    for (size_t i = 0; i < N_KEYS; i++) {
        if (!strcmp(key, nth_key(i)))
            return WEIR_OK;
        weir__near_try(&guess, nth_key(i));
    }
    return weir_fail(err, WEIR_EINVAL, "%s: unknown setting \"%s\"%s%s%s", c->file_name, key,
                     guess.best ? "; did you mean \"" : "", guess.best ? guess.best : "",
                     guess.best ? "\"?" : "");
}

static weir_code read_file(config *c, weir_error *err)
{
    json_error_t why;
    weir_error   closed = { 0 };
    int          fd = srv_file_open(c->file_name, true, &closed);
    if (fd < 0)
        return weir_fail(err, closed.code == WEIR_ENOENT ? WEIR_EINVAL : closed.code, "%s",
                         closed.msg);
    FILE *in = fdopen(fd, "r");
    if (!in) {
        close(fd);
        return srv_config_no_memory(err);
    }
    c->file = json_loadf(in, JSON_REJECT_DUPLICATES, &why);
    fclose(in);
    if (!c->file)
        return weir_fail(err, WEIR_EINVAL, "%s: line %d, column %d: %s", c->file_name, why.line,
                         why.column, why.text);
    if (!json_is_object(c->file))
        return weir_fail(err, WEIR_EINVAL, "%s: is not a JSON object: {\"listen\": ...}",
                         c->file_name);
    const char *key;
    json_t     *value;
    weir_code   rc = WEIR_OK;
    json_object_foreach(c->file, key, value)
        if (!rc)
            rc = known_key(c, key, err);
    return rc;
}

static weir_code join_list(config *c, const char *key, const json_t *list, const char **out,
                           weir_error *err)
{
    size_t  i;
    json_t *each;
    *out = "";
    json_array_foreach(list, i, each) {
        if (!json_is_string(each))
            return weir_fail(err, WEIR_EINVAL, "%s: %s: must be a list of texts", c->file_name,
                             key);
        *out = srv_config_keep(c, "%s%s%s", *out, i ? "," : "", json_string_value(each));
        if (!*out)
            return srv_config_no_memory(err);
    }
    return WEIR_OK;
}

weir_code srv_config_text(config *c, const char *key, const char **out, weir_error *err)
{
    const json_t *v = json_object_get(c->file, key);
    if (json_is_object(v) && strcmp(key, "bus") == 0)
        v = json_object_get(v, "listen");       /* the rest: set_bus() */
    if (!v)
        return WEIR_OK;
    if (json_is_string(v))
        *out = json_string_value(v);
    else if (json_is_integer(v))
        *out = srv_config_keep(c, "%lld", (long long)json_integer_value(v));
    else if (json_is_array(v) && strcmp(key, "origin") == 0)
        return join_list(c, key, v, out, err);
    else
        return weir_fail(err, WEIR_EINVAL, "%s: %s: must be a text or a whole number",
                         c->file_name, key);
    return *out ? WEIR_OK : srv_config_no_memory(err);
}

weir_code srv_config_flag(const config *c, const char *key, bool *out, weir_error *err)
{
    const json_t *v = json_object_get(c->file, key);
    if (v && !json_is_boolean(v))
        return weir_fail(err, WEIR_EINVAL, "%s: %s: must be true or false", c->file_name, key);
    *out = v && json_is_true(v);
    return WEIR_OK;
}

/* ---- Vert.x Kue's names ---- */

static weir_code both_said(const config *c, const char *one, const char *other, weir_error *err)
{
    return weir_fail(err, WEIR_EINVAL, "%s: \"%s\" and \"%s\" say the same thing; leave one out",
                     c->file_name, one, other);
}

/* HOST or [HOST]:PORT of two keys. NULL: neither is there. */
static weir_code host_port(config *c, const char *host_key, const char *port_key,
                           const char *host, const char *port, const char **out, weir_error *err)
{
    if (!json_object_get(c->file, host_key) && !json_object_get(c->file, port_key))
        return WEIR_OK;
    weir_code rc = srv_config_text(c, host_key, &host, err);
    if (!rc)
        rc = srv_config_text(c, port_key, &port, err);
    if (rc)
        return rc;
    bool six = strchr(host, ':') && *host != '[';
    *out = srv_config_keep(c, "%s%s%s:%s", six ? "[" : "", host, six ? "]" : "", port);
    return *out ? WEIR_OK : srv_config_no_memory(err);
}

/* Turn them into the settings they stand for, in the file itself. */
static weir_code translate(config *c, const char *key, const char *old, const char *text,
                           weir_error *err)
{
    if (!text)
        return WEIR_OK;
    if (json_object_get(c->file, key))
        return both_said(c, key, old, err);
    return json_object_set_new(c->file, key, json_string(text)) ? srv_config_no_memory(err)
                                                                : WEIR_OK;
}

/* Warnings at the start about unused settings. */
static const char *unused_timers(const config *c, bool has_store)
{
    if (json_object_get(c->file, PROMOTION_KEY) && !has_store)
        return PROMOTION_KEY " changes nothing without redis.host: write the store as "
               "redis+kue://HOST?promotion=200ms";
    for (size_t i = 0; i < sizeof timer_keys / sizeof *timer_keys; i++)
        if (json_object_get(c->file, timer_keys[i]))
            return "job.promotion.limit and job.ttl.* change nothing: all delayed jobs start when "
                   "they are due, and a ttl ends when it is over";
    return NULL;
}

static weir_code translate_vertx(config *c, weir_error *err)
{
    const char *redis = NULL, *listen = NULL, *title = NULL, *every = NULL;
    weir_code   rc = host_port(c, "redis.host", "redis.port", "127.0.0.1", "6379", &redis, err);
    if (!rc)
        rc = srv_config_text(c, PROMOTION_KEY, &every, err);
    c->pub.note = unused_timers(c, redis);
    if (!rc && redis) {
        redis = srv_config_keep(c, "redis+kue://%s?profile=vertx%s%s%s", redis,
                                every ? "&promotion=" : "", every ? every : "", every ? "ms" : "");
        rc = redis ? WEIR_OK : srv_config_no_memory(err);
    }
    if (!rc)
        rc = translate(c, "store", "redis.host", redis, err);
    /* Without an address Vert.x Kue listens everywhere. That is for the user to say. */
    if (!rc)
        rc = host_port(c, "http.address", "http.port", "127.0.0.1", "7340", &listen, err);
    if (!rc)
        rc = translate(c, "listen", "http.port", listen, err);
    if (!rc)
        rc = srv_config_text(c, "kue.ui.title", &title, err);
    if (!rc)
        rc = translate(c, "title", "kue.ui.title", title, err);
    return rc;
}

static weir_code translate_kue(config *c, weir_error *err)
{
    bool off = false;
    if (!json_object_get(c->file, KUE_SEARCH))
        return WEIR_OK;
    weir_code rc = srv_config_flag(c, KUE_SEARCH, &off, err);
    return rc ? rc : translate(c, "search", KUE_SEARCH, off ? "off" : "on", err);
}

bool srv_config_is_vertx(const config *c)
{
    for (size_t i = 0; c->file && i < N_VERTX; i++)
        if (json_object_get(c->file, vertx_keys[i]))
            return true;
    return false;
}

weir_code srv_config_read(config *c, weir_error *err)
{
    weir_code rc = read_file(c, err);
    if (!rc)
        rc = translate_vertx(c, err);
    return rc ? rc : translate_kue(c, err);
}
