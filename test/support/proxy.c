/* proxy.c - a thread that passes bytes on, or does not: see proxy.h. */
#include "support/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MAX_LINES = 128, PART = 16384, LOOK_MS = 20 };

/* One direction of a connection. */
typedef struct flow {
    int     from, to;
    bool    replies;
    char    part[PART];
    size_t  at, len;            /* what was read and is not yet passed on */
    int64_t budget;             /* bytes until the cut; -1: none */
} flow;

typedef struct line {
    bool open;
    flow flow[2];               /* requests, replies */
} line;

struct proxy {
    const rig       *server;    /* NULL: it is at the port */
    _Atomic int      to;
    int              listener, port;
    pthread_t        thread;
    _Atomic bool     stop, hold, cut_all;
    _Atomic uint32_t cut_after;
    _Atomic uint64_t cuts;
    const char *_Atomic cut_behind;
    uint32_t         cutting;   /* cut_after, as the budgets were made */
    uint64_t         random;
    line             lines[MAX_LINES];
};

static uint64_t next_random(proxy *p)
{
    p->random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = p->random;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void set_budgets(proxy *p, line *l)
{
    l->flow[0].budget = l->flow[1].budget = -1;
    if (p->cutting)             /* mostly replies: that is where it hurts */
        l->flow[next_random(p) % 4 != 0].budget = (int64_t)(next_random(p) % (2 * p->cutting));
}

/* With or without a farewell. */
static void cut(line *l, bool rudely)
{
    struct linger now = { .l_onoff = 1 };
    if (rudely)
        setsockopt(l->flow[0].from, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(l->flow[0].from);
    close(l->flow[0].to);
    l->open = false;
}

static int connect_to_server(proxy *p)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    struct sockaddr_in port = { .sin_family = AF_INET, .sin_port = htons((uint16_t)p->to),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(p->server ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->server)
        snprintf(at.sun_path, sizeof at.sun_path, "%.*s", (int)sizeof at.sun_path - 1,
                 p->server->socket);
    if (fd >= 0 && (p->server ? connect(fd, (struct sockaddr *)&at, sizeof at)
                              : connect(fd, (struct sockaddr *)&port, sizeof port)) == 0) {
        fcntl(fd, F_SETFL, O_NONBLOCK);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

static void accept_one(proxy *p)
{
    int on = 1, client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0)
        return;
    int server = connect_to_server(p);
    for (size_t i = 0; server >= 0 && i < MAX_LINES; i++) {
        line *l = &p->lines[i];
        if (l->open)
            continue;
        setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        l->open = true;
        l->flow[0].from = l->flow[1].to = client;
        l->flow[0].to = l->flow[1].from = server;
        l->flow[0].len = l->flow[1].len = 0;
        l->flow[1].replies = true;
        set_budgets(p, l);
        return;
    }
    close(client);
    if (server >= 0)
        close(server);
}

static void look_for_text(proxy *p, flow *f)
{
    const char *text = atomic_load(&p->cut_behind);
    const char *found = text ? memmem(f->part, f->len, text, strlen(text)) : NULL;
    if (!found)
        return;
    f->budget = found - f->part + (int64_t)strlen(text);
    atomic_store(&p->cut_behind, NULL);
}

/* False: the connection is over. */
static bool pass_on(proxy *p, flow *f)
{
    if (!f->len) {
        ssize_t n = read(f->from, f->part, sizeof f->part);
        if (n <= 0)
            return n < 0 && (errno == EAGAIN || errno == EINTR);
        f->at = 0;
        f->len = (size_t)n;
        if (f->replies)
            look_for_text(p, f);
    }
    size_t  part = f->budget >= 0 && (size_t)f->budget < f->len ? (size_t)f->budget : f->len;
    ssize_t n = part ? send(f->to, f->part + f->at, part, MSG_NOSIGNAL) : 0;
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    f->at += (size_t)n;
    f->len -= (size_t)n;
    if (f->budget < 0)
        return true;
    f->budget -= n;
    if (f->budget > 0 || (!f->len && n))
        return true;
    atomic_fetch_add(&p->cuts, 1);
    return false;
}

static void look_at_orders(proxy *p)
{
    uint32_t wanted = atomic_load(&p->cut_after);
    bool     all = atomic_exchange(&p->cut_all, false), changed = wanted != p->cutting;
    p->cutting = wanted;
    for (size_t i = 0; i < MAX_LINES; i++) {
        if (p->lines[i].open && all)
            cut(&p->lines[i], false);
        if (p->lines[i].open && changed)
            set_budgets(p, &p->lines[i]);
    }
}

static size_t poll_set(proxy *p, struct pollfd *fds, flow **flows, line **lines)
{
    size_t n = 0;
    fds[n++] = (struct pollfd){ .fd = p->listener, .events = POLLIN };
    for (size_t i = 0; i < MAX_LINES; i++) {
        for (int k = 0; p->lines[i].open && !atomic_load(&p->hold) && k < 2; k++) {
            flow *f = &p->lines[i].flow[k];
            fds[n] = f->len ? (struct pollfd){ .fd = f->to, .events = POLLOUT }
                            : (struct pollfd){ .fd = f->from, .events = POLLIN };
            flows[n] = f;
            lines[n++] = &p->lines[i];
        }
    }
    return n;
}

static void *run(void *arg)
{
    proxy        *p = arg;
    struct pollfd fds[2 * MAX_LINES + 1];
    flow         *flows[2 * MAX_LINES + 1];
    line         *lines[2 * MAX_LINES + 1];
    while (!atomic_load(&p->stop)) {
        look_at_orders(p);
        size_t n = poll_set(p, fds, flows, lines);
        if (poll(fds, (nfds_t)n, LOOK_MS) <= 0)
            continue;
        for (size_t i = 1; i < n; i++)
            if (fds[i].revents && lines[i]->open && !pass_on(p, flows[i]))
                cut(lines[i], next_random(p) % 2);
        if (fds[0].revents)
            accept_one(p);
    }
    return NULL;
}

static proxy *start(const rig *server, int port, uint64_t seed)
{
    proxy *p = calloc(1, sizeof *p);
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    if (!p)
        return NULL;
    p->server = server;
    p->to = port;
    p->random = seed;
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p->listener < 0 || bind(p->listener, (struct sockaddr *)&at, sizeof at) ||
        listen(p->listener, MAX_LINES) || getsockname(p->listener, (struct sockaddr *)&at, &size) ||
        pthread_create(&p->thread, NULL, run, p)) {
        fprintf(stderr, "# proxy: %s\n", strerror(errno));
        if (p->listener >= 0)
            close(p->listener);
        free(p);
        return NULL;
    }
    p->port = ntohs(at.sin_port);
    return p;
}

proxy *proxy_start(const rig *server, uint64_t seed)
{
    return start(server, 0, seed);
}

proxy *proxy_start_to(int port, uint64_t seed)
{
    return start(NULL, port, seed);
}

void proxy_turn(proxy *p, int port)
{
    p->to = port;
}

void proxy_stop(proxy *p)
{
    if (!p)
        return;
    atomic_store(&p->stop, true);
    pthread_join(p->thread, NULL);
    for (size_t i = 0; i < MAX_LINES; i++)
        if (p->lines[i].open)
            cut(&p->lines[i], false);
    close(p->listener);
    free(p);
}

int proxy_port(const proxy *p)
{
    return p->port;
}

void proxy_cut_after(proxy *p, uint32_t bytes)
{
    atomic_store(&p->cut_after, bytes);
}

void proxy_cut_behind(proxy *p, const char *text)
{
    atomic_store(&p->cut_behind, text);
}

void proxy_cut_all(proxy *p)
{
    atomic_store(&p->cut_all, true);
}

void proxy_hold(proxy *p, bool hold)
{
    atomic_store(&p->hold, hold);
}

uint64_t proxy_cuts(proxy *p)
{
    return atomic_load(&p->cuts);
}
