/* tls.c - TLS on connections. */
#include "server/inner.h"

bool srv_tls_accept(srv_conn *c)
{
    (void)c;
    return true;
}
