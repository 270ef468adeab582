/* tokens.c - the file of tokens: see tokens.h.
 *
 * A plain SHA-256 is enough of a hash here. Salt and slow hashes protect secrets that people make
 * up, which can be guessed; a token is 256 bits of the system's randomness, so nobody finds it from
 * its hash, and each request can afford to hash what it was sent. */
#include "server/tokens.h"

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
#include "server/file.h"

static const char prefix[] = "wtk_";

static bool hash_text(const char *text, unsigned char out[SRV_TOKEN_HASH])
{
    return EVP_Digest(text, strlen(text), out, NULL, EVP_sha256(), NULL) == 1;
}

const srv_token *srv_tokens_find(const srv_tokens *t, const char *text)
{
    unsigned char    hash[SRV_TOKEN_HASH];
    const srv_token *found = NULL;
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

static bool read_token(const json_t *item, srv_token *out)
{
    const char *name = json_string_value(json_object_get(item, "name"));
    const json_t *bound = json_object_get(item, "type");
    const char *type = json_string_value(bound);
    const json_t *roles = json_object_get(item, "roles"), *each;
    size_t      i;
    *out = (srv_token){ .created_at = json_integer_value(json_object_get(item, "created_at")) };
    if (!name || !name_is_right(name) || (bound && !type) ||    /* never wider than it was meant */
        (type && weir__type_check(type, "type", NULL)) ||
        !read_hex(json_string_value(json_object_get(item, "sha256")), out->hash))
        return false;
    strcpy(out->who.name, name);
    strcpy(out->who.type, type ? type : "");
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
                           "and sha256", path, i);
    json_decref(file);
    return rc;
}

/* Whoever may write to the file gives out rights. Root looks after the files of others. */
static weir_code check_owner(const char *path, const struct stat *st, weir_error *err)
{
    uid_t us = geteuid();
    if (!S_ISREG(st->st_mode) || (us != 0 && st->st_uid != us && st->st_uid != 0))
        return weir_fail(err, WEIR_EINVAL, "%s: is not a file of this user's", path);
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return weir_fail(err, WEIR_EINVAL, "%s: others may write to it; chmod 600 %s", path, path);
    return WEIR_OK;
}

weir_code srv_tokens_read(srv_tokens *out, const char *path, weir_error *err)
{
    *out = (srv_tokens){ 0 };
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? WEIR_OK
                               : weir_fail(err, WEIR_EIO, "%s: %s", path, strerror(errno));
    struct stat st;
    char       *text = NULL;
    weir_code   rc = WEIR_OK;
    if (fstat(fd, &st))
        rc = weir_fail(err, WEIR_EIO, "%s: %s", path, strerror(errno));
    if (!rc)
        rc = check_owner(path, &st, err);
    if (!rc && st.st_size > SRV_TOKENS_FILE)
        rc = weir_fail(err, WEIR_EINVAL, "%s: more than %d bytes (SRV_TOKENS_FILE)", path,
                       (int)SRV_TOKENS_FILE);
    if (!rc && !(text = calloc(1, (size_t)st.st_size + 1)))
        rc = weir_fail(err, WEIR_ENOMEM, "tokens: out of memory");
    if (!rc && read(fd, text, (size_t)st.st_size) != st.st_size)
        rc = weir_fail(err, WEIR_EIO, "%s: cannot be read", path);
    if (!rc)
        rc = read_json(out, path, text, err);
    close(fd);
    free(text);
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
    if (*t->who.type) {
        weir__buf_str(out, ",\"type\":");
        weir__json_string(out, t->who.type, strlen(t->who.type));
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

static weir_code add_one(srv_tokens *t, const srv_caller *who, int64_t now, char *text,
                         weir_error *err)
{
    if (find_name(t, who->name))
        return weir_fail(err, WEIR_ESTATE, "there is a token '%s' already; `weir token rm %s` "
                         "takes it away", who->name, who->name);
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

weir_code srv_tokens_add(const char *path, const srv_caller *who, int64_t now,
                         char text[SRV_TOKEN_TEXT], weir_error *err)
{
    *text = 0;
    if (!name_is_right(who->name))
        return weir_fail(err, WEIR_EINVAL, "'%s' is not a name: letters, digits, '-', '_' and '.', "
                         "at most %zu", who->name, sizeof who->name - 1);
    if (*who->type && weir__type_check(who->type, "type", err))
        return WEIR_EINVAL;
    srv_tokens t = { 0 };
    int        dir = -1;
    weir_code  rc = lock_directory(path, &dir, err);
    if (!rc)
        rc = srv_tokens_read(&t, path, err);
    if (!rc)
        rc = add_one(&t, who, now, text, err);
    if (!rc)
        rc = write_file(&t, path, err);
    if (rc)
        OPENSSL_cleanse(text, SRV_TOKEN_TEXT);
    srv_tokens_fini(&t);
    if (dir >= 0)
        close(dir);
    return rc;
}

weir_code srv_tokens_remove(const char *path, const char *name, weir_error *err)
{
    srv_tokens t = { 0 };
    int        dir = -1;
    srv_token *gone = NULL;
    weir_code  rc = lock_directory(path, &dir, err);
    if (!rc)
        rc = srv_tokens_read(&t, path, err);
    if (!rc && !(gone = find_name(&t, name)))
        rc = weir_fail(err, WEIR_ENOENT, "there is no token '%s'", name);
    if (!rc) {
        memmove(gone, gone + 1, (size_t)(&t.token[--t.n] - gone) * sizeof *gone);
        rc = write_file(&t, path, err);
    }
    srv_tokens_fini(&t);
    if (dir >= 0)
        close(dir);
    return rc;
}
