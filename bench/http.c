/* http.c - the measures of the server: over HTTP on loopback, against the same in process, against
 * itself, and against beanstalkd. */
#include "http.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

enum { BULK = 100, PRODUCERS = 4, WORKERS = 4 };

static void rest(double ms)
{
    int64_t ns = (int64_t)(ms * 1e6);
    nanosleep(&(struct timespec){ ns / 1000000000, ns % 1000000000 }, NULL);
}

/* ---- lives in bulks of 100 on 8 connections ---- */

typedef struct web_lives {
    int           port;
    size_t        n;
    atomic_size_t added, done;
} web_lives;

static char *a_bulk(void)
{
    char *text = malloc(BULK * (strlen(BENCH_DATA) + 64)), *at = text;
    *at++ = '[';
    for (int i = 0; i < BULK; i++)
        at += sprintf(at, "%s{\"type\":\"bench\",\"data\":%s}", i ? "," : "", BENCH_DATA);
    strcpy(at, "]");
    return text;
}

static void *produce(void *ctx)
{
    web_lives *w = ctx;
    client     c;
    char      *body = a_bulk(), *request;
    size_t     len = make_request(&request, "POST", "/v1/jobs", body);
    connect_to(&c, w->port);
    while (atomic_fetch_add(&w->added, BULK) + BULK <= w->n)
        ask(&c, 201, request, len);
    disconnect(&c);
    free(request);
    free(body);
    return NULL;
}

#define TAKE "{\"types\":[\"bench\"],\"n\":100%s}"

/* The next request of a worker: end all that the last answer gave, and take more. */
static size_t end_all(const char *answer, char **request, size_t *n)
{
    char *body = malloc(BULK * 100 + 200), *at = body + sprintf(body, "{\"jobs\":[");
    const char *jobs = strstr(answer, "\"jobs\":[");
    for (*n = 0; jobs && (jobs = strstr(jobs, "{\"id\":")); ++*n) {
        const char *delivery = strstr(jobs, "\"delivery\":");
        at += sprintf(at, "%s{\"id\":%lu,\"delivery\":%lu,\"result\":" BENCH_RESULT "}",
                      *n ? "," : "", strtoul(jobs + 6, NULL, 10),
                      strtoul(delivery + 11, NULL, 10));
        jobs = delivery;
    }
    sprintf(at, "],\"take\":" TAKE "}", "");
    size_t len = make_request(request, "POST", "/v1/finish", body);
    free(body);
    return len;
}

static void *work(void *ctx)
{
    web_lives *w = ctx;
    client     c;
    char       take[100], *first, *next;
    snprintf(take, sizeof take, TAKE, ",\"wait\":\"200ms\"");
    size_t first_len = make_request(&first, "POST", "/v1/take", take), n;
    connect_to(&c, w->port);
    while (atomic_load(&w->done) < w->n) {
        ask(&c, 200, first, first_len);
        for (;;) {
            size_t len = end_all(c.body, &next, &n);
            if (n)
                ask(&c, 200, next, len);
            free(next);
            if (!n)
                break;
            atomic_fetch_add(&w->done, n);
        }
    }
    disconnect(&c);
    free(first);
    return NULL;
}

static double web_run(const char *url, size_t n, double *cpu_us)
{
    server    s = start_server(url);
    web_lives w = { .port = s.port, .n = n / BULK * BULK };
    pthread_t thread[PRODUCERS + WORKERS];
    double    cpu = cpu_seconds(s.pid), began = seconds();
    for (int i = 0; i < PRODUCERS + WORKERS; i++)
        pthread_create(&thread[i], NULL, i < PRODUCERS ? produce : work, &w);
    while (atomic_load(&w.done) < w.n)
        rest(1);
    double took = seconds() - began;
    *cpu_us = (cpu_seconds(s.pid) - cpu) * 1e6 / (double)w.n;
    for (int i = 0; i < PRODUCERS + WORKERS; i++)
        pthread_join(thread[i], NULL);
    stop_server(&s);
    return (double)w.n / took;
}

double http_bulk_rate(size_t n)
{
    double cpu;
    return web_run(fresh_store("os"), n, &cpu);
}

void http_bulk(void)
{
    double ratio[MAX_ROUNDS], web = 0, own = 0, cpu = 0;
    lives  l = { .n = scaled(100000), .producers = 8, .workers = 8, .bulk = BULK, .prefetch = 32 };
    for (int i = 0; i < rounds; i++) {
        l.url = fresh_store("os");
        own = run_lives(&l);
        web = web_run(fresh_store("os"), l.n, &cpu);
        ratio[i] = web / own;
    }
    note("HTTP, bulks of 100, over the same in process", web, own);
    report_alone("  CPU of the server a life", cpu, "us");
    report("HTTP, bulks of 100, sqlite os, over the same in process", middle(ratio, rounds), "x",
           true, 0.5);
}

/* ---- one job a request ---- */

void http_single(void)
{
    double ratio[MAX_ROUNDS], post = 0, get = 0, cpu_us = 0;
    char  *add, *health;
    size_t n = scaled(60000);
    size_t add_len = make_request(&add, "POST", "/v1/jobs",
                                  "{\"type\":\"bench\",\"data\":" BENCH_DATA "}");
    size_t health_len = make_request(&health, "GET", "/healthz", NULL);
    for (int i = 0; i < rounds; i++) {
        server s = start_server(fresh_store("os"));
        get = hammer(s.port, 32, health, health_len, scaled(100000), 200);
        double cpu = cpu_seconds(s.pid);
        post = hammer(s.port, 32, add, add_len, n, 201);
        cpu_us = (cpu_seconds(s.pid) - cpu) * 1e6 / (double)n;
        ratio[i] = post / get;
        stop_server(&s);
    }
    free(add);
    free(health);
    note("POST /v1/jobs over GET /healthz, 32 connections", post, get);
    report_alone("  CPU of the server a POST", cpu_us, "us");
    report("POST /v1/jobs, 32 connections, over GET /healthz", middle(ratio, rounds), "x", true,
           0.4);
}

/* ---- beanstalkd ---- */

/* Lives per second of beanstalkd, by the driver in WEIR_PEERS. */
static double run_beanstalkd(const char *options, int conns, int depth, size_t n)
{
    static const char script[] =
        "set -e; d=$(mktemp -d); trap 'kill $pid 2>/dev/null; rm -rf \"$d\"' EXIT\n"
        "cc -O2 -pthread -w -o $d/driver \"$WEIR_PEERS/beanstalkd.c\"; mkdir $d/log\n"
        "port=$((20000 + $$ %% 20000))\n"
        "beanstalkd -l 127.0.0.1 -p $port -b $d/log %s & pid=$!\n"
        "for i in $(seq 100); do (: </dev/tcp/127.0.0.1/$port) 2>/dev/null && break; sleep .05; "
        "done\n"
        "$d/driver $port %zu %d %d both x $pid\n";
    char  command[2000], line[1000];
    double rate = 0;
    FILE *file = NULL;
    snprintf(command, sizeof command, script, options, n, conns, depth);
    setenv("BENCH_SCRIPT", command, 1);
    fflush(NULL);
    file = popen("exec bash -c \"$BENCH_SCRIPT\"", "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *at = strstr(line, "\"lifecycles_per_s\":");
        if (at)
            rate = strtod(at + 19, NULL);
    }
    if (!file || pclose(file) != 0 || rate <= 0) {
        fprintf(stderr, "bench: no measure came from beanstalkd\n");
        exit(1);
    }
    return rate;
}

static bool have_beanstalkd(void)
{
    const char *dir = getenv("WEIR_PEERS");
    return dir && *dir && system("command -v beanstalkd >/dev/null 2>&1") == 0;
}

static void over_beanstalkd(const char *name, const char *durability, const char *options,
                            int depth, size_t n, size_t peer_n, double target)
{
    double ratio[MAX_ROUNDS], web = 0, peer = 0, cpu;
    if (!have_beanstalkd()) {
        report_skipped(name, "set WEIR_PEERS; needs beanstalkd");
        return;
    }
    for (int i = 0; i < rounds; i++) {
        peer = run_beanstalkd(options, 8, depth, peer_n);
        web = web_run(fresh_store(durability), n, &cpu);
        ratio[i] = web / peer;
    }
    note(name, web, peer);
    report(name, middle(ratio, rounds), "x", true, target);
}

void http_beanstalkd(void)
{
    over_beanstalkd("HTTP, bulks of 100, sqlite os, over beanstalkd 64 deep", "os", "", 64,
                    scaled(100000), scaled(100000), 1.5);
    over_beanstalkd("HTTP, bulks of 100, sqlite disk, over beanstalkd -f0", "disk", "-f0", 1,
                    scaled(100000), scaled(10000), 4);
}

/* ---- how soon a job starts ---- */

typedef struct web_starts {
    int           port;
    size_t        n;
    double       *late_ms;
    atomic_size_t seen;
} web_starts;

static void *start_worker(void *ctx)
{
    web_starts *s = ctx;
    client      c;
    char       *take, *finish;
    size_t take_len = make_request(&take, "POST", "/v1/take",
                                   "{\"types\":[\"bench\"],\"n\":1,\"wait\":\"500ms\"}");
    connect_to(&c, s->port);
    while (atomic_load(&s->seen) < s->n) {
        ask(&c, 200, take, take_len);
        double      now = seconds();
        const char *t = strstr(c.body, "{\"t\":");
        if (!t)
            continue;
        size_t i = atomic_fetch_add(&s->seen, 1);
        s->late_ms[i] = (now - strtod(t + 5, NULL)) * 1e3;
        const char *id = strstr(c.body, "{\"id\":"), *delivery = strstr(c.body, "\"delivery\":");
        char        one[200];
        snprintf(one, sizeof one, "{\"jobs\":[{\"id\":%lu,\"delivery\":%lu,\"result\":null}]}",
                 strtoul(id + 6, NULL, 10), strtoul(delivery + 11, NULL, 10));
        size_t len = make_request(&finish, "POST", "/v1/finish", one);
        ask(&c, 200, finish, len);
        free(finish);
    }
    disconnect(&c);
    free(take);
    return NULL;
}

void http_starts(void)
{
    server     s = start_server(fresh_store("os"));
    web_starts w = { .port = s.port, .n = scaled(2000) };
    pthread_t  worker[4];
    client     c;
    w.late_ms = calloc(w.n + 8, sizeof *w.late_ms);
    for (int i = 0; i < 4; i++)
        pthread_create(&worker[i], NULL, start_worker, &w);
    connect_to(&c, s.port);
    rest(300);
    double began = seconds();
    for (size_t i = 0; i < w.n; i++) {
        double due = began + (double)i / 200, now = seconds();
        char   body[400], *request;
        if (due > now)
            rest((due - now) * 1e3);
        snprintf(body, sizeof body,
                 "{\"type\":\"bench\",\"data\":{\"t\":%.9f,\"filler\":\"%0160d\"}}", seconds(), 0);
        size_t len = make_request(&request, "POST", "/v1/jobs", body);
        ask(&c, 201, request, len);
        free(request);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(worker[i], NULL);
    disconnect(&c);
    stop_server(&s);
    sort_samples(w.late_ms, w.n);
    report("HTTP: add to start, long poll, 200 jobs/s, p50", percentile(w.late_ms, w.n, 50), "ms",
           false, 2);
    report("HTTP: add to start, long poll, 200 jobs/s, p99", percentile(w.late_ms, w.n, 99), "ms",
           false, 10);
    free(w.late_ms);
}

/* ---- listeners ---- */

enum { LISTENERS = 1000, EVENTS_S = 1000, LISTEN_S = 10 };

typedef struct crowd {
    int           ep;
    atomic_size_t events;       /* that came, at all listeners together */
    atomic_bool   stop;
} crowd;

/* Count the events in what came: each has one line that starts with "data:". */
static void *listen_all(void *ctx)
{
    crowd *w = ctx;
    char  *bytes = malloc(1 << 20);
    while (!atomic_load(&w->stop)) {
        struct epoll_event e[256];
        int k = epoll_wait(w->ep, e, 256, 50);
        for (int i = 0; i < k; i++) {
            ssize_t n = recv(e[i].data.fd, bytes, (1 << 20) - 1, MSG_DONTWAIT);
            size_t  seen = 0;
            if (n <= 0)
                continue;
            bytes[n] = '\0';
            for (char *at = bytes; (at = strstr(at, "\ndata:")); at += 6)
                seen++;
            atomic_fetch_add(&w->events, seen);
        }
    }
    free(bytes);
    return NULL;
}

void http_listeners(void)
{
    server    s = start_server(fresh_store("os"));
    crowd     w = { .ep = epoll_create1(EPOLL_CLOEXEC) };
    client   *c = calloc(LISTENERS + 1, sizeof *c);
    char     *events, *add, *body = a_bulk();
    size_t    len = make_request(&events, "GET", "/v1/events?event=enqueue", NULL);
    size_t    add_len = make_request(&add, "POST", "/v1/jobs", body);
    pthread_t thread;
    for (int i = 0; i < LISTENERS; i++) {
        connect_to(&c[i], s.port);
        if (send(c[i].fd, events, len, MSG_NOSIGNAL) != (ssize_t)len)
            exit(1);
        struct epoll_event e = { .events = EPOLLIN, .data.fd = c[i].fd };
        epoll_ctl(w.ep, EPOLL_CTL_ADD, c[i].fd, &e);
    }
    connect_to(&c[LISTENERS], s.port);
    pthread_create(&thread, NULL, listen_all, &w);
    rest(500);
    size_t bulks = scaled(LISTEN_S * EVENTS_S) / BULK;
    double cpu = cpu_seconds(s.pid), began = seconds();
    for (size_t i = 0; i < bulks; i++) {
        double due = began + (double)(i * BULK) / EVENTS_S, now = seconds();
        if (due > now)
            rest((due - now) * 1e3);
        ask(&c[LISTENERS], 201, add, add_len);
    }
    size_t want = bulks * BULK * LISTENERS;
    for (double until = seconds() + 30; atomic_load(&w.events) < want && seconds() < until;)
        rest(5);
    double took = seconds() - began, share = (cpu_seconds(s.pid) - cpu) / took;
    atomic_store(&w.stop, true);
    pthread_join(thread, NULL);
    for (int i = 0; i <= LISTENERS; i++)
        disconnect(&c[i]);
    stop_server(&s);
    free(c);
    free(events);
    free(add);
    free(body);
    close(w.ep);
    report("1,000 listeners, events delivered over due", (double)atomic_load(&w.events) /
           (double)want, "x", true, 1);
    report("1,000 listeners, 1,000 events/s: CPU of the server", share, "cores", false, 1);
}

/* ---- a million jobs ---- */

void http_million(void)
{
    static const char *const targets[] = {
        "/v1/jobs", "/v1/jobs?state=inactive", "/v1/jobs?state=inactive&order=desc",
        "/v1/jobs?type=bench&limit=1000", "/v1/jobs?state=complete&order=desc",
        "/v1/jobs?state=failed", "/v1/jobs?type=bench&state=inactive&limit=50",
        "/v1/jobs?order=desc&limit=100", "/v1/stats", "/v1/types", "/v1/jobs/MIDDLE",
        "/v1/jobs?state=inactive&limit=1000&after=0.MIDDLE", "/v1/jobs/MIDDLE/explain",
        "/stats", "/jobs/bench/inactive/stats", "/jobs/inactive/0..100/asc", "/metrics", "/readyz",
    };
    enum { KINDS = sizeof targets / sizeof *targets };
    const char *url = fresh_store("os");
    size_t      each = scaled(100) < 10 ? 10 : scaled(100), n = 0;
    fill(url, scaled(1000000));
    server  s = start_server(url);
    client  c;
    double *ms = calloc(each * KINDS, sizeof *ms), worst = 0;
    size_t  slow = 0;
    connect_to(&c, s.port);
    for (size_t k = 0; k < KINDS; k++) {
        char  *request, target[100];
        const char *at = strstr(targets[k], "MIDDLE");
        if (at)         /* the id of a job in the middle */
            snprintf(target, sizeof target, "%.*s%zu%s", (int)(at - targets[k]), targets[k],
                     scaled(1000000) / 2, at + strlen("MIDDLE"));
        size_t len = make_request(&request, "GET", at ? target : targets[k], NULL);
        for (size_t i = 0; i < each; i++) {
            double began = seconds();
            ask(&c, 200, request, len);
            ms[n] = (seconds() - began) * 1e3;
            if (ms[n] > worst) {
                worst = ms[n];
                slow = k;
            }
            n++;
        }
        free(request);
    }
    disconnect(&c);
    stop_server(&s);
    sort_samples(ms, n);
    report("1,000,000 jobs: any list, count or page, p99", percentile(ms, n, 99), "ms", false, 50);
    printf("  the slowest: %.1f ms, %s\n", worst, targets[slow]);
    free(ms);
}
