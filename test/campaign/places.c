/* places.c - the stores of the campaign and the servers they need. See campaign.h. */
#include "campaign/campaign.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/beside.h"

enum { WAIT_SERVER_MS = 60000 };

static void rest(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
}

/* ---- a file ---- */

static bool start_file(place *p)
{
    snprintf(p->url, sizeof p->url, "%s:%s/jobs.db?%s", p->kind->scheme, p->dir, p->kind->query);
    snprintf(p->judge_url, sizeof p->judge_url, "%s", p->url);
    return true;
}

/* ---- Redis ---- */

static bool start_redis(place *p)
{
    place_use_shim(p);
    p->server = rig_start(&(rig_options){ .tcp = true, .aof = true });
    unsetenv("LD_PRELOAD");
    if (!p->server)
        return false;
    rig_url(p->server, p->kind->scheme, p->kind->query, p->url, sizeof p->url);
    snprintf(p->judge_url, sizeof p->judge_url, "%s", p->url);
    return true;
}

static void kill_redis(place *p)
{
    rig_kill9(p->server);
    rig_begin(p->server);
    rig_ready(p->server);
}

/* Nodes of a cluster keep their data when they are killed. */
static bool start_cluster(place *p)
{
    place_use_shim(p);
    p->cluster = rig_cluster(3, 0);
    unsetenv("LD_PRELOAD");
    if (!p->cluster)
        return false;
    for (size_t i = 0; i < p->cluster->n; i++) {
        rig *node = p->cluster->node[i];
        if (!rig_do(node, "CONFIG SET appendonly yes") ||
            !rig_do(node, "CONFIG SET appendfsync always") ||
            !rig_configure(node, "appendonly yes") || !rig_configure(node, "appendfsync always"))
            return false;
        while (rig_info(node, "persistence", "aof_rewrite_in_progress") ||
               rig_info(node, "persistence", "aof_rewrite_scheduled"))
            rest();
    }
    rig_cluster_url(p->cluster, p->kind->scheme, p->kind->query, p->url, sizeof p->url);
    snprintf(p->judge_url, sizeof p->judge_url, "%s", p->url);
    return true;
}

static void kill_node(place *p)
{
    rig *node = p->cluster->node[ledger_random(&p->random) % p->cluster->n];
    rig_kill9(node);
    rig_begin(node);
    rig_ready(node);
    rig_cluster_ready(p->cluster);
}

/* ---- `weir serve` ---- */

static int connect_to(int port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int free_port(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    int       fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool      ok = bind(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
              getsockname(fd, (struct sockaddr *)&at, &len) == 0;
    close(fd);
    return ok ? ntohs(at.sin_port) : 0;
}

static void be_quiet(void)
{
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
}

static bool serve(place *p)
{
    char program[PATH_MAX];
    char store[TEMPDIR_MAX + 64], listen_at[64];
    snprintf(store, sizeof store, "sqlite:%s/jobs.db?durability=os", p->dir);
    snprintf(listen_at, sizeof listen_at, "127.0.0.1:%d", p->port);
    beside("src/cli/weir", 2, program);
    p->weir = fork();
    if (p->weir == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        place_use_shim(p);
        be_quiet();
        execl(program, "weir", "serve", "--store", store, "--data", p->dir, "--listen",
              listen_at, (char *)NULL);
        _exit(127);
    }
    for (int waited = 0; waited < WAIT_SERVER_MS; waited += 5) {
        int fd = connect_to(p->port);
        if (fd >= 0) {
            close(fd);
            return true;
        }
        if (waitpid(p->weir, NULL, WNOHANG) == p->weir) {
            fprintf(stderr, "campaign: %s serve ended by itself\n", program);
            p->weir = 0;
            return false;
        }
        rest();
    }
    return false;
}

static void kill_weir(place *p)
{
    kill(p->weir, SIGKILL);
    waitpid(p->weir, NULL, 0);
    serve(p);
}

static bool start_http(place *p)
{
    p->port = free_port();
    snprintf(p->url, sizeof p->url, "http://127.0.0.1:%d", p->port);
    snprintf(p->judge_url, sizeof p->judge_url, "%s", p->url);
    return p->port && serve(p);
}

/* ---- all of them ---- */

static void shim_path(const place *p, char path[TEMPDIR_MAX + 16])
{
    snprintf(path, TEMPDIR_MAX + 16, "%s/faults", p->dir);
}

static bool make_shim(place *p)
{
    char path[TEMPDIR_MAX + 16];
    shim_path(p, path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *p->shim))
        return false;
    void *map = mmap(NULL, sizeof *p->shim, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    p->shim = map == MAP_FAILED ? NULL : map;
    return p->shim != NULL;
}

void place_use_shim(const place *p)
{
    char path[TEMPDIR_MAX + 16], module[PATH_MAX];
    if (!p->shim)
        return;
    shim_path(p, path);
    setenv(SHIM_PAGE_ENV, path, 1);
    setenv("LD_PRELOAD", beside("libshim.so", 1, module), 1);
}

bool place_start(place *p, const place_kind *kind, uint64_t seed, bool shimmed)
{
    *p = (place){ .kind = kind, .random = seed };
    return tempdir_make(p->dir) && (!shimmed || make_shim(p)) && kind->start(p);
}

static bool add_line(place *p, proxy *line)
{
    if (line)
        p->line[p->n_lines++] = line;
    return line != NULL;
}

/* Each node names the port of its proxy to clients. Among each other nodes use another port. */
static bool line_to_nodes(place *p)
{
    for (size_t i = 0; i < p->cluster->n && i < MOST_LINES; i++) {
        rig *node = p->cluster->node[i];
        if (!add_line(p, proxy_start(node, p->random + i)) ||
            !rig_do(node, "CONFIG SET cluster-announce-port %d", proxy_port(p->line[i])))
            return false;
    }
    return true;
}

bool place_bad_line(place *p)
{
    bool ok = p->cluster  ? line_to_nodes(p)
              : p->server ? add_line(p, proxy_start(p->server, p->random))
                          : add_line(p, proxy_start_to(p->port, p->random));
    if (!ok)
        return false;
    const char *query = strchr(p->judge_url, '?');
    snprintf(p->url, sizeof p->url, "%s://127.0.0.1:%d%s", p->kind->scheme, proxy_port(p->line[0]),
             query ? query : "");
    return true;
}

void place_cut_after(place *p, uint32_t bytes)
{
    for (int i = 0; i < p->n_lines; i++)
        proxy_cut_after(p->line[i], bytes);
}

int place_cuts(place *p)
{
    uint64_t cuts = 0;
    for (int i = 0; i < p->n_lines; i++)
        cuts += proxy_cuts(p->line[i]);
    return (int)cuts;
}

/* ---- moving to another store ---- */

void place_set_target(place *p)
{
    snprintf(p->source, sizeof p->source, "%s", p->url);
    snprintf(p->url, sizeof p->url, "sqlite:%s/moved.db?durability=os", p->dir);
    snprintf(p->judge_url, sizeof p->judge_url, "%s", p->url);
}

pid_t place_migrate(place *p)
{
    char program[PATH_MAX];
    beside("src/cli/weir", 2, program);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        be_quiet();
        execl(program, "weir", "migrate", "--from", p->source, "--to", p->url, (char *)NULL);
        _exit(127);
    }
    return pid;
}

void place_stop(place *p)
{
    while (p->n_lines)
        proxy_stop(p->line[--p->n_lines]);
    if (p->weir) {
        kill(p->weir, SIGTERM);
        waitpid(p->weir, NULL, 0);
    }
    rig_free(p->server);
    if (p->cluster)
        rig_nodes_free(p->cluster);
    if (p->shim)
        munmap(p->shim, sizeof *p->shim);
    tempdir_remove(p->dir);
}

const place_kind place_sqlite_disk = {
    .name = "sqlite, disk", .scheme = "sqlite", .query = "durability=disk", .start = start_file,
    .children = 1
};
const place_kind place_sqlite_os = {
    .name = "sqlite, os", .scheme = "sqlite", .query = "durability=os", .start = start_file,
    .children = 1
};
const place_kind place_shared = {
    .name = "sqlite, 3 processes", .scheme = "sqlite", .query = "durability=disk",
    .start = start_file, .children = 3
};
const place_kind place_redis = {
    .name = "redis", .scheme = "redis", .start = start_redis, .kill_server = kill_redis,
    .children = 3
};
const place_kind place_kue = {
    .name = "redis, Kue's layout", .scheme = "redis+kue", .query = "profile=kue",
    .start = start_redis, .kill_server = kill_redis, .children = 3
};
const place_kind place_vertx = {
    .name = "redis, Vert.x Kue's layout", .scheme = "redis+kue", .query = "profile=vertx",
    .start = start_redis, .kill_server = kill_redis, .children = 3
};
const place_kind place_cluster = {
    .name = "redis cluster of 3", .scheme = "redis", .query = "partitions=16",
    .start = start_cluster, .kill_server = kill_node, .children = 3
};
const place_kind place_http = {
    .name = "http, sqlite behind it", .scheme = "http", .start = start_http,
    .kill_server = kill_weir, .children = 3
};
