/* test_tls.c - certificates: read, refused with a reason, and changed while connections go on. The
 * certificates are made here. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/http/tls.h"
#include "support/server_rig.h"

static char dir[TEMPDIR_MAX], cert[TEMPDIR_MAX + 16], key[TEMPDIR_MAX + 16];

static int setup(void **state)
{
    (void)state;
    assert_true(tempdir_make(dir));
    snprintf(cert, sizeof cert, "%s/cert.pem", dir);
    snprintf(key, sizeof key, "%s/key.pem", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tempdir_remove(dir);
    return 0;
}

/* A certificate that signs itself, with this number, and its key. */
static void make_pair(long number, const char *password)
{
    EVP_PKEY  *pkey = EVP_EC_gen("P-256");
    X509      *x = X509_new();
    X509_NAME *name = X509_get_subject_name(x);
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), number);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1,
                               0);
    X509_set_issuer_name(x, name);
    X509_set_pubkey(x, pkey);
    assert_true(X509_sign(x, pkey, EVP_sha256()) > 0);
    FILE *out = fopen(cert, "w");
    assert_true(PEM_write_X509(out, x));
    fclose(out);
    out = fopen(key, "w");
    assert_true(PEM_write_PrivateKey(out, pkey, password ? EVP_aes_128_cbc() : NULL, NULL, 0, NULL,
                                     (void *)(uintptr_t)password));
    fclose(out);
    X509_free(x);
    EVP_PKEY_free(pkey);
}

static void write_file(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    fputs(text, out);
    fclose(out);
}

static void refused(const char *part, const char *named)
{
    weir_error err = { 0 };
    srv_tls   *t = (srv_tls *)-1;
    assert_int_equal(srv_tls_create(&t, cert, key, &err), WEIR_EINVAL);
    assert_null(t);
    if (!strstr(err.msg, part) || !strstr(err.msg, named))
        fail_msg("%s", err.msg);
    assert_int_equal(ERR_peek_error(), 0);
}

static void files_that_are_wrong(void **state)
{
    (void)state;
    refused("No such file", cert);
    write_file(cert, "hello");
    write_file(key, "hello");
    refused("no certificate in PEM", cert);
    make_pair(1, NULL);
    write_file(key, "hello");
    refused("no private key in PEM", key);
    unlink(key);
    refused("No such file", key);

    make_pair(1, NULL);
    char other[TEMPDIR_MAX + 16];
    snprintf(other, sizeof other, "%s/old.pem", dir);
    assert_int_equal(rename(cert, other), 0);
    make_pair(2, NULL);
    assert_int_equal(rename(other, cert), 0);
    refused("is not the key of the certificate", key);
    make_pair(3, "secret");
    refused("the key has a password", key);
}

/* ---- a client ---- */

typedef struct client {
    SSL_CTX *ctx;
    SSL     *ssl;
    int      fd;
} client;

static bool client_begin(client *c, web *w, int max_version)
{
    c->ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(c->ctx, 0);
    SSL_CTX_set_min_proto_version(c->ctx, 0);
    SSL_CTX_set_max_proto_version(c->ctx, max_version);
    c->ssl = SSL_new(c->ctx);
    c->fd = web_connect(w);
    SSL_set_fd(c->ssl, c->fd);
    return SSL_connect(c->ssl) == 1;
}

static void client_end(client *c)
{
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);
    close(c->fd);
    ERR_clear_error();
}

static void client_get(client *c, const char *part)
{
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    char   answer[4000];
    size_t n = 0;
    assert_int_equal(SSL_write(c->ssl, request, sizeof request - 1), sizeof request - 1);
    for (answer[0] = 0; !strstr(answer, part); answer[n] = 0) {
        int got = SSL_read(c->ssl, answer + n, (int)(sizeof answer - 1 - n));
        if (got <= 0)
            fail_msg("closed after: %s", answer);
        n += (size_t)got;
    }
}

static long client_number(const client *c)
{
    X509 *x = SSL_get1_peer_certificate(c->ssl);
    long  n = ASN1_INTEGER_get(X509_get0_serialNumber(x));
    X509_free(x);
    return n;
}

static void https_is_served(void **state)
{
    (void)state;
    web    w;
    client c;
    make_pair(7, NULL);
    web_start(&w, RT_MEM, false, &(srv_options){ .tls_cert = cert, .tls_key = key });
    assert_int_equal(strncmp(srv_address(w.s), "https://127.0.0.1:", 18), 0);
    static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
    for (size_t i = 0; i < 2; i++) {
        assert_true(client_begin(&c, &w, versions[i]));
        assert_int_equal(SSL_version(c.ssl), versions[i]);
        client_get(&c, "{\"ok\":true}");
        client_get(&c, "Strict-Transport-Security: max-age=31536000\r\n");
        client_get(&c, "{\"ok\":true}");
        client_end(&c);
    }
    assert_false(client_begin(&c, &w, TLS1_1_VERSION));
    client_end(&c);
    int fd = web_connect(&w);               /* not TLS at all */
    web_send(fd, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    web_answer a = web_read(fd);
    assert_int_equal(a.status, 400);
    assert_non_null(strstr(a.body, "https://"));
    web_free(&a);
    close(fd);
    web_stop(&w);
}

static void a_new_certificate(void **state)
{
    (void)state;
    web        w;
    client     old, fresh;
    weir_error err = { 0 };
    make_pair(1, NULL);
    web_start(&w, RT_MEM, false, &(srv_options){ .tls_cert = cert, .tls_key = key });
    assert_true(client_begin(&old, &w, 0));
    assert_int_equal(client_number(&old), 1);
    client_get(&old, "ok");

    make_pair(2, NULL);
    assert_int_equal(srv_reload(w.s, &err), WEIR_OK);
    client_get(&old, "ok");
    assert_true(client_begin(&fresh, &w, 0));
    assert_int_equal(client_number(&fresh), 2);
    client_get(&fresh, "ok");
    client_end(&fresh);

    write_file(cert, "broken");
    assert_int_equal(srv_reload(w.s, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, cert));
    client_get(&old, "ok");
    assert_true(client_begin(&fresh, &w, 0));
    assert_int_equal(client_number(&fresh), 2);
    client_end(&fresh);
    client_end(&old);
    web_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_that_are_wrong, setup, teardown),
        cmocka_unit_test_setup_teardown(https_is_served, setup, teardown),
        cmocka_unit_test_setup_teardown(a_new_certificate, setup, teardown),
    };
    return cmocka_run_group_tests_name("tls", tests, NULL, NULL);
}
