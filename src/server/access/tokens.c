/* tokens.c - the file of tokens: see tokens.h.
 *
 * A plain SHA-256 is enough of a hash here. Salt and slow hashes protect secrets that people make
 * up, which can be guessed. A token is 256 bits of the system's randomness, so it cannot be found
 * from its hash. Each request can afford to hash its token. */
#include "server/access/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "core/job.h"
#include "server/access/file.h"

static const char prefix[] = "wtk_";

static bool hash_text(const char *text, unsigned char out[SRV_TOKEN_HASH])
{
    return EVP_Digest(text, strlen(text), out, NULL, EVP_sha256(), NULL) == 1;
}

srv_token *srv_tokens_find(const srv_tokens *t, const char *text)
{
    unsigned char hash[SRV_TOKEN_HASH];
    srv_token    *found = NULL;
    if (strlen(text) != SRV_TOKEN_TEXT - 1 || !hash_text(text, hash))
        return NULL;
    for (size_t i = 0; i < t->n; i++)
        if (CRYPTO_memcmp(hash, t->token[i].hash, sizeof hash) == 0)
            found = &t->token[i];
    return found;
}

void srv_tokens_fini(srv_tokens *t)
{
    free(t->token);
    *t = (srv_tokens){ 0 };
}

/* ---- reading ---- */

static bool read_hex(const char *text, unsigned char out[SRV_TOKEN_HASH])
{
    if (!text || strlen(text) != 2 * SRV_TOKEN_HASH)
        return false;
    for (size_t i = 0; i < SRV_TOKEN_HASH; i++) {
        unsigned byte;
        char     pair[3] = { text[2 * i], text[2 * i + 1], 0 };
        if (strspn(pair, "0123456789abcdef") != 2 || sscanf(pair, "%2x", &byte) != 1)
            return false;
        out[i] = (unsigned char)byte;
    }
    return true;
}

/* Letters, digits and - _ . : a name is shown in logs and on terminals. */
static bool name_is_right(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-_.";
    size_t len = strlen(name);
    return len > 0 && len < sizeof ((srv_caller *)0)->name && strspn(name, letters) == len;
}

/* A list of types or a time that cannot be read must not make a token valid for more. */
static bool read_limits(const json_t *item, srv_caller *who)
{
    const json_t *types = json_object_get(item, "types"), *each;
    const json_t *expires = json_object_get(item, "expires_at");
    size_t        i;
    json_array_foreach(types, i, each) {
        const char *type = json_string_value(each);
        if (!type || weir__type_check(type, "types", NULL) || !srv_caller_add_type(who, type))
            return false;
    }
    who->expires_at = json_integer_value(expires);
    return (!types || json_array_size(types)) && (!expires || who->expires_at > 0);
}

/* A member that is not known may be a limit: then the token is not read rather than widened. */
static bool members_are_known(const json_t *item)
{
    static const char *const known[] = { "name", "roles", "types", "created_at", "expires_at",
                                         "sha256" };
    size_t found = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        found += json_object_get(item, known[i]) != NULL;
    return json_object_size(item) == found;
}

static bool read_token(const json_t *item, srv_token *out)
{
    const char *name = json_string_value(json_object_get(item, "name"));
    const json_t *roles = json_object_get(item, "roles"), *each;
    size_t      i;
    *out = (srv_token){ .created_at = json_integer_value(json_object_get(item, "created_at")) };
    if (!name || !name_is_right(name) || !members_are_known(item) ||
        !read_limits(item, &out->who) ||
        !read_hex(json_string_value(json_object_get(item, "sha256")), out->hash))
        return false;
    strcpy(out->who.name, name);
    json_array_foreach(roles, i, each) {
        unsigned bits;
        if (!json_is_string(each) || !srv_roles_parse(json_string_value(each), &bits))
            return false;
        out->who.roles |= bits;
    }
    return out->who.roles != 0;
}

static weir_code read_json(srv_tokens *out, const char *path, const char *text, weir_error *err)
{
    json_error_t  why;
    json_t       *file = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    const json_t *list = json_object_get(file, "tokens");
    weir_code     rc = WEIR_OK;
    size_t        n = json_array_size(list);
    if (!file)
        rc = weir_fail(err, WEIR_EINVAL, "%s: line %d: %s", path, why.line, why.text);
    else if (!json_is_array(list))
        rc = weir_fail(err, WEIR_EINVAL, "%s: has no list \"tokens\"", path);
    else if (n > SRV_MAX_TOKENS)
        rc = weir_fail(err, WEIR_EINVAL, "%s: more than %d tokens (SRV_MAX_TOKENS)", path,
                       SRV_MAX_TOKENS);
    else if (n && !(out->token = calloc(n, sizeof *out->token)))
        rc = weir_fail(err, WEIR_ENOMEM, "tokens: out of memory");
    for (size_t i = 0; !rc && i < n; i++, out->n++)
        if (!read_token(json_array_get(list, i), &out->token[i]))
            rc = weir_fail(err, WEIR_EINVAL, "%s: tokens[%zu] is not right: it needs name, roles "
                           "and sha256, and can have types, created_at and expires_at", path, i);
    json_decref(file);
    return rc;
}

weir_code srv_tokens_read(srv_tokens *out, const char *path, weir_error *err)
{
    weir_buf   text = { 0 };
    weir_error why = { 0 };
    *out = (srv_tokens){ 0 };
    weir_code rc = srv_file_read(path, &text, &why);
    if (rc == WEIR_ENOENT)
        rc = WEIR_OK;
    else if (rc)
        weir_fail(err, rc, "%s", why.msg);
    else if (text.len > SRV_TOKENS_FILE)
        rc = weir_fail(err, WEIR_EINVAL, "%s: more than %d bytes (SRV_TOKENS_FILE)", path,
                       (int)SRV_TOKENS_FILE);
    else
        rc = read_json(out, path, text.data, err);
    weir__buf_fini(&text);
    return rc;
}

/* ---- writing ---- */

static void write_token(weir_buf *out, const srv_token *t)
{
    char roles[64];
    weir__buf_str(out, "{\"name\":");
    weir__json_string(out, t->who.name, strlen(t->who.name));
    weir__buf_str(out, ",\"roles\":[");
    srv_roles_text(t->who.roles, roles, sizeof roles);
    for (char *rest = roles, *each, *comma = ""; (each = strtok_r(rest, ",", &rest)); comma = ",")
        weir__buf_printf(out, "%s\"%s\"", comma, each);
    weir__buf_str(out, "]");
    for (const char *type = t->who.types; *type; type = srv_next_type(type)) {
        weir__buf_str(out, type == t->who.types ? ",\"types\":[" : ",");
        weir__json_string(out, type, strlen(type));
    }
    if (*t->who.types)
        weir__buf_char(out, ']');
    if (t->who.expires_at) {
        weir__buf_str(out, ",\"expires_at\":");
        weir__buf_int(out, t->who.expires_at);
    }
    weir__buf_str(out, ",\"created_at\":");
    weir__buf_int(out, t->created_at);
    weir__buf_str(out, ",\"sha256\":\"");
    for (size_t i = 0; i < SRV_TOKEN_HASH; i++)
        weir__buf_printf(out, "%02x", t->hash[i]);
    weir__buf_str(out, "\"}");
}

static weir_code write_file(const srv_tokens *t, const char *path, weir_error *err)
{
    weir_buf  text = { 0 };
    weir_code rc;
    weir__buf_str(&text, "{\"tokens\":[\n");
    for (size_t i = 0; i < t->n; i++) {
        write_token(&text, &t->token[i]);
        weir__buf_str(&text, i + 1 < t->n ? ",\n" : "\n");
    }
    weir__buf_str(&text, "]}\n");
    rc = text.failed ? weir_fail(err, WEIR_ENOMEM, "tokens: out of memory")
                     : srv_file_replace(path, text.data, text.len, err);
    weir__buf_fini(&text);
    return rc;
}

/* Open and lock the directory of the file, so that two changes at once do not undo each other. */
static weir_code lock_directory(const char *path, int *out, weir_error *err)
{
    char copy[4096];
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy)
        return weir_fail(err, WEIR_EINVAL, "tokens: the path is too long");
    const char *dir = dirname(copy);
    *out = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*out < 0 || flock(*out, LOCK_EX))
        return weir_fail(err, WEIR_EIO, "%s: %s", dir, strerror(errno));
    return WEIR_OK;
}

static srv_token *find_name(const srv_tokens *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->token[i].who.name, name) == 0)
            return &t->token[i];
    return NULL;
}

/* "wtk_" and 32 random bytes in the letters of URLs. */
static bool make_text(char text[SRV_TOKEN_TEXT])
{
    unsigned char secret[32], letters[4 * 11 + 1];
    if (RAND_bytes(secret, sizeof secret) != 1)
        return false;
    EVP_EncodeBlock(letters, secret, sizeof secret);            /* 43 letters and a '=' */
    for (unsigned char *p = letters; *p; p++)
        *p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
    snprintf(text, SRV_TOKEN_TEXT, "%s%.43s", prefix, letters);
    OPENSSL_cleanse(secret, sizeof secret);
    OPENSSL_cleanse(letters, sizeof letters);
    return true;
}

static weir_code append(srv_tokens *t, const srv_caller *who, int64_t now, char *text,
                        weir_error *err)
{
    if (t->n == SRV_MAX_TOKENS)
        return weir_fail(err, WEIR_ELIMIT, "there are %d tokens (SRV_MAX_TOKENS)", SRV_MAX_TOKENS);
    srv_token *more = realloc(t->token, (t->n + 1) * sizeof *more);
    if (!more)
        return weir_fail(err, WEIR_ENOMEM, "tokens: out of memory");
    t->token = more;
    more[t->n] = (srv_token){ .who = *who, .created_at = now };
    if (!make_text(text) || !hash_text(text, more[t->n].hash))
        return weir_fail(err, WEIR_EIO, "the system has no randomness for a token");
    t->n++;
    return WEIR_OK;
}

static weir_code check_new(const srv_caller *who, int64_t now, weir_error *err)
{
    if (!name_is_right(who->name))
        return weir_fail(err, WEIR_EINVAL, "'%s' is not a name: letters, digits, '-', '_' and '.', "
                         "at most %zu", who->name, sizeof who->name - 1);
    for (const char *t = who->types; *t; t = srv_next_type(t))
        if (weir__type_check(t, "type", err))
            return WEIR_EINVAL;
    if (who->expires_at && who->expires_at <= now)
        return weir_fail(err, WEIR_EINVAL, "the token would be expired already; give a time in "
                         "the future");
    return WEIR_OK;
}

/* The file while it is changed: read, and its directory locked. */
typedef struct change {
    srv_tokens t;
    int        dir;
} change;

static weir_code begin(change *c, const char *path, weir_error *err)
{
    *c = (change){ .dir = -1 };
    weir_code rc = lock_directory(path, &c->dir, err);
    return rc ? rc : srv_tokens_read(&c->t, path, err);
}

/* Write it, unless something failed before. */
static weir_code end(change *c, const char *path, weir_code rc, weir_error *err)
{
    if (!rc)
        rc = write_file(&c->t, path, err);
    srv_tokens_fini(&c->t);
    if (c->dir >= 0)
        close(c->dir);
    return rc;
}

weir_code srv_tokens_add(const char *path, const srv_caller *who, int64_t now,
                         char text[SRV_TOKEN_TEXT], weir_error *err)
{
    change    c = { .dir = -1 };
    weir_code rc = check_new(who, now, err);
    *text = 0;
    if (!rc)
        rc = begin(&c, path, err);
    if (!rc && find_name(&c.t, who->name))
        rc = weir_fail(err, WEIR_ESTATE, "there is a token '%s' already; `weir token rotate %s` "
                       "replaces it, `weir token rm %s` removes it", who->name, who->name,
                       who->name);
    if (!rc)
        rc = append(&c.t, who, now, text, err);
    rc = end(&c, path, rc, err);
    if (rc)
        OPENSSL_cleanse(text, SRV_TOKEN_TEXT);
    return rc;
}

static void take_out(srv_tokens *t, srv_token *gone)
{
    memmove(gone, gone + 1, (size_t)(&t->token[--t->n] - gone) * sizeof *gone);
}

/* When a new token in the place of this one ends. */
static int64_t expiry_of_next(const srv_token *old, int64_t now, int64_t given)
{
    if (given)
        return given == SRV_NEVER_EXPIRES ? 0 : given;
    if (!old->who.expires_at || old->created_at <= 0)
        return old->who.expires_at;
    return now + (old->who.expires_at - old->created_at);
}

weir_code srv_tokens_rotate(const char *path, const char *name, int64_t now, int64_t until,
                            int64_t expires_at, char text[SRV_TOKEN_TEXT], weir_error *err)
{
    change     c;
    srv_token *old = NULL;
    srv_caller who = { 0 };
    weir_code  rc = begin(&c, path, err);
    *text = 0;
    for (size_t i = c.t.n; !rc && i-- > 0;) {           /* the newest of the name is the last */
        srv_token *each = &c.t.token[i];
        if (strcmp(each->who.name, name) != 0)
            continue;
        if (!old) {
            old = each;
            who = each->who;
        } else {
            take_out(&c.t, each);
            old--;
        }
    }
    if (!rc && !old)
        rc = weir_fail(err, WEIR_ENOENT, "there is no token '%s'", name);
    if (!rc) {
        who.expires_at = expiry_of_next(old, now, expires_at);
        rc = check_new(&who, now, err);
    }
    if (!rc && (!old->who.expires_at || old->who.expires_at > until))
        old->who.expires_at = until;
    if (!rc)
        rc = append(&c.t, &who, now, text, err);
    rc = end(&c, path, rc, err);
    if (rc)
        OPENSSL_cleanse(text, SRV_TOKEN_TEXT);
    return rc;
}

weir_code srv_tokens_remove(const char *path, const char *name, weir_error *err)
{
    change     c;
    weir_code  rc = begin(&c, path, err);
    srv_token *gone = rc ? NULL : find_name(&c.t, name);
    if (!rc && !gone)
        rc = weir_fail(err, WEIR_ENOENT, "there is no token '%s'", name);
    for (; gone; gone = find_name(&c.t, name))
        take_out(&c.t, gone);
    return end(&c, path, rc, err);
}
