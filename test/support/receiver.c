/* receiver.c - see receiver.h. */
#include "support/receiver.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/runtime_fixture.h"

enum { MAX_HEAD = 16384 };

typedef struct conn {
    receiver *r;
    int       fd;
    SSL      *ssl;
} conn;

static ssize_t get(conn *c, char *to, size_t n)
{
    return c->ssl ? SSL_read(c->ssl, to, (int)n) : recv(c->fd, to, n, 0);
}

static void put(conn *c, const char *bytes, size_t n)
{
    while (n) {
        ssize_t done = c->ssl ? SSL_write(c->ssl, bytes, (int)n)
                              : send(c->fd, bytes, n, MSG_NOSIGNAL);
        if (done <= 0)
            return;
        bytes += done;
        n -= (size_t)done;
    }
}

const char *received_header(const received *in, const char *name)
{
    static _Thread_local char value[4096];
    size_t                    len = strlen(name);
    for (const char *line = in->head; (line = strstr(line, "\r\n")); ) {
        line += 2;
        if (strncasecmp(line, name, len) || line[len] != ':')
            continue;
        line += len + 1;
        line += strspn(line, " ");
        snprintf(value, sizeof value, "%.*s", (int)strcspn(line, "\r"), line);
        return value;
    }
    return NULL;
}

/* False: the client has gone. */
static bool read_request(conn *c, received *in)
{
    char  *head = calloc(1, MAX_HEAD + 1), *end = NULL;
    size_t n = 0;
    while (!(end = strstr(head, "\r\n\r\n"))) {
        ssize_t got = n < MAX_HEAD ? get(c, head + n, MAX_HEAD - n) : 0;
        if (got <= 0) {
            free(head);
            return false;
        }
        n += (size_t)got;
    }
    end += 4;
    in->head = strndup(head, (size_t)(end - head));
    const char *length = received_header(in, "Content-Length");
    in->len = length ? strtoul(length, NULL, 10) : 0;
    in->body = calloc(1, in->len + 1);
    size_t have = n - (size_t)(end - head);
    memcpy(in->body, end, have);
    free(head);
    while (have < in->len) {
        ssize_t got = get(c, in->body + have, in->len - have);
        if (got <= 0) {
            free(in->head);
            free(in->body);
            return false;
        }
        have += (size_t)got;
    }
    return true;
}

static bool answer(conn *c, const received *in, size_t n)
{
    receiver *r = c->r;
    reply     out = r->fn ? r->fn(in, n, r->ctx) : (reply){ 0 };
    pthread_mutex_lock(&r->lock);
    r->now--;
    pthread_mutex_unlock(&r->lock);
    if (out.hang_up)
        return false;
    char   head[1024];
    size_t len = out.body && !out.len ? strlen(out.body) : out.len;
    int    status = out.status ? out.status : 200;
    int    used = snprintf(head, sizeof head, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n%s\r\n",
                           status, len, out.headers ? out.headers : "");
    put(c, head, (size_t)used);
    put(c, out.body, len);
    return true;
}

static void *serve(void *arg)
{
    conn     *c = arg;
    receiver *r = c->r;
    received  in = { 0 };
    if (r->tls) {
        c->ssl = SSL_new(r->tls);
        SSL_set_fd(c->ssl, c->fd);
    }
    bool go = !c->ssl || SSL_accept(c->ssl) == 1;
    while (go && read_request(c, &in)) {
        pthread_mutex_lock(&r->lock);
        size_t n = r->n++;
        assert(n < RECEIVER_MAX_KEPT);
        r->kept[n] = in;
        if (++r->now > r->most)
            r->most = r->now;
        pthread_mutex_unlock(&r->lock);
        go = answer(c, &in, n);
    }
    shutdown(c->fd, SHUT_RDWR);
    SSL_free(c->ssl);
    free(c);
    return NULL;
}

static void *listening(void *arg)
{
    receiver *r = arg;
    for (;;) {
        int fd = accept(r->fd, NULL, NULL);
        if (fd < 0)
            return NULL;
        pthread_mutex_lock(&r->lock);
        if (r->stopping || r->n_conns == RECEIVER_MAX_CONNS) {
            close(fd);
        } else {
            conn *c = calloc(1, sizeof *c);
            *c = (conn){ .r = r, .fd = fd };
            r->conn[r->n_conns] = fd;
            pthread_create(&r->conn_thread[r->n_conns++], NULL, serve, c);
        }
        pthread_mutex_unlock(&r->lock);
    }
}

static void start(receiver *r, int port, void *tls, receiver_fn *fn, void *ctx)
{
    int one = 1;
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    memset(r, 0, sizeof *r);
    r->fn = fn;
    r->ctx = ctx;
    r->tls = tls;
    pthread_mutex_init(&r->lock, NULL);
    r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(r->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    assert_int_equal(bind(r->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(r->fd, 64), 0);
    getsockname(r->fd, (struct sockaddr *)&at, &len);
    r->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&r->thread, NULL, listening, r), 0);
}

void receiver_start(receiver *r, int port, receiver_fn *fn, void *ctx)
{
    start(r, port, NULL, fn, ctx);
}

void receiver_start_tls(receiver *r, receiver_fn *fn, void *ctx)
{
    SSL_CTX   *tls = SSL_CTX_new(TLS_server_method());
    EVP_PKEY  *key = EVP_EC_gen("P-256");
    X509      *cert = X509_new();
    X509_NAME *name = X509_get_subject_name(cert);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"127.0.0.1", -1, -1,
                               0);
    X509_set_issuer_name(cert, name);
    X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    X509_sign(cert, key, EVP_sha256());
    assert_int_equal(SSL_CTX_use_certificate(tls, cert), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(tls, key), 1);
    X509_free(cert);
    EVP_PKEY_free(key);
    start(r, 0, tls, fn, ctx);
}

void receiver_stop(receiver *r)
{
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    for (size_t i = 0; i < r->n_conns; i++)
        shutdown(r->conn[i], SHUT_RDWR);
    pthread_mutex_unlock(&r->lock);
    shutdown(r->fd, SHUT_RDWR);
    pthread_join(r->thread, NULL);
    close(r->fd);
    for (size_t i = 0; i < r->n_conns; i++) {
        pthread_join(r->conn_thread[i], NULL);
        close(r->conn[i]);
    }
    for (size_t i = 0; i < r->n; i++) {
        free(r->kept[i].head);
        free(r->kept[i].body);
    }
    SSL_CTX_free(r->tls);
    pthread_mutex_destroy(&r->lock);
    memset(r, 0, sizeof *r);
}

static size_t look(receiver *r, const size_t *what)
{
    pthread_mutex_lock(&r->lock);
    size_t n = *what;
    pthread_mutex_unlock(&r->lock);
    return n;
}

size_t receiver_count(receiver *r)
{
    return look(r, &r->n);
}

size_t receiver_conns(receiver *r)
{
    return look(r, &r->n_conns);
}

size_t receiver_most(receiver *r)
{
    return look(r, &r->most);
}
