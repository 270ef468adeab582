/* config.c - settings from options, environment and file: see config.h. */
#include "server/config_inner.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct setting {
    const char *name;
    bool        flag;
    size_t      offset;             /* in srv_given */
} setting;

#define TEXT false
#define FLAG true
#define X(member, name, kind, ...) { name, kind, offsetof(srv_given, member) },
static const setting settings[] = {
    { "store", TEXT, offsetof(srv_given, store) },
    { "durability", TEXT, offsetof(srv_given, durability) },
    SRV_SETTINGS(X)
};
#undef X
#undef TEXT
#undef FLAG

_Static_assert(sizeof settings / sizeof *settings == N_SETTINGS, "one for each");

enum { MIB = 1024 * 1024 };

const char *srv_setting_name(size_t i)
{
    return settings[i].name;
}

char *srv_config_keep(config *c, const char *fmt, ...)
{
    char   *text = NULL;
    va_list args;
    va_start(args, fmt);
    if (c->n_kept == MAX_KEPT || vasprintf(&text, fmt, args) < 0)
        text = NULL;
    else
        c->kept[c->n_kept++] = text;
    va_end(args);
    return text;
}

weir_code srv_config_no_memory(weir_error *err)
{
    return weir_fail(err, WEIR_ENOMEM, "settings: out of memory");
}

/* WEIR_TLS_CERT of "tls-cert". */
static const char *environment(const char *name, char *variable, size_t size)
{
    snprintf(variable, size, "WEIR_%s", name);
    for (char *p = variable; *p; p++)
        *p = *p == '-' ? '_' : (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
    const char *text = getenv(variable);
    return text && *text ? text : NULL;
}

/* ---- which holds ---- */

static weir_code parse_flag(const char *from, const char *text, bool *out, weir_error *err)
{
    *out = strcmp(text, "1") == 0 || strcmp(text, "true") == 0;
    if (!*out && strcmp(text, "0") != 0 && strcmp(text, "false") != 0)
        return weir_fail(err, WEIR_EINVAL, "%s: '%s' is not true or false", from, text);
    return WEIR_OK;
}

static weir_code choose(config *c, size_t i, const srv_given *given, weir_error *err)
{
    const setting *s = &settings[i];
    char           variable[64];
    const char    *env = environment(s->name, variable, sizeof variable);
    void          *place = (char *)&c->set + s->offset;
    const void    *option = (const char *)given + s->offset;
    bool           is_given = s->flag ? *(const bool *)option
                                      : *(const char *const *)option != NULL;

    if (is_given)
        snprintf(c->from[i], MAX_FROM, "--%s", s->name);
    else if (env)
        snprintf(c->from[i], MAX_FROM, "%s", variable);
    else
        snprintf(c->from[i], MAX_FROM, "%.200s: %s", c->file ? c->file_name : "", s->name);

    if (s->flag) {
        bool *on = place;
        *on = is_given;
        if (!is_given && env)
            return parse_flag(variable, env, on, err);
        return is_given || !c->file ? WEIR_OK : srv_config_flag(c, s->name, on, err);
    }
    *(const char **)place = is_given ? *(const char *const *)option : env;
    if (*(const char **)place || !c->file)
        return WEIR_OK;
    return srv_config_text(c, s->name, place, err);
}

/* ---- what it means ---- */

static const char *from(const config *c, const char *name)
{
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (strcmp(settings[i].name, name) == 0)
            return c->from[i];
    return name;
}

static weir_code set_durability(config *c, weir_error *err)
{
    const char *text = c->set.durability;
    c->pub.durability = !text                     ? WEIR_DURABILITY_DEFAULT
                        : strcmp(text, "os") == 0 ? WEIR_DURABILITY_OS : WEIR_DURABILITY_DISK;
    if (text && c->pub.durability == WEIR_DURABILITY_DISK && strcmp(text, "disk") != 0)
        return weir_fail(err, WEIR_EINVAL, "%s: '%s' is not disk or os", from(c, "durability"),
                         text);
    return WEIR_OK;
}

static weir_code set_api(config *c, weir_error *err)
{
    const char *text = c->set.api;
    bool        vertx = text ? strcmp(text, "vertx") == 0 : srv_config_is_vertx(c);
    if (text && !vertx && strcmp(text, "kue") != 0)
        return weir_fail(err, WEIR_EINVAL, "%s: '%s' is not kue or vertx", from(c, "api"), text);
    c->pub.serve.api = vertx ? SRV_API_VERTX : SRV_API_KUE;
    return WEIR_OK;
}

static weir_code set_search(config *c, weir_error *err)
{
    const char *text = c->set.search;
    c->pub.serve.search = !text                     ? SRV_SEARCH_AS_IT_IS
                          : strcmp(text, "on") == 0 ? SRV_SEARCH_ON : SRV_SEARCH_OFF;
    if (text && c->pub.serve.search == SRV_SEARCH_OFF && strcmp(text, "off") != 0)
        return weir_fail(err, WEIR_EINVAL, "%s: '%s' is not on or off", from(c, "search"), text);
    return WEIR_OK;
}

static weir_code set_log(config *c, weir_error *err)
{
    const char *format = c->pub.log_format = c->set.log_format;
    const char *level = c->pub.log_level = c->set.log_level;
    if (format && strcmp(format, "text") && strcmp(format, "json"))
        return weir_fail(err, WEIR_EINVAL, "%s: '%s' is not text or json", from(c, "log-format"),
                         format);
    if (level && strcmp(level, "info") && strcmp(level, "warning") && strcmp(level, "error"))
        return weir_fail(err, WEIR_EINVAL, "%s: '%s' is not info, warning or error",
                         from(c, "log-level"), level);
    return WEIR_OK;
}

static weir_code set_audit(config *c, weir_error *err)
{
    static const char *const words[] = { [SRV_AUDIT_ADMIN] = "admin", [SRV_AUDIT_ALL] = "all",
                                         [SRV_AUDIT_OFF] = "off" };
    for (int i = 0; c->set.audit && i <= SRV_AUDIT_OFF; i++) {
        if (strcmp(c->set.audit, words[i]) == 0) {
            c->pub.serve.audit = (srv_audit_mode)i;
            return WEIR_OK;
        }
    }
    return c->set.audit ? weir_fail(err, WEIR_EINVAL, "%s: '%s' is not admin, all or off",
                                    from(c, "audit"), c->set.audit)
                        : WEIR_OK;
}

static weir_code set_threads(config *c, weir_error *err)
{
    const char *text = c->set.threads;
    if (!text)
        return WEIR_OK;
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno || end == text || *end || n < 1 || n > SRV_MAX_THREADS)
        return weir_fail(err, WEIR_EINVAL, "%s: '%s' is not a whole number from 1 to %d",
                         from(c, "threads"), text, SRV_MAX_THREADS);
    c->pub.serve.threads = (int)n;
    return WEIR_OK;
}

static weir_code set_store_wait(config *c, weir_error *err)
{
    weir_error why;
    c->pub.store_wait_ms = -1;
    if (!c->set.store_wait || !weir_duration_parse(c->set.store_wait, &c->pub.store_wait_ms, &why))
        return WEIR_OK;
    return weir_fail(err, WEIR_EINVAL, "%s: %s", from(c, "store-wait"), why.msg);
}

/* The shares of one caller. */
static const struct {
    const char *name;
    size_t      offset;             /* in srv_given */
    srv_share   share;
    long        unit, most;
} shares[] = {
    { "caller-rate", offsetof(srv_given, caller_rate), SRV_SHARE_RATE, 1, 1000000 },
    { "caller-connections", offsetof(srv_given, caller_connections), SRV_SHARE_CONNECTIONS, 1,
      SRV_MAX_CONNECTIONS },
    { "caller-listeners", offsetof(srv_given, caller_listeners), SRV_SHARE_LISTENERS, 1,
      SRV_MAX_LISTENERS },
    { "caller-waits", offsetof(srv_given, caller_waits), SRV_SHARE_WAITS, 1, SRV_MAX_CONNECTIONS },
    { "caller-bodies", offsetof(srv_given, caller_bodies), SRV_SHARE_BODIES, MIB,
      SRV_MAX_BODIES / MIB },
    { "caller-answers", offsetof(srv_given, caller_answers), SRV_SHARE_ANSWERS, MIB,
      SRV_MAX_ANSWERS / MIB },
};

static weir_code set_shares(config *c, weir_error *err)
{
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        const char *text = *(const char *const *)((const char *)&c->set + shares[i].offset);
        char       *end;
        if (!text)
            continue;
        errno = 0;
        long n = strtol(text, &end, 10);
        if (errno || end == text || *end || n < 1 || n > shares[i].most)
            return weir_fail(err, WEIR_EINVAL, "%s: '%s' is not a whole number from 1 to %ld",
                             from(c, shares[i].name), text, shares[i].most);
        c->pub.serve.limits.caller[shares[i].share] = n * shares[i].unit;
    }
    return WEIR_OK;
}

/* "https://queue.example.org", with nothing behind the host and its port. */
static bool is_origin(const char *text)
{
    const char *host = strncmp(text, "https://", 8) == 0  ? text + 8
                       : strncmp(text, "http://", 7) == 0 ? text + 7 : "";
    return *host && host[strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789-._:[]")] == 0;
}

static weir_code set_origins(config *c, weir_error *err)
{
    if (!c->set.origin)
        return WEIR_OK;
    char *text = srv_config_keep(c, "%s", c->set.origin), *rest = text;
    if (!text)
        return srv_config_no_memory(err);
    size_t n = 0;
    for (char *each; (each = strtok_r(rest, ", ", &rest));) {
        if (n == SRV_MAX_ORIGINS)
            return weir_fail(err, WEIR_EINVAL, "%s: more than %d (SRV_MAX_ORIGINS)",
                             from(c, "origin"), SRV_MAX_ORIGINS);
        if (!is_origin(each))
            return weir_fail(err, WEIR_EINVAL, "%s: '%s' is not an origin such as "
                             "https://jobs.example.org (small letters, no path)",
                             from(c, "origin"), each);
        c->origins[n++] = each;
    }
    c->pub.serve.origins = c->origins;
    return WEIR_OK;
}

static weir_code set_permits(config *c, const char *key, const json_t *list, const char **out,
                             weir_error *err)
{
    size_t  i;
    json_t *each;
    bool    right = !list || (json_is_array(list) && json_array_size(list) <= SRV_MAX_PERMITS);
    json_array_foreach(list, i, each) {
        right = right && json_is_string(each);
        if (right)
            out[i] = json_string_value(each);
    }
    return right ? WEIR_OK
                 : weir_fail(err, WEIR_EINVAL, "%s: bus: %s: must be a list of at most %d texts, "
                             "each a regular expression for whole addresses", c->file_name, key,
                             SRV_MAX_PERMITS);
}

/* "bus": "ADDRESS:PORT", or {"listen": "ADDRESS:PORT", "inbound": [...], "outbound": [...]}. */
static weir_code set_bus(config *c, weir_error *err)
{
    srv_bus_options *bus = &c->pub.serve.bus;
    const json_t    *v = json_object_get(c->file, "bus");
    bus->listen = c->set.bus;
    if (!json_is_object(v))
        return WEIR_OK;
    const char *key;
    json_t     *value;
    json_object_foreach((json_t *)v, key, value)
        if (strcmp(key, "listen") && strcmp(key, "inbound") && strcmp(key, "outbound"))
            return weir_fail(err, WEIR_EINVAL, "%s: bus: unknown setting \"%s\"; must be "
                             "listen, inbound or outbound", c->file_name, key);
    bus->inbound = c->inbound;
    bus->outbound = c->outbound;
    weir_code rc = set_permits(c, "inbound", json_object_get(v, "inbound"), c->inbound, err);
    return rc ? rc : set_permits(c, "outbound", json_object_get(v, "outbound"), c->outbound, err);
}

static weir_code set_workqueues(config *c, weir_error *err)
{
    srv_bus_options *bus = &c->pub.serve.bus;
    json_t          *list = json_object_get(c->file, WORK_QUEUES);
    if (!list)
        return WEIR_OK;
    json_t        *whole = json_pack("{s:O}", WORK_QUEUES, list);
    char          *text = whole ? json_dumps(whole, 0) : NULL;
    srv_workqueue *all = NULL;
    weir_error     why = { 0 };
    weir_code      rc = text ? srv_workqueues_parse(text, strlen(text), &c->workqueues, &all,
                                                    &bus->n_workqueues, &why)
                             : srv_config_no_memory(&why);
    bus->workqueues = all;
    free(text);
    json_decref(whole);
    return rc ? weir_fail(err, rc, "%s: %s", c->file_name, why.msg) : WEIR_OK;
}

static weir_code set_tls(config *c, weir_error *err)
{
    const char *cert = c->set.tls_cert, *key = c->set.tls_key;
    if (!cert != !key)
        return weir_fail(err, WEIR_EINVAL, "%s: needs %s too",
                         from(c, cert ? "tls-cert" : "tls-key"), cert ? "tls-key" : "tls-cert");
    c->pub.serve.tls_cert = cert;
    c->pub.serve.tls_key = key;
    return WEIR_OK;
}

/* The directory for what a user keeps; NULL when there is no home. */
static weir_code set_data(config *c, weir_error *err)
{
    const char *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (c->set.data)
        c->pub.serve.data_dir = c->set.data;
    else if (xdg && *xdg == '/')
        c->pub.serve.data_dir = srv_config_keep(c, "%s/weir", xdg);
    else if (home && *home == '/')
        c->pub.serve.data_dir = srv_config_keep(c, "%s/.local/share/weir", home);
    else
        return WEIR_OK;
    return c->pub.serve.data_dir ? WEIR_OK : srv_config_no_memory(err);
}

static weir_code set_store(config *c, weir_error *err)
{
    c->pub.store = c->set.store;
    c->pub.store_in_data = !c->pub.store;
    if (c->pub.store)
        return WEIR_OK;
    if (!c->pub.serve.data_dir)
        return weir_fail(err, WEIR_EINVAL, "no store: set --store, --data or HOME");
    c->pub.store = srv_config_keep(c, "sqlite:%s/jobs.db", c->pub.serve.data_dir);
    return c->pub.store ? WEIR_OK : srv_config_no_memory(err);
}

/* Adds the prefix and the name of the table to the URLs. */
static weir_code set_properties(config *c, weir_error *err)
{
    weir_task_properties p;
    char                *store = NULL, *table = NULL;
    if (!c->set.properties)
        return WEIR_OK;
    weir_code rc = weir_task_properties_read(c->set.properties, &p, err);
    if (!rc)
        rc = weir_task_properties_queue(&p, c->pub.store, &store, err);
    if (!rc && c->set.task_table)
        rc = weir_task_properties_table(&p, c->set.task_table, &table, err);
    if (!rc) {
        c->pub.store = srv_config_keep(c, "%s", store);
        if (table)
            c->pub.serve.task_table = srv_config_keep(c, "%s", table);
        if (!c->pub.store || (table && !c->pub.serve.task_table))
            rc = srv_config_no_memory(err);
    }
    free(store);
    free(table);
    return rc;
}

static weir_code set_all(config *c, weir_error *err)
{
    static weir_code (*const steps[])(config *, weir_error *) = {
        set_durability, set_log, set_api, set_search, set_audit, set_threads, set_shares,
        set_origins, set_bus, set_workqueues, set_tls, set_data, set_store, set_properties,
        set_store_wait
    };
    srv_options *o = &c->pub.serve;
    o->listen = c->set.listen ? c->set.listen : "127.0.0.1:7340";
    o->title = c->set.title ? c->set.title : "weir";
    o->access_log = c->set.access_log;
    o->task_table = c->set.task_table;
    o->kue_get = c->set.kue_get;
    o->push_private = c->set.push_private;
    weir_code rc = WEIR_OK;
    for (size_t i = 0; !rc && i < sizeof steps / sizeof *steps; i++)
        rc = steps[i](c, err);
    return rc;
}

weir_code srv_config_create(srv_config **out, const srv_given *given, weir_error *err)
{
    *out = NULL;
    config *c = calloc(1, sizeof *c);
    if (!c)
        return srv_config_no_memory(err);
    char      variable[64];
    weir_code rc = WEIR_OK;
    c->file_name = given->config ? given->config
                                 : environment("config", variable, sizeof variable);
    if (c->file_name)
        rc = srv_config_read(c, err);
    for (size_t i = 0; !rc && i < N_SETTINGS; i++)
        rc = choose(c, i, given, err);
    if (!rc)
        rc = set_all(c, err);
    if (rc)
        srv_config_destroy(&c->pub);
    else
        *out = &c->pub;
    return rc;
}

void srv_config_destroy(srv_config *pub)
{
    config *c = (config *)pub;
    if (!c)
        return;
    for (size_t i = 0; i < c->n_kept; i++)
        free(c->kept[i]);
    json_decref(c->file);
    weir__arena_free(&c->workqueues);
    free(c);
}
