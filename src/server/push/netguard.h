/* netguard.h - is this an address out in the world, or one of a network that only this machine can
 * reach? A caller that registers a URL must not be able to have the server talk to its neighbours.
 * Pure functions. */
#ifndef WEIR_SERVER_NETGUARD_H
#define WEIR_SERVER_NETGUARD_H

#include <stdbool.h>
#include <sys/socket.h>

/* The kind of an address that is not public: "loopback", "private", "link-local" ...; NULL: it is
 * public. An address that is neither IPv4 nor IPv6 is "unknown". */
const char *srv_not_public(const struct sockaddr *addr);

/* The same for the host of a URL, "127.0.0.1", "[::1]" or "localhost", without looking it up. Any
 * name that does not certainly mean this machine passes; srv_not_public() checks the address when
 * it is connected. */
const char *srv_host_not_public(const char *host);

#endif
