/* tcp_client.h - a client of the TCP bridge of the event bus, over a raw socket. A test that waits
 * too long for it fails. */
#ifndef WEIR_TEST_TCP_CLIENT_H
#define WEIR_TEST_TCP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "weir/bus.h"

int  tcp_dial(const char *address);             /* "127.0.0.1:7341" */
void tcp_put_head(char *to, size_t len);        /* the length of a frame */
bool tcp_read(int fd, char *to, size_t n);      /* false: the server has closed the connection */
void tcp_tell(int fd, const char *json);
/* The next message, as text (free()); NULL: the server has closed the connection. */
char *tcp_next(int fd);
void tcp_expect(int fd, const char *json);
/* All that was sent before has been handled when this returns. */
void tcp_sync(int fd);
/* The next message without its reply address (free()), and that. */
char *tcp_next_request(int fd, char reply[WEIR_REPLY_ADDRESS]);

#endif
