/* certs.c - certificates for tests: see certs.h. */
#include "support/certs.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { HOUR = 3600 };

typedef struct pair {
    X509     *cert;
    EVP_PKEY *key;
} pair;

static void pair_free(pair *p)
{
    X509_free(p->cert);
    EVP_PKEY_free(p->key);
}

static FILE *open_file(const char *dir, const char *name, const char *ending, const char *mode)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", dir, name, ending);
    return fopen(path, mode);
}

static bool pair_read(pair *p, const char *dir, const char *name)
{
    FILE *cert = open_file(dir, name, "pem", "r"), *key = open_file(dir, name, "key", "r");
    *p = (pair){ cert ? PEM_read_X509(cert, NULL, NULL, NULL) : NULL,
                 key ? PEM_read_PrivateKey(key, NULL, NULL, NULL) : NULL };
    if (cert)
        fclose(cert);
    if (key)
        fclose(key);
    return p->cert && p->key;
}

static bool pair_write(const pair *p, const char *dir, const char *name)
{
    FILE *cert = open_file(dir, name, "pem", "w"), *key = open_file(dir, name, "key", "w");
    bool  fine = cert && key && PEM_write_X509(cert, p->cert) &&
                PEM_write_PrivateKey(key, p->key, NULL, NULL, 0, NULL, NULL);
    if (cert)
        fclose(cert);
    if (key)
        fclose(key);
    return fine;
}

static void extend(X509 *x, int what, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, what, value);
    X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
}

/* `by` NULL: it signs itself. */
static bool pair_make(pair *p, const char *dir, const char *name, const char *names, const pair *by,
                      bool expired)
{
    static long number;
    const char *last = strrchr(dir, '/'), *dir_name = last ? last + 1 : dir;    /* tell CAs apart */
    *p = (pair){ X509_new(), EVP_EC_gen("P-256") };
    if (!p->cert || !p->key)
        return false;
    X509_NAME *subject = X509_get_subject_name(p->cert);
    X509_set_version(p->cert, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(p->cert), (long)time(NULL) * 1000 + ++number);
    X509_gmtime_adj(X509_getm_notBefore(p->cert), -2 * HOUR);
    X509_gmtime_adj(X509_getm_notAfter(p->cert), expired ? -HOUR : 24 * HOUR);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_ASC, (const unsigned char *)dir_name, -1, -1,
                               0);
    X509_set_issuer_name(p->cert, by ? X509_get_subject_name(by->cert) : subject);
    X509_set_pubkey(p->cert, p->key);
    extend(p->cert, by ? NID_subject_alt_name : NID_basic_constraints,
           by ? names : "critical,CA:TRUE");
    return X509_sign(p->cert, by ? by->key : p->key, EVP_sha256()) > 0;
}

bool certs_make(const char *dir, const char *name, const char *names, bool expired)
{
    pair ca, leaf = { 0 };
    bool fine = pair_read(&ca, dir, "ca");
    if (!fine) {
        pair_free(&ca);
        fine = pair_make(&ca, dir, "weir test", NULL, NULL, false) && pair_write(&ca, dir, "ca");
    }
    fine = fine && pair_make(&leaf, dir, name, names, &ca, expired) && pair_write(&leaf, dir, name);
    pair_free(&ca);
    pair_free(&leaf);
    return fine;
}
