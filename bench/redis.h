/* redis.h - what the measures on Redis share: readings of a server, the bare floor, and lives that
 * two processes lead together. */
#ifndef WEIR_BENCH_REDIS_H
#define WEIR_BENCH_REDIS_H

#include "bench.h"
#include "support/redis_rig.h"

/* ---- readings: redis_server.c ---- */

/* A server of this bench, with a port of 127.0.0.1 when `tcp`. It must start, or the program
 * ends. rig_free(). */
rig *start_redis(bool tcp);
/* Three primaries that share the slots, without replicas. rig_nodes_free(). */
rig_nodes *start_redis_cluster(void);

void   empty_redis(const rig *r);
double redis_cpu_us(const rig *r);          /* that it has used so far, in user and system mode */
double cluster_cpu_us(const rig_nodes *c);  /* of all its nodes */
double redis_memory(const rig *r);          /* bytes in use */

/* ---- the floor: redis_floor.c ---- */

/* One client that keeps a job in a list and then in a sorted set with bare commands, `deep` of
 * them in flight: LPUSH, RPOPLPUSH, LREM, ZADD. The server must be empty. Lives per second. */
double run_redis_floor(const rig *r, size_t n, size_t deep);

/* ---- two processes: redis_pair.c ---- */

typedef struct pair_answer {
    double lives_s;             /* from the first add to the last outcome that is stored */
    double cpu_us;              /* of Redis, for each life */
} pair_answer;

/* One process adds, the other works. */
pair_answer run_pair(const rig *r, const lives *l);
/* Milliseconds from weir_add() in one process to the start of the handler in the other, with
 * `rate` jobs added a second. */
void pair_starts(const char *url, size_t n, double rate, double *p50, double *p99);

/* ---- other queues: redis_peers.c ---- */

/* Is there a driver of other queues (WEIR_PEERS), and node to run it? */
bool have_peers(void);
/* What the driver `file` measures of its `variant`, with n jobs on this server (which it empties
 * first), producer and worker together in a process each. */
pair_answer run_peer(const rig *r, const char *file, const char *variant, size_t n);

#endif
