/* redis_rig.h - real Redis servers for tests: alone, as a cluster, or watched by sentinels.
 *
 * Each server is a child of the test's process, listens at a socket in a directory of its own and,
 * when asked, at a free port of 127.0.0.1. It dies with the process, and its directory goes too,
 * however the process ends. Nothing is asserted here: a function that can fail says why on standard
 * error and answers NULL or false. Any thread may call these, but one at a time for one server, and
 * start servers only on a thread that stays. */
#ifndef WEIR_TEST_REDIS_RIG_H
#define WEIR_TEST_REDIS_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <hiredis/hiredis.h>

#include "support/tempdir.h"

enum { RIG_PATIENCE_MS = 60000 };   /* for what must happen soon: only matters when it does not */

/* ---- one server ---- */

typedef struct rig_options {
    bool        tcp;                /* a port as well */
    bool        aof;                /* appendonly, appendfsync always */
    bool        cluster;            /* cluster-enabled */
    bool        sentinel;           /* redis-server --sentinel */
    const char *tls;                /* the port speaks TLS; whom its certificate is for, as
                                       certs_make() wants it; the CA is ca.pem in its folder */
    bool        tls_expired;
    const char *password;           /* requirepass */
    const char *config;             /* more lines, each with its "\n" */
} rig_options;

typedef struct rig {
    pid_t pid;                      /* 0: not running */
    int   port;                     /* 0: only the socket */
    char  dir[TEMPDIR_MAX];
    char  socket[TEMPDIR_MAX + 8];
    char  password[64];
    bool  sentinel;
    bool  keep_torn;                /* start it without redis-check-aof: see mend_aof() */
} rig;

/* Start one and wait until it answers. `opt` may be NULL. rig_free(). */
rig *rig_start(const rig_options *opt);
void rig_free(rig *r);              /* stop it, remove its directory; NULL is fine */

bool rig_stop(rig *r);              /* SIGTERM, and wait until it is gone */
void rig_kill9(rig *r);             /* SIGKILL, and wait until it is gone */
bool rig_begin(rig *r);             /* start it again, as it was, without waiting ... */
bool rig_ready(rig *r);             /* ... and wait until it answers PING with PONG */
bool rig_restart(rig *r);           /* stop, begin, ready */
void rig_pause(rig *r);             /* SIGSTOP; it is stopped when this returns */
void rig_resume(rig *r);            /* SIGCONT */

/* Change a line of its configuration file; it counts from the next start on. */
bool rig_configure(rig *r, const char *line);

/* The URL of a queue on it: rig_url(r, "redis+kue+unix", "prefix=q", ...). With "+unix" at the
 * end of the scheme the socket, else the port; with "rediss" its CA is added. `query` may be NULL.
 * Answers `out`. */
char *rig_url(const rig *r, const char *scheme, const char *query, char *out, size_t size);

/* Run one command, in hiredis's printf, over a connection of its own: the reply, which may be an
 * error; NULL when there is none. freeReplyObject(). */
redisReply *rig_command(const rig *r, const char *format, ...);
/* The same for what must work: false, and why on standard error, unless the reply is good. */
bool rig_do(const rig *r, const char *format, ...);
/* A number of INFO: rig_info(r, "commandstats", "cmdstat_fcall:calls"); 0: not there. */
int64_t rig_info(const rig *r, const char *section, const char *field);
/* How many commands it has carried out, but for the rig's own INFO and AUTH. */
int64_t rig_commands(const rig *r);

/* ---- a cluster ---- */

enum { RIG_MAX_NODES = 16 };

typedef struct rig_nodes {
    rig   *node[RIG_MAX_NODES];     /* a cluster: first the primaries, then their replicas */
    size_t n;
    rig   *sentinel[RIG_MAX_NODES];
    size_t n_sentinels;
} rig_nodes;

/* A cluster, or a primary with replicas, in which failures are noticed after about this long. */
enum { RIG_NODE_TIMEOUT_MS = 1000 };

/* Answers when every node says that the cluster is well and every replica is up to date. */
rig_nodes *rig_cluster(size_t primaries, size_t replicas_each);
void       rig_nodes_free(rig_nodes *c);
/* "redis://h1:p1,h2:p2...?cluster=1&" and the query. */
char *rig_cluster_url(const rig_nodes *c, const char *scheme, const char *query, char *out,
                      size_t size);
/* Wait until all nodes that run say so, and their replicas are up to date. */
bool  rig_cluster_ready(const rig_nodes *c);
/* The primary that has a slot, as those that run see it; NULL: none, or they do not agree. */
rig  *rig_cluster_primary(const rig_nodes *c, uint32_t slot);
/* Wait until another than `old` has the slot and the cluster is well again. */
rig  *rig_cluster_failed_over(const rig_nodes *c, uint32_t slot, const rig *old);
/* Move a slot, and its keys one by one, to another primary. Works under load. */
bool  rig_cluster_move(const rig_nodes *c, uint32_t slot, const rig *to);

/* ---- sentinels ---- */

/* A primary named "mymaster" with replicas (all in node[]), and sentinels that know each other. */
rig_nodes *rig_sentinels(size_t sentinels, size_t replicas);
/* "redis+sentinel://s1:p1,s2:p2/mymaster?" and the query. */
char *rig_sentinel_url(const rig_nodes *c, const char *scheme, const char *query, char *out,
                       size_t size);
/* The primary as the sentinels see it; NULL: they do not agree. */
rig  *rig_sentinel_primary(const rig_nodes *c);
/* Wait until another than `old` is primary, and all sentinels say so. */
rig  *rig_sentinel_failed_over(const rig_nodes *c, const rig *old);

/* ---- servers that a whole test program shares ---- */

/* What "rig:REST" means: a server, started when first asked for, and a prefix that nobody had
 * before. REST is a scheme and a query: "redis+unix", "redis", "rediss",
 * "redis+kue+unix?profile=vertx", or "cluster?partitions=16" (3 primaries). "cut:redis" and
 * "cut:redis+kue?profile=kue": the line to the server is cut again and again, as proxy_cut_after()
 * does, and the queue has the time to repeat every call. */
bool rig_shared_url(const char *url, char *out, size_t size);
static inline bool rig_is_shared(const char *url)
{
    return url[0] == 'r' && url[1] == 'i' && url[2] == 'g' && url[3] == ':';
}
bool rig_is_cut(const char *url);           /* "rig:cut:..." */

/* `server` for all tests of a file, and the set-up and tear-down of the group. */
#define RIG_FIXTURE                                                                               \
    static rig *server;                                                                           \
    static int start_server(void **state)                                                         \
    {                                                                                             \
        (void)state;                                                                              \
        server = rig_start(NULL);                                                                 \
        return server ? 0 : -1;                                                                   \
    }                                                                                             \
    static int stop_server(void **state)                                                          \
    {                                                                                             \
        (void)state;                                                                              \
        rig_free(server);                                                                         \
        return 0;                                                                                 \
    }

#endif
