/* keepalive.c - see keepalive.h. */
#include "base/keepalive.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

void weir__keepalive_set(int fd, int idle_s, int each_s, unsigned lost_ms)
{
    int on = 1, probes = WEIR__KEEPALIVE_PROBES;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &each_s, sizeof each_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &lost_ms, sizeof lost_ms);
}

void weir__keepalive_set_default(int fd)
{
    weir__keepalive_set(fd, WEIR__KEEPALIVE_IDLE_S, WEIR__KEEPALIVE_EACH_S,
                        WEIR__KEEPALIVE_LOST_MS);
}
