/* bus_client.h - a server with the TCP bridge, and what clients of that do often, on top of
 * tcp_client.h. */
#ifndef WEIR_TEST_BUS_CLIENT_H
#define WEIR_TEST_BUS_CLIENT_H

#include "support/server_rig.h"
#include "support/tcp_client.h"

/* web_start() with a bridge; `opt` may be NULL. */
void bus_start(web *w, const srv_options *opt);                     /* on mem: */
void bus_start_on(web *w, const char *url, const srv_options *opt);
int  bus_dial(web *w);

void bus_register(int fd, const char *address);
/* `reply` and `headers` (JSON) may be NULL. */
void bus_send(int fd, const char *address, const char *reply, const char *headers,
              const char *body);
json_t *bus_next(int fd);                       /* the next message (json_decref()) */
/* A request and the next message, which is its reply (json_decref()). */
json_t *bus_request(int fd, const char *address, const char *headers, const char *body);

#endif
