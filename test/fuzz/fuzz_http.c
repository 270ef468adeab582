/* fuzz_http.c - bytes as a client might send them, on a connection of a real server over mem:. So
 * this goes through the HTTP parser, the target, the routes, and the bodies that handlers read. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "server/http/inner.h"

enum { RUNS = 2000 };       /* of inputs, until there is a new server: jobs and targets add up */

static srv_server *server;
static weir_queue *queue;

static void end(void)
{
    srv_stop(server);
    srv_destroy(server);
    weir_close(queue);
    server = NULL;
}

static void begin(void)
{
    weir_error err;
    MUST(!weir_open(&queue, "mem:", NULL, &err));
    MUST(!srv_start(&server, queue,
                    &(srv_options){ .listen = "127.0.0.1:0", .threads = 1, .kue_get = true },
                    &err));
}

static void open_conn(void *ctx)
{
    atomic_fetch_add(&server->n_conns, 1);
    srv_conn_open(server->thread[0], *(int *)ctx, "fuzz", NULL);
}

/* Send all of it and hang up on the sending side, then listen until the server hangs up too. */
static void talk(int fd, const uint8_t *data, size_t size)
{
    char answer[4096];
    bool sent = false;
    for (;;) {
        struct pollfd p = { .fd = fd, .events = (short)(POLLIN | (sent ? 0 : POLLOUT)) };
        int ready = poll(&p, 1, 10000);
        if (ready < 0 && errno == EINTR)            /* libFuzzer's own timer */
            continue;
        MUST(ready == 1);
        if (p.revents & POLLOUT && !sent) {
            ssize_t n = size ? send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
            if (n > 0) {
                data += n;
                size -= (size_t)n;
            }
            sent = n < 0 || !size;
            if (sent)
                shutdown(fd, SHUT_WR);
        }
        if (p.revents & (POLLIN | POLLHUP | POLLERR) && recv(fd, answer, sizeof answer, 0) <= 0)
            return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned run;
    int             pair[2];
    if (!run)
        atexit(end);
    else if (run % RUNS == 0)
        end();
    if (run++ % RUNS == 0)
        begin();
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    MUST(evutil_make_socket_nonblocking(pair[0]) == 0);
    srv_loop_call(server->thread[0]->loop, open_conn, &pair[0]);
    talk(pair[1], data, size);
    close(pair[1]);
    return 0;
}
