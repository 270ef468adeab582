/* http_client.c - see http.h. */
#include "http.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

static void give_up(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

/* ---- the server ---- */

static int port_of(const char *address)
{
    return address ? atoi(strrchr(address, ':') + 1) : 0;
}

static void serve(const char *url, const srv_options *opt, int port_pipe)
{
    weir_error  err;
    weir_queue *q;
    srv_server *s;
    sigset_t    set;
    int         got;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (weir_open(&q, url, NULL, &err) || srv_start(&s, q, opt, &err))
        die("serve", &err);
    int ports[] = { port_of(srv_address(s)), port_of(opt->bus.listen ? srv_bus_address(s) : NULL) };
    if (write(port_pipe, ports, sizeof ports) != sizeof ports)
        _exit(1);
    sigwait(&set, &got);
    srv_stop(s);
    srv_destroy(s);
    weir_close(q);
    _exit(0);
}

static server start(const char *url, const srv_options *opt)
{
    int    port_pipe[2], ports[2];
    server s = { 0 };
    fflush(NULL);
    if (pipe(port_pipe) || (s.pid = fork()) < 0)
        give_up("no process for the server");
    if (s.pid == 0)
        serve(url, opt, port_pipe[1]);
    close(port_pipe[1]);
    if (read(port_pipe[0], ports, sizeof ports) != sizeof ports)
        give_up("the server did not start");
    close(port_pipe[0]);
    s.port = ports[0];
    s.bus_port = ports[1];
    return s;
}

server start_server(const char *url)
{
    return start(url, &(srv_options){ .listen = "127.0.0.1:0" });
}

server start_bus_server(const char *url, const srv_workqueue *q)
{
    return start(url, &(srv_options){ .listen = "127.0.0.1:0",
                 .bus = { .listen = "127.0.0.1:0", .workqueues = q, .n_workqueues = q != NULL } });
}

void stop_server(const server *s)
{
    kill(s->pid, SIGTERM);
    waitpid(s->pid, NULL, 0);
}

double cpu_seconds(pid_t pid)
{
    char          path[64], text[1024];
    unsigned long user = 0, sys = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f || !fgets(text, sizeof text, f) ||
        sscanf(strrchr(text, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
               &user, &sys) != 2)
        give_up("no /proc");
    fclose(f);
    return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}

/* ---- a connection ---- */

void connect_to(client *c, int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int one = 1;
    *c = (client){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .cap = 1 << 16 };
    c->in = malloc(c->cap);
    if (!c->in || c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to))
        give_up("cannot connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

void disconnect(client *c)
{
    close(c->fd);
    free(c->in);
}

static void send_all(client *c, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = send(c->fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            give_up("the server hung up");
        bytes += n;
        len -= (size_t)n;
    }
}

/* Read once. True: the answer is there, to its end. */
static bool read_more(client *c)
{
    if (c->cap - c->len < 4096) {
        c->in = realloc(c->in, c->cap *= 2);
        if (!c->in)
            give_up("out of memory");
    }
    ssize_t n = recv(c->fd, c->in + c->len, c->cap - c->len - 1, 0);
    if (n <= 0)
        give_up("the server hung up");
    c->len += (size_t)n;
    c->in[c->len] = '\0';
    char *end = strstr(c->in, "\r\n\r\n");
    if (!end)
        return false;
    c->body = end + 4;
    const char *length = strcasestr(c->in, "\r\nContent-Length:");
    size_t want = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
    return c->len >= (size_t)(c->body - c->in) + want;
}

static void check_status(const client *c, int status)
{
    if (atoi(c->in + 9) != status) {
        fprintf(stderr, "bench: status %d wanted: %.500s\n", status, c->in);
        exit(1);
    }
}

void ask(client *c, int status, const char *request, size_t len)
{
    send_all(c, request, len);
    c->len = 0;
    while (!read_more(c))
        ;
    check_status(c, status);
}

size_t make_request(char **out, const char *method, const char *target, const char *body)
{
    int n = body ? asprintf(out, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                            "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                            method, target, strlen(body), body)
                 : asprintf(out, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", method, target);
    if (n < 0)
        give_up("out of memory");
    return (size_t)n;
}

double hammer(int port, int conns, const char *request, size_t len, size_t n, int status)
{
    client *c = calloc((size_t)conns, sizeof *c);
    int     ep = epoll_create1(EPOLL_CLOEXEC);
    size_t  sent = 0, done = 0;
    for (int i = 0; i < conns; i++) {
        connect_to(&c[i], port);
        struct epoll_event e = { .events = EPOLLIN, .data.ptr = &c[i] };
        epoll_ctl(ep, EPOLL_CTL_ADD, c[i].fd, &e);
    }
    double began = seconds();
    for (int i = 0; i < conns && sent < n; i++, sent++)
        send_all(&c[i], request, len);
    while (done < n) {
        struct epoll_event e[64];
        int k = epoll_wait(ep, e, 64, -1);
        for (int i = 0; i < k; i++) {
            client *one = e[i].data.ptr;
            if (!read_more(one))
                continue;
            check_status(one, status);
            one->len = 0;
            done++;
            if (sent < n) {
                sent++;
                send_all(one, request, len);
            }
        }
    }
    double took = seconds() - began;
    for (int i = 0; i < conns; i++)
        disconnect(&c[i]);
    free(c);
    close(ep);
    return (double)n / took;
}
