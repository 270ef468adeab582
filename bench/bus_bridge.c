/* bus_bridge.c - the round trip of a request between two clients of the TCP bridge: at one server,
 * and across two servers on one Redis. Each server is a process of its own. */
#include "http.h"
#include "redis.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { RATE = 200, MAX_FRAME = 1000 };      /* requests a second; bytes */

/* ---- a client ---- */

static int dial(int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to))
        die("connect to the bridge", NULL);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void put_frame(int fd, const char *json)
{
    char   frame[MAX_FRAME];
    size_t len = strlen(json);
    for (int i = 0; i < 4; i++)
        frame[i] = (char)(len >> (24 - 8 * i));
    memcpy(frame + 4, json, len);
    if (send(fd, frame, len + 4, MSG_NOSIGNAL) != (ssize_t)len + 4)
        die("send to the bridge", NULL);
}

/* False: the connection is closed. */
static bool get_frame(int fd, char text[MAX_FRAME])
{
    unsigned char head[4];
    if (recv(fd, head, 4, MSG_WAITALL) != 4)
        return false;
    size_t len = (size_t)head[2] << 8 | head[3];
    if (len >= MAX_FRAME || recv(fd, text, len, MSG_WAITALL) != (ssize_t)len)
        return false;
    text[len] = '\0';
    return true;
}

static void *answer_all(void *ctx)
{
    int  fd = *(int *)ctx;
    char text[MAX_FRAME], reply[64], json[200];
    while (get_frame(fd, text)) {
        char *at = strstr(text, "\"replyAddress\":\"");
        if (!at || sscanf(at, "\"replyAddress\":\"%63[^\"]", reply) != 1)
            continue;
        snprintf(json, sizeof json, "{\"type\":\"send\",\"address\":\"%s\",\"body\":%s}", reply,
                 BENCH_RESULT);
        put_frame(fd, json);
    }
    return NULL;
}

/* Seconds of one request; 0: the address is not known there yet. */
static double round_trip(int fd)
{
    char   text[MAX_FRAME];
    double began = seconds();
    put_frame(fd, "{\"type\":\"send\",\"address\":\"bench\",\"replyAddress\":\"r\",\"body\":1}");
    if (!get_frame(fd, text))
        die("the bridge has closed the connection", NULL);
    return strstr(text, "\"err\"") ? 0 : seconds() - began;
}

static void pause_until(double when)
{
    double left = when - seconds();
    if (left > 0)
        nanosleep(&(struct timespec){ .tv_nsec = (long)(left * 1e9) }, NULL);
}

/* Milliseconds from a client of the bridge at port `from` to one at `to` and back. */
static void measure(int from, int to, double *p50, double *p99)
{
    size_t    n = scaled(1000);
    double   *took = malloc(n * sizeof *took), next;
    int       asks = dial(from), answers = dial(to);
    pthread_t t;
    if (!took || pthread_create(&t, NULL, answer_all, &answers))
        die("no memory", NULL);
    put_frame(answers, "{\"type\":\"register\",\"address\":\"bench\"}");
    while (!round_trip(asks))
        pause_until(seconds() + 0.001);
    next = seconds();
    for (size_t i = 0; i < n; i++) {
        pause_until(next += 1.0 / RATE);
        took[i] = round_trip(asks) * 1000;
    }
    shutdown(answers, SHUT_RDWR);
    pthread_join(t, NULL);
    close(answers);
    close(asks);
    sort_samples(took, n);
    *p50 = percentile(took, n, 50);
    *p99 = percentile(took, n, 99);
    free(took);
}

/* ---- the measure ---- */

void bus_bridge(void)
{
    char   url[1000];
    double p50, p99;
    rig   *r = start_redis(false);
    rig_url(r, "redis+unix", NULL, url, sizeof url);
    server a = start_bus_server(url, NULL), b = start_bus_server(url, NULL);
    measure(a.bus_port, a.bus_port, &p50, &p99);
    report("bus, round trip between two bridge clients, 200/s, p50", p50, "ms", false, 0.3);
    report("bus, round trip between two bridge clients, 200/s, p99", p99, "ms", false, 2);
    measure(a.bus_port, b.bus_port, &p50, &p99);
    report("bus, round trip across two servers on one Redis, 200/s, p50", p50, "ms", false, 1);
    report("bus, round trip across two servers on one Redis, 200/s, p99", p99, "ms", false, 5);
    stop_server(&a);
    stop_server(&b);
    rig_free(r);
}
