/* tls.h - certificate and key of the server, which can be changed while it runs. */
#ifndef WEIR_SERVER_TLS_H
#define WEIR_SERVER_TLS_H

#include <openssl/ssl.h>
#include "weir/error.h"

typedef struct srv_tls srv_tls;

/* Read a certificate chain and its key (PEM). On success *out belongs to the caller:
 * srv_tls_destroy(). Errors: WEIR_EINVAL, which names the file and what is wrong. */
weir_code srv_tls_create(srv_tls **out, const char *cert, const char *key, weir_error *err);

/* Read them again. Connections there are keep what they began with; on failure, so do new ones. */
weir_code srv_tls_reload(srv_tls *t, weir_error *err);

/* The server's side of a new connection; SSL_free(), which leaves `fd` open. NULL: out of memory.
 * Any thread. */
SSL *srv_tls_accept(srv_tls *t, int fd);

void srv_tls_destroy(srv_tls *t);       /* NULL is fine */

#endif
