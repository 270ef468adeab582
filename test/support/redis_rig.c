/* redis_rig.c - one Redis server: starting, stopping, asking. See redis_rig.h. */
#include "support/redis_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/certs.h"

enum { START_TRIES = 10, COMMAND_TIMEOUT_S = 20 };

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void breathe(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

/* ---- directories go when the process does ---- */

static pthread_mutex_t keeper_lock = PTHREAD_MUTEX_INITIALIZER;
static int             keeper_fd = -1;

/* A shell that outlives us: it reads names of directories until nobody can write to it any more,
 * and removes them. */
static void start_keeper(void)
{
    static const char script[] = "while IFS= read -r d; do set -- \"$@\" \"$d\"; done; "
                                 "[ $# = 0 ] || rm -rf -- \"$@\"";
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return;
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        int null = open("/dev/null", O_RDWR);
        dup2(ends[0], 0);
        dup2(null, 1);
        dup2(null, 2);
        execl("/bin/sh", "sh", "-c", script, "sh", (char *)NULL);
        _exit(127);
    }
    close(ends[0]);
    keeper_fd = ends[1];
}

static void remove_at_the_end(const char *dir)
{
    char line[TEMPDIR_MAX + 2];
    int  len = snprintf(line, sizeof line, "%s\n", dir);
    pthread_mutex_lock(&keeper_lock);
    if (keeper_fd < 0)
        start_keeper();
    if (keeper_fd < 0 || write(keeper_fd, line, (size_t)len) != len)
        fprintf(stderr, "# rig: nobody will remove %s\n", dir);
    pthread_mutex_unlock(&keeper_lock);
}

/* ---- a free port ---- */

static bool can_bind(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    bool can = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
    if (fd >= 0)
        close(fd);
    return can;
}

/* Below those that the kernel gives to clients, and free 10000 above as well, where the nodes of a
 * cluster talk. Somebody may be quicker: the server then ends at once and is started again. */
static int free_port(void)
{
    static _Atomic unsigned count;
    enum { FIRST = 10000, MANY = 10000 };
    unsigned from = (unsigned)getpid() * 61 + (unsigned)(now_ms() % 1000) * 17;
    for (int tries = 0; tries < MANY; tries++) {
        int port = FIRST + (int)((from + 7 * count++) % MANY);
        if (can_bind(port) && can_bind(port + 10000))
            return port;
    }
    return 0;
}

/* ---- start ---- */

static bool write_config(const rig *r, const rig_options *opt)
{
    char path[sizeof r->dir + 16];
    snprintf(path, sizeof path, "%s/redis.conf", r->dir);
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    fprintf(f, "%s %d\nbind 127.0.0.1\nunixsocket %s\ndir %s\nlogfile %s/log\n",
            opt->tls ? "port 0\ntls-port" : "port", r->port, r->socket, r->dir, r->dir);
    if (opt->tls)
        fprintf(f, "tls-cert-file %s/server.pem\ntls-key-file %s/server.key\n"
                   "tls-ca-cert-file %s/ca.pem\ntls-auth-clients no\ntls-cluster yes\n"
                   "tls-replication yes\n", r->dir, r->dir, r->dir);
    if (r->password[0])
        fprintf(f, "requirepass %s\nmasterauth %s\n", r->password, r->password);
    if (!r->sentinel)
        fprintf(f, "save \"\"\ndaemonize no\nenable-debug-command yes\n"
                   "repl-diskless-sync-delay 0\nrepl-ping-replica-period 1\n");
    if (opt->aof)
        fprintf(f, "appendonly yes\nappendfsync always\n");
    if (opt->cluster)
        fprintf(f, "cluster-enabled yes\ncluster-node-timeout %d\n"
                   "cluster-replica-validity-factor 0\ncluster-migration-barrier 10\n",
                RIG_NODE_TIMEOUT_MS);
    fputs(opt->config ? opt->config : "", f);
    return fclose(f) == 0;
}

bool rig_configure(rig *r, const char *line)
{
    char path[sizeof r->dir + 16];
    snprintf(path, sizeof path, "%s/redis.conf", r->dir);
    FILE *f = fopen(path, "a");
    if (!f)
        return false;
    fprintf(f, "%s\n", line);
    return fclose(f) == 0;
}

/* A server that is killed while it writes leaves half a command in its file. Redis 7.0 cuts that
 * off, but not the MULTI before it: with the next restart the first half of that transaction is
 * carried out. redis-check-aof cuts off all of it. */
static void mend_aof(const rig *r)
{
    char line[2 * sizeof r->dir + 128], path[sizeof r->dir + 64];
    snprintf(path, sizeof path, "%s/appendonlydir/appendonly.aof.manifest", r->dir);
    snprintf(line, sizeof line, "echo y | redis-check-aof --fix %s >%s/check-aof 2>&1", path,
             r->dir);
    if (access(path, R_OK) == 0 && system(line) != 0)
        fprintf(stderr, "# rig: redis-check-aof fails: %s/check-aof\n", r->dir);
}

bool rig_begin(rig *r)
{
    char  path[sizeof r->dir + 16];
    pid_t parent = getpid();
    snprintf(path, sizeof path, "%s/redis.conf", r->dir);
    if (!r->keep_torn)
        mend_aof(r);
    unlink(r->socket);              /* left by one that was killed: nobody answers there */
    r->pid = fork();
    if (r->pid < 0) {
        r->pid = 0;
        return false;
    }
    if (r->pid > 0)
        return true;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    execlp("redis-server", "redis-server", path, r->sentinel ? "--sentinel" : (char *)NULL,
           (char *)NULL);
    _exit(127);
}

/* Ended by itself? */
static bool has_ended(rig *r)
{
    int status;
    if (!r->pid || waitpid(r->pid, &status, WNOHANG) != r->pid)
        return !r->pid;
    r->pid = 0;
    return true;
}

static void tell_log(const rig *r)
{
    char path[sizeof r->dir + 16], line[512];
    snprintf(path, sizeof path, "%s/log", r->dir);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        fprintf(stderr, "#   %s", line);
    if (f)
        fclose(f);
}

static redisContext *connect_to(const rig *r)
{
    redisContext *c = redisConnectUnixWithTimeout(r->socket,
                                                  (struct timeval){ .tv_sec = COMMAND_TIMEOUT_S });
    if (!c || c->err || redisSetTimeout(c, (struct timeval){ .tv_sec = COMMAND_TIMEOUT_S })) {
        if (c)
            redisFree(c);
        return NULL;
    }
    if (r->password[0])
        freeReplyObject(redisCommand(c, "AUTH %s", r->password));
    return c;
}

static bool answers(const rig *r)
{
    redisContext *c = access(r->socket, F_OK) == 0 ? connect_to(r) : NULL;
    redisReply   *reply = c ? redisCommand(c, "PING") : NULL;
    bool          pong = reply && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    if (c)
        redisFree(c);
    return pong;
}

bool rig_ready(rig *r)
{
    int64_t end = now_ms() + RIG_PATIENCE_MS;
    while (!answers(r)) {
        if (has_ended(r) || now_ms() > end) {
            fprintf(stderr, "# rig: redis-server %s\n",
                    r->pid ? "does not answer" : "has ended (is it installed?)");
            tell_log(r);
            return false;
        }
        breathe();
    }
    return true;
}

rig *rig_start(const rig_options *opt)
{
    rig *r = calloc(1, sizeof *r);
    if (!r || !tempdir_make(r->dir)) {
        free(r);
        return NULL;
    }
    remove_at_the_end(r->dir);
    opt = opt ? opt : &(rig_options){ 0 };
    snprintf(r->socket, sizeof r->socket, "%s/s", r->dir);
    snprintf(r->password, sizeof r->password, "%s", opt->password ? opt->password : "");
    r->sentinel = opt->sentinel;
    if (opt->tls && !certs_make(r->dir, "server", opt->tls, opt->tls_expired)) {
        fprintf(stderr, "# rig: no certificate in %s\n", r->dir);
        rig_free(r);
        return NULL;
    }
    for (int tries = 0; tries < START_TRIES; tries++) {
        if (opt->tcp || opt->tls || opt->cluster || opt->sentinel)
            r->port = free_port();
        if (!write_config(r, opt) || !rig_begin(r))
            break;
        if (rig_ready(r))
            return r;
        if (!r->port)
            break;                  /* with a port, somebody else may have taken it */
        rig_kill9(r);
    }
    fprintf(stderr, "# rig: no redis-server in %s\n", r->dir);
    rig_free(r);
    return NULL;
}

/* ---- stop ---- */

bool rig_stop(rig *r)
{
    int64_t end = now_ms() + RIG_PATIENCE_MS;
    if (!r->pid)
        return true;
    kill(r->pid, SIGTERM);
    while (!has_ended(r)) {
        if (now_ms() > end) {
            fprintf(stderr, "# rig: redis-server %d does not end\n", (int)r->pid);
            rig_kill9(r);
            return false;
        }
        breathe();
    }
    return true;
}

void rig_kill9(rig *r)
{
    if (!r->pid)
        return;
    kill(r->pid, SIGKILL);
    while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    r->pid = 0;
}

bool rig_restart(rig *r)
{
    return rig_stop(r) && rig_begin(r) && rig_ready(r);
}

void rig_pause(rig *r)
{
    int status = 0;
    kill(r->pid, SIGSTOP);
    while (waitpid(r->pid, &status, WUNTRACED) < 0 && errno == EINTR)
        ;
    if (!WIFSTOPPED(status))
        r->pid = 0;                 /* it had ended */
}

void rig_resume(rig *r)
{
    if (r->pid)
        kill(r->pid, SIGCONT);
}

void rig_free(rig *r)
{
    if (!r)
        return;
    rig_kill9(r);
    tempdir_remove(r->dir);
    free(r);
}

/* ---- asking ---- */

char *rig_url(const rig *r, const char *scheme, const char *query, char *out, size_t size)
{
    size_t len = strlen(scheme);
    char   auth[sizeof r->password + 2] = "";
    if (r->password[0])
        snprintf(auth, sizeof auth, ":%s@", r->password);
    if (len > 5 && !strcmp(scheme + len - 5, "+unix"))
        snprintf(out, size, "%s://%s%s", scheme, auth, r->socket);
    else
        snprintf(out, size, "%s://%s127.0.0.1:%d", scheme, auth, r->port);
    if (query && *query) {
        len = strlen(out);
        snprintf(out + len, size - len, "?%s", query);
    }
    if (!strncmp(scheme, "rediss", 6)) {
        len = strlen(out);
        snprintf(out + len, size - len, "%scacert=%s/ca.pem", query && *query ? "&" : "?", r->dir);
    }
    return out;
}

static redisReply *command(const rig *r, const char *format, va_list args)
{
    redisContext *c = connect_to(r);
    redisReply   *reply = c ? redisvCommand(c, format, args) : NULL;
    if (c)
        redisFree(c);
    return reply;
}

redisReply *rig_command(const rig *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = command(r, format, args);
    va_end(args);
    return reply;
}

bool rig_do(const rig *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = command(r, format, args);
    va_end(args);
    bool ok = reply && reply->type != REDIS_REPLY_ERROR;
    if (!ok)
        fprintf(stderr, "# rig: %s: %s\n", format, reply ? reply->str : "no answer");
    freeReplyObject(reply);
    return ok;
}

int64_t rig_info(const rig *r, const char *section, const char *field)
{
    redisReply *reply = rig_command(r, "INFO %s", section);
    int64_t     value = 0;
    char        name[80];
    const char *colon = strchr(field, ':');
    size_t      head = colon ? (size_t)(colon - field) : strlen(field);
    snprintf(name, sizeof name, "\n%.*s:", (int)head, field);
    const char *line = reply && reply->str ? strstr(reply->str, name) : NULL;
    if (line && colon) {            /* "name:a=1,b=2" */
        char member[80];
        snprintf(member, sizeof member, "%s=", colon + 1);
        line = strstr(line, member);
        value = line ? strtoll(line + strlen(member), NULL, 10) : 0;
    } else if (line) {
        value = strtoll(line + strlen(name), NULL, 10);
    }
    freeReplyObject(reply);
    return value;
}

int64_t rig_commands(const rig *r)
{
    redisReply *reply = rig_command(r, "INFO commandstats");
    int64_t     sum = 0;
    for (const char *line = reply && reply->str ? reply->str : ""; line;) {
        line = strstr(line, "\ncmdstat_");
        if (!line)
            break;
        line += strlen("\ncmdstat_");
        const char *calls = strstr(line, ":calls=");
        if (calls && strncmp(line, "info", 4) != 0 && strncmp(line, "auth", 4) != 0)
            sum += strtoll(calls + strlen(":calls="), NULL, 10);
    }
    freeReplyObject(reply);
    return sum;
}
