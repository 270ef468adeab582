/* config.c - settings from options, environment and file: see config.h. */
#include "server/config.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/access/file.h"
#include "server/bus/workqueues.h"

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

enum { N_SETTINGS = sizeof settings / sizeof *settings };

/* Vert.x Kue's names. Of its timers one has a counterpart: how often weir looks for delayed jobs of
 * Vert.x Kue, which publishes nothing when it adds one. The others change nothing. */
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
/* What only the file can say. */
#define WORK_QUEUES "work_queues"

enum { MAX_KEPT = 64, MAX_FROM = 300, MIB = 1024 * 1024 };

/* A srv_config with what its texts live in. */
typedef struct config {
    srv_config  pub;
    json_t     *file;               /* an object; NULL: none */
    const char *file_name;
    srv_given   set;                /* what holds */
    char        from[N_SETTINGS][MAX_FROM];     /* where that was said */
    const char *origins[SRV_MAX_ORIGINS + 1];
    const char *inbound[SRV_MAX_PERMITS + 1], *outbound[SRV_MAX_PERMITS + 1];
    weir_arena  workqueues;
    char       *kept[MAX_KEPT];
    size_t      n_kept;
} config;

/* Memory that lives as long as the configuration. */
static char *keep(config *c, const char *fmt, ...) WEIR_PRINTF(2, 3);
static char *keep(config *c, const char *fmt, ...)
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

static weir_code no_memory(weir_error *err)
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

/* ---- the file ---- */

/* How many letters must change to make one word of the other. */
static size_t distance(const char *a, const char *b)
{
    enum { LONGEST = 40 };
    size_t row[LONGEST + 1], n = strlen(a), m = strlen(b);
    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t change = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            size_t other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < other ? change : other;
        }
    }
    return row[m];
}

enum { N_KEYS = N_SETTINGS + N_VERTX + 2 };

static const char *nth_key(size_t i)
{
    return i < N_SETTINGS             ? settings[i].name
           : i < N_SETTINGS + N_VERTX ? vertx_keys[i - N_SETTINGS]
           : i == N_KEYS - 1          ? WORK_QUEUES : KUE_SEARCH;
}

static weir_code known_key(const config *c, const char *key, weir_error *err)
{
    const char *best = NULL;
    size_t      least = 4;          /* what is farther is no slip */
    for (size_t i = 0; i < N_KEYS; i++) {
        size_t far = distance(key, nth_key(i));
        if (far == 0)
            return WEIR_OK;
        if (far < least) {
            least = far;
            best = nth_key(i);
        }
    }
    return weir_fail(err, WEIR_EINVAL, "%s: there is no setting \"%s\"%s%s%s", c->file_name, key,
                     best ? "; did you mean \"" : "", best ? best : "", best ? "\"?" : "");
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
        return no_memory(err);
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
        *out = keep(c, "%s%s%s", *out, i ? "," : "", json_string_value(each));
        if (!*out)
            return no_memory(err);
    }
    return WEIR_OK;
}

/* The value of a key as text; *out stays NULL when it is not there. */
static weir_code file_text(config *c, const char *key, const char **out, weir_error *err)
{
    const json_t *v = json_object_get(c->file, key);
    if (json_is_object(v) && strcmp(key, "bus") == 0)
        v = json_object_get(v, "listen");       /* the rest: set_bus() */
    if (!v)
        return WEIR_OK;
    if (json_is_string(v))
        *out = json_string_value(v);
    else if (json_is_integer(v))
        *out = keep(c, "%lld", (long long)json_integer_value(v));
    else if (json_is_array(v) && strcmp(key, "origin") == 0)
        return join_list(c, key, v, out, err);
    else
        return weir_fail(err, WEIR_EINVAL, "%s: %s: must be a text or a whole number",
                         c->file_name, key);
    return *out ? WEIR_OK : no_memory(err);
}

static weir_code file_flag(const config *c, const char *key, bool *out, weir_error *err)
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
    weir_code rc = file_text(c, host_key, &host, err);
    if (!rc)
        rc = file_text(c, port_key, &port, err);
    if (rc)
        return rc;
    bool six = strchr(host, ':') && *host != '[';
    *out = keep(c, "%s%s%s:%s", six ? "[" : "", host, six ? "]" : "", port);
    return *out ? WEIR_OK : no_memory(err);
}

/* Turn them into the settings they stand for, in the file itself. */
static weir_code translate(config *c, const char *key, const char *old, const char *text,
                           weir_error *err)
{
    if (!text)
        return WEIR_OK;
    if (json_object_get(c->file, key))
        return both_said(c, key, old, err);
    return json_object_set_new(c->file, key, json_string(text)) ? no_memory(err) : WEIR_OK;
}

/* What is not used, to be said at the start. */
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
        rc = file_text(c, PROMOTION_KEY, &every, err);
    c->pub.note = unused_timers(c, redis);
    if (!rc && redis && !(redis = keep(c, "redis+kue://%s?profile=vertx%s%s%s", redis,
                                       every ? "&promotion=" : "", every ? every : "",
                                       every ? "ms" : "")))
        rc = no_memory(err);
    if (!rc)
        rc = translate(c, "store", "redis.host", redis, err);
    /* Without an address Vert.x Kue listens everywhere. That is for the user to say. */
    if (!rc)
        rc = host_port(c, "http.address", "http.port", "127.0.0.1", "7340", &listen, err);
    if (!rc)
        rc = translate(c, "listen", "http.port", listen, err);
    if (!rc)
        rc = file_text(c, "kue.ui.title", &title, err);
    if (!rc)
        rc = translate(c, "title", "kue.ui.title", title, err);
    return rc;
}

static weir_code translate_kue(config *c, weir_error *err)
{
    bool off = false;
    if (!json_object_get(c->file, KUE_SEARCH))
        return WEIR_OK;
    weir_code rc = file_flag(c, KUE_SEARCH, &off, err);
    return rc ? rc : translate(c, "search", KUE_SEARCH, off ? "off" : "on", err);
}

static bool has_vertx_keys(const config *c)
{
    for (size_t i = 0; c->file && i < N_VERTX; i++)
        if (json_object_get(c->file, vertx_keys[i]))
            return true;
    return false;
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
        return is_given || !c->file ? WEIR_OK : file_flag(c, s->name, on, err);
    }
    *(const char **)place = is_given ? *(const char *const *)option : env;
    if (*(const char **)place || !c->file)
        return WEIR_OK;
    return file_text(c, s->name, place, err);
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
    bool        vertx = text ? strcmp(text, "vertx") == 0 : has_vertx_keys(c);
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
    char *text = keep(c, "%s", c->set.origin), *rest = text;
    if (!text)
        return no_memory(err);
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
            return weir_fail(err, WEIR_EINVAL, "%s: bus: there is no setting \"%s\"; there are "
                             "listen, inbound, outbound", c->file_name, key);
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
                             : no_memory(&why);
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
        c->pub.serve.data_dir = keep(c, "%s/weir", xdg);
    else if (home && *home == '/')
        c->pub.serve.data_dir = keep(c, "%s/.local/share/weir", home);
    else
        return WEIR_OK;
    return c->pub.serve.data_dir ? WEIR_OK : no_memory(err);
}

static weir_code set_store(config *c, weir_error *err)
{
    c->pub.store = c->set.store;
    c->pub.store_in_data = !c->pub.store;
    if (c->pub.store)
        return WEIR_OK;
    if (!c->pub.serve.data_dir)
        return weir_fail(err, WEIR_EINVAL, "no store: set --store, --data or HOME");
    c->pub.store = keep(c, "sqlite:%s/jobs.db", c->pub.serve.data_dir);
    return c->pub.store ? WEIR_OK : no_memory(err);
}

static weir_code set_all(config *c, weir_error *err)
{
    static weir_code (*const steps[])(config *, weir_error *) = {
        set_durability, set_api, set_search, set_audit, set_threads, set_shares, set_origins,
        set_bus, set_workqueues, set_tls, set_data, set_store
    };
    srv_options *o = &c->pub.serve;
    o->listen = c->set.listen ? c->set.listen : "127.0.0.1:7340";
    o->title = c->set.title ? c->set.title : "weir";
    o->access_log = c->set.access_log;
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
        return no_memory(err);
    char      variable[64];
    weir_code rc = WEIR_OK;
    c->file_name = given->config ? given->config
                                 : environment("config", variable, sizeof variable);
    if (c->file_name)
        rc = read_file(c, err);
    if (!rc && c->file)
        rc = translate_vertx(c, err);
    if (!rc && c->file)
        rc = translate_kue(c, err);
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

weir_code srv_make_directory(const char *dir, weir_error *err)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/", dir) >= (int)sizeof path)
        return weir_fail(err, WEIR_EINVAL, "the path of the data directory is too long");
    for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = 0;
        if (mkdir(path, 0700) && errno != EEXIST)
            return weir_fail(err, errno == EACCES || errno == EROFS ? WEIR_EREADONLY : WEIR_EIO,
                             "cannot make %s: %s", path, strerror(errno));
        *p = '/';
    }
    return WEIR_OK;
}
