/* test_vertx.c - weir beside Vert.x Kue on one Redis. Its worker and its producer are acted out
 * with the commands that they send: a worker that has a token and finds no job stops for good. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/redis_rig.h"
#include "support/runtime_fixture.h"

enum { URL_MAX = 600, MAX_JOBS = 400 };
#define P "vertx_kue:"

typedef struct beside {
    rig        *r;
    char        url[URL_MAX];
    weir_queue *q;
    weir_error  err;
    atomic_int  ran[MAX_JOBS + 1];      /* by id: how often, whoever ran it */
    atomic_int  by_weir, by_vertx, empty;
    atomic_bool stop;
} beside;

static void open_queue(beside *t)
{
    memset(t, 0, sizeof *t);
    t->r = rig_start(NULL);
    assert_non_null(t->r);
    rig_url(t->r, "redis+kue+unix", "profile=vertx", t->url, sizeof t->url);
    OK(weir_open(&t->q, t->url, NULL, &t->err));
}

static void close_queue(beside *t)
{
    weir_report *report = NULL;
    OK(weir_check(t->q, false, &report, &t->err));
    for (size_t i = 0; i < report->n; i++)
        print_message("%s\n", report->line[i]);
    assert_int_equal(report->n, 0);
    weir_report_free(report);
    weir_close(t->q);
    rig_free(t->r);
}

static int64_t number(beside *t, const char *command)
{
    redisReply *r = rig_command(t->r, command);
    assert_non_null(r);
    int64_t n = r->integer;
    freeReplyObject(r);
    return n;
}

static int64_t tokens(beside *t)
{
    return number(t, "LLEN " P "mail:jobs");
}

static int64_t waiting(beside *t)
{
    return number(t, "ZCARD " P "jobs:mail:INACTIVE");
}

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- Vert.x Kue, acted out; these run on other threads, too, and assert nothing ---- */

static redisContext *connect_to(const beside *t)
{
    redisContext *c = redisConnectUnix(t->r->socket);
    if (!c || c->err)
        abort();
    return c;
}

static redisReply *say(redisContext *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *r = redisvCommand(c, format, args);
    va_end(args);
    if (!r || r->type == REDIS_REPLY_ERROR)
        abort();
    return r;
}

#define DO(...) freeReplyObject(say(__VA_ARGS__))

static void zid_of(char zid[32], long long id)
{
    int digits = snprintf(zid, 32, "%lld", id);
    snprintf(zid, 32, "%02d|%lld", digits, id);
}

/* Its state change: one MULTI. */
static void set_state(redisContext *c, long long id, const char *old, const char *state)
{
    char zid[32];
    zid_of(zid, id);
    DO(c, "MULTI");
    if (old) {
        DO(c, "ZREM " P "jobs:%s %s", old, zid);
        DO(c, "ZREM " P "jobs:mail:%s %s", old, zid);
    }
    DO(c, "HSET " P "job:%lld state %s", id, state);
    DO(c, "ZADD " P "jobs:%s 0 %s", state, zid);
    DO(c, "ZADD " P "jobs:mail:%s 0 %s", state, zid);
    if (!strcmp(state, "INACTIVE"))
        DO(c, "LPUSH " P "mail:jobs 1");
    DO(c, "EXEC");
    DO(c, "HSET " P "job:%lld updated_at %lld", id, (long long)now_ms());
}

static long long produce(redisContext *c)
{
    redisReply *r = say(c, "INCR " P "ids");
    long long   id = r->integer, at = now_ms();
    char        zid[32];
    freeReplyObject(r);
    zid_of(zid, id);
    DO(c, "SADD " P "job:types mail");
    DO(c, "HMSET " P "job:%lld address_id 0-0-0-0-%lld attempts 0 created_at %lld data {} delay 0 "
          "duration 0 failed_at 0 id %lld max_attempts 1 priority NORMAL progress 0 promote_at "
          "%lld removeOnComplete false started_at 0 state INACTIVE ttl 0 type mail updated_at "
          "%lld zid %s", id, id, at, id, at, at, zid);
    DO(c, "MULTI");
    DO(c, "ZADD " P "jobs 0 %s", zid);
    DO(c, "EXEC");
    set_state(c, id, NULL, "INACTIVE");
    return id;
}

/* What it pops of the set; 0: "Empty zpop set". */
static long long pop(redisContext *c)
{
    DO(c, "MULTI");
    DO(c, "ZRANGE " P "jobs:mail:INACTIVE 0 0");
    DO(c, "ZREMRANGEBYRANK " P "jobs:mail:INACTIVE 0 0");
    redisReply *r = say(c, "EXEC");
    long long   id = 0;
    if (r->elements == 2 && r->element[0]->elements == 1)
        id = atoll(r->element[0]->element[0]->str + 3);
    freeReplyObject(r);
    return id;
}

static void run_job(beside *t, redisContext *c, long long id)
{
    DO(c, "HGETALL " P "job:%lld", id);
    DO(c, "HSET " P "job:%lld started_at %lld", id, (long long)now_ms());
    set_state(c, id, "INACTIVE", "ACTIVE");
    atomic_fetch_add(&t->ran[id], 1);
    atomic_fetch_add(&t->by_vertx, 1);
    DO(c, "HMSET " P "job:%lld progress 100 duration 0", id);
    set_state(c, id, "ACTIVE", "COMPLETE");
}

/* A moment, as between the answer to BLPOP and the commands that follow it on a busy event loop. */
static void dawdle(unsigned us)
{
    struct timespec ts = { 0, us * 1000L };
    nanosleep(&ts, NULL);
}

static void *vertx_worker(void *arg)
{
    beside       *t = arg;
    redisContext *c = connect_to(t);
    while (!atomic_load(&t->stop)) {
        redisReply *token = say(c, "BLPOP " P "mail:jobs 1");
        bool        got = token->type == REDIS_REPLY_ARRAY;
        freeReplyObject(token);
        if (!got)
            continue;
        dawdle(500);
        long long id = pop(c);
        if (id)
            run_job(t, c, id);
        else
            atomic_fetch_add(&t->empty, 1);
    }
    redisFree(c);
    return NULL;
}

/* ---- weir's worker ---- */

static weir_code handler(weir_job *job, void *ctx)
{
    beside *t = ctx;
    atomic_fetch_add(&t->ran[job->id], 1);
    atomic_fetch_add(&t->by_weir, 1);
    dawdle(300);
    return weir_job_done(job, NULL, 0, NULL);
}

static void work(beside *t, unsigned threads)
{
    OK(weir_process(t->q, "mail",
                    &(weir_pool_config){ .threads = threads, .handler = handler, .ctx = t }, NULL,
                    &t->err));
}

static uint64_t add(beside *t)
{
    weir_added added;
    OK(weir_add(t->q, &(weir_spec){ .type = "mail" }, &added, &t->err));
    return added.id;
}

/* ---- the cases ---- */

/* Each job runs once, and nobody who has a token finds no job. */
static void both_work(void **state)
{
    (void)state;
    enum { JOBS = 300 };
    beside    t_, *t = &t_;
    pthread_t worker;
    open_queue(t);
    redisContext *c = connect_to(t);
    work(t, 2);
    assert_int_equal(pthread_create(&worker, NULL, vertx_worker, t), 0);
    for (int i = 0; i < JOBS; i++) {
        if (i % 2)
            add(t);
        else
            produce(c);
    }
    UNTIL(atomic_load(&t->by_weir) + atomic_load(&t->by_vertx) >= JOBS &&
          number(t, "ZCARD " P "jobs:COMPLETE") == JOBS);
    atomic_store(&t->stop, true);
    pthread_join(worker, NULL);
    assert_int_equal(atomic_load(&t->empty), 0);
    for (int id = 1; id <= JOBS; id++)
        assert_int_equal(atomic_load(&t->ran[id]), 1);
    assert_true(atomic_load(&t->by_weir) > 0 && atomic_load(&t->by_vertx) > 0);
    assert_int_equal(tokens(t), 0);
    redisFree(c);
    close_queue(t);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* What Vert.x Kue queues starts at once in an idle worker, which does not ask for it again and
 * again. */
static void an_idle_worker_is_woken(void **state)
{
    (void)state;
    enum { JOBS = 21, WATCHED_MS = 3000 };
    beside  t_, *t = &t_;
    int64_t took[JOBS];
    open_queue(t);
    redisContext *c = connect_to(t);
    work(t, 1);
    for (int i = 0; i < JOBS; i++) {
        int64_t blocked = rig_info(t->r, "clients", "blocked_clients");
        UNTIL((blocked = rig_info(t->r, "clients", "blocked_clients")) == 1);
        int64_t from = rt_ms();
        produce(c);
        UNTIL(atomic_load(&t->by_weir) == i + 1);
        took[i] = rt_ms() - from;
    }
    qsort(took, JOBS, sizeof *took, compare);
    if (took[JOBS / 2] >= 200)
        fail_msg("a job waits %" PRId64 " ms for an idle worker", took[JOBS / 2]);

    UNTIL(rig_info(t->r, "clients", "blocked_clients") == 1);
    int64_t end = rt_ms() + WATCHED_MS;
    int64_t calls = rig_info(t->r, "commandstats", "cmdstat_fcall:calls");
    int64_t waits = rig_info(t->r, "commandstats", "cmdstat_blmove:calls");
    while (rt_ms() < end)
        rt_breathe();
    /* once a second it looks for delayed jobs, as Vert.x Kue does */
    assert_in_range(rig_info(t->r, "commandstats", "cmdstat_fcall:calls") - calls, 0,
                    2 * WATCHED_MS / 1000 + 2);
    assert_in_range(rig_info(t->r, "commandstats", "cmdstat_blmove:calls") - waits, 0, 1);
    redisFree(c);
    close_queue(t);
}

/* A worker that died with a token in its hand, and a list that somebody deleted. */
static void lost_tokens_come_back(void **state)
{
    (void)state;
    beside t_, *t = &t_;
    open_queue(t);
    redisContext *c = connect_to(t);
    for (int i = 0; i < 5; i++)
        produce(c);
    DO(c, "BLPOP " P "mail:jobs 1");            /* and it never takes its job */
    work(t, 1);
    UNTIL(atomic_load(&t->by_weir) == 5);
    UNTIL(number(t, "ZCARD " P "jobs:COMPLETE") == 5);
    OK(weir_pause(t->q, "mail", &t->err));
    produce(c);
    add(t);
    DO(c, "DEL " P "mail:jobs");
    OK(weir_resume(t->q, "mail", &t->err));
    UNTIL(number(t, "ZCARD " P "jobs:COMPLETE") == 7);
    UNTIL(tokens(t) == 0);
    redisFree(c);
    close_queue(t);
}

/* What a worker of Vert.x Kue's is about to take is left to it. */
static void what_is_being_taken_is_left(void **state)
{
    (void)state;
    beside t_, *t = &t_;
    open_queue(t);
    redisContext *c = connect_to(t);
    uint64_t      id = add(t);
    DO(c, "BLPOP " P "mail:jobs 1");
    assert_int_equal(weir_cancel(t->q, id, &t->err), WEIR_ESTATE);
    assert_non_null(strstr(t->err.msg, "a worker of Kue is just taking it"));
    assert_int_equal(weir_remove(t->q, id, &t->err), WEIR_ESTATE);
    weir_job   *job = NULL;
    size_t      n = 1;
    weir_taking what = {
        .remote = true, .types = (const char *[]){ "mail", NULL }, .n = 1, .worker = "me"
    };
    OK(weir_take(t->q, &what, &job, &n, &t->err));
    assert_int_equal(n, 0);
    assert_int_equal(pop(c), id);
    run_job(t, c, (long long)id);
    OK(weir_remove(t->q, id, &t->err));
    redisFree(c);
    close_queue(t);
}

/* Whatever weir does to a job: a token for each that waits, never two. */
static void one_token_for_each_job(void **state)
{
    (void)state;
    beside t_, *t = &t_;
    open_queue(t);
    redisContext *c = connect_to(t);
    for (int i = 0; i < 6; i++)
        produce(c);
    const weir_change changes[] = {
        { .set_priority = true, .priority = WEIR_PRIORITY_HIGH },
        { .set_delay = true, .delay_ms = 60000 },
        { .state = WEIR_STATE_INACTIVE },
        { .state = WEIR_STATE_COMPLETE },
        { .state = WEIR_STATE_INACTIVE },
        { .state = WEIR_STATE_ACTIVE },
        { .state = WEIR_STATE_CANCELLED },
        { .state = WEIR_STATE_INACTIVE },
        { .data = "{\"n\":1}" },
        { .state = WEIR_STATE_FAILED },
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        OK(weir_update(t->q, 3, &changes[i], NULL, &t->err));
        assert_int_equal(tokens(t), waiting(t));
    }
    assert_int_equal(waiting(t), 5);
    OK(weir_remove(t->q, 4, &t->err));
    assert_int_equal(tokens(t), 4);
    DO(c, "LPUSH " P "mail:jobs 1");            /* Kue's admin pushes two */
    add(t);
    assert_int_equal(tokens(t), 5);
    work(t, 2);
    UNTIL(atomic_load(&t->by_weir) == 5);
    UNTIL(tokens(t) == 0);
    redisFree(c);
    close_queue(t);
}

/* A delayed job, of which Vert.x Kue tells nobody. */
static long long produce_delayed(redisContext *c, int64_t due_at)
{
    redisReply *r = say(c, "INCR " P "ids");
    long long   id = r->integer, at = now_ms();
    char        zid[32];
    freeReplyObject(r);
    zid_of(zid, id);
    DO(c, "SADD " P "job:types mail");
    DO(c, "HMSET " P "job:%lld address_id 0-0-0-0-%lld attempts 0 created_at %lld data {} delay "
          "%lld duration 0 failed_at 0 id %lld max_attempts 1 priority NORMAL progress 0 "
          "promote_at %lld removeOnComplete false started_at 0 state DELAYED ttl 0 type mail "
          "updated_at %lld zid %s", id, id, at, (long long)(due_at - at), id,
          (long long)due_at, at, zid);
    DO(c, "MULTI");
    DO(c, "ZADD " P "jobs 0 %s", zid);
    DO(c, "ZADD " P "jobs:DELAYED %lld %s", (long long)due_at, zid);
    DO(c, "ZADD " P "jobs:mail:DELAYED %lld %s", (long long)due_at, zid);
    DO(c, "EXEC");
    return id;
}

static weir_code count_one(weir_job *job, void *ctx)
{
    beside *t = ctx;
    (void)job;
    atomic_fetch_add(&t->by_weir, 1);
    return WEIR_OK;
}

/* With promotion=50ms delayed jobs of Vert.x Kue are found soon, and all that are due at once. */
static void delayed_jobs_are_looked_for(void **state)
{
    (void)state;
    enum { ROUNDS = 5, DUE = 1001 };
    beside  t_, *t = &t_;
    int64_t took[ROUNDS];
    open_queue(t);
    weir_close(t->q);
    rig_url(t->r, "redis+kue+unix", "profile=vertx&promotion=50ms", t->url, sizeof t->url);
    OK(weir_open(&t->q, t->url, NULL, &t->err));
    redisContext *c = connect_to(t);
    OK(weir_process(t->q, "mail",
                    &(weir_pool_config){ .threads = 4, .handler = count_one, .ctx = t }, NULL,
                    &t->err));
    for (int i = 0; i < ROUNDS; i++) {
        int64_t from = rt_ms();
        produce_delayed(c, now_ms());
        UNTIL(atomic_load(&t->by_weir) == i + 1);
        took[i] = rt_ms() - from;
    }
    qsort(took, ROUNDS, sizeof *took, compare);
    if (took[ROUNDS / 2] >= 400)        /* once a second: 500 in the middle of many */
        fail_msg("a delayed job is found after %" PRId64 " ms", took[ROUNDS / 2]);
    int64_t due_at = now_ms();
    for (int i = 0; i < DUE; i++)
        produce_delayed(c, due_at);
    UNTIL(atomic_load(&t->by_weir) == ROUNDS + DUE);
    UNTIL(number(t, "ZCARD " P "jobs:COMPLETE") == ROUNDS + DUE);
    redisFree(c);
    close_queue(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_work),
        cmocka_unit_test(an_idle_worker_is_woken),
        cmocka_unit_test(lost_tokens_come_back),
        cmocka_unit_test(what_is_being_taken_is_left),
        cmocka_unit_test(one_token_for_each_job),
        cmocka_unit_test(delayed_jobs_are_looked_for),
    };
    return cmocka_run_group_tests_name("vertx", tests, NULL, NULL);
}
