/* http.h - a server in a process of its own and bare connections to it, for the measures of
 * http.c. The client does as little as it can: requests are made beforehand where possible, and of
 * answers it looks at the status and at what the next request needs. */
#ifndef WEIR_BENCH_HTTP_H
#define WEIR_BENCH_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "server/server.h"

typedef struct server {
    pid_t pid;
    int   port, bus_port;               /* of the TCP bridge; 0: none */
} server;

/* Serve this store; ends the program when that does not work. */
server start_server(const char *url);
/* The same with a TCP bridge and, unless it is NULL, a work queue. */
server start_bus_server(const char *url, const srv_workqueue *q);
void   stop_server(const server *s);
double cpu_seconds(pid_t pid);          /* user and system, so far */

/* One connection that is kept. */
typedef struct client {
    int    fd;
    char  *in;                          /* the answer, head and body; NUL at its end */
    size_t len, cap;
    char  *body;
} client;

void connect_to(client *c, int port);
void disconnect(client *c);
/* Send a request and read its answer. Ends the program unless it has this status. */
void ask(client *c, int status, const char *request, size_t len);
/* A request with a body, in *out (free()). The length. */
size_t make_request(char **out, const char *method, const char *target, const char *body);

/* `conns` connections that each send the request again as soon as its answer is there, `n` times in
 * all, on one thread. Requests per second. */
double hammer(int port, int conns, const char *request, size_t len, size_t n, int status);

/* Job lives a second in bulks of 100 over HTTP, sqlite os. */
double http_bulk_rate(size_t n);

#endif
