/* tls.c - TLS on the connections of a net (rediss): who the server must be, reading and writing.
 * The server's certificate is always verified, for the host of the URL or for its servername=. */
#include "store/redis/link/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

/* ---- a socket, as OpenSSL sees it ---- */

/* OpenSSL's own BIO writes with write(), which raises SIGPIPE when the server has gone. */

static int fd_of(BIO *b)
{
    return ((const redis_node *)BIO_get_data(b))->fd;
}

static bool should_retry(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static int bio_write(BIO *b, const char *from, int len)
{
    BIO_clear_retry_flags(b);
    ssize_t n = send(fd_of(b), from, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && should_retry())
        BIO_set_retry_write(b);
    return (int)n;
}

static int bio_read(BIO *b, char *to, int len)
{
    BIO_clear_retry_flags(b);
    ssize_t n = recv(fd_of(b), to, (size_t)len, MSG_DONTWAIT);
    if (n < 0 && should_retry())
        BIO_set_retry_read(b);
    if (n == 0)
        BIO_set_flags(b, BIO_FLAGS_IN_EOF);
    return (int)n;
}

static long bio_ctrl(BIO *b, int what, long number, void *pointer)
{
    (void)number, (void)pointer;
    if (what == BIO_CTRL_EOF)
        return BIO_test_flags(b, BIO_FLAGS_IN_EOF) != 0;
    return what == BIO_CTRL_FLUSH;
}

static pthread_once_t method_once = PTHREAD_ONCE_INIT;
static BIO_METHOD    *method;

static void free_method(void)
{
    BIO_meth_free(method);
    method = NULL;
}

static void make_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weir");
    if (!m || !BIO_meth_set_write(m, bio_write) || !BIO_meth_set_read(m, bio_read) ||
        !BIO_meth_set_ctrl(m, bio_ctrl) || !OPENSSL_atexit(free_method)) {
        BIO_meth_free(m);
        return;
    }
    method = m;
}

/* ---- the context ---- */

static weir_code refuse_file(const char *option, const char *file, weir_error *err)
{
    unsigned long code = ERR_peek_error();
    const char   *why = ERR_GET_LIB(code) == ERR_LIB_SYS ? strerror(ERR_GET_REASON(code))
                                                         : ERR_reason_error_string(code);
    weir_fail(err, WEIR_EINVAL, "%s %s: %s", option, file, why ? why : "cannot be read");
    ERR_clear_error();
    return WEIR_EINVAL;
}

/* Without this OpenSSL would ask at the terminal. */
static int no_password(char *buf, int size, int writing, void *ctx)
{
    (void)buf, (void)size, (void)writing, (void)ctx;
    return -1;
}

static weir_code load_files(SSL_CTX *ctx, const redis_url *u, weir_error *err)
{
    if (*u->cacert && SSL_CTX_load_verify_file(ctx, u->cacert) != 1)
        return refuse_file("cacert", u->cacert, err);
    if (*u->cadir && SSL_CTX_load_verify_dir(ctx, u->cadir) != 1)
        return refuse_file("cadir", u->cadir, err);
    if (!*u->cacert && !*u->cadir)
        SSL_CTX_set_default_verify_paths(ctx);
    if (!*u->cert)
        return WEIR_OK;
    if (SSL_CTX_use_certificate_chain_file(ctx, u->cert) != 1)
        return refuse_file("cert", u->cert, err);
    if (SSL_CTX_use_PrivateKey_file(ctx, u->key, SSL_FILETYPE_PEM) != 1)
        return refuse_file("key", u->key, err);
    return WEIR_OK;
}

weir_code weir__tls_create(SSL_CTX **out, const redis_url *url, weir_error *err)
{
    pthread_once(&method_once, make_method);
    ERR_clear_error();
    SSL_CTX *ctx = method ? SSL_CTX_new(TLS_client_method()) : NULL;
    *out = NULL;
    if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1) {
        SSL_CTX_free(ctx);
        return weir_fail(err, WEIR_ENOMEM, "redis: no memory for TLS");
    }
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                             SSL_OP_IGNORE_UNEXPECTED_EOF);
    /* The next write may get the rest at another address, and with more bytes behind it. */
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_default_passwd_cb(ctx, no_password);
    weir_code rc = load_files(ctx, url, err);
    if (rc)
        SSL_CTX_free(ctx);
    else
        *out = ctx;
    return rc;
}

/* ---- the handshake ---- */

static const char *name_of(const redis_node *n)
{
    const redis_url *u = &n->net->url;
    return *u->servername ? u->servername : n->place.host;
}

static bool is_address(const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

static bool set_name(SSL *ssl, const char *name)
{
    if (is_address(name))
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set_tlsext_host_name(ssl, name) == 1 && SSL_set1_host(ssl, name) == 1;
}

bool weir__tls_begin(redis_node *n)
{
    n->tls_error = (weir_error){ 0 };
    n->ssl = SSL_new(n->net->tls);
    BIO *b = n->ssl ? BIO_new(method) : NULL;
    if (!b)
        return false;
    BIO_set_data(b, n);
    BIO_set_init(b, 1);
    SSL_set_bio(n->ssl, b, b);
    SSL_set_connect_state(n->ssl);
    return set_name(n->ssl, name_of(n));
}

/* The certificate is not accepted: why, and what to do about it. */
static void refuse_certificate(redis_node *n, long verdict)
{
    const char *why = X509_verify_cert_error_string(verdict);
    bool        name = verdict == X509_V_ERR_HOSTNAME_MISMATCH ||
                verdict == X509_V_ERR_IP_ADDRESS_MISMATCH;
    bool issuer = verdict == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
                  verdict == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
                  verdict == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
                  verdict == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE ||
                  verdict == X509_V_ERR_CERT_SIGNATURE_FAILURE;
    weir_fail(&n->tls_error, WEIR_EINVAL, "TLS: its certificate is refused: %s%s%.100s%s", why,
              name ? ": it is not for " : "", name ? name_of(n) : "",
              name     ? " (servername= names another)"
              : issuer ? ": name the CA that signed it with cacert=" : "");
}

/* Why OpenSSL failed, from its queue of errors. */
static void set_tls_error(redis_node *n)
{
    unsigned long code = ERR_peek_error();
    int           reason = ERR_GET_REASON(code);
    const char   *why = ERR_reason_error_string(code);
    long          verdict = SSL_get_verify_result(n->ssl);
    if (verdict != X509_V_OK && !SSL_is_init_finished(n->ssl))
        refuse_certificate(n, verdict);
    else if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_PACKET_LENGTH_TOO_LONG)
        weir_fail(&n->tls_error, WEIR_EINVAL, "it does not speak TLS (%s): is it a port without "
                                              "TLS?", why);
    else if (reason == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED ||
             (reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE && !*n->net->url.cert))
        weir_fail(&n->tls_error, WEIR_EINVAL, "TLS: %s: the server requires a client certificate: "
                                              "give cert= and key=", why);
    else
        weir_fail(&n->tls_error, WEIR_EUNAVAIL, "TLS: %s", why ? why : "connection lost");
    ERR_clear_error();
}

/* -1 with errno, or 0: the server has closed it. */
static ssize_t take_result(redis_node *n, int result)
{
    int error = errno;
    switch (SSL_get_error(n->ssl, result)) {
    case SSL_ERROR_WANT_WRITE:
        n->tls_writes = true;
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_WANT_READ:
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        ERR_clear_error();
        errno = error;
        return error ? -1 : 0;
    default:
        set_tls_error(n);
        errno = EPROTO;
        return -1;
    }
}

bool weir__tls_handshake(redis_node *n)
{
    n->tls_writes = false;
    ERR_clear_error();
    errno = 0;
    int done = SSL_do_handshake(n->ssl);
    if (done == 1)
        return true;
    ssize_t result = take_result(n, done);
    if (result == 0 || (errno != EAGAIN && errno != EPROTO))
        weir_fail(&n->tls_error, WEIR_EUNAVAIL, "connection lost in the TLS handshake: %s",
                  result ? strerror(errno) : "closed by the server");
    return false;
}

/* ---- reading and writing ---- */

ssize_t weir__tls_read(redis_node *n, void *to, size_t len, bool peek)
{
    n->tls_writes = false;
    ERR_clear_error();
    errno = 0;
    int got = peek ? SSL_peek(n->ssl, to, (int)len) : SSL_read(n->ssl, to, (int)len);
    return got > 0 ? got : take_result(n, got);
}

ssize_t weir__tls_write(redis_node *n, const void *from, size_t len)
{
    enum { MOST = 1 << 20 };
    n->tls_writes = false;
    ERR_clear_error();
    errno = 0;
    int wrote = SSL_write(n->ssl, from, len > MOST ? MOST : (int)len);
    if (wrote > 0)
        return wrote;
    ssize_t result = take_result(n, wrote);
    if (result == 0) {
        errno = EPIPE;
        result = -1;
    }
    return result;
}
