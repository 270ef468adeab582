/* proxy.h - a bad line to a server: passes bytes on between a port of 127.0.0.1 and the server's
 * socket (Redis) or another port, and cuts connections in mid-reply or mid-request, or holds
 * everything back. */
#ifndef WEIR_TEST_PROXY_H
#define WEIR_TEST_PROXY_H

#include "support/redis_rig.h"

typedef struct proxy proxy;

/* NULL: could not. Randomness comes from the seed. */
proxy *proxy_start(const rig *server, uint64_t seed);
proxy *proxy_start_to(int port, uint64_t seed);
void   proxy_turn(proxy *p, int port);      /* connections from now on go to another port */
void   proxy_stop(proxy *p);                /* NULL is fine */
int    proxy_port(const proxy *p);
/* From now on connections (those that are open, too) are cut after a random number of bytes, about
 * so many, of replies or of requests. 0: no more cuts. */
void   proxy_cut_after(proxy *p, uint32_t bytes);
/* Cut, once, the connection on which the server sends this text, just behind it. The text is
 * borrowed, and must come in one piece. */
void   proxy_cut_behind(proxy *p, const char *text);
void   proxy_cut_all(proxy *p);             /* those that are open, now */
void   proxy_hold(proxy *p, bool hold);     /* pass nothing on, and lose nothing */
uint64_t proxy_cuts(proxy *p);              /* so far, by proxy_cut_after() */

#endif
