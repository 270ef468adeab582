/* tls.c - the TLS context: see tls.h. A connection holds a reference to the context it began with,
 * so a new one takes its place without touching it. */
#include "server/http/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct srv_tls {
    char           *cert, *key;     /* file names */
    pthread_mutex_t lock;           /* guards what follows */
    SSL_CTX        *ctx;
};

/* Forward secrecy and authenticated encryption alone; TLS 1.3 has no others. */
static const char ciphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

/* OpenSSL's error, in the words of the entry that says most. */
static weir_code refuse(const char *file, const char *what, weir_error *err)
{
    unsigned long code = ERR_peek_last_error();
    const char   *why = ERR_GET_LIB(code) == ERR_LIB_SYS ? strerror(ERR_GET_REASON(code))
                                                         : ERR_reason_error_string(code);
    for (unsigned long c; (c = ERR_get_error());)
        if (ERR_GET_LIB(c) == ERR_LIB_SYS)
            why = strerror(ERR_GET_REASON(c));
    return weir_fail(err, WEIR_EINVAL, "%s: %s%s%s", file, what, why ? ": " : "", why ? why : "");
}

/* Without this OpenSSL would ask at the terminal. */
static int no_password(char *buf, int size, int writing, void *ctx)
{
    (void)buf, (void)size, (void)writing;
    *(bool *)ctx = true;
    return -1;
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned in_len, void *ctx)
{
    static const unsigned char http1[] = "\x08http/1.1";
    (void)ssl, (void)ctx;
    int found = SSL_select_next_proto((unsigned char **)out, out_len, http1, sizeof http1 - 1, in,
                                      in_len);
    return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static SSL_CTX *new_context(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx)
        return NULL;
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                             SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
    /* Idle connections cost less; what was not written may be elsewhere in memory, and more of it
     * there, when it is tried again. */
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                          SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(ctx, ciphers) != 1) {
        SSL_CTX_free(ctx);
        ctx = NULL;
    }
    return ctx;
}

static weir_code load(const srv_tls *t, SSL_CTX **out, weir_error *err)
{
    bool      locked = false;
    SSL_CTX  *ctx = new_context();
    weir_code rc = WEIR_OK;
    *out = NULL;
    if (!ctx)
        return refuse("TLS", "cannot be set up", err);
    SSL_CTX_set_default_passwd_cb(ctx, no_password);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, &locked);
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(ctx, t->cert) != 1)
        rc = refuse(t->cert, "no certificate in PEM", err);
    else if (SSL_CTX_use_PrivateKey_file(ctx, t->key, SSL_FILETYPE_PEM) != 1) {
        if (locked)
            rc = weir_fail(err, WEIR_EINVAL, "%s: the key has a password; weir needs one without",
                           t->key);
        else if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH)
            rc = weir_fail(err, WEIR_EINVAL, "%s: is not the key of the certificate %s", t->key,
                           t->cert);
        else
            rc = refuse(t->key, "no private key in PEM", err);
    } else if (SSL_CTX_check_private_key(ctx) != 1) {
        rc = weir_fail(err, WEIR_EINVAL, "%s: is not the key of the certificate %s", t->key,
                       t->cert);
    }
    ERR_clear_error();
    SSL_CTX_set_default_passwd_cb_userdata(ctx, NULL);
    if (rc)
        SSL_CTX_free(ctx);
    else
        *out = ctx;
    return rc;
}

weir_code srv_tls_create(srv_tls **out, const char *cert, const char *key, weir_error *err)
{
    *out = NULL;
    srv_tls *t = calloc(1, sizeof *t);
    if (!t)
        return weir_fail(err, WEIR_ENOMEM, "TLS: out of memory");
    pthread_mutex_init(&t->lock, NULL);
    t->cert = strdup(cert);
    t->key = strdup(key);
    weir_code rc = t->cert && t->key ? load(t, &t->ctx, err)
                                     : weir_fail(err, WEIR_ENOMEM, "TLS: out of memory");
    if (rc)
        srv_tls_destroy(t);
    else
        *out = t;
    return rc;
}

weir_code srv_tls_reload(srv_tls *t, weir_error *err)
{
    SSL_CTX  *ctx, *old;
    weir_code rc = load(t, &ctx, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&t->lock);
    old = t->ctx;
    t->ctx = ctx;
    pthread_mutex_unlock(&t->lock);
    SSL_CTX_free(old);
    return WEIR_OK;
}

SSL *srv_tls_accept(srv_tls *t, int fd)
{
    pthread_mutex_lock(&t->lock);
    SSL *ssl = SSL_new(t->ctx);
    pthread_mutex_unlock(&t->lock);
    if (!ssl || SSL_set_fd(ssl, fd) != 1) {
        SSL_free(ssl);
        return NULL;
    }
    SSL_set_accept_state(ssl);
    return ssl;
}

void srv_tls_destroy(srv_tls *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->ctx);
    pthread_mutex_destroy(&t->lock);
    free(t->cert);
    free(t->key);
    free(t);
}
