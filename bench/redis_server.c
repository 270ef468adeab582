/* redis_server.c - Redis servers to measure on, and what they say they have used. */
#include "redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench: redis: %s\n", what);
    exit(1);
}

rig *start_redis(bool tcp)
{
    rig *r = rig_start(&(rig_options){ .tcp = tcp });
    must(r, "no server");
    return r;
}

/* Nodes that compete for the processor answer each other late: nobody is to be taken for dead. */
rig_nodes *start_redis_cluster(void)
{
    rig_nodes *c = rig_cluster(3, 0);
    must(c, "no cluster");
    for (size_t i = 0; i < c->n; i++)
        must(rig_do(c->node[i], "CONFIG SET cluster-node-timeout 60000"), "set its timeout");
    return c;
}

void empty_redis(const rig *r)
{
    must(rig_do(r, "FLUSHALL SYNC"), "empty it");
}

static double reading(const char *info, const char *name)
{
    const char *at = strstr(info, name);
    must(at, name);
    return strtod(at + strlen(name), NULL);
}

double redis_cpu_us(const rig *r)
{
    redisReply *reply = rig_command(r, "INFO cpu");
    must(reply && reply->str, "INFO cpu");
    double s = reading(reply->str, "\nused_cpu_user:") + reading(reply->str, "\nused_cpu_sys:");
    freeReplyObject(reply);
    return s * 1e6;
}

double cluster_cpu_us(const rig_nodes *c)
{
    double sum = 0;
    for (size_t i = 0; i < c->n; i++)
        sum += redis_cpu_us(c->node[i]);
    return sum;
}

double redis_memory(const rig *r)
{
    return (double)rig_info(r, "memory", "used_memory");
}
