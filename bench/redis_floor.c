/* redis_floor.c - the least that Redis needs for a job's life: one client, bare commands, whole
 * pipelines written at once. The job's bytes go through two lists into a sorted set. The client
 * costs next to nothing: commands are made once and only the numbers in them are changed, and of
 * replies it only looks at the type. */
#include "redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 8 };

/* A pipeline of one kind: the same command over and over, each with its own number. */
typedef struct pipeline {
    char  *bytes;
    size_t len, each;
    size_t value, score;        /* where the number goes in a command; 0: nowhere */
    int    answer;              /* the type of every reply */
} pipeline;

static void fail(const char *what)
{
    fprintf(stderr, "bench: redis floor: %s\n", what);
    exit(1);
}

/* In the arguments, "########" stands where digits go: first the score if it is `scored`. */
static pipeline make(size_t deep, int answer, bool scored, int argc, const char **argv)
{
    char *one;
    int   len = (int)redisFormatCommandArgv(&one, argc, argv, NULL);
    if (len < 0)
        fail("out of memory");
    pipeline p = { .each = (size_t)len, .len = (size_t)len * deep, .answer = answer };
    p.bytes = malloc(p.len);
    if (!p.bytes)
        fail("out of memory");
    for (size_t i = 0; i < deep; i++)
        memcpy(p.bytes + i * p.each, one, p.each);
    redisFreeCommand(one);
    const char *mark = memchr(p.bytes, '#', p.each);
    if (mark && scored) {
        p.score = (size_t)(mark - p.bytes);
        mark = memchr(mark + DIGITS, '#', p.each - p.score - DIGITS);
    }
    p.value = mark ? (size_t)(mark - p.bytes) : 0;
    return p;
}

static void put_number(char *to, size_t n)
{
    for (int i = DIGITS; i-- > 0; n /= 10)
        to[i] = (char)('0' + n % 10);
}

/* Send `count` commands of a kind, for the jobs from `first` on, and wait for their answers. */
static void send_all(redisContext *c, pipeline *p, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *at = p->bytes + i * p->each;
        if (p->value)
            put_number(at + p->value, first + i);
        if (p->score)
            put_number(at + p->score, first + i);
    }
    if (redisAppendFormattedCommand(c, p->bytes, count * p->each))
        fail(c->errstr);
    for (size_t i = 0; i < count; i++) {
        void *type;
        if (redisGetReply(c, &type))
            fail(c->errstr);
        if ((intptr_t)type != p->answer)
            fail("not the reply that it should be");
    }
}

static redisContext *connect_bare(const rig *r)
{
    redisContext *c = redisConnectUnix(r->socket);
    if (!c || c->err)
        fail(c ? c->errstr : "out of memory");
    c->reader->fn = NULL;               /* no objects are made of replies: their type is enough */
    return c;
}

/* All lives must have been led to their end. */
static void check(const rig *r, size_t n)
{
    redisReply *done = rig_command(r, "ZCARD done"), *active = rig_command(r, "LLEN active");
    if (!done || done->integer != (long long)n || !active || active->integer != 0)
        fail("lives are missing");
    freeReplyObject(done);
    freeReplyObject(active);
}

double run_redis_floor(const rig *r, size_t n, size_t deep)
{
    char value[] = BENCH_DATA;
    memset(value + 8, '#', DIGITS);     /* in the text of its first member */
    const char *score = "########";
    pipeline kind[] = {
        make(deep, REDIS_REPLY_INTEGER, false, 3, (const char *[]){ "LPUSH", "wait", value }),
        make(deep, REDIS_REPLY_STRING, false, 3, (const char *[]){ "RPOPLPUSH", "wait", "active" }),
        make(deep, REDIS_REPLY_INTEGER, false, 4,
             (const char *[]){ "LREM", "active", "-1", value }),
        make(deep, REDIS_REPLY_INTEGER, true, 4, (const char *[]){ "ZADD", "done", score, value }),
    };
    enum { KINDS = sizeof kind / sizeof *kind };
    redisContext *c = connect_bare(r);

    double start = seconds();
    for (size_t at = 0; at < n; at += deep)
        for (size_t k = 0; k < KINDS; k++)
            send_all(c, &kind[k], at, n - at < deep ? n - at : deep);
    double took = seconds() - start;

    redisFree(c);
    check(r, n);
    for (size_t k = 0; k < KINDS; k++)
        free(kind[k].bytes);
    return (double)n / took;
}
