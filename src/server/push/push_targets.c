/* push_targets.c - see push_targets.h. */
#include "server/push/push_targets.h"

#include <stdlib.h>
#include <string.h>

#include "base/curl.h"
#include "base/fail.h"
#include "core/job.h"
#include "server/push/netguard.h"

typedef srv_push_target target;

const target srv_push_defaults = {
    .concurrency = SRV_PUSH_CONCURRENCY,
    .timeout_ms = SRV_PUSH_TIMEOUT_MS,
    .later_ms = SRV_PUSH_LATER_MS,
};

#define MEMBERS                                                                                \
    WEIR_FIELD("types", weir__as_texts, offsetof(target, types), .needed = true,               \
               .min = 1, .max = WEIR_MAX_TAKE_TYPES),                                          \
    WEIR_FIELD("url", weir__as_text, offsetof(target, url), .needed = true,                    \
               .min = 1, .max = SRV_PUSH_MAX_URL),                                             \
    WEIR_FIELD("secret", weir__as_text, offsetof(target, secret),                              \
               .min = 1, .max = SRV_PUSH_MAX_SECRET),                                          \
    WEIR_FIELD("concurrency", weir__as_int, offsetof(target, concurrency),                     \
               .min = 1, .max = SRV_PUSH_MAX_CONCURRENCY),                                     \
    WEIR_FIELD("timeout", weir__as_ms, offsetof(target, timeout_ms),                           \
               .min = SRV_PUSH_MIN_TIMEOUT_MS, .max = SRV_PUSH_MAX_TIMEOUT_MS),                \
    WEIR_FIELD("later", weir__as_ms, offsetof(target, later_ms),                               \
               .min = SRV_PUSH_MIN_LATER_MS, .max = SRV_PUSH_MAX_LATER_MS)

const weir_field srv_push_fields[] = {
    MEMBERS,
    WEIR_FIELD("rotate", weir__as_bool, offsetof(target, rotate)),
    { 0 }
};

/* ---- what is right ---- */

static weir_code check_name(const char *name, weir_error *err)
{
    static const char fine[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t            len = strlen(name);
    if (!len || len > SRV_PUSH_MAX_NAME)
        return weir__fail_field(err, WEIR_EINVAL, "name", "%zu bytes, must be between 1 and %d",
                                len, SRV_PUSH_MAX_NAME);
    if (strspn(name, fine) != len)
        return weir__fail_field(err, WEIR_EINVAL, "name", "may have letters, digits, '.', '_' and "
                                "'-' alone");
    return WEIR_OK;
}

static weir_code check_types(const weir_texts *types, weir_error *err)
{
    for (size_t i = 0; i < types->n; i++) {
        weir_code rc = weir__take_type_check(types->text[i], "types", err);
        if (rc)
            return rc;
        for (size_t k = 0; k < i; k++) {
            if (!strcmp(types->text[i], types->text[k]))
                return weir__fail_field(err, WEIR_EINVAL, "types", "%s is given twice",
                                        types->text[i]);
        }
    }
    return WEIR_OK;
}

/* Taken apart by the same code that will follow it, so that both see the same host. The caller
 * releases *host with free_host(). */
static weir_code check_url(const char *url, char **host, weir_error *err)
{
    *host = NULL;
    weir_code loaded = weir__curl_load(err);
    if (loaded)
        return loaded;
    char     *scheme = NULL;
    CURLU    *u = weir__curl.url();
    CURLUcode rc = u ? weir__curl.url_set(u, CURLUPART_URL, url, CURLU_DISALLOW_USER)
                     : CURLUE_OUT_OF_MEMORY;
    if (!rc)
        rc = weir__curl.url_get(u, CURLUPART_SCHEME, &scheme, 0);
    bool web = scheme && (!strcmp(scheme, "http") || !strcmp(scheme, "https"));
    if (!rc && web)
        rc = weir__curl.url_get(u, CURLUPART_HOST, host, 0);
    weir__curl.free(scheme);
    weir__curl.url_cleanup(u);
    if (rc == CURLUE_OUT_OF_MEMORY)
        return weir_fail(err, WEIR_ENOMEM, "url: out of memory");
    if (rc == CURLUE_USER_NOT_ALLOWED)
        return weir__fail_field(err, WEIR_EINVAL, "url", "must not hold a user or password; "
                                "requests are signed with the secret");
    if (rc == CURLUE_UNSUPPORTED_SCHEME || (!rc && !web))
        return weir__fail_field(err, WEIR_EINVAL, "url", "must begin with https:// or http://");
    if (rc)
        return weir__fail_field(err, WEIR_EINVAL, "url", "%s", weir__curl.url_strerror(rc));
    return WEIR_OK;
}

static void free_host(char *host)
{
    if (host)
        weir__curl.free(host);
}

weir_code srv_push_check(const target *t, weir_error *err)
{
    char     *host;
    weir_code rc = check_name(t->name, err);
    if (!rc)
        rc = check_types(&t->types, err);
    if (!rc) {
        rc = check_url(t->url, &host, err);
        free_host(host);
    }
    size_t len = t->secret ? strlen(t->secret) : SRV_PUSH_MIN_SECRET;
    if (!rc && len < SRV_PUSH_MIN_SECRET)
        rc = weir__fail_field(err, WEIR_EINVAL, "secret", "%zu bytes, at least %d", len,
                              SRV_PUSH_MIN_SECRET);
    return rc;
}

weir_code srv_push_check_public(const target *t, weir_error *err)
{
    char       *host;
    weir_code   rc = check_url(t->url, &host, err);
    const char *kind = rc ? NULL : srv_host_not_public(host);
    if (kind)
        rc = weir__fail_field(err, WEIR_EINVAL, "url", "%.80s is not a public address (%s), and "
                              "the server does not run with --push-private", host, kind);
    free_host(host);
    return rc;
}

/* ---- copies ---- */

static char *put_text(char **room, const char *text)
{
    char *to = *room;
    *room = stpcpy(to, text) + 1;
    return to;
}

target *srv_push_copy(const target *t)
{
    const char *secret = t->secret ? t->secret : "";
    size_t      size = sizeof *t + (t->types.n + 1) * sizeof(char *) + strlen(t->name) +
                       strlen(t->url) + strlen(secret) + 3 +
                       (t->old_secret ? strlen(t->old_secret) + 1 : 0);
    for (size_t i = 0; i < t->types.n; i++)
        size += strlen(t->types.text[i]) + 1;
    target *copy = malloc(size);
    if (!copy)
        return NULL;
    *copy = *t;
    copy->types.text = (const char **)(copy + 1);
    char *room = (char *)(copy->types.text + t->types.n + 1);
    for (size_t i = 0; i < t->types.n; i++)
        copy->types.text[i] = put_text(&room, t->types.text[i]);
    copy->types.text[t->types.n] = NULL;
    copy->name = put_text(&room, t->name);
    copy->url = put_text(&room, t->url);
    copy->secret = put_text(&room, secret);
    if (t->old_secret)
        copy->old_secret = put_text(&room, t->old_secret);
    return copy;
}

/* ---- the file ---- */

static const weir_field kept_fields[] = {
    WEIR_FIELD("name", weir__as_text, offsetof(target, name), .needed = true),
    MEMBERS,
    WEIR_FIELD("old_secret", weir__as_text, offsetof(target, old_secret),
               .min = 1, .max = SRV_PUSH_MAX_SECRET),
    WEIR_FIELD("paused", weir__as_bool, offsetof(target, paused)),
    { 0 }
};

typedef struct file {
    weir_items targets;
} file;

static const weir_field file_fields[] = {
    WEIR_FIELD("targets", weir__as_list, offsetof(file, targets), .needed = true,
               .max = SRV_PUSH_MAX_TARGETS, .fields = kept_fields, .size = sizeof(target)),
    { 0 }
};

/* Memory of one parse. */
typedef struct piece {
    struct piece *next;
    max_align_t   bytes[];
} piece;

static void *piece_alloc(void *ctx, size_t size)
{
    piece **all = ctx;
    piece  *p = calloc(1, sizeof *p + size);
    if (!p)
        return NULL;
    p->next = *all;
    *all = p;
    return p->bytes;
}

static weir_code check_kept(const target *all, size_t i, weir_error *err)
{
    const target *t = &all[i];
    weir_code     rc = t->secret ? srv_push_check(t, err)
                                 : weir__fail_field(err, WEIR_EINVAL, "secret", "missing");
    for (size_t k = 0; !rc && k < i; k++) {
        if (!strcmp(t->name, all[k].name))
            rc = weir__fail_field(err, WEIR_EINVAL, "name", "%s is given twice", t->name);
    }
    return rc ? weir__fail_inside(err, rc, "targets[%zu]", i) : WEIR_OK;
}

/* A member that is zero was not in the file. */
static void set_defaults(target *t)
{
    if (!t->concurrency)
        t->concurrency = srv_push_defaults.concurrency;
    if (!t->timeout_ms)
        t->timeout_ms = srv_push_defaults.timeout_ms;
    if (!t->later_ms)
        t->later_ms = srv_push_defaults.later_ms;
}

weir_code srv_push_parse(const char *text, size_t len, target *out[SRV_PUSH_MAX_TARGETS], size_t *n,
                         weir_error *err)
{
    enum { DEPTH = 4 };
    piece      *pieces = NULL;
    file        f = { 0 };
    weir_reader in = { .alloc = piece_alloc, .ctx = &pieces };
    weir_code   rc = weir__read_check(&in, text, len, DEPTH);
    *n = 0;
    if (!rc)
        rc = weir__read(&in, file_fields, (weir_json_piece){ text, len }, &f);
    if (rc && err)
        *err = in.err;
    target *all = f.targets.item;
    for (size_t i = 0; !rc && i < f.targets.n; i++) {
        set_defaults(&all[i]);
        rc = check_kept(all, i, err);
        if (!rc && !(out[i] = srv_push_copy(&all[i])))
            rc = weir_fail(err, WEIR_ENOMEM, "targets: out of memory");
        if (!rc)
            *n = i + 1;
    }
    while (rc && *n)
        free(out[--*n]);
    for (piece *p; (p = pieces); free(p))
        pieces = p->next;
    return rc;
}

static void text_member(weir_buf *out, const char *name, const char *text)
{
    weir__buf_printf(out, "\"%s\":", name);
    weir__json_string(out, text, strlen(text));
    weir__buf_char(out, ',');
}

static void put_members(weir_buf *out, const target *t)
{
    text_member(out, "name", t->name);
    weir__buf_str(out, "\"types\":[");
    for (size_t i = 0; i < t->types.n; i++) {
        weir__buf_str(out, i ? "," : "");
        weir__json_string(out, t->types.text[i], strlen(t->types.text[i]));
    }
    weir__buf_str(out, "],");
    text_member(out, "url", t->url);
    weir__buf_printf(out, "\"concurrency\":%lld,\"timeout\":%lld,\"later\":%lld,",
                     (long long)t->concurrency, (long long)t->timeout_ms, (long long)t->later_ms);
}

void srv_push_show(weir_buf *out, const target *t)
{
    put_members(out, t);
    weir__buf_str(out, t->old_secret ? "\"rotating\":true," : "");
}

void srv_push_write(weir_buf *out, const target *const *targets, size_t n)
{
    weir__buf_str(out, "{\"targets\":[");
    for (size_t i = 0; i < n; i++) {
        weir__buf_str(out, i ? ",\n{" : "\n{");
        put_members(out, targets[i]);
        text_member(out, "secret", targets[i]->secret);
        if (targets[i]->old_secret)
            text_member(out, "old_secret", targets[i]->old_secret);
        weir__buf_printf(out, "\"paused\":%s}", targets[i]->paused ? "true" : "false");
    }
    weir__buf_str(out, "\n]}\n");
}
