/* bus_load.c - the event bus under load, over its TCP bridge: requests, work queues, listeners,
 * idle clients. The server is a process of its own; one thread plays all clients. */
#include "http.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <arpa/inet.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { IN_FLIGHT = 64, PROCESSORS = 8, REGISTRATIONS = 8, LISTENERS = 100, IDLE = 5000, HEAD = 4 };

/* ---- clients ---- */

typedef struct peer peer;
struct peer {
    client c;
    char  *out;                         /* frames to be sent, with room for more */
    size_t out_len, out_cap;
    void (*frame)(peer *p, const char *json, size_t len);
    struct load *load;
};

/* What the clients of one measure share. */
typedef struct load {
    int    ep;
    size_t left, done;                  /* to be sent; answered or received */
    char  *request;                     /* JSON */
} load;

static void put(peer *p, const char *json, size_t len)
{
    if (p->out_cap - p->out_len < len + HEAD) {
        p->out_cap = 2 * p->out_cap + len + HEAD;
        p->out = realloc(p->out, p->out_cap);
        if (!p->out)
            die("no memory", NULL);
    }
    for (int i = 0; i < HEAD; i++)
        p->out[p->out_len++] = (char)(len >> (24 - 8 * i));
    memcpy(p->out + p->out_len, json, len);
    p->out_len += len;
}

static void flush(peer *p)
{
    for (size_t at = 0; at < p->out_len;) {
        ssize_t n = send(p->c.fd, p->out + at, p->out_len - at, MSG_NOSIGNAL);
        if (n <= 0)
            die("the server hung up", NULL);
        at += (size_t)n;
    }
    p->out_len = 0;
}

/* Read once and hand on whole frames. */
static void receive(peer *p)
{
    client *c = &p->c;
    ssize_t n = recv(c->fd, c->in + c->len, c->cap - c->len, 0);
    size_t  at = 0;
    if (n <= 0)
        die("the server hung up", NULL);
    c->len += (size_t)n;
    while (c->len - at >= HEAD) {
        const unsigned char *head = (unsigned char *)c->in + at;
        size_t               len = (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
        if (c->len - at < len + HEAD)
            break;
        p->frame(p, c->in + at + HEAD, len);
        at += len + HEAD;
    }
    memmove(c->in, c->in + at, c->len - at);
    c->len -= at;
}

static void meet(peer *p, load *l, int port, void (*frame)(peer *p, const char *json, size_t len))
{
    *p = (peer){ .frame = frame, .load = l };
    connect_to(&p->c, port);
    epoll_ctl(l->ep, EPOLL_CTL_ADD, p->c.fd,
              &(struct epoll_event){ .events = EPOLLIN, .data.ptr = p });
}

static void part(peer *p)
{
    disconnect(&p->c);
    free(p->out);
}

/* Until so many are done. */
static void play(load *l, size_t done)
{
    struct epoll_event e[64];
    while (l->done < done) {
        int n = epoll_wait(l->ep, e, 64, -1);
        for (int i = 0; i < n; i++)
            receive(e[i].data.ptr);
        for (int i = 0; i < n; i++)
            flush(e[i].data.ptr);
    }
}

/* ---- what clients do ---- */

static void register_at(peer *p, const char *address)
{
    char json[200];
    put(p, json, (size_t)sprintf(json, "{\"type\":\"register\",\"address\":\"%s\"}", address));
}

/* Its request was answered: the next one. */
static void answered(peer *p, const char *json, size_t len)
{
    load *l = p->load;
    if (memmem(json, len, "\"err\"", 5))
        die(json, NULL);
    l->done++;
    if (l->left) {
        l->left--;
        put(p, l->request, strlen(l->request));
    }
}

static void answer(peer *p, const char *json, size_t len)
{
    static const char key[] = "\"replyAddress\":\"";
    const char *at = memmem(json, len, key, sizeof key - 1), *end;
    char        reply[200];
    if (!at)
        return;
    at += sizeof key - 1;
    end = memchr(at, '"', len - (size_t)(at - json));
    put(p, reply, (size_t)snprintf(reply, sizeof reply, "{\"type\":\"send\",\"address\":\"%.*s\","
                                   "\"body\":" BENCH_RESULT "}", (int)(end - at), at));
}

static void count(peer *p, const char *json, size_t len)
{
    (void)json;
    (void)len;
    p->load->done++;
}

/* The server has done all that this client has asked for so far. */
static void sync_with(peer *p)
{
    void (*frame)(peer *, const char *, size_t) = p->frame;
    size_t before = p->load->done;
    p->frame = count;
    put(p, "{\"type\":\"ping\"}", 15);
    flush(p);
    while (p->load->done == before)
        receive(p);
    p->load->done = before;
    p->frame = frame;
}

/* Requests a second, IN_FLIGHT of them at a time. */
static double ask_for(peer *asker, size_t n)
{
    load  *l = asker->load;
    double began = seconds();
    l->done = 0;
    l->left = n - IN_FLIGHT;
    for (int i = 0; i < IN_FLIGHT; i++)
        put(asker, l->request, strlen(l->request));
    flush(asker);
    play(l, n);
    return (double)n / (seconds() - began);
}

static char *a_request(const char *address, const char *body)
{
    char *json;
    if (asprintf(&json, "{\"type\":\"send\",\"address\":\"%s\",\"replyAddress\":\"r\",\"body\":%s}",
                 address, body) < 0)
        die("no memory", NULL);
    return json;
}

/* ---- the bare echo ---- */

static void echo_frames(struct bufferevent *bev, void *ctx)
{
    struct evbuffer *in = bufferevent_get_input(bev);
    unsigned char    head[HEAD];
    (void)ctx;
    while (evbuffer_copyout(in, head, HEAD) == HEAD) {
        size_t len = (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
        if (evbuffer_get_length(in) < len + HEAD)
            break;
        evbuffer_remove_buffer(in, bufferevent_get_output(bev), len + HEAD);
    }
}

static void hung_up(struct bufferevent *bev, short what, void *ctx)
{
    (void)what;
    (void)ctx;
    bufferevent_free(bev);
}

static void accept_echo(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *a, int len,
                        void *ctx)
{
    struct bufferevent *bev = bufferevent_socket_new(ctx, fd, BEV_OPT_CLOSE_ON_FREE);
    (void)l;
    (void)a;
    (void)len;
    bufferevent_setcb(bev, echo_frames, NULL, hung_up, NULL);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
}

static server start_echo(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          len = sizeof a;
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    fflush(NULL);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) || listen(fd, 64) ||
        getsockname(fd, (struct sockaddr *)&a, &len))
        die("echo", NULL);
    server s = { .pid = fork(), .port = ntohs(a.sin_port) };
    if (s.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct event_base *base = event_base_new();
        evconnlistener_new(base, accept_echo, base, 0, -1, fd);
        event_base_dispatch(base);
        _exit(0);
    }
    close(fd);
    return s;
}

static void echoed(peer *p, const char *json, size_t len)
{
    load *l = p->load;
    l->done++;
    if (l->left) {
        l->left--;
        put(p, json, len);
    }
}

/* Pairs of frames a second through an echo, on two connections. */
static double echo_rate(size_t n)
{
    server s = start_echo();
    load   l = { .ep = epoll_create1(EPOLL_CLOEXEC), .left = 2 * (n - IN_FLIGHT) };
    char  *frame[] = { a_request("bench", BENCH_RESULT), a_request("__weir.reply.12345", "1") };
    peer   p[2];
    double began = seconds();
    for (int i = 0; i < 2; i++) {
        meet(&p[i], &l, s.port, echoed);
        for (int k = 0; k < IN_FLIGHT; k++)
            put(&p[i], frame[i], strlen(frame[i]));
        flush(&p[i]);
    }
    play(&l, 2 * n);
    double rate = (double)n / (seconds() - began);
    for (int i = 0; i < 2; i++) {
        part(&p[i]);
        free(frame[i]);
    }
    close(l.ep);
    kill(s.pid, SIGKILL);
    waitpid(s.pid, NULL, 0);
    return rate;
}

/* ---- requests ---- */

static double request_rate(size_t n)
{
    server s = start_bus_server("mem:", NULL);
    load   l = { .ep = epoll_create1(EPOLL_CLOEXEC), .request = a_request("bench", BENCH_RESULT) };
    peer   asks, answers;
    meet(&asks, &l, s.bus_port, answered);
    meet(&answers, &l, s.bus_port, answer);
    register_at(&answers, "bench");
    sync_with(&answers);
    double rate = ask_for(&asks, n);
    part(&asks);
    part(&answers);
    close(l.ep);
    free(l.request);
    stop_server(&s);
    return rate;
}

/* ---- work queues ---- */

/* Messages a second through a work queue, with one client that has all the processors, each of
 * which has `registrations`: so many messages at a time. */
static double work_rate(const char *url, const srv_workqueue *q, int registrations,
                        const char *body, size_t n)
{
    server s = start_bus_server(url, q);
    load   l = { .ep = epoll_create1(EPOLL_CLOEXEC), .request = a_request(q->address, body) };
    peer   asks, works;
    meet(&works, &l, s.bus_port, answer);
    for (int i = 0; i < PROCESSORS; i++) {
        char name[20], json[200];
        snprintf(name, sizeof name, "processor%d", i);
        register_at(&works, name);
        snprintf(json, sizeof json, "{\"type\":\"send\",\"address\":\"%s.register\",\"body\":"
                 "{\"processor\":\"%s\"}}", q->address, name);
        for (int k = 0; k < registrations; k++)
            put(&works, json, strlen(json));
    }
    sync_with(&works);
    meet(&asks, &l, s.bus_port, answered);
    double rate = ask_for(&asks, n);
    part(&asks);
    part(&works);
    close(l.ep);
    free(l.request);
    stop_server(&s);
    return rate;
}

void bus_load(void)
{
    static const srv_workqueue q = { .address = "work" };
    double ratio[MAX_ROUNDS], work[MAX_ROUNDS], one[MAX_ROUNDS], echo = 0, requests = 0,
           messages = 0;
    for (int i = 0; i < rounds; i++) {
        echo = echo_rate(scaled(500000));
        requests = request_rate(scaled(200000));
        messages = work_rate("mem:", &q, REGISTRATIONS, BENCH_RESULT, scaled(100000));
        ratio[i] = requests / echo;
        work[i] = messages / requests;
        one[i] = work_rate("mem:", &q, 1, BENCH_RESULT, scaled(100000)) / requests;
    }
    note("bus, requests between bridge clients, 64 in flight, over an echo", requests, echo);
    report("bus, requests between bridge clients, 64 in flight, over an echo",
           middle(ratio, rounds), "x", true, 0.4);
    note("bus, work queue in memory, 8 processors, over these", messages, requests);
    report("bus, work queue in memory, 8 processors, over these", middle(work, rounds), "x", true,
           0.5);
    report_alone("  with one registration each: 8 messages at a time", middle(one, rounds), "x");
}

void bus_persistent(void)
{
    static const srv_workqueue q = { .address = "work", .persist = true };
    double ratio[MAX_ROUNDS], messages = 0, jobs = 0;
    for (int i = 0; i < rounds; i++) {
        jobs = http_bulk_rate(scaled(100000));
        messages = work_rate(fresh_store("os"), &q, 1, BENCH_DATA, scaled(50000));
        ratio[i] = messages / jobs;
    }
    note("bus, persistent work queue, sqlite os, over HTTP bulks of 100", messages, jobs);
    report("bus, persistent work queue, sqlite os, over HTTP bulks of 100", middle(ratio, rounds),
           "x", true, 0.3);
}

/* ---- listeners ---- */

static double publish_rate(size_t n)
{
    static const char news[] = "{\"type\":\"publish\",\"address\":\"news\",\"body\":" BENCH_RESULT
                               "}";
    server s = start_bus_server("mem:", NULL);
    load   l = { .ep = epoll_create1(EPOLL_CLOEXEC) };
    peer   from, to[LISTENERS];
    for (int i = 0; i < LISTENERS; i++) {
        meet(&to[i], &l, s.bus_port, count);
        register_at(&to[i], "news");
        sync_with(&to[i]);
    }
    meet(&from, &l, s.bus_port, count);
    double began = seconds();
    for (size_t sent = 0; sent < n;) {
        for (; sent < n && sent * LISTENERS < l.done + IN_FLIGHT * LISTENERS; sent++)
            put(&from, news, sizeof news - 1);
        flush(&from);
        play(&l, sent * LISTENERS - IN_FLIGHT * LISTENERS / 2);
    }
    play(&l, n * LISTENERS);
    double rate = (double)(n * LISTENERS) / (seconds() - began);
    part(&from);
    for (int i = 0; i < LISTENERS; i++)
        part(&to[i]);
    close(l.ep);
    stop_server(&s);
    return rate;
}

void bus_publish(void)
{
    double rate[MAX_ROUNDS];
    for (int i = 0; i < rounds; i++)
        rate[i] = publish_rate(scaled(20000));
    report("bus, publish to 100 bridge listeners, deliveries", middle(rate, rounds) / 1000, "k/s",
           true, 200);
}

/* ---- idle clients ---- */

static double resident_of(pid_t pid)
{
    char path[64], line[200];
    long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return (double)kib / 1024;
}

void bus_idle(void)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    size_t n = scaled(IDLE);
    server s = start_bus_server(fresh_store("os"), NULL);
    load   l = { .ep = epoll_create1(EPOLL_CLOEXEC) };
    peer  *p = calloc(n, sizeof *p);
    double alone = resident_of(s.pid);
    for (size_t i = 0; p && i < n; i++) {
        char address[40];
        meet(&p[i], &l, s.bus_port, count);
        snprintf(address, sizeof address, "client.%zu", i);
        register_at(&p[i], address);
        sync_with(&p[i]);
    }
    double with = resident_of(s.pid);
    for (size_t i = 0; p && i < n; i++)
        part(&p[i]);
    free(p);
    close(l.ep);
    stop_server(&s);
    report_alone("  memory of the server without clients", alone, "MiB");
    report("bus, 5,000 idle bridge clients: memory of the server", with, "MiB", false, 64);
}
