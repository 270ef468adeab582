/* redis_fake.c - a server that says what the test wants: see redis_fake.h. */
#include "support/redis_fake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CONNS = 16, MAX_ANSWERS = 64, MAX_SAYINGS = 8, MAX_ARGS = 8, MAX_IN = 1 << 16,
       HEARD = 1 << 16, PATIENCE_MS = 10000 };

typedef struct conn {
    int     fd;                     /* -1: free */
    bool    silent;
    char    in[MAX_IN];
    size_t  len;
    int64_t wait_until;             /* then `waiting` is sent; 0: nothing waits */
    const char *waiting;
} conn;

struct fake {
    int             fd, wake, port;
    pthread_t       thread;
    pthread_mutex_t lock;           /* of all that follows */
    pthread_cond_t  came;
    bool            stop, frozen;
    conn            conn[MAX_CONNS];
    int             accepted;
    const char     *answer[MAX_ANSWERS];
    size_t          n_answers, at_answer;
    struct {
        const char *command, *answer;
    } saying[MAX_SAYINGS];
    char            heard[HEARD];
    size_t          n_heard;
};

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- answering ---- */

/* shutdown(): the other side hears of it now, also when a poll() of ours still has it. */
static void drop(conn *c)
{
    if (c->fd >= 0) {
        shutdown(c->fd, SHUT_RDWR);
        close(c->fd);
    }
    c->fd = -1;
    c->len = 0;
    c->silent = false;
    c->wait_until = 0;
}

/* "=text" is a bulk string of it. */
static void put(conn *c, const char *bytes)
{
    size_t len = strlen(bytes);
    char   bulk[512];
    if (*bytes == '=') {
        len = (size_t)snprintf(bulk, sizeof bulk, "$%zu\r\n%s\r\n", len - 1, bytes + 1);
        bytes = bulk;
    }
    while (len && c->fd >= 0) {
        ssize_t n = send(c->fd, bytes, len, MSG_NOSIGNAL);
        if (n < 0)
            return;
        bytes += n;
        len -= (size_t)n;
    }
}

static void answer_call(fake *f, conn *c)
{
    const char *a = f->at_answer < f->n_answers ? f->answer[f->at_answer++] : "+OK\r\n";
    if (!strcmp(a, "!cut")) {
        drop(c);
    } else if (!strncmp(a, "!half ", 6)) {
        put(c, a + 6);
        drop(c);
    } else if (!strcmp(a, "!silent")) {
        c->silent = true;
    } else if (!strncmp(a, "!wait ", 6)) {
        char *bytes;
        c->wait_until = now_ms() + strtol(a + 6, &bytes, 10);
        c->waiting = bytes + 1;
    } else {
        put(c, a);
    }
}

static void put_hello(fake *f, conn *c)
{
    char text[256];
    snprintf(text, sizeof text, "*8\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$2\r\nid\r\n:%d\r\n"
                                "$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n",
             f->accepted);
    put(c, text);
}

/* Is it of the handshake, and answered? `hidden`: and not to be noted. */
static bool answer_handshake(fake *f, conn *c, char **argv, bool *hidden)
{
    const char *command = argv[0];
    static const char *const handshake[] = { "HELLO", "SELECT",  "INFO",   "CONFIG", "CLIENT",
                                            "FUNCTION", "ASKING", "CLUSTER", "SENTINEL", "AUTH" };
    size_t i = 0, n = sizeof handshake / sizeof *handshake;
    while (i < n && strcasecmp(handshake[i], command) != 0)
        i++;
    if (i == n && (strncmp(command, "WAIT", 4) != 0 || strcmp(argv[1], "0") != 0))
        return false;
    *hidden = strcmp(command, "CLIENT") != 0 && strcmp(command, "FUNCTION") != 0 &&
              strcmp(command, "ASKING") != 0;
    for (size_t s = 0; s < MAX_SAYINGS; s++) {
        if (f->saying[s].answer && !strcasecmp(f->saying[s].command, command)) {
            put(c, f->saying[s].answer);
            return true;
        }
    }
    if (!strcmp(command, "INFO"))
        put(c, "=run_id:0123456789012345678901234567890123456789\r\n"
               "maxmemory_policy:noeviction\r\naof_enabled:1\r\nrole:master\r\n");
    else if (!strcmp(command, "HELLO"))
        put_hello(f, c);
    else if (!strcmp(command, "CONFIG"))
        put(c, "*4\r\n+appendonly\r\n+yes\r\n+appendfsync\r\n+everysec\r\n");
    else
        put(c, "+OK\r\n");
    return true;
}

static void note(fake *f, char **argv, int argc)
{
    for (int i = 0; i < argc; i++) {
        int n = snprintf(f->heard + f->n_heard, HEARD - f->n_heard, "%.40s%s", argv[i],
                         i + 1 < argc ? " " : ";");
        f->n_heard += (size_t)n;
        if (f->n_heard >= HEARD)
            abort();
    }
    pthread_cond_broadcast(&f->came);
}

/* ---- reading ---- */

/* "*2\r\n$3\r\nGET\r\n$1\r\na\r\n": its arguments, cut out of `in`. How long it is; 0: it is not
 * whole. */
static size_t cut_command(char *in, size_t len, char **argv, int *argc)
{
    char *p = in, *end = in + len;
    char *line = memchr(p, '\n', len);
    if (!line)
        return 0;
    *argc = atoi(p + 1);
    p = line + 1;
    for (int i = 0; i < *argc; i++) {
        line = memchr(p, '\n', (size_t)(end - p));
        if (!line)
            return 0;
        size_t n = (size_t)atol(p + 1);
        p = line + 1;
        if ((size_t)(end - p) < n + 2)
            return 0;
        if (i < MAX_ARGS)
            argv[i] = p;
        p += n + 2;
    }
    for (int i = 0; i < *argc && i < MAX_ARGS; i++)
        *strchr(argv[i], '\r') = '\0';
    if (*argc > MAX_ARGS)
        *argc = MAX_ARGS;
    return (size_t)(p - in);
}

static void take_commands(fake *f, conn *c)
{
    char  *argv[MAX_ARGS];
    int    argc;
    size_t used;
    while (c->fd >= 0 && !c->silent && !c->wait_until &&
           (used = cut_command(c->in, c->len, argv, &argc))) {
        bool hidden = false, handshake = answer_handshake(f, c, argv, &hidden);
        if (!hidden)
            note(f, argv, argc);
        c->len -= used;
        char rest[MAX_IN];
        memcpy(rest, c->in + used, c->len);
        memcpy(c->in, rest, c->len);
        if (!handshake)
            answer_call(f, c);
    }
}

static void read_conn(fake *f, conn *c)
{
    if (c->silent)
        c->len = 0;
    ssize_t n = recv(c->fd, c->in + c->len, MAX_IN - c->len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop(c);
        return;
    }
    c->len += (size_t)n;
    take_commands(f, c);
}

static void send_waiting(fake *f, conn *c)
{
    if (c->fd < 0 || !c->wait_until || c->wait_until > now_ms())
        return;
    c->wait_until = 0;
    put(c, c->waiting);
    take_commands(f, c);
}

static void accept_conn(fake *f)
{
    int fd = accept(f->fd, NULL, NULL);
    for (size_t i = 0; fd >= 0 && i < MAX_CONNS; i++) {
        if (f->conn[i].fd < 0) {
            f->conn[i].fd = fd;
            f->accepted++;
            return;
        }
    }
    abort();
}

/* Milliseconds until something waits no longer. */
static int next_wait(const fake *f)
{
    int64_t wait = 100000, now = now_ms();
    for (size_t i = 0; i < MAX_CONNS; i++) {
        const conn *c = &f->conn[i];
        if (c->fd >= 0 && c->wait_until && c->wait_until - now < wait)
            wait = c->wait_until > now ? c->wait_until - now : 0;
    }
    return (int)wait;
}

static void *serve(void *arg)
{
    fake *f = arg;
    pthread_mutex_lock(&f->lock);
    while (!f->stop) {
        struct pollfd p[MAX_CONNS + 2];
        for (size_t i = 0; i < MAX_CONNS; i++)
            p[i] = (struct pollfd){ f->frozen || f->conn[i].wait_until ? -1 : f->conn[i].fd, POLLIN,
                                    0 };
        p[MAX_CONNS] = (struct pollfd){ f->frozen ? -1 : f->fd, POLLIN, 0 };
        p[MAX_CONNS + 1] = (struct pollfd){ f->wake, POLLIN, 0 };
        int wait = next_wait(f);
        pthread_mutex_unlock(&f->lock);
        poll(p, MAX_CONNS + 2, wait);
        pthread_mutex_lock(&f->lock);
        eventfd_t woken;
        if (p[MAX_CONNS + 1].revents)
            eventfd_read(f->wake, &woken);
        for (size_t i = 0; i < MAX_CONNS && !f->frozen; i++) {
            send_waiting(f, &f->conn[i]);
            if (p[i].revents && f->conn[i].fd == p[i].fd)
                read_conn(f, &f->conn[i]);
        }
        if (p[MAX_CONNS].revents && !f->frozen)
            accept_conn(f);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* ---- the test's side ---- */

fake *fake_start(void)
{
    fake              *f = calloc(1, sizeof *f);
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          len = sizeof a;
    if (!f)
        return NULL;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->came, NULL);
    for (size_t i = 0; i < MAX_CONNS; i++)
        f->conn[i].fd = -1;
    f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    f->wake = eventfd(0, EFD_CLOEXEC);
    if (f->fd < 0 || f->wake < 0 || bind(f->fd, (struct sockaddr *)&a, sizeof a) ||
        listen(f->fd, 16) || getsockname(f->fd, (struct sockaddr *)&a, &len) ||
        pthread_create(&f->thread, NULL, serve, f)) {
        perror("redis_fake");
        exit(1);
    }
    f->port = ntohs(a.sin_port);
    return f;
}

static void wake(fake *f)
{
    eventfd_write(f->wake, 1);
    pthread_mutex_unlock(&f->lock);
}

void fake_stop(fake *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->stop = true;
    wake(f);
    pthread_join(f->thread, NULL);
    for (size_t i = 0; i < MAX_CONNS; i++)
        drop(&f->conn[i]);
    close(f->fd);
    close(f->wake);
    pthread_cond_destroy(&f->came);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

int fake_port(const fake *f)
{
    return f->port;
}

void fake_answers(fake *f, size_t n, const char *const *answers)
{
    pthread_mutex_lock(&f->lock);
    if (n > MAX_ANSWERS)
        abort();
    memcpy(f->answer, answers, n * sizeof *answers);
    f->n_answers = n;
    f->at_answer = 0;
    pthread_mutex_unlock(&f->lock);
}

void fake_say(fake *f, const char *command, const char *answer)
{
    pthread_mutex_lock(&f->lock);
    size_t i = 0, spare = MAX_SAYINGS;
    for (; i < MAX_SAYINGS; i++) {
        if (!f->saying[i].answer)
            spare = i;
        else if (!strcasecmp(f->saying[i].command, command))
            break;
    }
    i = i < MAX_SAYINGS ? i : spare;
    if (i == MAX_SAYINGS)
        abort();
    f->saying[i].command = command;
    f->saying[i].answer = answer;
    pthread_mutex_unlock(&f->lock);
}

void fake_freeze(fake *f, bool frozen)
{
    pthread_mutex_lock(&f->lock);
    f->frozen = frozen;
    wake(f);
}

void fake_close_all(fake *f)
{
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < MAX_CONNS; i++)
        drop(&f->conn[i]);
    wake(f);
}

char *fake_heard(fake *f, char *out, size_t size)
{
    pthread_mutex_lock(&f->lock);
    snprintf(out, size, "%.*s", (int)f->n_heard, f->heard);
    f->n_heard = 0;
    f->heard[0] = '\0';
    pthread_mutex_unlock(&f->lock);
    return out;
}

bool fake_wait_heard(fake *f, const char *part)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_MS / 1000 * 3;
    pthread_mutex_lock(&f->lock);
    int late = 0;
    while (!strstr(f->heard, part) && !late)
        late = pthread_cond_timedwait(&f->came, &f->lock, &until);
    bool came = strstr(f->heard, part) != NULL;
    pthread_mutex_unlock(&f->lock);
    return came;
}

int fake_connections(fake *f)
{
    pthread_mutex_lock(&f->lock);
    int n = f->accepted;
    pthread_mutex_unlock(&f->lock);
    return n;
}
