/* keepalive.h - a connection ends when the host of its peer has vanished without closing it. */
#ifndef WEIR_BASE_KEEPALIVE_H
#define WEIR_BASE_KEEPALIVE_H

enum {
    WEIR__KEEPALIVE_IDLE_S = 15,        /* of silence, before the kernel sends a probe ... */
    WEIR__KEEPALIVE_EACH_S = 5,         /* ... and the next one */
    WEIR__KEEPALIVE_PROBES = 3,         /* without an answer, then the connection is lost */
    WEIR__KEEPALIVE_LOST_MS =
        1000 * (WEIR__KEEPALIVE_IDLE_S + WEIR__KEEPALIVE_PROBES * WEIR__KEEPALIVE_EACH_S)
};

/* Set the options of a TCP socket: the kernel probes a silent peer after idle_s seconds and each
 * each_s seconds. If neither data nor probes were acknowledged for lost_ms, it ends the connection
 * (ETIMEDOUT). */
void weir__keepalive_set(int fd, int idle_s, int each_s, unsigned lost_ms);

/* The same with the numbers above. */
void weir__keepalive_set_default(int fd);

#endif
